package moosefs

import (
	"parallelfs.dev/operator/api/v1alpha1"
	"parallelfs.dev/operator/internal/backend"
	"parallelfs.dev/operator/internal/backend/shared/assign"
	"parallelfs.dev/operator/internal/plan"
)

// PinDaemons returns the master and the chunkservers, on their recorded nodes. Each is the only one of its role on a node.
func (Backend) PinDaemons(fs *v1alpha1.FileSystem, nodes []v1alpha1.FileSystemNode) []plan.PinDaemon {
	in := backend.Input{FileSystem: fs, FileSystemNodes: nodes}
	var out []plan.PinDaemon
	if fs.Status.Metadata != nil {
		out = append(out, plan.PinDaemon{
			Name: componentMaster, Field: "spec.metadataServers.cpuPinning", Pinning: fs.Spec.MetadataServers.CPUPinning,
			Nodes: []string{fs.Status.Metadata.Node}, Role: v1alpha1.RoleMetadata, InDirectories: !assign.OnDevices(fs.Spec.MetadataServers.Targets),
		})
	}
	for _, pool := range fs.Spec.StoragePools {
		if record, ok := in.Pool(pool.Name); ok {
			out = append(out, plan.PinDaemon{
				Name: chunkserverDaemon(pool.Name), Field: "spec.storagePools[" + pool.Name + "].cpuPinning",
				Pinning: pool.CPUPinning, Nodes: record.Nodes,
				Role: v1alpha1.RoleStorage, StoragePool: pool.Name, InDirectories: !assign.OnDevices(pool.Targets),
			})
		}
	}
	return out
}
