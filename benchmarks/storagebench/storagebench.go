// Package storagebench measures the storage targets of BeeGFS with the benchmark of its own storage servers, without any client: beegfs-ctl
// --storagebench of version 7 (ModeStorageBench.cpp, 7.4.6), beegfs benchmark of version 8 (ctl/internal/cmd/benchmark, 8.3.1).
package storagebench

import "parallelfs.dev/operator/api/v1alpha1"

// Tool is the benchmark of BeeGFS's storage servers.
type Tool struct{}

// Name returns "storagebench".
func (Tool) Name() v1alpha1.BenchmarkTool { return v1alpha1.ToolStoragebench }
