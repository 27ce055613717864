// Package format is what the operator knows of the local filesystems of targets: one folder for each, and registry lists them. A format
// decides nothing and touches no disk. It names commands, options and requests; package plan shows them, and packages provision, devices
// and target carry them out. What is the same for all of them stays there, such as the wipe. So every format is pure, and the plan may
// ask it.
package format

import "parallelfs.dev/operator/api/v1alpha1"

// Format is one local filesystem that targets can have.
type Format interface {
	// Name is its value of format.fsType. The kernel calls it so as well: in its mounts, in /sys/fs, and its module.
	Name() v1alpha1.FSType
	// Signature is its type in libblkid, by which a look finds it on a disk.
	Signature() string
	// Log is the log that it can have on a device of its own, nil when it can't.
	Log() *Log
	// RefusedOptions are the options of its mkfs that a user may not give, each as a sentence that names it (Refused).
	RefusedOptions(options []v1alpha1.MkfsOption) []string
	// Make is the command that makes it, to be run without a shell. It never has the option that makes a mkfs overwrite what it finds.
	Make(n New) []string
	// Inodes is about the number of inodes that it has from mkfs on a device of this size, 0 when it has no such number.
	Inodes(sizeBytes int64, options []v1alpha1.MkfsOption) int64
	// WithoutReplay are the mount options with which it is read without a write to its device, not even of its journal.
	WithoutReplay() []string
	// SpansDevices is true when one filesystem can lie on several devices. Its mounts then have device numbers of their own, and the kernel
	// lists the devices of each that is mounted in /sys/fs/<name>/<id>/devices. Any other has a directory /sys/fs/<name>/<device>.
	SpansDevices() bool
	// Proof is how the kernel is asked which filesystem is mounted.
	Proof() Proof
}

// New is a filesystem that is to be made.
type New struct {
	// Options are the user's, of which none is refused.
	Options []v1alpha1.MkfsOption
	// Label has 12 characters, which is all that XFS has room for.
	Label, UUID string
	// Device and LogDevice are paths below /dev. LogDevice is empty without a log on a device of its own, and LogBytes the size of that one.
	Device, LogDevice string
	LogBytes          int64
	// Given is what a target of a Served format is to its server, and Mark says whose it is, in one line. Others have neither.
	Given *Given
	Mark  string
}

// Log is the log of a filesystem on a device of its own.
type Log struct {
	// Of names the filesystem in sentences, such as XFS.
	Of string
	// Signature is the log's type in libblkid.
	Signature string
	// MountOption names the log's device, as in logdev=/dev/sdb.
	MountOption string
	// Minimum is the size of the smallest device, in bytes.
	Minimum int64
}

// Proof is how the kernel is asked for the UUID of a mounted filesystem, with nothing but its open directory.
type Proof struct {
	// Magic is the type that statfs(2) says (include/uapi/linux/magic.h).
	Magic int64
	// OwnOnly is true when it has a second UUID, which the question that works for every type (FS_IOC_GETFSUUID) may mean.
	OwnOnly bool
	// UUID asks in the format's own way. The result begins with the 16 bytes of the UUID.
	UUID func(ask Ask) ([]byte, error)
	// Folded is what kernels show that can't be asked, nil when every kernel can.
	Folded *Folded
}

// Ask is ioctl(2) on the open directory. The answer is as large as the request says, and may say what is asked for.
type Ask func(request uintptr, answer []byte) error

// Folded is a part of the UUID that every kernel shows as f_fsid (statfs(2)). It proves 64 of its 128 bits.
type Folded struct {
	// Since is the Linux that can be asked for the whole, such as "6.0".
	Since string
	// Fold makes of a UUID what is shown of it.
	Fold func(uuid [16]byte) uint64
}
