package benchmarkrun

import (
	"context"
	"errors"
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
	"parallelfs.dev/operator/benchmarks"
	"parallelfs.dev/operator/controllers/benchmarkrun/children"
	"parallelfs.dev/operator/controllers/benchmarkrun/decision"
	"parallelfs.dev/operator/controllers/benchmarkrun/reading"
	"parallelfs.dev/operator/controllers/benchmarkrun/scope"
	"parallelfs.dev/operator/controllers/benchmarkrun/scope/scopetest"
)

// turnThatEnded returns a turn whose pod has printed something, with an operator that stores it.
func turnThatEnded(t *testing.T, read reading.Reader) (*Reconciler, *scope.Scope, decision.Decision) {
	t.Helper()
	scheme := runtime.NewScheme()
	NewWithT(t).Expect(errors.Join(batchv1.AddToScheme(scheme), corev1.AddToScheme(scheme), v1alpha1.AddToScheme(scheme))).To(Succeed())
	w := scopetest.Idle()
	child := scopetest.Job(w, 0, 1, time.Minute)
	child.Object = &batchv1.Job{ObjectMeta: metav1.ObjectMeta{Namespace: w.Run.Namespace, Name: child.Name, UID: types.UID(child.Name)}}
	pod := scopetest.PodOf(children.RoleClient, corev1.PodSucceeded)
	pod.Name = child.Name + "-x7k2p"
	pod.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: children.ContainerName, State: corev1.ContainerState{
		Terminated: &corev1.ContainerStateTerminated{FinishedAt: metav1.NewTime(scopetest.Now)}}}}
	child.Succeeded, child.Pods = true, []corev1.Pod{pod}
	k := fake.NewClientBuilder().WithScheme(scheme).WithObjects(child.Object).Build()
	return &Reconciler{Client: k, Reader: k, Process: "only", Logs: told{text: "42\n"}, Read: read}, w, decision.Decision{Child: child}
}

func TestALongReadOfAnOutputDelaysNoPass(t *testing.T) {
	g := NewWithT(t)
	goes, begun := make(chan struct{}), 0
	r, w, d := turnThatEnded(t, func(ctx context.Context, request reading.Request, outputs reading.Outputs) (reading.Answer, error) {
		begun++
		<-goes
		return reading.Here(reading.Tools{v1alpha1.ToolIOzone: number{}})(ctx, request, outputs)
	})
	r.Moment = time.Millisecond
	for range 3 {
		g.Expect(r.keep(t.Context(), w, d)).To(MatchError(errUnderWay))
	}
	g.Expect(w.Records.Of(0)).To(BeEmpty())
	job := &batchv1.Job{}
	g.Expect(r.Client.Get(t.Context(), client.ObjectKeyFromObject(d.Child.Object), job)).To(Succeed())
	g.Expect(job.Annotations).To(HaveKeyWithValue(children.AnnotationReading, "only"))
	close(goes)
	r.Moment = time.Hour
	g.Expect(r.keep(t.Context(), w, d)).To(Succeed())
	g.Expect(begun).To(Equal(1), "it is read once")
	g.Expect(w.Records.Of(0)).To(HaveExactElements(HaveField("Samples", HaveExactElements(HaveField("Value", 42.0)))))
	g.Expect(r.readings.byRun).To(BeEmpty())
}

func TestAReadingEndsWithItsRun(t *testing.T) {
	g := NewWithT(t)
	ended := make(chan struct{})
	r, w, d := turnThatEnded(t, func(ctx context.Context, _ reading.Request, _ reading.Outputs) (reading.Answer, error) {
		<-ctx.Done()
		close(ended)
		return reading.Answer{}, context.Cause(ctx)
	})
	r.Moment = time.Millisecond
	g.Expect(r.keep(t.Context(), w, d)).To(MatchError(errUnderWay))
	r.readings.forget(client.ObjectKeyFromObject(w.Run))
	<-ended
	g.Expect(r.readings.byRun).To(BeEmpty())
}

func TestAnOutputThatEndsItsReaderMakesItsRepetitionInvalid(t *testing.T) {
	g := NewWithT(t)
	r, w, d := turnThatEnded(t, func(context.Context, reading.Request, reading.Outputs) (reading.Answer, error) {
		return reading.Answer{Samples: []benchmarks.Sample{{Name: "write", Value: 1}}}, &reading.EndedError{Reason: "took more than 240 MiB of memory"}
	})
	g.Expect(r.keep(t.Context(), w, d)).To(Succeed())
	g.Expect(w.Records.Of(0)).To(HaveExactElements(And(HaveField("Samples", BeEmpty()), HaveField("Invalid", "iozone has no result: the reader of the output of pod "+
		d.Child.Name+"-x7k2p took more than 240 MiB of memory; have it print less, or report it"))))
	g.Expect(w.Records.Final()).To(BeFalse(), "other points are measured")
}
