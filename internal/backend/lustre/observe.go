package lustre

import (
	"cmp"
	"fmt"
	"slices"

	"parallelfs.dev/operator/api/v1alpha1"
	"parallelfs.dev/operator/internal/backend"
	"parallelfs.dev/operator/internal/backend/lustre/cli"
)

// StateOf puts together what the nodes say that they serve, by name, in the form that all backends have: the number of a target is one more
// than its index. An error says that two nodes serve one target, which destroys it: nothing may be started or stopped before a person has
// looked.
func StateOf(servers map[string]cli.Server) (backend.State, error) {
	var state backend.State
	on := map[cli.Target]string{}
	for _, node := range backend.SortedKeys(servers) {
		for target, serving := range servers[node].Targets {
			if target.Kind == cli.MGT {
				continue
			}
			if other, twice := on[target]; twice {
				return backend.State{}, fmt.Errorf("nodes %s and %s both have %s mounted, which destroys it; stop one of the two nodes at once", other, node, target)
			}
			on[target] = node
			state.Targets = append(state.Targets, targetState(target, serving))
		}
		if kernel := servers[node].Version; state.Version == "" || backend.CompareVersions(kernel, state.Version) < 0 {
			state.Version = kernel
		}
	}
	slices.SortFunc(state.Targets, func(x, y backend.Target) int {
		return cmp.Or(cmp.Compare(x.Role, y.Role), cmp.Compare(x.ID, y.ID))
	})
	return state, nil
}

// targetState is one target.
func targetState(target cli.Target, serving cli.Serving) backend.Target {
	out := backend.Target{
		Role: v1alpha1.RoleStorage, ID: target.Index + 1, Contacted: true,
		UsedBytes: serving.UsedBytes, CapacityBytes: serving.CapacityBytes, Status: serving.Recovery.Status,
	}
	if target.Kind == cli.MDT {
		out.Role = v1alpha1.RoleMetadata
	}
	switch {
	case !serving.Up:
		out.Status = "it is being started or stopped"
	case !serving.Healthy:
		out.Status = "NOT HEALTHY"
	case serving.Recovery.Over():
		out.Online = true
	}
	return out
}

// Recovering are the targets that still wait for their clients, or for each other, each with why, in the order of their names: no other one
// may be stopped meanwhile.
func Recovering(servers map[string]cli.Server) []string {
	var out []string
	for _, node := range backend.SortedKeys(servers) {
		for target, serving := range servers[node].Targets {
			r := serving.Recovery
			if target.Kind == cli.MGT || r.Over() {
				continue
			}
			why := r.Status
			switch {
			case r.NotReady != "":
				why += ", for the MDTs " + r.NotReady
			case r.Expected > 0:
				why += fmt.Sprintf(", %d of %d clients are back", r.Clients, r.Expected)
			}
			out = append(out, fmt.Sprintf("%s on node %s (%s)", target, node, why))
		}
	}
	slices.Sort(out)
	return out
}
