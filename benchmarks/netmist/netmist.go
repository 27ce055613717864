// Package netmist measures a filesystem with netmist, the load generator of SPEC SFS 2014 and SPECstorage 2020, as the talk "Metadata
// Performance Evaluation Effort" at LUG 2014 used it. Only licensees have it, so users supply the image, and options beyond those of the
// talk are in args.
package netmist

import "parallelfs.dev/operator/api/v1alpha1"

// Tool is the netmist benchmark.
type Tool struct{}

// Name returns "netmist".
func (Tool) Name() v1alpha1.BenchmarkTool { return v1alpha1.ToolNetmist }
