// Package plan decides what may be done with disks and CPUs, as pure functions: which disks a FileSystem gets, what would
// have to be done to make a disk a target and what that would destroy, whether it may be done, and which CPUs a daemon
// gets. It reads no disk and writes none; what it knows of a disk is a fresh look that the agent took.
package plan

import (
	"parallelfs.dev/operator/api/v1alpha1"
	"parallelfs.dev/operator/internal/node/format"
	"parallelfs.dev/operator/internal/node/spec"
)

// Facts are what a fresh look at one device found. The zero value is a device that was not found. Partitions, holders,
// mounts and signatures are those of the device and of its partitions. The uuid of the signature of an external log is its LOGUUID, which
// is the UUID of the filesystem that it belongs to.
type Facts struct {
	v1alpha1.BlockDevice
	// Found is true when the device is there. Everything else means nothing without it: blkid(8) ends with the same code
	// for a blank device and for one that is not there.
	Found bool
	// PartitionOf is the kernel name of the disk when the device is a partition of one, which only a log device may be.
	// Serial, WWN and model are those of the disk; what would forbid the use of the whole disk is told of the partition as well.
	PartitionOf string
	// TwoDisks says that the paths of a multipath device, which it is or is made from, lead to different disks, and names them; empty when
	// they don't.
	TwoDisks string `json:",omitempty"`
	// Renamed says that no device has the name that was recorded, and that this one has the recorded serial number, WWN and size; empty for
	// a device that was found by its name. Such a device is used when its content proves it, and never formatted.
	Renamed string `json:",omitempty"`
	// Busy is why the device could not be opened exclusively (O_EXCL), and empty when it could: somebody uses it, in
	// whatever namespace.
	Busy string
	// Elsewhere says who has the device mounted that is not this node, and what to do then; empty when nobody has, as far as the device shows
	// it (format.Guarded).
	Elsewhere string `json:",omitempty"`
	// Incomplete is why the look could not be finished. A device of which not all is known is never blank.
	Incomplete string
	// Unknown is where the first data lies that no probe knows, with a checksum of it, such as "0x200 (checksum 5feceb66ffc86f38)".
	// Looked for on a device without partitions and without a signature in its place, in a sample of it; empty when that is all zero.
	// Encrypted disks without a header, raw databases and other storage systems leave no signature, and neither does a filesystem
	// whose partition table was wiped.
	Unknown string
	// LogOf is the filesystem on this node that the external log on this device belongs to: the one that has the log's UUID. Nil
	// when there is no log on it, or its filesystem was not found.
	LogOf *v1alpha1.Signature
	// Marker is what the marker on it says, when the device carries the label of a target and could be read; nil when it
	// could be read and has none. MarkerError says why it could not be read.
	Marker      *Marker
	MarkerError string
	// Record is what the record beside the marker says, of a device that was not mounted; nil when there is none that can be read.
	Record *spec.TargetRecord `json:",omitempty"`
	// Answer is what a program of the node has read of a target that only its own server mounts (format.Served), nil when the device has no
	// label of such a one.
	Answer *format.Answer `json:",omitempty"`
}

// InUse is true when somebody uses the device or a partition of it, for whatever.
func (f Facts) InUse() bool { return len(f.Mounts) > 0 || len(f.Holders) > 0 || f.Busy != "" }

// Marker is what a target's disk says of itself: whose it is.
type Marker struct {
	Namespace, FileSystem, FileSystemUID string
	// Cluster is the identity of the cluster that wrote it.
	Cluster string
	Target  string
	UUID    string
	// Role and StoragePool of the target.
	Role, StoragePool string
}

// Kernel is what the kernel of the node says of the mount options that were asked for.
type Kernel struct {
	// FSTypeMissing is why the kernel can't mount the local filesystem at all, and empty when it can.
	FSTypeMissing string
	// RefusedOptions are the mount options that this kernel refuses, each with the kernel's own words where it has any.
	RefusedOptions map[string]string
}
