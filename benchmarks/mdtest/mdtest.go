// Package mdtest measures metadata operations with mdtest: the processes of an MPI program create, stat, read and remove files and
// directories in a tree. The options are those in the help of 3.3.0 and 4.0.0 (github.com/hpc/ior); 1.9.x has the same ones.
package mdtest

import "parallelfs.dev/operator/api/v1alpha1"

// Tool is the mdtest benchmark.
type Tool struct{}

// Name returns "mdtest".
func (Tool) Name() v1alpha1.BenchmarkTool { return v1alpha1.ToolMdtest }
