// Package mdssurvey measures the metadata servers of Lustre on their own nodes, without clients, by mds-survey of lustre-iokit. The script
// drives the mdd layer through obdecho with a doubling number of threads.
package mdssurvey

import "parallelfs.dev/operator/api/v1alpha1"

// Tool is the benchmark mds-survey.
type Tool struct{}

// Name returns "mdsSurvey".
func (Tool) Name() v1alpha1.BenchmarkTool { return v1alpha1.ToolMDSSurvey }
