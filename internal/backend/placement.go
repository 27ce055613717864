package backend

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// OnNodes places pods on these nodes alone, by name and without a label on them: the nodes were recorded or chosen, and
// their labels may change. A field selector takes one value, so each node is a term of its own.
func OnNodes(names ...string) *corev1.Affinity {
	terms := make([]corev1.NodeSelectorTerm, 0, len(names))
	for _, name := range slices.Sorted(slices.Values(names)) {
		terms = append(terms, corev1.NodeSelectorTerm{MatchFields: []corev1.NodeSelectorRequirement{
			{Key: metav1.ObjectNameField, Operator: corev1.NodeSelectorOpIn, Values: []string{name}}}})
	}
	return &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{
		RequiredDuringSchedulingIgnoredDuringExecution: &corev1.NodeSelector{NodeSelectorTerms: terms}}}
}
