package ior_test

import (
	"errors"
	"strings"
	"testing"

	. "github.com/onsi/gomega"

	"parallelfs.dev/operator/api/v1alpha1"
	"parallelfs.dev/operator/benchmarks"
	"parallelfs.dev/operator/benchmarks/ior"
)

func TestPlan(t *testing.T) {
	netapp := run(12, v1alpha1.IORSpec{BlockSize: "128Gi", TransferSize: "1Mi", FilePerProcess: true, ReorderTasks: true, Fsync: true})
	netapp.Clients.Count = 2
	for name, test := range map[string]struct {
		spec  *v1alpha1.BenchmarkRunSpec
		steps map[string]string
		want  benchmarks.Plan
	}{
		"the defaults of the API": {&v1alpha1.BenchmarkRunSpec{IOR: &v1alpha1.IORSpec{}},
			map[string]string{"": "ior -a POSIX -b 1048576 -t 262144 -s 1 -i 1 -w -r -o $(DIRECTORY)/data"},
			benchmarks.Plan{Processes: 1, Demand: benchmarks.Demand{Bytes: 1 << 20, Inodes: 1}}},
		"netapp-tr4782: 12 files of 128 GiB on 2 clients": {netapp,
			map[string]string{"": "ior -a POSIX -b 137438953472 -t 1048576 -s 1 -i 1 -w -r -F -C -e -o $(DIRECTORY)/data"},
			benchmarks.Plan{Processes: 12, Clients: 2, Demand: benchmarks.Demand{Bytes: 12 << 37, Inodes: 24}}},
		"MPI-IO into one file": {run(4, v1alpha1.IORSpec{Interface: v1alpha1.IORMPIIO, Collective: true, Segments: 16, Iterations: 5, Operations: write}),
			map[string]string{"": "ior -a MPIIO -b 1048576 -t 262144 -s 16 -i 5 -w -c -o $(DIRECTORY)/data"},
			benchmarks.Plan{Processes: 4, Demand: benchmarks.Demand{Bytes: 64 << 20, Inodes: 1}}},
		"O_DIRECT, random order, and args": {run(2, v1alpha1.IORSpec{DirectIO: true, RandomOffset: true, Args: []v1alpha1.BenchmarkArgument{"-D", "60", "-O", "stoneWallingWearOut=1,minTimeDuration=5"}}),
			map[string]string{"": "ior -a POSIX -b 1048576 -t 262144 -s 1 -i 1 -w -r -z --posix.odirect -D 60 -O stoneWallingWearOut=1,minTimeDuration=5 -o $(DIRECTORY)/data"},
			benchmarks.Plan{Processes: 2, Demand: benchmarks.Demand{Bytes: 2 << 20, Inodes: 1}}},
		"1 EiB, the most that can be counted": {run(1, v1alpha1.IORSpec{BlockSize: "1Ti", TransferSize: "1Mi", Segments: 1 << 20, Operations: write}),
			map[string]string{"": "ior -a POSIX -b 1099511627776 -t 1048576 -s 1048576 -i 1 -w -o $(DIRECTORY)/data"},
			benchmarks.Plan{Processes: 1, Demand: benchmarks.Demand{Bytes: 1 << 60, Inodes: 1}}},
		"with caches dropped between phases": {phased(run(2, v1alpha1.IORSpec{Iterations: 2, Operations: both})),
			map[string]string{
				"write": "ior -a POSIX -b 1048576 -t 262144 -s 1 -i 2 -w -k -o $(DIRECTORY)/data",
				"read":  "ior -a POSIX -b 1048576 -t 262144 -s 1 -i 2 -r -k -o $(DIRECTORY)/data",
			},
			benchmarks.Plan{Processes: 2, Demand: benchmarks.Demand{Bytes: 2 << 20, Inodes: 1}}},
		"with caches dropped between the phases of writing, of which there is one": {phased(run(2, v1alpha1.IORSpec{Operations: write})),
			map[string]string{"": "ior -a POSIX -b 1048576 -t 262144 -s 1 -i 1 -w -o $(DIRECTORY)/data"},
			benchmarks.Plan{Processes: 2, Demand: benchmarks.Demand{Bytes: 2 << 20, Inodes: 1}}},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			for _, step := range []string{"", "write", "read"} {
				if line, found := test.steps[step]; found {
					test.want.Steps = append(test.want.Steps, benchmarks.Step{
						Name: step, Command: benchmarks.Command{Launch: benchmarks.OnProcesses, Argv: strings.Fields(line)},
					})
				}
			}
			g.Expect(ior.Tool{}.Plan(test.spec, point(t, test.spec))).To(Equal(test.want))
		})
	}
}

func TestPlanRefusesWhatIORCanNotRun(t *testing.T) {
	with := func(args ...v1alpha1.BenchmarkArgument) *v1alpha1.BenchmarkRunSpec {
		return run(1, v1alpha1.IORSpec{Args: args})
	}
	for name, test := range map[string]struct {
		spec *v1alpha1.BenchmarkRunSpec
		says string
	}{
		"a block of broken transfers":       {run(1, v1alpha1.IORSpec{BlockSize: "1Mi", TransferSize: "300Ki"}), "ior.blockSize: 1048576 is no multiple of ior.transferSize (307200), as IOR needs it"},
		"a block that is no multiple":       {run(1, v1alpha1.IORSpec{BlockSize: "12", TransferSize: "8"}), "ior.blockSize: 12 is no multiple of 8 bytes, as IOR needs it"},
		"a transfer that is no multiple":    {run(1, v1alpha1.IORSpec{BlockSize: "16", TransferSize: "12"}), "ior.transferSize: 12 is no multiple of 8 bytes, as IOR needs it"},
		"no transfer":                       {run(1, v1alpha1.IORSpec{TransferSize: "0"}), "ior.transferSize: 0 is less than 8, the least that can be run"},
		"sizes beyond counting":             {run(65536, v1alpha1.IORSpec{BlockSize: "1Ti", TransferSize: "1Mi", Segments: 1 << 20}), "ior.segments: 1048576 segments of 1099511627776 bytes for each of 65536 processes are more than 1 EiB"},
		"reading alone":                     {run(1, v1alpha1.IORSpec{Operations: []v1alpha1.IOROperation{"Read"}}), "spec.ior.operations: Read alone has nothing to read; add Write"},
		"collective calls of POSIX":         {run(1, v1alpha1.IORSpec{Collective: true}), "spec.ior.collective: POSIX knows no collective calls, and IOR would leave them out"},
		"O_DIRECT of MPI-IO":                {run(1, v1alpha1.IORSpec{Interface: v1alpha1.IORMPIIO, DirectIO: true}), "spec.ior.directIO: IOR has it with POSIX only"},
		"O_DIRECT of less than a sector":    {run(1, v1alpha1.IORSpec{DirectIO: true, TransferSize: "256"}), "ior.transferSize: 256 is no multiple of 512 bytes, as spec.ior.directIO needs it"},
		"one transfer in random order":      {run(1, v1alpha1.IORSpec{RandomOffset: true, TransferSize: "1Mi"}), "ior.transferSize: 1048576 is the size of a whole block"},
		"random order, reordered, one file": {run(1, v1alpha1.IORSpec{RandomOffset: true, ReorderTasks: true}), "spec.ior.randomOffset: IOR can't combine it with reorderTasks in one file"},
		"the file in args":                  {with("-o", "/etc/passwd"), `spec.ior.args[0]: "-o" sets -o, which is set by the operator (the file); remove it`},
		"the block size in args":            {with("-g", "-b=4m"), `spec.ior.args[1]: "-b=4m" sets -b, which is set by ior.blockSize; remove it`},
		"a script in args":                  {with("-f", "/x"), `"-f" sets -f, which is set by the operator (one test)`},
		"O_DIRECT in args":                  {with("--posix.odirect"), `sets --posix.odirect, which is set by ior.directIO`},
		"a directive in args":               {with("-O", "summaryFormat=JSON"), `spec.ior.args[0]: -O with "summaryFormat" is refused; it may set stoneWallingWearOut, stoneWallingWearOutIterations, minTimeDuration`},
		"a directive among others":          {with("-O", "minstuff=1"), `-O with "minstuff" is refused`},
		"a directive behind a comma":        {with("-O", "minTimeDuration=3,testFile=/x"), `-O with "testFile" is refused`},
		"a directive with an equals sign":   {with("-O=testFile=/x"), `-O with "testFile" is refused`},
		"one in front of an allowed one":    {with("-O=testFile=/x", "minTimeDuration=5"), `-O with "testFile" is refused`},
		"a directive behind another option": {with("-g", "-O", "testFile=/x"), `spec.ior.args[1]: -O with "testFile" is refused`},
		"no directive":                      {with("-O"), `-O with "" is refused`},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			plan, err := ior.Tool{}.Plan(test.spec, point(t, test.spec))
			var invalid *benchmarks.InvalidPointError
			g.Expect(errors.As(err, &invalid)).To(BeTrue(), "%v", err)
			g.Expect(err).To(MatchError(ContainSubstring(test.says)))
			g.Expect(plan).To(Equal(benchmarks.Plan{}))
		})
	}
}
