package benchmarkrun

import (
	"bytes"
	"context"
	"io"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"parallelfs.dev/operator/api/v1alpha1"
	"parallelfs.dev/operator/controllers/benchmarkrun/children"
	"parallelfs.dev/operator/controllers/benchmarkrun/decision"
	"parallelfs.dev/operator/controllers/benchmarkrun/outcomes"
	"parallelfs.dev/operator/controllers/benchmarkrun/reading"
	"parallelfs.dev/operator/controllers/benchmarkrun/scope"
	"parallelfs.dev/operator/controllers/benchmarkrun/scope/scopetest"
	"parallelfs.dev/operator/controllers/benchmarkrun/turns"
	"parallelfs.dev/operator/internal/node/measured"
	"parallelfs.dev/operator/internal/node/printed"
)

// output is what every container prints.
type output string

func (o output) Logs(context.Context, types.NamespacedName, string, int64) (io.ReadCloser, error) {
	return io.NopCloser(bytes.NewReader(printed.Log([]byte(o)))), nil
}

// turnThatRan returns a turn whose pod succeeded, and printed this before the result of a tool.
func turnThatRan(t *testing.T, said ...measured.Machine) (*scope.Scope, turns.Record) {
	t.Helper()
	w := scopetest.Idle()
	child := scopetest.Job(w, 0, 1, time.Minute)
	child.Object = &batchv1.Job{Spec: batchv1.JobSpec{Template: corev1.PodTemplateSpec{
		ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{children.LabelRole: children.RoleClient}},
		Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: children.ContainerName, Image: "ior:4"}}},
	}}}
	pod := scopetest.PodOf(children.RoleClient, corev1.PodSucceeded)
	pod.Spec.Containers = []corev1.Container{{Name: children.ContainerName, Image: "ior:4", Resources: corev1.ResourceRequirements{
		Limits: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("500m")}}}}
	pod.Name = "worker-0"
	pod.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: children.ContainerName, State: corev1.ContainerState{
		Terminated: &corev1.ContainerStateTerminated{FinishedAt: metav1.NewTime(w.Now)}}}}
	child.Pods, child.Succeeded = []corev1.Pod{pod}, true
	text := ""
	for _, m := range said {
		text += "parallelfs: " + m.Line() + "\n"
	}
	r := &Reconciler{Read: reading.Here(reading.Tools{v1alpha1.ToolIOzone: number{}}), Logs: output(text + "812\n")}
	entry, _, err := r.read(t.Context(), w, child, decision.Decision{})
	NewWithT(t).Expect(err).NotTo(HaveOccurred())
	return w, entry
}

func TestALimitThatWasNotRequestedIsReportedWithItsNumbers(t *testing.T) {
	g := NewWithT(t)
	w, entry := turnThatRan(t, measured.Machine{
		Name: "worker-0", Elapsed: time.Second, Before: &measured.Clock{}, After: &measured.Clock{},
		Throttled: &measured.Throttling{Periods: 10, Throttled: 5, Time: 250 * time.Millisecond},
	})
	g.Expect(entry.Trouble()).To(BeEmpty(), "a limit makes numbers others, and not wrong")
	g.Expect(entry.PodChanges).To(Equal([]string{"the cpu of container benchmark is limited to 500m"}))
	g.Expect(entry.Throttled).To(Equal("the CPU quota held the container on node n1 back in 5 of 10 periods, for 250ms"))
	w.Children, w.Provenance.CheckedBy = nil, "look"
	w.Records.Add(entry)
	second := entry
	second.Repetition = 2
	w.Records.Add(second)
	status, err := outcomes.Derive(w, decision.Decision{})
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(status.Provenance.PodChanges).To(Equal(entry.PodChanges))
	g.Expect(status.Provenance.Throttled).To(Equal(entry.Throttled))
	g.Expect(status.Points[0].Message).To(Equal(
		"measured under a CPU limit that was not asked for: the cpu of container benchmark is limited to 500m, by a LimitRange or a webhook of the cluster"))
}

func TestARepetitionIsInvalidIfTheClocksOfItsClientsDiffer(t *testing.T) {
	clock := func(offset time.Duration) *measured.Clock {
		return &measured.Clock{Offset: offset, Within: time.Millisecond}
	}
	g := NewWithT(t)
	a := measured.Machine{Name: "worker-0", Elapsed: time.Second, Before: clock(0), After: clock(0)}
	b := measured.Machine{Name: "worker-1", Elapsed: time.Second, Before: clock(40 * time.Millisecond), After: clock(40 * time.Millisecond)}
	_, entry := turnThatRan(t, a, b)
	g.Expect(entry.Invalid).To(HavePrefix("iozone can't be trusted: before it the clocks of worker-1 and node n1 differ by at least 38ms, more than 1 % of the 1s that it ran"))
	g.Expect(entry.Samples).To(BeEmpty())
	g.Expect(entry.Clocks).To(Equal("the clocks of 2 clients differ by at most 42ms"))
	b.Before, b.After = clock(5*time.Millisecond), clock(5*time.Millisecond)
	_, entry = turnThatRan(t, a, b)
	g.Expect(entry.Trouble()).To(BeEmpty())
	g.Expect(entry.Samples).To(HaveLen(1))
}
