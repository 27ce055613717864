package stats

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"parallelfs.dev/operator/api/v1alpha1"
	"parallelfs.dev/operator/benchmarks/results"
)

// Compare fills the baseline of all metrics of the points for which the other points, which are named of, have the same metric in the
// same unit at the same parameters. It returns a sentence that sums up, such as "27 results of 9 points compared with before: 2 better,
// 1 worse, 24 within the noise".
//
// Parameters are the same when those are that both sides have and that vary on either; 1m and 1024k are the same. What is constant on both
// sides may differ, as of two runs that compare two pools: the sentence says so. Where several points of the baseline fit,
// none is taken.
//
// A difference is beyond the noise when the means differ by Welch's t-test at 95 %. With repetitions on one side only, it is when the
// other side's value lies outside of the 95 % prediction interval of one more repetition. With none, nobody can say. A deviation
// that was published without the number of samples counts as one of two.
func Compare(points, baseline []results.Point, of string) string {
	keys := keysOf(points, baseline)
	others := map[string][]int{}
	for i, b := range baseline {
		if key, complete := keyOf(b, keys); complete {
			others[key] = append(others[key], i)
		}
	}
	c := counted{}
	for i := range points {
		p := &points[i]
		key, complete := keyOf(*p, keys)
		found := others[key]
		compared := false
		for j := range p.Metrics {
			m := &p.Metrics[j]
			m.Baseline = nil
			if !complete || len(found) != 1 || len(keys) == 0 && len(points) > 1 {
				continue
			}
			if other := baseline[found[0]].Metric(m.Name, m.Unit); other != nil {
				m.Baseline = compareMetric(*m, *other, of)
			}
			if m.Baseline != nil && Direction(m.Unit, m.Name) != Neither {
				compared = true
				c.add(*p, *m)
			}
		}
		switch {
		case compared:
			c.points++
		case len(p.Metrics) > 0:
			c.alone++
		}
	}
	return v1alpha1.Cut(c.sentence(of)+differences(points, baseline, keys), most)
}

// most is the length of the sentence that a status takes.
const most = 512

// compareMetric compares one metric; nil when there is no relative difference, because the other is 0.
func compareMetric(m, other results.Metric, of string) *results.Baseline {
	out := &results.Baseline{Of: of, Value: other.Value, Verdict: results.Unknown}
	switch {
	case m.Value == other.Value:
	case other.Value == 0:
		return nil
	default:
		out.Change = (m.Value - other.Value) / math.Abs(other.Value)
	}
	direction := Direction(m.Unit, m.Name)
	beyond, known := beyondNoise(m, other)
	switch {
	case direction == Neither || !known:
	// Of another statistic than the mean, the values may differ the other way round than the means: then nothing is said.
	case !beyond || (m.Value-other.Value)*(m.Mean-other.Mean) <= 0:
		out.Verdict = results.WithinNoise
	case direction.better(m.Value, other.Value):
		out.Verdict = results.Better
	default:
		out.Verdict = results.Worse
	}
	return out
}

// beyondNoise is true when the means differ by more than chance makes in 95 % of cases; known is false when neither side has a deviation.
func beyondNoise(a, b results.Metric) (beyond, known bool) {
	difference := math.Abs(a.Mean - b.Mean)
	switch {
	case a.StdDev == nil && b.StdDev == nil:
		return false, false
	case a.StdDev == nil || b.StdDev == nil:
		repeated := a
		if a.StdDev == nil {
			repeated = b
		}
		n := samples(repeated)
		return difference > student(int(n)-1)**repeated.StdDev*math.Sqrt(1+1/n), true
	}
	// Welch's t-test, with the degrees of freedom of Welch and Satterthwaite.
	na, nb := samples(a), samples(b)
	va, vb := *a.StdDev**a.StdDev/na, *b.StdDev**b.StdDev/nb
	if va+vb == 0 {
		return difference > 0, true
	}
	freedom := (va + vb) * (va + vb) / (va*va/(na-1) + vb*vb/(nb-1))
	return difference > quantile(freedom)*math.Sqrt(va+vb), true
}

// samples of a metric that has a deviation: at least two.
func samples(m results.Metric) float64 { return float64(max(m.Samples, 2)) }

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

// differences says which constants differ, and which parameters of the baseline make it ambiguous.
func differences(points, baseline []results.Point, keys []v1alpha1.SweepName) string {
	here, there := valuesOf(points), valuesOf(baseline)
	var out []string
	for _, name := range results.Names(points) {
		if len(here[name]) == 1 && len(there[name]) == 1 && here[name][0] != there[name][0] {
			out = append(out, fmt.Sprintf("%s is %s here and %s there", name, first(points, name), first(baseline, name)))
		}
	}
	for _, name := range results.Names(baseline) {
		if len(there[name]) > 1 && !slices.Contains(keys, name) {
			out = append(out, fmt.Sprintf("it varies %s, of which this run says nothing", name))
		}
	}
	if len(out) == 0 {
		return ""
	}
	return "; " + strings.Join(out, "; ")
}

// first is the first value of a parameter, as it is written.
func first(points []results.Point, name v1alpha1.SweepName) string {
	for _, p := range points {
		if value := p.Value(name); value != "" {
			return value
		}
	}
	return ""
}

// counted is what a comparison has found.
type counted struct {
	points, alone, metrics int
	verdicts               map[results.Verdict]int
	// worst is the metric that has lost most, and where.
	worst float64
	where string
}

func (c *counted) add(p results.Point, m results.Metric) {
	if c.verdicts == nil {
		c.verdicts = map[results.Verdict]int{}
	}
	c.metrics++
	c.verdicts[m.Baseline.Verdict]++
	if loss := math.Abs(m.Baseline.Change); m.Baseline.Verdict == results.Worse && loss > c.worst {
		c.worst, c.where = loss, fmt.Sprintf("%s %s at point %d", m.Name, change(m.Baseline.Change), p.Index)
	}
}

// sentence sums up.
func (c *counted) sentence(of string) string {
	if c.points == 0 {
		return fmt.Sprintf("nothing to compare with %s: no point has the same parameters, and a metric of the same name and unit, there", of)
	}
	out := fmt.Sprintf("%s of %s compared with %s: %d better, %d worse, %d within the noise", plural(c.metrics, "result"), plural(c.points, "point"), of,
		c.verdicts[results.Better], c.verdicts[results.Worse], c.verdicts[results.WithinNoise])
	if n := c.verdicts[results.Unknown]; n > 0 {
		out += fmt.Sprintf(", %d not known without repetitions", n)
	}
	if c.where != "" {
		out += "; the largest loss is " + c.where
	}
	if c.alone > 0 {
		out += fmt.Sprintf("; %s not there", plural(c.alone, "point"))
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
