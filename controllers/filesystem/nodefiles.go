package filesystem

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"parallelfs.dev/operator/api/v1alpha1"
	"parallelfs.dev/operator/internal/backend"
)

// silence is how long an agent may take to write the node file before a person is asked to look. A running agent needs a moment. Where a
// node has just got its label, it takes as long as a pod needs to start.
const silence = time.Minute

// fileSystemNodes returns those of a FileSystem, and those of all others by the uid of their FileSystem, each sorted by node. They are the
// cache's own and read-only: code that changes one copies it first. They include objects that are being deleted and that a finalizer keeps,
// because their records are still valid.
func (r *Reconciler) fileSystemNodes(ctx context.Context, fs *v1alpha1.FileSystem) (
	own []v1alpha1.FileSystemNode, others map[types.UID][]v1alpha1.FileSystemNode, err error,
) {
	all, err := r.allRecords.get(&r.recordChanges, func() (byOwner[v1alpha1.FileSystemNode], error) {
		// Labels do not select them, because an object that has lost its labels is still a record.
		var list v1alpha1.FileSystemNodeList
		if err := r.Client.List(ctx, &list, client.UnsafeDisableDeepCopy); err != nil {
			return byOwner[v1alpha1.FileSystemNode]{}, fmt.Errorf("list FileSystemNodes: %w", err)
		}
		return sideBySide(list.Items, func(n *v1alpha1.FileSystemNode) place {
			return place{owner{n.Namespace, n.Spec.FileSystem.UID}, n.Spec.Node}
		}, func(n *v1alpha1.FileSystemNode) string { return n.Name }), nil
	})
	if err != nil {
		return nil, nil, err
	}
	own, _ = all.split(fs)
	others = make(map[types.UID][]v1alpha1.FileSystemNode, len(all.of))
	for of, s := range all.of {
		if of.uid != string(fs.UID) {
			others[types.UID(of.uid)] = all.items[s.from:s.to:s.to]
		}
	}
	return own, others, nil
}

// confirmed reports whether the agent of the node has written the present spec of the object.
func confirmed(n *v1alpha1.FileSystemNode) bool {
	return n.Status.Agent != nil && n.Status.Agent.ObservedGeneration == n.Generation
}

// configuredNodes returns the nodes whose agents have written the current configuration of their servers. It excludes a node whose object
// this pass has changed, whatever its agent has written.
func configuredNodes(nodes []v1alpha1.FileSystemNode) map[string]bool {
	out := map[string]bool{}
	for i := range nodes {
		out[nodes[i].Spec.Node] = confirmed(&nodes[i])
	}
	return out
}

// unconfirmedNodes names the nodes whose agents do not write the configuration of their servers, nil if there are none. A node that is not
// Ready has another problem.
func (r *Reconciler) unconfirmedNodes(ctx context.Context, in backend.Input) ([]backend.Problem, error) {
	as := map[types.UID]how{}
	for i := range in.FileSystemNodes {
		n := &in.FileSystemNodes[i]
		if node, _ := in.Node(n.Spec.Node); node.Ready && len(n.Spec.Members) > 0 && !confirmed(n) {
			as[n.UID] = how{} // an empty state: a later generation does not restart the time
		}
	}
	now := r.Order.Now()
	since := r.observations.see(observedGroup{client.ObjectKeyFromObject(in.FileSystem), "told"}, maps.All(as), now)
	var silent []string
	var why string
	for i := range in.FileSystemNodes {
		n := &in.FileSystemNodes[i]
		if first, waits := since[n.UID]; waits && !first.Add(silence).After(now) {
			silent = append(silent, n.Spec.Node)
			if agent := n.Status.Agent; agent != nil && agent.Message != "" {
				why = cmp.Or(why, fmt.Sprintf("; the agent of node %s reports: %s", n.Spec.Node, backend.Shorten(agent.Message)))
			}
		}
	}
	if len(silent) == 0 {
		return nil, nil
	}
	refused, err := r.agentsRefused(ctx)
	if err != nil || refused != "" {
		return []backend.Problem{{Reason: v1alpha1.ReasonPodsRefused, Message: fmt.Sprintf(
			"%s. So no agent configures the servers on %s", refused, backend.List(silent))}}, err
	}
	return []backend.Problem{{Reason: v1alpha1.ReasonServersNotTold, Message: fmt.Sprintf(
		"no agent configures the servers on %s. Those that run go on; none is started or restarted there. "+
			"Label each node (kubectl label node %s %s=), and look at the log of its agent%s",
		backend.List(silent), silent[0], v1alpha1.LabelAgent, why)}}, nil
}
