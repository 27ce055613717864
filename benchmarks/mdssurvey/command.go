package mdssurvey

import (
	"fmt"
	"strings"

	"parallelfs.dev/operator/api/v1alpha1"
	"parallelfs.dev/operator/benchmarks"
)

// Plan returns one mds-survey for each metadata target, because one script with several targets measures them one after the other
// (2.17.57). Its objects are only on the metadata targets, and the script removes them.
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
		Steps: []benchmarks.Step{{Command: benchmarks.Command{
			Launch: benchmarks.OnServers, Role: v1alpha1.RoleMetadata, ForEachTarget: true, Argv: []string{"mds-survey"},
			Env: []string{
				fmt.Sprintf("thrlo=%d", s.low), fmt.Sprintf("thrhi=%d", s.high), fmt.Sprintf("file_count=%d", s.files),
				fmt.Sprintf("dir_count=%d", s.directories), fmt.Sprintf("stripe_count=%d", options(spec).StripeCount),
				"tests_str=" + strings.Join(tests, " "), "targets=$(TARGETS)", "rslt_loc=$(DIRECTORY)",
			},
			Programs: []string{"lctl", "which", "gawk", "awk", "vmstat", "killall"},
		}}},
	}, nil
}
