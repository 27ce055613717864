package nodefacts

import (
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"parallelfs.dev/operator/internal/backend"
)

// NodeFacts returns the facts of nodes, sorted by name.
func NodeFacts(nodes []corev1.Node) []backend.Node {
	out := make([]backend.Node, len(nodes))
	for i := range nodes {
		out[i] = FactsOfNode(&nodes[i])
	}
	slices.SortFunc(out, func(a, b backend.Node) int { return strings.Compare(a.Name, b.Name) })
	return out
}

// outOfService reports whether a node has the taint that confirms that its machine is off.
func outOfService(n *corev1.Node) bool {
	return slices.ContainsFunc(n.Spec.Taints, func(t corev1.Taint) bool { return t.Key == corev1.TaintNodeOutOfService })
}

// FactsOfNode returns the facts of a node.
func FactsOfNode(n *corev1.Node) backend.Node {
	facts := backend.Node{
		Name: n.Name, Labels: n.Labels, Cordoned: n.Spec.Unschedulable, BootID: n.Status.NodeInfo.BootID,
		Taints: TaintsOfPeople(n.Spec.Taints), OutOfService: outOfService(n),
	}
	facts.InternalIPs = InternalIPs(n)
	facts.IP = AddressOf(facts.InternalIPs, AllFamilies())
	for _, c := range n.Status.Conditions {
		if c.Type == corev1.NodeReady {
			facts.Ready = c.Status == corev1.ConditionTrue
		}
	}
	return facts
}

// ownTaints is the prefix of the taints that Kubernetes itself sets on nodes, for example on one that is cordoned.
const ownTaints = "node.kubernetes.io/"

// TaintsOfPeople returns the taints of a node that a person has set, sorted: without those of Kubernetes itself, and without those that
// keep no pod away.
func TaintsOfPeople(taints []corev1.Taint) []corev1.Taint {
	var out []corev1.Taint
	for _, t := range taints {
		if !strings.HasPrefix(t.Key, ownTaints) && t.Effect != corev1.TaintEffectPreferNoSchedule {
			out = append(out, corev1.Taint{Key: t.Key, Value: t.Value, Effect: t.Effect})
		}
	}
	slices.SortFunc(out, func(a, b corev1.Taint) int {
		return strings.Compare(a.Key+"="+string(a.Effect), b.Key+"="+string(b.Effect))
	})
	return out
}
