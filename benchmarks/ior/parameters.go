package ior

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"parallelfs.dev/operator/api/v1alpha1"
	"parallelfs.dev/operator/benchmarks"
)

// Names that a sweep can vary, besides processes, clients and storagePool.
const (
	blockSize    v1alpha1.SweepName = "ior.blockSize"
	transferSize v1alpha1.SweepName = "ior.transferSize"
	segments     v1alpha1.SweepName = "ior.segments"
	iterations   v1alpha1.SweepName = "ior.iterations"
)

// Parameters returns processes, clients, storagePool, and the numeric parameters in spec.ior.
func (Tool) Parameters(spec *v1alpha1.BenchmarkRunSpec) []benchmarks.Parameter {
	o := options(spec)
	return append(benchmarks.Common(spec),
		benchmarks.Parameter{Name: blockSize, Kind: benchmarks.Bytes, Value: string(o.BlockSize)},
		benchmarks.Parameter{Name: transferSize, Kind: benchmarks.Bytes, Value: string(o.TransferSize)},
		benchmarks.Parameter{Name: segments, Kind: benchmarks.Count, Value: fmt.Sprint(o.Segments)},
		benchmarks.Parameter{Name: iterations, Kind: benchmarks.Count, Value: fmt.Sprint(o.Iterations)},
	)
}

// options returns spec.ior with the defaults of the API, which the API server also fills in. Its operations are in IOR's order.
func options(spec *v1alpha1.BenchmarkRunSpec) v1alpha1.IORSpec {
	var o v1alpha1.IORSpec
	if spec.IOR != nil {
		o = *spec.IOR
	}
	o.Interface = cmp.Or(o.Interface, v1alpha1.IORPosix)
	o.BlockSize = cmp.Or(o.BlockSize, "1Mi")
	o.TransferSize = cmp.Or(o.TransferSize, "256Ki")
	o.Segments, o.Iterations = cmp.Or(o.Segments, 1), cmp.Or(o.Iterations, 1)
	wanted := o.Operations
	o.Operations = nil
	for _, operation := range []v1alpha1.IOROperation{v1alpha1.IORWrite, v1alpha1.IORRead} {
		if len(wanted) == 0 || slices.Contains(wanted, operation) {
			o.Operations = append(o.Operations, operation)
		}
	}
	return o
}

// settings holds the checked parameters of a point.
type settings struct {
	processes, clients   int
	block, transfer      int64
	segments, iterations int64
}

const (
	// unit is the size of IOR's own numbers; every block and transfer is a multiple of it.
	unit = 8
	// sector is the smallest transfer with O_DIRECT.
	sector = 512
	// most bounds all sizes and their product: 1 EiB.
	most = 1 << 60
	// Upper bounds from the API. A sweep must respect them too.
	maxProcesses  = 65536
	maxSegments   = 1<<31 - 1
	maxIterations = 1000
)

// check parses the parameters of a point, and refuses values that IOR refuses or would silently replace.
func check(spec *v1alpha1.BenchmarkRunSpec, point benchmarks.Point) (settings, error) {
	var s settings
	o := options(spec)
	if err := checkArgs(o.Args); err != nil {
		return s, err
	}
	v := benchmarks.ValuesOf(point)
	s.processes = int(v.Number(benchmarks.ParameterProcesses, 1, maxProcesses))
	if v.Has(benchmarks.ParameterClients) {
		s.clients = int(v.Number(benchmarks.ParameterClients, 1, maxProcesses))
	}
	s.block, s.transfer = v.Bytes(blockSize, unit, most), v.Bytes(transferSize, unit, most)
	s.segments, s.iterations = v.Number(segments, 1, maxSegments), v.Number(iterations, 1, maxIterations)
	switch {
	case v.Err() != nil:
	case s.block%unit != 0:
		v.Refuse("%s: %d is no multiple of %d bytes, as IOR needs it", blockSize, s.block, unit)
	case s.transfer%unit != 0:
		v.Refuse("%s: %d is no multiple of %d bytes, as IOR needs it", transferSize, s.transfer, unit)
	case s.block%s.transfer != 0:
		v.Refuse("%s: %d is no multiple of %s (%d), as IOR needs it", blockSize, s.block, transferSize, s.transfer)
	case s.segments > most/s.block || int64(s.processes) > most/s.block/s.segments:
		v.Refuse("%s: %d segments of %d bytes for each of %d processes are more than 1 EiB", segments, s.segments, s.block, s.processes)
	case !slices.Contains(o.Operations, v1alpha1.IORWrite):
		v.Refuse("spec.ior.operations: Read alone has nothing to read; add Write")
	case o.Collective && o.Interface != v1alpha1.IORMPIIO:
		v.Refuse("spec.ior.collective: %s knows no collective calls, and IOR would leave them out; set spec.ior.interface to MPIIO, or unset collective", o.Interface)
	case o.DirectIO && o.Interface != v1alpha1.IORPosix:
		v.Refuse("spec.ior.directIO: IOR has it with POSIX only; set spec.ior.interface to POSIX, or unset directIO")
	case o.DirectIO && s.transfer%sector != 0:
		v.Refuse("%s: %d is no multiple of %d bytes, as spec.ior.directIO needs it", transferSize, s.transfer, sector)
	case o.RandomOffset && s.block == s.transfer:
		v.Refuse("%s: %d is the size of a whole block, so there is no random order within it (spec.ior.randomOffset); make it less than %s",
			transferSize, s.transfer, blockSize)
	case o.RandomOffset && o.ReorderTasks && !o.FilePerProcess:
		v.Refuse("spec.ior.randomOffset: IOR can't combine it with reorderTasks in one file; set spec.ior.filePerProcess, or unset one of them")
	}
	return s, v.Err()
}

// owned lists options that args must not set: those with a field of their own, and those that change the report's format or scope.
var owned = map[string]string{
	"-a": "ior.interface", "-b": string(blockSize), "-t": string(transferSize), "-s": string(segments), "-i": string(iterations),
	"-F": "ior.filePerProcess", "-c": "ior.collective", "--collective": "ior.collective", "-C": "ior.reorderTasks", "-e": "ior.fsync",
	"--posix.odirect": "ior.directIO", "-B": "ior.directIO", "-z": "ior.randomOffset", "-w": "ior.operations", "-r": "ior.operations",
	"-N": string(benchmarks.ParameterProcesses),
	"-o": "the operator (the file)", "-k": "the operator (the file)", "-m": "the operator (one file)", "-f": "the operator (one test)",
	"-v": "the operator (the report)", "-h": "the operator (the report)", "--help": "the operator (the report)",
	"--dryRun": "the operator (the report)",
}

// directives lists the directives of -O that args may set. All others correspond to named options.
var directives = []string{"stoneWallingWearOut", "stoneWallingWearOutIterations", "minTimeDuration"}

// checkArgs refuses args that set owned options.
func checkArgs(args []v1alpha1.BenchmarkArgument) error {
	const field = "spec.ior.args"
	if err := benchmarks.CheckArgs(field, args, owned); err != nil {
		return err
	}
	for i, arg := range args {
		text, is := strings.CutPrefix(string(arg), "-O")
		if is && text == "" && i+1 < len(args) {
			text = string(args[i+1])
		}
		if !is {
			continue
		}
		for directive := range strings.SplitSeq(strings.TrimPrefix(text, "="), ",") {
			if name, _, _ := strings.Cut(directive, "="); !slices.Contains(directives, name) {
				return benchmarks.InvalidPoint("%s[%d]: -O with %q is refused; it may set %s", field, i, name, strings.Join(directives, ", "))
			}
		}
	}
	return nil
}
