// Package mdssurvey measures the metadata servers of Lustre on their own nodes, without clients, by mds-survey of lustre-iokit: a script
// that drives the layer mdd by obdecho, with a number of threads that doubles.
package mdssurvey

import "parallelfs.dev/operator/api/v1alpha1"

// Tool is the benchmark mds-survey.
type Tool struct{}

// Name returns "mdsSurvey".
func (Tool) Name() v1alpha1.BenchmarkTool { return v1alpha1.ToolMDSSurvey }
