package beegfs

import (
	"fmt"
	"slices"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"parallelfs.dev/operator/api/v1alpha1"
	"parallelfs.dev/operator/internal/backend"
)

// Absence returns the effect of a node's absence: all data of its servers needs a buddy on another node that is online and in sync. BeeGFS
// needs no maintenance mode: it continues with the buddies, and copies the changes when the node is back.
func (Backend) Absence(in backend.Input, seen backend.Observation, node string) backend.Absence {
	in = in.Indexed()
	var costs []string
	say := func(why string) {
		if why != "" && !slices.Contains(costs, why) {
			costs = append(costs, why)
		}
	}
	out := backend.Absence{Together: backend.Most}
	for i := range in.Pods {
		p := &in.Pods[i]
		if p.Node != node || !slices.Contains(Backend{}.Order(), p.Component) {
			continue
		}
		say(seen.Sole[p.Name.Name])
		out.Together = min(out.Together, seen.Together[p.Name.Name])
	}
	for _, role := range []v1alpha1.Role{v1alpha1.RoleStorage, v1alpha1.RoleMetadata} {
		own := idsOn(in, node, role)
		for _, id := range own {
			if m := in.MirrorWith(role, id); m != nil && slices.Contains(own, m.Primary) && slices.Contains(own, m.Secondary) {
				say(fmt.Sprintf("both sides of buddy group %d are on it", m.ID))
			}
		}
	}
	if out.Costs = backend.List(costs); out.Costs != "" {
		out.Together = 1
	}
	out.Together = max(1, out.Together)
	return out
}

// TellMaintenance returns nothing: see Absence.
func (Backend) TellMaintenance(backend.Input) ([]client.Object, error) { return nil, nil }

// idsOn returns the numbers of the storage targets, or of the metadata servers, of a node.
func idsOn(in backend.Input, node string, role v1alpha1.Role) []int32 {
	i := slices.IndexFunc(in.FileSystemNodes, func(n v1alpha1.FileSystemNode) bool { return n.Spec.Node == node })
	if i < 0 {
		return nil
	}
	var out []int32
	for _, g := range backend.GivenOn(in.FileSystemNodes[i : i+1]) {
		switch {
		case g.Role != role || g.Retired:
		case role == v1alpha1.RoleMetadata:
			out = append(out, g.ID)
		default:
			for j := range g.Targets {
				out = append(out, g.Targets[j].ID)
			}
		}
	}
	return out
}
