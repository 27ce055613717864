package backend

import (
	"encoding/json"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"parallelfs.dev/operator/api/v1alpha1"
	"parallelfs.dev/operator/internal/node/spec"
)

const (
	// localDirectory is where pods find what differs from node to node: a file for each node, named like it.
	localDirectory = "/etc/parallelfs-local"
	// LocalFile is the file of the pod's own node there: spec.Run.Local.
	LocalFile   = localDirectory + "/$(NODE_NAME)"
	localVolume = "local"
	// maxConfigMap is how much a ConfigMap may hold (the API server's limit is 1 MiB, with its metadata).
	maxConfigMap = 1000 << 10
)

// LocalMap is what differs from node to node, as a ConfigMap with a key for each node. Its content belongs in no template's
// hash: a daemon reads it when it starts, and a changed disk is no reason to restart all.
func LocalMap(fs *v1alpha1.FileSystem, name string, nodes map[string]spec.Local) (*corev1.ConfigMap, error) {
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
		return nil, Invalid(v1alpha1.ReasonInvalidSpec,
			"the disks of this filesystem take %d bytes to list, and a ConfigMap holds %d; split it into several FileSystems", length, maxConfigMap)
	}
	return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: fs.Namespace}, Data: data}, nil
}

// MountLocal gives a container the ConfigMap of LocalMap. It is mounted as a directory, because a single file of a ConfigMap
// would never change in a running pod.
func MountLocal(pod *corev1.PodTemplateSpec, c *corev1.Container, name string) {
	pod.Spec.Volumes = append(pod.Spec.Volumes, corev1.Volume{Name: localVolume, VolumeSource: corev1.VolumeSource{
		ConfigMap: &corev1.ConfigMapVolumeSource{LocalObjectReference: corev1.LocalObjectReference{Name: name}}}})
	c.VolumeMounts = append(c.VolumeMounts, corev1.VolumeMount{Name: localVolume, MountPath: localDirectory, ReadOnly: true})
}

// MountTargets gives a container the disks of a filesystem that are mounted on the node, and those that the agent mounts later.
func MountTargets(fs *v1alpha1.FileSystem, pod *corev1.PodTemplateSpec, c *corev1.Container) {
	HostDirectory(pod, c, "targets", spec.TargetsDirectory(fs.Namespace, fs.Name), new(corev1.MountPropagationHostToContainer))
}
