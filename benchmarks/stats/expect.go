package stats

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"parallelfs.dev/operator/api/v1alpha1"
	"parallelfs.dev/operator/benchmarks/results"
)

// Limits of the messages about expectations.
const (
	// mostNamed is how many metrics or expectations a message lists.
	mostNamed = 3
	// maxExpectation bounds the message about one expectation, in bytes, and maxAccepted the message about all of them.
	maxExpectation, maxAccepted = 512, 400
)

// Judge returns the verdict on each expectation of a run, from the points in its results.
//
// A point meets a bound if all of the 95 % confidence interval of its mean does, and breaks it if none of the interval does. In between,
// the repetitions do not decide. The interval belongs to the mean: under another statistic, and for a point that was not repeated, the
// value alone decides. One point that breaks a bound is enough for NotMet. A point without a result is Pending while the run goes on, and
// Undecided after its end.
func Judge(run results.Run) []v1alpha1.ExpectationStatus {
	out := make([]v1alpha1.ExpectationStatus, 0, len(run.Spec.Expect))
	for _, e := range run.Spec.Expect {
		state, message := judge(e, run)
		out = append(out, v1alpha1.ExpectationStatus{Name: e.Name, State: state, Message: v1alpha1.Cut(message, maxExpectation)})
	}
	return out
}

// finding is the verdict on one point.
type finding struct {
	state v1alpha1.ExpectationState
	text  string
	// margin is the distance of the value from the nearer bound, as a share of the bound. It is negative beyond the bound.
	margin float64
}

func judge(e v1alpha1.Expectation, run results.Run) (v1alpha1.ExpectationState, string) {
	bounds, err := boundsOf(e)
	if err != nil {
		return v1alpha1.ExpectationUndecided, err.Error()
	}
	var findings []finding
	for _, p := range run.Points {
		if selected(e.Where, p) {
			findings = append(findings, bounds.of(e, p, run))
		}
	}
	if len(findings) == 0 {
		return v1alpha1.ExpectationUndecided, "no point of the run has " + conditionText(e.Where)
	}
	count := func(state v1alpha1.ExpectationState) int {
		return len(slices.DeleteFunc(slices.Clone(findings), func(f finding) bool { return f.state != state }))
	}
	for _, one := range []struct {
		state v1alpha1.ExpectationState
		words string
	}{
		{v1alpha1.ExpectationNotMet, "break the bound"},
		{v1alpha1.ExpectationUndecided, "are undecided"},
		{v1alpha1.ExpectationPending, "have no result yet"},
	} {
		if n := count(one.state); n > 0 {
			message := worst(findings, one.state).text
			if n > 1 {
				message += fmt.Sprintf("; %d of %d points %s", n, len(findings), one.words)
			}
			return one.state, message
		}
	}
	message := worst(findings, v1alpha1.ExpectationMet).text
	if len(findings) > 1 {
		message += fmt.Sprintf("; it is the closest of %d points to the bound", len(findings))
	}
	return v1alpha1.ExpectationMet, message
}

// worst returns the finding of a state with the smallest margin.
func worst(findings []finding, state v1alpha1.ExpectationState) finding {
	of := slices.DeleteFunc(slices.Clone(findings), func(f finding) bool { return f.state != state })
	return slices.MinFunc(of, func(a, b finding) int { return cmp.Compare(a.margin, b.margin) })
}

// selected is true for a point whose parameters have all of the values.
func selected(where []v1alpha1.ParameterValue, p results.Point) bool {
	for _, v := range where {
		if !results.Same(v.Name, p.Value(v.Name), string(v.Value)) {
			return false
		}
	}
	return true
}

func conditionText(where []v1alpha1.ParameterValue) string {
	parts := make([]string, 0, len(where))
	for _, v := range where {
		parts = append(parts, fmt.Sprintf("%s=%s", v.Name, v.Value))
	}
	return cmp.Or(strings.Join(parts, " "), "a result")
}

// bounds are the accepted values, from low to high. A bound that is not set is infinite.
type bounds struct {
	low, high float64
	// text describes them, such as "at least 40000".
	text string
}

func boundsOf(e v1alpha1.Expectation) (bounds, error) {
	out := bounds{low: math.Inf(-1), high: math.Inf(1)}
	numbers := map[string]float64{}
	for name, text := range map[string]string{
		"atLeast": string(e.AtLeast), "atMost": string(e.AtMost), "value": string(e.Value), "tolerancePercent": string(e.TolerancePercent),
	} {
		if text == "" {
			continue
		}
		value, err := strconv.ParseFloat(text, 64)
		if err != nil {
			return bounds{}, fmt.Errorf("spec.expect: %s of %s is %q, which is no number", name, e.Name, text)
		}
		numbers[name] = value
	}
	var parts []string
	if value, set := numbers["value"]; set {
		width := value * numbers["tolerancePercent"] / 100
		out.low, out.high = value-width, value+width
		parts = append(parts, fmt.Sprintf("%s ± %s %%", e.Value, cmp.Or(string(e.TolerancePercent), "0")))
	}
	if low, set := numbers["atLeast"]; set {
		out.low = low
		parts = append(parts, "at least "+string(e.AtLeast))
	}
	if high, set := numbers["atMost"]; set {
		out.high = high
		parts = append(parts, "at most "+string(e.AtMost))
	}
	if out.low > out.high {
		return bounds{}, fmt.Errorf("spec.expect: no value meets %s, because atLeast is above atMost", e.Name)
	}
	out.text = strings.Join(parts, " and ")
	return out, nil
}

// of returns the verdict on a point.
func (b bounds) of(e v1alpha1.Expectation, p results.Point, run results.Run) finding {
	at := run.Describe(p.Index)
	if at != "" {
		at = " at " + at
	}
	switch {
	case p.State == v1alpha1.PointSucceeded:
	case run.Ended.IsZero() && (p.State == v1alpha1.PointPending || p.State == v1alpha1.PointRunning):
		return finding{state: v1alpha1.ExpectationPending, text: "there is no result yet" + at}
	default:
		return finding{state: v1alpha1.ExpectationUndecided, text: fmt.Sprintf("there is no result%s: the point is %s", at, p.State)}
	}
	m, problem := metricOf(e, p)
	if problem != "" {
		return finding{state: v1alpha1.ExpectationUndecided, text: problem + at}
	}
	low, high, measured := m.Value, m.Value, fmt.Sprintf("%s is %s %s", m.Name, format(m.Value), m.Unit)
	if run.Spec.Statistic == v1alpha1.StatisticMean && m.Confidence != nil {
		low, high = m.Mean-*m.Confidence, m.Mean+*m.Confidence
		measured = fmt.Sprintf("%s is %s ± %s %s", m.Name, format(m.Mean), format(*m.Confidence), m.Unit)
	}
	out := finding{margin: min(margin(m.Value-b.low, b.low), margin(b.high-m.Value, b.high))}
	switch {
	case low >= b.low && high <= b.high:
		out.state, out.text = v1alpha1.ExpectationMet, fmt.Sprintf("%s%s, as expected: %s", measured, at, b.text)
	case high < b.low || low > b.high:
		out.state, out.text = v1alpha1.ExpectationNotMet, fmt.Sprintf("%s%s; expected: %s", measured, at, b.text)
	default:
		out.state = v1alpha1.ExpectationUndecided
		out.text = fmt.Sprintf("%s%s, and a bound is within that interval; expected: %s; repeat the point more often", measured, at, b.text)
	}
	return out
}

// margin is a distance as a share of the bound; an infinite bound is infinitely far away.
func margin(distance, bound float64) float64 {
	switch {
	case math.IsInf(bound, 0):
		return math.Inf(1)
	case bound == 0:
		return distance
	}
	return distance / math.Abs(bound)
}

// metricOf returns the metric of an expectation, or the reason why there is none.
func metricOf(e v1alpha1.Expectation, p results.Point) (results.Metric, string) {
	var found []results.Metric
	for _, m := range p.Metrics {
		if m.Name == e.Metric && (e.Unit == "" || m.Unit == e.Unit) {
			found = append(found, m)
		}
	}
	switch len(found) {
	case 1:
		return found[0], ""
	case 0:
		return results.Metric{}, fmt.Sprintf("%s was not measured, but %s", metric{e.Metric, cmp.Or(e.Unit, "any unit")}, named(p.Metrics))
	}
	return results.Metric{}, fmt.Sprintf("name one unit in spec.expect, because the tool measured %s", named(found))
}

func named(metrics []results.Metric) string {
	names := make([]string, 0, len(metrics))
	for _, m := range metrics {
		names = append(names, metric{m.Name, m.Unit}.String())
	}
	return someOf(names)
}

// someOf lists the first names, and counts the others.
func someOf(names []string) string {
	out := strings.Join(names[:min(len(names), mostNamed)], ", ")
	if more := len(names) - mostNamed; more > 0 {
		out += fmt.Sprintf(" and %d more", more)
	}
	return cmp.Or(out, "nothing")
}

// Accepted returns the condition Accepted for at least one verdict. It has no time and no generation.
func Accepted(verdicts []v1alpha1.ExpectationStatus) metav1.Condition {
	for _, one := range []struct {
		state  v1alpha1.ExpectationState
		status metav1.ConditionStatus
		reason string
		words  string
	}{
		{v1alpha1.ExpectationNotMet, metav1.ConditionFalse, v1alpha1.ReasonExpectationsNotMet, "not met"},
		{v1alpha1.ExpectationUndecided, metav1.ConditionUnknown, v1alpha1.ReasonExpectationsUndecided, "undecided"},
		{v1alpha1.ExpectationPending, metav1.ConditionUnknown, v1alpha1.ReasonExpectationsPending, "pending"},
	} {
		var texts []string
		for _, v := range verdicts {
			if v.State == one.state {
				texts = append(texts, v.Name+": "+v.Message)
			}
		}
		if len(texts) > 0 {
			some := v1alpha1.CountOf(len(texts), len(verdicts), "expectation", "expectations", "is", "are")
			message := some + " " + one.words + ": " + someOf(texts)
			return metav1.Condition{
				Type: v1alpha1.ConditionAccepted, Status: one.status, Reason: one.reason, Message: v1alpha1.Cut(message, maxAccepted),
			}
		}
	}
	return metav1.Condition{
		Type: v1alpha1.ConditionAccepted, Status: metav1.ConditionTrue, Reason: v1alpha1.ReasonExpectationsMet,
		Message: v1alpha1.CountOf(len(verdicts), len(verdicts), "expectation", "expectations", "is", "are") + " met",
	}
}
