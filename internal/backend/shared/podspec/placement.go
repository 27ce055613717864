package podspec

import (
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"parallelfs.dev/operator/api/v1alpha1"
	"parallelfs.dev/operator/internal/backend"
)

// OnNodes places pods on these nodes only, by name and without a label, because the nodes were recorded or chosen and their labels may
// change. A field selector accepts one value, so each node needs a term of its own.
func OnNodes(names ...string) *corev1.Affinity {
	terms := make([]corev1.NodeSelectorTerm, 0, len(names))
	for _, name := range slices.Sorted(slices.Values(names)) {
		terms = append(terms, corev1.NodeSelectorTerm{MatchFields: []corev1.NodeSelectorRequirement{
			{Key: metav1.ObjectNameField, Operator: corev1.NodeSelectorOpIn, Values: []string{name}}}})
	}
	return &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{
		RequiredDuringSchedulingIgnoredDuringExecution: &corev1.NodeSelector{NodeSelectorTerms: terms}}}
}

// OnClients places the pods of a DaemonSet on the nodes that should mount the filesystem.
func OnClients(fs *v1alpha1.FileSystem, pod *corev1.PodTemplateSpec) {
	asked := fs.Spec.Nodes
	switch {
	case len(fs.Spec.Clients.NodeSelector) > 0 || asked == nil:
		pod.Spec.NodeSelector = fs.Spec.Clients.NodeSelector
	case asked.Selector == nil:
		pod.Spec.Affinity = OnNodes(asked.Names...)
	default:
		var term corev1.NodeSelectorTerm
		for _, key := range backend.SortedKeys(asked.Selector.MatchLabels) {
			term.MatchExpressions = append(term.MatchExpressions, corev1.NodeSelectorRequirement{
				Key: key, Operator: corev1.NodeSelectorOpIn, Values: []string{asked.Selector.MatchLabels[key]},
			})
		}
		for _, e := range asked.Selector.MatchExpressions {
			term.MatchExpressions = append(term.MatchExpressions, corev1.NodeSelectorRequirement{
				Key: e.Key, Operator: corev1.NodeSelectorOperator(e.Operator), Values: e.Values,
			})
		}
		pod.Spec.Affinity = &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{
			RequiredDuringSchedulingIgnoredDuringExecution: &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{term}}}}
	}
}

// NodeLabelDomain ends the prefix of all labels that the operator sets on nodes. The API server lets no kubelet change labels below
// node-restriction.kubernetes.io, so no node can attract the pods of servers, and the secrets in them (Kubernetes: NodeRestriction).
const NodeLabelDomain = "parallelfs.node-restriction.kubernetes.io"

// NodeLabels returns the prefix of the labels that a FileSystem sets on nodes, such as
// "1b4e28ba.scratch.storage.parallelfs.node-restriction.kubernetes.io/".
func NodeLabels(namespace, name string, uid types.UID) string {
	return strings.Join([]string{string(uid)[:min(len(uid), backend.ShownUID)], name, namespace, NodeLabelDomain}, ".") + "/"
}

// NodeLabel returns the label of the nodes that have a member of this name, such as "…/chunkserver-ssd". Its value is empty.
func NodeLabel(fs *v1alpha1.FileSystem, member string) string {
	return NodeLabels(fs.Namespace, fs.Name, fs.UID) + member
}

// OnMembers places the pods of a DaemonSet on all nodes that have a member of this name. The operator labels these nodes first; the
// DaemonSet itself does not list them.
func OnMembers(fs *v1alpha1.FileSystem, pod *corev1.PodTemplateSpec, member string) {
	pod.Spec.NodeSelector = map[string]string{NodeLabel(fs, member): ""}
}
