package children_test

import (
	"testing"
	"time"

	mpiv2 "github.com/kubeflow/mpi-operator/pkg/apis/kubeflow/v2beta1"
	. "github.com/onsi/gomega"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"parallelfs.dev/operator/controllers/admitted"
	"parallelfs.dev/operator/controllers/benchmarkrun/children"
)

var now = time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)

func templateOf(role string) corev1.PodTemplateSpec {
	return corev1.PodTemplateSpec{
		ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{children.LabelRole: role}},
		Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: children.ContainerName, Image: "ior:4"}}},
	}
}

// ran returns a pod whose tool ended this long ago, beside an injected container that runs.
func ran(role, name string, code int32, ago time.Duration) corev1.Pod {
	t := templateOf(role)
	pod := corev1.Pod{ObjectMeta: t.ObjectMeta, Spec: t.Spec}
	pod.Name, pod.Status.Phase = name, corev1.PodRunning
	pod.Spec.Containers = append(pod.Spec.Containers, corev1.Container{Name: "istio-proxy", Image: "proxyv2:1"})
	pod.Status.ContainerStatuses = []corev1.ContainerStatus{
		{Name: children.ContainerName, State: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{
			ExitCode: code, FinishedAt: metav1.NewTime(now.Add(-ago))}}},
		{Name: "istio-proxy", State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{}}},
	}
	return pod
}

func TestAJobDoesNotWaitForAnInjectedContainerAfterItsTool(t *testing.T) {
	job := func() *batchv1.Job {
		return &batchv1.Job{Spec: batchv1.JobSpec{Template: templateOf(children.RoleClient)}}
	}
	for name, c := range map[string]struct {
		child             children.Child
		succeeded, failed bool
		outlasting        string
	}{
		"it has ended well": {children.Child{Object: job(), Pods: []corev1.Pod{ran(children.RoleClient, "a", 0, time.Minute)}}, true, false, "container istio-proxy of pod a"},
		"it has failed":     {children.Child{Object: job(), Pods: []corev1.Pod{ran(children.RoleClient, "a", 1, time.Minute)}}, false, true, "container istio-proxy of pod a"},
		"it ended just now": {children.Child{Object: job(), Pods: []corev1.Pod{ran(children.RoleClient, "a", 0, time.Second)}}, false, false, "container istio-proxy of pod a"},
		"on one of two servers": {children.Child{
			Object: &batchv1.Job{Spec: batchv1.JobSpec{Template: templateOf(children.RoleServer), Completions: new(int32(2))}},
			Pods:   []corev1.Pod{ran(children.RoleServer, "a", 0, time.Minute)},
		}, false, false, ""},
		"the launcher of an MPIJob": {children.Child{
			Object: &mpiv2.MPIJob{Spec: mpiv2.MPIJobSpec{MPIReplicaSpecs: map[mpiv2.MPIReplicaType]*mpiv2.ReplicaSpec{
				mpiv2.MPIReplicaTypeLauncher: {Template: templateOf(children.RoleLauncher)}, mpiv2.MPIReplicaTypeWorker: {Template: templateOf(children.RoleWorker)},
			}}},
			Pods: []corev1.Pod{ran(children.RoleLauncher, "l", 0, time.Minute), {ObjectMeta: templateOf(children.RoleWorker).ObjectMeta}},
		}, true, false, "container istio-proxy of pod l"},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			child := c.child
			child.Settle(now)
			g.Expect(child.Succeeded).To(Equal(c.succeeded))
			g.Expect(child.Failed).To(Equal(c.failed))
			g.Expect(child.Outlasting).To(Equal(c.outlasting))
		})
	}
	t.Run("and a tool that runs is left alone", func(t *testing.T) {
		g := NewWithT(t)
		child := children.Child{Object: job(), Pods: []corev1.Pod{ran(children.RoleClient, "a", 0, time.Minute)}}
		child.Pods[0].Status.ContainerStatuses[0].State = corev1.ContainerState{Running: &corev1.ContainerStateRunning{}}
		child.Settle(now)
		g.Expect(child.Over()).To(BeFalse())
		g.Expect(child.Outlasting).To(BeEmpty())
	})
	t.Run("and a worker that has failed beside it ends the repetition", func(t *testing.T) {
		child := children.Child{Object: &mpiv2.MPIJob{}, Pods: []corev1.Pod{ran(children.RoleWorker, "w", 255, time.Minute)}}
		NewWithT(t).Expect(child.Over()).To(BeTrue())
	})
}

func TestPodsAreComparedWithWhatTheOperatorAskedFor(t *testing.T) {
	limited := func(spec *corev1.PodSpec) {
		spec.Containers[0].Resources.Limits = corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("500m")}
	}
	t.Run("when a LimitRange changes a pod", func(t *testing.T) {
		g := NewWithT(t)
		child := children.Child{Object: &batchv1.Job{Spec: batchv1.JobSpec{Template: templateOf(children.RoleClient)}}}
		child.Pods = []corev1.Pod{ran(children.RoleClient, "a", 0, time.Minute), ran(children.RoleClient, "b", 0, time.Minute)}
		limited(&child.Pods[0].Spec)
		limited(&child.Pods[1].Spec)
		g.Expect(child.PodChanges()).To(Equal([]string{"the cpu of container benchmark is limited to 500m", "container istio-proxy (proxyv2:1) was added"}))
	})
	t.Run("when a webhook changes the job itself", func(t *testing.T) {
		g := NewWithT(t)
		job := &batchv1.Job{Spec: batchv1.JobSpec{Template: templateOf(children.RoleClient)}}
		job.Annotations = map[string]string{children.AnnotationAsked: admitted.Encode(children.AskedOf(job))}
		limited(&job.Spec.Template.Spec)
		child := children.Child{Object: job, Pods: []corev1.Pod{{ObjectMeta: job.Spec.Template.ObjectMeta, Spec: job.Spec.Template.Spec}}}
		g.Expect(child.PodChanges()).To(Equal([]string{"the cpu of container benchmark is limited to 500m"}))
	})
}
