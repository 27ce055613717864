package filesystem

import (
	"testing"
	"time"

	. "github.com/onsi/gomega"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"parallelfs.dev/operator/api/v1alpha1"
	"parallelfs.dev/operator/controllers/admitted"
	"parallelfs.dev/operator/controllers/filesystem/derive"
	"parallelfs.dev/operator/internal/backend"
)

func TestPodsThatAdmissionChangedAreNamedInACondition(t *testing.T) {
	g := NewWithT(t)
	template := corev1.PodTemplateSpec{
		ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{v1alpha1.LabelComponent: "master"}},
		Spec: corev1.PodSpec{
			InitContainers: []corev1.Container{{Name: "install", Image: "node:1"}}, Containers: []corev1.Container{{Name: "master", Image: "daemon:4"}},
		},
	}
	admitted.Mark(&template)
	pod := &corev1.Pod{ObjectMeta: template.ObjectMeta, Spec: *template.Spec.DeepCopy()}
	pod.Spec.NodeName = "n1"
	fs := &v1alpha1.FileSystem{}
	condition := func() *metav1.Condition {
		derive.Admitted(fs, backend.Input{Pods: []backend.Pod{podFacts(pod, nil)}})
		return meta.FindStatusCondition(fs.Status.Conditions, v1alpha1.ConditionPodsAsAsked)
	}
	g.Expect(condition()).To(BeNil())
	pod.Spec.InitContainers[0].Image = "mirror/node:1"
	pod.Spec.Containers[0].Resources.Limits = corev1.ResourceList{corev1.ResourceMemory: resource.MustParse("512Mi")}
	g.Expect(condition()).To(And(HaveField("Status", metav1.ConditionFalse), HaveField("Reason", v1alpha1.ReasonChangedByAdmission), HaveField("Message",
		"a LimitRange or a webhook changed pods; exclude this namespace from it, or set spec.pods.resources: "+
			"master.n1: the memory of container master is limited to 512Mi, and 1 more change")))
	g.Expect(podFacts(pod, nil).NodeImage).To(Equal("node:1"), "an image from a mirror is that of this operator")
	pod.Spec = *template.Spec.DeepCopy()
	g.Expect(condition()).To(BeNil())
}

func TestAJobOfAFileSystemDoesNotWaitForAnInjectedContainer(t *testing.T) {
	job := &batchv1.Job{ObjectMeta: metav1.ObjectMeta{Name: "scratch-configure", UID: "1"}}
	job.Spec.Template.Spec.Containers = []corev1.Container{{Name: "configure"}}
	at := metav1.NewTime(time.Unix(1000, 0))
	pod := func(code int32) []corev1.Pod {
		return []corev1.Pod{{
			ObjectMeta: metav1.ObjectMeta{Name: "scratch-configure-x7k2p", OwnerReferences: []metav1.OwnerReference{{UID: "1", Controller: new(true)}}},
			Status: corev1.PodStatus{ContainerStatuses: []corev1.ContainerStatus{
				{Name: "configure", State: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{ExitCode: code, Message: "no license", FinishedAt: at}}},
				{Name: "istio-proxy", State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{}}},
			}},
		}}
	}
	t.Run("when it has ended well", func(t *testing.T) {
		g := NewWithT(t)
		facts := jobFacts(job, pod(0))
		g.Expect(facts).To(Equal(backend.Job{Name: "scratch-configure", Succeeded: true, Ended: at.Time, Outlasting: "istio-proxy"}))
		fs := &v1alpha1.FileSystem{}
		derive.Admitted(fs, backend.Input{Jobs: []backend.Job{facts}})
		g.Expect(meta.FindStatusCondition(fs.Status.Conditions, v1alpha1.ConditionPodsAsAsked).Message).To(ContainSubstring(
			"Job scratch-configure: container istio-proxy was added, and still runs although the Job's own have ended"))
	})
	t.Run("when it has failed", func(t *testing.T) {
		g := NewWithT(t)
		facts := jobFacts(job, pod(1))
		g.Expect(facts.Failed).To(BeTrue())
		g.Expect(facts.Message).To(HavePrefix("no license; container istio-proxy of pod scratch-configure-x7k2p still runs"))
	})
	t.Run("but for its own", func(t *testing.T) {
		g := NewWithT(t)
		running := pod(0)
		running[0].Status.ContainerStatuses[0].State = corev1.ContainerState{Running: &corev1.ContainerStateRunning{}}
		g.Expect(jobFacts(job, running)).To(Equal(backend.Job{Name: "scratch-configure"}))
	})
}
