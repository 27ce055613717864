package benchmarkrun

import (
	"fmt"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"parallelfs.dev/operator/api/v1alpha1"
	"parallelfs.dev/operator/controllers/benchmarkrun/children"
	"parallelfs.dev/operator/controllers/benchmarkrun/decision"
	"parallelfs.dev/operator/controllers/benchmarkrun/scope/scopetest"
)

// endedRun returns a run that ended the given number of hours ago; 0 means that it has not ended.
func endedRun(name string, hours int, change ...func(*v1alpha1.BenchmarkRun)) v1alpha1.BenchmarkRun {
	run := v1alpha1.BenchmarkRun{ObjectMeta: metav1.ObjectMeta{Namespace: "storage", Name: name, UID: types.UID(name)}}
	if hours > 0 {
		run.Status.CompletionTime = &metav1.Time{Time: scopetest.Now.Add(-time.Duration(hours) * time.Hour)}
	}
	for _, c := range change {
		c(&run)
	}
	return run
}

// rawOfRun returns a ConfigMap with the given number of bytes of raw output.
func rawOfRun(run string, bytes int) corev1.ConfigMap {
	return corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{
		Namespace: "storage", Name: run + "-p000", Labels: map[string]string{v1alpha1.LabelBenchmarkRun: run},
		Annotations:     map[string]string{children.AnnotationRaw: fmt.Sprint(bytes)},
		OwnerReferences: []metav1.OwnerReference{{Kind: "BenchmarkRun", Name: run, UID: types.UID(run), Controller: new(true)}},
	}}
}

func TestWhichRawOutputIsRemovedWhenANamespaceHasTooMuch(t *testing.T) {
	removed := func(r *v1alpha1.BenchmarkRun) { r.Status.RawOutputRemoved = &metav1.Time{Time: scopetest.Now} }
	stranger := rawOfRun("first", 1000)
	stranger.OwnerReferences = nil
	runs := []v1alpha1.BenchmarkRun{endedRun("goes-on", 0), endedRun("second", 2), endedRun("first", 3), endedRun("before", 9, removed)}
	for name, c := range map[string]struct {
		outputs []corev1.ConfigMap
		goes    string
	}{
		"none while there is room":                                {[]corev1.ConfigMap{rawOfRun("first", 50), rawOfRun("second", 50)}, ""},
		"that of the run that ended first":                        {[]corev1.ConfigMap{rawOfRun("second", 51), rawOfRun("first", 50)}, "first"},
		"also when a run that goes on has most":                   {[]corev1.ConfigMap{rawOfRun("goes-on", 99), rawOfRun("second", 2)}, "second"},
		"none of a run that goes on":                              {[]corev1.ConfigMap{rawOfRun("goes-on", 101)}, ""},
		"none because of a run whose raw output is gone already":  {[]corev1.ConfigMap{rawOfRun("before", 200), rawOfRun("first", 50)}, ""},
		"none because of a ConfigMap that only has a run's label": {[]corev1.ConfigMap{stranger, rawOfRun("first", 50)}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			goes := ""
			if run := oldestRaw(runs, c.outputs, 100); run != nil {
				goes = run.Name
			}
			NewWithT(t).Expect(goes).To(Equal(c.goes))
		})
	}
}

func TestARunForgetsItsRawOutputWhenItIsTheOldestOfANamespaceWithTooMuch(t *testing.T) {
	g := NewWithT(t)
	r, run := many(t, 2)
	other := endedRun("older", 3)
	other.Spec = *run.Spec.DeepCopy()
	own, others := rawOfRun(run.Name, 1), rawOfRun("older", maxNamespaceRaw)
	for _, cm := range []*corev1.ConfigMap{&own, &others} {
		g.Expect(r.Client.Create(t.Context(), cm)).To(Succeed())
	}
	g.Expect(r.Client.Create(t.Context(), &other)).To(Succeed())
	own.OwnerReferences[0].UID = run.UID
	g.Expect(r.Client.Update(t.Context(), &own)).To(Succeed())

	g.Expect(r.runWithOldestRaw(t.Context(), run)).To(HaveExactElements(HaveField("Name", "older")))
	w, err := r.gather(t.Context(), &other)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(w.RawExceeds).To(BeTrue())
	g.Expect(decision.Decide(w).Action).To(Equal(decision.Forget))
	g.Expect(decision.Decide(w).Forgotten).To(BeTrue(), "and the status says so")
}
