package obdfiltersurvey

import (
	"fmt"
	"regexp"
	"strconv"

	"parallelfs.dev/operator/api/v1alpha1"
	"parallelfs.dev/operator/benchmarks"
	"parallelfs.dev/operator/benchmarks/survey"
)

// unit is the unit of all results: obdfilter-survey prints none, and uses MB of 1024 × 1024 bytes per second.
const unit = "MB/s"

var (
	// rowLine matches the results of one combination of objects and threads; see print_summary of obdfilter-survey. Older scripts print no
	// unit after rsz.
	rowLine = regexp.MustCompile(`^ost +(\d{1,4}) +sz +(\d+)K +rsz +(\d+)K? +obj +(\d+) +thr +(\d+) +(.*)$`)
	// tooShort matches a result without minimum and maximum, because the test ended before its second sample. The script takes one sample per
	// second.
	tooShort = regexp.MustCompile(`^[a-z_]+ +\d+\.\d+ +SHORT\b`)
	badLine  = regexp.MustCompile(`(?i)error|fail|terminated|can'?t|cannot|could not|not set|must be|please|null|too much`)
)

// Parse parses the result of each test with each combination: "write obj 2 thr 4" is the write bandwidth with 2 objects and 4 threads on
// each target, summed over all targets. Several servers are measured at the same time, and their results are added up.
func (Tool) Parse(spec *v1alpha1.BenchmarkRunSpec, point benchmarks.Point, _ int, output []byte) (benchmarks.Report, error) {
	s, err := check(spec, point)
	if err != nil {
		return benchmarks.Report{}, err
	}
	form := survey.Form{
		Script: "obdfilter-survey", Unit: unit, Row: rowLine, Bad: badLine, Rows: len(s.rows), Combinations: "combinations",
		Results: s.results, Refuses: refuses,
		Name: func(row int, test string) string {
			return fmt.Sprintf("%s obj %d thr %d", test, s.rows[row].objects, s.rows[row].threads)
		},
	}
	for _, test := range s.tests {
		form.Tests = append(form.Tests, string(test))
	}
	return form.Parse(output)
}

// results returns the results in a line if the line is for the expected combination.
func (s settings) results(row int, match []string) (string, error) {
	// The script prints the sums over all targets of the server.
	targets, err := strconv.ParseInt(match[1], 10, 64)
	if err != nil || targets == 0 {
		return "", fmt.Errorf("the result is of %q targets", benchmarks.Short(match[1]))
	}
	r := s.rows[row]
	for i, want := range []int64{targets * s.size * benchmarks.Kilo, s.record, targets * r.objects, targets * r.threads} {
		what := []string{"KiB", "KiB in a record", "objects", "threads"}[i]
		if match[i+2] != strconv.FormatInt(want, 10) {
			return "", fmt.Errorf("the result is of %s %s instead of %d", benchmarks.Short(match[i+2]), what, want)
		}
	}
	return match[6], nil
}

// refuses returns the error of an unusable result.
func refuses(rest, test string) error {
	if tooShort.MatchString(rest) {
		return fmt.Errorf("%s was over before there were two looks at it, which need about two seconds; make %s larger", test, sizeMiB)
	}
	return nil
}
