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

// Pair is two runs that are compared. A published table is a run without a spec.
type Pair struct {
	// Run is the one whose metrics get a Baseline.
	Run results.Run
	// Baseline is what it is compared with, and Of names that.
	Baseline results.Run
	Of       string
}

// Terms are how runs are compared.
type Terms struct {
	// Tolerance is the smallest relative difference that counts: 0.03 is 3 %.
	Tolerance float64
	// AllowDifferences compares although the two did not measure the same.
	AllowDifferences bool
}

// DefaultTolerance is that of spec.baseline.tolerancePercent.
const DefaultTolerance = 0.03

// TermsOf are the terms of a run's spec.
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

// familyAlpha is how often two equal runs may differ in anything at all.
const familyAlpha = 0.05

// Compare fills the baseline of all metrics of the runs for which the other side has the same metric in the same unit at the same
// parameters, and returns what there is to say of each pair, in their order.
//
// Parameters are the same when those are that both sides have and that vary on either; 1m and 1024k are the same. Where several points of
// the baseline fit, none is taken. Where the two sides did not measure the same (Comparison.Refused) nothing is compared, unless the terms
// allow it.
//
// A metric is better or worse when chance does not explain the difference, and it is at least the tolerance. The means of two that were
// repeated are compared by Welch's t-test. With repetitions on one side only, the other side's value is compared with the prediction
// interval of one more repetition. With none, nobody can say. A published figure without the number of samples counts as one value.
// Each of many metrics may differ by chance. So all tests of all pairs are one family, and Holm's method (A Simple Sequentially Rejective
// Multiple Test Procedure, Scandinavian Journal of Statistics 6, 1979) bounds the chance that two equal runs differ in any to 5 %.
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

// match is a metric and what the baseline has beside it.
type match struct {
	point  int
	metric *results.Metric
	other  results.Metric
	// best is true when the best of several points stands beside a best that was published.
	best bool
	// tested is true when the difference was tested; p is the chance of one as large between equals, and beyond is true when Holm's
	// method rejects that they are equal.
	tested bool
	p      float64
	beyond bool
}

// matchesOf finds what can be compared, and tests it.
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
	out = slices.DeleteFunc(out, func(m match) bool { return m.other.Value == 0 && m.metric.Value != 0 }) // there is no relative difference
	for i := range out {
		m := &out[i]
		if DirectionOf(*m.metric) != v1alpha1.BetterNeither && !m.best {
			m.p, m.tested = test(*m.metric, m.other)
		}
	}
	return out
}

// bestMatches are the best points of a run beside those that were published as the best over a parameter.
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

// verdict is what is said of a metric.
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
	// Of another statistic than the mean, the values may differ the other way round than the means: then nothing is said.
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

// test is the chance that equals differ by as much as two metrics; known is false when neither side has a deviation.
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
		// Welch's t-test, with the degrees of freedom of Welch and Satterthwaite.
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

// repeated is true for a metric that has a deviation of a known number of samples.
func repeated(m results.Metric) bool { return m.StdDev != nil && m.Samples > 1 }

// holm marks the matches whose differences chance does not explain: the smallest p must be at most alpha over the number of tests, the
// next at most alpha over one less, and so on, up to the first that is not.
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

// keysOf are the names that both sides have and that vary on either, in the order of the points.
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

// valuesOf are the different values of each parameter.
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

// keyOf tells the points of a side apart; complete is false for a point that lacks one of the names.
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

// canonical writes values that mean the same in the same way.
func canonical(name v1alpha1.SweepName, value string) string {
	if number, is := results.Number(name, value); is {
		return fmt.Sprint(number)
	}
	return value
}

// summaryOf sums up a comparison, such as "27 results of 9 points compared with before: 2 better, 1 worse, 24 within the noise".
func summaryOf(pair Pair, matches []match, found results.Comparison, terms Terms) string {
	if len(found.Refused) > 0 && !terms.AllowDifferences {
		return fmt.Sprintf("not compared with %s, which measured something else", pair.Of)
	}
	sentence, rest := counted(pair, matches, terms)
	return strings.Join(append([]string{sentence}, rest...), "; ")
}

// counted counts the verdicts, and says what else there is to know of them.
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

// ambiguous are the parameters of the baseline that vary there and do not stand here.
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

// plural counts things.
func plural(n int, thing string) string {
	if n == 1 {
		return "1 " + thing
	}
	return fmt.Sprintf("%d %ss", n, thing)
}
