package plan

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"

	"parallelfs.dev/operator/api/v1alpha1"
	"parallelfs.dev/operator/internal/node/format"
	"parallelfs.dev/operator/internal/node/format/registry"
	"parallelfs.dev/operator/internal/node/spec"
)

// Look is all that the agent found of one target, taken at one time.
type Look struct {
	// Device is the disk of spec.device, found by its id; Log is that of spec.logDevice, nil when there is none.
	Device Facts
	Log    *Facts
	// Kernel is what the kernel says of the mount options.
	Kernel Kernel
	// Mount is what is mounted at the target's mountpoint (spec.TargetPath).
	Mount Mounted
	// TriedOut is why the programs of a format whose targets only their own server mounts would not make the target, empty when they would.
	TriedOut string
}

// Mounted is what is mounted at a target's mountpoint.
type Mounted struct {
	// Mounted is true when anything is mounted there.
	Mounted bool
	// UUID of the mounted filesystem, and the kernel name of its device.
	UUID, KernelName string
	// Problem is why the mountpoint can't be used as it is, or why what is mounted could not be examined, such as that it
	// could not be made immutable. It is not the failure of an earlier mount: with a problem, nothing is mounted.
	Problem string
	// Marker on the mounted filesystem, nil when it has none. MarkerError says that there is one, and why it can't be trusted.
	Marker      *Marker
	MarkerError string
}

// StepKind is one kind of step on the way from a disk to a target.
type StepKind string

// The steps, in their order. Provisioning may be cut off before and after each of them, and ends the same.
const (
	// StepRecord writes status.provisioned, before the first byte.
	StepRecord StepKind = "Record"
	// StepWipe is wipefs(8) on one partition or disk.
	StepWipe StepKind = "Wipe"
	// StepZero zeroes what a look reads of one disk (devices.ZeroSample), so that it is blank.
	StepZero StepKind = "Zero"
	// StepMakeFileSystem is mkfs.
	StepMakeFileSystem StepKind = "MakeFileSystem"
	// StepMount mounts the filesystem at its mountpoint.
	StepMount StepKind = "Mount"
	// StepMark writes the marker and syncs it.
	StepMark StepKind = "Mark"
	// StepFinish writes status.provisioned.finished.
	StepFinish StepKind = "Finish"
)

// ProvisioningSteps are all kinds of steps of provisioning in their order.
var ProvisioningSteps = []StepKind{StepRecord, StepWipe, StepZero, StepMakeFileSystem, StepMount, StepMark, StepFinish}

// Step is one step that the agent carries out.
type Step struct {
	Kind StepKind
	// Argv is the command, to be run without a shell. For StepMark it is "write" and the path of the marker, for StepZero "zero-sample"
	// and that of the device: the agent writes that itself. A log device, if there is one, stands in the commands.
	Argv []string
}

// The limits of the API on a plan. A plan that is longer is refused: what it would destroy could not all be shown.
const (
	maxSteps    = 32
	maxDestroys = 128
	maxLine     = 512
	maxRefusals = 32
)

// Make plans what would make a device a target: the exact commands, what they would destroy, the reasons for which
// it may not be done, and the hash of it all. The uuid is that of the new filesystem.
//
// Refusals are what nobody can approve: a device that is in use, is not the one that was meant, or is another target's.
// Destroys is what an approval gives up: what lies on a device that nobody uses.
func Make(t *v1alpha1.StorageTarget, l Look, uuid string) v1alpha1.TargetPlan {
	p := v1alpha1.TargetPlan{UUID: uuid, Destroys: Destroys(t, l), Refusals: append(Refusals(t, l), servedRefusals(t, l, uuid)...)}
	steps := Steps(t, l, uuid)
	for _, s := range steps {
		p.Steps = append(p.Steps, strings.Join(s.Argv, " "))
	}
	// The hash is of the whole, also of what is cut off below: a plan that is cut off is refused in any case.
	p.Hash = hash(t, l, uuid, p)
	tooLong := len(p.Steps) > maxSteps || len(p.Destroys) > maxDestroys
	for _, line := range p.Destroys {
		tooLong = tooLong || len(line) > maxLine
	}
	if tooLong {
		p.Refusals = append(p.Refusals, fmt.Sprintf("more lies on the devices than a plan can show (%d finds, %d commands); wipe them by hand",
			len(p.Destroys), len(p.Steps)))
		p.Steps = nil
		p.Destroys = p.Destroys[:min(len(p.Destroys), maxDestroys)]
	}
	for i, line := range p.Destroys {
		p.Destroys[i] = v1alpha1.Cut(line, maxLine)
	}
	if len(p.Refusals) > maxRefusals {
		p.Refusals = append(p.Refusals[:maxRefusals-1:maxRefusals-1], fmt.Sprintf("and %d more reasons", len(p.Refusals)-maxRefusals+1))
	}
	for i, line := range p.Refusals {
		p.Refusals[i] = v1alpha1.Cut(line, 2*maxLine)
	}
	return p
}

// Refusals are the reasons for which a target's devices may not be formatted, with or without an approval.
func Refusals(t *v1alpha1.StorageTarget, l Look) []string {
	refusals := DeviceRefusals(t, l.Device, t.Spec.Device, IsWholeDisk)
	refusals = append(refusals, RefusedMkfsOptions(t.Spec.Format)...)
	refusals = append(refusals, kernelRefusals(t, l.Kernel)...)
	refusals = append(refusals, sentences(mountpointIsFree(l.Mount), l.TriedOut)...)
	switch {
	case t.Spec.LogDevice == nil && l.Log != nil:
		refusals = append(refusals, "a log device was looked at that the target does not name; this is a fault of the agent")
	case t.Spec.LogDevice != nil && l.Log == nil:
		refusals = append(refusals, "the log device was not looked at; this is a fault of the agent")
	case t.Spec.LogDevice != nil:
		refusals = append(refusals, logRefusals(t, l)...)
	}
	return refusals
}

// DeviceRefusals are the reasons for which one device may never be formatted as what it was recorded to be; kind is
// IsWholeDisk or IsWholeDiskOrPartition.
func DeviceRefusals(t *v1alpha1.StorageTarget, f Facts, want v1alpha1.DeviceIdentity, kind func(Facts) string) []string {
	if missing := Exists(f); missing != "" {
		return []string{fmt.Sprintf("%s: %s", want.ID, missing)}
	}
	refusals := sentences(IsNamedStably(want.ID), HasItsName(f), HasIdentity(f, want), kind(f), IsNoOthersTarget(f, t), IsMarkerRead(f),
		IsNoOthersLog(f, t))
	if f.Marker != nil && sameTarget(*f.Marker, t) {
		// Another target's marker is a sentence already.
		refusals = append(refusals, HoldsNoTarget(f))
	}
	return append(refusals, atRest(f)...)
}

// logRefusals are those of the log device: as strict as those of the disk, because mkfs does not look at it.
func logRefusals(t *v1alpha1.StorageTarget, l Look) []string {
	var refusals []string
	for _, r := range DeviceRefusals(t, *l.Log, *t.Spec.LogDevice, IsWholeDiskOrPartition) {
		refusals = append(refusals, "log device: "+r)
	}
	if !l.Log.Found {
		return refusals
	}
	if log := logOf(t.Spec.Format); log == nil {
		refusals = append(refusals, hasNoLog(t.Spec.Format))
	} else if l.Log.SizeBytes < log.Minimum {
		refusals = append(refusals, fmt.Sprintf("log device: %s has %d bytes, and the log of an %s needs %d MiB", l.Log.KernelName, l.Log.SizeBytes,
			log.Of, log.Minimum>>20))
	}
	if l.Device.Found && (l.Log.KernelName == l.Device.KernelName || slices.Contains(l.Device.Partitions, l.Log.KernelName)) {
		refusals = append(refusals, fmt.Sprintf("log device: %s is the disk itself, or a part of it; give the log a device of its own", l.Log.KernelName))
	}
	return refusals
}

// logOf is the log that a format can have on a device of its own, nil when it can't or is unknown.
func logOf(spec v1alpha1.FormatSpec) *format.Log {
	f, err := registry.Of(spec)
	if err != nil {
		return nil
	}
	return f.Log()
}

// hasNoLog refuses a log device for a format that can have none.
func hasNoLog(spec v1alpha1.FormatSpec) string {
	return fmt.Sprintf("a log device belongs to %s, and format.fsType is %s", registry.WithLog(), spec.FSType)
}

// kernelRefusals are what this kernel can't mount. It is found before the first byte is written: a disk that was
// formatted and can't be mounted helps nobody.
func kernelRefusals(t *v1alpha1.StorageTarget, k Kernel) []string {
	var refusals []string
	if k.FSTypeMissing != "" {
		refusals = append(refusals, fmt.Sprintf("the kernel of node %s can't mount %s: %s; load the module there, or choose another format.fsType",
			t.Spec.Node, registry.NameOf(t.Spec.Format), k.FSTypeMissing))
	}
	for _, option := range slices.Sorted(maps.Keys(k.RefusedOptions)) {
		text := fmt.Sprintf("format.mountOptions: the kernel of node %s refuses %q for %s", t.Spec.Node, option, registry.NameOf(t.Spec.Format))
		if said := k.RefusedOptions[option]; said != "" {
			text += " (" + said + ")"
		}
		refusals = append(refusals, text+"; take it out of the list")
	}
	return refusals
}

// mountpointIsFree holds when nothing is mounted at the target's mountpoint, and it can be used.
func mountpointIsFree(m Mounted) string {
	switch {
	case m.Problem != "":
		return "the mountpoint can't be used: " + m.Problem
	case m.Mounted:
		return fmt.Sprintf("%s is mounted at the target's mountpoint already; unmount it there first", m.KernelName)
	}
	return ""
}

// Destroys names everything on a target's devices that formatting would destroy: device, type, offset, label and UUID.
func Destroys(t *v1alpha1.StorageTarget, l Look) []string {
	lost := destroysOn(t, l.Device)
	if l.Log != nil {
		for _, line := range destroysOn(t, *l.Log) {
			lost = append(lost, "log device: "+line)
		}
	}
	return lost
}

// destroysOn names everything on one device.
func destroysOn(t *v1alpha1.StorageTarget, f Facts) []string {
	if !f.Found {
		return nil
	}
	var lost []string
	for _, s := range sortedSignatures(f) {
		line := describe(s)
		if of, isLog := registry.ByLog(s.Type); isLog {
			line += fmt.Sprintf(", the log of the %s with that uuid, which is lost without it", of.Log().Of)
			if f.LogOf != nil {
				line += fmt.Sprintf(" (on %s, label %q)", f.LogOf.Device, f.LogOf.Label)
			}
		}
		if s.Label == Label(t) {
			line += ", the label of this very target: data of an earlier FileSystem of this name"
		}
		lost = append(lost, line)
	}
	for _, partition := range slices.Sorted(slices.Values(f.Partitions)) {
		lost = append(lost, partition+": partition of "+f.KernelName)
	}
	if f.Unknown != "" {
		lost = append(lost, f.KernelName+": "+unknownData(f))
	}
	return lost
}

// Steps are the steps of a plan that touch the disk: StepWipe for everything that was found, partitions before disks, and StepZero,
// so that a device is blank before mkfs begins; then StepMakeFileSystem, StepMount and StepMark, whose argv is the marker's path. A target
// that only its own server mounts is made and marked by its mkfs, and has neither of the last two.
//
// No mkfs is given its force option. Some then refuse a device on which they find something, others only one that is mounted or busy: a
// last guard behind the checks of this package. It is not enough: what each of them overlooks stands with its format. So what is there is
// wiped by its own step, which the plan shows, and never by mkfs. A format that is unknown has no steps; such a plan is refused.
func Steps(t *v1alpha1.StorageTarget, l Look, uuid string) []Step {
	f, err := registry.Of(t.Spec.Format)
	if err != nil {
		return nil
	}
	if _, is := registry.Served(t.Spec.Format); is {
		if format.GivenTo(t) == nil {
			return nil
		}
		return append(ClearSteps(l), Step{Kind: StepMakeFileSystem, Argv: f.Make(NewOf(t, l, uuid))})
	}
	mountpoint := spec.TargetPath(t.Namespace, t.Spec.FileSystem.Name, t.Name)
	return append(ClearSteps(l),
		Step{Kind: StepMakeFileSystem, Argv: f.Make(NewOf(t, l, uuid))},
		mountStep(t, l),
		Step{Kind: StepMark, Argv: []string{"write", path.Join(mountpoint, spec.TargetMarkerFile)}})
}

// wipeSteps wipe what was found on a device; none for a blank one. wipefs(8) opens a device exclusively, so that it fails
// on one that is in use.
func wipeSteps(f Facts) []Step {
	if !f.Found || len(f.Signatures) == 0 && len(f.Partitions) == 0 {
		return nil
	}
	steps := make([]Step, 0, len(f.Partitions)+1)
	for _, name := range append(slices.Sorted(slices.Values(f.Partitions)), f.KernelName) {
		steps = append(steps, Step{Kind: StepWipe, Argv: []string{"wipefs", "--all", devicePath(name)}})
	}
	return steps
}

// clearSteps make a device blank; none for one that is. wipefs(8) takes the signatures only, and makes the kernel forget partitions.
func clearSteps(f Facts) []Step {
	steps := wipeSteps(f)
	if !f.Found || len(steps) == 0 && f.Unknown == "" {
		return nil
	}
	return append(steps, Step{Kind: StepZero, Argv: []string{"zero-sample", devicePath(f.KernelName)}})
}

// mountStep mounts the target's device at its mountpoint.
func mountStep(t *v1alpha1.StorageTarget, l Look) Step {
	argv := []string{"mount", "-t", string(registry.NameOf(t.Spec.Format))}
	options := make([]string, 0, len(t.Spec.Format.MountOptions)+1)
	for _, option := range t.Spec.Format.MountOptions {
		options = append(options, string(option))
	}
	if log := logOf(t.Spec.Format); log != nil && l.Log != nil {
		options = append(options, log.MountOption+"="+devicePath(l.Log.KernelName))
	}
	if len(options) > 0 {
		argv = append(argv, "-o", strings.Join(options, ","))
	}
	argv = append(argv, devicePath(l.Device.KernelName), spec.TargetPath(t.Namespace, t.Spec.FileSystem.Name, t.Name))
	return Step{Kind: StepMount, Argv: argv}
}

// hash is the sha256 of the plan, and of all that was found of the devices: an approval of it is void when anything
// at all has changed. Orders that mean nothing are taken out.
func hash(t *v1alpha1.StorageTarget, l Look, uuid string, p v1alpha1.TargetPlan) string {
	content := struct {
		Device, Log     v1alpha1.DeviceIdentity
		Found           Facts
		FoundLog        *Facts
		UUID            string
		Steps, Destroys []string
	}{Device: t.Spec.Device, Found: canonical(l.Device), UUID: uuid, Steps: p.Steps, Destroys: p.Destroys}
	if t.Spec.LogDevice != nil {
		content.Log = *t.Spec.LogDevice
	}
	if l.Log != nil {
		log := canonical(*l.Log)
		content.FoundLog = &log
	}
	// Structs, strings, numbers and slices of them can't fail to encode; their fields have one order.
	encoded, err := json.Marshal(content)
	if err != nil {
		return ""
	}
	sum := sha256.Sum256(encoded)
	return "sha256:" + hex.EncodeToString(sum[:])
}

// canonical are the facts without the orders that mean nothing, and without what is derived from the rest.
func canonical(f Facts) Facts {
	f.IDs = slices.Sorted(slices.Values(f.IDs))
	f.Partitions = slices.Sorted(slices.Values(f.Partitions))
	f.Holders = slices.Sorted(slices.Values(f.Holders))
	f.Mounts = slices.Sorted(slices.Values(f.Mounts))
	f.Signatures = sortedSignatures(f)
	f.Unusable = nil
	return f
}

// sortedSignatures are the signatures of a device by device, offset and the rest.
func sortedSignatures(f Facts) []v1alpha1.Signature {
	return slices.SortedFunc(slices.Values(f.Signatures), func(a, b v1alpha1.Signature) int {
		return cmp.Or(strings.Compare(a.Device, b.Device), strings.Compare(a.Offset, b.Offset), strings.Compare(a.Type, b.Type),
			strings.Compare(a.UUID, b.UUID), strings.Compare(a.Label, b.Label))
	})
}
