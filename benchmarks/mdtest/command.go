package mdtest

import (
	"fmt"
	"slices"

	"parallelfs.dev/operator/api/v1alpha1"
	"parallelfs.dev/operator/benchmarks"
)

// owned lists options that args must not set: those with a field of their own, and those that change the report's format or scope.
var owned = map[string]string{
	"-d": "the operator (the directory)", "-i": string(iterations), "-I": string(items), "-n": string(itemsPerProcess), "-z": string(depth),
	"-b": string(branch), "-L": "mdtest.leafOnly", "-u": "mdtest.uniqueDirectories", "-F": "mdtest.filesOnly", "-D": "mdtest.directoriesOnly",
	"-w": string(writeBytes), "-e": string(readBytes), "-y": "mdtest.syncWrites", "-N": string(stride),
	"-C": "mdtest.phases", "-T": "mdtest.phases", "-E": "mdtest.phases", "-r": "mdtest.phases",
	"-f": string(benchmarks.ParameterProcesses), "-l": string(benchmarks.ParameterProcesses), "-s": string(benchmarks.ParameterProcesses),
	"-v": "the operator (the report)", "-V": "the operator (the report)",
	"-h": "the operator (the report)", "--help": "the operator (the report)",
	"--print-all-procs": "the operator (the report)", "--showRankStatistics": "the operator (the report)",
	// These run a command in a pod, or write a file at any path there.
	"-x": "the operator (no other files)", "--saveRankPerformanceDetails": "the operator (no other files)",
	"--run-cmd-before-phase": "the operator (no commands)", "--run-cmd-after-phase": "the operator (no commands)",
}

// Plan returns mdtest with exactly the options in spec.mdtest: one command, or one for each phase if caches are dropped between phases.
// mdtest with only -C preserves its tree, and finds it again if its other options are the same.
func (Tool) Plan(spec *v1alpha1.BenchmarkRunSpec, point benchmarks.Point) (benchmarks.Plan, error) {
	s, err := check(spec, point)
	if err != nil {
		return benchmarks.Plan{}, err
	}
	o := options(spec)
	out := benchmarks.Plan{Clients: s.clients, Processes: s.processes, Demand: s.demand(o, len(steps(spec)) > 1)}
	for _, phases := range steps(spec) {
		step := benchmarks.Step{Command: benchmarks.Command{Launch: benchmarks.OnProcesses, Argv: argv(o, s, phases)}}
		if len(steps(spec)) > 1 {
			step.Name = order[slices.IndexFunc(order, func(p phase) bool { return p.phase == phases[0] })].name
		}
		out.Steps = append(out.Steps, step)
	}
	return out, nil
}

// steps returns the phases of each command.
func steps(spec *v1alpha1.BenchmarkRunSpec) [][]v1alpha1.MdtestPhase {
	o := options(spec)
	if !benchmarks.DropsBetweenPhases(spec) {
		return [][]v1alpha1.MdtestPhase{o.Phases}
	}
	var out [][]v1alpha1.MdtestPhase
	for _, phase := range o.Phases {
		if phase == v1alpha1.MdtestRead && o.DirectoriesOnly {
			continue // mdtest reads no directories
		}
		out = append(out, []v1alpha1.MdtestPhase{phase})
	}
	return out
}

// argv returns one command line.
func argv(o v1alpha1.MdtestSpec, s settings, phases []v1alpha1.MdtestPhase) []string {
	// -i: iterations; -I and -n: items per directory and per process; -z and -b: depth and branching factor of the tree.
	out := []string{"mdtest", "-d", "$(DIRECTORY)", "-i", fmt.Sprint(s.iterations)}
	if s.items > 0 {
		out = append(out, "-I", fmt.Sprint(s.items))
	} else {
		out = append(out, "-n", fmt.Sprint(s.perProcess))
	}
	out = append(out, "-z", fmt.Sprint(s.depth), "-b", fmt.Sprint(s.branch))
	for _, option := range []struct {
		name string
		set  bool
	}{
		{"-L", o.LeafOnly},          // items in the deepest directories only
		{"-u", o.UniqueDirectories}, // a tree for each process
		{"-F", o.FilesOnly},
		{"-D", o.DirectoriesOnly},
		{"-y", o.SyncWrites}, // fsync after writes
	} {
		if option.set {
			out = append(out, option.name)
		}
	}
	for _, option := range []struct {
		name  string
		value int64
	}{
		{"-w", s.write},  // bytes written to each file
		{"-e", s.read},   // bytes read from each file
		{"-N", s.stride}, // the process whose items are used
	} {
		if option.value > 0 {
			out = append(out, option.name, fmt.Sprint(option.value))
		}
	}
	if len(phases) < len(order) {
		for _, p := range order {
			if slices.Contains(phases, p.phase) {
				out = append(out, p.option)
			}
		}
	}
	for _, arg := range o.Args {
		out = append(out, string(arg))
	}
	return out
}

// demand returns the maximum usage of the filesystem. Within one command with removal, mdtest removes the directories before it creates the
// files, and everything of an iteration before the next.
func (s settings) demand(o v1alpha1.MdtestSpec, split bool) benchmarks.Demand {
	trees, kinds, rounds, files := int64(1), int64(2), s.iterations, s.total
	if o.UniqueDirectories {
		trees = int64(s.processes)
	}
	switch {
	case o.DirectoriesOnly:
		kinds, files = 1, 0
	case o.FilesOnly:
		kinds = 1
	}
	if !split && slices.Contains(o.Phases, v1alpha1.MdtestRemove) {
		kinds, rounds = 1, 1
	}
	// Each iteration has a directory that contains its trees.
	return benchmarks.Demand{Bytes: rounds * files * s.write, Inodes: rounds * (1 + trees*s.directories + kinds*s.total)}
}
