package stats_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	. "github.com/onsi/gomega"

	"parallelfs.dev/operator/api/v1alpha1"
	"parallelfs.dev/operator/benchmarks"
	"parallelfs.dev/operator/benchmarks/results"
	"parallelfs.dev/operator/benchmarks/stats"
)

// drawn returns a run of one point with the given numbers of metrics and of samples around 1000. Those of the first metric are around 1000
// × factor.
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
	made, err := stats.Summarize(repetitions, v1alpha1.StatisticMean, nil)
	g.Expect(err).NotTo(HaveOccurred())
	return []results.Point{{State: v1alpha1.PointSucceeded, Metrics: made}}
}

// Two equal runs differ in any metric in at most one of twenty comparisons. This holds for any number of metrics and of repetitions on
// either side, without a tolerance. The seed is fixed.
func TestTwoEqualRunsRarelyDiffer(t *testing.T) {
	for _, test := range []struct{ metrics, before, after int }{
		{30, 3, 3}, {120, 5, 5}, {4, 3, 10}, {4, 2, 20}, {30, 3, 10}, {30, 2, 10}, {30, 5, 10}, {30, 4, 20}, {30, 15, 10}, {120, 3, 10}, {120, 8, 12},
	} {
		of := fmt.Sprintf("metrics: %d, samples: %d and %d", test.metrics, test.before, test.after)
		t.Run(of, func(t *testing.T) {
			g, chance := NewWithT(t), rand.New(rand.NewPCG(31, 37))
			rounds := simulations(60, 2000)
			failed := 0
			for range rounds {
				before, after := drawn(g, chance, test.metrics, test.before, 0.05, 1), drawn(g, chance, test.metrics, test.after, 0.05, 1)
				compare(after, before, 0)
				if slices.ContainsFunc(after[0].Metrics, func(m results.Metric) bool { return m.Baseline.Verdict != results.WithinNoise }) {
					failed++
				}
			}
			share := float64(failed) / float64(rounds)
			found(t, "equal runs that differ in any metric", of, rounds, share, "at most 5 %")
			g.Expect(share).To(BeNumerically("<=", 0.05+chanceOf(0.05, rounds)))
		})
	}
}

// The cost of that limit: how often a loss of 20 % in one of the metrics is detected, by the deviation between repetitions. The seed is
// fixed.
func TestTheSmallerTheDeviationTheMoreLossesAreDetected(t *testing.T) {
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
			rounds, times := simulations(30, 2000), 0
			for range rounds {
				before, after := drawn(g, chance, test.metrics, test.samples, test.deviation, 1), drawn(g, chance, test.metrics, test.samples, test.deviation, 0.8)
				compare(after, before, stats.DefaultTolerance)
				if after[0].Metrics[0].Baseline.Verdict == results.Worse {
					times++
				}
			}
			power := float64(times) / float64(rounds)
			found(t, "detected losses of 20 % in one metric",
				fmt.Sprintf("metrics: %d, samples: %d, deviation: %.0f %%", test.metrics, test.samples, 100*test.deviation), rounds, power, fmt.Sprintf("at least %.0f %%", 100*test.atLeast))
			g.Expect(power).To(BeNumerically(">=", test.atLeast-chanceOf(test.atLeast, rounds)))
		})
	}
}
