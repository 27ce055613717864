// Package fio measures a filesystem with fio: on each client one fio, with as many jobs as the client has processes. The options are those
// of fio(1), as of version 3.33.
package fio

import "parallelfs.dev/operator/api/v1alpha1"

// Tool is the fio benchmark.
type Tool struct{}

// Name returns "fio".
func (Tool) Name() v1alpha1.BenchmarkTool { return v1alpha1.ToolFio }
