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

// Enough is true if a point needs no more repetitions. This is so without a rule, and after maxRepetitions. It is also so if the standard
// error of the mean is at most the rule's percentage for every metric that the rule names, or for all if it names none. It requires at
// least two repetitions, and a named metric that was not measured is never certain.
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

// Uncertain describes what a rule still requires, regardless of maxRepetitions, such as "the standard error of File creation in ops/s is
// 3.2 % of its mean; spec.until asks for 1 %". It is empty if nothing is missing.
func Uncertain(rule *v1alpha1.StopRule, repetitions [][]benchmarks.Sample) string {
	if rule == nil {
		return ""
	}
	if len(repetitions) < 2 {
		return fmt.Sprintf("spec.until needs at least 2 repetitions; there are %d", len(repetitions))
	}
	limit, err := strconv.ParseFloat(string(rule.StandardErrorPercent), 64)
	if err != nil {
		return fmt.Sprintf("spec.until.standardErrorPercent: %q is no number", rule.StandardErrorPercent)
	}
	metrics, err := Summarize(repetitions, v1alpha1.StatisticMean)
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
		if percent := standardError(m); percent > worst {
			worst = percent
			out = fmt.Sprintf("the standard error of %s in %s is %s %% of its mean; spec.until asks for %s %%",
				m.Name, m.Unit, strconv.FormatFloat(percent, 'g', 3, 64), rule.StandardErrorPercent)
		}
	}
	return out
}

// standardError returns the standard error of the mean in percent of the mean. It is infinite if the mean is 0 and the samples are not.
func standardError(m results.Metric) float64 {
	if *m.StdDev == 0 {
		return 0
	}
	return 100 * *m.StdDev / math.Sqrt(float64(m.Samples)) / math.Abs(m.Mean)
}

// Status converts a metric to the form in a status: decimal strings with six significant digits, without exponents.
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

// Statuses calls Status for each metric.
func Statuses(metrics []results.Metric) []v1alpha1.MetricResult {
	var out []v1alpha1.MetricResult
	for _, m := range metrics {
		out = append(out, Status(m))
	}
	return out
}

// optional formats a number, or returns an empty text for nil.
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
	// digits is the number of significant digits of a result, because repetitions of a benchmark differ by more than the sixth.
	digits = 6
	// least is the smallest number that is not formatted as 0, and largest the largest that counts as a measurement. Numbers between them need
	// fewer than the 32 characters of the API's limit.
	least, largest = 1e-12, 1e24
	// whole is the smallest whole number that is rounded like any other. Below it, a whole number is treated as a count, for example of items.
	whole = 1e15
)

// format formats a number as a decimal without an exponent: a count exactly, any other number rounded to six significant digits.
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
