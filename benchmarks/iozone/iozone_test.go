package iozone_test

import (
	"testing"

	"parallelfs.dev/operator/api/v1alpha1"
	"parallelfs.dev/operator/benchmarks"
	"parallelfs.dev/operator/benchmarks/iozone"
	"parallelfs.dev/operator/benchmarks/tooltest"
)

// run returns a run of iozone with this number of processes, record size and file size.
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

// phases drops caches between the tests.
func phases(s *v1alpha1.BenchmarkRunSpec) {
	s.Caches = &v1alpha1.CachesSpec{Before: v1alpha1.CachesBeforePhases}
}

func noRetest(s *v1alpha1.BenchmarkRunSpec) { s.IOzone.NoRetest = true }

func tests(tests ...v1alpha1.IOzoneTest) func(*v1alpha1.BenchmarkRunSpec) {
	return func(s *v1alpha1.BenchmarkRunSpec) { s.IOzone.Tests = tests }
}

// point returns the only point of a run.
func point(t testing.TB, spec *v1alpha1.BenchmarkRunSpec) benchmarks.Point {
	t.Helper()
	return tooltest.Point(t, iozone.Tool{}, spec)
}

// output returns a file in testdata with the output of the real iozone 3.489.
func output(t testing.TB, name string) []byte {
	t.Helper()
	return tooltest.Output(t, name)
}

func TestContract(t *testing.T) {
	cases := map[string]tooltest.Case{}
	for name, g := range good {
		cases[name] = tooltest.Case{Spec: g.spec, Step: g.step, Output: output(t, g.file)}
	}
	tooltest.Run(t, iozone.Tool{}, cases)
}
