package beegfs

import (
	"fmt"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"parallelfs.dev/operator/api/v1alpha1"
	"parallelfs.dev/operator/internal/backend"
	"parallelfs.dev/operator/internal/backend/beegfs/cli"
	"parallelfs.dev/operator/internal/node/spec"
)

const (
	componentCheck = "check"
	// checkDirectory is where beegfs-fsck builds its database, which it removes only at its next start.
	checkDirectory = "/check"
	// checkSpace is how much the database may take of the node's disk before the pod is evicted. beegfs-fsck itself ends when the disk has
	// too little room.
	checkSpace = "128Gi"
	// checkDeadline ends a check that waits for an event that never comes.
	checkDeadline = 7 * 24 * time.Hour
)

// CheckJob runs beegfs-fsck on the node of the management service, while the filesystem serves.
func (Backend) CheckJob(in backend.Input, name string) (*batchv1.Job, error) {
	node, ok := managementNode(in)
	if !ok {
		return nil, backend.Invalid(v1alpha1.ReasonNoNodes,
			"the node of the management service is not in the cluster, or has no address that the filesystem can use; bring it back")
	}
	fs, version := in.FileSystem, backend.Version(in.FileSystem)
	client, _ := common(fs, node.IP)
	withoutDevices(client)
	b := builder{view: &view{in: in}, management: node, told: map[string][]byte{}}
	object, err := b.job(jobSpec{
		name: name, component: componentCheck, verb: "check", nodes: []string{fs.Status.Metadata.Node}, deadline: checkDeadline,
		told: spec.Check{Backend: string(v1alpha1.BeeGFS), Version: version, Commands: [][]string{cli.Fsck(version, checkDirectory, client)}},
	})
	if err != nil {
		return nil, err
	}
	job := object.(*batchv1.Job)
	job.Labels, job.Spec.Template.Labels = nil, nil
	pod := &job.Spec.Template.Spec
	pod.Volumes = append(pod.Volumes, corev1.Volume{Name: "check", VolumeSource: corev1.VolumeSource{
		EmptyDir: &corev1.EmptyDirVolumeSource{SizeLimit: new(resource.MustParse(checkSpace))}}})
	pod.Containers[0].VolumeMounts = append(pod.Containers[0].VolumeMounts, corev1.VolumeMount{Name: "check", MountPath: checkDirectory})
	return job, nil
}

// ReadCheck reads what beegfs-fsck printed.
func (Backend) ReadCheck(_ string, outputs [][]byte) (spec.CheckAnswer, error) {
	if len(outputs) != 1 {
		return spec.CheckAnswer{}, fmt.Errorf("%d answers of one tool", len(outputs))
	}
	return cli.ReadFsck(outputs[0])
}
