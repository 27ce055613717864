package sweep

import (
	"fmt"

	"parallelfs.dev/operator/api/v1alpha1"
	"parallelfs.dev/operator/benchmarks"
)

// maxValues bounds the values of a range, as of a list.
const maxValues = 64

// dimension is one swept parameter with all its values.
type dimension struct {
	path      string
	parameter benchmarks.Parameter
	values    []string
}

// values returns the values of a swept parameter: the listed ones, or those of its range or powers of two, formatted with the largest unit.
func values(path string, parameter benchmarks.Parameter, d v1alpha1.SweepDimension) ([]string, error) {
	switch {
	case d.Range != nil:
		return ranged(path+".range", parameter, *d.Range)
	case d.PowersOfTwo != nil:
		return powers(path+".powersOfTwo", parameter, *d.PowersOfTwo)
	}
	return listed(path+".values", parameter, d.Values)
}

// listed refuses values of the wrong kind, and two equal values.
func listed(path string, parameter benchmarks.Parameter, values []v1alpha1.SweepValue) ([]string, error) {
	if len(values) == 0 {
		return nil, fmt.Errorf("%s: a swept parameter needs at least one value", path)
	}
	out := make([]string, 0, len(values))
	seen := map[any]int{}
	for i, value := range values {
		number, err := benchmarks.ParseValue(parameter, string(value))
		if err != nil {
			return nil, fmt.Errorf("%s[%d]: %w", path, i, err)
		}
		var meaning any = number
		if parameter.Kind == benchmarks.Word {
			meaning = value
		}
		if first, found := seen[meaning]; found {
			return nil, fmt.Errorf("%s[%d]: %q is the same as values[%d] (%q); give each value once", path, i, value, first, values[first])
		}
		seen[meaning] = i
		out = append(out, string(value))
	}
	return out, nil
}

// ranged returns from, from + step and so on.
func ranged(path string, parameter benchmarks.Parameter, r v1alpha1.SweepRange) ([]string, error) {
	from, to, err := bounds(path, parameter, r.From, r.To)
	if err != nil {
		return nil, err
	}
	step := int64(1)
	switch {
	case r.Step != "":
		// The step may be any value of the parameter's kind except 0.
		if step, err = benchmarks.ParseValue(parameter, string(r.Step)); err != nil {
			return nil, fmt.Errorf("%s.step: %w", path, err)
		}
		if step == 0 {
			return nil, fmt.Errorf("%s.step: %q gives the same value for ever; it must be at least 1", path, r.Step)
		}
	case parameter.Kind == benchmarks.Size || parameter.Kind == benchmarks.Bytes:
		return nil, fmt.Errorf("%s.step: a range of sizes needs a step, such as %q", path, r.From)
	}
	// The count is not computed as the quotient plus 1, which could overflow.
	if (to-from)/step >= maxValues {
		return nil, fmt.Errorf("%s: from %s to %s by %s are more than %d values; make step larger, or spread them over several runs",
			path, r.From, r.To, benchmarks.FormatValue(parameter, step), maxValues)
	}
	var out []string
	for i := range (to-from)/step + 1 {
		out = append(out, benchmarks.FormatValue(parameter, from+i*step))
	}
	return out, nil
}

// powers returns from, twice from and so on.
func powers(path string, parameter benchmarks.Parameter, p v1alpha1.SweepPowers) ([]string, error) {
	from, to, err := bounds(path, parameter, p.From, p.To)
	if err != nil {
		return nil, err
	}
	counted := parameter.Kind == benchmarks.Count || parameter.Kind == benchmarks.Number
	switch {
	case from == 0:
		return nil, fmt.Errorf("%s.from: 0 doubled stays 0; begin with at least 1, or list the values", path)
	case counted && from&(from-1) != 0:
		return nil, fmt.Errorf("%s.from: %q is no power of two; begin with 1, 2, 4 and so on, or list the values", path, p.From)
	}
	var out []string
	for number := from; ; number *= 2 {
		out = append(out, benchmarks.FormatValue(parameter, number))
		if number > to/2 {
			return out, nil
		}
	}
}

// bounds parses from and to.
func bounds(path string, parameter benchmarks.Parameter, from, to v1alpha1.SweepValue) (low, high int64, err error) {
	if parameter.Kind == benchmarks.Word {
		return 0, 0, fmt.Errorf("%s: %s takes words, which can't be counted; list them in values", path, parameter.Name)
	}
	if low, err = benchmarks.ParseValue(parameter, string(from)); err != nil {
		return 0, 0, fmt.Errorf("%s.from: %w", path, err)
	}
	if high, err = benchmarks.ParseValue(parameter, string(to)); err != nil {
		return 0, 0, fmt.Errorf("%s.to: %w", path, err)
	}
	if low > high {
		return 0, 0, fmt.Errorf("%s: from (%s) is greater than to (%s); exchange them", path, from, to)
	}
	return low, high, nil
}
