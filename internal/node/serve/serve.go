// Package serve keeps the targets of a server mounted if the mounts themselves are the server (format.Served): the kernel serves the
// targets, and no program runs. Each target is proven before its mount, checked in the node's own mount table afterwards, and unmounted at
// the end. Existing mounts stay: a killed program unmounts nothing, and the next one finds the mounts.
//
// A target of a pair is destroyed if both nodes mount it. Its mount is protected by a lock, which is held from before the configuration is
// read until the mount has ended. It is mounted only in the boot of the node for which the configuration was written.
package serve

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"parallelfs.dev/operator/api/v1alpha1"
	"parallelfs.dev/operator/internal/node/format"
	"parallelfs.dev/operator/internal/node/mountlock"
)

// Target is a target to mount.
type Target struct {
	// Name is the name of the StorageTarget, ID the stable name of its disk, and Path its mountpoint on the node.
	Name string
	ID   v1alpha1.DeviceID
	Path string
	// Format is the format of the disk. Wanted is its record: its UUID, its mark, and its identity for its server. Its device is searched for
	// each time.
	Format format.Served
	Wanted format.New
	// BootID is set for a target of a pair. The target is mounted only in this boot of the node, and while the file Lock is locked (package
	// mountlock).
	BootID, Lock string
	// Waits is the reason why it is not mounted yet. All other fields except Name and Path are then empty.
	Waits string
}

// ServerConfig is a server's configuration from its node file: its targets in the order of mounting, and variables.
type ServerConfig struct {
	Targets   []Target
	Variables map[string]string
	// Elsewhere lists targets that the other node holds and that this server may mount at other times.
	Elsewhere []string
}

// Mount is a mount of the node.
type Mount struct{ Type, Source, Options string }

// Node is the node with the mounts.
type Node interface {
	// Mounts returns the mounts at a path of the node; later ones are over earlier ones.
	Mounts(path string) ([]Mount, error)
	// Prove finds the disk of a target. It returns an error if the disk is in use or differs from the record.
	Prove(ctx context.Context, t Target) (device string, err error)
	// Mount and Unmount run the node's own programs. Their success proves nothing. The files in keep stay open until the mount has ended, even
	// if this program is killed.
	Mount(ctx context.Context, t Target, device string, keep ...*os.File) error
	Unmount(ctx context.Context, t Target) error
}

// Keeper keeps targets mounted.
type Keeper struct {
	Node Node
	// Config returns the targets to mount, read again at each check. If the second result is not empty it explains what is missing, and
	// existing mounts stay.
	Config func() (ServerConfig, string)
	// Before checks the prerequisites of a mount: modules of one version, and the network. It is not called while everything is mounted.
	Before func(ctx context.Context, variables map[string]string) error
	// BootID returns the boot id of the node (spec.BootIDFile).
	BootID func() (string, error)
	// Period is the interval between checks. Patience is how long a check waits for a target that does not answer before it continues with the
	// others. Grace bounds the time of all unmounts at the end.
	Period, Patience, Grace time.Duration
	Log                     *slog.Logger

	// known holds the configured targets in their order, so that one that disappears from the configuration is unmounted.
	known []Target
	work  work
	// said holds the last logged message for each target, so that it is logged once.
	said map[string]string
}

// Run keeps the targets mounted until ctx ends, then unmounts them. The error names the targets that are still mounted.
func (k *Keeper) Run(ctx context.Context) error {
	look := time.NewTicker(k.Period)
	defer look.Stop()
	for ctx.Err() == nil {
		k.Round(ctx)
		select {
		case <-ctx.Done():
		case <-look.C:
		}
	}
	ending, cancel := context.WithTimeout(context.WithoutCancel(ctx), k.Grace)
	defer cancel()
	return k.Stop(ending)
}

// Round checks each target once, and mounts those that are proven and not mounted. A problem with one target does not affect the others. A
// target that is no longer configured is unmounted. problems holds the targets' errors by name. The empty name is for what is missing
// before any target is known.
func (k *Keeper) Round(ctx context.Context) (problems map[string]error) {
	config, missing := k.Config()
	if missing != "" {
		err := errors.New(missing)
		k.say("", err)
		return map[string]error{"": err}
	}
	k.say("", nil)
	before := sync.OnceValue(func() error { return k.Before(ctx, config.Variables) })
	gone := slices.DeleteFunc(slices.Clone(k.known), func(t Target) bool {
		return slices.ContainsFunc(config.Targets, func(other Target) bool { return other.Name == t.Name })
	})
	for _, t := range config.Targets {
		if i := slices.IndexFunc(k.known, func(other Target) bool { return other.Name == t.Name }); i < 0 {
			k.known = append(k.known, t)
		} else if t.Waits == "" {
			k.known[i] = t
		}
	}
	for _, t := range config.Targets {
		k.work.begin(t.Name, func() error { return k.keep(ctx, t, before) })
	}
	for _, t := range gone {
		k.work.begin(t.Name, func() error { return k.unmountTarget(ctx, t) })
	}
	problems = k.work.wait(ctx, k.Patience)
	if ctx.Err() != nil {
		return problems
	}
	for _, t := range config.Targets {
		k.say(t.Name, problems[t.Name])
	}
	for _, t := range gone {
		if problems[t.Name] != nil {
			k.say(t.Name, problems[t.Name])
			continue
		}
		k.known = slices.DeleteFunc(k.known, func(other Target) bool { return other.Name == t.Name })
		delete(k.said, t.Name)
		k.Log.Info("a target is not this server's any more, and is not mounted", "target", t.Name, "path", t.Path)
	}
	return problems
}

// keep mounts one target if it is not mounted.
func (k *Keeper) keep(ctx context.Context, t Target, before func() error) error {
	if t.Waits != "" {
		return fmt.Errorf("target %s is not mounted: %s", t.Name, t.Waits)
	}
	there, err := k.there(t)
	if there || err != nil || ctx.Err() != nil { // at the end it would be unmounted at once
		return err
	}
	if err := before(); err != nil {
		return fmt.Errorf("target %s is not mounted: %w", t.Name, err)
	}
	if t.BootID == "" {
		return k.mount(ctx, t)
	}
	lock, err := mountlock.Take(t.Lock)
	if err != nil {
		return fmt.Errorf("target %s is not mounted: %w", t.Name, err)
	}
	defer lock.Close()
	if t, err = k.stillOurs(t); err != nil {
		return fmt.Errorf("target %s is not mounted: %w", t.Name, err)
	}
	return k.mount(ctx, t, lock)
}

// stillOurs returns a target of a pair as it is configured after its lock was taken. It may have been handed over to the other node since
// the earlier read.
func (k *Keeper) stillOurs(t Target) (Target, error) {
	config, missing := k.Config()
	if missing != "" {
		return t, errors.New(missing)
	}
	i := slices.IndexFunc(config.Targets, func(other Target) bool { return other.Name == t.Name })
	switch {
	case i < 0:
		return t, errors.New("it is not this server's any more: another node may have it")
	case config.Targets[i].Waits != "":
		return t, errors.New(config.Targets[i].Waits)
	}
	t = config.Targets[i]
	is, err := k.BootID()
	switch {
	case err != nil:
		return t, fmt.Errorf("can't see which start of the node this is: %w", err)
	case t.BootID != is:
		return t, errors.New("its configuration is of an earlier start of the node, and another node may have it since; the agent of this node " +
			"renews it when the API server answers")
	}
	return t, nil
}

// mount proves a target, mounts it and checks the mount.
func (k *Keeper) mount(ctx context.Context, t Target, keep ...*os.File) error {
	device, err := k.Node.Prove(ctx, t)
	if err != nil {
		return fmt.Errorf("target %s is not mounted: %w", t.Name, err)
	}
	if ctx.Err() != nil { // the end has come in the meantime
		return fmt.Errorf("target %s is not mounted: %w", t.Name, ctx.Err())
	}
	if err := k.Node.Mount(ctx, t, device, keep...); err != nil {
		return fmt.Errorf("can't mount target %s: %w", t.Name, err)
	}
	there, err := k.there(t)
	if err == nil && !there {
		err = fmt.Errorf("the mount of target %s ended well, and nothing is mounted at %s; look into the kernel's log of the node (dmesg)", t.Name, t.Path)
	}
	return err
}

// there is true if the target itself, and nothing else, is mounted at its path. Any other mount is an error, because nothing may be mounted
// over it.
func (k *Keeper) there(t Target) (bool, error) {
	mounts, err := k.Node.Mounts(t.Path)
	switch {
	case err != nil:
		return false, fmt.Errorf("can't look for the mount of target %s: %w", t.Name, err)
	case len(mounts) == 0:
		return false, nil
	case len(mounts) > 1:
		return false, fmt.Errorf("%d filesystems are mounted on each other at %s; unmount all but target %s", len(mounts), t.Path, t.Name)
	case !format.IsMount(t.Format, mounts[0].Type, mounts[0].Source) || !t.serves(t.Format.Mounted(mounts[0].Options)):
		return false, fmt.Errorf("what is mounted at %s is %s (%s), and not target %s; unmount it: umount %s",
			t.Path, mounts[0].Source, strings.TrimSpace(mounts[0].Type+" "+t.Format.Mounted(mounts[0].Options)), t.Name, t.Path)
	}
	return true, nil
}

// serves is true for the target's name in the kernel. A program that replaces the kernel shows none.
func (t Target) serves(name string) bool {
	return name == "" || t.Wanted.Given != nil && slices.Contains(t.Format.Labels(*t.Wanted.Given), name)
}

// Stop unmounts all targets at once: one may take long, and the targets of a server don't depend on each other. It leaves foreign mounts
// alone.
func (k *Keeper) Stop(ctx context.Context) error {
	k.work.wait(ctx, k.Grace/2)
	if config, missing := k.Config(); missing == "" && len(k.known) == 0 {
		k.known = config.Targets // from an earlier server that was killed
	}
	for _, t := range k.known {
		k.work.begin(t.Name, func() error { return k.unmountTarget(ctx, t) })
	}
	problems := k.work.wait(ctx, k.Grace)
	var left []error
	for _, t := range k.known {
		if problems[t.Name] != nil {
			left = append(left, fmt.Errorf("target %s: %w", t.Name, problems[t.Name]))
		}
	}
	return errors.Join(left...)
}

// unmountTarget unmounts one target. A target that was never proven can't be mounted.
func (k *Keeper) unmountTarget(ctx context.Context, t Target) error {
	if t.Waits != "" {
		return nil
	}
	there, err := k.there(t)
	if !there {
		return err
	}
	err = k.Node.Unmount(ctx, t)
	there, looked := k.there(t)
	if looked != nil || there {
		return errors.Join(err, looked, fmt.Errorf("target %s is still mounted at %s", t.Name, t.Path))
	}
	return nil // the mount table decides
}

// Mounted returns nil if all configured targets are mounted. Otherwise the error has a sentence for each that is not.
func (k *Keeper) Mounted() error {
	config, missing := k.Config()
	if missing != "" {
		return errors.New(missing)
	}
	var all []error
	for _, t := range config.Targets {
		if t.Waits != "" {
			all = append(all, fmt.Errorf("target %s is not mounted: %s", t.Name, t.Waits))
			continue
		}
		there, err := k.there(t)
		if err == nil && !there {
			err = fmt.Errorf("target %s is not mounted at %s", t.Name, t.Path)
		}
		all = append(all, err)
	}
	if len(config.Targets) == 0 && len(config.Elsewhere) == 0 {
		return errors.New("this node has no target for the server yet; kubectl get storagetargets -o wide shows what there is")
	}
	return errors.Join(all...)
}

// say logs a changed message about a target or, without a name, about the configuration.
func (k *Keeper) say(name string, err error) {
	if k.said == nil {
		k.said = map[string]string{}
	}
	now := ""
	if err != nil {
		now = err.Error()
	}
	before, known := k.said[name]
	k.said[name] = now
	switch {
	case known && before == now:
	case err != nil && name == "":
		k.Log.Info("waiting; what is mounted stays", "for", now)
	case err != nil:
		k.Log.Error("a target is not served", "target", name, "reason", now)
	case name != "":
		k.Log.Info("a target is served", "target", name)
	}
}
