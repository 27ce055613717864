package mdssurvey

import (
	"cmp"
	"fmt"
	"slices"

	"parallelfs.dev/operator/api/v1alpha1"
	"parallelfs.dev/operator/benchmarks"
)

// Names that a sweep can vary.
const (
	threadsLow  v1alpha1.SweepName = "mdsSurvey.threadsLow"
	threadsHigh v1alpha1.SweepName = "mdsSurvey.threadsHigh"
	fileCount   v1alpha1.SweepName = "mdsSurvey.fileCount"
	dirCount    v1alpha1.SweepName = "mdsSurvey.dirCount"
)

const (
	maxThreads = 65536
	maxFiles   = 1<<31 - 1
	// maxSamples is the maximum number of results of a point.
	maxSamples = 32
)

// Parameters returns the parameters in spec.mdsSurvey; no client process and no storage pool is involved.
func (Tool) Parameters(spec *v1alpha1.BenchmarkRunSpec) []benchmarks.Parameter {
	o := options(spec)
	return []benchmarks.Parameter{
		{Name: threadsLow, Kind: benchmarks.Count, Value: fmt.Sprint(o.ThreadsLow)},
		{Name: threadsHigh, Kind: benchmarks.Count, Value: fmt.Sprint(o.ThreadsHigh)},
		{Name: fileCount, Kind: benchmarks.Count, Value: fmt.Sprint(o.FileCount)},
		{Name: dirCount, Kind: benchmarks.Count, Value: fmt.Sprint(o.DirCount)},
	}
}

// options returns spec.mdsSurvey with the defaults of the API, which the API server also fills in. Its tests are in the script's order.
func options(spec *v1alpha1.BenchmarkRunSpec) v1alpha1.MDSSurveySpec {
	var o v1alpha1.MDSSurveySpec
	if spec.MDSSurvey != nil {
		o = *spec.MDSSurvey
	}
	o.ThreadsLow = cmp.Or(o.ThreadsLow, 4)
	o.ThreadsHigh = cmp.Or(o.ThreadsHigh, 64)
	o.FileCount = cmp.Or(o.FileCount, 200000)
	o.DirCount = cmp.Or(o.DirCount, 4)
	wanted := o.Tests
	o.Tests = nil
	for _, test := range []v1alpha1.MDSSurveyTest{
		v1alpha1.MDSSurveyCreate, v1alpha1.MDSSurveyLookup, v1alpha1.MDSSurveyGetAttr, v1alpha1.MDSSurveySetXAttr, v1alpha1.MDSSurveyDestroy,
	} {
		if len(wanted) == 0 || slices.Contains(wanted, test) {
			o.Tests = append(o.Tests, test)
		}
	}
	return o
}

// settings holds the checked parameters of a point.
type settings struct {
	low, high, files, directories int64
	// threads lists the measured numbers of threads.
	threads []int64
	tests   []v1alpha1.MDSSurveyTest
}

// check parses the parameters of a point, and refuses values that the script refuses or partly ignores.
func check(spec *v1alpha1.BenchmarkRunSpec, point benchmarks.Point) (settings, error) {
	v := benchmarks.ValuesOf(point)
	s := settings{
		low: v.Number(threadsLow, 1, maxThreads), high: v.Number(threadsHigh, 1, maxThreads), files: v.Number(fileCount, 1, maxFiles),
		directories: v.Number(dirCount, 1, maxThreads), tests: options(spec).Tests,
	}
	if err := v.Err(); err != nil {
		return s, err
	}
	for threads := s.low; threads <= s.high; threads *= 2 {
		s.threads = append(s.threads, threads)
	}
	switch {
	case s.high < s.low:
		v.Refuse("%s: %d is less than %s (%d)", threadsHigh, s.high, threadsLow, s.low)
	case s.low < s.directories:
		v.Refuse("%s: %d is less than %s (%d); mds-survey leaves out fewer threads than directories", threadsLow, s.low, dirCount, s.directories)
	case s.files < s.high:
		v.Refuse("%s: %d is less than %s (%d), so a thread would have no file", fileCount, s.files, threadsHigh, s.high)
	case s.tests[0] != v1alpha1.MDSSurveyCreate || s.tests[len(s.tests)-1] != v1alpha1.MDSSurveyDestroy:
		v.Refuse("mdsSurvey.tests: the first test must be create, and the last destroy, or mds-survey refuses them")
	case len(s.threads)*len(s.tests) > maxSamples:
		v.Refuse("%s: %d numbers of threads from %d to %d with %d tests make %d results, and a point holds %d; measure fewer at once, and sweep both ends",
			threadsHigh, len(s.threads), s.low, s.high, len(s.tests), len(s.threads)*len(s.tests), maxSamples)
	}
	return s, v.Err()
}
