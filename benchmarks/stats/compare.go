package stats

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"gonum.org/v1/gonum/stat/distuv"

	"parallelfs.dev/operator/api/v1alpha1"
	"parallelfs.dev/operator/benchmarks/results"
)

// Pair is a pair of runs to compare. A published table is represented as a run without a spec.
type Pair struct {
	// Run is the side whose metrics get a Baseline.
	Run results.Run
	// Baseline is the other side, and Of its name.
	Baseline results.Run
	Of       string
}

// Terms are the settings of a comparison.
type Terms struct {
	// Tolerance is the smallest relevant relative difference: 0.03 is 3 %.
	Tolerance float64
	// AllowDifferences compares even if the two did not measure the same.
	AllowDifferences bool
}

// DefaultTolerance is the default of spec.baseline.tolerancePercent.
const DefaultTolerance = 0.03

// TermsOf returns the settings in a run's spec.
func TermsOf(spec *v1alpha1.BaselineSpec) Terms {
	out := Terms{Tolerance: DefaultTolerance}
	if spec == nil {
		return out
	}
	out.AllowDifferences = spec.AllowDifferences
	if percent, err := strconv.ParseFloat(string(spec.TolerancePercent), 64); err == nil {
		out.Tolerance = percent / 100
	}
	return out
}

// familyAlpha is the probability that two equal runs differ in anything at all.
const familyAlpha = 0.05

// Compare fills the baseline of all metrics for which the other side has the same metric, in the same unit, at the same parameters. It
// returns the comparison of each pair, in their order.
//
// Two points match if the parameters that exist on both sides and vary on either have equal values; 1m and 1024k are equal. If several
// points of the baseline match, none is used. If the two sides did not measure the same (Comparison.Refused), nothing is compared unless
// the terms allow it.
//
// A metric is better or worse if chance does not explain the difference, and the difference is at least the tolerance. Two repeated means
// are compared by Welch's t-test. With repetitions on one side only, the other side's value is compared with the prediction interval of one
// more repetition. Without repetitions, there is no verdict. A published figure of unknown sample size counts as one value. Each of many
// metrics may differ by chance. Therefore all tests of all pairs are one family. Holm's method (A Simple Sequentially Rejective Multiple
// Test Procedure, Scandinavian Journal of Statistics 6, 1979) bounds the probability that two equal runs differ in any of them to 5 %.
func Compare(pairs []Pair, terms Terms) []results.Comparison {
	matches := make([][]match, len(pairs))
	out := make([]results.Comparison, len(pairs))
	var family []*match
	for i, pair := range pairs {
		out[i] = differences(pair)
		clearBaselines(pair.Run.Points)
		if len(out[i].Refused) > 0 && !terms.AllowDifferences {
			continue
		}
		matches[i] = matchesOf(pair)
		for j := range matches[i] {
			if m := &matches[i][j]; m.tested {
				family = append(family, m)
			}
		}
	}
	holm(family)
	for i, pair := range pairs {
		for _, m := range matches[i] {
			m.metric.Baseline = m.verdict(pair.Of, terms)
		}
		out[i].Summary = summaryOf(pair, matches[i], out[i], terms)
	}
	return out
}

func clearBaselines(points []results.Point) {
	for i := range points {
		for j := range points[i].Metrics {
			points[i].Metrics[j].Baseline = nil
		}
	}
}

// match is a metric with its counterpart in the baseline.
type match struct {
	point  int
	metric *results.Metric
	other  results.Metric
	// best is true if the best of several points is compared with a published best.
	best bool
	// tested is true if the difference was tested. p is the probability of such a difference between equals, and beyond is true if Holm's
	// method rejects equality.
	tested bool
	p      float64
	beyond bool
}

// matchesOf finds the comparable metrics and tests them.
func matchesOf(pair Pair) []match {
	var usual, bests []results.Point
	for _, p := range pair.Baseline.Points {
		if slices.ContainsFunc(p.Parameters, func(v results.Value) bool { return v.Value == results.BestOf }) {
			bests = append(bests, p)
		} else {
			usual = append(usual, p)
		}
	}
	points := pair.Run.Points
	keys := keysOf(points, usual)
	others := map[string][]int{}
	for i, b := range usual {
		if key, complete := keyOf(b, keys); complete {
			others[key] = append(others[key], i)
		}
	}
	var out []match
	for i := range points {
		key, complete := keyOf(points[i], keys)
		found := others[key]
		if !complete || len(found) != 1 || len(keys) == 0 && len(points) > 1 {
			continue
		}
		for j := range points[i].Metrics {
			m := &points[i].Metrics[j]
			if other := usual[found[0]].Metric(m.Name, m.Unit); other != nil {
				out = append(out, match{point: i, metric: m, other: *other})
			}
		}
	}
	out = append(out, bestMatches(points, bests)...)
	out = slices.DeleteFunc(out, func(m match) bool { return m.other.Value == 0 && m.metric.Value != 0 }) // no relative difference
	for i := range out {
		m := &out[i]
		if DirectionOf(*m.metric) != v1alpha1.BetterNeither && !m.best {
			m.p, m.tested = test(*m.metric, m.other)
		}
	}
	return out
}

// bestMatches matches the best points of a run with published best points over a parameter.
func bestMatches(points, bests []results.Point) []match {
	var out []match
	for _, b := range bests {
		fits := slices.Clone(points)
		for _, v := range b.Parameters {
			if v.Value == results.BestOf {
				continue
			}
			fits = slices.DeleteFunc(fits, func(p results.Point) bool {
				value := p.Value(v.Name)
				return value != "" && canonical(v.Name, value) != canonical(v.Name, v.Value)
			})
		}
		for _, best := range BestPoints(fits) {
			i := slices.IndexFunc(points, func(p results.Point) bool { return p.Index == best.Point })
			if other := b.Metric(best.Name, best.Unit); other != nil && i >= 0 {
				out = append(out, match{point: i, metric: points[i].Metric(best.Name, best.Unit), other: *other, best: len(fits) > 1})
			}
		}
	}
	return out
}

// verdict returns the baseline of a metric with its verdict.
func (m match) verdict(of string, terms Terms) *results.Baseline {
	out := &results.Baseline{Of: of, Value: m.other.Value, Verdict: results.Unknown}
	difference := m.metric.Value - m.other.Value
	if difference != 0 {
		out.Change = difference / math.Abs(m.other.Value)
	}
	direction := DirectionOf(*m.metric)
	switch {
	case direction == v1alpha1.BetterNeither:
		out.Verdict = results.Unrated
	case m.best:
		out.Verdict = results.UnknownBest
	case !m.tested:
	// For a statistic other than the mean, the values may differ in the opposite direction of the means. In that case there is no verdict of
	// better or worse.
	case !m.beyond || difference*(m.metric.Mean-m.other.Mean) <= 0:
		out.Verdict = results.WithinNoise
	case math.Abs(out.Change) < terms.Tolerance:
		out.Verdict = results.Small
	case better(direction, m.metric.Value, m.other.Value):
		out.Verdict = results.Better
	default:
		out.Verdict = results.Worse
	}
	return out
}

// test returns the probability that equals differ as much as two metrics. known is false if neither side has a deviation.
func test(a, b results.Metric) (p float64, known bool) {
	difference := math.Abs(a.Mean - b.Mean)
	var variance, freedom float64
	switch {
	case !repeated(a) && !repeated(b):
		return 1, false
	case !repeated(a) || !repeated(b):
		one := a
		if !repeated(a) {
			one = b
		}
		n := float64(one.Samples)
		variance, freedom = *one.StdDev**one.StdDev*(1+1/n), n-1
	default:
		// This is Welch's t-test with the degrees of freedom by Welch and Satterthwaite.
		na, nb := float64(a.Samples), float64(b.Samples)
		va, vb := *a.StdDev**a.StdDev/na, *b.StdDev**b.StdDev/nb
		variance = va + vb
		freedom = variance * variance / (va*va/(na-1) + vb*vb/(nb-1))
	}
	switch {
	case difference == 0:
		return 1, true
	case variance == 0:
		return 0, true
	}
	return 2 * distuv.StudentsT{Sigma: 1, Nu: freedom}.Survival(difference/math.Sqrt(variance)), true
}

// repeated is true for a metric with a deviation and a known number of samples.
func repeated(m results.Metric) bool { return m.StdDev != nil && m.Samples > 1 }

// holm marks the matches whose differences chance does not explain. The smallest p must be at most alpha divided by the number of tests,
// the next at most alpha divided by one less, and so on, up to the first that is not.
func holm(family []*match) {
	slices.SortStableFunc(family, func(a, b *match) int {
		switch {
		case a.p < b.p:
			return -1
		case a.p > b.p:
			return 1
		}
		return 0
	})
	for i, m := range family {
		if m.p > familyAlpha/float64(len(family)-i) {
			return
		}
		m.beyond = true
	}
}

// keysOf returns the parameters that exist on both sides and vary on either, in the order of the points.
func keysOf(points, baseline []results.Point) []v1alpha1.SweepName {
	var out []v1alpha1.SweepName
	here, there := valuesOf(points), valuesOf(baseline)
	for _, name := range results.Names(points) {
		if len(there[name]) > 0 && (len(here[name]) > 1 || len(there[name]) > 1) {
			out = append(out, name)
		}
	}
	return out
}

// valuesOf returns the distinct values of each parameter.
func valuesOf(points []results.Point) map[v1alpha1.SweepName][]string {
	out := map[v1alpha1.SweepName][]string{}
	for _, p := range points {
		for _, v := range p.Parameters {
			if same := canonical(v.Name, v.Value); !slices.Contains(out[v.Name], same) {
				out[v.Name] = append(out[v.Name], same)
			}
		}
	}
	return out
}

// keyOf returns the key of a point on its side. complete is false if the point lacks one of the parameters.
func keyOf(p results.Point, keys []v1alpha1.SweepName) (key string, complete bool) {
	var out []string
	for _, name := range keys {
		value := p.Value(name)
		if value == "" {
			return "", false
		}
		out = append(out, canonical(name, value))
	}
	return strings.Join(out, "\x00"), true
}

// canonical formats equal values in the same way.
func canonical(name v1alpha1.SweepName, value string) string {
	if number, is := results.Number(name, value); is {
		return fmt.Sprint(number)
	}
	return value
}

// summaryOf summarizes a comparison, such as "27 results of 9 points compared with before: 2 better, 1 worse, 24 within the noise".
func summaryOf(pair Pair, matches []match, found results.Comparison, terms Terms) string {
	if len(found.Refused) > 0 && !terms.AllowDifferences {
		return fmt.Sprintf("not compared with %s, which measured something else", pair.Of)
	}
	sentence, rest := counted(pair, matches, terms)
	return strings.Join(append([]string{sentence}, rest...), "; ")
}

// counted counts the verdicts, and returns remarks about them.
func counted(pair Pair, matches []match, terms Terms) (sentence string, rest []string) {
	verdicts, compared := map[results.Verdict]int{}, map[int]bool{}
	metrics, worst, where, meanOnly := 0, 0.0, "", false
	for _, m := range matches {
		b := m.metric.Baseline
		if b.Verdict == results.Unrated {
			continue
		}
		metrics++
		verdicts[b.Verdict]++
		compared[m.point] = true
		meanOnly = meanOnly || pair.Baseline.Spec.ToolName() == "" && !repeated(m.other)
		if loss := math.Abs(b.Change); b.Verdict == results.Worse && loss > worst {
			worst, where = loss, fmt.Sprintf("%s %s at point %d", m.metric.Name, change(b.Change), pair.Run.Points[m.point].Index)
		}
	}
	if metrics == 0 {
		sentence = fmt.Sprintf("nothing to compare with %s: no point has the same parameters, and a metric of the same name and unit, there", pair.Of)
		return sentence, ambiguous(pair)
	}
	sentence = fmt.Sprintf("%s of %s compared with %s: %d better, %d worse, %d within the noise", plural(metrics, "result"), plural(len(compared), "point"),
		pair.Of, verdicts[results.Better], verdicts[results.Worse], verdicts[results.WithinNoise])
	if n := verdicts[results.Small]; n > 0 {
		sentence += fmt.Sprintf(", %d below %s %%", n, strconv.FormatFloat(100*terms.Tolerance, 'g', 4, 64))
	}
	if n := verdicts[results.Unknown]; n > 0 {
		sentence += fmt.Sprintf(", %d not known without repetitions", n)
	}
	if n := verdicts[results.UnknownBest]; n > 0 {
		sentence += fmt.Sprintf(", %d not known of the best of several points", n)
	}
	if where != "" {
		rest = append(rest, "the largest loss is "+where)
	}
	alone := 0
	for i, p := range pair.Run.Points {
		if len(p.Metrics) > 0 && !compared[i] {
			alone++
		}
	}
	if alone > 0 && verdicts[results.UnknownBest] == 0 {
		rest = append(rest, plural(alone, "point")+" not there")
	}
	if meanOnly {
		rest = append(rest, "only means were published there, so that side has no interval")
	}
	return sentence, append(rest, ambiguous(pair)...)
}

// ambiguous returns the baseline's varying parameters that the run does not have.
func ambiguous(pair Pair) []string {
	there, keys := valuesOf(pair.Baseline.Points), keysOf(pair.Run.Points, pair.Baseline.Points)
	var out []string
	for _, name := range results.Names(pair.Baseline.Points) {
		if len(there[name]) > 1 && !slices.Contains(keys, name) {
			out = append(out, fmt.Sprintf("it varies %s, of which this run says nothing", name))
		}
	}
	return out
}

// plural formats a count with its noun.
func plural(n int, thing string) string {
	if n == 1 {
		return "1 " + thing
	}
	return fmt.Sprintf("%d %ss", n, thing)
}
