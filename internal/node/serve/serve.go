// Package serve keeps the targets of a server mounted whose mounts are the server (format.Served): the kernel serves them, and no program
// runs. Each is proven before it is mounted, looked for in the node's own table of mounts afterwards, and unmounted at the end. What is
// mounted already stays: a program that is killed takes no target away, and the next one finds it.
//
// A target that another node may serve, too, is destroyed when both have it mounted. It is mounted under a lock that is held from before it
// is read what there is to be mounted until the mount has ended, and only in the start of the node for which that was said.
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

// Target is what is to be mounted.
type Target struct {
	// Name of the StorageTarget, ID the stable name of its disk, and Path its mountpoint on the node.
	Name string
	ID   v1alpha1.DeviceID
	Path string
	// Format of the disk, and Wanted what it was given: its UUID, its mark, and what it is to its server. Its device is found anew.
	Format format.Served
	Wanted format.New
	// BootID is set for a target that another node may serve, too: it is only mounted in that start of the node, and while the file Lock is
	// locked (package mountlock).
	BootID, Lock string
	// Waits says why it is not mounted yet; the rest is empty then, but for Name and Path.
	Waits string
}

// Told is what a server is told of its node: its targets, in the order in which they are mounted, and variables.
type Told struct {
	Targets   []Target
	Variables map[string]string
	// Elsewhere are targets that another node has, and that this server may mount at other times.
	Elsewhere []string
}

// Mount is a mount of the node.
type Mount struct{ Type, Source, Options string }

// Node is where targets are mounted.
type Node interface {
	// Mounts are those at a path of the node, later ones on top of earlier ones.
	Mounts(path string) ([]Mount, error)
	// Prove finds the disk of a target, and refuses it with an error when somebody uses it, or when it is not what was given.
	Prove(ctx context.Context, t Target) (device string, err error)
	// Mount and Unmount run the node's own programs. That they end well proves nothing. What is kept stays open until the mount has ended,
	// also when this program is killed.
	Mount(ctx context.Context, t Target, device string, keep ...*os.File) error
	Unmount(ctx context.Context, t Target) error
}

// Keeper keeps targets mounted.
type Keeper struct {
	Node Node
	// Told says what there is to be mounted, anew with each look, or what is missing before that is known: what is mounted stays then.
	Told func() (Told, string)
	// Before is what must be before anything is mounted: modules of one version, and the network. Nothing is asked while all is mounted.
	Before func(ctx context.Context, variables map[string]string) error
	// BootID says which start of the node this is (spec.BootIDFile).
	BootID func() (string, error)
	// Period is the time between two looks, Patience how long one waits for a target that does not answer before it goes on with the others,
	// and Grace how long all unmounts may take at the end.
	Period, Patience, Grace time.Duration
	Log                     *slog.Logger

	// known are the targets that were told, in their order: one that is not told any more is unmounted.
	known []Target
	work  work
	// said is what was said of each target last, so that it is said once.
	said map[string]string
}

// Run keeps the targets mounted until ctx ends, then unmounts them. The error names those that are mounted still.
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

// Round looks at each target once, and mounts those that are not there and are proven. What keeps one from being mounted keeps no other.
// One that is not told any more is unmounted. The problems are those of targets, by name; the empty name is what is missing before any is
// known.
func (k *Keeper) Round(ctx context.Context) (problems map[string]error) {
	told, missing := k.Told()
	if missing != "" {
		err := errors.New(missing)
		k.say("", err)
		return map[string]error{"": err}
	}
	k.say("", nil)
	before := sync.OnceValue(func() error { return k.Before(ctx, told.Variables) })
	gone := slices.DeleteFunc(slices.Clone(k.known), func(t Target) bool {
		return slices.ContainsFunc(told.Targets, func(other Target) bool { return other.Name == t.Name })
	})
	for _, t := range told.Targets {
		if i := slices.IndexFunc(k.known, func(other Target) bool { return other.Name == t.Name }); i < 0 {
			k.known = append(k.known, t)
		} else if t.Waits == "" {
			k.known[i] = t
		}
	}
	for _, t := range told.Targets {
		k.work.begin(t.Name, func() error { return k.keep(ctx, t, before) })
	}
	for _, t := range gone {
		k.work.begin(t.Name, func() error { return k.letGo(ctx, t) })
	}
	problems = k.work.wait(ctx, k.Patience)
	if ctx.Err() != nil {
		return problems
	}
	for _, t := range told.Targets {
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

// keep has one target mounted.
func (k *Keeper) keep(ctx context.Context, t Target, before func() error) error {
	if t.Waits != "" {
		return fmt.Errorf("target %s is not mounted: %s", t.Name, t.Waits)
	}
	there, err := k.there(t)
	if there || err != nil || ctx.Err() != nil { // at the end, it would be unmounted at once
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

// stillOurs is a target that another node may serve, too, as it is told now that its lock was taken: what was told before may be given to
// the other node since.
func (k *Keeper) stillOurs(t Target) (Target, error) {
	told, missing := k.Told()
	if missing != "" {
		return t, errors.New(missing)
	}
	i := slices.IndexFunc(told.Targets, func(other Target) bool { return other.Name == t.Name })
	switch {
	case i < 0:
		return t, errors.New("it is not this server's any more: another node may have it")
	case told.Targets[i].Waits != "":
		return t, errors.New(told.Targets[i].Waits)
	}
	t = told.Targets[i]
	is, err := k.BootID()
	switch {
	case err != nil:
		return t, fmt.Errorf("can't see which start of the node this is: %w", err)
	case t.BootID != is:
		return t, errors.New("what this server is told of it is of an earlier start of the node, and another node may have it since; the agent of this node " +
			"says it anew when it has asked the API server")
	}
	return t, nil
}

// mount proves a target, mounts it and looks for it.
func (k *Keeper) mount(ctx context.Context, t Target, keep ...*os.File) error {
	device, err := k.Node.Prove(ctx, t)
	if err != nil {
		return fmt.Errorf("target %s is not mounted: %w", t.Name, err)
	}
	if ctx.Err() != nil { // the end came meanwhile
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

// there is true when the target itself is mounted at its path, and nothing else. Anything else there is an error: nothing is mounted over
// it.
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

// serves is true for the name that the target has in the kernel. A program in the kernel's place shows none.
func (t Target) serves(name string) bool {
	return name == "" || t.Wanted.Given != nil && slices.Contains(t.Format.Labels(*t.Wanted.Given), name)
}

// Stop unmounts the targets, all at once: one may take long, and those of a server need none of each other. It leaves alone what is not a
// target's own mount.
func (k *Keeper) Stop(ctx context.Context) error {
	k.work.wait(ctx, k.Grace/2)
	if told, missing := k.Told(); missing == "" && len(k.known) == 0 {
		k.known = told.Targets // of an earlier server, which was killed
	}
	for _, t := range k.known {
		k.work.begin(t.Name, func() error { return k.letGo(ctx, t) })
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

// letGo has one target not mounted. Of one that was never proven, nothing of its own can be mounted.
func (k *Keeper) letGo(ctx context.Context, t Target) error {
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
	return nil // the table of mounts counts
}

// Mounted returns nil when each target that is told is mounted, else a sentence for each that is not.
func (k *Keeper) Mounted() error {
	told, missing := k.Told()
	if missing != "" {
		return errors.New(missing)
	}
	var all []error
	for _, t := range told.Targets {
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
	if len(told.Targets) == 0 && len(told.Elsewhere) == 0 {
		return errors.New("this node has no target for the server yet; kubectl get storagetargets -o wide shows what there is")
	}
	return errors.Join(all...)
}

// say logs what is new: of a target, or, with no name, of what is told.
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
