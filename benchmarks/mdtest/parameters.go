package mdtest

import (
	"cmp"
	"fmt"
	"slices"

	"parallelfs.dev/operator/api/v1alpha1"
	"parallelfs.dev/operator/benchmarks"
)

// Names that a sweep can vary, besides processes, clients and storagePool.
const (
	items           v1alpha1.SweepName = "mdtest.items"
	itemsPerProcess v1alpha1.SweepName = "mdtest.itemsPerProcess"
	depth           v1alpha1.SweepName = "mdtest.depth"
	branch          v1alpha1.SweepName = "mdtest.branch"
	writeBytes      v1alpha1.SweepName = "mdtest.writeBytes"
	readBytes       v1alpha1.SweepName = "mdtest.readBytes"
	stride          v1alpha1.SweepName = "mdtest.stride"
	iterations      v1alpha1.SweepName = "mdtest.iterations"
)

// Parameters returns processes, clients, storagePool, and the numeric parameters in spec.mdtest. mdtest.items and mdtest.itemsPerProcess
// exclude each other: if the spec sets one of them, the other is no parameter.
func (Tool) Parameters(spec *v1alpha1.BenchmarkRunSpec) []benchmarks.Parameter {
	o := options(spec)
	out := benchmarks.Common(spec)
	count := func(number int32) string {
		if number == 0 {
			return ""
		}
		return fmt.Sprint(number)
	}
	if o.Items > 0 || o.ItemsPerProcess == 0 {
		out = append(out, benchmarks.Parameter{Name: items, Kind: benchmarks.Count, Value: count(o.Items)})
	}
	if o.ItemsPerProcess > 0 || o.Items == 0 {
		out = append(out, benchmarks.Parameter{Name: itemsPerProcess, Kind: benchmarks.Count, Value: count(o.ItemsPerProcess)})
	}
	return append(out,
		benchmarks.Parameter{Name: depth, Kind: benchmarks.Number, Value: fmt.Sprint(o.Depth)},
		benchmarks.Parameter{Name: branch, Kind: benchmarks.Count, Value: fmt.Sprint(o.Branch)},
		benchmarks.Parameter{Name: writeBytes, Kind: benchmarks.Bytes, Value: string(o.WriteBytes)},
		benchmarks.Parameter{Name: readBytes, Kind: benchmarks.Bytes, Value: string(o.ReadBytes)},
		benchmarks.Parameter{Name: stride, Kind: benchmarks.Number, Value: fmt.Sprint(o.Stride)},
		benchmarks.Parameter{Name: iterations, Kind: benchmarks.Count, Value: fmt.Sprint(o.Iterations)},
	)
}

// phase is a phase of mdtest: its name as a step, and its option.
type phase struct {
	phase        v1alpha1.MdtestPhase
	name, option string
}

// order lists the phases in mdtest's order.
var order = []phase{
	{v1alpha1.MdtestCreate, "create", "-C"},
	{v1alpha1.MdtestStat, "stat", "-T"},
	{v1alpha1.MdtestRead, "read", "-E"},
	{v1alpha1.MdtestRemove, "remove", "-r"},
}

// options returns spec.mdtest with the defaults of the API, which the API server also fills in. Its phases are in mdtest's order.
func options(spec *v1alpha1.BenchmarkRunSpec) v1alpha1.MdtestSpec {
	var o v1alpha1.MdtestSpec
	if spec.Mdtest != nil {
		o = *spec.Mdtest
	}
	o.Branch = cmp.Or(o.Branch, 1)
	o.Iterations = cmp.Or(o.Iterations, 1)
	o.WriteBytes = cmp.Or(o.WriteBytes, "0")
	o.ReadBytes = cmp.Or(o.ReadBytes, "0")
	wanted := o.Phases
	o.Phases = nil
	for _, p := range order {
		if len(wanted) == 0 || slices.Contains(wanted, p.phase) {
			o.Phases = append(o.Phases, p.phase)
		}
	}
	return o
}

// settings holds the checked parameters of a point.
type settings struct {
	processes, clients int
	// items is -I, or 0; perProcess is -n, or 0.
	items, perProcess int64
	depth, branch     int64
	write, read       int64
	stride            int64
	iterations        int64
	// directories is the number of all directories of a tree.
	directories int64
	// total is the number of items of one kind (files or directories) of all processes together.
	total int64
}

// exact is the largest count that mdtest, which multiplies some of these as floating-point numbers, computes exactly.
const exact = 1 << 53

// Upper bounds from the API. A sweep must respect them too.
const (
	maxProcesses  = 65536
	maxItems      = 1<<31 - 1
	maxDepth      = 64
	maxBranch     = 1000000
	maxStride     = 65536
	maxIterations = 1000
)

// check parses the parameters of a point, and refuses values that mdtest refuses or would silently replace.
func check(spec *v1alpha1.BenchmarkRunSpec, point benchmarks.Point) (settings, error) {
	var out settings
	o := options(spec)
	if err := benchmarks.CheckArgs("spec.mdtest.args", o.Args, owned); err != nil {
		return out, err
	}
	if o.FilesOnly && o.DirectoriesOnly {
		return out, benchmarks.InvalidPoint("spec.mdtest: filesOnly and directoriesOnly together leave nothing to measure; set one of them")
	}
	v := benchmarks.ValuesOf(point)
	// open returns 0 for a parameter that the spec does not set.
	open := func(name v1alpha1.SweepName, most int64) int64 {
		if !v.Has(name) {
			return 0
		}
		return v.Number(name, 1, most)
	}
	out.processes = int(v.Number(benchmarks.ParameterProcesses, 1, maxProcesses))
	out.clients = int(open(benchmarks.ParameterClients, maxProcesses))
	out.items, out.perProcess = open(items, maxItems), open(itemsPerProcess, maxItems)
	out.depth, out.branch = v.Number(depth, 0, maxDepth), v.Number(branch, 1, maxBranch)
	out.write, out.read = v.Bytes(writeBytes, 0, exact), v.Bytes(readBytes, 0, exact)
	out.stride, out.iterations = v.Number(stride, 0, maxStride), v.Number(iterations, 1, maxIterations)
	if err := v.Err(); err != nil {
		return out, err
	}
	err := out.complete(o)
	return out, err
}

// complete computes the tree and refuses contradictions.
func (s *settings) complete(o v1alpha1.MdtestSpec) error {
	switch {
	case s.items == 0 && s.perProcess == 0:
		return benchmarks.InvalidPoint("%s: set it or %s, or sweep or derive one of them; without, mdtest makes no items", items, itemsPerProcess)
	case s.items > 0 && s.perProcess > 0:
		return benchmarks.InvalidPoint("%s: %d contradicts %s (%d); set one of them", items, s.items, itemsPerProcess, s.perProcess)
	case s.read > s.write:
		return benchmarks.InvalidPoint("%s: %d is more than %s (%d), so mdtest would read beyond the end of its files", readBytes, s.read, writeBytes, s.write)
	case s.stride > 0 && o.UniqueDirectories && s.depth > 0:
		return benchmarks.InvalidPoint("%s: mdtest does not find its own directories with a stride (-N), a tree for each process (-u) and "+
			"a depth of more than 0; unset mdtest.stride or mdtest.uniqueDirectories, or set %s to 0", stride, depth)
	}
	leaves := int64(1)
	s.directories = 1
	for range s.depth {
		if leaves > exact/s.branch || s.directories > exact-leaves*s.branch {
			return benchmarks.InvalidPoint("%s: a tree of depth %d with %d branches has more than 2^53 directories", depth, s.depth, s.branch)
		}
		leaves *= s.branch
		s.directories += leaves
	}
	holders, which := s.directories, "directories"
	if o.LeafOnly {
		holders, which = leaves, "deepest directories"
	}
	each := s.perProcess
	if each > 0 && each%holders != 0 {
		return benchmarks.InvalidPoint("%s: %d can't be spread evenly over the %d %s of the tree; mdtest would leave out the rest; make it a multiple",
			itemsPerProcess, each, holders, which)
	}
	if s.items > 0 {
		if s.items > exact/holders {
			return benchmarks.InvalidPoint("%s: %d in each of %d directories are more than 2^53", items, s.items, holders)
		}
		each = s.items * holders
	}
	if each > exact/int64(s.processes) {
		return benchmarks.InvalidPoint("%s: %d processes with %d items each have more than 2^53", benchmarks.ParameterProcesses, s.processes, each)
	}
	s.total = each * int64(s.processes)
	// Without Remove in the same step, the items of each iteration remain.
	if s.write > 0 && s.total > exact/s.iterations/s.write {
		return benchmarks.InvalidPoint("%s: %d bytes to each of %d files are more than 8 PiB", writeBytes, s.write, s.total)
	}
	if s.total > exact/s.iterations/2 || s.directories > exact/s.iterations/int64(s.processes) {
		return benchmarks.InvalidPoint("%s: %d iterations of %d items are more than 2^53", iterations, s.iterations, s.total)
	}
	return nil
}
