// Package plan decides what may be done with disks and CPUs, as pure functions. It chooses the disks of a FileSystem and the CPUs of each
// daemon. It plans the steps that turn a disk into a target, with the data that they would destroy, and decides whether they are allowed.
// It reads and writes no disk. Its input is a fresh look that the agent took.
package plan

import (
	"parallelfs.dev/operator/api/v1alpha1"
	"parallelfs.dev/operator/internal/node/format"
	"parallelfs.dev/operator/internal/node/spec"
)

// Facts holds what a fresh look at one device found. The zero value is a device that was not found. Partitions, holders, mounts and
// signatures are those of the device and of its partitions. The UUID in the signature of an external log is its LOGUUID, which is the UUID
// of the filesystem that it belongs to.
type Facts struct {
	v1alpha1.BlockDevice
	// Found is true if the device exists. No other field means anything without it: blkid(8) exits with the same code for a blank device and
	// for one that does not exist.
	Found bool
	// PartitionOf is the kernel name of the disk if the device is a partition. Only a log device may be one. Serial, WWN and model are those
	// of the disk. Whatever rules out the whole disk rules out the partition too.
	PartitionOf string
	// TwoDisks names the disks if the paths of a multipath device lead to different disks. The device may be the multipath device or one made
	// from it. It is empty if all paths lead to one disk.
	TwoDisks string `json:",omitempty"`
	// Renamed is set if no device has the recorded name and this one has the recorded serial number, WWN and size; empty if the device was
	// found by its name. Such a device is used if its content proves it, and never formatted.
	Renamed string `json:",omitempty"`
	// Busy is why the device could not be opened exclusively (O_EXCL): something uses it, in some mount namespace. It is empty if the open
	// succeeded.
	Busy string
	// Elsewhere names the other machine that has the device mounted, and what to do about it; empty if the device shows no such mount
	// (format.Guarded).
	Elsewhere string `json:",omitempty"`
	// Incomplete is why the look could not be finished. An incomplete look never counts as blank.
	Incomplete string
	// Unknown is the position of the first data that no probe recognizes, with a checksum, such as "0x200 (checksum 5feceb66ffc86f38)". It is
	// set only for a device without partitions and without a signature in its place, and is empty if the sample that was read is all zero.
	// Encrypted disks without a header, raw databases and other storage systems leave no signature. Neither does a filesystem whose partition
	// table was wiped.
	Unknown string
	// LogOf is the filesystem on this node that the external log on this device belongs to, found by the UUID of the log. It is nil if the
	// device holds no log, or if that filesystem was not found.
	LogOf *v1alpha1.Signature
	// Marker is the marker on a device that carries the label of a target; nil if the device could be read and has none. MarkerError is why
	// the marker could not be read.
	Marker      *Marker
	MarkerError string
	// Record is the record beside the marker on a device that was not mounted; nil if there is none that can be read.
	Record *spec.TargetRecord `json:",omitempty"`
	// Answer is what a program of the node has read from a target that only its own server mounts (format.Served). It is nil if the device has
	// no label of such a target.
	Answer *format.Answer `json:",omitempty"`
}

// InUse reports whether the device or one of its partitions is in use for any purpose.
func (f Facts) InUse() bool { return len(f.Mounts) > 0 || len(f.Holders) > 0 || f.Busy != "" }

// Marker is the identity of a target, and of its owner, as stored on the target's disk.
type Marker struct {
	Namespace, FileSystem, FileSystemUID string
	// Cluster is the identity of the cluster that wrote it.
	Cluster string
	Target  string
	UUID    string
	// Role and StoragePool are those of the target.
	Role, StoragePool string
}

// Kernel describes how the node's kernel judges the requested mount options.
type Kernel struct {
	// FSTypeMissing is why the kernel can't mount the local filesystem at all, and empty when it can.
	FSTypeMissing string
	// RefusedOptions are the mount options that this kernel refuses, each with the kernel's own words where it has any.
	RefusedOptions map[string]string
}
