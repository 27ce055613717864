package provision

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"parallelfs.dev/operator/api/v1alpha1"
	"parallelfs.dev/operator/internal/node/format/registry"
	"parallelfs.dev/operator/internal/node/mounts"
	"parallelfs.dev/operator/internal/node/proof"
	"parallelfs.dev/operator/internal/node/spec"
	"parallelfs.dev/operator/internal/plan"
)

// path returns the present path of the device.
func (p *Provisioner) path(f plan.Facts) string {
	return filepath.Join(p.Dev, strings.ReplaceAll(f.KernelName, "!", "/"))
}

// mountpoint of a target.
func (p *Provisioner) mountpoint(t *v1alpha1.StorageTarget) string {
	return p.Path(t.Namespace, t.Spec.FileSystem.Name, t.Name)
}

// look reads everything that a decision depends on. It also closes the mountpoint while nothing is mounted there, so that no daemon can
// write to the node's own disk. It removes the mountpoint of a deleted target.
func (p *Provisioner) look(ctx context.Context, t *v1alpha1.StorageTarget) (plan.Look, error) {
	var l plan.Look
	var err error
	if l.Mount, err = p.mounted(t); err != nil {
		return l, err
	}
	if l.Device, err = p.device(ctx, plan.DeviceOf(t)); err != nil {
		return l, err
	}
	if done := t.Status.Provisioned; done != nil && done.Finished != nil && p.Holding != nil && !mayHold(l.Device, done.UUID) {
		// No device has its name, serial number and WWN, or another device has its name now. Some device may hold the filesystem all the same.
		found, err := p.Holding(ctx, done.UUID, plan.DeviceOf(t).SizeBytes)
		if err != nil {
			l.Device.Incomplete = strings.Join(sentences(l.Device.Incomplete, err.Error()), "; ")
		} else if found.Found {
			l.Device = found
		}
	}
	if t.Spec.LogDevice != nil {
		log, err := p.device(ctx, *t.Spec.LogDevice)
		if err != nil {
			return l, err
		}
		// mkfs overwrites a log device without checking it.
		if served, is := servedBy(log); is && log.Found {
			p.readBack(ctx, &log, served)
		}
		l.Log = &log
	}
	served, is := registry.Served(t.Spec.Format)
	if is {
		l.TriedOut = p.tryOut(ctx, t, l, served)
	} else {
		l.Kernel = p.Check(string(registry.NameOf(t.Spec.Format)), options(t))
	}
	p.readMarker(ctx, &l)
	if is {
		seenMounted(&l)
	}
	return l, ctx.Err()
}

// mayHold reports whether a device exists and either holds a filesystem with this UUID or could not be read completely.
func mayHold(f plan.Facts, uuid string) bool {
	return f.Found && (f.Incomplete != "" || slices.ContainsFunc(f.Signatures, func(s v1alpha1.Signature) bool { return s.UUID == uuid }))
}

const (
	// looks is how often a device is inspected that is in use without a visible reason, lookPause the time between. Another program may have
	// inspected it at the same moment.
	looks     = 3
	lookPause = 300 * time.Millisecond
)

// device inspects one device. A device that can't be inspected counts as incomplete, so that nothing is done to it.
func (p *Provisioner) device(ctx context.Context, want v1alpha1.DeviceIdentity) (plan.Facts, error) {
	for i := 1; ; i++ {
		f, err := p.Look(ctx, want)
		if err != nil {
			f.Incomplete = err.Error()
		}
		passing := f.Incomplete != "" || f.Busy != "" && len(f.Mounts) == 0 && len(f.Holders) == 0
		if !passing || i == looks || ctx.Err() != nil {
			return f, ctx.Err()
		}
		pause(ctx)
	}
}

// pause waits for the next look.
func pause(ctx context.Context) {
	select {
	case <-ctx.Done():
	case <-time.After(lookPause):
	}
}

func options(t *v1alpha1.StorageTarget) []string {
	out := make([]string, len(t.Spec.Format.MountOptions))
	for i, o := range t.Spec.Format.MountOptions {
		out[i] = string(o)
	}
	return out
}

// readMarker reads the marker of the device if its label shows a target and it is not mounted.
func (p *Provisioner) readMarker(ctx context.Context, l *plan.Look) {
	f := &l.Device
	if f.Marker != nil || f.MarkerError != "" || !f.Found {
		return
	}
	if served, is := servedBy(*f); is {
		p.readBack(ctx, f, served)
		return
	}
	if l.Mount.Mounted && l.Mount.KernelName == f.KernelName {
		f.Marker, f.MarkerError = l.Mount.Marker, l.Mount.MarkerError
		return
	}
	for _, s := range f.Signatures {
		if s.Device != f.KernelName || !strings.HasPrefix(s.Label, plan.LabelPrefix) {
			continue
		}
		if f.InUse() {
			f.MarkerError = "the device is in use, so its marker is not read"
			return
		}
		log := ""
		if l.Log != nil && l.Log.Found {
			log = p.path(*l.Log)
		}
		marker, beside, err := p.markerOn(ctx, *f, log, s.Type)
		switch {
		case errors.Is(err, ErrNoMarker):
		case err != nil:
			f.MarkerError = err.Error()
			if errors.Is(err, unix.EBUSY) {
				f.Busy = "somebody opened it while its marker was to be read"
			}
		default:
			f.Marker, f.Record = marker, beside
		}
		return
	}
}

// markerOn reads the marker of one device. It tries again if another program has the device open at that moment: a program that this
// process started may inherit a descriptor that was just closed, until it runs.
func (p *Provisioner) markerOn(ctx context.Context, f plan.Facts, log, signature string) (*plan.Marker, *spec.TargetRecord, error) {
	for i := 1; ; i++ {
		release, err := p.Claims.hold(f.KernelName)
		if err != nil {
			return nil, nil, err
		}
		marker, beside, err := ReadMarker(p.path(f), log, signature)
		release()
		if !errors.Is(err, unix.EBUSY) || i == looks || ctx.Err() != nil {
			return marker, beside, err
		}
		pause(ctx)
	}
}

// mounted describes the mount at the mountpoint.
func (p *Provisioner) mounted(t *v1alpha1.StorageTarget) (plan.Mounted, error) {
	path := p.mountpoint(t)
	there, err := mountsAt(path)
	if err != nil {
		return plan.Mounted{}, err
	}
	if len(there) == 0 {
		return plan.Mounted{Problem: p.closeMountpoint(t, path)}, nil
	}
	if served, is := registry.Served(t.Spec.Format); is {
		return p.mountedByServer(t, path, there, served), nil
	}
	top := there[len(there)-1]
	m := plan.Mounted{Mounted: true, KernelName: p.kernelName(top.Major, top.Minor, top.Source)}
	if len(there) > 1 {
		m.Problem = fmt.Sprintf("%d filesystems are mounted on each other at %s; unmount all but the target's: umount %s", len(there), path, path)
		return m, nil
	}
	found, err := proof.Look(path)
	switch {
	case err != nil:
		m.Problem = err.Error()
		return m, nil //nolint:nilerr // it is a fact about the mountpoint, to be decided on
	case found.Fault != "":
		m.Problem = found.Fault
	case found.UUIDFault != "":
		m.Problem = "the kernel does not say the UUID of what is mounted at " + path + ": " + found.UUIDFault
	case found.Root != "/":
		m.Problem = fmt.Sprintf("only the directory %s of a filesystem is mounted at %s; unmount it: umount %s", found.Root, path, path)
	}
	m.UUID = found.UUID
	switch {
	case found.Marker != nil:
		m.Marker = asFact(found.Marker)
	case !found.MarkerGone:
		m.MarkerError = found.MarkerFault
	}
	return m, nil
}

// kernelName returns the kernel's name for the device of a mount. Btrfs has device numbers of its own, so its source is used.
func (p *Provisioner) kernelName(major, minor int, source string) string {
	if link, err := os.Readlink(filepath.Join(p.Sys, "dev", "block", fmt.Sprintf("%d:%d", major, minor))); err == nil {
		return filepath.Base(link)
	}
	if device, err := filepath.EvalSymlinks(source); err == nil {
		return filepath.Base(device)
	}
	return filepath.Base(source)
}

// closeMountpoint makes the mountpoint empty and immutable, or removes that of a deleted target. The result is empty, or why that can't be
// done.
func (p *Provisioner) closeMountpoint(t *v1alpha1.StorageTarget, path string) string {
	if !t.DeletionTimestamp.IsZero() {
		if err := mounts.Remove(path); err != nil {
			return err.Error()
		}
		return ""
	}
	if t.Spec.Conflict != "" && t.Status.Provisioned == nil {
		return ""
	}
	if _, err := mounts.Prepare(path); err != nil {
		return err.Error()
	}
	return ""
}

// capacity is the size of a mounted filesystem in bytes (statfs(2)).
func capacity(path string) (int64, error) {
	var s unix.Statfs_t
	if err := unix.Statfs(path, &s); err != nil {
		return 0, err
	}
	return int64(s.Blocks) * s.Bsize, nil //nolint:gosec // the size of a disk
}

// usedInodes returns UsedInodes of the filesystem that is mounted at a path; 0 if it can't be queried.
func usedInodes(path string) int32 {
	var s unix.Statfs_t
	if err := unix.Statfs(path, &s); err != nil {
		return 0
	}
	return UsedInodes(s)
}

// UsedInodes returns the used part of the inodes of a filesystem in thousandths, rounded down; 0 if it has no limit.
func UsedInodes(s unix.Statfs_t) int32 {
	if s.Files == 0 || s.Ffree > s.Files {
		return 0
	}
	const whole = 1000
	return int32(float64(s.Files-s.Ffree) / float64(s.Files) * whole)
}
