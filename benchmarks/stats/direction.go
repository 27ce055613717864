package stats

import (
	"slices"
	"strings"
	"unicode"

	"parallelfs.dev/operator/api/v1alpha1"
	"parallelfs.dev/operator/benchmarks/results"
)

// The words that units and names are made of, in lower case, as tools write them.
var (
	times = []string{
		"s", "sec", "secs", "second", "seconds", "ms", "msec", "msecs", "millisecond", "milliseconds", "us", "µs", "μs", "usec", "usecs",
		"microsecond", "microseconds", "ns", "nsec", "nsecs", "nanosecond", "nanoseconds", "min", "minute", "minutes", "h", "hour", "hours",
	}
	// powers are units of power and of energy.
	powers = []string{"w", "mw", "kw", "watt", "watts", "j", "kj", "mj", "joule", "joules", "wh", "kwh"}
	// rates are units of a rate in one word.
	rates = []string{"iops", "qps", "rps", "tps", "bps", "kbps", "mbps", "gbps", "hz"}
	// bad are words of a thing of which less is better.
	bad = []string{
		"error", "errors", "failure", "failures", "failed", "retry", "retries", "retransmit", "retransmits", "drop", "drops", "dropped",
		"timeout", "timeouts", "lost", "loss",
	}
	// slow and fast are words of a time or a power, and of a rate, for a metric whose unit says nothing.
	slow = []string{"time", "times", "latency", "latencies", "duration", "seconds", "response", "power", "energy", "watts"}
	fast = []string{"rate", "rates", "throughput", "bandwidth", "iops", "ops", "speed", "score"}
)

// DirectionOf says which values of a metric are the better ones: what the metric says of itself, else Direction.
func DirectionOf(m results.Metric) v1alpha1.Better {
	if m.Better != "" {
		return m.Better
	}
	return Direction(m.Unit, m.Name)
}

// Direction says which values of a metric of that unit and name are the better ones. Less is better of errors and the like, whatever their
// unit, and of a time, a power or an energy, or one of them for each of something; more is better of a rate. Where the unit says nothing,
// the name may; else neither is better, as of a count.
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

// isRate is true for a unit of something in a time, such as "MiB/s", "ops/s" and "IOPS".
func isRate(unit string) bool {
	if unit == "OPs" {
		return true // IOR's operations in a second, as it writes them; "ops" is a count
	}
	unit = strings.ToLower(strings.TrimSpace(unit))
	parts := strings.Split(unit, "/")
	return slices.Contains(rates, unit) || strings.HasSuffix(unit, " per second") ||
		slices.ContainsFunc(parts[1:], func(part string) bool { return slices.Contains(times, strings.TrimSpace(part)) })
}

// scales is true for a metric that has a speed-up: a rate of which more is better. A latency has none: that it does not grow under a
// load is no gain of as much.
func scales(m results.Metric) bool {
	return isRate(m.Unit) && DirectionOf(m) == v1alpha1.BetterHigher
}

// better is true when a is better than b.
func better(d v1alpha1.Better, a, b float64) bool {
	return d == v1alpha1.BetterHigher && a > b || d == v1alpha1.BetterLower && a < b
}
