// Package sweep turns the sweep of a BenchmarkRun into its points: the combinations of all swept values, in a stable
// order, with what is derived from them.
package sweep

import (
	"fmt"
	"slices"
	"strings"

	"parallelfs.dev/operator/api/v1alpha1"
	"parallelfs.dev/operator/benchmarks"
)

// MaxPoints is the largest number of points of one run: each has an entry in the run's status.
const MaxPoints = 256

// Expand returns the points of a run, one for each combination of the swept values; the last name varies fastest, and
// without a sweep there is one point. Errors name the field, such as spec.sweep[1].values[0], and are the user's to
// mend. The same spec always gives the same points.
func Expand(tool benchmarks.Tool, spec *v1alpha1.BenchmarkRunSpec) ([]benchmarks.Point, error) {
	parameters := tool.Parameters(spec)
	known := func(path string, name v1alpha1.SweepName) (benchmarks.Parameter, error) {
		i := slices.IndexFunc(parameters, func(p benchmarks.Parameter) bool { return p.Name == name })
		if i < 0 {
			return benchmarks.Parameter{}, fmt.Errorf("%s: %q is not a parameter of this run of %s; it has %s", path, name, tool.Name(), names(parameters))
		}
		return parameters[i], nil
	}
	var varied []v1alpha1.SweepName
	count := 1
	for i, dimension := range spec.Sweep {
		path := fmt.Sprintf("spec.sweep[%d]", i)
		parameter, err := known(path+".name", dimension.Name)
		if err != nil {
			return nil, err
		}
		if slices.Contains(varied, dimension.Name) {
			return nil, fmt.Errorf("%s.name: %s is swept already; name it once", path, dimension.Name)
		}
		if err := checkValues(path+".values", parameter.Kind, dimension.Values); err != nil {
			return nil, err
		}
		varied = append(varied, dimension.Name)
		// A product that is too large already is not multiplied further, so it can't overflow.
		if count *= len(dimension.Values); count > MaxPoints {
			return nil, fmt.Errorf("%s.values: the sweep has more than %d points (%s); spread it over several runs", path, MaxPoints, product(spec.Sweep))
		}
	}
	derived, err := compile(spec.Derive, parameters, known, varied)
	if err != nil {
		return nil, err
	}
	for _, d := range derived {
		varied = append(varied, d.parameter.Name)
	}
	points := make([]benchmarks.Point, 0, count)
	for index := range count {
		point := benchmarks.Point{Index: index, Varied: slices.Clone(varied), Parameters: map[v1alpha1.SweepName]string{}}
		for _, p := range parameters {
			// A parameter without a value is one that the spec leaves open, such as how many clients there are.
			if p.Value != "" {
				point.Parameters[p.Name] = p.Value
			}
		}
		rest := index
		for _, dimension := range slices.Backward(spec.Sweep) {
			point.Parameters[dimension.Name] = dimension.Values[rest%len(dimension.Values)]
			rest /= len(dimension.Values)
		}
		if err := derive(derived, parameters, point.Parameters); err != nil {
			if len(spec.Sweep) > 0 {
				return nil, fmt.Errorf("%w (at the point %s)", err, describe(spec.Sweep, point.Parameters))
			}
			return nil, err
		}
		points = append(points, point)
	}
	return points, nil
}

// checkValues refuses values that are not of the parameter's kind, and two that mean the same.
func checkValues(path string, kind benchmarks.ParameterKind, values []string) error {
	if len(values) == 0 {
		return fmt.Errorf("%s: a swept parameter needs at least one value", path)
	}
	seen := map[int64]int{}
	for i, value := range values {
		number, err := parse(kind, value)
		if err != nil {
			return fmt.Errorf("%s[%d]: %w", path, i, err)
		}
		if first, found := seen[number]; found {
			return fmt.Errorf("%s[%d]: %q is the same as values[%d] (%q); give each value once", path, i, value, first, values[first])
		}
		seen[number] = i
	}
	return nil
}

// parse returns a value as expressions see it: a count, or the bytes of a size.
func parse(kind benchmarks.ParameterKind, value string) (int64, error) {
	if kind == benchmarks.Size {
		return benchmarks.ParseSize(value)
	}
	return benchmarks.ParseCount(value)
}

// names lists parameters for a message.
func names(parameters []benchmarks.Parameter) string {
	out := make([]string, 0, len(parameters))
	for _, p := range parameters {
		out = append(out, string(p.Name))
	}
	return strings.Join(out, ", ")
}

// product is the arithmetic of a sweep's size, such as "16 × 64".
func product(dimensions []v1alpha1.SweepDimension) string {
	out := make([]string, 0, len(dimensions))
	for _, d := range dimensions {
		out = append(out, fmt.Sprint(len(d.Values)))
	}
	return strings.Join(out, " × ")
}

// describe names a point by its swept values.
func describe(dimensions []v1alpha1.SweepDimension, values map[v1alpha1.SweepName]string) string {
	out := make([]string, 0, len(dimensions))
	for _, d := range dimensions {
		out = append(out, fmt.Sprintf("%s=%s", d.Name, values[d.Name]))
	}
	return strings.Join(out, " ")
}
