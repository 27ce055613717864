// Package stats computes a point's metrics from the samples of its repetitions. It compares metrics along a parameter, between the points
// of a run, and with other measurements.
package stats

import (
	"fmt"
	"math"
	"slices"

	"gonum.org/v1/gonum/stat/distuv"

	"parallelfs.dev/operator/api/v1alpha1"
	"parallelfs.dev/operator/benchmarks"
	"parallelfs.dev/operator/benchmarks/results"
)

// Summarize returns one metric for each measured name and unit, in the order of the first repetition. It refuses repetitions that measured
// different metrics, so each metric covers all repetitions.
//
// Each repetition is one sample. If the tool itself has iterated (Sample.Within), the sample is the tool's mean, and:
//   - With one repetition, the metric has the tool's own count, minimum, maximum and deviation, if the tool printed them. There is no
//     median, and the statistics Median and TrimmedMean are the mean.
//   - With several, the metric has the lowest and the highest iteration of all, and the deviation between repetitions. Iterations share
//     their processes, their files and their time, so they differ less than repetitions do. If they counted as samples, a result would
//     look more certain than it is.
//
// If a rule has ended the repetitions, the confidence interval is wider: see freedom. The rule is nil if the number of repetitions was
// fixed.
func Summarize(repetitions [][]benchmarks.Sample, statistic v1alpha1.Statistic, rule *v1alpha1.StopRule) ([]results.Metric, error) {
	order, samples, err := gather(repetitions)
	if err != nil {
		return nil, err
	}
	out := make([]results.Metric, 0, len(order))
	for _, key := range order {
		m, err := summarize(key, samples[key], statistic, rule != nil)
		if err != nil {
			return nil, err
		}
		out = append(out, m)
	}
	return out, nil
}

// metric identifies a metric by its name and unit.
type metric struct{ name, unit string }

// String names a metric in a message.
func (m metric) String() string { return fmt.Sprintf("%s in %s", m.name, m.unit) }

// gather groups samples by their metric.
func gather(repetitions [][]benchmarks.Sample) ([]metric, map[metric][]benchmarks.Sample, error) {
	if len(repetitions) == 0 {
		return nil, nil, fmt.Errorf("there is no repetition to summarize")
	}
	var order []metric
	out := map[metric][]benchmarks.Sample{}
	for i, samples := range repetitions {
		for _, s := range samples {
			key := metric{s.Name, s.Unit}
			if err := check(s); err != nil {
				return nil, nil, fmt.Errorf("repetition %d: %s %w", i+1, key, err)
			}
			switch n := len(out[key]); {
			case n > i:
				return nil, nil, fmt.Errorf("repetition %d measured %s twice", i+1, key)
			case n < i:
				return nil, nil, fmt.Errorf("repetition %d measured %s, which repetition %d did not", i+1, key, n+1)
			case i == 0:
				order = append(order, key)
			}
			out[key] = append(out[key], s)
		}
		for _, key := range order {
			if len(out[key]) == i {
				return nil, nil, fmt.Errorf("repetition %d did not measure %s, which repetition 1 did", i+1, key)
			}
		}
	}
	if len(order) == 0 {
		return nil, nil, fmt.Errorf("the repetitions measured nothing")
	}
	return order, out, nil
}

// check refuses values that are no measurement.
func check(s benchmarks.Sample) error {
	numbers := []float64{s.Value}
	if s.Within != nil {
		numbers = append(numbers, s.Within.Min, s.Within.Max, s.Within.StdDev)
	}
	for _, n := range numbers {
		if math.IsNaN(n) || math.Abs(n) > largest {
			return fmt.Errorf("is %v, which is no measurement", n)
		}
	}
	if w := s.Within; w != nil && (w.Count < 1 || w.Min > w.Max || w.StdDev < 0) {
		return fmt.Errorf("is of %d iterations from %v to %v with a deviation of %v, which can't be", w.Count, w.Min, w.Max, w.StdDev)
	}
	return nil
}

// summarize computes one metric.
func summarize(key metric, samples []benchmarks.Sample, statistic v1alpha1.Statistic, stopped bool) (results.Metric, error) {
	values := make([]float64, 0, len(samples))
	for _, s := range samples {
		values = append(values, s.Value)
	}
	sorted := slices.Sorted(slices.Values(values))
	m := results.Metric{
		Name: key.name, Unit: key.unit, Better: samples[0].Better, Mean: mean(sorted), Min: sorted[0], Max: sorted[len(sorted)-1],
		Samples: len(sorted), Outliers: outliers(values),
	}
	m.Better = DirectionOf(m)
	iterated := false
	for _, s := range samples {
		if s.Within != nil {
			m.Min, m.Max, iterated = min(m.Min, s.Within.Min), max(m.Max, s.Within.Max), true
		}
	}
	var err error
	switch {
	case statistic == v1alpha1.StatisticMin, statistic == v1alpha1.StatisticWorst && m.Better == v1alpha1.BetterHigher:
		m.Value = m.Min
	case statistic == v1alpha1.StatisticMax, statistic == v1alpha1.StatisticWorst && m.Better == v1alpha1.BetterLower:
		m.Value = m.Max
	case statistic == v1alpha1.StatisticWorst:
		m.Value = m.Mean
	case iterated && len(samples) == 1 && (statistic == v1alpha1.StatisticMedian || statistic == v1alpha1.StatisticTrimmedMean):
		m.Value = m.Mean
	default:
		m.Value, err = summary(sorted, statistic)
	}
	if err != nil {
		return results.Metric{}, err
	}
	switch {
	case len(sorted) > 1:
		m.Median, m.StdDev = new(median(sorted)), new(stdDev(sorted))
	case iterated:
		if m.Samples = samples[0].Within.Count; m.Samples > 1 {
			m.StdDev = new(samples[0].Within.StdDev)
		}
	}
	if m.StdDev != nil {
		m.Confidence = new(student(freedom(m.Samples, stopped)) * *m.StdDev / math.Sqrt(float64(m.Samples)))
	}
	return m, nil
}

// summary returns the mean, median or trimmed mean of sorted samples. A trimmed mean drops the lowest and the highest sample, so it
// requires at least three.
func summary(sorted []float64, statistic v1alpha1.Statistic) (float64, error) {
	n := len(sorted)
	switch statistic {
	case v1alpha1.StatisticMean:
		return mean(sorted), nil
	case v1alpha1.StatisticMedian:
		return median(sorted), nil
	case v1alpha1.StatisticTrimmedMean:
		if n < 3 {
			return 0, fmt.Errorf("TrimmedMean drops the highest and the lowest sample, so it needs at least 3; there are %d: set spec.repetitions to 3 or more", n)
		}
		return mean(sorted[1 : n-1]), nil
	case v1alpha1.StatisticMin, v1alpha1.StatisticMax, v1alpha1.StatisticWorst:
	}
	return 0, fmt.Errorf("spec.statistic: %q is none of Mean, Median, Min, Max, TrimmedMean, Worst", statistic)
}

// median returns the middle one of sorted values, or the mean of the two in the middle.
func median(sorted []float64) float64 {
	n := len(sorted)
	return mean(sorted[(n-1)/2 : n/2+1])
}

// mean sums the differences from the first value, so that the mean of equal samples is exactly their value.
func mean(values []float64) float64 {
	sum := 0.0
	for _, v := range values {
		sum += v - values[0]
	}
	return values[0] + sum/float64(len(values))
}

// stdDev returns the standard deviation of a sample (n-1) of at least two values.
func stdDev(values []float64) float64 {
	m, sum := mean(values), 0.0
	for _, v := range values {
		sum += (v - m) * (v - m)
	}
	return math.Sqrt(sum / float64(len(values)-1))
}

// freedom returns the degrees of freedom for the confidence interval of the mean: the number of samples less one, or fewer with a rule. A
// rule ends the repetitions when their deviation is small, which may be by chance. With all degrees of freedom, only 92 % of the intervals
// would contain the mean. With half of them, and at least those of the fewest repetitions, 94 to 96 % do (docs/simulations.md).
func freedom(samples int, stopped bool) float64 {
	all := float64(samples - 1)
	if !stopped {
		return all
	}
	return min(all, max(leastRepetitions-1, all/2))
}

// student returns the 97.5 % quantile of Student's t, the two-sided bound of 95 %: 12.706 for one degree of freedom, 1.960 for many.
func student(freedom float64) float64 { return quantile(freedom, 0.975) }

func quantile(freedom, p float64) float64 {
	return distuv.StudentsT{Sigma: 1, Nu: freedom}.Quantile(p)
}

// The generalized extreme Studentized deviate test (Rosner, Percentage Points for a Generalized ESD Many-Outlier Procedure, Technometrics
// 25, 1983; NIST/SEMATECH e-Handbook, 1.3.5.17.3). For normally distributed samples, it reports an outlier in about the share outlierAlpha
// of cases, for any number of samples. For at most one outlier it equals Grubbs's test. It searches for up to one outlier per five samples.
// With fewer than fewestSamples, an outlier can't be distinguished from a wide distribution.
const (
	outlierAlpha  = 0.01
	fewestSamples = 6
	perOutlier    = 5
)

// outliers returns the positions, from 1, of the values that are far from the others.
func outliers(values []float64) []int32 {
	if len(values) < fewestSamples {
		return nil
	}
	rest := make([]int, len(values))
	for i := range rest {
		rest[i] = i
	}
	var removed []int
	found := 0
	for range len(values) / perOutlier {
		left := make([]float64, 0, len(rest))
		for _, i := range rest {
			left = append(left, values[i])
		}
		middle, deviation := mean(left), stdDev(left)
		if deviation == 0 {
			break
		}
		farthest := 0
		for i := range left {
			if math.Abs(left[i]-middle) > math.Abs(left[farthest]-middle) {
				farthest = i
			}
		}
		removed = append(removed, rest[farthest])
		if math.Abs(left[farthest]-middle)/deviation > mostDeviate(len(left)) {
			found = len(removed)
		}
		rest = slices.Delete(rest, farthest, farthest+1)
	}
	var out []int32
	for _, i := range slices.Sorted(slices.Values(removed[:found])) {
		out = append(out, int32(i+1)) //nolint:gosec // at most 100 repetitions
	}
	return out
}

// mostDeviate returns how many standard deviations the farthest of n samples may be from their mean.
func mostDeviate(n int) float64 {
	count := float64(n)
	t := quantile(count-2, 1-outlierAlpha/(2*count))
	return (count - 1) * t / math.Sqrt((count-2+t*t)*count)
}
