// Package obdfiltersurvey measures the object storage targets of Lustre on their own nodes, without clients, by obdfilter-survey of
// lustre-iokit. The script drives them through obdecho (case=disk) with doubling numbers of objects and threads.
package obdfiltersurvey

import "parallelfs.dev/operator/api/v1alpha1"

// Tool is the benchmark obdfilter-survey.
type Tool struct{}

// Name returns "obdfilterSurvey".
func (Tool) Name() v1alpha1.BenchmarkTool { return v1alpha1.ToolOBDFilterSurvey }
