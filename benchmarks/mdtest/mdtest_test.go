package mdtest_test

import (
	"os"
	"path/filepath"
	"testing"

	. "github.com/onsi/gomega"

	"parallelfs.dev/operator/api/v1alpha1"
	"parallelfs.dev/operator/benchmarks"
	"parallelfs.dev/operator/benchmarks/mdtest"
	"parallelfs.dev/operator/benchmarks/sweep"
	"parallelfs.dev/operator/benchmarks/tooltest"
)

// run returns a run of mdtest with this number of processes.
func run(processes int32, o v1alpha1.MdtestSpec) *v1alpha1.BenchmarkRunSpec {
	return &v1alpha1.BenchmarkRunSpec{Tool: v1alpha1.ToolMdtest, Processes: processes, Mdtest: &o}
}

// phased returns a run that drops caches between phases, and therefore has a step for each.
func phased(spec *v1alpha1.BenchmarkRunSpec) *v1alpha1.BenchmarkRunSpec {
	spec.Caches = &v1alpha1.CachesSpec{Drop: v1alpha1.CachesOfAll, Before: v1alpha1.CachesBeforePhases}
	return spec
}

// The runs of the files in testdata.
var (
	paper    = run(4, v1alpha1.MdtestSpec{Items: 20, Depth: 2, Branch: 4, LeafOnly: true, UniqueDirectories: true, FilesOnly: true, Iterations: 3})
	lowLoad  = run(2, v1alpha1.MdtestSpec{Items: 5, Depth: 2, Branch: 6, UniqueDirectories: true, WriteBytes: "1"})
	shared   = run(2, v1alpha1.MdtestSpec{ItemsPerProcess: 120, Depth: 1, Branch: 3, Iterations: 2, WriteBytes: "3901", ReadBytes: "3901"})
	only     = run(2, v1alpha1.MdtestSpec{Items: 10, Depth: 1, Branch: 3, DirectoriesOnly: true})
	strided  = run(4, v1alpha1.MdtestSpec{Items: 10, Stride: 1})
	timed    = run(2, v1alpha1.MdtestSpec{Items: 10, Iterations: 2, Args: []v1alpha1.BenchmarkArgument{"-Z"}})
	both     = run(2, v1alpha1.MdtestSpec{Items: 10, Iterations: 2, Args: []v1alpha1.BenchmarkArgument{"-P"}})
	oneFile  = run(2, v1alpha1.MdtestSpec{Items: 10, Args: []v1alpha1.BenchmarkArgument{"-S"}})
	byChance = run(2, v1alpha1.MdtestSpec{Items: 10, FilesOnly: true, Args: []v1alpha1.BenchmarkArgument{"-R"}})
	walled   = run(2, v1alpha1.MdtestSpec{ItemsPerProcess: 1000000, FilesOnly: true, Args: []v1alpha1.BenchmarkArgument{"-W", "1"}})
	twoParts = run(2, v1alpha1.MdtestSpec{Items: 10, FilesOnly: true, Phases: []v1alpha1.MdtestPhase{"Stat", "Create"}})
	ten      = run(2, v1alpha1.MdtestSpec{Items: 10, FilesOnly: true})
	many     = run(2, v1alpha1.MdtestSpec{Items: 400000, FilesOnly: true})
	steps    = phased(run(4, v1alpha1.MdtestSpec{
		Items: 20, Depth: 2, Branch: 3, LeafOnly: true, UniqueDirectories: true, Iterations: 2, WriteBytes: "100", ReadBytes: "100",
	}))
)

// point returns the only point of a run.
func point(t testing.TB, spec *v1alpha1.BenchmarkRunSpec) benchmarks.Point {
	t.Helper()
	points, err := sweep.Expand(mdtest.Tool{}, spec)
	NewWithT(t).Expect(err).NotTo(HaveOccurred())
	NewWithT(t).Expect(points).To(HaveLen(1))
	return points[0]
}

// output returns a file in testdata with the output of the real mdtest.
func output(t testing.TB, name string) []byte {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("testdata", name+".txt"))
	NewWithT(t).Expect(err).NotTo(HaveOccurred())
	return text
}

func TestContract(t *testing.T) {
	cases := map[string]tooltest.Case{}
	for name, g := range good {
		// Reading more than was written is refused. The contract changes one parameter, so it needs a spec that writes something.
		if g.spec != shared && g.spec != steps {
			spec := g.spec.DeepCopy()
			spec.Mdtest.WriteBytes, spec.Mdtest.ReadBytes = "4", "2"
			g.spec = spec
		}
		cases[name] = tooltest.Case{Spec: g.spec, Step: g.step, Output: output(t, g.file)}
	}
	tooltest.Run(t, mdtest.Tool{}, cases)
}
