package iozone_test

import (
	"os"
	"path/filepath"
	"testing"

	. "github.com/onsi/gomega"

	"parallelfs.dev/operator/api/v1alpha1"
	"parallelfs.dev/operator/benchmarks"
	"parallelfs.dev/operator/benchmarks/iozone"
	"parallelfs.dev/operator/benchmarks/sweep"
	"parallelfs.dev/operator/benchmarks/tooltest"
)

// run is a run of iozone with some processes, a record size and a file size.
func run(processes int32, record, file v1alpha1.IOzoneSize, change ...func(*v1alpha1.BenchmarkRunSpec)) *v1alpha1.BenchmarkRunSpec {
	spec := &v1alpha1.BenchmarkRunSpec{
		Tool: v1alpha1.ToolIOzone, Processes: processes, IOzone: &v1alpha1.IOzoneSpec{RecordSize: record, FileSize: file},
	}
	for _, c := range change {
		c(spec)
	}
	return spec
}

func distributed(count int32) func(*v1alpha1.BenchmarkRunSpec) {
	return func(s *v1alpha1.BenchmarkRunSpec) { s.IOzone.Mode, s.Clients.Count = v1alpha1.IOzoneDistributed, count }
}

func noRetest(s *v1alpha1.BenchmarkRunSpec) { s.IOzone.NoRetest = true }

func tests(tests ...v1alpha1.IOzoneTest) func(*v1alpha1.BenchmarkRunSpec) {
	return func(s *v1alpha1.BenchmarkRunSpec) { s.IOzone.Tests = tests }
}

// point is the only point of a run.
func point(t testing.TB, spec *v1alpha1.BenchmarkRunSpec) benchmarks.Point {
	t.Helper()
	points, err := sweep.Expand(iozone.Tool{}, spec)
	NewWithT(t).Expect(err).NotTo(HaveOccurred())
	NewWithT(t).Expect(points).To(HaveLen(1))
	return points[0]
}

// output is a file in testdata: what the real iozone 3.489 printed.
func output(t testing.TB, name string) []byte {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("testdata", name))
	NewWithT(t).Expect(err).NotTo(HaveOccurred())
	return text
}

func TestContract(t *testing.T) {
	cases := map[string]tooltest.Case{}
	for name, g := range good {
		cases[name] = tooltest.Case{Spec: g.spec, Output: output(t, g.file)}
	}
	tooltest.Run(t, iozone.Tool{}, cases)
}
