package stats_test

import (
	"testing"
	"time"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"parallelfs.dev/operator/api/v1alpha1"
	"parallelfs.dev/operator/benchmarks/results"
	"parallelfs.dev/operator/benchmarks/stats"
)

// sure returns a metric of five samples whose mean is known to ± half.
func sure(name, unit string, value, half float64) results.Metric {
	m := repeated(name, unit, value, half, 5)
	m.Confidence = new(half)
	return m
}

func TestAnExpectationIsMetByAllOfTheIntervalAndNotMetByNoneOfIt(t *testing.T) {
	processes := func(value string) []v1alpha1.ParameterValue {
		return []v1alpha1.ParameterValue{{Name: "processes", Value: v1alpha1.SweepValue(value)}}
	}
	failed := point(2, []string{"processes", "64"})
	failed.State = v1alpha1.PointFailed
	waiting := point(3, []string{"processes", "128"})
	waiting.State = v1alpha1.PointPending
	run := results.Run{
		Spec: v1alpha1.BenchmarkRunSpec{Statistic: v1alpha1.StatisticMean, Sweep: []v1alpha1.SweepDimension{{Name: "processes"}}},
		Points: []results.Point{
			point(0, []string{"processes", "1", "ior.blockSize", "1Gi"}, sure("write", "MiB/s", 1000, 10), sure("write", "IOPS", 4000, 10)),
			point(1, []string{"processes", "32", "ior.blockSize", "1Gi"}, sure("write", "MiB/s", 41000, 1500), single("p99", "ms", 1.9)),
			failed, waiting,
		},
	}
	for _, row := range []struct {
		name   string
		expect v1alpha1.Expectation
		state  v1alpha1.ExpectationState
		text   string
	}{
		{"all of the interval is above", v1alpha1.Expectation{Metric: "write", Unit: "MiB/s", Where: processes("32"), AtLeast: "39000"},
			v1alpha1.ExpectationMet, "write is 41000 ± 1500 MiB/s at processes=32, as expected: at least 39000"},
		{"all of the interval is below", v1alpha1.Expectation{Metric: "write", Unit: "MiB/s", Where: processes("32"), AtLeast: "43000"},
			v1alpha1.ExpectationNotMet, "write is 41000 ± 1500 MiB/s at processes=32; expected: at least 43000"},
		{"the bound is in the interval", v1alpha1.Expectation{Metric: "write", Unit: "MiB/s", Where: processes("32"), AtLeast: "40000"},
			v1alpha1.ExpectationUndecided, "write is 41000 ± 1500 MiB/s at processes=32, and a bound is within that interval; expected: at least 40000; repeat the point more often"},
		{"the value of a single sample decides", v1alpha1.Expectation{Metric: "p99", Where: processes("32"), AtMost: "2"},
			v1alpha1.ExpectationMet, "p99 is 1.9 ms at processes=32, as expected: at most 2"},
		{"a value with a tolerance", v1alpha1.Expectation{Metric: "write", Unit: "MiB/s", Where: processes("1"), Value: "1050", TolerancePercent: "2.5"},
			v1alpha1.ExpectationNotMet, "write is 1000 ± 10 MiB/s at processes=1; expected: 1050 ± 2.5 %"},
		{"sizes are equal in every form", v1alpha1.Expectation{
			Metric: "write", Unit: "MiB/s", AtLeast: "900",
			Where: []v1alpha1.ParameterValue{{Name: "ior.blockSize", Value: "1024Mi"}, {Name: "processes", Value: "1"}},
		}, v1alpha1.ExpectationMet, "write is 1000 ± 10 MiB/s at processes=1, as expected: at least 900"},
		{"one of several points breaks the bound", v1alpha1.Expectation{
			Metric: "write", Unit: "MiB/s", AtLeast: "2000", Where: []v1alpha1.ParameterValue{{Name: "ior.blockSize", Value: "1Gi"}},
		}, v1alpha1.ExpectationNotMet, "write is 1000 ± 10 MiB/s at processes=1; expected: at least 2000"},
		{"the closest of several points is named", v1alpha1.Expectation{
			Metric: "write", Unit: "MiB/s", AtLeast: "900", Where: []v1alpha1.ParameterValue{{Name: "ior.blockSize", Value: "1Gi"}},
		}, v1alpha1.ExpectationMet, "write is 1000 ± 10 MiB/s at processes=1, as expected: at least 900; it is the closest of 2 points to the bound"},
		{"a failed point", v1alpha1.Expectation{Metric: "write", Unit: "MiB/s", Where: processes("64"), AtLeast: "1"},
			v1alpha1.ExpectationUndecided, "there is no result at processes=64: the point is Failed"},
		{"a point that waits", v1alpha1.Expectation{Metric: "write", Unit: "MiB/s", Where: processes("128"), AtLeast: "1"},
			v1alpha1.ExpectationPending, "there is no result yet at processes=128"},
		{"no such point", v1alpha1.Expectation{Metric: "write", Unit: "MiB/s", Where: processes("5"), AtLeast: "1"},
			v1alpha1.ExpectationUndecided, "no point of the run has processes=5"},
		{"no such metric", v1alpha1.Expectation{Metric: "read", Where: processes("1"), AtLeast: "1"},
			v1alpha1.ExpectationUndecided, "read in any unit was not measured, but write in MiB/s, write in IOPS at processes=1"},
		{"two units", v1alpha1.Expectation{Metric: "write", Where: processes("1"), AtLeast: "1"},
			v1alpha1.ExpectationUndecided, "name one unit in spec.expect, because the tool measured write in MiB/s, write in IOPS at processes=1"},
		{"bounds that exclude each other", v1alpha1.Expectation{Name: "both", Metric: "write", AtLeast: "2", AtMost: "1"},
			v1alpha1.ExpectationUndecided, "spec.expect: no value meets both, because atLeast is above atMost"},
	} {
		t.Run(row.name, func(t *testing.T) {
			g := NewWithT(t)
			run := run
			run.Spec.Expect = []v1alpha1.Expectation{row.expect}
			got := stats.Judge(run)
			g.Expect(got).To(HaveLen(1))
			g.Expect(got[0].Message).To(Equal(row.text))
			g.Expect(got[0].State).To(Equal(row.state))
		})
	}

	g := NewWithT(t)
	run.Spec.Statistic = v1alpha1.StatisticMedian
	run.Spec.Expect = []v1alpha1.Expectation{{Metric: "write", Unit: "MiB/s", Where: processes("32"), AtLeast: "40000"}}
	g.Expect(stats.Judge(run)[0].State).To(Equal(v1alpha1.ExpectationMet), "the interval of the mean is none of the median")
	run.Ended = time.Unix(1, 0)
	run.Spec.Expect = []v1alpha1.Expectation{{Metric: "write", Unit: "MiB/s", Where: processes("128"), AtLeast: "1"}}
	g.Expect(stats.Judge(run)[0].State).To(Equal(v1alpha1.ExpectationUndecided), "a run that has ended measures nothing more")
}

func TestARunIsAcceptedWhenEveryExpectationIsMet(t *testing.T) {
	verdict := func(states ...v1alpha1.ExpectationState) []v1alpha1.ExpectationStatus {
		var out []v1alpha1.ExpectationStatus
		for _, state := range states {
			out = append(out, v1alpha1.ExpectationStatus{Name: "one", State: state, Message: "text"})
		}
		return out
	}
	met, broken, open, pending := v1alpha1.ExpectationMet, v1alpha1.ExpectationNotMet, v1alpha1.ExpectationUndecided, v1alpha1.ExpectationPending
	for _, row := range []struct {
		verdicts []v1alpha1.ExpectationStatus
		status   metav1.ConditionStatus
		reason   string
		message  string
	}{
		{verdict(met, met), metav1.ConditionTrue, "ExpectationsMet", "all 2 expectations are met"},
		{verdict(met, pending, open, broken), metav1.ConditionFalse, "ExpectationsNotMet", "1 of 4 expectations is not met: one: text"},
		{verdict(met, pending, open), metav1.ConditionUnknown, "ExpectationsUndecided", "1 of 3 expectations is undecided: one: text"},
		{verdict(met, pending, pending, pending, pending), metav1.ConditionUnknown, "ExpectationsPending",
			"4 of 5 expectations are pending: one: text, one: text, one: text and 1 more"},
	} {
		g := NewWithT(t)
		got := stats.Accepted(row.verdicts)
		g.Expect([]string{string(got.Status), got.Reason, got.Message}).To(Equal([]string{string(row.status), row.reason, row.message}))
		g.Expect(got.Type).To(Equal(v1alpha1.ConditionAccepted))
	}
}
