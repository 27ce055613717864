// Package custom runs any program of any image, and finds its metrics by regular expressions or JSON paths.
package custom

import "parallelfs.dev/operator/api/v1alpha1"

// Tool is a program that the spec names.
type Tool struct{}

// Name returns "custom".
func (Tool) Name() v1alpha1.BenchmarkTool { return v1alpha1.ToolCustom }
