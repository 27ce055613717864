package backend

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"parallelfs.dev/operator/api/v1alpha1"
)

// Away returns why the daemon of a component counts as away, although the filesystem may still list it. The filesystem's answer may be
// older than the stop or restart of the daemon. It is empty if the filesystem's answer counts. On a node that is not Ready the state of the
// pods is unknown, so only the filesystem's answer counts.
func (in Input) Away(component, pool, slot, node string) string {
	if n, there := in.Node(node); !there || !n.Ready {
		return ""
	}
	why := "there is no pod of it on the node"
	if slices.Contains(in.Refused, Refused{Component: component, StoragePool: pool, Slot: slot}) {
		why += ": the API server refuses it (" + v1alpha1.ReasonPodsRefused + ")"
	}
	for p := range in.PodsOn(component, pool, node) {
		if p.Slot != slot {
			continue
		}
		if why = in.awayPod(*p); why == "" {
			return ""
		}
	}
	return why
}

func (in Input) awayPod(p Pod) string {
	switch {
	case p.Terminating:
		return "it is being stopped"
	case !p.Ready:
		return cmp.Or(p.Message, "it is starting")
	case !in.AskedSince(p):
		return "it has started, and the filesystem was not asked since"
	default:
		return ""
	}
}

// AskedSince reports whether the filesystem's answer is about the daemon that now runs in the pod: the manager saw the daemon run, and sent
// the question afterwards. Both times are of the manager's own clock. Without an answer it returns true, because then everything is
// unknown.
func (in Input) AskedSince(p Pod) bool {
	return in.State == nil || !p.Seen.IsZero() && in.State.Asked.After(p.Seen)
}

// Unusable returns why the filesystem can't use any address of a node, and what to do, in words that follow "node n1 ". It is empty if the
// filesystem can use one, or if the kubelet has not reported any InternalIP yet.
func Unusable(in Input, families []corev1.IPFamily, name string) string {
	i, ok := in.find().nodes[name]
	if !ok || in.Nodes[i].IP != "" || len(in.Nodes[i].InternalIPs) == 0 {
		return ""
	}
	words := make([]string, len(families))
	for i, family := range families {
		words[i] = string(family)
	}
	return fmt.Sprintf("has no %s InternalIP, only %s, and %s %s has no other addresses; give the node one (kubelet --node-ip)",
		strings.Join(words, " or "), List(in.Nodes[i].InternalIPs), in.FileSystem.Spec.Type, Version(in.FileSystem))
}

// OnRecord reports whether the filesystem has used the node already.
func (in Input) OnRecord(node string) bool {
	return slices.ContainsFunc(in.FileSystemNodes, func(n v1alpha1.FileSystemNode) bool { return n.Spec.Node == node }) ||
		in.FileSystem.Status.Metadata != nil && in.FileSystem.Status.Metadata.Node == node
}

// Gone returns why a daemon's node can't be reached, in words that follow "node n1 ".
func (in Input) Gone(name string) string {
	i, ok := in.find().nodes[name]
	switch {
	case !ok:
		return "is not in the cluster"
	case len(in.Nodes[i].InternalIPs) > 0:
		return "has no address that the filesystem can use (" + List(in.Nodes[i].InternalIPs) + ")"
	default:
		return "has no InternalIP"
	}
}
