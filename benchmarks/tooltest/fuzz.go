package tooltest

import (
	"encoding/json"
	"math"
	"runtime"
	"testing"

	"parallelfs.dev/operator/api/v1alpha1"
	"parallelfs.dev/operator/benchmarks"
)

const (
	// maxDocument is what the manager takes of an output as its result, in bytes.
	maxDocument = 256 << 10
	// baseMemory and eachByte bound what reading a small output may allocate: a parser whose memory doubles with each byte is found
	// long before it reaches maxMemory.
	baseMemory, eachByte = 4 << 20, 1 << 10
)

// Reads has a tool read what a fuzzer has made, as the output of a run and, where the tool can, as one that was saved elsewhere. It fails
// unless all that is read is a result, within the limits of memory. It returns nil unless it is one of the run.
func Reads(t *testing.T, tool benchmarks.Tool, spec *v1alpha1.BenchmarkRunSpec, point benchmarks.Point, output []byte) []benchmarks.Sample {
	t.Helper()
	var report benchmarks.Report
	within(t, output, func() (err error) {
		report, err = tool.Parse(spec, point, 0, output)
		if err != nil && (report.Samples != nil || report.Version != "" || len(err.Error()) > maxError) {
			t.Fatalf("the report %v beside the error %v", report, err)
		}
		if err == nil && len(report.Samples) == 0 {
			t.Fatal("a report without a sample")
		}
		return err
	})
	isResult(t, report)
	if saves, is := tool.(benchmarks.SavedParser); is {
		var saved []benchmarks.Saved
		within(t, output, func() (err error) {
			saved, err = saves.ParseSaved(output)
			return err
		})
		for _, one := range saved {
			isResult(t, one.Report)
		}
	}
	return report.Samples
}

// within fails when more memory is allocated in all than an output may take.
func within(t *testing.T, output []byte, read func() error) {
	t.Helper()
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	err := read()
	runtime.ReadMemStats(&after)
	most := min(maxMemory<<20, baseMemory+eachByte*uint64(len(output)))
	if took := after.TotalAlloc - before.TotalAlloc; took > most {
		t.Fatalf("%d bytes are allocated for an output of %d, and %d may be: %v", took, len(output), most, err)
	}
}

// isResult fails when a report has a value that no measurement gives, or more than the manager takes.
func isResult(t *testing.T, report benchmarks.Report) {
	t.Helper()
	for _, s := range report.Samples {
		values := []float64{s.Value}
		if s.Within != nil {
			values = append(values, s.Within.Min, s.Within.Max, s.Within.StdDev)
		}
		for _, value := range values {
			if math.IsNaN(value) || math.IsInf(value, 0) || value < 0 {
				t.Fatalf("%s is %v", s.Name, value)
			}
		}
	}
	document, err := json.Marshal(report)
	if err != nil || len(document) > maxDocument {
		t.Fatalf("a document of %d bytes: %v", len(document), err)
	}
}
