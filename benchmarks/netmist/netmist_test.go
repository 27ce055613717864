package netmist_test

import (
	"bytes"
	"errors"
	"strings"
	"testing"

	. "github.com/onsi/gomega"

	"parallelfs.dev/operator/api/v1alpha1"
	"parallelfs.dev/operator/benchmarks"
	"parallelfs.dev/operator/benchmarks/netmist"
	"parallelfs.dev/operator/benchmarks/tooltest"
)

// run returns a run of netmist with this number of processes and clients; 0 clients means that the number is not set.
func run(processes, clients int32, o v1alpha1.NetmistSpec) *v1alpha1.BenchmarkRunSpec {
	return &v1alpha1.BenchmarkRunSpec{
		Tool: v1alpha1.ToolNetmist, Processes: processes, Netmist: &o, Clients: v1alpha1.BenchmarkClients{Count: clients},
	}
}

var (
	// hpc is the run of the talk of 2014: 32 processes on 4 clients.
	hpc = run(32, 4, v1alpha1.NetmistSpec{})
	// file has the format in the talk; the numbers are made up.
	file = "documented-hpc-posix.txt"
)

func point(t testing.TB, spec *v1alpha1.BenchmarkRunSpec) benchmarks.Point {
	t.Helper()
	return tooltest.Point(t, netmist.Tool{}, spec)
}

func TestContract(t *testing.T) {
	tooltest.Run(t, netmist.Tool{}, map[string]tooltest.Case{
		"the run of the talk":      {Spec: hpc, Output: tooltest.Output(t, file)},
		"as many clients as match": {Spec: run(32, 0, v1alpha1.NetmistSpec{}), Output: tooltest.Output(t, file)},
	})
}

func TestPlan(t *testing.T) {
	command := func(argv string) benchmarks.Step {
		return benchmarks.Step{Command: benchmarks.Command{
			Launch: benchmarks.OnLauncher, Argv: strings.Fields(argv), Programs: []string{"ssh"}, Env: []string{"RSH=ssh"},
			Files: []benchmarks.File{{PerProcess: "$(HOST) $(DIRECTORY)\n"}},
		}}
	}
	for name, test := range map[string]struct {
		spec *v1alpha1.BenchmarkRunSpec
		want benchmarks.Plan
	}{
		"the run of the talk": {hpc, benchmarks.Plan{
			Clients: 4, Processes: 32, Steps: []benchmarks.Step{command("netmist -b 128 -d 8 -B 1 -t 300 -w 300 -f $(HOSTS_FILE)")},
		}},
		"every option": {
			run(6, 0, v1alpha1.NetmistSpec{BlockKiB: 64, DirectoryCount: 4, Workload: 2, RunSeconds: 60, WarmUpSeconds: 30, Args: []v1alpha1.BenchmarkArgument{"-p", "9"}}),
			benchmarks.Plan{Processes: 6, Steps: []benchmarks.Step{command("netmist -b 64 -d 4 -B 2 -t 60 -w 30 -p 9 -f $(HOSTS_FILE)")}},
		},
	} {
		t.Run(name, func(t *testing.T) {
			NewWithT(t).Expect(netmist.Tool{}.Plan(test.spec, point(t, test.spec))).To(Equal(test.want))
		})
	}
}

func TestPlanAcceptsOneProcessForEachClient(t *testing.T) {
	g := NewWithT(t)
	spec := run(4, 4, v1alpha1.NetmistSpec{})
	plan, err := netmist.Tool{}.Plan(spec, point(t, spec))
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(plan.Clients).To(Equal(4))
}

func TestPlanRefusesWhatNetmistCanNotRun(t *testing.T) {
	for name, test := range map[string]struct {
		spec *v1alpha1.BenchmarkRunSpec
		says string
	}{
		"fewer processes than clients":          {run(2, 4, v1alpha1.NetmistSpec{}), "processes: 2 is less than clients (4), so a client would have nothing to do"},
		"processes that can't be spread evenly": {run(5, 2, v1alpha1.NetmistSpec{}), "processes: 5 can't be spread evenly over 2 clients"},
		"another list of clients in args":       {run(1, 1, v1alpha1.NetmistSpec{Args: []v1alpha1.BenchmarkArgument{"-f", "/x"}}), `"-f" sets -f, which is set by the operator (the list of clients); remove it`},
		"another time in args":                  {run(1, 1, v1alpha1.NetmistSpec{Args: []v1alpha1.BenchmarkArgument{"-t9"}}), `"-t9" sets -t, which is set by netmist.runSeconds`},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			plan, err := netmist.Tool{}.Plan(test.spec, point(t, test.spec))
			var invalid *benchmarks.InvalidPointError
			g.Expect(errors.As(err, &invalid)).To(BeTrue(), "%v", err)
			g.Expect(err).To(MatchError(ContainSubstring(test.says)))
			g.Expect(plan).To(Equal(benchmarks.Plan{}))
		})
	}
}

var want = []string{
	"average latency 3.41 ms", "operations 9375.20 ops/s", "Read_throughput 33650.12 KB/s", "Write_throughput 46140.40 KB/s", "throughput 79790.52 KB/s",
}

func TestParseReadsTheSummary(t *testing.T) {
	g := NewWithT(t)
	text := tooltest.Output(t, file)
	for _, p := range []benchmarks.Point{point(t, hpc), {}} {
		report, err := netmist.Tool{}.Parse(hpc, p, 0, text)
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(tooltest.Lines(report)).To(Equal(want))
	}
	// SPECstorage 2020 prints this form.
	later := strings.NewReplacer("Netmist_2012   ", "SPECstorage(TM) Solution 2020   ",
		"\tPublic Finger Print", "\tTotal file space initialized   ~ 4725000 Mbytes\n\tRegistered Finger Print").Replace(string(text)) +
		"\tLatency Bands:\n\tBand 1: 20us:0.1\n\t----------------------------------------------------------------\n"
	report, err := netmist.Tool{}.Parse(hpc, point(t, hpc), 0, []byte(later))
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(tooltest.Lines(report)).To(Equal(want))
}

func TestParseRefusesWhatIsNoGoodRun(t *testing.T) {
	for name, test := range map[string]struct {
		spec     *v1alpha1.BenchmarkRunSpec
		file     string
		old, new string
		says     string
	}{
		"a client that failed":        {file: "error-documented-client-failed.txt", says: `line 18: netmist says "Error: client 17 on run-worker-2: write failed, No space left on device"`},
		"a run that was cut off":      {file: "error-documented-cut-off.txt", says: `the output is cut off after line 16 ("Launching 32 processes."), before the rule below the fingerprint`},
		"another number of processes": {spec: run(16, 4, v1alpha1.NetmistSpec{}), says: `line 2: "Running 32 copies of the test on 4 clients", but the point asked for 16 processes`},
		"another time":                {spec: run(32, 4, v1alpha1.NetmistSpec{RunSeconds: 60}), says: "but the point asked for 60 s, and 300 s before"},
		"another warm-up":             {spec: run(32, 4, v1alpha1.NetmistSpec{WarmUpSeconds: 60}), says: "but the point asked for 300 s, and 60 s before"},
		"a result that is missing":    {old: "\tOverall Read_throughput", new: "\tOverall Rad_throughput", says: `found "Overall Rad_throughput" in Kbytes/sec, where Read_throughput in Kbytes/sec comes next`},
		"no fingerprint":              {old: "Public Finger Print ", new: "No Finger Print ", says: `netmist says "No Finger Print`},
		"too few results":             {old: "\tOverall throughput                     ~   79790.52 Kbytes/sec\n", new: "", says: "the summary ends after 4 of 5 results"},
		"nothing done":                {old: "9375.20", new: "0.00", says: "operations is 0: nothing was done"},
		"a number that is none":       {old: "9375.20", new: "nan", says: `"nan" is no number`},
		"a number below 0":            {old: "9375.20", new: "-1.0", says: `"-1.0" is no number`},
		"an error in the summary":     {old: "\tOverall throughput", new: "lost a client\n\tOverall throughput", says: `netmist says "lost a client"`},
		"a result too many": {old: "\tPublic Finger", new: "\tOverall throughput                     ~   79790.52 Kbytes/sec\n\tPublic Finger",
			says: `"Overall throughput" is a result too many`},
		"a line below the fingerprint": {old: "841881000\n", new: "841881000\n\tlost a client\n",
			says: "instead of the rule below the fingerprint"},
		"a result before the run": {old: "Test run time", new: "Time", says: "a result stands before the line that says what netmist runs"},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			spec, name := hpc, file
			if test.spec != nil {
				spec = test.spec
			}
			if test.file != "" {
				name = test.file
			}
			text := tooltest.Output(t, name)
			if test.old != "" {
				g.Expect(string(text)).To(ContainSubstring(test.old))
				text = bytes.Replace(text, []byte(test.old), []byte(test.new), 1)
			}
			report, err := netmist.Tool{}.Parse(spec, point(t, spec), 0, text)
			g.Expect(err).To(MatchError(ContainSubstring(test.says)))
			g.Expect(report).To(Equal(benchmarks.Report{}))
		})
	}
}

func FuzzParse(f *testing.F) {
	f.Add(tooltest.Output(f, file))
	f.Add(tooltest.Output(f, "error-documented-client-failed.txt"))
	p := point(f, hpc)
	f.Fuzz(func(t *testing.T, text []byte) {
		for _, known := range []benchmarks.Point{p, {}} {
			samples := tooltest.Reads(t, netmist.Tool{}, hpc, known, text)
			if samples != nil && (len(samples) != len(want)) {
				t.Fatalf("%d samples", len(samples))
			}
		}
	})
}

func BenchmarkParse(b *testing.B) {
	p, text := point(b, hpc), tooltest.Output(b, file)
	b.SetBytes(int64(len(text)))
	b.ReportAllocs()
	for b.Loop() {
		if _, err := (netmist.Tool{}).Parse(hpc, p, 0, text); err != nil {
			b.Fatal(err)
		}
	}
}
