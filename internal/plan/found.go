package plan

import (
	"slices"

	"parallelfs.dev/operator/api/v1alpha1"
)

// Found is what a NodeInventory says of the disk of a target that no agent has looked at for the target itself.
type Found string

// What there can be.
const (
	// NoDisk is one that the node does not have.
	NoDisk Found = "NoDisk"
	// BlankDisk is free, and nothing is on it.
	BlankDisk Found = "BlankDisk"
	// OwnDisk carries the target by its label, from before it was one of this FileSystem.
	OwnDisk Found = "OwnDisk"
	// OtherDisk is any other one: it holds something, is in use, or could not be looked at.
	OtherDisk Found = "OtherDisk"
)

// DiskOf says what the inventory of its node found of the disk of a target.
func DiskOf(inventory v1alpha1.NodeInventoryStatus, t *v1alpha1.StorageTarget) Found {
	b := findDevice(inventory, string(t.Spec.Device.ID))
	switch {
	case b == nil:
		return NoDisk
	case isLabeled(*b, t.Namespace, t.Spec.FileSystem.Name, t.Name):
		return OwnDisk
	case len(b.Unusable) == 0:
		return BlankDisk
	default:
		return OtherDisk
	}
}

// isLabeled is true when the label on a disk says that it carries a target.
func isLabeled(b v1alpha1.BlockDevice, namespace, fileSystem, target string) bool {
	label := labelOf(namespace, fileSystem, target)
	return b.Target == namespace+"/"+target ||
		slices.ContainsFunc(b.Signatures, func(s v1alpha1.Signature) bool { return s.Device == b.KernelName && s.Label == label })
}

// HoldsMetadata is true when a disk of a node carries metadata of this FileSystem, from before the node had any of its targets.
func HoldsMetadata(fs *v1alpha1.FileSystem, node string, inventory v1alpha1.NodeInventoryStatus) bool {
	for _, b := range inventory.BlockDevices {
		identity, why := identify(b)
		for i := range fs.Spec.Metadata.InstancesPerNode {
			name := TargetName(fs.Name, groupName(group{role: v1alpha1.RoleMetadata}, i), node, identity.ID)
			if why == "" && isLabeled(b, fs.Namespace, fs.Name, name) {
				return true
			}
		}
	}
	return false
}
