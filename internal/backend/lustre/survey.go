package lustre

import (
	"parallelfs.dev/operator/api/v1alpha1"
	"parallelfs.dev/operator/internal/backend"
	"parallelfs.dev/operator/internal/plan"
)

// MeasuresServers is true for the two surveys of lustre-iokit, which come with Lustre's own packages.
func (Backend) MeasuresServers(tool v1alpha1.BenchmarkTool) bool {
	return tool == v1alpha1.ToolMDSSurvey || tool == v1alpha1.ToolOBDFilterSurvey
}

// MeasuredTargets returns the MDTs or the OSTs of each node by their names. A drained target gets no more data.
func (Backend) MeasuredTargets(in backend.Input, role v1alpha1.Role) map[string][]string {
	names := map[string][]string{}
	for _, g := range in.Given() {
		if g.Role != role || g.Retired || g.GivenUp {
			continue
		}
		for _, t := range g.Targets {
			if t.Drained == nil && t.TakenOut == nil && t.ID != 0 {
				node := g.Node
				if disk := in.TargetNamed(t.Name); disk != nil {
					node = plan.HolderOf(disk).Node
				}
				names[node] = append(names[node], TargetOf(own(in.FileSystem).FSName, role, t.ID).String())
			}
		}
	}
	return names
}
