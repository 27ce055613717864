package filesystem

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"parallelfs.dev/operator/api/v1alpha1"
	"parallelfs.dev/operator/controllers/conditions"
	"parallelfs.dev/operator/controllers/views"
	"parallelfs.dev/operator/internal/backend"
)

// asksToGiveUp reports whether a person has declared that the node of a FileSystemNode never comes back.
func asksToGiveUp(n *v1alpha1.FileSystemNode) bool {
	return n.Annotations[v1alpha1.AnnotationGiveUp] == n.Spec.Node
}

// lossWord returns the value with which a person accepts a loss. It is valid for exactly this loss.
func lossWord(n *v1alpha1.FileSystemNode, lost []string) string { return backend.Hash(n.UID, lost) }

// request is the result for a person's request to decommission a node.
type request struct {
	backend.Problem
	// may is true if the filesystem goes on without the node from now on. lost is what is lost with it.
	may  bool
	lost string
}

// circumstance is what the decision to decommission a node depends on, besides its FileSystemNode.
type circumstance struct {
	// ready is the node's condition Ready.
	ready bool
	// can is true for a filesystem that can go on without a node. without is the filesystem's answer for this node.
	can     bool
	without backend.Without
	// away is how long nothing of the node was online, as the manager has seen; it is negative while that is unknown.
	away time.Duration
}

// isAway reports whether the filesystem itself shows that nothing of the node is online.
func (c *circumstance) isAway(answered bool) bool {
	return answered && c.can && !c.ready && c.without.Never == "" && c.without.Here == ""
}

// maxLost bounds the text about a loss that a FileSystemNode records, in bytes.
const maxLost = 2048

// decideToGiveUp decides whether the filesystem goes on without a node that a person wants to decommission. The filesystem was queried
// after the request was read.
func decideToGiveUp(n *v1alpha1.FileSystemNode, c circumstance) request {
	no := func(reason, format, why string) request {
		return request{Problem: backend.Problem{Reason: reason, Message: fmt.Sprintf(format, n.Spec.Node, why)}}
	}
	refused := func(why string) request {
		return no(v1alpha1.ReasonGiveUpRefused, "node %s can't be decommissioned: %s", why)
	}
	waits := func(why string) request {
		return no(v1alpha1.ReasonGiveUpWaits, "node %s is not decommissioned yet: %s", why)
	}
	w := c.without
	// The text names all of the loss, although it may be long, because a person accepts exactly this loss.
	lost := v1alpha1.Cut(strings.Join(w.Lost, ", "), maxLost)
	switch word := n.Annotations[v1alpha1.AnnotationGiveUp]; {
	case word != n.Spec.Node:
		return refused(fmt.Sprintf("the annotation %s is %q; set it to the name of the node", v1alpha1.AnnotationGiveUp, v1alpha1.Cut(word, maxSaid)))
	case !c.can:
		return refused("a filesystem of this type can't go on without one of its nodes")
	case w.Never != "":
		return refused(w.Never)
	case c.ready:
		return refused("it is Ready; to take out a node that is there, empty its disks first (spec.remove of its StorageTargets)")
	case w.Here != "":
		return refused(w.Here + "; stop it, or wait until it is away, when this node never comes back")
	case w.Waits != "":
		return waits(w.Waits)
	case c.away < w.Settles:
		return waits(fmt.Sprintf("the operator trusts the filesystem's report once the node has been away for %s", w.Settles))
	case len(w.Lost) > 0 && n.Annotations[v1alpha1.AnnotationAcceptLoss] != lossWord(n, w.Lost):
		return request{Problem: backend.Problem{Reason: v1alpha1.ReasonLossNotAccepted, Message: fmt.Sprintf(
			"node %s is not decommissioned yet, because this would be lost: %s. To accept exactly this: kubectl -n %s annotate --overwrite filesystemnode %s %s=%s",
			n.Spec.Node, lost, n.Namespace, n.Name, v1alpha1.AnnotationAcceptLoss, lossWord(n, w.Lost))}}
	}
	return request{may: true, lost: lost}
}

// giveUpNodes decommissions nodes if a person has requested it and the filesystem can go on without them, and reverses it for nodes whose
// request was withdrawn. The result is recorded before anything follows from it. For every other requested node it records the reason why
// not.
func (p *pass) giveUpNodes(ctx context.Context) error {
	p.requests = map[string]backend.Problem{}
	survivor, can := p.backend.(backend.Survivor)
	asked, away := map[int]circumstance{}, map[types.UID]how{}
	for i := range p.in.FileSystemNodes {
		n := &p.in.FileSystemNodes[i]
		if _, word := n.Annotations[v1alpha1.AnnotationGiveUp]; !word || n.Spec.GivenUp != nil {
			continue
		}
		node, _ := p.in.Node(n.Spec.Node)
		c := circumstance{ready: node.Ready, can: can, away: -1}
		if can {
			c.without = survivor.Without(p.in, n)
		}
		if asksToGiveUp(n) && c.isAway(p.in.State != nil) {
			away[n.UID] = how{}
		}
		asked[i] = c
	}
	now := p.Order.Now()
	if p.in.State != nil {
		now = p.in.State.Asked
	}
	since := p.observations.see(observedGroup{client.ObjectKeyFromObject(p.fs), "given up"}, maps.All(away), now)
	nodes := slices.Clone(p.in.FileSystemNodes)
	var failed []error
	for i := range nodes {
		n := &nodes[i]
		c, is := asked[i]
		switch {
		case n.Spec.GivenUp != nil && !asksToGiveUp(n):
			failed = append(failed, p.writeGivenUp(ctx, n, nil))
		case n.Spec.GivenUp != nil:
			p.requests[n.Name] = p.givenUp(n)
		case is:
			if first, noticed := since[n.UID]; noticed {
				c.away = now.Sub(first)
			}
			r := decideToGiveUp(n, c)
			if r.may {
				now := metav1.NewTime(p.Clock.Now().UTC().Truncate(time.Second))
				if err := p.writeGivenUp(ctx, n, &v1alpha1.NodeGivenUp{Time: now, Lost: r.lost, Address: p.addressOf(n)}); err != nil {
					failed = append(failed, err)
					continue
				}
				r.Problem = p.givenUp(n)
			}
			p.requests[n.Name] = r.Problem
		}
	}
	p.in.FileSystemNodes = nodes
	return errors.Join(failed...)
}

// addressOf returns the address that the servers of a node had: that of the node or, if the node is no longer in the cluster, that of a
// server.
func (p *pass) addressOf(n *v1alpha1.FileSystemNode) string {
	if node, there := p.in.Node(n.Spec.Node); there {
		return node.IP
	}
	for i := range n.Status.Members {
		if host, _, err := net.SplitHostPort(n.Status.Members[i].Address); err == nil {
			return host
		}
	}
	return ""
}

// writeGivenUp records that a node was decommissioned, or with nil that it was not, and what happens to its servers. The write fails if the
// object has changed since it was read, because a person may have withdrawn the request, which changes no generation.
func (p *pass) writeGivenUp(ctx context.Context, n *v1alpha1.FileSystemNode, to *v1alpha1.NodeGivenUp) error {
	next := n.DeepCopy()
	next.Spec.GivenUp = to
	backend.Retire(next, to != nil)
	if err := p.Client.Patch(ctx, next, client.MergeFromWithOptions(n, client.MergeFromWithOptimisticLock{})); err != nil {
		return fmt.Errorf("write in FileSystemNode %s whether its node was decommissioned: %w", n.Name, err)
	}
	*n = *next
	if to != nil {
		note := fmt.Sprintf("FileSystem %s goes on without node %s. What is on its disks is left alone", p.fs.Name, n.Spec.Node)
		if to.Lost != "" {
			note += ". Lost, as was accepted: " + to.Lost
		}
		p.Recorder.Eventf(n, p.fs, corev1.EventTypeWarning, v1alpha1.ReasonNodeGivenUp, "GiveUp", "%s", v1alpha1.Cut(note, conditions.MaxNote))
	}
	return nil
}

// givenUp describes the result for a decommissioned node. If the node is back, the text names its disks, which are left alone.
func (p *pass) givenUp(n *v1alpha1.FileSystemNode) backend.Problem {
	gone := n.Spec.GivenUp
	message := fmt.Sprintf("the filesystem goes on without node %s since %s", n.Spec.Node, gone.Time.UTC().Format(time.RFC3339))
	if gone.Lost != "" {
		message += "; lost, as was accepted: " + gone.Lost
	}
	if survivor, can := p.backend.(backend.Survivor); can {
		if here := survivor.Without(p.in, n).Here; here != "" {
			message += fmt.Sprintf("; but %s, so the filesystem keeps its record: stop it there", here)
		}
	}
	if node, there := p.in.Node(n.Spec.Node); there && node.Ready {
		message += "; it is back, and none of its servers is started"
		if disks := p.carried(n.Spec.Node); len(disks) > 0 {
			message += ". Its disks are left as they are, and still hold: " + backend.List(disks)
		}
		message += fmt.Sprintf(". To use it again, with what is on its disks: kubectl -n %s annotate filesystemnode %s %s-",
			n.Namespace, n.Name, v1alpha1.AnnotationGiveUp)
	}
	return backend.Problem{Reason: v1alpha1.ReasonNodeGivenUp, Message: message}
}

// carried returns the disks of a node that carry targets of this FileSystem, each with its former StorageTarget.
func (p *pass) carried(node string) []string {
	var out []string
	for _, d := range p.in.Inventories[node].BlockDevices {
		if rest, mine := strings.CutPrefix(d.Target, p.fs.Namespace+"/"+p.fs.Name+"-"); mine {
			name := d.KernelName
			if len(d.IDs) > 0 {
				name = d.IDs[0]
			}
			out = append(out, fmt.Sprintf("%s (%s-%s)", name, p.fs.Name, rest))
		}
	}
	return out
}

// leaveOut removes the decommissioned nodes from the input, so that nothing waits for them.
func (p *pass) leaveOut(context.Context) error {
	p.in = p.in.Remaining()
	return nil
}

// nameAway adds a problem for nodes with servers that are away, with what a person can do.
func (p *pass) nameAway(context.Context) error {
	if !p.observed {
		return nil
	}
	offline := map[string]bool{}
	for i := range p.observation.Servers {
		if s := &p.observation.Servers[i]; !s.Online {
			offline[s.Node] = true
		}
	}
	survivor, can := p.backend.(backend.Survivor)
	var away, asked []string
	var command string
	for i := range p.in.FileSystemNodes {
		n := &p.in.FileSystemNodes[i]
		node, there := p.in.Node(n.Spec.Node)
		if !offline[n.Spec.Node] || n.Spec.GivenUp != nil || there && node.Ready || slices.Contains(backend.Maintained(p.fs), n.Spec.Node) {
			continue
		}
		why := "not Ready"
		if !there {
			why = "not in the cluster"
		}
		away = append(away, fmt.Sprintf("%s (%s)", n.Spec.Node, why))
		if request, is := p.requests[n.Name]; is {
			asked = append(asked, request.Message)
		} else if command == "" && can && survivor.Without(p.in, n).Never == "" {
			command = fmt.Sprintf("; to decommission one that never comes back, such as %s: kubectl -n %s annotate filesystemnode %s %s=%s",
				n.Spec.Node, n.Namespace, n.Name, v1alpha1.AnnotationGiveUp, n.Spec.Node)
		}
	}
	if len(away) == 0 {
		return nil
	}
	nodes := v1alpha1.Count(len(away), "node is", "nodes are")
	message := fmt.Sprintf("%s away: %s; wait until they are back%s", nodes, backend.List(away), command)
	if len(asked) > 0 {
		message += "; " + backend.List(asked)
	}
	p.observation.Problems = append(p.observation.Problems, backend.Problem{Reason: v1alpha1.ReasonNodesAway, Message: message})
	return nil
}

// showRequests adds the results of people's requests about nodes to a view.
func (p *pass) showRequests(view views.FileSystem) {
	for name, request := range p.requests {
		node := view.Nodes[name]
		node.GivingUp = &request
		view.Nodes[name] = node
	}
}
