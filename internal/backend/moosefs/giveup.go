package moosefs

import (
	"fmt"

	"parallelfs.dev/operator/api/v1alpha1"
	"parallelfs.dev/operator/internal/backend"
)

// Without describes the chunks of a node that never comes back. MooseFS makes new copies of those that have copies elsewhere, and counts
// the others.
func (Backend) Without(in backend.Input, node *v1alpha1.FileSystemNode) backend.Without {
	in = in.Indexed()
	name, storing := node.Spec.Node, backend.Storing(node)
	switch {
	case in.FileSystem.Status.Metadata != nil && in.FileSystem.Status.Metadata.Node == name:
		return backend.Without{Never: "it has the metadata of the MooseFS master, without which no file can be found"}
	case in.State == nil:
		return backend.Without{Waits: "the master does not answer: " + in.StateError}
	}
	out := backend.Without{Here: backend.StillThere(in, name, func(s backend.Server) string {
		if s.Role == v1alpha1.RoleMetadataBackup {
			return componentMetalogger
		}
		return componentChunkserver
	})}
	if !storing {
		return out
	}
	data := in.State.Data
	out.Settles, out.Waits = settle, backend.TooFewWithout(in, name)
	if out.Waits == "" && !data.Known {
		out.Waits = "MooseFS has not counted yet how many copies its data has"
	}
	if data.Missing > 0 {
		out.Lost = append(out.Lost, fmt.Sprintf("%s no copy left (on the master's node, mfscli -H localhost -P %d -SMF lists their files)",
			v1alpha1.Count(data.Missing, "chunk has", "chunks have"), portsOf(in.FileSystem).clients()))
	}
	if data.Endangered+data.Undergoal > 0 {
		out.Lost = append(out.Lost, fmt.Sprintf("%d chunks have one copy left, and %d fewer than they should; MooseFS makes new ones by itself, so wait while these "+
			"numbers fall", data.Endangered, data.Undergoal))
	}
	return out
}
