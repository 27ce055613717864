package mdssurvey

import (
	"fmt"
	"regexp"
	"strconv"

	"parallelfs.dev/operator/api/v1alpha1"
	"parallelfs.dev/operator/benchmarks"
	"parallelfs.dev/operator/benchmarks/survey"
)

// unit is the unit of all results: mds-survey prints none, and measures operations per second.
const unit = "ops/s"

var (
	// rowLine matches the results of one number of threads; see print_summary of mds-survey.
	rowLine = regexp.MustCompile(`^mdt +(\d+) +file +(\d+) +dir +(\d+) +thr +(\d+) +(.*)$`)
	badLine = regexp.MustCompile(`(?i)error|fail|terminated|can'?t|cannot|could not|not set|must be|no devices`)
)

// Parse parses the result of each test with each number of threads: "create thr 64" is the rate of creates with 64 threads on each metadata
// target. All targets of all servers are measured at the same time by separate scripts, and their results are added up.
func (Tool) Parse(spec *v1alpha1.BenchmarkRunSpec, point benchmarks.Point, _ int, output []byte) (benchmarks.Report, error) {
	s, err := check(spec, point)
	if err != nil {
		return benchmarks.Report{}, err
	}
	form := survey.Form{
		Script: "mds-survey", Unit: unit, Row: rowLine, Bad: badLine, Rows: len(s.threads), Combinations: "numbers of threads", Results: s.results,
		Name: func(row int, test string) string { return fmt.Sprintf("%s thr %d", test, s.threads[row]) },
	}
	for _, test := range s.tests {
		form.Tests = append(form.Tests, string(test))
	}
	return form.Parse(output)
}

// results returns the results in a line if the line is for the expected number of threads.
func (s settings) results(row int, match []string) (string, error) {
	// With several targets, one script measures them one after the other and prints the mean.
	for i, want := range []int64{1, s.files, s.directories, s.threads[row]} {
		what := []string{"metadata targets", "files", "directories", "threads"}[i]
		if match[i+1] != strconv.FormatInt(want, 10) {
			return "", fmt.Errorf("the result is of %s %s instead of %d", benchmarks.Short(match[i+1]), what, want)
		}
	}
	return match[5], nil
}
