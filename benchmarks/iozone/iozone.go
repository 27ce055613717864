// Package iozone measures a filesystem with IOzone: each process writes, reads and randomly accesses a file of its own, on one client or on
// several. The options are those of iozone(1) and of the help of version 3.489.
package iozone

import "parallelfs.dev/operator/api/v1alpha1"

// Tool is the IOzone benchmark, always in its throughput mode (-t).
type Tool struct{}

// Name returns "iozone".
func (Tool) Name() v1alpha1.BenchmarkTool { return v1alpha1.ToolIOzone }
