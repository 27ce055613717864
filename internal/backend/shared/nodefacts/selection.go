package nodefacts

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"parallelfs.dev/operator/api/v1alpha1"
	"parallelfs.dev/operator/internal/backend"
	"parallelfs.dev/operator/internal/plan"
)

// OneNode returns the nodes that match the selector of a role that has one node. Without a selector it returns one node of spec.nodes: the
// one that has a disk of the role, or a disk with earlier data of the role, or else the first by name.
func OneNode(in backend.Input, role v1alpha1.Role, selector v1alpha1.NodeSelector, targets v1alpha1.TargetsSpec) []backend.Node {
	if len(selector) > 0 {
		return backend.Matching(in.Nodes, selector)
	}
	nodes := slices.DeleteFunc(backend.NodesOf(in.FileSystem, in.Nodes, nil), func(n backend.Node) bool {
		return !HasTargets(targets, n.Name) || in.GaveUp(n.Name)
	})
	rank := func(n backend.Node) int {
		for range in.TargetsOn(role, "", n.Name) {
			return 0
		}
		if inventory, known := in.Inventories[n.Name]; known && plan.Holds(in.FileSystem, role, n.Name, inventory) {
			return 1
		}
		return 2
	}
	slices.SortFunc(nodes, func(a, b backend.Node) int {
		return cmp.Or(cmp.Compare(rank(a), rank(b)), strings.Compare(a.Name, b.Name))
	})
	return nodes[:min(len(nodes), 1)]
}

// SelectedBy names the field that selects the nodes of a role, for sentences: the role's own field, or spec.nodes.
func SelectedBy(fs *v1alpha1.FileSystem, field string, selector v1alpha1.NodeSelector) string {
	asked := fs.Spec.Nodes
	switch {
	case len(selector) > 0 || asked == nil:
		return fmt.Sprintf("%s (%s)", field, SelectorText(selector))
	case asked.Selector == nil:
		return fmt.Sprintf("spec.nodes (%s)", backend.List(asked.Names))
	default:
		return fmt.Sprintf("spec.nodes (%s)", metav1.FormatLabelSelector(asked.Selector))
	}
}

// RefuseNodes refuses an invalid selector in spec.nodes.
func RefuseNodes(fs *v1alpha1.FileSystem) error {
	if fs.Spec.Nodes == nil || fs.Spec.Nodes.Selector == nil {
		return nil
	}
	if _, err := metav1.LabelSelectorAsSelector(fs.Spec.Nodes.Selector); err != nil {
		return backend.Invalid(v1alpha1.ReasonInvalidSpec, "spec.nodes.selector: %s; correct it", v1alpha1.Cut(err.Error(), 200))
	}
	return nil
}

// Strangers returns the names in spec.nodes for which the cluster has no node.
func Strangers(fs *v1alpha1.FileSystem, nodes []backend.Node) []string {
	if fs.Spec.Nodes == nil {
		return nil
	}
	var out []string
	for _, name := range fs.Spec.Nodes.Names {
		if !slices.ContainsFunc(nodes, func(n backend.Node) bool { return n.Name == name }) {
			out = append(out, name)
		}
	}
	return out
}

// SelectorText formats a selector for kubectl.
func SelectorText(selector v1alpha1.NodeSelector) string {
	var parts []string
	for _, key := range backend.SortedKeys(selector) {
		parts = append(parts, key+"="+selector[key])
	}
	return strings.Join(parts, ",")
}

// NodeNames lists nodes in a sentence, as List does.
func NodeNames(nodes []backend.Node) string {
	names := make([]string, len(nodes))
	for i, n := range nodes {
		names[i] = n.Name
	}
	return backend.List(names)
}

// HasTargets reports whether a role has targets on a node that its selector matches. If the spec names devices, only the nodes of those
// devices have targets.
func HasTargets(targets v1alpha1.TargetsSpec, node string) bool {
	return len(targets.Devices) == 0 || slices.ContainsFunc(targets.Devices, func(d v1alpha1.DeviceReference) bool { return d.Node == node })
}
