package moosefs

import (
	"encoding/json"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"parallelfs.dev/operator/api/v1alpha1"
	"parallelfs.dev/operator/internal/backend"
	"parallelfs.dev/operator/internal/node/spec"
)

const (
	// localDirectory is where pods find what differs from node to node: a file for each node, named like it.
	localDirectory = "/etc/parallelfs-local"
	localFile      = localDirectory + "/$(NODE_NAME)"
	localVolume    = "local"
	// maxConfigMap is how much a ConfigMap may hold (the API server's limit is 1 MiB, with its metadata).
	maxConfigMap = 1000 << 10
)

// onDevices is true when the targets of a role are disks, and false when they are directories.
func onDevices(targets v1alpha1.TargetsSpec) bool { return len(targets.Directories) == 0 }

// hasLocal is true when a daemon is told something that differs from node to node.
func hasLocal(targets v1alpha1.TargetsSpec, pinning *v1alpha1.CPUPinning) bool {
	return onDevices(targets) || bound(pinning)
}

// chunkserverInstance is the name of a pool's chunkserver among the daemons of a node.
func chunkserverInstance(pool string) string { return componentChunkserver + "/" + pool }

func targetPath(fs *v1alpha1.FileSystem, target string) string {
	return spec.TargetPath(fs.Namespace, fs.Name, target)
}

// metadataTargets are the disks for the master on a node, by name.
func metadataTargets(in backend.Input, node string) []v1alpha1.StorageTarget {
	return targets(in, func(t v1alpha1.StorageTargetSpec) bool {
		return t.Role == v1alpha1.RoleMetadata && t.Node == node
	})
}

// recordedTarget is the one disk that holds the metadata; the record outlives a change of what is chosen.
func recordedTarget(in backend.Input) []v1alpha1.StorageTarget {
	record := in.FileSystem.Status.Metadata
	return slices.DeleteFunc(metadataTargets(in, record.Node), func(t v1alpha1.StorageTarget) bool { return t.Name != record.Target })
}

// poolTargets are the disks of a pool on a node, by name.
func poolTargets(in backend.Input, pool, node string) []v1alpha1.StorageTarget {
	return targets(in, func(t v1alpha1.StorageTargetSpec) bool {
		return t.Role == v1alpha1.RoleStorage && t.StoragePool == pool && t.Node == node
	})
}

func targets(in backend.Input, wanted func(t v1alpha1.StorageTargetSpec) bool) []v1alpha1.StorageTarget {
	var out []v1alpha1.StorageTarget
	for _, t := range in.Targets {
		if wanted(t.Spec) {
			out = append(out, t)
		}
	}
	slices.SortFunc(out, func(a, b v1alpha1.StorageTarget) int { return strings.Compare(a.Name, b.Name) })
	return out
}

// proven returns the time since which the agent has called the disk proven, and why it does not, in words that follow
// "its disk: ".
func proven(t v1alpha1.StorageTarget) (since metav1.Time, why string) {
	ready := condition(t, v1alpha1.ConditionReady)
	switch {
	case ready == nil:
		return metav1.Time{}, "no agent has looked at it yet; node " + t.Spec.Node + " needs the label " + v1alpha1.LabelAgent
	case ready.Status == metav1.ConditionTrue:
		return ready.LastTransitionTime, ""
	default:
		return ready.LastTransitionTime, ready.Reason + ": " + ready.Message
	}
}

// finished is true when a disk was made a target once: it may hold data.
func finished(t v1alpha1.StorageTarget) bool {
	return t.Status.Provisioned != nil && t.Status.Provisioned.Finished != nil
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
		if bound(pinning) {
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
		if record, ok := poolRecord(fs, pool.Name); ok && hasLocal(pool.Targets, pool.CPUPinning) {
			for _, node := range record.Nodes {
				told(node, chunkserverInstance(pool.Name), poolTargets(b.in, pool.Name, node), pool.CPUPinning)
			}
		}
	}
	if len(nodes) == 0 {
		return nil, nil
	}
	data, length := map[string]string{}, 0
	for node, local := range nodes {
		raw, err := json.Marshal(local) // without indentation: there may be many nodes
		if err != nil {
			return nil, err
		}
		data[node] = string(raw)
		length += len(node) + len(raw)
	}
	if length > maxConfigMap {
		return nil, backend.Invalid(v1alpha1.ReasonInvalidSpec,
			"the disks of this filesystem take %d bytes to list, and a ConfigMap holds %d; split it into several FileSystems", length, maxConfigMap)
	}
	return &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Name: localMapName(fs), Namespace: fs.Namespace}, Data: data,
	}, nil
}

func localMapName(fs *v1alpha1.FileSystem) string { return childName(fs, "moosefs-local") }

// localTargets are what a daemon is told of its disks. Only the data of a storage target can be moved elsewhere.
func (b *builder) localTargets(disks []v1alpha1.StorageTarget) []spec.Target {
	var out []spec.Target
	for _, t := range disks {
		local := spec.Target{
			Name: t.Name, Path: targetPath(b.in.FileSystem, t.Name),
			Remove: t.Spec.Remove && t.Spec.Role == v1alpha1.RoleStorage,
		}
		if finished(t) {
			local.UUID = t.Status.Provisioned.UUID
		}
		out = append(out, local)
	}
	return out
}

// local mounts what differs from node to node, where a daemon is told something of it. It is mounted as a directory,
// because a single file of a ConfigMap would never change in a running pod.
func (b *builder) local(pod *corev1.PodTemplateSpec, c *corev1.Container, run spec.Run) {
	if run.Local == "" {
		return
	}
	pod.Spec.Volumes = append(pod.Spec.Volumes, corev1.Volume{Name: localVolume, VolumeSource: corev1.VolumeSource{
		ConfigMap: &corev1.ConfigMapVolumeSource{LocalObjectReference: corev1.LocalObjectReference{Name: localMapName(b.in.FileSystem)}}}})
	c.VolumeMounts = append(c.VolumeMounts, corev1.VolumeMount{Name: localVolume, MountPath: localDirectory, ReadOnly: true})
}

// mountedTargets gives a container the disks of this filesystem that are mounted on the node, and those that the agent
// mounts later.
func (b *builder) mountedTargets(pod *corev1.PodTemplateSpec, c *corev1.Container) {
	fs := b.in.FileSystem
	b.hostDirectory(pod, c, "targets", spec.TargetsDirectory(fs.Namespace, fs.Name), new(corev1.MountPropagationHostToContainer))
}

func condition(t v1alpha1.StorageTarget, name string) *metav1.Condition {
	return meta.FindStatusCondition(t.Status.Conditions, name)
}
