// Package fio measures a filesystem with one fio on each client, which has as many jobs as the client has processes. The options are those
// of fio(1) in version 3.33.
package fio

import "parallelfs.dev/operator/api/v1alpha1"

// Tool is the fio benchmark.
type Tool struct{}

// Name returns "fio".
func (Tool) Name() v1alpha1.BenchmarkTool { return v1alpha1.ToolFio }
