package netmist

import (
	"cmp"
	"fmt"

	"parallelfs.dev/operator/api/v1alpha1"
	"parallelfs.dev/operator/benchmarks"
)

// Names that a sweep can vary, besides processes, clients and storagePool.
const (
	blockKiB       v1alpha1.SweepName = "netmist.blockKiB"
	directoryCount v1alpha1.SweepName = "netmist.directoryCount"
	workload       v1alpha1.SweepName = "netmist.workload"
	runSeconds     v1alpha1.SweepName = "netmist.runSeconds"
)

// Parameters returns processes, clients, storagePool, and the parameters in spec.netmist that can be swept.
func (Tool) Parameters(spec *v1alpha1.BenchmarkRunSpec) []benchmarks.Parameter {
	o := options(spec)
	return append(benchmarks.Common(spec),
		benchmarks.Parameter{Name: blockKiB, Kind: benchmarks.Count, Value: fmt.Sprint(o.BlockKiB)},
		benchmarks.Parameter{Name: directoryCount, Kind: benchmarks.Count, Value: fmt.Sprint(o.DirectoryCount)},
		benchmarks.Parameter{Name: workload, Kind: benchmarks.Count, Value: fmt.Sprint(o.Workload)},
		benchmarks.Parameter{Name: runSeconds, Kind: benchmarks.Count, Value: fmt.Sprint(o.RunSeconds)},
	)
}

// options returns spec.netmist with the defaults of the API, which the API server also fills in.
func options(spec *v1alpha1.BenchmarkRunSpec) v1alpha1.NetmistSpec {
	var o v1alpha1.NetmistSpec
	if spec.Netmist != nil {
		o = *spec.Netmist
	}
	o.BlockKiB, o.DirectoryCount, o.Workload = cmp.Or(o.BlockKiB, 128), cmp.Or(o.DirectoryCount, 8), cmp.Or(o.Workload, 1)
	o.RunSeconds, o.WarmUpSeconds = cmp.Or(o.RunSeconds, 300), cmp.Or(o.WarmUpSeconds, 300)
	return o
}

// settings holds the checked parameters of a point.
type settings struct {
	processes, clients                    int
	block, directories, workload, seconds int64
}

// Upper bounds from the API. A sweep must respect them too.
const (
	maxProcesses   = 65536
	maxBlock       = 1048576
	maxDirectories = 1000000
	maxWorkload    = 1000
	maxSeconds     = 604800
)

// owned lists options that args must not set.
var owned = map[string]string{
	"-b": string(blockKiB), "-d": string(directoryCount), "-B": string(workload), "-t": string(runSeconds), "-w": "netmist.warmUpSeconds",
	"-f": "the operator (the list of clients)", "-h": "the operator (the report)", "-v": "the operator (the report)",
}

// check parses the parameters of a point, and refuses values that can't be run.
func check(spec *v1alpha1.BenchmarkRunSpec, point benchmarks.Point) (settings, error) {
	var s settings
	if err := benchmarks.CheckArgs("spec.netmist.args", options(spec).Args, owned); err != nil {
		return s, err
	}
	v := benchmarks.ValuesOf(point)
	s.processes = int(v.Number(benchmarks.ParameterProcesses, 1, maxProcesses))
	if v.Has(benchmarks.ParameterClients) {
		s.clients = int(v.Number(benchmarks.ParameterClients, 1, maxProcesses))
	}
	s.block, s.directories = v.Number(blockKiB, 1, maxBlock), v.Number(directoryCount, 1, maxDirectories)
	s.workload, s.seconds = v.Number(workload, 1, maxWorkload), v.Number(runSeconds, 1, maxSeconds)
	switch {
	case v.Err() != nil || s.clients == 0:
	case s.processes < s.clients:
		v.Refuse("%s: %d is less than %s (%d), so a client would have nothing to do", benchmarks.ParameterProcesses, s.processes, benchmarks.ParameterClients, s.clients)
	case s.processes%s.clients != 0:
		v.Refuse("%s: %d can't be spread evenly over %d %s, and netmist reports the mean of its processes; make it a multiple",
			benchmarks.ParameterProcesses, s.processes, s.clients, benchmarks.ParameterClients)
	}
	return s, v.Err()
}
