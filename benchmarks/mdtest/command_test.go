package mdtest_test

import (
	"errors"
	"strings"
	"testing"

	. "github.com/onsi/gomega"

	"parallelfs.dev/operator/api/v1alpha1"
	"parallelfs.dev/operator/benchmarks"
	"parallelfs.dev/operator/benchmarks/mdtest"
)

func TestPlan(t *testing.T) {
	onClients := run(4, v1alpha1.MdtestSpec{Items: 10})
	onClients.Clients.Count = 2
	for name, test := range map[string]struct {
		spec  *v1alpha1.BenchmarkRunSpec
		steps []string
		want  benchmarks.Plan
	}{
		"one directory": {run(1, v1alpha1.MdtestSpec{Items: 10}), []string{"mdtest -d $(DIRECTORY) -i 1 -I 10 -z 0 -b 1"},
			benchmarks.Plan{Processes: 1, Demand: benchmarks.Demand{Inodes: 1 + 1 + 10}}},
		"on two clients": {onClients, []string{"mdtest -d $(DIRECTORY) -i 1 -I 10 -z 0 -b 1"},
			benchmarks.Plan{Processes: 4, Clients: 2, Demand: benchmarks.Demand{Inodes: 1 + 1 + 40}}},
		"beegfs-2015-backend with 8 processes": {
			run(8, v1alpha1.MdtestSpec{Items: 1024, Depth: 1, Branch: 64, LeafOnly: true, UniqueDirectories: true, FilesOnly: true, Iterations: 2}),
			[]string{"mdtest -d $(DIRECTORY) -i 2 -I 1024 -z 1 -b 64 -L -u -F"},
			benchmarks.Plan{Processes: 8, Demand: benchmarks.Demand{Inodes: 1 + 8*65 + 8*64*1024}}},
		"beegfs-2015-scale-out with 32 processes": {
			run(32, v1alpha1.MdtestSpec{Items: 6000, Depth: 2, Branch: 4, LeafOnly: true, UniqueDirectories: true, FilesOnly: true, Iterations: 3}),
			[]string{"mdtest -d $(DIRECTORY) -i 3 -I 6000 -z 2 -b 4 -L -u -F"},
			benchmarks.Plan{Processes: 32, Demand: benchmarks.Demand{Inodes: 1 + 32*21 + 32*16*6000}}},
		"lustre-2014-mdtest-low, which has 585760 items of each kind": {
			run(32, v1alpha1.MdtestSpec{Items: 5, Depth: 2, Branch: 60, UniqueDirectories: true, WriteBytes: "1"}),
			[]string{"mdtest -d $(DIRECTORY) -i 1 -I 5 -z 2 -b 60 -u -w 1"},
			benchmarks.Plan{Processes: 32, Demand: benchmarks.Demand{Bytes: 585760, Inodes: 1 + 32*3661 + 585760}}},
		"items of each process in a tree that all share, every option": {
			run(4, v1alpha1.MdtestSpec{
				ItemsPerProcess: 400, Depth: 1, Branch: 3, FilesOnly: true, WriteBytes: "4Ki", ReadBytes: "1Ki", SyncWrites: true, Stride: 2,
				Iterations: 5, Args: []v1alpha1.BenchmarkArgument{"-W", "300"},
			}),
			[]string{"mdtest -d $(DIRECTORY) -i 5 -n 400 -z 1 -b 3 -F -y -w 4096 -e 1024 -N 2 -W 300"},
			benchmarks.Plan{Processes: 4, Demand: benchmarks.Demand{Bytes: 1600 * 4096, Inodes: 1 + 4 + 1600}}},
		"directories only": {run(2, v1alpha1.MdtestSpec{Items: 10, DirectoriesOnly: true, WriteBytes: "1"}), []string{"mdtest -d $(DIRECTORY) -i 1 -I 10 -z 0 -b 1 -D -w 1"},
			benchmarks.Plan{Processes: 2, Demand: benchmarks.Demand{Inodes: 1 + 1 + 20}}},
		"without removing, so that each iteration leaves its items to the next": {
			run(2, v1alpha1.MdtestSpec{Items: 10, WriteBytes: "2", Iterations: 3, Phases: []v1alpha1.MdtestPhase{"Stat", "Create"}}),
			[]string{"mdtest -d $(DIRECTORY) -i 3 -I 10 -z 0 -b 1 -w 2 -C -T"},
			benchmarks.Plan{Processes: 2, Demand: benchmarks.Demand{Bytes: 3 * 20 * 2, Inodes: 3 * (1 + 1 + 2*20)}}},
		"with caches dropped between phases": {
			phased(run(2, v1alpha1.MdtestSpec{Items: 10, Iterations: 3})),
			[]string{
				"mdtest -d $(DIRECTORY) -i 3 -I 10 -z 0 -b 1 -C", "mdtest -d $(DIRECTORY) -i 3 -I 10 -z 0 -b 1 -T",
				"mdtest -d $(DIRECTORY) -i 3 -I 10 -z 0 -b 1 -E", "mdtest -d $(DIRECTORY) -i 3 -I 10 -z 0 -b 1 -r",
			},
			benchmarks.Plan{Processes: 2, Demand: benchmarks.Demand{Inodes: 3 * (1 + 1 + 2*20)}}},
		"with caches dropped between phases of directories, which mdtest does not read": {
			phased(run(2, v1alpha1.MdtestSpec{Items: 10, DirectoriesOnly: true})),
			[]string{
				"mdtest -d $(DIRECTORY) -i 1 -I 10 -z 0 -b 1 -D -C", "mdtest -d $(DIRECTORY) -i 1 -I 10 -z 0 -b 1 -D -T", "mdtest -d $(DIRECTORY) -i 1 -I 10 -z 0 -b 1 -D -r",
			},
			benchmarks.Plan{Processes: 2, Demand: benchmarks.Demand{Inodes: 1 + 1 + 20}}},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			for i, line := range test.steps {
				step := benchmarks.Step{Command: benchmarks.Command{Launch: benchmarks.OnProcesses, Argv: strings.Fields(line)}}
				if len(test.steps) > 1 {
					step.Name = map[string]string{"-C": "create", "-T": "stat", "-E": "read", "-r": "remove"}[line[len(line)-2:]]
				}
				test.want.Steps = append(test.want.Steps, step)
				g.Expect(i).To(BeNumerically("<", 4))
			}
			g.Expect(mdtest.Tool{}.Plan(test.spec, point(t, test.spec))).To(Equal(test.want))
		})
	}
}

func TestPlanRefusesWhatMdtestCanNotRun(t *testing.T) {
	with := func(args ...v1alpha1.BenchmarkArgument) *v1alpha1.BenchmarkRunSpec {
		return run(1, v1alpha1.MdtestSpec{Items: 1, Args: args})
	}
	for name, test := range map[string]struct {
		spec *v1alpha1.BenchmarkRunSpec
		says string
	}{
		"no items": {run(1, v1alpha1.MdtestSpec{}), "mdtest.items: set it or mdtest.itemsPerProcess, or sweep or derive one of them; without, mdtest makes no items"},
		"items and itemsPerProcess": {func() *v1alpha1.BenchmarkRunSpec {
			spec := run(1, v1alpha1.MdtestSpec{})
			spec.Sweep = []v1alpha1.SweepDimension{
				{Name: "mdtest.items", Values: []v1alpha1.SweepValue{"4"}}, {Name: "mdtest.itemsPerProcess", Values: []v1alpha1.SweepValue{"8"}},
			}
			return spec
		}(), "mdtest.items: 4 contradicts mdtest.itemsPerProcess (8); set one of them"},
		"items that don't divide": {run(1, v1alpha1.MdtestSpec{ItemsPerProcess: 100, Depth: 1, Branch: 2}),
			"mdtest.itemsPerProcess: 100 can't be spread evenly over the 3 directories of the tree; mdtest would leave out the rest; make it a multiple"},
		"items that don't divide among the deepest": {run(1, v1alpha1.MdtestSpec{ItemsPerProcess: 100, Depth: 1, Branch: 3, LeafOnly: true}),
			"mdtest.itemsPerProcess: 100 can't be spread evenly over the 3 deepest directories of the tree"},
		"fewer items than directories": {run(1, v1alpha1.MdtestSpec{ItemsPerProcess: 2, Depth: 1, Branch: 2}), "mdtest.itemsPerProcess: 2 can't be spread evenly"},
		"a tree beyond counting":       {run(1, v1alpha1.MdtestSpec{Items: 1, Depth: 64, Branch: 2}), "mdtest.depth: a tree of depth 64 with 2 branches has more than 2^53 directories"},
		"items beyond counting":        {run(1, v1alpha1.MdtestSpec{Items: 1 << 30, Depth: 8, Branch: 10}), "mdtest.items: 1073741824 in each of 111111111 directories are more than 2^53"},
		"processes beyond counting":    {run(65536, v1alpha1.MdtestSpec{Items: 1 << 20, Depth: 6, Branch: 10}), "processes: 65536 processes with 1165084327936 items each have more than 2^53"},
		"iterations beyond counting": {run(1, v1alpha1.MdtestSpec{Items: 1 << 30, Depth: 5, Branch: 10, Iterations: 1000}),
			"mdtest.iterations: 1000 iterations of 119304527806464 items are more than 2^53"},
		"bytes beyond counting":   {run(1, v1alpha1.MdtestSpec{Items: 1 << 30, WriteBytes: "1Gi"}), "mdtest.writeBytes: 1073741824 bytes to each of 1073741824 files are more than 8 PiB"},
		"more read than written":  {run(1, v1alpha1.MdtestSpec{Items: 1, WriteBytes: "1Ki", ReadBytes: "2Ki"}), "mdtest.readBytes: 2048 is more than mdtest.writeBytes (1024), so mdtest would read beyond the end of its files"},
		"a stride over own trees": {run(4, v1alpha1.MdtestSpec{Items: 1, Depth: 1, UniqueDirectories: true, Stride: 1}), "mdtest.stride: mdtest does not find its own directories with a stride (-N)"},
		"nothing to measure":      {run(1, v1alpha1.MdtestSpec{Items: 1, FilesOnly: true, DirectoriesOnly: true}), "spec.mdtest: filesOnly and directoriesOnly together leave nothing to measure"},
		"the directory in args":   {with("-d", "/"), `spec.mdtest.args[0]: "-d" sets -d, which is set by the operator (the directory); remove it`},
		"the iterations in args":  {with("-k", "-i3"), `spec.mdtest.args[1]: "-i3" sets -i, which is set by mdtest.iterations; remove it`},
		"a phase in args":         {with("-C"), `"-C" sets -C, which is set by mdtest.phases`},
		"fewer processes in args": {with("-f", "1"), `"-f" sets -f, which is set by processes`},
		"another report in args":  {with("-v"), `"-v" sets -v, which is set by the operator (the report)`},
		"a command in args":       {with("--run-cmd-before-phase=reboot"), `sets --run-cmd-before-phase, which is set by the operator (no commands)`},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			plan, err := mdtest.Tool{}.Plan(test.spec, point(t, test.spec))
			var invalid *benchmarks.InvalidPointError
			g.Expect(errors.As(err, &invalid)).To(BeTrue(), "%v", err)
			g.Expect(err).To(MatchError(ContainSubstring(test.says)))
			g.Expect(plan).To(Equal(benchmarks.Plan{}))
		})
	}
}

func TestItemsAndItemsPerProcessAreNoParametersBesidesEachOther(t *testing.T) {
	names := func(o v1alpha1.MdtestSpec) []string {
		var out []string
		for _, p := range (mdtest.Tool{}).Parameters(run(1, o)) {
			if strings.HasPrefix(string(p.Name), "mdtest.items") {
				out = append(out, string(p.Name))
			}
		}
		return out
	}
	g := NewWithT(t)
	g.Expect(names(v1alpha1.MdtestSpec{Items: 1})).To(Equal([]string{"mdtest.items"}))
	g.Expect(names(v1alpha1.MdtestSpec{ItemsPerProcess: 1})).To(Equal([]string{"mdtest.itemsPerProcess"}))
	g.Expect(names(v1alpha1.MdtestSpec{})).To(Equal([]string{"mdtest.items", "mdtest.itemsPerProcess"}))
}
