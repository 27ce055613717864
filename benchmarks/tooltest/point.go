package tooltest

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	. "github.com/onsi/gomega" //nolint:staticcheck // a test helper, although the name of its file does not end in _test

	"parallelfs.dev/operator/api/v1alpha1"
	"parallelfs.dev/operator/benchmarks"
	"parallelfs.dev/operator/benchmarks/sweep"
)

// Point returns the only point of a run.
func Point(t testing.TB, tool benchmarks.Tool, spec *v1alpha1.BenchmarkRunSpec) benchmarks.Point {
	t.Helper()
	points, err := sweep.Expand(tool, spec)
	NewWithT(t).Expect(err).NotTo(HaveOccurred())
	NewWithT(t).Expect(points).To(HaveLen(1))
	return points[0]
}

// Output returns a file in testdata with the output of the real tool.
func Output(t testing.TB, name string) []byte {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("testdata", name))
	NewWithT(t).Expect(err).NotTo(HaveOccurred())
	return text
}

// Lines formats the samples of a report as "name value unit", with two decimals.
func Lines(report benchmarks.Report) []string {
	out := make([]string, 0, len(report.Samples))
	for _, s := range report.Samples {
		out = append(out, fmt.Sprintf("%s %.2f %s", s.Name, s.Value, s.Unit))
	}
	return out
}
