package format

import (
	"slices"
	"strings"

	"parallelfs.dev/operator/api/v1alpha1"
)

// Served is a Format whose filesystems only their own server mounts. Such a mount shows no directory of the disk, so the mark is no file:
// mkfs writes it, and a program reads it without a mount. The disk also holds the target's assignment for its server, which must equal the
// recorded one. The programs are the node's own, because they belong to its kernel.
type Served interface {
	Format
	Marked
	// Problems returns why a target can't be made, each as a sentence; none if it can.
	Problems(n New) []string
	// TryOut returns the command that prints what Make would write, and writes nothing. Tried returns what is wrong with its output, empty if
	// it equals the assignment.
	TryOut(n New) []string
	Tried(n New, a Answer) string
	// MountTypes returns the types of its mounts in the tables of the kernel. Mounted returns the target that the options of such a mount
	// name, empty if they name none.
	MountTypes() []string
	Mounted(options string) string
}

// Given is the permanent assignment of a target of a Served format for its server. So far there is one such server.
type Given = v1alpha1.LustreTarget

// GivenTo returns the assignment of a StorageTarget, nil while it has none.
func GivenTo(t *v1alpha1.StorageTarget) *Given { return t.Spec.Lustre }

// IsShared reports whether two nodes may serve a target with this assignment.
func IsShared(given *Given) bool { return given != nil && len(given.ServiceNodes) > 0 }

// RecordOf returns the record of a disk with its assignment.
func RecordOf(given *Given) *v1alpha1.TargetRecord { return &v1alpha1.TargetRecord{Lustre: given} }

// Marked is how the disks of a Served format identify their owner.
type Marked interface {
	// Label is that of a target that was made and never mounted. Labels lists all labels that it may get later, and HasLabel reports whether a
	// label is that of any target.
	Label(of Given) string
	Labels(of Given) []string
	HasLabel(label string) bool
	// ReadBack returns the command that reads the data of a target, and writes nothing. Mark returns the mark in its output, empty if there is
	// no target, or one without a mark.
	ReadBack(device string) []string
	Mark(a Answer) (string, error)
	// Says returns the assignment in that output. An error shows why no target can have that assignment.
	Says(a Answer) (Given, error)
	// Remark returns the command that writes another mark on a target that is not mounted, and changes nothing else.
	Remark(device, mark string) []string
	// Refusal returns why a disk must not be mounted as the target with this assignment, empty if it may.
	Refusal(n New, s Seen) string
}

// IsMount reports whether a mount is that of a target of the format, by its type and source. The kernel may serve it, or a program that
// replaces the kernel (mount(8), FILESYSTEM SUBTYPES). A client's mount may have the same type, and names no device.
func IsMount(f Served, kind, source string) bool {
	kind = strings.TrimPrefix(kind, "fuse.")
	return slices.Contains(f.MountTypes(), kind) && strings.HasPrefix(source, "/dev/")
}

// Answer is the output of a program.
type Answer struct {
	Code   int
	Stdout string
	// Said is its error output, in one line.
	Said string
}

// Seen is what was read from a disk: its superblock by blkid(8), and the output of ReadBack.
type Seen struct {
	Type, UUID, Label string
	Answer            Answer
}
