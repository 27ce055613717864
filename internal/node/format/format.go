// Package format describes the local filesystems of targets: one folder for each, and package registry lists them. A format decides nothing
// and touches no disk. It returns commands, options and requests; package plan shows them, and packages provision, devices and target carry
// them out. Steps that are the same for all formats, such as the wipe, are in those packages. So every format is pure, and package plan may
// use it.
package format

import "parallelfs.dev/operator/api/v1alpha1"

// Format is one local filesystem that targets can have.
type Format interface {
	// Name is its value of format.fsType. The kernel uses the same name in mount tables, in /sys/fs, and for the module.
	Name() v1alpha1.FSType
	// Signature is its type in libblkid, by which a look finds it on a disk.
	Signature() string
	// Log describes its external log, nil if it supports none.
	Log() *Log
	// RefusedOptions returns the options of its mkfs that a user may not set, each as a sentence that names it (Refused).
	RefusedOptions(options []v1alpha1.MkfsOption) []string
	// Make returns the command that makes it, run without a shell. The command never has the option that makes a mkfs overwrite existing data.
	Make(n New) []string
	// Inodes returns about the number of inodes after mkfs on a device of this size, 0 if there is no such number.
	Inodes(sizeBytes int64, options []v1alpha1.MkfsOption) int64
	// WithoutReplay returns the mount options with which it is read without a write to its device, not even to its journal.
	WithoutReplay() []string
	// SpansDevices is true if one filesystem can be on several devices. Its mounts then have device numbers of their own, and the kernel lists
	// the devices of each mounted one in /sys/fs/<name>/<id>/devices. Any other format has a directory /sys/fs/<name>/<device>.
	SpansDevices() bool
	// Proof is how the kernel identifies a mounted filesystem.
	Proof() Proof
}

// Striper is a format whose mkfs takes the geometry of a RAID below it.
type Striper interface {
	Format
	// Striped returns the options with the stripe of a RAID: bytes on each disk, and disks with data.
	Striped(options []v1alpha1.MkfsOption, chunk int64, data int32) []v1alpha1.MkfsOption
}

// New describes a filesystem to make.
type New struct {
	// Options holds the user's options, none of which is refused.
	Options []v1alpha1.MkfsOption
	// Label has 12 characters, which is the maximum of XFS.
	Label, UUID string
	// Device and LogDevice are paths below /dev. LogDevice is empty without an external log; LogBytes is the size of that device.
	Device, LogDevice string
	LogBytes          int64
	// Given is the assignment of a target of a Served format for its server, and Mark its owner, in one line. Other formats have neither.
	Given *Given
	Mark  string
}

// Log describes an external log, which is on a device of its own.
type Log struct {
	// Of names the filesystem in sentences, such as XFS.
	Of string
	// Signature is the log's type in libblkid.
	Signature string
	// MountOption names the log's device, as in logdev=/dev/sdb.
	MountOption string
	// Minimum is the size of the smallest possible device, in bytes.
	Minimum int64
}

// Proof is how the kernel returns the UUID of a mounted filesystem from its open directory alone.
type Proof struct {
	// Magic is the type in statfs(2) (include/uapi/linux/magic.h).
	Magic int64
	// OwnOnly is true if it has a second UUID, which the general request for every type (FS_IOC_GETFSUUID) may return.
	OwnOnly bool
	// UUID uses the format's own request. The result begins with the 16 bytes of the UUID.
	UUID func(ask Ask) ([]byte, error)
	// Folded describes what kernels show that lack the request, nil if every kernel has it.
	Folded *Folded
}

// Ask is ioctl(2) on the open directory. The size of the answer is part of the request. The answer may contain input.
type Ask func(request uintptr, answer []byte) error

// Folded is a part of the UUID that every kernel shows as f_fsid (statfs(2)). It proves 64 of its 128 bits.
type Folded struct {
	// Since is the Linux version that returns the whole UUID, such as "6.0".
	Since string
	// Fold returns the visible part of a UUID.
	Fold func(uuid [16]byte) uint64
}
