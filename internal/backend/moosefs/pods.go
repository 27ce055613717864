package moosefs

import (
	corev1 "k8s.io/api/core/v1"

	"parallelfs.dev/operator/api/v1alpha1"
	"parallelfs.dev/operator/internal/backend"
)

// daemonGroup is the gid of the daemons' user in all images.
const daemonGroup int64 = 9421

// pods makes the pods of a filesystem.
func pods(in backend.Input) backend.Pods {
	return backend.Pods{FileSystem: in.FileSystem, Images: in.Images, Software: "moosefs", Group: daemonGroup}
}

// toldVolume holds what the node binary is told. The secret one belongs in the pods on the master's node only: a kubelet
// may read the Secrets of the pods on its node, and other nodes are not to know the operator's password.
func toldVolume(fs *v1alpha1.FileSystem, name string) corev1.Volume {
	if name == secretVolume {
		return backend.SecretVolume(name, secretName(fs))
	}
	return backend.ConfigVolume(name, configMapName(fs))
}

// The volumes that hold what the node binary is told.
const (
	configVolume = "config"
	secretVolume = "secret"
)

func (b *builder) pod(component, pool string, told ...string) *corev1.PodTemplateSpec {
	volumes := make([]corev1.Volume, len(told))
	for i, name := range told {
		volumes[i] = toldVolume(b.in.FileSystem, name)
	}
	return pods(b.in).Template(backend.Workload{Component: component, StoragePool: pool}, volumes...)
}

// daemon is a container that runs a verb of the node binary, told by a file of configVolume or secretVolume.
func (b *builder) daemon(name, verb, volume, file string) corev1.Container {
	return pods(b.in).Container(name, b.image, verb, volume, file)
}

func (b *builder) fuseDevice(pod *corev1.PodTemplateSpec, c *corev1.Container) {
	pod.Spec.Volumes = append(pod.Spec.Volumes, corev1.Volume{Name: "fuse", VolumeSource: corev1.VolumeSource{
		HostPath: &corev1.HostPathVolumeSource{Path: "/dev/fuse", Type: new(corev1.HostPathCharDev)}}})
	c.VolumeMounts = append(c.VolumeMounts, corev1.VolumeMount{Name: "fuse", MountPath: "/dev/fuse"})
}
