package stats

import (
	"slices"
	"strings"
	"unicode"

	"parallelfs.dev/operator/api/v1alpha1"
	"parallelfs.dev/operator/benchmarks/results"
)

// The words in the units and names of metrics, in lower case, as tools write them.
var (
	times = []string{
		"s", "sec", "secs", "second", "seconds", "ms", "msec", "msecs", "millisecond", "milliseconds", "us", "µs", "μs", "usec", "usecs",
		"microsecond", "microseconds", "ns", "nsec", "nsecs", "nanosecond", "nanoseconds", "min", "minute", "minutes", "h", "hour", "hours",
	}
	// powers lists units of power and energy.
	powers = []string{"w", "mw", "kw", "watt", "watts", "j", "kj", "mj", "joule", "joules", "wh", "kwh"}
	// rates lists one-word units of a rate.
	rates = []string{"iops", "qps", "rps", "tps", "bps", "kbps", "mbps", "gbps", "hz"}
	// bad lists words for things of which less is better.
	bad = []string{
		"error", "errors", "failure", "failures", "failed", "retry", "retries", "retransmit", "retransmits", "drop", "drops", "dropped",
		"timeout", "timeouts", "lost", "loss",
	}
	// slow lists words for a time or a power, and fast words for a rate. They count for a metric whose unit does not determine the direction.
	slow = []string{"time", "times", "latency", "latencies", "duration", "seconds", "response", "power", "energy", "watts"}
	fast = []string{"rate", "rates", "throughput", "bandwidth", "iops", "ops", "speed", "score"}
)

// DirectionOf returns which values of a metric are better: the metric's own setting or, without one, Direction.
func DirectionOf(m results.Metric) v1alpha1.Better {
	if m.Better != "" {
		return m.Better
	}
	return Direction(m.Unit, m.Name)
}

// Direction returns which values of a metric with that unit and name are better. Less is better for errors and similar things, whatever
// their unit, and for a time, a power or an energy, also per item. More is better for a rate. If the unit does not decide, the name may.
// Otherwise neither is better, as for a count.
func Direction(unit, name string) v1alpha1.Better {
	words := strings.FieldsFunc(strings.ToLower(name), func(r rune) bool { return !unicode.IsLetter(r) })
	has := func(some []string) bool {
		return slices.ContainsFunc(words, func(w string) bool { return slices.Contains(some, w) })
	}
	first, _, _ := strings.Cut(strings.ToLower(unit), "/")
	first = strings.TrimSpace(first)
	switch {
	case has(bad), slices.Contains(bad, first), slices.Contains(times, first), slices.Contains(powers, first):
		return v1alpha1.BetterLower
	case isRate(unit):
		return v1alpha1.BetterHigher
	case has(slow):
		return v1alpha1.BetterLower
	case has(fast):
		return v1alpha1.BetterHigher
	}
	return v1alpha1.BetterNeither
}

// isRate is true for a unit of something per time, such as "MiB/s", "ops/s" and "IOPS".
func isRate(unit string) bool {
	if unit == "OPs" {
		return true // IOR writes operations per second so; "ops" is a count
	}
	unit = strings.ToLower(strings.TrimSpace(unit))
	parts := strings.Split(unit, "/")
	return slices.Contains(rates, unit) || strings.HasSuffix(unit, " per second") ||
		slices.ContainsFunc(parts[1:], func(part string) bool { return slices.Contains(times, strings.TrimSpace(part)) })
}

// scales is true for a metric that has a speed-up: a rate of which more is better. A latency has none, because a latency that stays equal
// under more load is no speed-up.
func scales(m results.Metric) bool {
	return isRate(m.Unit) && DirectionOf(m) == v1alpha1.BetterHigher
}

// better is true if a is better than b.
func better(d v1alpha1.Better, a, b float64) bool {
	return d == v1alpha1.BetterHigher && a > b || d == v1alpha1.BetterLower && a < b
}
