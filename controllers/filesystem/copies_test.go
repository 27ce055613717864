//go:build envtest

package filesystem_test

import (
	"encoding/json"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"parallelfs.dev/operator/api/v1alpha1"
	"parallelfs.dev/operator/controllers/filesystem"
	"parallelfs.dev/operator/internal/node/spec"
)

// copyJobs returns the Jobs that read copies of the metadata back and have not ended.
func (w *world) copyJobs() (out []batchv1.Job) {
	w.t.Helper()
	var jobs batchv1.JobList
	w.Expect(server.Client.List(w.ctx, &jobs, client.InNamespace(w.namespace), client.MatchingLabels{v1alpha1.LabelCopies: "scratch"})).To(Succeed())
	for i := range jobs.Items {
		if job := &jobs.Items[i]; len(job.Status.Conditions) == 0 && job.DeletionTimestamp.IsZero() {
			out = append(out, *job)
		}
	}
	return out
}

// reads completes the reads of the copies that have to be read, and returns their number.
func (w *world) reads(clock *clocktesting.FakePassiveClock, answer spec.RecoveryAnswer) (read int) {
	w.t.Helper()
	for {
		w.settle()
		jobs := w.copyJobs()
		if len(jobs) == 0 {
			return read
		}
		w.Expect(jobs).To(HaveLen(1), "one after the other")
		job := &jobs[0]
		line, err := json.Marshal(answer)
		w.Expect(err).NotTo(HaveOccurred())
		pod := &corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{
				Name: job.Name + ".pod", Namespace: w.namespace, Labels: job.Spec.Template.Labels,
				OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(job, batchv1.SchemeGroupVersion.WithKind("Job"))},
			},
			Spec: corev1.PodSpec{NodeName: w.nodes[1], Containers: []corev1.Container{{Name: "recovery", Image: "none"}}},
		}
		w.Expect(server.Client.Create(w.ctx, pod)).To(Succeed())
		pod.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: "recovery", State: corev1.ContainerState{
			Terminated: &corev1.ContainerStateTerminated{Reason: "Completed", Message: string(line) + "\n", FinishedAt: metav1.Now()}}}}
		w.Expect(server.Client.Status().Update(w.ctx, pod)).To(Succeed())
		how := batchv1.JobComplete
		if len(answer.Found) == 0 {
			how = batchv1.JobFailed
		}
		w.ended(job, how, time.Now())
		clock.SetTime(clock.Now().Add(time.Second))
		read++
	}
}

func TestARestartOfTheMasterWaitsForAProvenCopyOfItsMetadataAndACopyWithAHoleIsFetchedAgain(t *testing.T) {
	w := anotherWorld(t)
	clock := clocktesting.NewFakePassiveClock(time.Date(2026, 11, 23, 12, 0, 0, 0, time.UTC))
	w.alter = func(operator *filesystem.Reconciler) { operator.Clock = clock }
	w.alive = true
	w.fileSystem(func(fs *v1alpha1.FileSystem) {
		fs.Spec.MooseFS.Metaloggers = &v1alpha1.MetaloggersSpec{NodeSelector: v1alpha1.NodeSelector{"storage-of": w.namespace}}
	})
	w.settle()
	w.finishJobs()
	w.settle()
	w.Expect(w.ready()).To(And(HaveField("Status", metav1.ConditionTrue), HaveField("Reason", v1alpha1.ReasonHealthy)), "it waits for nothing")
	w.Expect(w.condition(v1alpha1.ConditionMetadataCopies)).To(And(HaveField("Status", metav1.ConditionUnknown),
		HaveField("Reason", v1alpha1.ReasonCopiesUnread), HaveField("Message", HavePrefix("no copy of the metadata is proven"))))
	w.Expect(w.copyJobs()).To(HaveLen(1))
	w.Expect(w.copyJobs()[0].Spec.Template.Labels).NotTo(HaveKey(v1alpha1.LabelRecovery))

	master := func() string { return w.uids()["scratch-master."+w.nodes[0]] }
	before := master()
	w.change(func(fs *v1alpha1.FileSystem) {
		fs.Spec.MooseFS.Config.Metadata = v1alpha1.Options{"BACK_META_KEEP_PREVIOUS": "5"}
	})
	w.settle()
	w.Expect(master()).To(Equal(before))
	w.Expect(w.condition(v1alpha1.ConditionReconciling).Message).To(ContainSubstring("a copy of the metadata is proven (to do without, set"))

	whole := spec.RecoveryAnswer{Found: []spec.RecoveryFound{{Version: 500, ID: "6B046567398B0398", Time: "2026-11-23T12:00:00Z"}}}
	w.Expect(w.reads(clock, whole)).To(BeNumerically(">=", 4), "they follow a master that was started anew")
	w.Expect(master()).NotTo(Equal(before))
	w.Expect(w.condition(v1alpha1.ConditionMetadataCopies)).To(And(HaveField("Status", metav1.ConditionTrue),
		HaveField("Message", HavePrefix("all 3 copies of the metadata are proven"))))
	for _, s := range w.get().Status.MetadataCopies {
		w.Expect(s).To(And(HaveField("Result", v1alpha1.MetadataCopyProven), HaveField("Proven", Not(BeNil())), HaveField("Job", HavePrefix("scratch-copy-"))))
	}
	w.Expect(w.ready().Reason).To(Equal(v1alpha1.ReasonHealthy))
	c := server.Killable(t, never)
	w.Expect(w.reconcile(c)).To(Succeed())
	w.Expect(c.Writes()).To(BeEmpty())

	clock.SetTime(clock.Now().Add(24 * time.Hour))
	holed := spec.RecoveryAnswer{Found: []spec.RecoveryFound{}, Message: "hole in change files"}
	pods := w.uids()
	w.Expect(w.reads(clock, holed)).To(Equal(3))
	w.messages()
	clock.SetTime(clock.Now().Add(time.Minute))
	w.settle()
	w.Expect(w.reads(clock, holed)).To(BeNumerically(">=", 3))
	w.Expect(w.ready().Status).To(Equal(metav1.ConditionTrue))
	w.Expect(w.condition(v1alpha1.ConditionDegraded)).To(And(HaveField("Status", metav1.ConditionTrue), HaveField("Reason", v1alpha1.ReasonCopiesUnproven)))
	after := w.uids()
	for _, node := range w.nodes {
		w.Expect(after["scratch-metalogger."+node]).NotTo(Equal(pods["scratch-metalogger."+node]), "it fetches its copy again")
	}
	w.Expect(master()).To(Equal(pods["scratch-master."+w.nodes[0]]))
	w.Expect(w.messages()).To(ContainElement(HavePrefix("Warning CopiesUnproven ")))

	clock.SetTime(clock.Now().Add(time.Minute))
	w.Expect(w.reads(clock, whole)).To(Equal(3))
	w.Expect(w.condition(v1alpha1.ConditionMetadataCopies).Status).To(Equal(metav1.ConditionTrue))
	w.Expect(w.condition(v1alpha1.ConditionDegraded)).To(BeZero())
}
