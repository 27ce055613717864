// Package obdfiltersurvey measures the object storage targets of Lustre on their own nodes, without clients, by obdfilter-survey of
// lustre-iokit: a script that drives them by obdecho (case=disk), with numbers of objects and of threads that double.
package obdfiltersurvey

import "parallelfs.dev/operator/api/v1alpha1"

// Tool is the benchmark obdfilter-survey.
type Tool struct{}

// Name returns "obdfilterSurvey".
func (Tool) Name() v1alpha1.BenchmarkTool { return v1alpha1.ToolOBDFilterSurvey }
