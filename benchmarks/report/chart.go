package report

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"

	"parallelfs.dev/operator/api/v1alpha1"
	"parallelfs.dev/operator/benchmarks/results"
	"parallelfs.dev/operator/benchmarks/stats"
)

// ErrorBars selects the meaning of the error bars in a chart.
type ErrorBars string

// The kinds of error bars.
const (
	// MinMax shows the lowest and the highest sample.
	MinMax ErrorBars = "min-max"
	// Confidence shows the 95 % confidence interval of the mean.
	Confidence ErrorBars = "95"
)

// chart is one picture: the values of one metric over one parameter.
type chart struct {
	// id is unique in a report.
	id          string
	title, unit string
	shows       quantity
	// dimension is the parameter on the horizontal axis, and log2 makes its scale logarithmic. On an axis of words the values are at 0, 1, 2….
	dimension string
	words     bool
	log2      bool
	// ticks holds the axis values as the user wrote them.
	ticks []tick
	lines []line
	// bars draws bars instead of lines.
	bars bool
	// whiskers describes the error bars; empty without them.
	whiskers string
	// baselineOf names the source of the dashed lines.
	baselineOf string
}

type tick struct {
	at   float64
	text string
}

// line is one combination of the parameters that are not on the horizontal axis, or the baseline's values for it.
type line struct {
	name string
	// style is the same for a line and its baseline.
	style    int
	baseline bool
	values   []value
}

// value is one point of a line.
type value struct {
	x, y      float64
	low, high float64
	best      bool
}

// mostLines is the maximum number of lines in a chart. With more, there is one chart for each value of a parameter.
const mostLines = 12

// quantity is the property of a metric that a chart shows.
type quantity int

const (
	theValue quantity = iota
	theSpeedup
	theEfficiency
)

// charts returns the charts of a sheet: for each metric its value, then its speed-up and its efficiency if there are any.
func (s *sheet) charts(bars ErrorBars) []chart {
	var out []chart
	best := map[string]int{}
	for _, b := range stats.BestPoints(s.points()) {
		best[b.Name+"\x00"+b.Unit] = b.Point
	}
	for i, m := range s.metrics {
		winner, has := best[m.name+"\x00"+m.unit]
		if !has {
			winner = -1
		}
		for _, q := range []quantity{theValue, theSpeedup, theEfficiency} {
			found := s.picture(m, q, bars, winner, s.rows, "")
			for j := range found {
				found[j].id = fmt.Sprintf("%s-%d-%d-%d", s.id, i, q, j)
			}
			out = append(out, found...)
		}
	}
	return out
}

// picture draws the rows as one chart, or as several if there are too many lines for one. suffix names the part of the rows in a chart.
func (s *sheet) picture(m metric, q quantity, bars ErrorBars, best int, rows []row, suffix string) []chart {
	axis, others := axes(rows, s.varied, s.along)
	if count := combinations(rows, others); count > mostLines && len(others) > 1 {
		var out []chart
		for _, text := range others[0].values {
			part := slices.DeleteFunc(slices.Clone(rows), func(r row) bool { return r.value(others[0].name) != text })
			name := short(others[0].name) + " " + text
			out = append(out, s.picture(m, q, bars, best, part, strings.TrimPrefix(suffix+", "+name, ", "))...)
		}
		return out
	}
	c := chart{title: m.name, unit: m.unit, shows: q}
	switch q {
	case theSpeedup:
		c.title, c.unit = m.name+": speed-up", "speed-up"
	case theEfficiency:
		c.title, c.unit = m.name+": efficiency", "efficiency in %"
	}
	if suffix != "" {
		c.title += " (" + suffix + ")"
	}
	if axis == nil {
		c.bars, c.words = true, true
	} else {
		c.dimension = short(axis.name)
		c.words = axis.numbers == nil
		c.bars = c.words || len(axis.values) == 1
		c.log2 = !c.bars && powersOfTwo(axis.numbers)
		if c.bars {
			c.words = true
		}
		for i, text := range axis.values {
			at := float64(i)
			if !c.words {
				at = axis.numbers[i]
			}
			c.ticks = append(c.ticks, tick{at, text})
		}
	}
	c.fill(rows, others, axis, m, q, bars, best)
	if len(c.lines) == 0 {
		return nil
	}
	return []chart{c}
}

// fill adds the measured lines, and then the baselines.
func (c *chart) fill(rows []row, others []dimension, axis *dimension, m metric, q quantity, bars ErrorBars, best int) {
	var baselines []line
	shown, spread := map[string]int{}, false
	var sources []string
	for _, r := range rows {
		found := r.point.Metric(m.name, m.unit)
		if found == nil || r.point.State != v1alpha1.PointSucceeded {
			continue
		}
		v, has := shownOf(found, q, bars)
		if !has {
			continue
		}
		spread = spread || v.high > v.low
		v.best = q == theValue && r.point.Index == best
		if axis != nil {
			v.x = c.place(axis, r.value(axis.name))
		}
		if math.IsNaN(v.y) || math.IsInf(v.y, 0) {
			continue
		}
		name := combination(r, others)
		i, has := shown[name]
		if !has {
			i = len(c.lines)
			shown[name] = i
			c.lines = append(c.lines, line{name: name, style: i})
			baselines = append(baselines, line{name: name, style: i, baseline: true})
		}
		c.lines[i].values = append(c.lines[i].values, v)
		if q == theValue && found.Baseline != nil {
			b := found.Baseline
			baselines[i].values = append(baselines[i].values, value{x: v.x, y: b.Value, low: b.Value, high: b.Value})
			if !slices.Contains(sources, b.Of) {
				sources = append(sources, b.Of)
			}
		}
	}
	c.baselineOf = strings.Join(sources, ", ")
	if spread {
		c.whiskers = "lowest and highest sample"
		if bars == Confidence {
			c.whiskers = "95 % confidence interval of the mean"
		}
	}
	for _, l := range baselines {
		if len(l.values) > 0 {
			c.lines = append(c.lines, l)
		}
	}
	if c.measured() == 1 && len(c.lines[0].values) == 1 {
		c.lines[0].values[0].best = false // there is nothing that it is better than
	}
	for _, l := range c.lines {
		slices.SortStableFunc(l.values, func(a, b value) int { return cmp.Compare(a.x, b.x) })
	}
}

// shownOf returns the shown property of a metric with the ends of its error bar, and whether the metric has it.
func shownOf(m *results.Metric, q quantity, bars ErrorBars) (value, bool) {
	switch {
	case q == theSpeedup:
		return exactly(m.Speedup, 1)
	case q == theEfficiency:
		return exactly(m.Efficiency, 100)
	case bars != Confidence:
		return value{y: m.Value, low: min(m.Min, m.Value), high: max(m.Max, m.Value)}, true
	case m.Confidence == nil, m.Value != m.Mean: // the interval is that of the mean, and not of a median or a maximum
		return exactly(&m.Value, 1)
	}
	return value{y: m.Value, low: m.Value - *m.Confidence, high: m.Value + *m.Confidence}, true
}

// exactly returns a number without an error bar, in the unit of the chart.
func exactly(number *float64, scale float64) (value, bool) {
	if number == nil {
		return value{}, false
	}
	v := *number * scale
	return value{y: v, low: v, high: v}, true
}

// place returns the position of a value on the axis.
func (c *chart) place(axis *dimension, text string) float64 {
	i := slices.Index(axis.values, text)
	if c.words {
		return float64(i)
	}
	return axis.numbers[i]
}

// top returns the highest value in the chart, including error bars.
func (c *chart) top() float64 {
	top := 0.0
	for _, l := range c.lines {
		for _, v := range l.values {
			top = max(top, v.y, v.high)
		}
	}
	return top
}

// measured counts the lines that are not baselines.
func (c *chart) measured() int {
	count := 0
	for _, l := range c.lines {
		if !l.baseline {
			count++
		}
	}
	return count
}

// label returns the text beside a line.
func (c *chart) label(l line) string {
	switch name := l.name; {
	case l.baseline && name == "":
		return "baseline"
	case l.baseline:
		return name + ", baseline"
	case name == "" && c.measured() < len(c.lines):
		return "this run"
	default:
		return name
	}
}

// describe describes the chart in words, for blind readers.
func (c *chart) describe() string {
	var b strings.Builder
	kind := "Line chart"
	if c.bars {
		kind = "Bar chart"
	}
	fmt.Fprintf(&b, "%s of %s in %s", kind, c.title, c.unit)
	if c.dimension != "" {
		fmt.Fprintf(&b, " over %s", c.dimension)
	}
	if c.log2 {
		b.WriteString(", which doubles from mark to mark")
	}
	b.WriteString(".")
	for _, l := range c.lines {
		first, last := l.values[0], l.values[len(l.values)-1]
		b.WriteString(" ")
		if name := c.label(l); name != "" {
			b.WriteString(name + ": ")
		}
		b.WriteString(number(first.y))
		if c.dimension != "" {
			b.WriteString(" at " + c.tickText(first.x))
		}
		if len(l.values) > 1 {
			fmt.Fprintf(&b, ", %s at %s", number(last.y), c.tickText(last.x))
		}
		for _, v := range l.values {
			if v.best && len(l.values) > 1 {
				fmt.Fprintf(&b, ", best %s at %s", number(v.y), c.tickText(v.x))
			}
		}
		b.WriteString(".")
	}
	return b.String()
}

// tickText returns the user's text for a value on the axis.
func (c *chart) tickText(x float64) string {
	for _, t := range c.ticks {
		if t.at == x {
			return t.text
		}
	}
	return number(x)
}

// metric identifies the metric of a column.
type metric struct{ name, unit string }

// metricsOf returns the metrics of the points, in the order of their first occurrence.
func metricsOf(points []results.Point) []metric {
	var out []metric
	for _, p := range points {
		for _, m := range p.Metrics {
			if key := (metric{m.Name, m.Unit}); !slices.Contains(out, key) {
				out = append(out, key)
			}
		}
	}
	return out
}
