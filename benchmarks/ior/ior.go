// Package ior measures the bandwidth of a filesystem with IOR: the processes of an MPI program write and read one shared file, or one file
// each. The options are those in the help of 3.3.0 and 4.0.0 (github.com/hpc/ior).
package ior

import "parallelfs.dev/operator/api/v1alpha1"

// Tool is the IOR benchmark.
type Tool struct{}

// Name returns "ior".
func (Tool) Name() v1alpha1.BenchmarkTool { return v1alpha1.ToolIOR }
