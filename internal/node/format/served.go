package format

import (
	"slices"
	"strings"

	"parallelfs.dev/operator/api/v1alpha1"
)

// Served is a Format whose filesystems only their own server mounts. Such a mount shows no directory of the disk, so that its mark is no
// file: mkfs writes it, and a program reads it without a mount. What the target is to its server stands on the disk as well, and must be
// what was given. The programs are the node's own, because they belong to its kernel.
type Served interface {
	Format
	Marked
	// Problems are why a target can't be made so, each as a sentence; none when it can.
	Problems(n New) []string
	// TryOut is the command that says what Make would write, and writes nothing. Tried says what is wrong with its answer, empty when that
	// is what was given.
	TryOut(n New) []string
	Tried(n New, a Answer) string
	// MountTypes are those of its mounts in the tables of the kernel. Mounted says which target the options of such a mount name, empty where
	// they name none.
	MountTypes() []string
	Mounted(options string) string
}

// Given is what a target of a Served format was given for ever, for its server. There is one such server yet.
type Given = v1alpha1.LustreTarget

// GivenTo is what a StorageTarget was given, nil while it was given nothing.
func GivenTo(t *v1alpha1.StorageTarget) *Given { return t.Spec.Lustre }

// IsShared is true for what a target was given that two nodes may serve.
func IsShared(given *Given) bool { return given != nil && len(given.ServiceNodes) > 0 }

// RecordOf is the record of a disk that says what it was given.
func RecordOf(given *Given) *v1alpha1.TargetRecord { return &v1alpha1.TargetRecord{Lustre: given} }

// Marked is how the disks of a Served format say whose they are.
type Marked interface {
	// Label is that of a target that was made and never mounted. Labels are all that it may get later, and HasLabel is true for those of any
	// target.
	Label(of Given) string
	Labels(of Given) []string
	HasLabel(label string) bool
	// ReadBack is the command that reads what a target says of itself, and writes nothing. Mark is the mark in its answer, empty where
	// there is no target, or one without a mark.
	ReadBack(device string) []string
	Mark(a Answer) (string, error)
	// Says is what a target says in that answer that it was given. An error says why nobody can be given that.
	Says(a Answer) (Given, error)
	// Remark is the command that writes another mark on a target that is not mounted, and changes nothing else.
	Remark(device, mark string) []string
	// Refusal says why what was seen on a disk must not be mounted as the target that was given so, empty when it may.
	Refusal(n New, s Seen) string
}

// IsMount is true for a mount of a target of the format, by its type and source: one of the kernel, or of a program that serves it in its
// place (mount(8), FILESYSTEM SUBTYPES). A client's mount may have the same type, and names no device.
func IsMount(f Served, kind, source string) bool {
	kind = strings.TrimPrefix(kind, "fuse.")
	return slices.Contains(f.MountTypes(), kind) && strings.HasPrefix(source, "/dev/")
}

// Answer is what a program has answered.
type Answer struct {
	Code   int
	Stdout string
	// Said is what it complained of, in one line.
	Said string
}

// Seen is what was read of a disk: its superblock by blkid(8), and the answer of ReadBack.
type Seen struct {
	Type, UUID, Label string
	Answer            Answer
}
