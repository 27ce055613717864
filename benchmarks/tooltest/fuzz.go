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
	// maxDocument bounds the result that the manager accepts from an output, in bytes.
	maxDocument = 256 << 10
	// baseMemory and eachByte bound the allocation for a small output. They detect a parser whose memory doubles with each byte long before it
	// reaches maxMemory.
	baseMemory, eachByte = 4 << 20, 1 << 10
)

// Reads parses a fuzzer's text with a tool, as the output of a run and, if the tool supports that, as a saved output. It fails if a parsed
// value can't be a result, or if the limits of memory are exceeded. It returns nil if the text is no output of the run.
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

// within fails if the total allocation exceeds the limit for an output.
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

// isResult fails if a report has a value that no measurement gives, or is larger than the manager accepts.
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
