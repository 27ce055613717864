package moosefs

import (
	"slices"

	corev1 "k8s.io/api/core/v1"

	"parallelfs.dev/operator/api/v1alpha1"
	"parallelfs.dev/operator/internal/backend"
	"parallelfs.dev/operator/internal/node/spec"
)

// hasLocal is true when a daemon is told something that differs from node to node.
func hasLocal(targets v1alpha1.TargetsSpec, pinning *v1alpha1.CPUPinning) bool {
	return backend.OnDevices(targets) || backend.Bound(pinning)
}

// chunkserverInstance is the name of a pool's chunkserver among the daemons of a node.
func chunkserverInstance(pool string) string { return componentChunkserver + "/" + pool }

// metadataTargets are the disks for the master on a node, by name.
func metadataTargets(in backend.Input, node string) []v1alpha1.StorageTarget {
	return backend.TargetsOf(in, v1alpha1.RoleMetadata, "", node)
}

// recordedTarget is the one disk that holds the metadata; the record outlives a change of what is chosen.
func recordedTarget(in backend.Input) []v1alpha1.StorageTarget {
	record := in.FileSystem.Status.Metadata
	return slices.DeleteFunc(metadataTargets(in, record.Node), func(t v1alpha1.StorageTarget) bool { return t.Name != record.Target })
}

// poolTargets are the disks of a pool on a node, by name.
func poolTargets(in backend.Input, pool, node string) []v1alpha1.StorageTarget {
	return backend.TargetsOf(in, v1alpha1.RoleStorage, pool, node)
}

// localMap is what differs from node to node, nil when nothing does. Its content is in no template's hash: a daemon reads
// it when it starts, and a changed disk is no reason to restart all.
func (b *builder) localMap() (*corev1.ConfigMap, error) {
	fs, nodes := b.in.FileSystem, map[string]spec.Local{}
	told := func(node, instance string, disks []v1alpha1.StorageTarget, pinning *v1alpha1.CPUPinning) {
		if nodes[node].Daemons == nil {
			nodes[node] = spec.Local{Daemons: map[string]spec.LocalDaemon{}}
		}
		daemon := spec.LocalDaemon{Targets: b.localTargets(disks)}
		if backend.Bound(pinning) {
			to, known := b.in.Pinnings[node][instance]
			if !known {
				return // it waits until its CPUs are known, as for a disk
			}
			daemon.Pinning = &to
		}
		nodes[node].Daemons[instance] = daemon
	}
	if role := fs.Spec.Metadata; hasLocal(role.Targets, role.CPUPinning) {
		told(fs.Status.Metadata.Node, componentMaster, recordedTarget(b.in), role.CPUPinning)
	}
	for _, pool := range fs.Spec.StoragePools {
		if record, ok := backend.RecordedPool(fs, pool.Name); ok && hasLocal(pool.Targets, pool.CPUPinning) {
			for _, node := range record.Nodes {
				told(node, chunkserverInstance(pool.Name), poolTargets(b.in, pool.Name, node), pool.CPUPinning)
			}
		}
	}
	if len(nodes) == 0 {
		return nil, nil
	}
	return backend.LocalMap(fs, localMapName(fs), nodes)
}

func localMapName(fs *v1alpha1.FileSystem) string { return backend.ChildName(fs, "moosefs-local") }

// localTargets are what a daemon is told of its disks.
func (b *builder) localTargets(disks []v1alpha1.StorageTarget) []spec.Target {
	var out []spec.Target
	for _, t := range disks {
		out = append(out, backend.LocalTarget(b.in.FileSystem, t))
	}
	return out
}

// local mounts what differs from node to node, where a daemon is told something of it.
func (b *builder) local(pod *corev1.PodTemplateSpec, c *corev1.Container, run spec.Run) {
	if run.Local != "" {
		backend.MountLocal(pod, c, localMapName(b.in.FileSystem))
	}
}

// mountedTargets gives a container the disks of this filesystem.
func (b *builder) mountedTargets(pod *corev1.PodTemplateSpec, c *corev1.Container) {
	backend.MountTargets(b.in.FileSystem, pod, c)
}
