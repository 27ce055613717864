package obdfiltersurvey

import (
	"cmp"
	"fmt"
	"slices"

	"parallelfs.dev/operator/api/v1alpha1"
	"parallelfs.dev/operator/benchmarks"
)

// Names that a sweep can vary.
const (
	threadsLow  v1alpha1.SweepName = "obdfilterSurvey.threadsLow"
	threadsHigh v1alpha1.SweepName = "obdfilterSurvey.threadsHigh"
	objectsLow  v1alpha1.SweepName = "obdfilterSurvey.objectsLow"
	objectsHigh v1alpha1.SweepName = "obdfilterSurvey.objectsHigh"
	sizeMiB     v1alpha1.SweepName = "obdfilterSurvey.sizeMiB"
	recordKiB   v1alpha1.SweepName = "obdfilterSurvey.recordKiB"
)

const (
	maxThreads = 65536
	maxSize    = 1<<31 - 1
	// maxRecord is the record size in KiB above which the script measures nothing (rszmax).
	maxRecord = 4096
	// page is the size of a page in KiB; the script uses records of whole pages.
	page = 4
	// maxSamples is the maximum number of results of a point.
	maxSamples = 32
)

// Parameters returns the parameters in spec.obdfilterSurvey; no client process and no storage pool is involved.
func (Tool) Parameters(spec *v1alpha1.BenchmarkRunSpec) []benchmarks.Parameter {
	o := options(spec)
	return []benchmarks.Parameter{
		{Name: threadsLow, Kind: benchmarks.Count, Value: fmt.Sprint(o.ThreadsLow)},
		{Name: threadsHigh, Kind: benchmarks.Count, Value: fmt.Sprint(o.ThreadsHigh)},
		{Name: objectsLow, Kind: benchmarks.Count, Value: fmt.Sprint(o.ObjectsLow)},
		{Name: objectsHigh, Kind: benchmarks.Count, Value: fmt.Sprint(o.ObjectsHigh)},
		{Name: sizeMiB, Kind: benchmarks.Count, Value: fmt.Sprint(o.SizeMiB)},
		{Name: recordKiB, Kind: benchmarks.Count, Value: fmt.Sprint(o.RecordKiB)},
	}
}

// options returns spec.obdfilterSurvey with the defaults of the API, which the API server also fills in. Its tests are in the script's
// order.
func options(spec *v1alpha1.BenchmarkRunSpec) v1alpha1.OBDFilterSurveySpec {
	var o v1alpha1.OBDFilterSurveySpec
	if spec.OBDFilterSurvey != nil {
		o = *spec.OBDFilterSurvey
	}
	o.ThreadsLow = cmp.Or(o.ThreadsLow, 1)
	o.ThreadsHigh = cmp.Or(o.ThreadsHigh, 16)
	o.ObjectsLow = cmp.Or(o.ObjectsLow, 1)
	o.ObjectsHigh = cmp.Or(o.ObjectsHigh, 2)
	o.SizeMiB = cmp.Or(o.SizeMiB, 1024)
	o.RecordKiB = cmp.Or(o.RecordKiB, 1024)
	wanted := o.Tests
	if len(wanted) == 0 {
		wanted = []v1alpha1.OBDFilterTest{v1alpha1.OBDFilterWrite, v1alpha1.OBDFilterRead}
	}
	o.Tests = nil
	for _, test := range []v1alpha1.OBDFilterTest{v1alpha1.OBDFilterWrite, v1alpha1.OBDFilterRewrite, v1alpha1.OBDFilterRead} {
		if slices.Contains(wanted, test) {
			o.Tests = append(o.Tests, test)
		}
	}
	return o
}

// row is one combination of objects and threads per target.
type row struct{ objects, threads int64 }

// settings holds the checked parameters of a point.
type settings struct {
	low, high, objectsLow, objectsHigh, size, record int64
	// rows lists the measured combinations in the script's order.
	rows  []row
	tests []v1alpha1.OBDFilterTest
}

// check parses the parameters of a point, and refuses values that the script refuses or would round.
func check(spec *v1alpha1.BenchmarkRunSpec, point benchmarks.Point) (settings, error) {
	v := benchmarks.ValuesOf(point)
	s := settings{
		low: v.Number(threadsLow, 1, maxThreads), high: v.Number(threadsHigh, 1, maxThreads),
		objectsLow: v.Number(objectsLow, 1, maxThreads), objectsHigh: v.Number(objectsHigh, 1, maxThreads),
		size: v.Number(sizeMiB, 1, maxSize), record: v.Number(recordKiB, 1, maxRecord), tests: options(spec).Tests,
	}
	if err := v.Err(); err != nil {
		return s, err
	}
	for objects := s.objectsLow; objects <= s.objectsHigh; objects *= 2 {
		for threads := s.low; threads <= s.high; threads *= 2 {
			if threads%objects == 0 { // the script skips the others
				s.rows = append(s.rows, row{objects, threads})
			}
		}
	}
	most := int64(0)
	for _, r := range s.rows {
		most = max(most, r.threads)
	}
	switch {
	case s.high < s.low:
		v.Refuse("%s: %d is less than %s (%d)", threadsHigh, s.high, threadsLow, s.low)
	case s.objectsHigh < s.objectsLow:
		v.Refuse("%s: %d is less than %s (%d)", objectsHigh, s.objectsHigh, objectsLow, s.objectsLow)
	case len(s.rows) == 0:
		v.Refuse("%s: no number of threads from %d to %d is a multiple of one of objects from %d to %d, and obdfilter-survey leaves out the others",
			threadsHigh, s.low, s.high, s.objectsLow, s.objectsHigh)
	case s.record%page != 0:
		v.Refuse("%s: %d is no multiple of %d, the size of a page; obdfilter-survey would round it", recordKiB, s.record, page)
	case s.size*benchmarks.Kilo%(s.record*most) != 0:
		v.Refuse("%s: %d MiB can't be divided among %d threads with records of %d KiB; obdfilter-survey would leave out the rest", sizeMiB, s.size, most, s.record)
	case s.tests[0] != v1alpha1.OBDFilterWrite:
		v.Refuse("obdfilterSurvey.tests: the first test must be write, or obdfilter-survey refuses them")
	case len(s.rows)*len(s.tests) > maxSamples:
		v.Refuse("%s: %d combinations of objects and threads with %d tests make %d results, and a point holds %d; measure fewer at once, and sweep the ends",
			threadsHigh, len(s.rows), len(s.tests), len(s.rows)*len(s.tests), maxSamples)
	}
	return s, v.Err()
}
