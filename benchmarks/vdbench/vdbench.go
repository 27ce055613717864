// Package vdbench measures small files with Oracle's Vdbench in its filesystem mode: each client creates, reads and writes the files of its
// own tree. Parameters and report are described in its Users Guide, 5.04.07. Only Oracle distributes it, so users supply the image.
package vdbench

import "parallelfs.dev/operator/api/v1alpha1"

// Tool is the vdbench benchmark.
type Tool struct{}

// Name returns "vdbench".
func (Tool) Name() v1alpha1.BenchmarkTool { return v1alpha1.ToolVdbench }
