package vdbench

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
	files            v1alpha1.SweepName = "vdbench.files"
	fileSize         v1alpha1.SweepName = "vdbench.fileSize"
	transferSize     v1alpha1.SweepName = "vdbench.transferSize"
	threadsPerClient v1alpha1.SweepName = "vdbench.threadsPerClient"
)

// Parameters returns processes, clients, storagePool, and the numeric parameters in spec.vdbench that can be swept. Each client has one
// process. Therefore processes is the number of clients if spec.clients.count is not set, and has no effect otherwise.
func (Tool) Parameters(spec *v1alpha1.BenchmarkRunSpec) []benchmarks.Parameter {
	o := options(spec)
	return append(benchmarks.Common(spec),
		benchmarks.Parameter{Name: files, Kind: benchmarks.Count, Value: fmt.Sprint(o.Files)},
		benchmarks.Parameter{Name: fileSize, Kind: benchmarks.Bytes, Value: string(o.FileSize)},
		benchmarks.Parameter{Name: transferSize, Kind: benchmarks.Bytes, Value: string(o.TransferSize)},
		benchmarks.Parameter{Name: threadsPerClient, Kind: benchmarks.Count, Value: fmt.Sprint(o.ThreadsPerClient)},
	)
}

// options returns spec.vdbench with the defaults of the API, which the API server also fills in. Its operations are in the order of their
// runs.
func options(spec *v1alpha1.BenchmarkRunSpec) v1alpha1.VdbenchSpec {
	var o v1alpha1.VdbenchSpec
	if spec.Vdbench != nil {
		o = *spec.Vdbench
	}
	o.Files, o.Depth, o.Width, o.ThreadsPerClient = cmp.Or(o.Files, 100), cmp.Or(o.Depth, 1), cmp.Or(o.Width, 1), cmp.Or(o.ThreadsPerClient, 1)
	o.FileSize, o.TransferSize = cmp.Or(o.FileSize, "4Mi"), cmp.Or(o.TransferSize, "1Mi")
	wanted := o.Operations
	if len(wanted) == 0 {
		wanted = []v1alpha1.VdbenchOperation{v1alpha1.VdbenchCreate, v1alpha1.VdbenchRead}
	}
	o.Operations = nil
	for _, operation := range []v1alpha1.VdbenchOperation{v1alpha1.VdbenchCreate, v1alpha1.VdbenchRead, v1alpha1.VdbenchWrite} {
		if slices.Contains(wanted, operation) {
			o.Operations = append(o.Operations, operation)
		}
	}
	return o
}

// settings holds the checked parameters of a point.
type settings struct {
	clients int
	// files is the number of files in each deepest directory, total the number per client, and directories the number of directories in its
	// tree.
	files, total, directories int64
	size, transfer            int64
	threads                   int64
}

const (
	// unit is vdbench's smallest transfer.
	unit = 512
	// most bounds the numbers of files and of bytes (8 PiB), up to which counts are exact.
	most = 1 << 53
	// Upper bounds from the API. A sweep must respect them too.
	maxClients = 1024
	maxFiles   = 1<<31 - 1
	maxThreads = 4096
	// leastSeconds is the shortest run for which vdbench prints an average: it skips the first second, and requires two.
	leastSeconds = 2
)

// check parses the parameters of a point, and refuses values that vdbench refuses or would silently replace.
func check(spec *v1alpha1.BenchmarkRunSpec, point benchmarks.Point) (settings, error) {
	var s settings
	o := options(spec)
	for i, arg := range o.Args {
		// A definition belongs in the parameter file; an argument of vdbench begins with a dash.
		if !strings.HasPrefix(string(arg), "-") || strings.ContainsAny(string(arg), "\n\r") {
			return s, benchmarks.InvalidPoint("spec.vdbench.args[%d]: %q is no option of vdbench, such as -m4; the parameter file is the operator's", i, arg)
		}
	}
	if err := benchmarks.CheckArgs("spec.vdbench.args", o.Args, owned); err != nil {
		return s, err
	}
	v := benchmarks.ValuesOf(point)
	s.clients = int(v.Number(benchmarks.ParameterProcesses, 1, maxClients))
	if v.Has(benchmarks.ParameterClients) {
		s.clients = int(v.Number(benchmarks.ParameterClients, 1, maxClients))
	}
	s.files, s.threads = v.Number(files, 1, maxFiles), v.Number(threadsPerClient, 1, maxThreads)
	s.size, s.transfer = v.Bytes(fileSize, unit, most), v.Bytes(transferSize, unit, most)
	if v.Err() != nil {
		return s, v.Err()
	}
	leaves := int64(1)
	for range o.Depth {
		if leaves > most/int64(o.Width) {
			return s, benchmarks.InvalidPoint("spec.vdbench.depth: a tree of depth %d and width %d has more than 2^53 directories", o.Depth, o.Width)
		}
		leaves *= int64(o.Width)
		s.directories += leaves
	}
	switch {
	case s.files > most/leaves || s.directories > most/maxClients || s.files*leaves > most/s.size/int64(s.clients):
		v.Refuse("%s: %d in each of %d directories, of %d bytes, on %d clients are more than 8 PiB", files, s.files, leaves, s.size, s.clients)
	case s.transfer%unit != 0:
		v.Refuse("%s: %d is no multiple of %d bytes, as vdbench needs it", transferSize, s.transfer, unit)
	case s.size%s.transfer != 0:
		v.Refuse("%s: %d is no multiple of %s (%d), so the last transfer of each file would be a shorter one", fileSize, s.size, transferSize, s.transfer)
	case s.threads > s.files*leaves:
		v.Refuse("%s: %d is more than the %d files of a client, and a file is used by one thread at a time", threadsPerClient, s.threads, s.files*leaves)
	case o.ElapsedSeconds > 0 && o.ElapsedSeconds < leastSeconds:
		v.Refuse("spec.vdbench.elapsedSeconds: %d is less than %d, the shortest run that vdbench takes", o.ElapsedSeconds, leastSeconds)
	}
	s.total = s.files * leaves
	return s, v.Err()
}
