package trust

import (
	"slices"

	corev1 "k8s.io/api/core/v1"

	"parallelfs.dev/operator/api/v1alpha1"
)

// Mounts reports whether a pod is that of a client whose mount responds.
func Mounts(p *corev1.Pod) bool {
	return p.DeletionTimestamp == nil && slices.ContainsFunc(p.Status.Conditions, func(c corev1.PodCondition) bool {
		return c.Type == corev1.PodReady && c.Status == corev1.ConditionTrue
	})
}

// BadClients returns the nodes that have not mounted the filesystem, according to the FileSystem's status.
func BadClients(fs *v1alpha1.FileSystem) map[string]bool {
	out := map[string]bool{}
	for _, m := range fs.Status.Missing {
		if m.Kind == v1alpha1.ClientMember {
			out[m.Node] = true
		}
	}
	return out
}
