package beegfs

import (
	"fmt"
	"time"

	"parallelfs.dev/operator/api/v1alpha1"
	"parallelfs.dev/operator/internal/backend"
)

// awayBefore is how long a server must have been away before it is given up: BeeGFS lists one that has stopped as online for up to three
// minutes.
const awayBefore = 5 * time.Minute

// Without returns what is lost with a node that never comes back: all data of its targets. BeeGFS has a second copy only in buddy groups,
// and no side of a group can be taken out.
func (Backend) Without(in backend.Input, node *v1alpha1.FileSystemNode) backend.Without {
	in = in.Indexed()
	name := node.Spec.Node
	if record := in.FileSystem.Status.Metadata; record != nil && record.Node == name {
		return backend.Without{Never: "it has the management service, without whose store BeeGFS forgets ids, pools and mirrors"}
	}
	out := backend.Without{Settles: awayBefore}
	for _, g := range backend.GivenOn([]v1alpha1.FileSystemNode{*node}) {
		if g.Retired {
			continue
		}
		if g.Role == v1alpha1.RoleMetadata {
			return backend.Without{Never: fmt.Sprintf("it has metadata server %s (%d), and BeeGFS can't go on without a metadata server that has held metadata: "+
				"bring its disk back in another machine of this name, or restore it from its buddy or a backup by BeeGFS's own means", g.Name, g.ID)}
		}
		if in.State == nil {
			continue
		}
		if s := serverOf(in, g.Role, g.ID); s != nil && s.Online {
			out.Here = fmt.Sprintf("BeeGFS lists its storage server %d as online", g.ID)
		}
		for i := range g.Targets {
			t := &g.Targets[i]
			said := listed(in, v1alpha1.RoleStorage, t.ID)
			switch {
			case mirrorOf(in, v1alpha1.RoleStorage, t.ID) != 0:
				return backend.Without{Never: fmt.Sprintf("its target %d is one side of buddy group %d, and BeeGFS can't take a target out of a buddy group: "+
					"its buddy has the data, and the files stay readable. Put the node's disks into another machine of this name: BeeGFS brings them up to date. "+
					"Where a disk is lost, another one of this node can replace it (docs/disks.md)",
					t.ID, mirrorOf(in, v1alpha1.RoleStorage, t.ID))}
			case said != nil && said.Online:
				out.Here = fmt.Sprintf("BeeGFS lists its target %d as online", t.ID)
			case t.Drained == nil && (said != nil || t.Initialized != nil):
				out.Lost = append(out.Lost, fmt.Sprintf("all that is on target %d (%s) of pool %s, and the files of which it had a part", t.ID, t.Name, g.StoragePool))
			}
		}
	}
	if in.State == nil {
		out.Waits = "the management service does not answer: " + in.StateError
	} else {
		out.Waits = backend.TooFewWithout(in, name)
	}
	return out
}
