package netmist

import (
	"fmt"

	"parallelfs.dev/operator/api/v1alpha1"
	"parallelfs.dev/operator/benchmarks"
)

// Plan returns netmist as in the talk of 2014. Its list of clients has a line for each process: a client, and the directory there. The
// usage of the filesystem depends on the workload and is unknown.
func (Tool) Plan(spec *v1alpha1.BenchmarkRunSpec, point benchmarks.Point) (benchmarks.Plan, error) {
	s, err := check(spec, point)
	if err != nil {
		return benchmarks.Plan{}, err
	}
	o := options(spec)
	argv := []string{
		"netmist", "-b", fmt.Sprint(s.block), "-d", fmt.Sprint(s.directories), "-B", fmt.Sprint(s.workload),
		"-t", fmt.Sprint(s.seconds), "-w", fmt.Sprint(o.WarmUpSeconds),
	}
	for _, arg := range o.Args {
		argv = append(argv, string(arg))
	}
	return benchmarks.Plan{
		Steps: []benchmarks.Step{{Command: benchmarks.Command{
			Launch: benchmarks.OnLauncher, Argv: append(argv, "-f", "$(HOSTS_FILE)"), Programs: []string{"ssh"},
			// Its processes are started by the program in this variable.
			Env:   []string{"RSH=ssh"},
			Files: []benchmarks.File{{PerProcess: "$(HOST) $(DIRECTORY)\n"}},
		}}},
		Clients: s.clients, Processes: s.processes,
	}, nil
}
