package lustre

import (
	"parallelfs.dev/operator/api/v1alpha1"
	"parallelfs.dev/operator/internal/backend"
)

// MeasuresServers is true for the two surveys of lustre-iokit, which come with Lustre's own packages.
func (Backend) MeasuresServers(tool v1alpha1.BenchmarkTool) bool {
	return tool == v1alpha1.ToolMDSSurvey || tool == v1alpha1.ToolOBDFilterSurvey
}

// MeasuredTargets are the MDTs or the OSTs of each node by their names. One that was drained takes no more data.
func (Backend) MeasuredTargets(in backend.Input, role v1alpha1.Role) map[string][]string {
	names := map[string][]string{}
	for _, g := range in.Given() {
		if g.Role != role || g.Retired || g.GivenUp {
			continue
		}
		for _, t := range g.Targets {
			if t.Drained == nil && t.TakenOut == nil && t.ID != 0 {
				names[g.Node] = append(names[g.Node], TargetOf(own(in.FileSystem).FSName, role, t.ID).String())
			}
		}
	}
	return names
}
