// Package registry lists the benchmarks that the operator can run.
package registry

import (
	"parallelfs.dev/operator/api/v1alpha1"
	"parallelfs.dev/operator/benchmarks"
	"parallelfs.dev/operator/benchmarks/iozone"
)

// Tools returns all tools by their names, which are the values of spec.tool.
func Tools() map[v1alpha1.BenchmarkTool]benchmarks.Tool {
	out := map[v1alpha1.BenchmarkTool]benchmarks.Tool{}
	for _, tool := range []benchmarks.Tool{iozone.Tool{}} {
		out[tool.Name()] = tool
	}
	return out
}
