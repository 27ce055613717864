package podspec

import (
	"maps"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"parallelfs.dev/operator/api/v1alpha1"
	"parallelfs.dev/operator/internal/backend"
)

// A guard blocks the drain of a node until the filesystem can do without it. It is an idle pod whose PodDisruptionBudget allows the
// eviction only after the operator has opened the budget. The daemons themselves belong to DaemonSets, which a drain leaves out.

// Guarded reports whether a node has a guard: it has servers that have not retired, and was not decommissioned.
func Guarded(n *v1alpha1.FileSystemNode) bool {
	return n.Spec.GivenUp == nil && n.DeletionTimestamp.IsZero() &&
		slices.ContainsFunc(n.Spec.Members, func(m v1alpha1.NodeMember) bool { return !m.Retired })
}

// GuardHash returns a hash of everything that may change in the guard pod of a node with these taints. TemplateHashAnnotation of the
// Deployment holds it.
func (p Pods) GuardHash(taints []corev1.Taint) string {
	asked := p.FileSystem.Spec.Pods
	of := []any{
		backend.ClusterName(p.FileSystem), p.Images.Node, p.Images.PullPolicy, asked.Labels, asked.Annotations,
		asked.PriorityClassName, asked.ImagePullSecrets, taints,
	}
	if asked.ServiceAccountName != "" {
		of = append(of, asked.ServiceAccountName)
	}
	return backend.Hash(of...)
}

// Guard returns the Deployment of the guard of a node. Its pod can run on that node only, and tolerates the node's own taints, but not the
// cordon. After an eviction it waits until the node accepts pods again.
func (p Pods) Guard(n *v1alpha1.FileSystemNode, node backend.Node) *appsv1.Deployment {
	pod := p.Template(Workload{})
	labels := labelsOf(p.FileSystem)
	maps.Copy(labels, guardLabels(p.FileSystem, n))
	labels[v1alpha1.LabelManagedBy], labels[v1alpha1.LabelGuardOwner] = v1alpha1.ManagedBy, backend.ClusterName(p.FileSystem)
	pod.Labels = labels
	spec := &pod.Spec
	spec.HostNetwork, spec.DNSPolicy, spec.InitContainers, spec.Volumes = false, corev1.DNSDefault, nil, nil
	spec.TerminationGracePeriodSeconds = new(int64(1))
	spec.Affinity, spec.Tolerations = OnNodes(n.Spec.Node), nil
	for _, t := range node.Taints {
		spec.Tolerations = append(spec.Tolerations, corev1.Toleration{Key: t.Key, Operator: corev1.TolerationOpExists, Effect: t.Effect})
	}
	spec.SecurityContext.FSGroup = nil
	spec.Containers = []corev1.Container{{
		Name: "guard", Image: p.Images.Node, ImagePullPolicy: corev1.PullPolicy(p.Images.PullPolicy), Command: []string{"/node", "guard"},
		Resources: Requests("1m", "8Mi"), SecurityContext: p.Unprivileged(),
	}}
	return &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{
			Name: n.Name, Namespace: n.Namespace, Annotations: map[string]string{backend.TemplateHashAnnotation: p.GuardHash(node.Taints)},
		},
		Spec: appsv1.DeploymentSpec{
			Replicas: new(int32(1)), RevisionHistoryLimit: new(int32(0)),
			Selector: &metav1.LabelSelector{MatchLabels: guardLabels(p.FileSystem, n)}, Template: *pod,
		},
	}
}

// GuardBudget returns the PodDisruptionBudget of the guard of a node. If open, it allows the eviction of the guard.
func GuardBudget(fs *v1alpha1.FileSystem, n *v1alpha1.FileSystemNode, open bool) *policyv1.PodDisruptionBudget {
	unavailable := intstr.FromInt32(0)
	if open {
		unavailable = intstr.FromInt32(1)
	}
	return &policyv1.PodDisruptionBudget{
		ObjectMeta: metav1.ObjectMeta{Name: n.Name, Namespace: n.Namespace},
		Spec: policyv1.PodDisruptionBudgetSpec{
			MaxUnavailable: &unavailable, Selector: &metav1.LabelSelector{MatchLabels: guardLabels(fs, n)},
		},
	}
}

// IsOpen reports whether the PodDisruptionBudget of a guard allows its eviction.
func IsOpen(budget *policyv1.PodDisruptionBudget) bool {
	return budget.Spec.MaxUnavailable == nil || *budget.Spec.MaxUnavailable != intstr.FromInt32(0)
}

func guardLabels(fs *v1alpha1.FileSystem, n *v1alpha1.FileSystemNode) map[string]string {
	return map[string]string{v1alpha1.LabelGuard: fs.Name, v1alpha1.LabelGuarded: n.Name[max(0, len(n.Name)-backend.NodeHash):]}
}
