package obdfiltersurvey

import (
	"fmt"
	"regexp"
	"strconv"

	"parallelfs.dev/operator/api/v1alpha1"
	"parallelfs.dev/operator/benchmarks"
	"parallelfs.dev/operator/benchmarks/survey"
)

// unit of all results: obdfilter-survey prints none, and means MB of 1024 × 1024 bytes per second.
const unit = "MB/s"

var (
	// rowLine is one combination of objects and threads; see print_summary of obdfilter-survey. Older scripts print no unit behind rsz.
	rowLine = regexp.MustCompile(`^ost +(\d{1,4}) +sz +(\d+)K +rsz +(\d+)K? +obj +(\d+) +thr +(\d+) +(.*)$`)
	// tooShort takes the place of the lowest and the highest that was seen, when a test was over before two looks: one comes each second.
	tooShort = regexp.MustCompile(`^[a-z_]+ +\d+\.\d+ +SHORT\b`)
	badLine  = regexp.MustCompile(`(?i)error|fail|terminated|can'?t|cannot|could not|not set|must be|please|null|too much`)
)

// Parse reads the result of each test with each combination: "write obj 2 thr 4" is the bandwidth of writing with 2 objects and 4 threads
// on each target, of all targets together. Those of several servers, which are measured at once, are added up.
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

// results is the part of a line with the results, when it is that of a combination.
func (s settings) results(row int, match []string) (string, error) {
	// The script prints the sums over all targets of the server.
	targets, err := strconv.ParseInt(match[1], 10, 64)
	if err != nil || targets == 0 {
		return "", fmt.Errorf("the result is of %q targets", match[1])
	}
	r := s.rows[row]
	for i, want := range []int64{targets * s.size * benchmarks.Kilo, s.record, targets * r.objects, targets * r.threads} {
		what := []string{"KiB", "KiB in a record", "objects", "threads"}[i]
		if match[i+2] != strconv.FormatInt(want, 10) {
			return "", fmt.Errorf("the result is of %s %s instead of %d", match[i+2], what, want)
		}
	}
	return match[6], nil
}

// refuses says why a result is none.
func refuses(rest, test string) error {
	if tooShort.MatchString(rest) {
		return fmt.Errorf("%s was over before there were two looks at it, which need about two seconds; make %s larger", test, sizeMiB)
	}
	return nil
}
