package stats_test

import (
	"fmt"
	"math/rand/v2"
	"testing"

	. "github.com/onsi/gomega"

	"parallelfs.dev/operator/api/v1alpha1"
	"parallelfs.dev/operator/benchmarks"
	"parallelfs.dev/operator/benchmarks/results"
	"parallelfs.dev/operator/benchmarks/stats"
)

// drawn is a run of one point with so many metrics of so many samples around 1000, the first of them around 1000 × factor.
func drawn(g *WithT, chance *rand.Rand, metrics, samples int, deviation, factor float64) []results.Point {
	repetitions := make([][]benchmarks.Sample, samples)
	for i := range repetitions {
		for m := range metrics {
			around := 1000.0
			if m == 0 {
				around *= factor
			}
			repetitions[i] = append(repetitions[i], benchmarks.Sample{Name: fmt.Sprint("m", m), Unit: "MiB/s", Value: around * (1 + deviation*chance.NormFloat64())})
		}
	}
	made, err := stats.Summarize(repetitions, v1alpha1.StatisticMean)
	g.Expect(err).NotTo(HaveOccurred())
	return []results.Point{{State: v1alpha1.PointSucceeded, Metrics: made}}
}

// A run that is compared with an equal one fails --fail-on-regression in at most one of twenty cases, however much was measured, and with
// no tolerance at all. The seed is fixed.
func TestTwoEqualRunsRarelyDifferInAnything(t *testing.T) {
	for _, test := range []struct{ metrics, samples int }{{30, 3}, {120, 5}} {
		t.Run(fmt.Sprintf("%d metrics of %d samples", test.metrics, test.samples), func(t *testing.T) {
			g, chance := NewWithT(t), rand.New(rand.NewPCG(31, 37))
			const rounds = 600
			failed := 0
			for range rounds {
				before, after := drawn(g, chance, test.metrics, test.samples, 0.05, 1), drawn(g, chance, test.metrics, test.samples, 0.05, 1)
				compare(after, before, 0)
				for _, m := range after[0].Metrics {
					if m.Baseline.Verdict == results.Worse {
						failed++
						break
					}
				}
			}
			share := float64(failed) / rounds
			t.Logf("%d metrics of %d samples: %.1f %% of equal runs fail", test.metrics, test.samples, 100*share)
			g.Expect(share).To(BeNumerically("<=", 0.05))
		})
	}
}

// What that costs: how often a loss of 20 % in one of the metrics is found, by the deviation between repetitions. The seed is fixed.
func TestARealLossIsFoundAsOftenAsItsDeviationLets(t *testing.T) {
	for _, test := range []struct {
		metrics, samples int
		deviation        float64
		atLeast          float64
	}{
		{1, 3, 0.05, 0.80}, {1, 5, 0.05, 0.99}, {30, 3, 0.01, 0.70}, {30, 3, 0.05, 0}, {30, 5, 0.02, 0.99}, {30, 5, 0.05, 0.60}, {120, 5, 0.02, 0.99}, {120, 5, 0.05, 0.35},
		{120, 10, 0.05, 0.99},
	} {
		t.Run(fmt.Sprint(test), func(t *testing.T) {
			g, chance := NewWithT(t), rand.New(rand.NewPCG(41, 43))
			const rounds = 200
			found := 0
			for range rounds {
				before, after := drawn(g, chance, test.metrics, test.samples, test.deviation, 1), drawn(g, chance, test.metrics, test.samples, test.deviation, 0.8)
				compare(after, before, stats.DefaultTolerance)
				if after[0].Metrics[0].Baseline.Verdict == results.Worse {
					found++
				}
			}
			power := float64(found) / rounds
			t.Logf("one loss of 20 %% among %d metrics of %d samples, deviation %.0f %%: found in %.0f %%", test.metrics, test.samples, 100*test.deviation, 100*power)
			g.Expect(power).To(BeNumerically(">=", test.atLeast))
		})
	}
}
