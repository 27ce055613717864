package postmark

import (
	"fmt"
	"strings"

	"parallelfs.dev/operator/api/v1alpha1"
	"parallelfs.dev/operator/benchmarks"
)

// Plan returns one postmark for each process, which reads its commands from standard input. All have the same seed, so each does the same
// work on its own files.
func (Tool) Plan(spec *v1alpha1.BenchmarkRunSpec, point benchmarks.Point) (benchmarks.Plan, error) {
	s, err := check(spec, point)
	if err != nil {
		return benchmarks.Plan{}, err
	}
	o := options(spec)
	// The working directory is the process's own. With its full path of 90 characters, postmark crashes when it creates files.
	commands := []string{"set location .", fmt.Sprintf("set number %d", s.files), fmt.Sprintf("set transactions %d", s.transactions)}
	if s.subdirectories > 0 { // postmark does not accept 0
		commands = append(commands, fmt.Sprintf("set subdirectories %d", s.subdirectories))
	}
	commands = append(commands,
		fmt.Sprintf("set size %d %d", s.low, s.high), fmt.Sprintf("set read %d", s.in), fmt.Sprintf("set write %d", s.out),
		fmt.Sprintf("set bias read %d", *o.BiasRead), fmt.Sprintf("set bias create %d", *o.BiasCreate),
		fmt.Sprintf("set buffering %t", o.Buffered), fmt.Sprintf("set seed %d", *o.Seed), "set report verbose", "run", "quit")
	// A file never grows beyond the maximum size, and each transaction creates at most one.
	most := s.files + s.transactions
	return benchmarks.Plan{
		Steps: []benchmarks.Step{{Command: benchmarks.Command{
			Launch: benchmarks.OnEachProcess, Argv: []string{"postmark"}, Stdin: strings.Join(commands, "\n") + "\n",
		}}},
		Clients: int(s.clients), Processes: int(s.processes),
		Demand: benchmarks.Demand{
			Bytes: saturate(s.processes, most, s.high), Inodes: saturate(s.processes, most+s.subdirectories+1),
		},
	}, nil
}

// saturate multiplies, and returns the largest number on overflow.
func saturate(factors ...int64) int64 {
	const most = 1<<63 - 1
	out := int64(1)
	for _, f := range factors {
		if out > most/f {
			return most
		}
		out *= f
	}
	return out
}
