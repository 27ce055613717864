package stats

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"gonum.org/v1/gonum/stat/distuv"

	"parallelfs.dev/operator/api/v1alpha1"
	"parallelfs.dev/operator/benchmarks/results"
)

// Pair holds two runs that are compared. A published table is a run without a spec.
type Pair struct {
	// Run is the run whose metrics get a Baseline.
	Run results.Run
	// Baseline is the other run, and Of is its name in sentences.
	Baseline results.Run
	Of       string
}

// Terms sets how runs are compared.
type Terms struct {
	// Tolerance is the smallest relative difference that counts: 0.03 is 3 %.
	Tolerance float64
	// AllowDifferences is true if runs are compared even if they did not measure the same thing.
	AllowDifferences bool
	// Metrics lists the names of the metrics that are rated. The others show their change only. If it is empty, all metrics are rated.
	Metrics []string
}

// DefaultTolerance is the default of spec.baseline.tolerancePercent.
const DefaultTolerance = 0.03

// TermsOf returns the terms in a run's spec.
func TermsOf(spec *v1alpha1.BaselineSpec) Terms {
	out := Terms{Tolerance: DefaultTolerance}
	if spec == nil {
		return out
	}
	out.AllowDifferences, out.Metrics = spec.AllowDifferences, spec.Metrics
	if percent, err := strconv.ParseFloat(string(spec.TolerancePercent), 64); err == nil {
		out.Tolerance = percent / 100
	}
	return out
}

// familyAlpha bounds the chance that two equal runs differ in any metric.
const familyAlpha = 0.05

// Compare fills in the baseline of each metric for which the other side has the same metric, in the same unit and at the same parameters.
// It returns one Comparison for each pair, in their order.
//
// Two points match if all parameters that both sides have, and that vary on either side, are equal; 1m equals 1024k. If several points of
// the baseline match, none is used. If the two sides did not measure the same thing (Comparison.Refused), nothing is compared, unless the
// terms allow it.
//
// A metric is better or worse if chance does not explain the difference, and the difference is at least the tolerance. If both sides were
// repeated, Welch's t-test compares their means. If only one side was repeated, the value of the other side is compared with the prediction
// interval for one more repetition. If neither was, the verdict is unknown. A published figure without a number of samples counts as one
// value. Each of many metrics may differ by chance. Therefore all tests of all pairs are one family. Holm's method bounds the chance that
// two equal runs differ in any metric to 5 % (Scandinavian Journal of Statistics 6, 1979). A rate that a tool prints in two units is one
// member of the family.
func Compare(pairs []Pair, terms Terms) []results.Comparison {
	matches := make([][]match, len(pairs))
	out := make([]results.Comparison, len(pairs))
	var family []member
	for i, pair := range pairs {
		out[i] = differences(pair)
		clearBaselines(pair.Run.Points)
		if len(out[i].Refused) > 0 && !terms.AllowDifferences {
			continue
		}
		matches[i] = matchesOf(pair, terms)
		family = append(family, members(matches[i])...)
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

// match is a metric with the baseline's metric at the same parameters.
type match struct {
	point  int
	metric *results.Metric
	other  results.Metric
	// best is true if the best of several points is compared with a published best.
	best bool
	// judged is true for a metric that can be better or worse, and that the terms include.
	judged bool
	// tested is true if the difference was tested. p is the probability of such a difference between equal runs. beyond is true if Holm's
	// method rejects that the two are equal.
	tested bool
	p      float64
	beyond bool
}

// matchesOf returns the metrics that can be compared, and tests their differences.
func matchesOf(pair Pair, terms Terms) []match {
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
		m.judged = DirectionOf(*m.metric) != v1alpha1.BetterNeither && (len(terms.Metrics) == 0 || slices.Contains(terms.Metrics, m.metric.Name))
		if m.judged && !m.best {
			m.p, m.tested = test(*m.metric, m.other)
		}
	}
	return out
}

// bestMatches returns the best points of a run, matched with points that were published as the best over a parameter.
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

// verdict returns the verdict on a metric.
func (m match) verdict(of string, terms Terms) *results.Baseline {
	out := &results.Baseline{Of: of, Value: m.other.Value, Verdict: results.Unknown}
	difference := m.metric.Value - m.other.Value
	if difference != 0 {
		out.Change = difference / math.Abs(m.other.Value)
	}
	direction := DirectionOf(*m.metric)
	switch {
	case !m.judged:
		out.Verdict = results.Unrated
	case m.best:
		out.Verdict = results.UnknownBest
	case !m.tested:
	// A statistic other than the mean may differ in the opposite direction to the means. The verdict is then within the noise.
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

// member is one member of the family of tests: a metric, or several metrics that are multiples of each other.
type member []*match

// p is the largest p of its metrics. They differ only by the tool's rounding.
func (m member) p() float64 {
	largest := 0.0
	for _, one := range m {
		largest = max(largest, one.p)
	}
	return largest
}

// members groups the tested metrics of a pair into members of the family.
func members(all []match) []member {
	var out []member
	for i := range all {
		m := &all[i]
		if !m.tested {
			continue
		}
		same := slices.IndexFunc(out, func(other member) bool { return sameThing(*m, *other[0]) })
		if same >= 0 {
			out[same] = append(out[same], m)
		} else {
			out = append(out, member{m})
		}
	}
	return out
}

// sameThing reports whether two metrics of a point are multiples of each other on both sides, such as a rate in MiB/s and the same rate in
// operations per second. Their means and their deviations have the same ratio, within the digits that the tool prints.
func sameThing(a, b match) bool {
	const digits = 0.002
	if a.point != b.point || a.best != b.best || DirectionOf(*a.metric) != DirectionOf(*b.metric) || b.metric.Mean == 0 || b.other.Mean == 0 {
		return false
	}
	ratio := a.metric.Mean / b.metric.Mean
	multiple := func(x, y results.Metric) bool {
		equal := func(x, y float64) bool { return math.Abs(x-y) <= digits*math.Abs(x) }
		switch {
		case x.Samples != y.Samples || !equal(x.Mean, ratio*y.Mean) || (x.StdDev == nil) != (y.StdDev == nil):
			return false
		case x.StdDev == nil:
			return true
		}
		return equal(*x.StdDev, math.Abs(ratio)**y.StdDev)
	}
	return multiple(*a.metric, *b.metric) && multiple(a.other, b.other)
}

// mostUnequal is the largest ratio between the numbers of samples of the two sides for which Welch and Satterthwaite's degrees of freedom
// are used. Beyond it, their approximation is too optimistic in the far tails, which matter with many metrics. With 120 metrics of 3 and 10
// samples, equal runs would differ in 22 % of comparisons. The degrees of freedom are then those of the smaller side, which is their lower
// bound (Welch, The Generalization of Student's Problem, Biometrika 34, 1947).
const mostUnequal = 1.5

// freedomOf returns the degrees of freedom of the difference of two means with the squared standard errors va and vb.
func freedomOf(na, va, nb, vb float64) float64 {
	smaller, larger := min(na, nb), max(na, nb)
	if larger > mostUnequal*smaller {
		return smaller - 1
	}
	return (va + vb) * (va + vb) / (va*va/(na-1) + vb*vb/(nb-1))
}

// test returns the probability that two equal runs differ by as much as these metrics. known is false if neither side has a deviation.
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
		// Welch's t-test.
		na, nb := float64(a.Samples), float64(b.Samples)
		va, vb := *a.StdDev**a.StdDev/na, *b.StdDev**b.StdDev/nb
		variance, freedom = va+vb, freedomOf(na, va, nb, vb)
	}
	switch {
	case difference == 0:
		return 1, true
	case variance == 0:
		return 0, true
	}
	return 2 * distuv.StudentsT{Sigma: 1, Nu: freedom}.Survival(difference/math.Sqrt(variance)), true
}

// repeated reports whether a metric has a deviation over a known number of samples.
func repeated(m results.Metric) bool { return m.StdDev != nil && m.Samples > 1 }

// holm marks the matches whose differences chance does not explain. The smallest p must be at most alpha divided by the number of tests n,
// the next at most alpha divided by n-1, and so on. The first p that is larger ends the series.
func holm(family []member) {
	slices.SortStableFunc(family, func(a, b member) int { return cmp.Compare(a.p(), b.p()) })
	for i, m := range family {
		if m.p() > familyAlpha/float64(len(family)-i) {
			return
		}
		for _, one := range m {
			one.beyond = true
		}
	}
}

// keysOf returns the names of the parameters that both sides have and that vary on either side, in the order of the points.
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

// keyOf returns a key that distinguishes the points of a side. complete is false for a point that lacks one of the names.
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

// canonical returns the same text for values that mean the same.
func canonical(name v1alpha1.SweepName, value string) string {
	if number, is := results.Number(name, value); is {
		return fmt.Sprint(number)
	}
	return value
}

// summaryOf returns a summary of a comparison, such as "27 results of 9 points compared with before: 2 better, 1 worse, 24 within the
// noise".
func summaryOf(pair Pair, matches []match, found results.Comparison, terms Terms) string {
	if len(found.Refused) > 0 && !terms.AllowDifferences {
		return fmt.Sprintf("not compared with %s, which measured something else", pair.Of)
	}
	sentence, rest := counted(pair, matches, terms)
	return strings.Join(append([]string{sentence}, rest...), "; ")
}

// counted returns the numbers of verdicts as a text, with remarks about them.
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
	for _, name := range terms.Metrics {
		if !slices.ContainsFunc(matches, func(m match) bool { return m.metric.Name == name && m.judged }) {
			rest = append(rest, fmt.Sprintf("%q was named to be judged, and was not compared", name))
		}
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

// ambiguous returns the parameters that vary in the baseline and that the run does not have.
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

// plural formats a number with its noun.
func plural(n int, thing string) string { return v1alpha1.Count(n, thing, thing+"s") }
