package ior

import (
	"fmt"
	"slices"

	"parallelfs.dev/operator/api/v1alpha1"
	"parallelfs.dev/operator/benchmarks"
)

// Plan returns IOR with exactly the options in spec.ior: one command, or separate ones for write and read if caches are dropped between
// phases.
//
// Its report is text, not JSON (-O summaryFormat=JSON). Versions 3.x and 4.x print the same table, which is readable in the logs. IOR's
// errors and warnings are on separate lines there, but would break the JSON.
func (Tool) Plan(spec *v1alpha1.BenchmarkRunSpec, point benchmarks.Point) (benchmarks.Plan, error) {
	s, err := check(spec, point)
	if err != nil {
		return benchmarks.Plan{}, err
	}
	o := options(spec)
	all := steps(spec)
	out := benchmarks.Plan{Clients: s.clients, Processes: s.processes, Demand: s.demand(o)}
	for _, operations := range all {
		step := benchmarks.Step{Command: benchmarks.Command{Launch: benchmarks.OnProcesses, Argv: argv(o, s, operations, len(all) > 1)}}
		if len(all) > 1 {
			step.Name = name(operations[0])
		}
		out.Steps = append(out.Steps, step)
	}
	return out, nil
}

// name returns IOR's name of an operation.
func name(operation v1alpha1.IOROperation) string {
	if operation == v1alpha1.IORRead {
		return "read"
	}
	return "write"
}

// steps returns the operations of each command.
func steps(spec *v1alpha1.BenchmarkRunSpec) [][]v1alpha1.IOROperation {
	o := options(spec)
	if len(o.Operations) == 0 || !benchmarks.DropsBetweenPhases(spec) {
		return [][]v1alpha1.IOROperation{o.Operations}
	}
	var out [][]v1alpha1.IOROperation
	for _, operation := range o.Operations {
		out = append(out, []v1alpha1.IOROperation{operation})
	}
	return out
}

// argv returns one command line. keep preserves the files for the next step and, in the read step, for the next iteration.
func argv(o v1alpha1.IORSpec, s settings, operations []v1alpha1.IOROperation, keep bool) []string {
	// -a: interface; -b, -t and -s: block size, transfer size, and blocks per process; -i: iterations.
	out := []string{
		"ior", "-a", string(o.Interface), "-b", fmt.Sprint(s.block), "-t", fmt.Sprint(s.transfer),
		"-s", fmt.Sprint(s.segments), "-i", fmt.Sprint(s.iterations),
	}
	for _, option := range []struct {
		name string
		set  bool
	}{
		{"-w", slices.Contains(operations, v1alpha1.IORWrite)},
		{"-r", slices.Contains(operations, v1alpha1.IORRead)},
		{"-k", keep},
		{"-F", o.FilePerProcess},
		{"-c", o.Collective},
		{"-C", o.ReorderTasks}, // reads are on another client than the writes
		{"-e", o.Fsync},
		{"-z", o.RandomOffset},
		{"--posix.odirect", o.DirectIO}, // O_DIRECT in 3.3 and 4.x; 3.2 and older fail with "invalid option"
	} {
		if option.set {
			out = append(out, option.name)
		}
	}
	for _, arg := range o.Args {
		out = append(out, string(arg))
	}
	return append(out, "-o", "$(DIRECTORY)/data")
}

// demand returns the maximum usage of the filesystem: all iterations write the same files.
func (s settings) demand(o v1alpha1.IORSpec) benchmarks.Demand {
	out := benchmarks.Demand{Bytes: int64(s.processes) * s.segments * s.block, Inodes: 1}
	if o.FilePerProcess {
		out.Inodes = 2 * int64(s.processes) // with -u in args, each file has a directory
	}
	return out
}
