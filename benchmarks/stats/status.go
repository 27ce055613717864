package stats

import (
	"fmt"
	"math"
	"slices"
	"strconv"

	"parallelfs.dev/operator/api/v1alpha1"
	"parallelfs.dev/operator/benchmarks"
	"parallelfs.dev/operator/benchmarks/results"
)

// defaultMax is spec.until.maxRepetitions where it is not set.
const defaultMax = 20

// leastRepetitions is the number of repetitions before which no rule ends a point. The deviation of fewer is too often far too small by
// chance, and a rule would end the point just then.
const leastRepetitions = 5

// Enough is true when a point needs no more repetitions than it has: without a rule; when half of the 95 % confidence interval of the mean
// of every metric that the rule names (of all, when it names none) is at most so many percent of the mean; and when there are
// maxRepetitions. It takes at least leastRepetitions, and a metric that the rule names but nothing has measured is never certain.
func Enough(rule *v1alpha1.StopRule, repetitions [][]benchmarks.Sample) bool {
	if rule == nil {
		return true
	}
	most := int(rule.MaxRepetitions)
	if most == 0 {
		most = defaultMax
	}
	return len(repetitions) >= most || Uncertain(rule, repetitions) == ""
}

// Uncertain is the sentence on what a rule still misses, whatever maxRepetitions is, such as "the mean of File creation in ops/s is known
// to ± 3.2 %; spec.until asks for 1 %"; empty when it misses nothing.
func Uncertain(rule *v1alpha1.StopRule, repetitions [][]benchmarks.Sample) string {
	if rule == nil {
		return ""
	}
	if len(repetitions) < leastRepetitions {
		return fmt.Sprintf("spec.until needs at least %d repetitions; there are %d", leastRepetitions, len(repetitions))
	}
	limit, err := strconv.ParseFloat(string(rule.ConfidencePercent), 64)
	if err != nil {
		return fmt.Sprintf("spec.until.confidencePercent: %q is no number", rule.ConfidencePercent)
	}
	metrics, err := Summarize(repetitions, v1alpha1.StatisticMean, rule)
	if err != nil {
		return err.Error()
	}
	for _, name := range rule.Metrics {
		if !slices.ContainsFunc(metrics, func(m results.Metric) bool { return m.Name == name }) {
			return fmt.Sprintf("spec.until.metrics: %s is none of what was measured", name)
		}
	}
	worst, out := limit, ""
	for _, m := range metrics {
		if len(rule.Metrics) > 0 && !slices.Contains(rule.Metrics, m.Name) {
			continue
		}
		if percent := halfInterval(m); percent > worst {
			worst = percent
			out = fmt.Sprintf("the mean of %s in %s is known to ± %s %%; spec.until asks for %s %%",
				m.Name, m.Unit, strconv.FormatFloat(percent, 'g', 3, 64), rule.ConfidencePercent)
		}
	}
	return out
}

// halfInterval is half of the confidence interval of the mean, in percent of the mean: infinite when the mean is 0 and the samples are not.
func halfInterval(m results.Metric) float64 {
	if *m.Confidence == 0 {
		return 0
	}
	return 100 * *m.Confidence / math.Abs(m.Mean)
}

// Status is a metric as the status shows it: decimal strings of six significant digits, without exponents.
func Status(m results.Metric) v1alpha1.MetricResult {
	out := v1alpha1.MetricResult{
		Name: m.Name, Unit: m.Unit, Value: format(m.Value), Mean: format(m.Mean), Min: format(m.Min), Max: format(m.Max),
		Median: optional(m.Median, format), StdDev: optional(m.StdDev, format), Confidence: optional(m.Confidence, format),
		Outliers: m.Outliers, Speedup: optional(m.Speedup, ratio), Efficiency: optional(m.Efficiency, percent),
		Samples: int32(min(m.Samples, math.MaxInt32)), //nolint:gosec // bounded
	}
	if b := m.Baseline; b != nil {
		verdict := string(b.Verdict)
		switch b.Verdict {
		case results.Better, results.Worse:
			verdict += " beyond the noise"
		case results.Small:
			verdict = "beyond the noise, but below the tolerance"
		case results.Unknown:
			verdict = "no repetitions to tell"
		case results.UnknownBest:
			verdict = "the best of several points"
		case results.WithinNoise, results.Unrated:
		}
		out.Baseline = fmt.Sprintf("%s (%s before, %s)", change(b.Change), format(b.Value), verdict)
	}
	return out
}

// Statuses is Status of each.
func Statuses(metrics []results.Metric) []v1alpha1.MetricResult {
	var out []v1alpha1.MetricResult
	for _, m := range metrics {
		out = append(out, Status(m))
	}
	return out
}

// optional is a number, or nothing.
func optional(value *float64, format func(float64) string) string {
	if value == nil {
		return ""
	}
	return format(*value)
}

// ratio writes a speed-up, such as "15.64".
func ratio(value float64) string {
	if math.Abs(value) < 0.1 {
		return format(value)
	}
	return strconv.FormatFloat(value, 'f', 2, 64)
}

// percent writes a share, such as "78.2".
func percent(value float64) string { return strconv.FormatFloat(100*value, 'f', 1, 64) }

// change writes a relative difference, such as "+3.1 %".
func change(value float64) string { return fmt.Sprintf("%+.1f %%", 100*value) }

const (
	// digits are the significant digits of a result: repetitions of a benchmark differ by more than the sixth.
	digits = 6
	// least is the least number that is not written as 0, and largest the largest that is taken for a measurement. Between
	// them, a number needs less than the 32 characters that the API gives it.
	least, largest = 1e-12, 1e24
	// whole is the least whole number that is rounded as any other. Below it, a whole number is a count, such as of items.
	whole = 1e15
)

// format writes a number as a decimal without an exponent: a count as it is, any other number rounded to six significant digits.
func format(value float64) string {
	if value == math.Trunc(value) && math.Abs(value) < whole {
		return strconv.FormatFloat(value, 'f', 0, 64)
	}
	rounded, err := strconv.ParseFloat(strconv.FormatFloat(value, 'g', digits, 64), 64)
	if err != nil || math.Abs(rounded) < least {
		return "0"
	}
	return strconv.FormatFloat(rounded, 'f', -1, 64)
}
