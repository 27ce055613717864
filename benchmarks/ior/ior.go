// Package ior measures the bandwidth of a filesystem with IOR: the processes of an MPI program that write and read one file that all share,
// or one each. The options are those of its own help as of 3.3.0 and 4.0.0 (github.com/hpc/ior).
package ior

import "parallelfs.dev/operator/api/v1alpha1"

// Tool is the IOR benchmark.
type Tool struct{}

// Name returns "ior".
func (Tool) Name() v1alpha1.BenchmarkTool { return v1alpha1.ToolIOR }
