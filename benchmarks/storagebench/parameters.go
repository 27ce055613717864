package storagebench

import (
	"cmp"
	"fmt"
	"slices"

	"parallelfs.dev/operator/api/v1alpha1"
	"parallelfs.dev/operator/benchmarks"
)

// Names that a sweep can vary.
const (
	storagePool                    = benchmarks.ParameterStoragePool
	blockSize   v1alpha1.SweepName = "storagebench.blockSize"
	fileSize    v1alpha1.SweepName = "storagebench.fileSize"
	threads     v1alpha1.SweepName = "storagebench.threads"
)

const (
	maxThreads = 1024
	// maxBlock and maxFile are far above a server's memory and a disk's size.
	maxBlock = 1 << 30
	maxFile  = 1 << 50
)

// Parameters returns storagePool and the parameters in spec.storagebench; no client process is involved.
func (Tool) Parameters(spec *v1alpha1.BenchmarkRunSpec) []benchmarks.Parameter {
	o := options(spec)
	out := slices.DeleteFunc(benchmarks.Common(spec), func(p benchmarks.Parameter) bool { return p.Name != storagePool })
	return append(out,
		benchmarks.Parameter{Name: blockSize, Kind: benchmarks.Bytes, Value: string(o.BlockSize)},
		benchmarks.Parameter{Name: fileSize, Kind: benchmarks.Bytes, Value: string(o.FileSize)},
		benchmarks.Parameter{Name: threads, Kind: benchmarks.Count, Value: fmt.Sprint(o.Threads)},
	)
}

// options returns spec.storagebench with the defaults of the API, which the API server also fills in. Its operations are in their fixed
// order.
func options(spec *v1alpha1.BenchmarkRunSpec) v1alpha1.StoragebenchSpec {
	var o v1alpha1.StoragebenchSpec
	if spec.Storagebench != nil {
		o = *spec.Storagebench
	}
	o.BlockSize = cmp.Or(o.BlockSize, "128Ki")
	o.FileSize = cmp.Or(o.FileSize, "1Gi")
	o.Threads = cmp.Or(o.Threads, 1)
	wanted := o.Operations
	o.Operations = nil
	for _, operation := range []v1alpha1.StoragebenchOperation{v1alpha1.StoragebenchWrite, v1alpha1.StoragebenchRead} {
		if len(wanted) == 0 || slices.Contains(wanted, operation) {
			o.Operations = append(o.Operations, operation)
		}
	}
	return o
}

// settings holds the checked parameters of a point.
type settings struct{ block, file, threads int64 }

func check(spec *v1alpha1.BenchmarkRunSpec, point benchmarks.Point) (settings, error) {
	v := benchmarks.ValuesOf(point)
	s := settings{block: v.Bytes(blockSize, 1, maxBlock), file: v.Bytes(fileSize, 1, maxFile), threads: v.Number(threads, 1, maxThreads)}
	asked := point.Parameters
	switch {
	case v.Err() != nil:
	case s.file < s.block:
		v.Refuse("%s: %s is less than %s (%s)", fileSize, asked[fileSize], blockSize, asked[blockSize])
	case s.file%s.block != 0:
		v.Refuse("%s: %s is no multiple of %s (%s)", fileSize, asked[fileSize], blockSize, asked[blockSize])
	case !slices.Contains(options(spec).Operations, v1alpha1.StoragebenchWrite):
		v.Refuse("storagebench.operations must hold Write, because Read reads what it has written")
	}
	return s, v.Err()
}
