// Package registry lists the benchmarks that the operator can run.
package registry

import (
	"parallelfs.dev/operator/api/v1alpha1"
	"parallelfs.dev/operator/benchmarks"
	"parallelfs.dev/operator/benchmarks/custom"
	"parallelfs.dev/operator/benchmarks/fio"
	"parallelfs.dev/operator/benchmarks/ior"
	"parallelfs.dev/operator/benchmarks/iozone"
	"parallelfs.dev/operator/benchmarks/mdssurvey"
	"parallelfs.dev/operator/benchmarks/mdtest"
	"parallelfs.dev/operator/benchmarks/netmist"
	"parallelfs.dev/operator/benchmarks/obdfiltersurvey"
	"parallelfs.dev/operator/benchmarks/postmark"
	"parallelfs.dev/operator/benchmarks/storagebench"
	"parallelfs.dev/operator/benchmarks/vdbench"
)

// Tools returns all tools by their names, which are the values of spec.tool.
func Tools() map[v1alpha1.BenchmarkTool]benchmarks.Tool {
	out := map[v1alpha1.BenchmarkTool]benchmarks.Tool{}
	for _, tool := range []benchmarks.Tool{
		iozone.Tool{}, mdtest.Tool{}, ior.Tool{}, fio.Tool{}, postmark.Tool{}, vdbench.Tool{}, netmist.Tool{},
		mdssurvey.Tool{}, obdfiltersurvey.Tool{}, storagebench.Tool{}, custom.Tool{},
	} {
		out[tool.Name()] = tool
	}
	return out
}
