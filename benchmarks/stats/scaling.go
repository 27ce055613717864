package stats

import (
	"math"
	"strings"

	"parallelfs.dev/operator/api/v1alpha1"
	"parallelfs.dev/operator/benchmarks/results"
)

// Scaling fills in the speed-up and the efficiency of all metrics along the parameter spec.along. The reference with speed-up 1 is the
// first point with the smallest value of that parameter. It is chosen among the points with the same other swept parameters or, in a zipped
// sweep, among all. If the reference lacks a metric, or its value is 0, there is no speed-up of that metric. A metric that is no rate has
// none either.
func Scaling(points []results.Point, spec *v1alpha1.BenchmarkRunSpec) {
	for i := range points {
		for j := range points[i].Metrics {
			points[i].Metrics[j].Speedup, points[i].Metrics[j].Efficiency = nil, nil
		}
	}
	if spec.Along == "" {
		return
	}
	var groups []string
	members := map[string][]int{}
	for i, p := range points {
		if _, is := results.Number(spec.Along, p.Value(spec.Along)); !is {
			continue
		}
		group := groupOf(p, spec)
		if members[group] == nil {
			groups = append(groups, group)
		}
		members[group] = append(members[group], i)
	}
	for _, group := range groups {
		reference := members[group][0]
		for _, i := range members[group] {
			if along(points[i], spec) < along(points[reference], spec) {
				reference = i
			}
		}
		for _, i := range members[group] {
			scale(&points[i], points[reference], along(points[i], spec)/along(points[reference], spec))
		}
	}
}

// along is the value of the parameter spec.along.
func along(p results.Point, spec *v1alpha1.BenchmarkRunSpec) float64 {
	number, _ := results.Number(spec.Along, p.Value(spec.Along)) // its group was handled before
	return number
}

// groupOf returns a key that is equal for all points with the same reference.
func groupOf(p results.Point, spec *v1alpha1.BenchmarkRunSpec) string {
	if spec.SweepMode == v1alpha1.SweepZipped {
		return ""
	}
	var out []string
	for _, d := range spec.Sweep {
		if d.Name != spec.Along {
			out = append(out, p.Value(d.Name))
		}
	}
	return strings.Join(out, "\x00")
}

// scale fills in the metrics of a point that has that many times the resources of the reference.
func scale(p *results.Point, reference results.Point, times float64) {
	// The reference may be the point itself. Its values are not changed.
	for i := range p.Metrics {
		m := &p.Metrics[i]
		other := reference.Metric(m.Name, m.Unit)
		if other == nil {
			continue
		}
		if scales(*m) {
			m.Speedup, m.Efficiency = speedup(m.Value, other.Value, times)
		}
	}
}

// speedup returns value divided by reference, and the efficiency, which is the speed-up divided by the ratio of resources. For example,
// 1,720,799 / 110,000 is 15.64, and with 20 times the servers the efficiency is 78.2 %. Both are nil if there is no speed-up.
func speedup(value, reference, times float64) (up, efficiency *float64) {
	if reference == 0 || math.IsNaN(times) || math.IsInf(times, 0) || times <= 0 {
		return nil, nil
	}
	return new(value / reference), new(value / reference / times)
}

// Best is the point with the best value of a metric.
type Best struct {
	Name, Unit string
	Value      float64
	// Point by its index.
	Point int

	scales bool
}

// BestPoints returns the point with the best value of each metric that has a direction, in the order of the metrics; the first one if
// several are equal. Only points that succeeded count.
func BestPoints(points []results.Point) []Best {
	var out []Best
	at := map[metric]int{}
	for _, p := range points {
		if p.State != v1alpha1.PointSucceeded {
			continue
		}
		for _, m := range p.Metrics {
			direction, key := DirectionOf(m), metric{m.Name, m.Unit}
			if direction == v1alpha1.BetterNeither {
				continue
			}
			next := Best{Name: m.Name, Unit: m.Unit, Value: m.Value, Point: p.Index, scales: scales(m)}
			if i, found := at[key]; !found {
				at[key] = len(out)
				out = append(out, next)
			} else if better(direction, m.Value, out[i].Value) {
				out[i] = next
			}
		}
	}
	return out
}

// Status returns the best point in the form of the status.
func (b Best) Status() v1alpha1.BestPoint {
	return v1alpha1.BestPoint{Name: b.Name, Unit: b.Unit, Value: format(b.Value), Index: int32(b.Point)} //nolint:gosec // at most 256 points
}

// Figure is the best value of one metric of one run of one variant of a suite.
type Figure struct {
	Variant, Run, Metric, Unit string
	Value                      float64
	// At names the varied parameters of the best point, such as "processes=64".
	At string
	// Speedup and Efficiency (1 is perfect) are relative to the first variant with the smallest scale; nil without scales.
	Speedup, Efficiency *float64

	scales bool
}

// Table returns the figures of a suite by run, then metric, then variant, each in the order of the suite.
func Table(suite results.Suite) []Figure {
	type row struct {
		run string
		metric
	}
	var order []row
	found := map[row]map[int]Figure{}
	for v, variant := range suite.Variants {
		for _, run := range variant.Runs {
			for _, best := range BestPoints(run.Run.Points) {
				key := row{run.Name, metric{best.Name, best.Unit}}
				if found[key] == nil {
					found[key] = map[int]Figure{}
					order = append(order, key)
				}
				found[key][v] = Figure{
					Variant: variant.Name, Run: run.Name, Metric: best.Name, Unit: best.Unit, Value: best.Value, At: run.Run.Describe(best.Point),
					scales: best.scales,
				}
			}
		}
	}
	reference := smallest(suite.Variants)
	var out []Figure
	for _, run := range runsOf(suite) {
		for _, key := range order {
			if key.run != run {
				continue
			}
			for v, variant := range suite.Variants {
				figure, has := found[key][v]
				if !has {
					continue
				}
				if base, has := found[key][reference]; has && variant.Scale > 0 && figure.scales {
					times := float64(variant.Scale) / float64(suite.Variants[reference].Scale)
					figure.Speedup, figure.Efficiency = speedup(figure.Value, base.Value, times)
				}
				out = append(out, figure)
			}
		}
	}
	return out
}

// smallest returns the index of the first variant with the smallest scale; -1 without scales.
func smallest(variants []results.Variant) int {
	out := -1
	for i, v := range variants {
		if v.Scale > 0 && (out < 0 || v.Scale < variants[out].Scale) {
			out = i
		}
	}
	return out
}

// runsOf returns the names of the runs in the order of the suite.
func runsOf(suite results.Suite) []string {
	var out []string
	known := map[string]bool{}
	for _, variant := range suite.Variants {
		for _, run := range variant.Runs {
			if !known[run.Name] {
				known[run.Name] = true
				out = append(out, run.Name)
			}
		}
	}
	return out
}

// Status returns the figure in the form of the status.
func (f Figure) Status() v1alpha1.SuiteFigure {
	return v1alpha1.SuiteFigure{
		Variant: f.Variant, Run: f.Run, Metric: f.Metric, Unit: f.Unit, Value: format(f.Value), At: v1alpha1.Cut(f.At, 256),
		Speedup: optional(f.Speedup, ratio), Efficiency: optional(f.Efficiency, percent),
	}
}
