package beegfs

import (
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"parallelfs.dev/operator/internal/backend"
)

// Objects are the children of a BeeGFS filesystem.
func (Backend) Objects(in backend.Input) ([]client.Object, error) {
	b := builder{in: in, told: map[string][]byte{}}
	return b.jobs()
}

// builder collects the objects of one filesystem.
type builder struct {
	in backend.Input
	// management is the node of the management service.
	management backend.Node
	// told is what the node binary reads, by file name, in ToldDirectory. It goes into the ConfigMap.
	told map[string][]byte
}

// configVolume holds what the node binary is told, authVolume the shared secret.
const (
	configVolume = "config"
	authVolume   = "auth"
)

// pod is what all pods share, with what they are told and the shared secret.
func (b *builder) pod(w backend.Workload) *corev1.PodTemplateSpec {
	fs := b.in.FileSystem
	auth := backend.SecretVolume(authVolume, secretName(fs))
	return pods(b.in).Template(w, backend.ConfigVolume(configVolume, configMapName(fs)), auth)
}

// container runs a verb of the node binary in an image, told by a file of told, with the shared secret beside it.
func (b *builder) container(name, image, verb, file string) corev1.Container {
	c := pods(b.in).Container(name, image, verb, configVolume, file)
	c.VolumeMounts = append(c.VolumeMounts, corev1.VolumeMount{Name: authVolume, MountPath: authDirectory, ReadOnly: true})
	return c
}
