// Package stats turns the samples of a point's repetitions into its metrics.
package stats

import (
	"fmt"
	"math"
	"slices"
	"strconv"

	"parallelfs.dev/operator/api/v1alpha1"
	"parallelfs.dev/operator/benchmarks"
)

// Summarise returns one metric for each name and unit that was measured, in the order of the first repetition. It
// refuses repetitions that did not all measure the same, so a metric always stands for all of them.
func Summarise(repetitions [][]benchmarks.Sample, statistic v1alpha1.Statistic) ([]v1alpha1.MetricResult, error) {
	if len(repetitions) == 0 {
		return nil, fmt.Errorf("there is no repetition to summarise")
	}
	var order []metric
	values := map[metric][]float64{}
	for i, samples := range repetitions {
		for _, s := range samples {
			key := metric{s.Name, s.Unit}
			if math.IsNaN(s.Value) || math.Abs(s.Value) > largest {
				return nil, fmt.Errorf("repetition %d: %s is %v, which is no measurement", i+1, key, s.Value)
			}
			switch n := len(values[key]); {
			case n > i:
				return nil, fmt.Errorf("repetition %d measured %s twice", i+1, key)
			case n < i:
				return nil, fmt.Errorf("repetition %d measured %s, which repetition %d did not", i+1, key, n+1)
			case i == 0:
				order = append(order, key)
			}
			values[key] = append(values[key], s.Value)
		}
		for _, key := range order {
			if len(values[key]) == i {
				return nil, fmt.Errorf("repetition %d did not measure %s, which repetition 1 did", i+1, key)
			}
		}
	}
	if len(order) == 0 {
		return nil, fmt.Errorf("the repetitions measured nothing")
	}
	out := make([]v1alpha1.MetricResult, 0, len(order))
	for _, key := range order {
		sorted := slices.Sorted(slices.Values(values[key]))
		value, err := summary(sorted, statistic)
		if err != nil {
			return nil, err
		}
		result := v1alpha1.MetricResult{
			Name: key.name, Unit: key.unit, Value: format(value), Mean: format(mean(sorted)),
			Min: format(sorted[0]), Max: format(sorted[len(sorted)-1]),
			Samples: int32(len(sorted)), //nolint:gosec // a point has at most 100 repetitions
		}
		if len(sorted) > 1 {
			result.StdDev = format(stdDev(sorted))
		}
		out = append(out, result)
	}
	return out, nil
}

// metric is what a sample measured.
type metric struct{ name, unit string }

// String names a metric in a message.
func (m metric) String() string { return fmt.Sprintf("%s in %s", m.name, m.unit) }

// summary is the statistic of sorted samples. A trimmed mean drops one lowest and one highest sample; of fewer than
// three nothing would be left, so it refuses those.
func summary(sorted []float64, statistic v1alpha1.Statistic) (float64, error) {
	n := len(sorted)
	switch statistic {
	case v1alpha1.StatisticMean:
		return mean(sorted), nil
	case v1alpha1.StatisticMedian:
		return mean(sorted[(n-1)/2 : n/2+1]), nil
	case v1alpha1.StatisticMin:
		return sorted[0], nil
	case v1alpha1.StatisticMax:
		return sorted[n-1], nil
	case v1alpha1.StatisticTrimmedMean:
		if n < 3 {
			return 0, fmt.Errorf("TrimmedMean drops the highest and the lowest sample, so it needs at least 3; there are %d: set spec.repetitions to 3 or more", n)
		}
		return mean(sorted[1 : n-1]), nil
	}
	return 0, fmt.Errorf("spec.statistic: %q is none of Mean, Median, Min, Max, TrimmedMean", statistic)
}

// mean adds what each value differs from the first: equal samples have exactly their value as mean, and no deviation from it.
func mean(values []float64) float64 {
	sum := 0.0
	for _, v := range values {
		sum += v - values[0]
	}
	return values[0] + sum/float64(len(values))
}

// stdDev is the standard deviation of a sample of at least two (n-1).
func stdDev(values []float64) float64 {
	m, sum := mean(values), 0.0
	for _, v := range values {
		sum += (v - m) * (v - m)
	}
	return math.Sqrt(sum / float64(len(values)-1))
}

const (
	// digits are the significant digits of a result: repetitions of a benchmark differ by more than the sixth.
	digits = 6
	// least is the least number that is not written as 0, and largest the largest that is taken for a measurement. Between
	// them, a number needs less than the 32 characters that the API gives it.
	least, largest = 1e-12, 1e24
)

// format writes a number as a decimal without an exponent, rounded to six significant digits.
func format(value float64) string {
	rounded, err := strconv.ParseFloat(strconv.FormatFloat(value, 'g', digits, 64), 64)
	if err != nil || math.Abs(rounded) < least {
		return "0"
	}
	return strconv.FormatFloat(rounded, 'f', -1, 64)
}
