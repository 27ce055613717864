package storagebench

import (
	"fmt"

	"parallelfs.dev/operator/api/v1alpha1"
	"parallelfs.dev/operator/benchmarks"
)

// verbs maps operations to the backend's verbs.
var verbs = map[v1alpha1.StoragebenchOperation]string{v1alpha1.StoragebenchWrite: "write", v1alpha1.StoragebenchRead: "read"}

// Plan returns a call for each operation. The total amount written depends on the number of targets, which only the backend has: it refuses
// a target without enough free space.
func (Tool) Plan(spec *v1alpha1.BenchmarkRunSpec, point benchmarks.Point) (benchmarks.Plan, error) {
	s, err := check(spec, point)
	if err != nil {
		return benchmarks.Plan{}, err
	}
	o := options(spec)
	command := benchmarks.Command{Launch: benchmarks.OnManagement}
	for _, operation := range o.Operations {
		command.Calls = append(command.Calls, benchmarks.Call{Verb: verbs[operation], Arguments: map[string]string{
			"blockSize": fmt.Sprint(s.block), "fileSize": fmt.Sprint(s.file), "threads": fmt.Sprint(s.threads), "directIO": fmt.Sprint(o.DirectIO),
		}})
	}
	return benchmarks.Plan{Steps: []benchmarks.Step{{Command: command}}}, nil
}
