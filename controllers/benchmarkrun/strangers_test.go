package benchmarkrun

import (
	"testing"

	mpiv2 "github.com/kubeflow/mpi-operator/pkg/apis/kubeflow/v2beta1"
	. "github.com/onsi/gomega"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"parallelfs.dev/operator/api/v1alpha1"
	"parallelfs.dev/operator/controllers/benchmarkrun/children"
	"parallelfs.dev/operator/controllers/benchmarkrun/turns"
)

func TestAPriorityThatIsTooHighForARunIsRefused(t *testing.T) {
	for name, c := range map[string]struct {
		value int32
		says  string
	}{
		"as high as the limit": {value: 1000},
		"higher": {1001, "spec.priorityClassName: PriorityClass urgent has the value 1001, and runs may have 1000 at most; name a lower one, or none. " +
			"The Helm chart's value runs.maxPriority is that limit"},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			r, run := many(t, 2)
			r.MaxPriority = 1000
			run.Spec.PriorityClassName = "urgent"
			w, err := r.gather(t.Context(), run)
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(w.Invalid).To(BeEmpty(), "the API server refuses pods of a class that is not there")
			g.Expect(r.Client.Create(t.Context(), &schedulingv1.PriorityClass{ObjectMeta: metav1.ObjectMeta{Name: "urgent"}, Value: c.value})).To(Succeed())
			w, err = r.gather(t.Context(), run)
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(w.Invalid).To(Equal(c.says))
		})
	}
}

func TestARunBelievesNoJobAndNoPodOfStrangers(t *testing.T) {
	g := NewWithT(t)
	r, run := many(t, 2)
	other := run.DeepCopy()
	other.Name, other.UID, other.ResourceVersion = "younger", "younger", ""
	turn := turns.Turn{Repetition: 1, Attempt: 1}
	job := turns.JobName(run.Name, turn.Suffix())
	labeled := func(name, of string, owner ...metav1.OwnerReference) metav1.ObjectMeta {
		return metav1.ObjectMeta{
			Namespace: run.Namespace, Name: name, UID: types.UID(name), OwnerReferences: owner,
			Labels: map[string]string{v1alpha1.LabelComponent: children.Component, v1alpha1.LabelBenchmarkRun: of, children.LabelChild: job},
		}
	}
	by := func(kind, name string, uid types.UID) metav1.OwnerReference {
		return metav1.OwnerReference{Kind: kind, Name: name, UID: uid, Controller: new(true)}
	}
	pod := func(meta metav1.ObjectMeta) *corev1.Pod {
		return &corev1.Pod{ObjectMeta: meta, Status: corev1.PodStatus{Phase: corev1.PodRunning}}
	}
	mirror := pod(labeled("mirror", run.Name, by("Job", "launcher", "launcher")))
	mirror.Annotations = map[string]string{corev1.MirrorPodAnnotationKey: "hash"}
	mpi := &mpiv2.MPIJob{ObjectMeta: labeled(job, run.Name, by("BenchmarkRun", run.Name, run.UID))}
	launcher := &batchv1.Job{ObjectMeta: metav1.ObjectMeta{
		Namespace: run.Namespace, Name: job + launcherSuffix, UID: "launcher", OwnerReferences: []metav1.OwnerReference{by("MPIJob", job, mpi.UID)},
	}}
	for _, o := range []client.Object{
		other, mpi, launcher, pod(labeled("worker", run.Name, by("MPIJob", job, mpi.UID))), pod(labeled("launched", run.Name, by("Job", launcher.Name, launcher.UID))),
		&batchv1.Job{ObjectMeta: labeled("strangers", other.Name)},
		pod(labeled("bare", run.Name)), pod(labeled("of-strangers", run.Name, by("Job", "strangers", "strangers"))), mirror,
	} {
		g.Expect(r.Client.Create(t.Context(), o)).To(Succeed())
	}
	w, err := r.gather(t.Context(), run)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(w.Active).To(BeEmpty(), "a stranger's Job with another run's label does not show that this run measures")
	g.Expect(w.Lingering).To(BeEmpty())
	g.Expect(w.Children).To(HaveLen(1))
	g.Expect(w.Children[0].Pods).To(ConsistOf(HaveField("Name", "worker"), HaveField("Name", "launched")))

	g.Expect(r.Client.Delete(t.Context(), mpi)).To(Succeed())
	g.Expect(r.Client.Delete(t.Context(), launcher)).To(Succeed())
	w, err = r.gather(t.Context(), run)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(w.Lingering).To(ConsistOf("worker", "launched"), "these were its own, and go on although their jobs have gone")
	g.Expect(r.Client.Create(t.Context(), &batchv1.Job{ObjectMeta: labeled("anothers", other.Name, by("BenchmarkRun", other.Name, other.UID))})).To(Succeed())
	w, err = r.gather(t.Context(), run)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(w.Active).To(Equal("younger"))
}

func TestAPodThatHasTheNameOfAClientNowIsNotThatClient(t *testing.T) {
	g := NewWithT(t)
	r, run := many(t, 2)
	w, err := r.gather(t.Context(), run)
	g.Expect(err).NotTo(HaveOccurred())
	pod, err := r.mounterNow(t.Context(), w, "client-001")
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(pod).To(HaveField("Name", "scratch-client-client-001"))
	g.Expect(r.Client.Delete(t.Context(), pod)).To(Succeed())
	forged := clientPod("client-001", corev1.ConditionTrue)
	forged.OwnerReferences[0].UID = "other"
	g.Expect(r.Client.Create(t.Context(), forged)).To(Succeed())
	g.Expect(r.mounterNow(t.Context(), w, "client-001")).To(BeNil())
}
