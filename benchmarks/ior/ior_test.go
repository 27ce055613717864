package ior_test

import (
	"testing"

	"parallelfs.dev/operator/api/v1alpha1"
	"parallelfs.dev/operator/benchmarks"
	"parallelfs.dev/operator/benchmarks/ior"
	"parallelfs.dev/operator/benchmarks/tooltest"
)

// run returns a run of IOR with this number of processes.
func run(processes int32, o v1alpha1.IORSpec) *v1alpha1.BenchmarkRunSpec {
	return &v1alpha1.BenchmarkRunSpec{Tool: v1alpha1.ToolIOR, Processes: processes, IOR: &o}
}

// phased returns a run that drops caches between phases, and therefore has a step for each operation.
func phased(spec *v1alpha1.BenchmarkRunSpec) *v1alpha1.BenchmarkRunSpec {
	spec.Caches = &v1alpha1.CachesSpec{Drop: v1alpha1.CachesOfAll, Before: v1alpha1.CachesBeforePhases}
	return spec
}

var (
	write = []v1alpha1.IOROperation{"Write"}
	both  = []v1alpha1.IOROperation{"Read", "Write"}

	// The runs of the files in testdata.
	own      = run(2, v1alpha1.IORSpec{BlockSize: "4Mi", TransferSize: "1Mi", FilePerProcess: true, Fsync: true, Iterations: 3})
	shared   = run(4, v1alpha1.IORSpec{Segments: 4, ReorderTasks: true})
	written  = run(2, v1alpha1.IORSpec{Segments: 2, Iterations: 2, Operations: write})
	steps    = phased(run(2, v1alpha1.IORSpec{Segments: 2, Iterations: 2, FilePerProcess: true, Operations: both}))
	mpiio    = run(2, v1alpha1.IORSpec{Segments: 2, Interface: v1alpha1.IORMPIIO, Collective: true})
	direct   = run(2, v1alpha1.IORSpec{Segments: 2, DirectIO: true})
	byChance = run(2, v1alpha1.IORSpec{Segments: 2, RandomOffset: true, FilePerProcess: true})
	walled   = run(2, v1alpha1.IORSpec{BlockSize: "4Gi", TransferSize: "1Mi", Operations: write, Args: []v1alpha1.BenchmarkArgument{"-D", "1"}})
	tiny     = run(2, v1alpha1.IORSpec{BlockSize: "16", TransferSize: "8"})
	json3    = run(2, v1alpha1.IORSpec{Segments: 2, Iterations: 3})
	json1    = run(2, v1alpha1.IORSpec{Segments: 2, FilePerProcess: true})
	thousand = run(2, v1alpha1.IORSpec{BlockSize: "256Ki", TransferSize: "64Ki", Iterations: 1000, FilePerProcess: true, Fsync: true})
)

// point returns the only point of a run.
func point(t testing.TB, spec *v1alpha1.BenchmarkRunSpec) benchmarks.Point {
	t.Helper()
	return tooltest.Point(t, ior.Tool{}, spec)
}

func TestContract(t *testing.T) {
	cases := map[string]tooltest.Case{}
	for name, g := range good {
		cases[name] = tooltest.Case{Spec: g.spec, Step: g.step, Output: tooltest.Output(t, g.file)}
	}
	tooltest.Run(t, ior.Tool{}, cases)
}
