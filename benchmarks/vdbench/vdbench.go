// Package vdbench measures small files with Oracle's Vdbench in its filesystem mode: each client makes, reads and writes the files of a
// tree of its own. Parameters and report are those of its Users Guide, 5.04.07. Only Oracle gives it out, so its image is the user's.
package vdbench

import "parallelfs.dev/operator/api/v1alpha1"

// Tool is the vdbench benchmark.
type Tool struct{}

// Name returns "vdbench".
func (Tool) Name() v1alpha1.BenchmarkTool { return v1alpha1.ToolVdbench }
