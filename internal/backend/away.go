package backend

import (
	"cmp"
	"slices"

	"parallelfs.dev/operator/api/v1alpha1"
)

// Away says why the daemon of a component is not there whatever the filesystem says of it, because the filesystem was asked before the
// daemon stopped or was started again; empty when the filesystem's own answer counts. On a node that is not Ready nobody knows how its
// pods are: there the filesystem's answer is all there is.
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

// AskedSince is true when the filesystem's answer is about the daemon that runs in the pod now: the manager saw it run, and then asked.
// Both times are of the manager's own clock. While there is no answer it is true: what is unknown then is everything.
func (in Input) AskedSince(p Pod) bool {
	return in.State == nil || !p.Seen.IsZero() && in.State.Asked.After(p.Seen)
}
