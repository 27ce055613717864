package provision

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"parallelfs.dev/operator/api/v1alpha1"
	"parallelfs.dev/operator/internal/node/devices"
	"parallelfs.dev/operator/internal/node/format"
	"parallelfs.dev/operator/internal/node/format/registry"
	"parallelfs.dev/operator/internal/node/mounts"
	"parallelfs.dev/operator/internal/plan"
)

// ProveUnmounted unmounts a target that another node may serve as well, and checks that nothing on this node still has it mounted. There
// must be no process in any mount namespace, no program that keeps the device from being opened exclusively, and no mount according to the
// disk itself. The result why is the check that failed. While held is open, nothing on this node can mount the disk.
//
// The caller must hold the lock of the target's mount (package mountlock). Otherwise a mount may be in progress that is not visible yet.
func (p *Provisioner) ProveUnmounted(ctx context.Context, t *v1alpha1.StorageTarget) (held io.Closer, why string, err error) {
	return p.proveUnmounted(ctx, t, devices.Hold)
}

// proveUnmounted is ProveUnmounted, and also reads the disk itself.
func (p *Provisioner) proveUnmounted(
	ctx context.Context, t *v1alpha1.StorageTarget, hold func(path string, f format.Guarded) (*os.File, string, error),
) (held io.Closer, why string, err error) {
	f, is := registry.Served(t.Spec.Format)
	if done := t.Status.Provisioned; !is || done == nil || done.Finished == nil {
		return nil, "it is no target yet that its server mounts", nil
	}
	if why, err = p.unmountServed(t, f); why != "" || err != nil {
		return nil, why, err
	}
	found, err := p.device(ctx, plan.DeviceOf(t))
	if err != nil {
		return nil, "", err
	}
	if why := plan.Exists(found); why != "" {
		return nil, why, nil
	}
	guarded, why := guardOf(found, t.Status.Provisioned.UUID)
	if why != "" {
		return nil, why, nil
	}
	all := holding{}
	defer func() {
		if held == nil {
			err = errors.Join(err, all.Close())
		}
	}()
	// Everything that the agent does to a disk happens under this lock, which lasts as long as the program that does it.
	if all.lock, err = lock(ctx, p.path(found)); err != nil {
		return nil, err.Error(), nil
	}
	if all.release, err = p.Claims.hold(found.KernelName); err != nil {
		return nil, "", err
	}
	if all.device, why, err = hold(p.path(found), guarded); all.device == nil {
		return nil, strings.Join(sentences(why, plan.IsNotMounted(found), plan.HasNoHolders(found)), "; "), err
	}
	// No program can mount the disk during this look.
	again, err := p.Look(ctx, plan.DeviceOf(t))
	if err == nil {
		why = stillInUse(t, found, again)
	}
	if err != nil || why != "" {
		return nil, why, err
	}
	return all, "", nil
}

// holding keeps a device from being mounted.
type holding struct {
	lock, device *os.File
	release      func()
}

// Close releases the device.
func (l holding) Close() error {
	var errs []error
	for _, file := range []*os.File{l.device, l.lock} {
		if file != nil {
			errs = append(errs, file.Close())
		}
	}
	if l.release != nil {
		l.release()
	}
	return errors.Join(errs...)
}

// TakeUp checks that the disk of a target which the other node has handed over is here, and that the disk itself shows no mount. It creates
// the mountpoint for the server. For a target that was taken over without a hand-over, the disk can't show this.
func (p *Provisioner) TakeUp(ctx context.Context, t *v1alpha1.StorageTarget) (why string, err error) {
	if _, err := mounts.Prepare(p.mountpoint(t)); err != nil {
		return "", err
	}
	hold := devices.Hold
	if plan.IsTakenOver(t) {
		hold = devices.HoldTakenOver
	}
	held, why, err := p.proveUnmounted(ctx, t, hold)
	if held == nil {
		return why, err
	}
	return "", held.Close()
}

// unmountServed unmounts the mount of a server that was killed. It leaves other mounts alone, and never forces an unmount.
func (p *Provisioner) unmountServed(t *v1alpha1.StorageTarget, f format.Served) (why string, err error) {
	path := p.mountpoint(t)
	there, err := mountsAt(path)
	if err != nil || len(there) == 0 {
		return "", err
	}
	if m := p.mountedByServer(t, path, there, f); m.Problem != "" {
		return m.Problem, nil
	}
	if err := p.unmountAll(path); err != nil {
		return err.Error(), nil //nolint:nilerr // it is told where the target is looked at, and tried again
	}
	return "", nil
}

// guardOf returns the format of the one filesystem on a device, which shows where it is mounted, or why it is not the target's.
func guardOf(f plan.Facts, uuid string) (guarded format.Guarded, why string) {
	if len(f.Signatures) != 1 || len(f.Partitions) > 0 || !strings.EqualFold(f.Signatures[0].UUID, uuid) {
		return nil, fmt.Sprintf("%s does not hold the one filesystem of the target, with the UUID %s", f.KernelName, uuid)
	}
	found, _ := registry.BySignature(f.Signatures[0].Type)
	guarded, is := found.(format.Guarded)
	if !is {
		return nil, fmt.Sprintf("%s holds a filesystem that does not show who has it mounted", f.KernelName)
	}
	return guarded, ""
}

// stillInUse returns why a look at a device that this process holds does not show that the target is unmounted.
func stillInUse(t *v1alpha1.StorageTarget, before, now plan.Facts) string {
	if why := plan.Exists(now); why != "" {
		return why
	}
	if now.KernelName != before.KernelName {
		return fmt.Sprintf("%s had the id %s, and %s has it now", before.KernelName, plan.DeviceOf(t).ID, now.KernelName)
	}
	_, why := guardOf(now, t.Status.Provisioned.UUID)
	return strings.Join(sentences(
		plan.HasIdentityOrGrew(now, plan.DeviceOf(t)), plan.IsOneDisk(now), plan.IsLookComplete(now), plan.HasNoHolders(now),
		plan.IsNotMounted(now), why), "; ")
}

// sentences returns the sentences that are not empty.
func sentences(all ...string) []string {
	return slices.DeleteFunc(all, func(s string) bool { return s == "" })
}
