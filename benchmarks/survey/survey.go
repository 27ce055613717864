// Package survey parses the common format of mds-survey and obdfilter-survey of lustre-iokit: a line for each measured combination with a
// result for each test, and a last line. Both scripts use libecho, which prints the last line.
package survey

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"

	"parallelfs.dev/operator/benchmarks"
)

// last is the last line of a successful run (cleanup in libecho).
const last = "done!"

// vmstat matches bash's message about the program that both scripts run beside the measurement and kill at its end, which is no failure.
// With several scripts on a server, the first that ends kills those of all.
var vmstat = regexp.MustCompile(`: line \d+: +\d+ (Killed|Terminated) +remote_shell \$host "vmstat `)

// oneTest matches the result of a test with the minimum and maximum during it.
var oneTest = regexp.MustCompile(`^([a-z_]+) +(\d{1,15}\.\d+) +\[ *\d+\.\d+, *\d+\.\d+\] *`)

// Form describes the output of one script.
type Form struct {
	// Script is the script's name, and Unit the unit of all its results.
	Script, Unit string
	// Row matches the line of a combination, and Bad an error line.
	Row, Bad *regexp.Regexp
	// Rows is the number of combinations, and Combinations their name.
	Rows         int
	Combinations string
	// Tests lists the tests of each combination in the order of output.
	Tests []string
	// Results checks that a line is for the given combination, and returns its part with the results.
	Results func(row int, match []string) (string, error)
	// Refuses returns the error of an unusable result that begins here; nil means no check.
	Refuses func(rest, test string) error
	// Name returns the name of the sample of a test with a combination.
	Name func(row int, test string) string
}

// Parse parses the outputs of all servers, and of each script on them. They run at the same time, and their results are added up.
func (f Form) Parse(output []byte) (benchmarks.Report, error) {
	if err := benchmarks.BoundLines(output); err != nil {
		return benchmarks.Report{}, err //nolint:wrapcheck // it is a sentence about the output
	}
	outputs, err := benchmarks.SplitRanks(output, 0)
	if err != nil {
		return benchmarks.Report{}, err
	}
	var samples []benchmarks.Sample
	for server, text := range outputs {
		for _, one := range benchmarks.SplitTargets(text) {
			values, err := f.script(string(one))
			if err != nil {
				return benchmarks.Report{}, fmt.Errorf("server %d: %w", server, err)
			}
			if samples == nil {
				samples = make([]benchmarks.Sample, len(values))
			}
			for i, value := range values {
				samples[i].Name, samples[i].Unit = f.Name(i/len(f.Tests), f.Tests[i%len(f.Tests)]), f.Unit
				samples[i].Value += value
			}
		}
	}
	return benchmarks.Report{Samples: samples}, nil
}

// script parses the output of one script: all tests with the first combination, then with the next.
func (f Form) script(text string) ([]float64, error) {
	var out []float64
	rows, done := 0, false
	for i, line := range strings.Split(text, "\n") {
		line = strings.TrimSpace(line)
		match := f.Row.FindStringSubmatch(line)
		switch {
		case line == "" || vmstat.MatchString(line):
		case match == nil && f.Bad.MatchString(line):
			// This also applies after the end, because a script's error output may arrive later than its standard output.
			return nil, fmt.Errorf("its line %d: %s says %q", i+1, f.Script, benchmarks.Short(line))
		case done:
			return nil, fmt.Errorf("its line %d: %q stands behind the end", i+1, benchmarks.Short(line))
		case line == last:
			done = true
		case match != nil:
			values, err := f.row(rows, match)
			if err != nil {
				return nil, fmt.Errorf("its line %d: %w", i+1, err)
			}
			out = append(out, values...)
			rows++
		}
	}
	switch {
	case !done:
		return nil, fmt.Errorf("its output ends without %q: it is cut off, or %s was ended", last, f.Script)
	case rows != f.Rows:
		return nil, fmt.Errorf("there are results of %d %s instead of %d", rows, f.Combinations, f.Rows)
	}
	return out, nil
}

// row parses the results of one combination.
func (f Form) row(index int, match []string) ([]float64, error) {
	if index >= f.Rows {
		return nil, fmt.Errorf("there are results of more %s than %d", f.Combinations, f.Rows)
	}
	rest, err := f.Results(index, match)
	if err != nil {
		return nil, err
	}
	var out []float64
	for _, test := range f.Tests {
		if f.Refuses != nil {
			if err := f.Refuses(rest, test); err != nil {
				return nil, err
			}
		}
		found := oneTest.FindStringSubmatch(rest)
		if len(found) == 0 || found[1] != test {
			return nil, fmt.Errorf("found %q instead of the result of %s", benchmarks.Short(rest), test)
		}
		value, err := strconv.ParseFloat(found[2], 64)
		if err != nil || value == 0 {
			return nil, fmt.Errorf("the result of %s is %q", test, benchmarks.Short(found[2]))
		}
		out = append(out, value)
		rest = rest[len(found[0]):]
	}
	if rest != "" {
		return nil, fmt.Errorf("%q stands behind the last test", benchmarks.Short(rest))
	}
	return out, nil
}
