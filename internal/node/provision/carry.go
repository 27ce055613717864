package provision

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"parallelfs.dev/operator/api/v1alpha1"
	"parallelfs.dev/operator/internal/node/devices"
	"parallelfs.dev/operator/internal/node/format"
	"parallelfs.dev/operator/internal/node/format/registry"
	"parallelfs.dev/operator/internal/node/mounts"
	"parallelfs.dev/operator/internal/node/proof"
	"parallelfs.dev/operator/internal/node/spec"
	"parallelfs.dev/operator/internal/plan"
)

// carryOut carries out a decision, under the locks of the devices.
func (p *Provisioner) carryOut(
	ctx context.Context, t *v1alpha1.StorageTarget, look plan.Look, decision plan.Decision, locks []*os.File,
) error {
	switch decision.Action {
	case plan.Mark:
		if f, is := registry.Served(t.Spec.Format); is {
			return p.remark(ctx, t, look, f, locks)
		}
		return p.mark(t, look)
	case plan.Unmount:
		return p.unmount(t)
	case plan.Format, plan.Mount, plan.Wipe:
	case plan.None, plan.Record, plan.Adopt:
		return nil
	}
	for _, s := range decision.Steps {
		if err := p.carryOutStep(ctx, t, look, decision, s, locks); err != nil {
			return err
		}
	}
	return nil
}

func (p *Provisioner) carryOutStep(
	ctx context.Context, t *v1alpha1.StorageTarget, look plan.Look, decision plan.Decision, s plan.Step, locks []*os.File,
) error {
	switch s.Kind {
	case plan.StepWipe:
		return p.try(stepName(s), func() error { return p.write(ctx, p.Run, look, s.Argv, locks) })
	case plan.StepZero:
		return p.try(stepName(s), func() error { return p.zero(look, s.Argv) })
	case plan.StepMakeFileSystem:
		runner := p.Run
		if _, served := registry.Served(t.Spec.Format); served {
			runner = p.OnNode
		}
		if err := p.try(stepName(s), func() error { return p.write(ctx, runner, look, s.Argv, locks) }); err != nil {
			return errors.Join(err, p.clear(ctx, t, decision.Provisioned, locks))
		}
		return p.try("VerifyFileSystem", func() error { return p.verify(ctx, t, look, decision.Provisioned) })
	case plan.StepMount:
		return p.mount(t, look, decision.Provisioned)
	case plan.StepMark:
		look.Mount.UUID = decision.Provisioned.UUID
		return p.mark(t, look)
	case plan.StepRecord, plan.StepFinish:
		return nil // the caller writes the status
	default:
		return &StepError{string(s.Kind), errors.New("this agent does not know the step; the operator and its agent must be of the same version")}
	}
}

// stepName names a step for the hook. The name of a wipe or of zeroing includes the device.
func stepName(s plan.Step) string {
	if (s.Kind == plan.StepWipe || s.Kind == plan.StepZero) && len(s.Argv) > 0 {
		return fmt.Sprintf("%s %s", s.Kind, s.Argv[len(s.Argv)-1])
	}
	return string(s.Kind)
}

// write runs a program that writes to the devices that were inspected, and to no others. The program itself opens them with O_EXCL, so the
// kernel refuses a device that is in use meanwhile.
func (p *Provisioner) write(ctx context.Context, runner Runner, look plan.Look, argv []string, locks []*os.File) error {
	if err := p.onlyOwn(look, argv); err != nil {
		return err
	}
	release, err := p.hold(look)
	if err != nil {
		return err
	}
	defer release()
	_, err = runner(ctx, argv, locks...)
	return err
}

// zero makes one device of the target blank: it zeroes the sample that a look reads.
func (p *Provisioner) zero(look plan.Look, argv []string) error {
	if err := p.onlyOwn(look, argv); err != nil {
		return err
	}
	release, err := p.hold(look)
	if err != nil {
		return err
	}
	defer release()
	return devices.ZeroSample(argv[len(argv)-1])
}

// clear makes the devices blank again after a mkfs has failed, while they are locked and no other program can have written to them. Later,
// the remains of mkfs could not be distinguished from other data. It leaves alone whatever is not certainly its own.
func (p *Provisioner) clear(ctx context.Context, t *v1alpha1.StorageTarget, wanted *v1alpha1.TargetProvisioned, locks []*os.File) error {
	look, err := p.look(ctx, t)
	if err != nil {
		return err
	}
	if !plan.LeftByMkfs(t, look, wanted.UUID) {
		return nil
	}
	for _, s := range plan.ClearSteps(look) {
		if err := p.carryOutStep(ctx, t, look, plan.Decision{}, s, locks); err != nil {
			return err
		}
	}
	return nil
}

// hold keeps this process from reading the target's devices while it works on them.
func (p *Provisioner) hold(look plan.Look) (release func(), err error) {
	names := append([]string{look.Device.KernelName}, look.Device.Partitions...)
	if look.Log != nil {
		names = append(names, look.Log.KernelName)
	}
	return p.Claims.hold(names...)
}

// onlyOwn refuses a command line that names other devices than those of the target.
func (p *Provisioner) onlyOwn(look plan.Look, argv []string) error {
	own := append([]string{look.Device.KernelName}, look.Device.Partitions...)
	if look.Log != nil {
		own = append(append(own, look.Log.KernelName), look.Log.Partitions...)
	}
	named := false
	for _, argument := range argv {
		_, path, has := strings.Cut(argument, p.Dev+"/")
		if !has {
			continue
		}
		path, _, _ = strings.Cut(path, ",")
		device, err := filepath.EvalSymlinks(filepath.Join(p.Dev, path))
		if err != nil {
			return fmt.Errorf("can't find the device of %q: %w", strings.Join(argv, " "), err)
		}
		// The kernel writes "!" for the slash of a device in a subdirectory of /dev.
		name := strings.ReplaceAll(strings.TrimPrefix(device, p.Dev+"/"), "/", "!")
		if !slices.Contains(own, name) {
			return fmt.Errorf("%q would write to %s, which is not the target's device %s; nothing was done",
				strings.Join(argv, " "), device, look.Device.KernelName)
		}
		named = true
	}
	if !named {
		return fmt.Errorf("%q names no device; nothing was done", strings.Join(argv, " "))
	}
	return nil
}

// verify reads back the result of mkfs: type, label and UUID, and that an external log belongs to the filesystem.
func (p *Provisioner) verify(ctx context.Context, t *v1alpha1.StorageTarget, look plan.Look, wanted *v1alpha1.TargetProvisioned) error {
	asked, err := registry.Of(t.Spec.Format)
	if err != nil {
		return err
	}
	device := p.path(look.Device)
	found, err := p.probe(ctx, device)
	if err != nil {
		return err
	}
	for _, check := range []struct{ name, found, wanted string }{
		{"type", found["TYPE"], asked.Signature()}, {"UUID", found["UUID"], wanted.UUID}, {"label", found["LABEL"], wanted.Label},
	} {
		if !strings.EqualFold(check.found, check.wanted) {
			return fmt.Errorf("mkfs ended well, but %s has the %s %q instead of %q", device, check.name, check.found, check.wanted)
		}
	}
	if served, is := asked.(format.Served); is {
		return p.verifyServed(ctx, t, look, served, format.Seen{Type: found["TYPE"], UUID: found["UUID"], Label: found["LABEL"]})
	}
	if look.Log == nil {
		return nil
	}
	log := p.path(*look.Log)
	if found, err = p.probe(ctx, log); err != nil {
		return err
	}
	if external := asked.Log(); external == nil || found["TYPE"] != external.Signature || !strings.EqualFold(found["LOGUUID"], wanted.UUID) {
		return fmt.Errorf("mkfs ended well, but %s (%s, log of %s) is not the external log of the filesystem with the UUID %s",
			log, found["TYPE"], found["LOGUUID"], wanted.UUID)
	}
	return nil
}

// probe reads the superblock of a device from the device itself, without a cache (blkid(8), low-level probing).
func (p *Provisioner) probe(ctx context.Context, device string) (map[string]string, error) {
	output, err := p.Run(ctx, []string{"blkid", "-p", "-o", "export", device})
	if err != nil {
		return nil, fmt.Errorf("can't read back what is on %s: %w", device, err)
	}
	found := map[string]string{}
	for line := range strings.Lines(string(output)) {
		if key, value, ok := strings.Cut(strings.TrimRight(line, "\n"), "="); ok {
			found[key] = strings.ReplaceAll(value, `\`, "")
		}
	}
	return found, nil
}

// mount mounts the filesystem detached, where no process can see it, proves it, attaches it at its mountpoint, and reads back that it is
// there.
func (p *Provisioner) mount(t *v1alpha1.StorageTarget, look plan.Look, wanted *v1alpha1.TargetProvisioned) error {
	path := p.mountpoint(t)
	if wanted == nil {
		return &StepError{string(plan.StepMount), errors.New("the target was never provisioned; nothing is mounted")}
	}
	if err := p.try("PrepareMountpoint", func() error {
		_, err := mounts.Prepare(path)
		return err
	}); err != nil {
		return err
	}
	err := p.try(string(plan.StepMount), func() (err error) {
		asked, err := registry.Of(t.Spec.Format)
		if err != nil {
			return err
		}
		v := volume{format: asked, device: p.path(look.Device), options: options(t)}
		if look.Log != nil {
			v.logDevice = p.path(*look.Log)
		}
		release, err := p.hold(look)
		if err != nil {
			return err
		}
		defer release()
		mounted, err := v.mount()
		if err != nil {
			return err
		}
		defer func() { err = errors.Join(err, mounted.Close()) }()
		if err := prove(mounted.path(), t, wanted); err != nil {
			return err
		}
		return mounted.attach(path)
	})
	if err != nil {
		return err
	}
	return p.try("VerifyMount", func() error {
		now, err := p.mounted(t)
		switch {
		case err != nil:
			return err
		case now.Problem != "":
			return errors.New(now.Problem)
		case !now.Mounted, now.KernelName != look.Device.KernelName, !strings.EqualFold(now.UUID, wanted.UUID):
			return fmt.Errorf("%s was mounted, but %s shows the device %q with the UUID %q instead of %s with %s",
				p.path(look.Device), path, now.KernelName, now.UUID, look.Device.KernelName, wanted.UUID)
		}
		return nil
	})
}

// prove refuses a filesystem that is not the target's. A finished target must have its marker.
func prove(top string, t *v1alpha1.StorageTarget, wanted *v1alpha1.TargetProvisioned) error {
	directory, err := os.OpenFile(top, os.O_RDONLY|unix.O_DIRECTORY, 0)
	if err != nil {
		return err
	}
	defer directory.Close()
	uuid, err := proof.UUID(directory)
	if err != nil {
		return fmt.Errorf("the kernel does not say the UUID of the filesystem: %w", err)
	}
	if !strings.EqualFold(uuid, wanted.UUID) {
		return fmt.Errorf("the filesystem has the UUID %s, and the target was recorded with %s: it is not mounted", uuid, wanted.UUID)
	}
	marker, err := readMarker(top)
	switch {
	case errors.Is(err, ErrNoMarker) && wanted.Finished == nil:
		return nil
	case err != nil:
		return fmt.Errorf("%w; it is not mounted", err)
	}
	return proveMarker(*marker, t, wanted, uuid)
}

// proveMarker refuses the marker on a filesystem with this UUID when it is neither the target's nor that of the owner before it.
func proveMarker(marker spec.TargetMarker, t *v1alpha1.StorageTarget, wanted *v1alpha1.TargetProvisioned, uuid string) error {
	switch {
	case isFormers(marker, wanted.FormerOwner):
	case marker.Owner.Namespace != t.Namespace, marker.Owner.Name != t.Spec.FileSystem.Name, marker.Target != t.Name:
		return fmt.Errorf("the marker on it says that it is target %s of the FileSystem %s/%s; it is not mounted",
			marker.Target, marker.Owner.Namespace, marker.Owner.Name)
	case marker.Cluster != t.Spec.Cluster && (marker.Cluster == "" || marker.Cluster != wanted.TakenFrom):
		return fmt.Errorf("the marker on it says that it belongs to the cluster %q, and this one is %q; it is not mounted", marker.Cluster, t.Spec.Cluster)
	case !strings.EqualFold(marker.UUID, uuid):
		return fmt.Errorf("the marker on it was copied from the filesystem with the UUID %s; it is not mounted", marker.UUID)
	}
	return nil
}

// isFormers reports whether a marker belongs to the owner from which a target is being taken over.
func isFormers(m spec.TargetMarker, former *v1alpha1.FormerTarget) bool {
	return former != nil && m.Cluster == former.Owner.Cluster && m.Target == former.Target && m.UUID == former.UUID &&
		m.Owner == spec.Owner{Namespace: former.Owner.Namespace, Name: former.Owner.FileSystem, UID: former.FileSystemUID}
}

// mark writes the marker and reads it back. An unfinished target is then unmounted, so that the marker is at its final place on the disk
// and not only in the journal. The next look reads it there without a replay.
func (p *Provisioner) mark(t *v1alpha1.StorageTarget, look plan.Look) error {
	path := p.mountpoint(t)
	err := p.try(string(plan.StepMark), func() error {
		there, err := mountsAt(path)
		if err != nil {
			return err
		}
		if len(there) != 1 {
			return fmt.Errorf("%s has %d mounts instead of one; no marker was written", path, len(there))
		}
		if done := t.Status.Provisioned; done != nil && done.FormerOwner != nil {
			// The target's own marker comes last. While it names the former owner, this is repeated.
			if err := renameOwner(path, t, done.FormerOwner.Owner); err != nil {
				return err
			}
			if p.Hook != nil {
				if err := p.Hook(stepRename, true); err != nil {
					return err
				}
			}
		}
		wanted := markerOf(t, look.Mount.UUID, p.Now())
		if err := writeMarker(path, wanted); err != nil {
			return err
		}
		found, err := readMarker(path)
		if err != nil {
			return err
		}
		if *found != wanted {
			return fmt.Errorf("the marker at %s does not read as it was written", path)
		}
		return nil
	})
	if err != nil || t.Status.Provisioned == nil || t.Status.Provisioned.Finished != nil {
		return err
	}
	return p.settle(path)
}

// stepRename is a part of StepMark.
const stepRename = "RenameOwner"

// unmount unmounts the target, never by force, and removes the mountpoint of a deleted target.
func (p *Provisioner) unmount(t *v1alpha1.StorageTarget) error {
	return p.try("Unmount", func() error {
		path := p.mountpoint(t)
		if err := p.unmountAll(path); err != nil {
			return err
		}
		if t.DeletionTimestamp.IsZero() {
			_, err := mounts.Prepare(path)
			return err
		}
		return mounts.Remove(path)
	})
}

func (p *Provisioner) unmountAll(path string) error {
	for {
		there, err := mountsAt(path)
		if err != nil {
			return err
		}
		if len(there) == 0 {
			return nil
		}
		top := there[len(there)-1]
		switch err := unix.Unmount(path, unix.UMOUNT_NOFOLLOW); {
		case errors.Is(err, unix.EBUSY):
			return &busyError{path, whoUses(p.Proc, top.Major, top.Minor)}
		case err != nil:
			return fmt.Errorf("can't unmount %s: %w", path, err)
		}
	}
}

// busyError is the error of a mount that is in use.
type busyError struct{ path, users string }

func (e *busyError) Error() string {
	return fmt.Sprintf("%s is in use by %s and stays mounted; it is unmounted when they release it", e.path, e.users)
}

func whoUses(proc string, major, minor int) string {
	if users := Users(proc, major, minor); len(users) > 0 {
		return strings.Join(users, ", ")
	}
	return "no process that shows it (another mount of it, a loop device, or an export may)"
}
