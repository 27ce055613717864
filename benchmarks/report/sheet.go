package report

import (
	"cmp"
	"slices"
	"strings"

	"parallelfs.dev/operator/api/v1alpha1"
	"parallelfs.dev/operator/benchmarks/results"
)

// Parameter names that a suite adds to those of its points.
const (
	variantName v1alpha1.SweepName = "variant"
	scaleName   v1alpha1.SweepName = "scale"
)

// sheet is a unit of the report: the points of a run, or those of one run of a suite for all variants.
type sheet struct {
	id, title string
	rows      []row
	metrics   []metric
	// varied lists the parameters that distinguish the rows; the derived ones follow from them.
	varied, derived []v1alpha1.SweepName
	along           v1alpha1.SweepName
	statistic       v1alpha1.Statistic
	// best is true if the sheet has the best values of variants, and no points.
	best bool
}

// row is a point with the parameters that a suite adds to it. Its index is unique in the sheet.
type row struct {
	added []results.Value
	point results.Point
}

// value returns the value of a parameter, or empty if the point does not have it.
func (r row) value(name v1alpha1.SweepName) string {
	for _, v := range r.added {
		if v.Name == name {
			return v.Value
		}
	}
	return r.point.Value(name)
}

// runSheet returns the sheet of a run.
func runSheet(id string, run results.Run) *sheet {
	s := &sheet{id: id, title: run.Name, along: run.Spec.Along, statistic: run.Spec.Statistic, metrics: metricsOf(run.Points)}
	for _, name := range run.Varied() {
		if isDerived(run.Spec, name) {
			s.derived = append(s.derived, name)
		} else {
			s.varied = append(s.varied, name)
		}
	}
	for _, p := range run.Points {
		s.rows = append(s.rows, row{point: p})
	}
	return s
}

func isDerived(spec v1alpha1.BenchmarkRunSpec, name v1alpha1.SweepName) bool {
	return slices.ContainsFunc(spec.Derive, func(d v1alpha1.DerivedParameter) bool { return d.Name == name })
}

// points returns the points of all rows.
func (s *sheet) points() []results.Point {
	var out []results.Point
	for _, r := range s.rows {
		out = append(out, r.point)
	}
	return out
}

// suiteSheets returns one sheet for each run of a suite, with the variants as a parameter.
func suiteSheets(suite results.Suite) []*sheet {
	var out []*sheet
	for _, v := range suite.Variants {
		for _, r := range v.Runs {
			i := slices.IndexFunc(out, func(s *sheet) bool { return s.title == r.Name })
			if i < 0 {
				s := runSheet("run-"+slug(r.Name), r.Run)
				s.title, s.rows, s.metrics = r.Name, nil, nil
				s.varied = append([]v1alpha1.SweepName{variantName}, s.varied...)
				out, i = append(out, s), len(out)
			}
			for _, p := range r.Run.Points {
				p.Index = len(out[i].rows)
				out[i].rows = append(out[i].rows, row{added: []results.Value{{Name: variantName, Value: v.Name}}, point: p})
			}
			for _, m := range metricsOf(r.Run.Points) {
				if !slices.Contains(out[i].metrics, m) {
					out[i].metrics = append(out[i].metrics, m)
				}
			}
		}
	}
	return out
}

// dimension is a parameter with its values.
type dimension struct {
	name   v1alpha1.SweepName
	values []string
	// numbers holds the values as numbers, ascending; nil if one of them is a word.
	numbers []float64
}

// axes selects the parameter of the horizontal axis: along, or the first with numeric values, or the first. The others distinguish lines.
// It leaves out parameters with only one value, and those that follow from the axis, as in a zipped sweep.
func axes(rows []row, varied []v1alpha1.SweepName, along v1alpha1.SweepName) (axis *dimension, others []dimension) {
	var found []dimension
	for _, name := range varied {
		if d := dimensionOf(rows, name); len(d.values) > 1 {
			found = append(found, d)
		}
	}
	if len(found) == 0 {
		return nil, nil
	}
	i := slices.IndexFunc(found, func(d dimension) bool { return d.name == along && d.numbers != nil })
	if i < 0 {
		i = max(slices.IndexFunc(found, func(d dimension) bool { return d.numbers != nil }), 0)
	}
	axis = &found[i]
	for j, d := range found {
		if j != i && !follows(rows, axis.name, d.name) {
			others = append(others, d)
		}
	}
	return axis, others
}

// dimensionOf collects the values of a parameter: numbers in ascending order, words in the order of the rows.
func dimensionOf(rows []row, name v1alpha1.SweepName) dimension {
	d := dimension{name: name}
	for _, r := range rows {
		if text := r.value(name); text != "" && !slices.Contains(d.values, text) {
			d.values = append(d.values, text)
		}
	}
	byText := map[string]float64{}
	for _, text := range d.values {
		v, is := results.Number(name, text)
		if !is {
			return d
		}
		byText[text] = v
	}
	slices.SortFunc(d.values, func(a, b string) int { return cmp.Compare(byText[a], byText[b]) })
	for _, text := range d.values {
		d.numbers = append(d.numbers, byText[text])
	}
	return d
}

// follows is true if each value of one parameter occurs with only one value of the other.
func follows(rows []row, from, name v1alpha1.SweepName) bool {
	seen := map[string]string{}
	for _, r := range rows {
		key, text := r.value(from), r.value(name)
		if before, has := seen[key]; has && before != text {
			return false
		}
		seen[key] = text
	}
	return true
}

// combinations counts the lines.
func combinations(rows []row, others []dimension) int {
	seen := map[string]bool{}
	for _, r := range rows {
		seen[combination(r, others)] = true
	}
	return len(seen)
}

// combination names a line by the values of its parameters. A word is clear by itself, but a number needs its name.
func combination(r row, others []dimension) string {
	var parts []string
	for _, d := range others {
		text := r.value(d.name)
		if d.numbers != nil {
			text = short(d.name) + " " + text
		}
		parts = append(parts, text)
	}
	return strings.Join(parts, ", ")
}

// short returns the name of a parameter without the name of its tool.
func short(name v1alpha1.SweepName) string {
	if _, rest, has := strings.Cut(string(name), "."); has {
		return rest
	}
	return string(name)
}

// slug converts a name to an id.
func slug(text string) string {
	return strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= '0' && r <= '9' || r == '-' {
			return r
		}
		return '-'
	}, strings.ToLower(text))
}
