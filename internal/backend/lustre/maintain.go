package lustre

import (
	"fmt"
	"slices"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"parallelfs.dev/operator/api/v1alpha1"
	"parallelfs.dev/operator/internal/backend"
	"parallelfs.dev/operator/internal/backend/shared/assign"
	"parallelfs.dev/operator/internal/plan"
)

// Absence returns the effect of a node's absence: programs wait for the data on its targets, which has no other copy. Clients wait by
// themselves, and continue when the targets have recovered, so Lustre needs no maintenance mode. Targets that the other one of two nodes
// can serve are moved there first.
func (Backend) Absence(in backend.Input, seen backend.Observation, node string) backend.Absence {
	in = in.Indexed()
	out := backend.Absence{Together: backend.Most, Waits: movesFrom(in, node)}
	for i := range in.Pods {
		p := &in.Pods[i]
		if p.Node != node || !slices.Contains(Backend{}.Order(), p.Component) {
			continue
		}
		out.Together = 1
		why := seen.Sole[p.Name.Name]
		if why != "" && p.Component == componentOST {
			why = stays(in, node, p.StoragePool, why)
		}
		if why != "" {
			out.Costs = why
		}
	}
	return out
}

// stays returns why programs wait for a target of a pool while a node is away, empty when the other one of its nodes can serve each target.
// A target without a configuration is not in use yet.
func stays(in backend.Input, node, pool, otherwise string) string {
	for i := range in.Targets {
		t := &in.Targets[i]
		if t.Spec.Role != v1alpha1.RoleStorage || t.Spec.StoragePool != pool || plan.HolderOf(t).Node != node || !assign.Finished(t) {
			continue
		}
		if !plan.IsOfPair(t) {
			return otherwise
		}
		if why := unfit(in, t, plan.OtherOf(t, node)); why != "" {
			return fmt.Sprintf("%s can't be moved: %s", t.Name, why)
		}
	}
	return ""
}

// movesFrom lists the targets that are moving away from a node before its maintenance, in words that follow "when "; empty when there is
// none.
func movesFrom(in backend.Input, node string) string {
	if !leaves(in, node) || !slices.Contains(backend.Maintained(in.FileSystem), node) {
		return ""
	}
	var waits []string
	numbers := numbersOf(in)
	for i := range in.Targets {
		t := &in.Targets[i]
		if !plan.IsOfPair(t) || !assign.Finished(t) || t.Spec.Node != node && t.Spec.SecondNode != node {
			continue
		}
		other := plan.OtherOf(t, node)
		if serves(in, t, other, numbers[t.Name]) {
			continue
		}
		why := unfit(in, t, other)
		if holder := plan.HolderOf(t); why == "" {
			why = holder.Message
		}
		if why != "" {
			why = " (now: " + why + ")"
		}
		waits = append(waits, fmt.Sprintf("node %s serves %s%s", other, t.Name, why))
	}
	if len(waits) == 0 {
		return ""
	}
	return backend.List(waits)
}

// TellMaintenance returns nothing: see Absence.
func (Backend) TellMaintenance(backend.Input) ([]client.Object, error) { return nil, nil }
