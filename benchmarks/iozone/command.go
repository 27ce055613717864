package iozone

import (
	"fmt"

	"parallelfs.dev/operator/api/v1alpha1"
	"parallelfs.dev/operator/benchmarks"
)

// stepNames holds the names of a repetition's steps between which caches are dropped.
var stepNames = map[v1alpha1.IOzoneTest]string{v1alpha1.IOzoneWrite: "write", v1alpha1.IOzoneRead: "read", v1alpha1.IOzoneRandom: "random"}

// Plan returns iozone in its throughput mode with exactly the options in spec.iozone: one iozone for all tests, or one for each if caches
// are dropped between phases. In the latter case each preserves its files (-w) for the next.
func (Tool) Plan(spec *v1alpha1.BenchmarkRunSpec, point benchmarks.Point) (benchmarks.Plan, error) {
	s, err := check(spec, point)
	if err != nil {
		return benchmarks.Plan{}, err
	}
	o := options(spec)
	plan := benchmarks.Plan{
		Clients: s.clients, Processes: s.processes,
		Demand: benchmarks.Demand{Bytes: int64(s.processes) * s.file, Inodes: int64(s.processes)},
	}
	for _, step := range steps(spec) {
		command := command(s, o, step.tests)
		if !step.last {
			command.Argv = append(command.Argv, "-w") // keeps the files
		}
		plan.Steps = append(plan.Steps, benchmarks.Step{Name: step.name, Command: command})
	}
	return plan, nil
}

// step is one run of iozone.
type step struct {
	name  string
	tests []v1alpha1.IOzoneTest
	last  bool
}

// steps returns the runs of iozone in a repetition.
func steps(spec *v1alpha1.BenchmarkRunSpec) []step {
	tests := options(spec).Tests
	if !benchmarks.DropsBetweenPhases(spec) || len(tests) == 1 {
		return []step{{tests: tests, last: true}}
	}
	var out []step
	for i, test := range tests {
		out = append(out, step{name: stepNames[test], tests: tests[i : i+1], last: i == len(tests)-1})
	}
	return out
}

// command returns one iozone with some of the tests.
func command(s settings, o v1alpha1.IOzoneSpec, tests []v1alpha1.IOzoneTest) benchmarks.Command {
	// -t: throughput with this many processes; -r and -s: record size and file size per process, in kilobytes.
	argv := []string{
		"iozone", "-t", fmt.Sprint(s.processes),
		"-r", fmt.Sprintf("%dk", s.record/benchmarks.Kilo), "-s", fmt.Sprintf("%dk", s.file/benchmarks.Kilo),
	}
	for _, test := range tests {
		// -i: a test to run; 0 is write and rewrite, 1 read and re-read, 2 random read and random write.
		argv = append(argv, "-i", map[v1alpha1.IOzoneTest]string{
			v1alpha1.IOzoneWrite: "0", v1alpha1.IOzoneRead: "1", v1alpha1.IOzoneRandom: "2",
		}[test])
	}
	for _, option := range []struct {
		name string
		set  bool
	}{
		{"-I", o.DirectIO},     // O_DIRECT
		{"-e", o.IncludeFlush}, // fsync counts
		{"-c", o.IncludeClose}, // close counts
		{"-T", o.UseThreads},   // POSIX threads
		{"-+n", o.NoRetest},    // no rewrite, no re-read
	} {
		if option.set {
			argv = append(argv, option.name)
		}
	}
	out := benchmarks.Command{Argv: argv}
	if o.Mode == v1alpha1.IOzoneDistributed {
		out.Launch = benchmarks.OnLauncher
		// -+m: a file with one line per process: its client, its directory there and the path of iozone there. -+h: the address at which those
		// processes reach this one. They are started with rsh unless RSH is set; some versions read the name in lower case.
		out.Argv = append(out.Argv, "-+m", "$(HOSTS_FILE)", "-+h", "$(LAUNCHER_IP)")
		out.Env = []string{"RSH=ssh", "rsh=ssh"}
		out.Files = []benchmarks.File{{PerProcess: "$(HOST) $(DIRECTORY) /usr/bin/iozone\n"}}
	}
	return out
}
