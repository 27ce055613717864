package plan

import "parallelfs.dev/operator/api/v1alpha1"

// Look is all that the agent found of one target, taken at one time.
type Look struct {
	// Device is the disk of spec.device, found by its id; Log is that of spec.logDevice, nil when there is none.
	Device Facts
	Log    *Facts
	// Kernel is what the kernel says of the mount options.
	Kernel Kernel
	// Mount is what is mounted at the target's mountpoint (spec.TargetPath).
	Mount Mounted
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
	// Marker on the mounted filesystem, nil when it has none.
	Marker *Marker
}

// StepKind is one kind of step on the way from a disk to a target.
type StepKind string

// The steps, in their order. Provisioning may be cut off before and after each of them, and ends the same.
const (
	// StepRecord writes status.provisioned, before the first byte.
	StepRecord StepKind = "Record"
	// StepWipe is wipefs(8) on one partition or disk.
	StepWipe StepKind = "Wipe"
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
var ProvisioningSteps = []StepKind{StepRecord, StepWipe, StepMakeFileSystem, StepMount, StepMark, StepFinish}

// Step is one step that the agent carries out.
type Step struct {
	Kind StepKind
	// Argv is the command, to be run without a shell. For StepMark it is nil: the agent writes the file itself.
	Argv []string
}

// Make plans what would make a device a target: the exact commands, what they would destroy, the reasons for which
// it may not be done, and the hash of it all. The uuid is that of the new filesystem.
func Make(t *v1alpha1.StorageTarget, l Look, uuid string) v1alpha1.TargetPlan {
	return v1alpha1.TargetPlan{UUID: uuid, Refusals: []string{"not judged yet"}}
}

// Steps are the steps of a plan that touch the disk: wipes (StepWipe), StepMakeFileSystem, StepMount and StepMark.
func Steps(t *v1alpha1.StorageTarget, l Look, uuid string) []Step { return nil }
