package moosefs

import (
	"slices"

	corev1 "k8s.io/api/core/v1"

	"parallelfs.dev/operator/api/v1alpha1"
	"parallelfs.dev/operator/internal/backend"
	"parallelfs.dev/operator/internal/backend/shared/assign"
	"parallelfs.dev/operator/internal/backend/shared/podspec"
)

// chunkserverDaemon returns the name of a pool's chunkserver among the daemons of a node.
func chunkserverDaemon(pool string) string { return componentChunkserver + "/" + pool }

// recordedTarget returns the one disk that holds the metadata. The record stays when the choice of disks changes.
func recordedTarget(in backend.Input) []*v1alpha1.StorageTarget {
	record := in.FileSystem.Status.Metadata
	return slices.DeleteFunc(assign.TargetsOf(in, v1alpha1.RoleMetadata, "", record.Node), func(t *v1alpha1.StorageTarget) bool {
		return t.Name != record.Target
	})
}

// poolTargets returns the disks of a pool on a node, by name.
func poolTargets(in backend.Input, pool, node string) []*v1alpha1.StorageTarget {
	return assign.TargetsOf(in, v1alpha1.RoleStorage, pool, node)
}

// Nodes returns the FileSystemNodes.
func (Backend) Nodes(in backend.Input) []v1alpha1.FileSystemNode {
	in = in.Indexed()
	return assign.FileSystemNodes(in, assign.Facts(in.FileSystem, chosenPort(in.FileSystem)), members(in))
}

// members returns the servers by node, each with its configuration.
func members(in backend.Input) map[string][]v1alpha1.NodeMember {
	fs, nodes := in.FileSystem, map[string][]v1alpha1.NodeMember{}
	if fs.Status.Metadata == nil {
		return nodes
	}
	tell := func(node, daemon string, member v1alpha1.NodeMember, disks []*v1alpha1.StorageTarget, pinning *v1alpha1.CPUPinning) {
		member.Targets = slices.Grow(member.Targets, len(disks))
		for _, t := range disks {
			member.Targets = append(member.Targets, assign.MemberTarget(fs, t))
		}
		assign.InitializedOn(fs, member.Targets)
		podspec.Bind(in, &member, node, daemon, pinning)
		nodes[node] = append(nodes[node], member)
	}
	var disks []*v1alpha1.StorageTarget
	if assign.OnDevices(fs.Spec.MetadataServers.Targets) {
		disks = recordedTarget(in)
	}
	tell(fs.Status.Metadata.Node, componentMaster, backend.Member(v1alpha1.RoleMetadata, componentMaster), disks,
		fs.Spec.MetadataServers.CPUPinning)
	for _, node := range metaloggerNodes(fs, in.Nodes) {
		tell(node.Name, componentMetalogger, backend.Member(v1alpha1.RoleMetadataBackup, componentMetalogger), nil, nil)
	}
	for _, pool := range fs.Spec.StoragePools {
		record, _ := in.Pool(pool.Name)
		for _, node := range record.Nodes {
			member := backend.Member(v1alpha1.RoleStorage, chunkserverDaemon(pool.Name))
			disks = nil
			if assign.OnDevices(pool.Targets) {
				disks = poolTargets(in, pool.Name, node)
			}
			tell(node, chunkserverDaemon(pool.Name), member, disks, pool.CPUPinning)
		}
	}
	return nodes
}

// mountedTargets gives a container the disks of this filesystem.
func (b *builder) mountedTargets(pod *corev1.PodTemplateSpec, c *corev1.Container) {
	podspec.MountTargets(b.in.FileSystem, pod, c)
}
