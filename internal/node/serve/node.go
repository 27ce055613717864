package serve

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"parallelfs.dev/operator/api/v1alpha1"
	"parallelfs.dev/operator/internal/node/devices"
	"parallelfs.dev/operator/internal/node/format"
	"parallelfs.dev/operator/internal/node/host"
	"parallelfs.dev/operator/internal/node/procfs"
	"parallelfs.dev/operator/internal/plan"
)

// Host is the node that this process runs on. It needs the node's process ids, and root.
type Host struct {
	// Look reads the device with a stable id (devices.Looker.ByID).
	Look func(ctx context.Context, id v1alpha1.DeviceID) (plan.Facts, error)
	// Run runs a read-only program of the node. RunMounting runs one that changes the node's mounts, without a time limit. The files in keep
	// stay open in the program.
	Run         func(ctx context.Context, argv []string) (format.Answer, error)
	RunMounting func(ctx context.Context, argv []string, keep ...*os.File) (format.Answer, error)
	// Table is the node's own mount table, Root its root directory, and Dev its /dev as its programs see it.
	Table, Root, Dev string
}

// readLimit bounds the time of a read-only program.
const readLimit = time.Minute

// ThisHost is the node that the program runs on. All programs are the node's own. The devices are those in its own /dev, because a
// container has only copies of the device nodes at its start.
func ThisHost() Host {
	looker := devices.ThisHost()
	looker.Dev, looker.Udev = filepath.Join(host.Root, "dev"), filepath.Join(host.Root, "run/udev")
	looker.Run = func(ctx context.Context, argv ...string) (devices.Output, error) {
		onNode := host.OnNode(argv)
		return devices.Execute(ctx, onNode...)
	}
	return Host{
		Look: looker.ByID, Table: "/proc/1/mountinfo", Root: host.Root, Dev: "/dev", RunMounting: host.RunKeeping,
		Run: func(ctx context.Context, argv []string) (format.Answer, error) {
			ctx, cancel := context.WithTimeout(ctx, readLimit)
			defer cancel()
			return host.Run(ctx, argv)
		},
	}
}

// Mounts reads the mount table of the node's first process.
func (h Host) Mounts(path string) ([]Mount, error) {
	found, err := procfs.MountsAt(h.Table, path)
	if err != nil {
		return nil, fmt.Errorf("can't read the mounts of the node: %w", err)
	}
	all := make([]Mount, len(found))
	for i, m := range found {
		all[i] = Mount{Type: m.FSType, Source: m.Source, Options: m.VFSOptions}
	}
	return all, nil
}

// Prove reads the disk again, because a mount registers it with the MGS under its current name.
func (h Host) Prove(ctx context.Context, t Target) (string, error) {
	f, err := h.Look(ctx, t.ID)
	switch {
	case err != nil:
		return "", fmt.Errorf("can't look at the disk %s: %w", t.ID, err)
	case !f.Found:
		return "", fmt.Errorf("the disk %s is not there: look at its cable, its slot and its controller", t.ID)
	case f.Incomplete != "":
		return "", fmt.Errorf("%s could not be looked at completely: %s", f.KernelName, f.Incomplete)
	case f.TwoDisks != "":
		return "", errors.New(f.TwoDisks)
	case f.InUse():
		return "", fmt.Errorf("%s is in use (%s); find out by whom, and stop it", f.KernelName, strings.Join(users(f), ", "))
	case len(f.Signatures) != 1 || len(f.Partitions) > 0:
		return "", fmt.Errorf("%s holds something else than the one filesystem of the target", f.KernelName)
	}
	device := filepath.Join(h.Dev, strings.ReplaceAll(f.KernelName, "!", "/"))
	a, err := h.Run(ctx, t.Format.ReadBack(device))
	if err != nil {
		return "", fmt.Errorf("can't read what is on %s: %w", f.KernelName, err)
	}
	s := f.Signatures[0]
	if why := t.Format.Refusal(t.Wanted, format.Seen{Type: s.Type, UUID: s.UUID, Label: s.Label, Answer: a}); why != "" {
		return "", fmt.Errorf("%s is not what the target was given: %s", f.KernelName, why)
	}
	return device, nil
}

// users lists the users of a disk for a sentence.
func users(f plan.Facts) []string {
	return slices.DeleteFunc(slices.Concat(f.Mounts, f.Holders, []string{f.Busy}), func(who string) bool { return who == "" })
}

// Mount calls mount(8) of the node with the first type that has a helper there, because older releases of a filesystem have another type.
func (h Host) Mount(ctx context.Context, t Target, device string, keep ...*os.File) error {
	types := t.Format.MountTypes()
	i := slices.IndexFunc(types, func(name string) bool { return host.Program(h.Root, "mount."+name) != "" })
	return h.change(ctx, []string{"mount", "-t", types[max(i, 0)], device, t.Path}, keep...)
}

// Unmount calls umount(8) of the node.
func (h Host) Unmount(ctx context.Context, t Target) error {
	return h.change(ctx, []string{"umount", t.Path})
}

func (h Host) change(ctx context.Context, argv []string, keep ...*os.File) error {
	a, err := h.RunMounting(ctx, argv, keep...)
	if err != nil {
		return err
	}
	if a.Code != 0 {
		return fmt.Errorf("%s ended with exit code %d: %s", strings.Join(argv, " "), a.Code, a.Said)
	}
	return nil
}
