package backend

import (
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"parallelfs.dev/operator/api/v1alpha1"
)

// Matching returns the nodes that match a selector, in their order; none for an empty selector.
func Matching(nodes []Node, selector v1alpha1.NodeSelector) []Node {
	if len(selector) == 0 {
		return nil
	}
	return Filter(nodes, func(n *Node) bool { return matches(n, selector) })
}

// NodesOf returns the nodes of a role, in their order: those that match its selector or, if it has none, those of spec.nodes.
func NodesOf(fs *v1alpha1.FileSystem, nodes []Node, selector v1alpha1.NodeSelector) []Node {
	asked := fs.Spec.Nodes
	switch {
	case len(selector) > 0:
		return Matching(nodes, selector)
	case asked == nil:
		return nil
	case asked.Selector == nil:
		return Filter(nodes, func(n *Node) bool { return slices.Contains(asked.Names, n.Name) })
	}
	by, err := metav1.LabelSelectorAsSelector(asked.Selector)
	if err != nil {
		return nil // RefuseNodes reports the error
	}
	return Filter(nodes, func(n *Node) bool { return by.Matches(labels.Set(n.Labels)) })
}

// ClientNodes returns the nodes that should mount the filesystem, in their order.
func ClientNodes(fs *v1alpha1.FileSystem, nodes []Node) []Node {
	if fs.Spec.Clients == nil {
		return nil
	}
	return NodesOf(fs, nodes, fs.Spec.Clients.NodeSelector)
}

// Filter returns the nodes that a function keeps, in their order.
func Filter(nodes []Node, keep func(*Node) bool) []Node {
	var out []Node
	for i := range nodes {
		if keep(&nodes[i]) {
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
