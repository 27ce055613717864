package results

import (
	"slices"
	"strings"

	"parallelfs.dev/operator/api/v1alpha1"
	"parallelfs.dev/operator/benchmarks"
)

// Values returns the parameters of a point for a document: all with a value, the swept and derived ones first in the order of the spec,
// then the others in the order of the tool.
func Values(point benchmarks.Point, parameters []benchmarks.Parameter) []Value {
	names := slices.Clone(point.Varied)
	for _, p := range parameters {
		if !slices.Contains(names, p.Name) {
			names = append(names, p.Name)
		}
	}
	var out []Value
	for _, name := range names {
		if value, found := point.Parameters[name]; found {
			out = append(out, Value{Name: name, Value: value})
		}
	}
	return out
}

// Number returns the number that a value represents, such as the bytes of a size; false for a word. A size of iozone without a unit is in
// kilobytes.
func Number(name v1alpha1.SweepName, value string) (float64, bool) {
	parse := benchmarks.ParseBytes
	if strings.HasPrefix(string(name), "iozone.") {
		parse = benchmarks.ParseSize
	}
	number, err := parse(value)
	return float64(number), err == nil
}

// Same is true for values that mean the same, such as 64Ki and 64k.
func Same(name v1alpha1.SweepName, a, b string) bool {
	one, is := Number(name, a)
	other, also := Number(name, b)
	return a == b || is && also && one == other
}

// Varied returns the names of the parameters that distinguish the points of a run: the swept and derived ones in the order of the spec or,
// without a sweep, those with differing values.
func (r Run) Varied() []v1alpha1.SweepName {
	var out []v1alpha1.SweepName
	for _, d := range r.Spec.Sweep {
		out = append(out, d.Name)
	}
	for _, d := range r.Spec.Derive {
		out = append(out, d.Name)
	}
	if len(out) > 0 {
		return out
	}
	for _, name := range Names(r.Points) {
		if slices.ContainsFunc(r.Points, func(p Point) bool { return p.Value(name) != r.Points[0].Value(name) }) {
			out = append(out, name)
		}
	}
	return out
}

// Describe names the point with that index by its varied parameters, such as "iozone.recordSize=64k processes=4".
func (r Run) Describe(index int) string {
	i := slices.IndexFunc(r.Points, func(p Point) bool { return p.Index == index })
	if i < 0 {
		return ""
	}
	var out []string
	for _, name := range r.Varied() {
		if value := r.Points[i].Value(name); value != "" {
			out = append(out, string(name)+"="+value)
		}
	}
	return strings.Join(out, " ")
}

// Names returns the names of all parameters in the order of the points.
func Names(points []Point) []v1alpha1.SweepName {
	var out []v1alpha1.SweepName
	for _, p := range points {
		for _, v := range p.Parameters {
			if !slices.Contains(out, v.Name) {
				out = append(out, v.Name)
			}
		}
	}
	return out
}

// Value returns the value of a parameter of the point, or empty.
func (p Point) Value(name v1alpha1.SweepName) string {
	for _, v := range p.Parameters {
		if v.Name == name {
			return v.Value
		}
	}
	return ""
}

// Metric returns the metric with that name and unit, or nil.
func (p Point) Metric(name, unit string) *Metric {
	for i := range p.Metrics {
		if p.Metrics[i].Name == name && p.Metrics[i].Unit == unit {
			return &p.Metrics[i]
		}
	}
	return nil
}
