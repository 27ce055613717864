package backend

import (
	"cmp"
	"slices"

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
