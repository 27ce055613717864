// Package sweep expands the sweep of a BenchmarkRun into points with their derived values, and determines the order of their repetitions.
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

// Expand returns the points of a run: one for each combination of the swept values, with the last name varying fastest. A zipped sweep has
// one point for each index in its lists. Without a sweep there is one point. Every fault that can be detected before the run is an error
// here. Errors contain the field, such as spec.sweep[1].values[0], and have to be corrected by the user. The same spec always gives the
// same points.
func Expand(tool benchmarks.Tool, spec *v1alpha1.BenchmarkRunSpec) ([]benchmarks.Point, error) {
	parameters := tool.Parameters(spec)
	known := func(path string, name v1alpha1.SweepName) (benchmarks.Parameter, error) {
		i := slices.IndexFunc(parameters, func(p benchmarks.Parameter) bool { return p.Name == name })
		if i < 0 {
			return benchmarks.Parameter{}, fmt.Errorf("%s: %q is not a parameter of this run of %s; it has %s", path, name, tool.Name(), names(parameters))
		}
		return parameters[i], nil
	}
	dimensions := make([]dimension, 0, len(spec.Sweep))
	var varied []v1alpha1.SweepName
	for i, d := range spec.Sweep {
		next := dimension{path: fmt.Sprintf("spec.sweep[%d]", i)}
		var err error
		if next.parameter, err = known(next.path+".name", d.Name); err != nil {
			return nil, err
		}
		if slices.Contains(varied, d.Name) {
			return nil, fmt.Errorf("%s.name: %s is swept already; name it once", next.path, d.Name)
		}
		if next.values, err = values(next.path, next.parameter, d); err != nil {
			return nil, err
		}
		dimensions, varied = append(dimensions, next), append(varied, d.Name)
	}
	if err := checkAlong(spec.Along, dimensions); err != nil {
		return nil, err
	}
	combinations, err := combine(dimensions, spec.SweepMode)
	if err != nil {
		return nil, err
	}
	derived, err := compile(spec.Derive, parameters, known, varied)
	if err != nil {
		return nil, err
	}
	for _, d := range derived {
		varied = append(varied, d.parameter.Name)
	}
	points := make([]benchmarks.Point, 0, len(combinations))
	for index, combination := range combinations {
		point := benchmarks.Point{Index: index, Varied: slices.Clone(varied), Parameters: map[v1alpha1.SweepName]string{}}
		for _, p := range parameters {
			// A parameter without a value is one that the spec leaves open, such as the number of clients.
			if p.Value != "" {
				point.Parameters[p.Name] = p.Value
			}
		}
		for i, d := range dimensions {
			point.Parameters[d.parameter.Name] = combination[i]
		}
		if err := derive(derived, parameters, point.Parameters, describe(dimensions, combination)); err != nil {
			return nil, err
		}
		points = append(points, point)
	}
	return points, nil
}

// combine returns the values of each point, one for each dimension.
func combine(dimensions []dimension, mode v1alpha1.SweepMode) ([][]string, error) {
	if len(dimensions) == 0 {
		return [][]string{nil}, nil
	}
	if mode == v1alpha1.SweepZipped {
		first := dimensions[0]
		for _, d := range dimensions[1:] {
			if len(d.values) != len(first.values) {
				return nil, fmt.Errorf("%s: %s has %d values, and %s (%s) has %d; a zipped sweep takes one of each for a point, so give them equally many",
					d.path, d.parameter.Name, len(d.values), first.parameter.Name, first.path, len(first.values))
			}
		}
		out := make([][]string, len(first.values))
		for i := range out {
			for _, d := range dimensions {
				out[i] = append(out[i], d.values[i])
			}
		}
		return out, nil
	}
	count := 1
	for _, d := range dimensions {
		// A product that is already too large is not multiplied further, so it can't overflow.
		if count *= len(d.values); count > MaxPoints {
			return nil, fmt.Errorf("%s: the sweep has more than %d points (%s); spread it over several runs", d.path, MaxPoints, product(dimensions))
		}
	}
	out := make([][]string, count)
	for index := range out {
		combination, rest := make([]string, len(dimensions)), index
		for i, d := range slices.Backward(dimensions) {
			combination[i] = d.values[rest%len(d.values)]
			rest /= len(d.values)
		}
		out[index] = combination
	}
	return out, nil
}

// checkAlong refuses a spec.along for which no speed-up can be computed.
func checkAlong(along v1alpha1.SweepName, dimensions []dimension) error {
	if along == "" {
		return nil
	}
	var numbers []benchmarks.Parameter
	for _, d := range dimensions {
		if d.parameter.Kind == benchmarks.Word {
			if d.parameter.Name == along {
				return fmt.Errorf("spec.along: %s takes words, which have no ratio; name a parameter that takes numbers, or remove it", along)
			}
			continue
		}
		if d.parameter.Name == along {
			return nil
		}
		numbers = append(numbers, d.parameter)
	}
	if len(numbers) == 0 {
		return fmt.Errorf("spec.along: %s is not swept, so there is no speed-up along it; sweep it, or remove spec.along", along)
	}
	return fmt.Errorf("spec.along: %s is not swept, so there is no speed-up along it; this run sweeps %s", along, names(numbers))
}

// names lists parameters for a message.
func names(parameters []benchmarks.Parameter) string {
	out := make([]string, 0, len(parameters))
	for _, p := range parameters {
		out = append(out, string(p.Name))
	}
	return strings.Join(out, ", ")
}

// product formats the size of a sweep, such as "16 × 64".
func product(dimensions []dimension) string {
	out := make([]string, 0, len(dimensions))
	for _, d := range dimensions {
		out = append(out, fmt.Sprint(len(d.values)))
	}
	return strings.Join(out, " × ")
}

// describe names a point by its swept values, such as "processes=4 drill.depth=8k".
func describe(dimensions []dimension, combination []string) string {
	out := make([]string, 0, len(dimensions))
	for i, d := range dimensions {
		out = append(out, fmt.Sprintf("%s=%s", d.parameter.Name, combination[i]))
	}
	return strings.Join(out, " ")
}
