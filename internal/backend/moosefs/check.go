package moosefs

import (
	"slices"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"parallelfs.dev/operator/api/v1alpha1"
	"parallelfs.dev/operator/internal/backend"
	"parallelfs.dev/operator/internal/backend/moosefs/cli"
	"parallelfs.dev/operator/internal/backend/shared/podspec"
	"parallelfs.dev/operator/internal/node/spec"
)

const (
	componentCheck = "check"
	// checkSeconds limits a check, including everything that its pod waits for, such as an image.
	checkSeconds = 15 * 60
)

// CheckJob queries the master for the results of its own scans, on the master's node.
func (Backend) CheckJob(in backend.Input, name string) (*batchv1.Job, error) {
	in = in.Indexed()
	fs := in.FileSystem
	version := backend.VersionOf(fs, componentMaster)
	image, ok := in.Images.Daemons["moosefs-"+version]
	if !ok {
		return nil, backend.Invalid(v1alpha1.ReasonInvalidSpec, "the operator has no image for MooseFS %s", version)
	}
	master, ok := masterNode(in)
	if !ok {
		return nil, backend.Invalid(v1alpha1.ReasonNoNodes, "the node of the master is not in the cluster, or has no address that the filesystem can use; bring it back")
	}
	pod := pods(in).Template(podspec.Workload{Component: componentCheck})
	pod.Labels = nil
	pod.Spec.RestartPolicy = corev1.RestartPolicyNever
	pod.Spec.TerminationGracePeriodSeconds = new(int64(30))
	pod.Spec.PriorityClassName = fs.Spec.Pods.PriorityClassName // it must not preempt a daemon
	pod.Spec.Affinity = podspec.OnNodes(master.Name)
	c := pods(in).Container(componentCheck, image, "check", "", "")
	c.SecurityContext = pods(in).Unprivileged()
	// The check does not use the configuration of servers.
	c.VolumeMounts = slices.DeleteFunc(c.VolumeMounts, func(m corev1.VolumeMount) bool { return m.Name == "" })
	podspec.TellJob(pod, &c, "check", spec.Check{
		Backend: string(v1alpha1.MooseFS), Version: version,
		Commands: cli.AskCheck(version, backend.Address(master.IP, portsOf(fs).clients())),
	})
	pod.Spec.Containers = []corev1.Container{c}
	return &batchv1.Job{
		TypeMeta:   metav1.TypeMeta{APIVersion: batchv1.SchemeGroupVersion.String(), Kind: "Job"},
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: fs.Namespace},
		Spec:       batchv1.JobSpec{BackoffLimit: new(int32(0)), ActiveDeadlineSeconds: new(int64(checkSeconds)), Template: *pod},
	}, nil
}

// ReadCheck reads the results of the master's scans.
func (Backend) ReadCheck(version string, outputs [][]byte) (spec.CheckAnswer, error) {
	return cli.ReadCheck(version, outputs) //nolint:wrapcheck // it names the tool
}
