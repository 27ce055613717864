package backend

import (
	"slices"
	"strings"

	"parallelfs.dev/operator/api/v1alpha1"
)

// Matching are the nodes that match a selector, in their order.
func Matching(nodes []Node, selector v1alpha1.NodeSelector) []Node {
	var out []Node
	for i := range nodes {
		if matches(&nodes[i], selector) {
			out = append(out, nodes[i])
		}
	}
	return out
}

func matches(n *Node, selector v1alpha1.NodeSelector) bool {
	for key, value := range selector {
		if have, ok := n.Labels[key]; !ok || have != value {
			return false
		}
	}
	return true
}

// SelectorText is a selector as kubectl takes it.
func SelectorText(selector v1alpha1.NodeSelector) string {
	var parts []string
	for _, key := range SortedKeys(selector) {
		parts = append(parts, key+"="+selector[key])
	}
	return strings.Join(parts, ",")
}

// NodeNames lists nodes in a sentence, as List does.
func NodeNames(nodes []Node) string {
	names := make([]string, len(nodes))
	for i, n := range nodes {
		names[i] = n.Name
	}
	return List(names)
}

// HasTargets is true when a role has targets on a node that its selector matches: where devices are named, only the nodes that
// they are named of do.
func HasTargets(targets v1alpha1.TargetsSpec, node string) bool {
	return len(targets.Devices) == 0 || slices.ContainsFunc(targets.Devices, func(d v1alpha1.DeviceReference) bool { return d.Node == node })
}
