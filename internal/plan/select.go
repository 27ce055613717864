package plan

import "parallelfs.dev/operator/api/v1alpha1"

// SelectInput is what the choice of disks depends on.
type SelectInput struct {
	FileSystem *v1alpha1.FileSystem
	// MetadataNodes are the nodes of the metadata servers; PoolNodes those of each storage pool, by its name. A node that
	// has targets already needs not be among them.
	MetadataNodes []string
	PoolNodes     map[string][]string
	// Inventories by node; a node without an agent has none.
	Inventories map[string]v1alpha1.NodeInventoryStatus
	// Existing are the targets of this FileSystem, also those that are being deleted.
	Existing []v1alpha1.StorageTarget
	// Others are the targets of all other FileSystems, of all namespaces.
	Others []v1alpha1.StorageTarget
}

// Selection is which targets a FileSystem has.
type Selection struct {
	// Targets are those that should exist, sorted by name, with complete metadata and spec, to be applied as they are.
	// spec.approvedPlan, spec.remove and spec.destroyFor are never set.
	Targets []v1alpha1.StorageTarget
	// Problems are what a person has to change, sorted; the targets are right all the same.
	Problems []Problem
}

// Problem is one thing that a person has to change.
type Problem struct {
	// Reason is one of the reasons of a FileSystem's conditions.
	Reason  string
	Message string
}

// Select chooses the disks of a FileSystem.
func Select(in SelectInput) Selection { return Selection{} }

// TargetName is the name of the StorageTarget of a disk: the FileSystem, the pool ("ssd") or instance ("mds0"), and a hash of
// the node and the device's id.
func TargetName(fileSystem, poolOrInstance, node string, id v1alpha1.DeviceID) string { return "" }
