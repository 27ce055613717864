package obdfiltersurvey

import (
	"fmt"
	"strings"

	"parallelfs.dev/operator/api/v1alpha1"
	"parallelfs.dev/operator/benchmarks"
)

// Plan returns one obdfilter-survey on each node with storage servers. It creates its own objects on every target there, and removes them.
// Their total size depends on the number of targets, which is unknown here.
func (Tool) Plan(spec *v1alpha1.BenchmarkRunSpec, point benchmarks.Point) (benchmarks.Plan, error) {
	s, err := check(spec, point)
	if err != nil {
		return benchmarks.Plan{}, err
	}
	tests := make([]string, 0, len(s.tests))
	for _, test := range s.tests {
		tests = append(tests, string(test))
	}
	return benchmarks.Plan{
		Demand: benchmarks.Demand{EachTarget: s.size << 20},
		Steps: []benchmarks.Step{{Command: benchmarks.Command{
			Launch: benchmarks.OnServers, Role: v1alpha1.RoleStorage, Argv: []string{"obdfilter-survey"},
			Env: []string{
				"case=disk", fmt.Sprintf("thrlo=%d", s.low), fmt.Sprintf("thrhi=%d", s.high),
				fmt.Sprintf("nobjlo=%d", s.objectsLow), fmt.Sprintf("nobjhi=%d", s.objectsHigh), fmt.Sprintf("size=%d", s.size),
				fmt.Sprintf("rszlo=%d", s.record), fmt.Sprintf("rszhi=%d", s.record),
				"tests_str=" + strings.Join(tests, " "), "targets=$(TARGETS)", "rslt_loc=$(DIRECTORY)",
			},
			Programs: []string{"lctl", "which", "gawk", "awk", "vmstat", "killall"},
		}}},
	}, nil
}
