package jobs

import (
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"parallelfs.dev/operator/controllers/benchmarkrun/children"
	"parallelfs.dev/operator/controllers/benchmarkrun/scope"
	"parallelfs.dev/operator/internal/backend/shared/podspec"
)

// user returns the user of a run's containers. The directory of a storage pool belongs to root, and sshd of a distributed run needs root.
// All pods of a run have the same user, so that each can remove the files of another. Other pods comply with Pod Security's profile
// restricted.
func (r Renderer) user() int64 {
	if r.Scope.Volume != nil && !r.Scope.Any(scope.Distributed) {
		return nobody
	}
	return 0
}

// onVolume adapts a pod to measure a volume. It tolerates no taint, because the scheduler chooses its node. The group of its user may write
// to the volume if the driver supports that (fsGroup).
func (r Renderer) onVolume(pod *corev1.PodSpec) {
	if r.Scope.Volume == nil {
		return
	}
	pod.Tolerations = nil
	pod.SecurityContext.FSGroup = new(r.user())
	pod.SecurityContext.FSGroupChangePolicy = new(corev1.FSGroupChangeOnRootMismatch)
}

// mountVolume gives the pod's container the volume.
func (r Renderer) mountVolume(pod *corev1.PodTemplateSpec) {
	pod.Spec.Volumes = append(pod.Spec.Volumes, corev1.Volume{Name: "volume", VolumeSource: corev1.VolumeSource{
		PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: r.Scope.ClaimName()}}})
	c := &pod.Spec.Containers[0]
	c.VolumeMounts = append(c.VolumeMounts, corev1.VolumeMount{Name: "volume", MountPath: scope.VolumePath})
}

// Claim returns the claim of a run on a StorageClass.
func (r Renderer) Claim() (*corev1.PersistentVolumeClaim, error) {
	asked := r.Scope.Run.Spec.Target.StorageClass
	size, err := resource.ParseQuantity(asked.Size)
	if err != nil {
		return nil, fmt.Errorf("spec.target.storageClass.size: %w", err)
	}
	out := &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{
		Namespace: r.Scope.Run.Namespace, Name: r.Scope.ClaimName(), Labels: children.Labels(r.Scope.Run),
	}}
	out.Spec.StorageClassName = &asked.Name
	out.Spec.AccessModes = []corev1.PersistentVolumeAccessMode{corev1.PersistentVolumeAccessMode(asked.AccessMode)}
	out.Spec.Resources.Requests = corev1.ResourceList{corev1.ResourceStorage: size}
	return out, nil
}

// place sets where a pod runs: on the nodes of its task or, for a volume, on any node that spec.clients selects, with a preference for a
// node where the run has measured before.
func (r Renderer) place(pod *corev1.PodTemplateSpec, t task) {
	if r.Scope.Volume == nil {
		pod.Spec.Affinity = podspec.OnNodes(t.nodes...)
		return
	}
	pod.Spec.NodeSelector = r.Scope.Run.Spec.Clients.NodeSelector
	pod.Spec.Affinity = &corev1.Affinity{}
	known := r.Scope.EarlierNodes()
	if len(known) == 0 {
		return
	}
	var terms []corev1.PreferredSchedulingTerm
	on := podspec.OnNodes(known[:min(len(known), MaxCandidates)]...)
	for _, term := range on.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution.NodeSelectorTerms {
		terms = append(terms, corev1.PreferredSchedulingTerm{Weight: 100, Preference: term})
	}
	pod.Spec.Affinity.NodeAffinity = &corev1.NodeAffinity{PreferredDuringSchedulingIgnoredDuringExecution: slices.Clip(terms)}
}
