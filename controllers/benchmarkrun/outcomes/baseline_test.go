package outcomes

import (
	"testing"

	. "github.com/onsi/gomega"

	"parallelfs.dev/operator/api/v1alpha1"
	"parallelfs.dev/operator/benchmarks/results"
	"parallelfs.dev/operator/controllers/benchmarkrun/scope"
)

func TestARunIsNotComparedWithOneThatMeasuredSomethingElseUnlessItIsAsked(t *testing.T) {
	g := NewWithT(t)
	spec := func(direct bool) v1alpha1.BenchmarkRunSpec {
		return v1alpha1.BenchmarkRunSpec{
			Tool: v1alpha1.ToolFio, Fio: &v1alpha1.FioSpec{DirectIO: direct}, Baseline: &v1alpha1.BaselineSpec{Run: "before", TolerancePercent: "3"},
		}
	}
	points := func(value float64) []results.Point {
		return []results.Point{{State: v1alpha1.PointSucceeded, Metrics: []results.Metric{{Name: "read bw", Unit: "KiB/s", Value: value, Mean: value, StdDev: new(1.0), Samples: 5}}}}
	}
	w := &scope.Scope{
		Run: &v1alpha1.BenchmarkRun{Spec: spec(true)}, BaselineOf: "before",
		Baseline: &results.Run{Name: "before", UID: "1", Spec: spec(false), Points: points(100)},
	}
	after := points(200)
	found := compare(w, after)
	g.Expect(found.Sentence()).To(Equal("without spec.baseline.allowDifferences not compared with before, which measured something else; fio.directIO is true here and false there"))
	g.Expect(after[0].Metrics[0].Baseline).To(BeNil())
	w.Run.Spec.Baseline.AllowDifferences = true
	found = compare(w, after)
	g.Expect(found.Sentence()).To(Equal("1 result of 1 point compared with before: 1 better, 0 worse, 0 within the noise; fio.directIO is true here and false there"))
	g.Expect(after[0].Metrics[0].Baseline.Verdict).To(Equal(results.Better))
}
