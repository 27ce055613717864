package benchmarkrun

import (
	"context"
	"io"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"parallelfs.dev/operator/api/v1alpha1"
	"parallelfs.dev/operator/controllers/benchmarkrun/children"
	"parallelfs.dev/operator/controllers/benchmarkrun/decision"
	"parallelfs.dev/operator/controllers/benchmarkrun/reading"
	"parallelfs.dev/operator/controllers/benchmarkrun/scope/scopetest"
	"parallelfs.dev/operator/controllers/benchmarkrun/turns"
)

// deadly is a LogReader that crashes the process that reads.
type deadly struct{ reads *int }

func (d deadly) Logs(context.Context, types.NamespacedName, string, int64) (io.ReadCloser, error) {
	*d.reads++
	panic("out of memory")
}

func TestAnOutputThatEndedTheOperatorTwiceIsNotReadAThirdTime(t *testing.T) {
	g := NewWithT(t)
	scheme := runtime.NewScheme()
	g.Expect(batchv1.AddToScheme(scheme)).To(Succeed())
	g.Expect(corev1.AddToScheme(scheme)).To(Succeed())
	g.Expect(v1alpha1.AddToScheme(scheme)).To(Succeed())
	w := scopetest.Idle()
	child := scopetest.Job(w, 0, 1, time.Minute)
	job := &batchv1.Job{ObjectMeta: metav1.ObjectMeta{Namespace: w.Run.Namespace, Name: child.Name}}
	k := fake.NewClientBuilder().WithScheme(scheme).WithObjects(job).Build()
	pod := scopetest.PodOf(children.RoleClient, corev1.PodSucceeded)
	pod.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: children.ContainerName, State: corev1.ContainerState{
		Terminated: &corev1.ContainerStateTerminated{FinishedAt: metav1.NewTime(scopetest.Now)}}}}
	child.Succeeded, child.Pods = true, []corev1.Pod{pod}
	reads := 0
	keep := func(process string) error {
		read := &batchv1.Job{}
		g.Expect(k.Get(t.Context(), client.ObjectKeyFromObject(job), read)).To(Succeed())
		child.Object = read
		r := &Reconciler{Client: k, Reader: k, Process: process, Logs: deadly{&reads}, Read: reading.Here(reading.Tools{v1alpha1.ToolIOzone: number{}})}
		return r.keep(t.Context(), w, decision.Decision{Child: child})
	}
	g.Expect(func() { _ = keep("first") }).To(Panic())
	g.Expect(func() { _ = keep("second") }).To(Panic())
	g.Expect(keep("third")).To(Succeed())
	g.Expect(reads).To(Equal(2))

	records := w.Records.Of(0)
	g.Expect(records).To(HaveLen(1))
	g.Expect(records[0].Invalid).To(Equal("iozone " + turns.Unreadable))
	g.Expect(records[0].Samples).To(BeEmpty())
	g.Expect(w.States()[0].Over).To(BeTrue(), "it is not tried again")
	w.Children = nil
	g.Expect(decision.Decide(w).Action).NotTo(Equal(decision.Start), "no other point is measured")
}

func TestALogThatCouldNotBeReadIsNoEndOfTheOperator(t *testing.T) {
	g := NewWithT(t)
	scheme := runtime.NewScheme()
	g.Expect(batchv1.AddToScheme(scheme)).To(Succeed())
	w := scopetest.Idle()
	child := scopetest.Job(w, 0, 1, time.Minute)
	job := &batchv1.Job{ObjectMeta: metav1.ObjectMeta{Namespace: w.Run.Namespace, Name: child.Name}}
	k := fake.NewClientBuilder().WithScheme(scheme).WithObjects(job).Build()
	pod := scopetest.PodOf(children.RoleClient, corev1.PodSucceeded)
	pod.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: children.ContainerName, State: corev1.ContainerState{
		Terminated: &corev1.ContainerStateTerminated{FinishedAt: metav1.NewTime(scopetest.Now)}}}}
	child.Succeeded, child.Pods = true, []corev1.Pod{pod}
	for _, process := range []string{"first", "second", "third"} {
		child.Object = job
		r := &Reconciler{Client: k, Process: process, Logs: told{err: context.DeadlineExceeded}, Read: reading.Here(nil)}
		g.Expect(r.keep(t.Context(), w, decision.Decision{Child: child})).To(MatchError(context.DeadlineExceeded))
		g.Expect(k.Get(t.Context(), client.ObjectKeyFromObject(job), job)).To(Succeed())
		g.Expect(strings.Fields(job.Annotations[children.AnnotationReading])).To(BeEmpty())
	}
}

func TestRunsOfOneFileSystemAreWorkedOnOneAfterTheOther(t *testing.T) {
	g := NewWithT(t)
	var b busy
	one, other := client.ObjectKey{Namespace: "storage", Name: "scratch"}, client.ObjectKey{Namespace: "storage", Name: "home"}
	g.Expect(b.take(one)).To(BeTrue())
	g.Expect(b.take(one)).To(BeFalse())
	g.Expect(b.take(other)).To(BeTrue(), "another filesystem does not wait")
	b.free(one)
	g.Expect(b.take(one)).To(BeTrue())
}
