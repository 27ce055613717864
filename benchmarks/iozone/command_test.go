package iozone_test

import (
	"errors"
	"strings"
	"testing"

	. "github.com/onsi/gomega"

	"parallelfs.dev/operator/api/v1alpha1"
	"parallelfs.dev/operator/benchmarks"
	"parallelfs.dev/operator/benchmarks/iozone"
)

func TestPlan(t *testing.T) {
	all := func(s *v1alpha1.BenchmarkRunSpec) {
		s.IOzone.DirectIO, s.IOzone.IncludeFlush, s.IOzone.IncludeClose, s.IOzone.UseThreads, s.IOzone.NoRetest = true, true, true, true, true
	}
	local := func(processes int, argv string) benchmarks.Plan {
		return benchmarks.Plan{
			Steps: []benchmarks.Step{{Command: benchmarks.Command{Argv: strings.Fields(argv)}}}, Clients: 1, Processes: processes,
		}
	}
	spread := func(clients, processes int, argv string) benchmarks.Plan {
		return benchmarks.Plan{Steps: []benchmarks.Step{{Command: benchmarks.Command{
			Launch: benchmarks.OnLauncher, Argv: strings.Fields(argv + " -+m $(HOSTS_FILE) -+h $(LAUNCHER_IP)"), Env: []string{"RSH=ssh", "rsh=ssh"},
			Files: []benchmarks.File{{PerProcess: "$(HOST) $(DIRECTORY) /usr/bin/iozone\n"}},
		}}}, Clients: clients, Processes: processes}
	}
	for name, test := range map[string]struct {
		spec *v1alpha1.BenchmarkRunSpec
		want benchmarks.Plan
	}{
		"the defaults of the API":                   {&v1alpha1.BenchmarkRunSpec{IOzone: &v1alpha1.IOzoneSpec{}}, local(1, "iozone -t 1 -r 64k -s 1048576k -i 0 -i 1 -i 2")},
		"no options but the tests":                  {run(4, "4Ki", "1Gi"), local(4, "iozone -t 4 -r 4k -s 1048576k -i 0 -i 1 -i 2")},
		"every option":                              {run(4, "4Ki", "1Gi", all), local(4, "iozone -t 4 -r 4k -s 1048576k -i 0 -i 1 -i 2 -I -e -c -T -+n")},
		"tests in the order of iozone":              {run(1, "1Mi", "1Gi", tests("Random", "Write")), local(1, "iozone -t 1 -r 1024k -s 1048576k -i 0 -i 2")},
		"sizes without a unit, which are kilobytes": {run(1, "64", "128"), local(1, "iozone -t 1 -r 64k -s 128k -i 0 -i 1 -i 2")},
		"spread over clients":                       {run(32, "4Ki", "1Gi", distributed(8)), spread(8, 32, "iozone -t 32 -r 4k -s 1048576k -i 0 -i 1 -i 2")},
		"spread over as many clients as there are":  {run(32, "4Ki", "1Gi", distributed(0)), spread(0, 32, "iozone -t 32 -r 4k -s 1048576k -i 0 -i 1 -i 2")},
		"the largest record":                        {run(1, "16Mi", "16Mi"), local(1, "iozone -t 1 -r 16384k -s 16384k -i 0 -i 1 -i 2")},
		"processes that can't be spread evenly":     {run(5, "4Ki", "1Gi", distributed(2)), spread(2, 5, "iozone -t 5 -r 4k -s 1048576k -i 0 -i 1 -i 2")},
		"the largest number of processes":           {run(1024, "4Ki", "4Ki"), local(1024, "iozone -t 1024 -r 4k -s 4k -i 0 -i 1 -i 2")},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			plan, err := iozone.Tool{}.Plan(test.spec, point(t, test.spec))
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(plan.Demand.Inodes).To(Equal(int64(plan.Processes)))
			plan.Demand = benchmarks.Demand{}
			g.Expect(plan).To(Equal(test.want))
		})
	}
}

func TestEveryOptionOfTheSpecChangesTheCommand(t *testing.T) {
	seen := map[string]string{}
	for name, change := range map[string]func(*v1alpha1.BenchmarkRunSpec){
		"nothing":      func(*v1alpha1.BenchmarkRunSpec) {},
		"mode":         func(s *v1alpha1.BenchmarkRunSpec) { s.IOzone.Mode = v1alpha1.IOzoneDistributed },
		"tests":        tests("Write"),
		"recordSize":   func(s *v1alpha1.BenchmarkRunSpec) { s.IOzone.RecordSize = "8Ki" },
		"fileSize":     func(s *v1alpha1.BenchmarkRunSpec) { s.IOzone.FileSize = "2Gi" },
		"directIO":     func(s *v1alpha1.BenchmarkRunSpec) { s.IOzone.DirectIO = true },
		"includeFlush": func(s *v1alpha1.BenchmarkRunSpec) { s.IOzone.IncludeFlush = true },
		"includeClose": func(s *v1alpha1.BenchmarkRunSpec) { s.IOzone.IncludeClose = true },
		"useThreads":   func(s *v1alpha1.BenchmarkRunSpec) { s.IOzone.UseThreads = true },
		"noRetest":     noRetest,
	} {
		g := NewWithT(t)
		spec := run(1, "4Ki", "1Gi", change)
		plan, err := iozone.Tool{}.Plan(spec, point(t, spec))
		g.Expect(err).NotTo(HaveOccurred())
		line := strings.Join(plan.Steps[0].Command.Argv, " ")
		g.Expect(seen).NotTo(HaveKey(line), "%s", name)
		seen[line] = name
	}
}

func TestCommandRefusesWhatIozoneCanNotRun(t *testing.T) {
	for name, test := range map[string]struct {
		spec *v1alpha1.BenchmarkRunSpec
		says string
	}{
		"a file that is less than a record":       {run(1, "64Ki", "32Ki"), "iozone.fileSize: 32Ki is less than iozone.recordSize (64Ki), so no process could write a record"},
		"a file of broken records":                {run(1, "64Ki", "100Ki"), "iozone.fileSize: 100Ki is no multiple of iozone.recordSize (64Ki); iozone would leave out the rest"},
		"a record larger than the buffer":         {run(1, "32Mi", "64Mi"), "iozone.recordSize: 32Mi is larger than 16Mi, the largest record of iozone"},
		"more processes than iozone has room for": {run(1025, "4Ki", "1Gi"), "processes: 1025 is more than 1024, the most that can be run"},
		"fewer processes than clients":            {run(2, "4Ki", "1Gi", distributed(4)), "processes: 2 is less than clients (4), so a client would have nothing to do"},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			p := point(t, test.spec)
			plan, err := iozone.Tool{}.Plan(test.spec, p)
			var invalid *benchmarks.InvalidPointError
			g.Expect(errors.As(err, &invalid)).To(BeTrue())
			g.Expect(err).To(MatchError(test.says))
			g.Expect(plan).To(Equal(benchmarks.Plan{}))
		})
	}
}

func TestTestsAreRunApartWhereCachesAreDroppedBetweenThem(t *testing.T) {
	g := NewWithT(t)
	lines := func(spec *v1alpha1.BenchmarkRunSpec) []string {
		plan, err := iozone.Tool{}.Plan(spec, point(t, spec))
		g.Expect(err).NotTo(HaveOccurred())
		var out []string
		for _, step := range plan.Steps {
			out = append(out, step.Name+": "+strings.Join(step.Command.Argv, " "))
		}
		return out
	}
	g.Expect(lines(run(2, "4Ki", "1Mi", phases))).To(Equal([]string{
		"write: iozone -t 2 -r 4k -s 1024k -i 0 -w", "read: iozone -t 2 -r 4k -s 1024k -i 1 -w", "random: iozone -t 2 -r 4k -s 1024k -i 2",
	}))
	g.Expect(lines(run(2, "4Ki", "1Mi", phases, tests("Write", "Random"), distributed(2)))).To(Equal([]string{
		"write: iozone -t 2 -r 4k -s 1024k -i 0 -+m $(HOSTS_FILE) -+h $(LAUNCHER_IP) -w",
		"random: iozone -t 2 -r 4k -s 1024k -i 2 -+m $(HOSTS_FILE) -+h $(LAUNCHER_IP)",
	}))
	g.Expect(lines(run(2, "4Ki", "1Mi", phases, tests("Write")))).To(Equal([]string{": iozone -t 2 -r 4k -s 1024k -i 0"}), "one test has no phases")
}

func TestDemandIsTheFilesOfAllProcesses(t *testing.T) {
	g := NewWithT(t)
	spec := run(4, "64Ki", "8Mi")
	plan, err := iozone.Tool{}.Plan(spec, point(t, spec))
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(plan.Demand).To(Equal(benchmarks.Demand{Bytes: 32 << 20, Inodes: 4}))
}
