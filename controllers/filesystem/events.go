package filesystem

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"parallelfs.dev/operator/api/v1alpha1"
	"parallelfs.dev/operator/controllers/conditions"
)

// announce makes an event of a change of Ready: its status or its reason. It is called after the status was written.
func (r *Reconciler) announce(before, after *v1alpha1.FileSystem) {
	was := meta.FindStatusCondition(before.Status.Conditions, v1alpha1.ConditionReady)
	is := meta.FindStatusCondition(after.Status.Conditions, v1alpha1.ConditionReady)
	if is == nil || (was != nil && was.Status == is.Status && was.Reason == is.Reason) {
		return
	}
	kind := corev1.EventTypeNormal
	if is.Status != metav1.ConditionTrue && was != nil && was.Status == metav1.ConditionTrue ||
		meta.IsStatusConditionTrue(after.Status.Conditions, v1alpha1.ConditionStalled) {
		kind = corev1.EventTypeWarning
	}
	r.Recorder.Eventf(after, nil, kind, is.Reason, "Observe", "%s", v1alpha1.Cut(is.Message, conditions.MaxNote))
}
