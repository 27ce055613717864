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

// defaultMax is the default of spec.until.maxRepetitions.
const defaultMax = 20

// leastRepetitions is the number of repetitions before which no rule ends a point. With fewer, the deviation is too often far too small by
// chance, and the rule would end the point exactly then.
const leastRepetitions = 5

// Enough is true if a point needs no more repetitions: there is no rule, or maxRepetitions are reached, or every metric of the rule is
// certain. A metric is certain if half of the 95 % confidence interval of its mean is at most the rule's percentage of the mean, and there
// are at least leastRepetitions. A rule that names no metric applies to all metrics. A metric that the rule names and that was never
// measured is never certain.
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

// Uncertain returns a sentence about the metrics for which a rule is not met yet, regardless of maxRepetitions, such as "the mean of File
// creation in ops/s is known to ± 3.2 %; spec.until asks for 1 %"; empty if the rule is met.
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

// halfInterval returns half of the confidence interval of the mean, in percent of the mean. It is infinite if the mean is 0 and the samples
// are not.
func halfInterval(m results.Metric) float64 {
	if *m.Confidence == 0 {
		return 0
	}
	return 100 * *m.Confidence / math.Abs(m.Mean)
}

// Status returns a metric in the form of the status: decimal strings with six significant digits, without exponents.
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

// Statuses returns the Status of each metric.
func Statuses(metrics []results.Metric) []v1alpha1.MetricResult {
	var out []v1alpha1.MetricResult
	for _, m := range metrics {
		out = append(out, Status(m))
	}
	return out
}

// optional formats a number; empty for nil.
func optional(value *float64, format func(float64) string) string {
	if value == nil {
		return ""
	}
	return format(*value)
}

// ratio formats a speed-up, such as "15.64".
func ratio(value float64) string {
	if math.Abs(value) < 0.1 {
		return format(value)
	}
	return strconv.FormatFloat(value, 'f', 2, 64)
}

// percent formats a share, such as "78.2".
func percent(value float64) string { return strconv.FormatFloat(100*value, 'f', 1, 64) }

// change formats a relative difference, such as "+3.1 %".
func change(value float64) string { return fmt.Sprintf("%+.1f %%", 100*value) }

const (
	// digits is the number of significant digits of a result. Repetitions of a benchmark differ by more than the sixth digit.
	digits = 6
	// least is the smallest number that is not written as 0, and largest the largest that is accepted as a measurement. Numbers between them
	// fit into the 32 characters of the API.
	least, largest = 1e-12, 1e24
	// whole is the smallest whole number that is rounded like other numbers. A smaller one is a count, such as of items.
	whole = 1e15
)

// format formats a number as a decimal without an exponent: a count unchanged, any other number rounded to six significant digits.
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
