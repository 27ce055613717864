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

// Look is everything that the agent found about one target at one time.
type Look struct {
	// Device is the disk of spec.device, found by its id. Log is that of spec.logDevice, nil if there is none.
	Device Facts
	Log    *Facts
	// Kernel describes how the kernel judges the mount options.
	Kernel Kernel
	// Mount describes the mount at the target's mountpoint (spec.TargetPath).
	Mount Mounted
	// TriedOut is why the programs of a format would refuse to make the target, for formats whose targets only their own server mounts; empty
	// if they would make it.
	TriedOut string
}

// Mounted describes the mount at a target's mountpoint.
type Mounted struct {
	// Mounted is true if anything is mounted there.
	Mounted bool
	// UUID of the mounted filesystem, and the kernel name of its device.
	UUID, KernelName string
	// Problem is why the mountpoint can't be used, for example because it could not be made immutable, or why the mount could not be examined.
	// It does not report the failure of an earlier mount. With a problem, nothing is mounted.
	Problem string
	// Marker is the marker on the mounted filesystem, nil if it has none. MarkerError is why the existing marker can't be trusted.
	Marker      *Marker
	MarkerError string
}

// StepKind is one kind of step in provisioning.
type StepKind string

// The steps, in their order. Provisioning may be interrupted before and after each of them, and reaches the same result.
const (
	// StepRecord writes status.provisioned, before the first byte.
	StepRecord StepKind = "Record"
	// StepWipe runs wipefs(8) on one partition or disk.
	StepWipe StepKind = "Wipe"
	// StepZero zeroes the sample that a look reads of one disk (devices.ZeroSample), so that the disk is blank.
	StepZero StepKind = "Zero"
	// StepMakeFileSystem runs mkfs.
	StepMakeFileSystem StepKind = "MakeFileSystem"
	// StepMount mounts the filesystem at its mountpoint.
	StepMount StepKind = "Mount"
	// StepMark writes the marker and syncs it.
	StepMark StepKind = "Mark"
	// StepFinish writes status.provisioned.finished.
	StepFinish StepKind = "Finish"
)

// Step is one step that the agent carries out.
type Step struct {
	Kind StepKind
	// Argv is the command, run without a shell. The agent itself carries out StepMark, with "write" and the path of the marker, and StepZero,
	// with "zero-sample" and the path of the device. The log device, if there is one, is an argument of the commands.
	Argv []string
}

// The limits of the API on a plan. A longer plan is refused, because it could not show everything that it would destroy.
const (
	maxSteps    = 32
	maxDestroys = 128
	maxLine     = 512
	maxRefusals = 32
)

// Make plans how a device becomes a target: the exact commands, the data that they would destroy, the reasons to refuse, and a hash over
// all of it. The uuid is that of the new filesystem.
//
// Refusals lists what no approval can override: the device is in use, is not the recorded one, or is another target's. Destroys lists what
// an approval gives up: the content of a device that is not in use.
func Make(t *v1alpha1.StorageTarget, l Look, uuid string) v1alpha1.TargetPlan {
	p := v1alpha1.TargetPlan{UUID: uuid, Destroys: Destroys(t, l), Refusals: append(Refusals(t, l), servedRefusals(t, l, uuid)...)}
	steps := Steps(t, l, uuid)
	for _, s := range steps {
		p.Steps = append(p.Steps, strings.Join(s.Argv, " "))
	}
	// The hash covers the whole plan, including what is cut off below. A plan that is cut off is refused in any case.
	p.Hash = hash(t, l, uuid, p)
	tooLong := len(p.Steps) > maxSteps || len(p.Destroys) > maxDestroys
	for _, line := range p.Destroys {
		tooLong = tooLong || len(line) > maxLine
	}
	if tooLong {
		p.Refusals = append(p.Refusals, fmt.Sprintf("the devices hold more than a plan can show (%d finds, %d commands); wipe them by hand",
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

// Refusals returns why a target's devices may not be formatted, with or without an approval.
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

// DeviceRefusals returns why one device may never be formatted as the recorded one. The argument kind is IsWholeDisk or
// IsWholeDiskOrPartition.
func DeviceRefusals(t *v1alpha1.StorageTarget, f Facts, want v1alpha1.DeviceIdentity, kind func(Facts) string) []string {
	if missing := Exists(f); missing != "" {
		return []string{fmt.Sprintf("%s: %s", want.ID, missing)}
	}
	refusals := sentences(IsNamedStably(want.ID), HasItsName(f), HasIdentity(f, want), kind(f), IsNoOthersTarget(f, t), IsMarkerRead(f),
		IsNoOthersLog(f, t))
	if f.Marker != nil && sameTarget(*f.Marker, t) {
		// IsNoOthersTarget has already refused the marker of another target.
		refusals = append(refusals, HoldsNoTarget(f))
	}
	return append(refusals, atRest(f)...)
}

// logRefusals returns the refusals of the log device. They are as strict as those of the disk, because mkfs does not check the log device.
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

// logOf describes the external log of a format, nil if the format is unknown or supports none.
func logOf(spec v1alpha1.FormatSpec) *format.Log {
	f, err := registry.Of(spec)
	if err != nil {
		return nil
	}
	return f.Log()
}

// hasNoLog refuses a log device if the format supports none.
func hasNoLog(spec v1alpha1.FormatSpec) string {
	return fmt.Sprintf("a log device belongs to %s, and format.fsType is %s", registry.WithLog(), spec.FSType)
}

// kernelRefusals returns what this kernel can't mount. It is checked before the first byte is written, because a formatted disk that can't
// be mounted is of no use.
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

// mountpointIsFree holds if nothing is mounted at the target's mountpoint, and it can be used.
func mountpointIsFree(m Mounted) string {
	switch {
	case m.Problem != "":
		return "the mountpoint can't be used: " + m.Problem
	case m.Mounted:
		return fmt.Sprintf("%s is mounted at the target's mountpoint already; unmount it there first", m.KernelName)
	}
	return ""
}

// Destroys lists everything on a target's devices that formatting would destroy: device, type, offset, label and UUID.
func Destroys(t *v1alpha1.StorageTarget, l Look) []string {
	lost := destroysOn(t, l.Device)
	if l.Log != nil {
		for _, line := range destroysOn(t, *l.Log) {
			lost = append(lost, "log device: "+line)
		}
	}
	return lost
}

// destroysOn lists everything on one device that formatting would destroy.
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

// Steps returns the steps of a plan that touch the disk. StepWipe comes first, for everything that was found, partitions before disks.
// StepZero then makes the device blank before mkfs begins. StepMakeFileSystem, StepMount and StepMark follow; the argv of StepMark is the
// marker's path. If only its own server mounts a target, its mkfs writes the marker as well, and StepMount and StepMark are left out.
//
// mkfs never gets its force option. Without it, some programs refuse a device on which they find something, and others only one that is
// mounted or busy. That is a last guard behind the checks of this package, and it has gaps, which are listed with each format. A step of
// its own, which the plan shows, therefore wipes the device, and never mkfs. An unknown format has no steps, and its plan is refused.
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

// wipeSteps returns the steps that wipe what was found on a device; none for a blank one. wipefs(8) opens a device exclusively, so it fails
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

// clearSteps returns the steps that make a device blank; none if it is blank. wipefs(8) removes only the signatures, and makes the kernel
// drop the partitions.
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

// hash returns the sha256 of the plan and of everything found on the devices, so that any change makes an approval void. Lists whose order
// has no meaning are sorted first.
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
	// Encoding can't fail, because these are structs, strings, numbers and slices of them. Their fields have a fixed order.
	encoded, err := json.Marshal(content)
	if err != nil {
		return ""
	}
	sum := sha256.Sum256(encoded)
	return "sha256:" + hex.EncodeToString(sum[:])
}

// canonical returns the facts with lists sorted whose order has no meaning, and without fields that are derived from others.
func canonical(f Facts) Facts {
	f.IDs = slices.Sorted(slices.Values(f.IDs))
	f.Partitions = slices.Sorted(slices.Values(f.Partitions))
	f.Holders = slices.Sorted(slices.Values(f.Holders))
	f.Mounts = slices.Sorted(slices.Values(f.Mounts))
	f.Signatures = sortedSignatures(f)
	f.Unusable = nil
	return f
}

// sortedSignatures returns the signatures of a device, sorted by device, offset and the rest.
func sortedSignatures(f Facts) []v1alpha1.Signature {
	return slices.SortedFunc(slices.Values(f.Signatures), func(a, b v1alpha1.Signature) int {
		return cmp.Or(strings.Compare(a.Device, b.Device), strings.Compare(a.Offset, b.Offset), strings.Compare(a.Type, b.Type),
			strings.Compare(a.UUID, b.UUID), strings.Compare(a.Label, b.Label))
	})
}
