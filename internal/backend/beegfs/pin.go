package beegfs

import (
	"slices"

	"parallelfs.dev/operator/api/v1alpha1"
	"parallelfs.dev/operator/internal/backend"
	"parallelfs.dev/operator/internal/plan"
)

// metadataNodes returns the nodes with metadata servers, by name.
func metadataNodes(in backend.Input) []string {
	var nodes []string
	for _, a := range in.Given() {
		if a.Role == v1alpha1.RoleMetadata {
			nodes = append(nodes, a.Node)
		}
	}
	slices.Sort(nodes)
	return slices.Compact(nodes)
}

// metadataNodesOf returns the nodes that have a metadata server in a slot, by name.
func metadataNodesOf(in backend.Input, slot int32) []string {
	var nodes []string
	for _, a := range in.Given() {
		if a.Role == v1alpha1.RoleMetadata && a.Slot == slot {
			nodes = append(nodes, a.Node)
		}
	}
	slices.Sort(nodes)
	return nodes
}

// PinDaemons returns the metadata servers, each with its slot as its entry in the list of pins, and the storage servers, one for each pool
// on each node. The management service is not pinned.
func (Backend) PinDaemons(fs *v1alpha1.FileSystem, nodes []v1alpha1.FileSystemNode) []plan.PinDaemon {
	in := backend.Input{FileSystem: fs, FileSystemNodes: nodes}
	var out []plan.PinDaemon
	for slot := range metaSlots(fs) {
		out = append(out, plan.PinDaemon{
			Name: metaDaemon(slot), Index: int(slot), Field: "spec.metadataServers.cpuPinning", Pinning: fs.Spec.MetadataServers.CPUPinning,
			Nodes: metadataNodesOf(in, slot), Role: v1alpha1.RoleMetadata, InDirectories: !backend.OnDevices(fs.Spec.MetadataServers.Targets),
		})
	}
	for _, pool := range fs.Spec.StoragePools {
		if record, ok := in.Pool(pool.Name); ok {
			out = append(out, plan.PinDaemon{
				Name: storageDaemon(pool.Name), Field: "spec.storagePools[" + pool.Name + "].cpuPinning",
				Pinning: pool.CPUPinning, Nodes: record.Nodes,
				Role: v1alpha1.RoleStorage, StoragePool: pool.Name, InDirectories: !backend.OnDevices(pool.Targets),
			})
		}
	}
	return out
}
