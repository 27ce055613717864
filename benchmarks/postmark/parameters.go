package postmark

import (
	"cmp"
	"fmt"
	"math"

	"parallelfs.dev/operator/api/v1alpha1"
	"parallelfs.dev/operator/benchmarks"
)

// Names that a sweep can vary.
const (
	processes                         = benchmarks.ParameterProcesses
	clients                           = benchmarks.ParameterClients
	files          v1alpha1.SweepName = "postmark.files"
	transactions   v1alpha1.SweepName = "postmark.transactions"
	subdirectories v1alpha1.SweepName = "postmark.subdirectories"
	sizeLow        v1alpha1.SweepName = "postmark.sizeLow"
	sizeHigh       v1alpha1.SweepName = "postmark.sizeHigh"
	readSize       v1alpha1.SweepName = "postmark.readSize"
	writeSize      v1alpha1.SweepName = "postmark.writeSize"
)

// Parameters returns processes, clients, storagePool and the parameters in spec.postmark.
func (Tool) Parameters(spec *v1alpha1.BenchmarkRunSpec) []benchmarks.Parameter {
	o := options(spec)
	return append(benchmarks.Common(spec),
		benchmarks.Parameter{Name: files, Kind: benchmarks.Count, Value: fmt.Sprint(o.Files)},
		benchmarks.Parameter{Name: transactions, Kind: benchmarks.Count, Value: fmt.Sprint(o.Transactions)},
		benchmarks.Parameter{Name: subdirectories, Kind: benchmarks.Number, Value: fmt.Sprint(o.Subdirectories)},
		benchmarks.Parameter{Name: sizeLow, Kind: benchmarks.Bytes, Value: string(o.SizeLow)},
		benchmarks.Parameter{Name: sizeHigh, Kind: benchmarks.Bytes, Value: string(o.SizeHigh)},
		benchmarks.Parameter{Name: readSize, Kind: benchmarks.Bytes, Value: string(o.ReadSize)},
		benchmarks.Parameter{Name: writeSize, Kind: benchmarks.Bytes, Value: string(o.WriteSize)},
	)
}

// options returns spec.postmark with the defaults of the API, which the API server also fills in.
func options(spec *v1alpha1.BenchmarkRunSpec) v1alpha1.PostmarkSpec {
	var o v1alpha1.PostmarkSpec
	if spec.Postmark != nil {
		o = *spec.Postmark
	}
	o.Files = cmp.Or(o.Files, 500)
	o.Transactions = cmp.Or(o.Transactions, 500)
	o.SizeLow = cmp.Or(o.SizeLow, "500")
	o.SizeHigh = cmp.Or(o.SizeHigh, "9770")
	o.ReadSize = cmp.Or(o.ReadSize, "512")
	o.WriteSize = cmp.Or(o.WriteSize, "512")
	o.BiasRead = cmp.Or(o.BiasRead, new(int32(5)))
	o.BiasCreate = cmp.Or(o.BiasCreate, new(int32(5)))
	o.Seed = cmp.Or(o.Seed, new(int32(42)))
	return o
}

// settings holds the checked parameters of a point.
type settings struct {
	processes int64
	// clients is 0 if all available clients are used.
	clients                                                 int64
	files, transactions, subdirectories, low, high, in, out int64
}

const (
	maxProcesses = 65536
	// maxInt is the largest number of postmark, which misreads larger ones (atoi(3)).
	maxInt         = math.MaxInt32
	maxDirectories = 1_000_000
)

// check parses the parameters of a point, and refuses values that postmark would silently replace.
func check(spec *v1alpha1.BenchmarkRunSpec, point benchmarks.Point) (settings, error) {
	v := benchmarks.ValuesOf(point)
	s := settings{
		processes: v.Number(processes, 1, maxProcesses),
		files:     v.Number(files, 1, maxInt), transactions: v.Number(transactions, 1, maxInt),
		subdirectories: v.Number(subdirectories, 0, maxDirectories),
		low:            v.Bytes(sizeLow, 1, maxInt), high: v.Bytes(sizeHigh, 1, maxInt),
		in: v.Bytes(readSize, 1, maxInt), out: v.Bytes(writeSize, 1, maxInt),
	}
	if v.Has(clients) {
		s.clients = v.Number(clients, 1, maxProcesses)
	}
	if v.Err() == nil && s.processes < s.clients {
		v.Refuse("%s: %d is less than %s (%d), so a client would have nothing to do", processes, s.processes, clients, s.clients)
	}
	if v.Err() == nil && s.high < s.low {
		v.Refuse("%s: %s is less than %s (%s)", sizeHigh, point.Parameters[sizeHigh], sizeLow, point.Parameters[sizeLow])
	}
	if seed := *options(spec).Seed; seed < 1 {
		v.Refuse("postmark.seed: %d is no seed to postmark; take 1 or more", seed)
	}
	return s, v.Err()
}
