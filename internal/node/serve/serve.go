// Package serve keeps the targets of a server mounted whose mounts are the server (format.Served): the kernel serves them, and no program
// runs. Each is proven before it is mounted, looked for in the node's own table of mounts afterwards, and unmounted at the end. What is
// mounted already stays: a program that is killed takes no target away, and the next one finds it.
package serve

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"time"

	"parallelfs.dev/operator/api/v1alpha1"
	"parallelfs.dev/operator/internal/node/format"
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
}

// Mount is a mount of the node.
type Mount struct{ Type, Source, Options string }

// Node is where targets are mounted.
type Node interface {
	// Mounts are those at a path of the node, later ones on top of earlier ones.
	Mounts(path string) ([]Mount, error)
	// Prove finds the disk of a target, and refuses it with an error when somebody uses it, or when it is not what was given.
	Prove(ctx context.Context, t Target) (device string, err error)
	// Mount and Unmount run the node's own programs. That they end well proves nothing.
	Mount(ctx context.Context, t Target, device string) error
	Unmount(ctx context.Context, t Target) error
}

// Keeper keeps targets mounted.
type Keeper struct {
	Node Node
	// Targets are in the order in which they are mounted.
	Targets []Target
	// Period is the time between two looks, and Grace how long all unmounts may take at the end.
	Period, Grace time.Duration
	Log           *slog.Logger
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
func (k *Keeper) Round(ctx context.Context) (problems map[string]error) {
	problems = map[string]error{}
	for _, t := range k.Targets {
		err := k.keep(ctx, t)
		if err != nil {
			problems[t.Name] = err
		}
		k.say(t, err)
	}
	return problems
}

// keep has one target mounted.
func (k *Keeper) keep(ctx context.Context, t Target) error {
	there, err := k.there(t)
	if there || err != nil || ctx.Err() != nil { // at the end, it would be unmounted at once
		return err
	}
	device, err := k.Node.Prove(ctx, t)
	if err != nil {
		return fmt.Errorf("target %s is not mounted: %w", t.Name, err)
	}
	if err := k.Node.Mount(ctx, t, device); err != nil {
		return fmt.Errorf("can't mount target %s: %w", t.Name, err)
	}
	if there, err = k.there(t); err == nil && !there {
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

// Stop unmounts the targets, the last one first. It leaves alone what is not the target's own mount.
func (k *Keeper) Stop(ctx context.Context) error {
	var left []error
	for _, t := range slices.Backward(k.Targets) {
		there, err := k.there(t)
		if there {
			err = k.Node.Unmount(ctx, t)
			if there, looked := k.there(t); looked != nil || there {
				err = errors.Join(err, looked, fmt.Errorf("target %s is still mounted at %s", t.Name, t.Path))
			} else {
				err = nil // the table of mounts counts
			}
		}
		left = append(left, err)
	}
	return errors.Join(left...)
}

// say logs what is new.
func (k *Keeper) say(t Target, err error) {
	if k.said == nil {
		k.said = map[string]string{}
	}
	now := "is mounted"
	if err != nil {
		now = err.Error()
	}
	if k.said[t.Name] == now {
		return
	}
	k.said[t.Name] = now
	if err != nil {
		k.Log.Error("a target is not served", "target", t.Name, "reason", now)
	} else {
		k.Log.Info("a target is served", "target", t.Name, "path", t.Path)
	}
}
