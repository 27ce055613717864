package provision

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"
	"time"

	"github.com/moby/sys/mountinfo"

	"parallelfs.dev/operator/api/v1alpha1"
	"parallelfs.dev/operator/internal/node/devices"
	"parallelfs.dev/operator/internal/node/format"
	"parallelfs.dev/operator/internal/node/format/registry"
	"parallelfs.dev/operator/internal/node/spec"
	"parallelfs.dev/operator/internal/node/stored"
	"parallelfs.dev/operator/internal/plan"
)

// The rules for targets that only their own server mounts (format.Served): programs of the node make them, mark them, and read their data.

// answerLimit is how long a program that only reads may take.
const answerLimit = time.Minute

// ask runs a program of the node that only reads. A failure of the program is an answer too.
func (p *Provisioner) ask(ctx context.Context, argv []string) (format.Answer, error) {
	ctx, cancel := context.WithTimeout(ctx, answerLimit)
	defer cancel()
	stdout, err := p.OnNode(ctx, argv)
	a := format.Answer{Stdout: string(stdout)}
	var failed *RunError
	if exit, is := errors.AsType[*exec.ExitError](err); is && exit.Exited() && errors.As(err, &failed) {
		a.Code, a.Said = exit.ExitCode(), failed.Said
		return a, nil
	}
	return a, err
}

// tryOut compares what mkfs would write with the target's assignment, while the target may still be made. It returns an empty text if they
// agree.
func (p *Provisioner) tryOut(ctx context.Context, t *v1alpha1.StorageTarget, l plan.Look, f format.Served) string {
	// No UUID is decided on yet, and the output of the dry run contains none, so any one will do.
	n := plan.NewOf(t, l, "00000000-0000-4000-8000-000000000000")
	n.Device = p.path(l.Device)
	finished := t.Status.Provisioned != nil && t.Status.Provisioned.Finished != nil
	if finished || !l.Device.Found || len(f.Problems(n)) > 0 || len(f.RefusedOptions(n.Options)) > 0 {
		return ""
	}
	a, err := p.ask(ctx, f.TryOut(n))
	if err != nil {
		return err.Error()
	}
	return f.Tried(n, a)
}

// readBack reads the data that identifies a target, whether it is mounted or not: the program opens the device read-only.
func (p *Provisioner) readBack(ctx context.Context, d *plan.Facts, f format.Served) {
	a, err := p.ask(ctx, f.ReadBack(p.path(*d)))
	if err != nil {
		d.MarkerError = err.Error()
		return
	}
	d.Answer = &a
	mark, err := f.Mark(a)
	if err != nil {
		d.MarkerError = err.Error()
		return
	}
	found, err := readMark(mark)
	switch {
	case err != nil:
		d.MarkerError = err.Error()
	case found != nil:
		d.Marker = asFact(found)
	}
}

// readMark parses the mark of a target. It returns nil for any other comment, or none: the target then belongs to another operator or to a
// person.
func readMark(mark string) (*spec.TargetMarker, error) {
	// In a newer format, only the version is known.
	if version := versionOf(mark); version > spec.TargetMarkerVersion {
		return nil, fmt.Errorf("its mark %w", stored.Known("version", version, spec.TargetMarkerVersion))
	}
	var found spec.TargetMarker
	if json.Unmarshal([]byte(mark), &found) != nil || found.Target == "" {
		return nil, nil //nolint:nilnil,nilerr // no mark, and no error
	}
	if err := stored.Known("version", found.Version, spec.TargetMarkerVersion); err != nil {
		return nil, fmt.Errorf("its mark %w", err)
	}
	return &found, nil
}

// versionOf returns the version of a mark's format, 0 for any other comment.
func versionOf(mark string) int {
	var form struct {
		Version int `json:"version"`
	}
	if json.Unmarshal([]byte(mark), &form) != nil {
		return 0
	}
	return form.Version
}

// verifyServed reads back the result of mkfs.
func (p *Provisioner) verifyServed(
	ctx context.Context, t *v1alpha1.StorageTarget, look plan.Look, f format.Served, seen format.Seen,
) error {
	device := p.path(look.Device)
	var err error
	if seen.Answer, err = p.ask(ctx, f.ReadBack(device)); err != nil {
		return fmt.Errorf("can't read back what is on %s: %w", device, err)
	}
	if why := f.Refusal(plan.NewOf(t, look, seen.UUID), seen); why != "" {
		return fmt.Errorf("the program ended well, but %s is not what the target was given: %s", device, why)
	}
	if !format.IsShared(format.GivenTo(t)) {
		return nil
	}
	// Two nodes may mount it, and each has to see the other's mount on the disk.
	found, _ := registry.BySignature(f.Signature())
	guarded, is := found.(format.Guarded)
	if !is {
		return fmt.Errorf("a %s does not show who has it mounted, and two nodes may mount %s", f.Name(), device)
	}
	why, err := devices.ReadNotUnmounted(device, guarded)
	if err == nil && why != "" {
		err = fmt.Errorf("two nodes may mount %s, and %s", device, why)
	}
	return err
}

// remark rewrites the mark of a target that was taken over, and reads it back. The program reads all data that identifies a target, and
// writes it back with the mark, as each first mount does.
func (p *Provisioner) remark(ctx context.Context, t *v1alpha1.StorageTarget, look plan.Look, f format.Served, locks []*os.File) error {
	wanted := plan.NewOf(t, look, look.Device.Marker.UUID)
	err := p.try(string(plan.StepMark), func() error {
		return p.write(ctx, p.OnNode, look, f.Remark(p.path(look.Device), wanted.Mark), locks)
	})
	if err != nil {
		return err
	}
	return p.try("VerifyMark", func() error {
		found, err := p.probe(ctx, p.path(look.Device))
		if err != nil {
			return err
		}
		return p.verifyServed(ctx, t, look, f, format.Seen{Type: found["TYPE"], UUID: found["UUID"], Label: found["LABEL"]})
	})
}

// recorded returns the assignments on a disk that is being or was taken over, which the operator's records must match before the takeover.
// The first value that was read is kept. It is nil for a disk that this cluster has made, and for a disk without such data.
func recorded(t *v1alpha1.StorageTarget, l plan.Look) *v1alpha1.TargetRecord {
	before, p := t.Status.Record, t.Status.Provisioned
	if p != nil && p.PlanHash != "" || before != nil && before.Message == "" {
		return nil
	}
	given, why := plan.Said(t, l)
	switch {
	case why != "":
		return &v1alpha1.TargetRecord{Message: v1alpha1.Cut("what the disk was given can't be given again: "+why, mostRecordMessage)}
	case given != nil:
		return format.RecordOf(given)
	default:
		return nil
	}
}

// mostRecordMessage is the limit of TargetRecord.message, in bytes.
const mostRecordMessage = 1024

// mountedByServer describes the mount at the mountpoint of a target that only its own server mounts.
func (p *Provisioner) mountedByServer(t *v1alpha1.StorageTarget, path string, there []*mountinfo.Info, f format.Served) plan.Mounted {
	top := there[len(there)-1]
	m := plan.Mounted{Mounted: true, KernelName: p.kernelName(top.Major, top.Minor, top.Source)}
	name := f.Mounted(top.VFSOptions)
	switch {
	case len(there) > 1:
		m.Problem = fmt.Sprintf("%d filesystems are mounted on each other at %s; unmount all but the target's: umount %s", len(there), path, path)
	case !format.IsMount(f, top.FSType, top.Source):
		m.Problem = fmt.Sprintf("what is mounted at %s is of the type %s, and a target of %s is mounted as %s; unmount it: umount %s",
			path, top.FSType, f.Name(), strings.Join(f.MountTypes(), " or "), path)
	case format.GivenTo(t) == nil || name != "" && !slices.Contains(f.Labels(*format.GivenTo(t)), name):
		m.Problem = fmt.Sprintf("what is mounted at %s serves %q, which is not this target; unmount it: umount %s", path, name, path)
	}
	return m
}

// seenMounted adds what the look at the device shows to the mount, because the directory of the mount shows nothing.
func seenMounted(l *plan.Look) {
	if !l.Mount.Mounted || l.Mount.KernelName != l.Device.KernelName {
		return
	}
	l.Mount.Marker = l.Device.Marker
	for _, s := range l.Device.Signatures {
		if s.Device == l.Device.KernelName {
			l.Mount.UUID = s.UUID
		}
	}
}

// servedBy returns the format of a signature on a device if only its own server mounts it.
func servedBy(d plan.Facts) (format.Served, bool) {
	for _, s := range d.Signatures {
		if f, is := registry.ByLabel(s.Type, s.Label); is && s.Device == d.KernelName {
			return f, true
		}
	}
	return nil, false
}
