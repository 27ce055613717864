package filesystem

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"parallelfs.dev/operator/api/v1alpha1"
	"parallelfs.dev/operator/controllers/conditions"
	"parallelfs.dev/operator/controllers/failures"
)

// announce makes an event of a change of Ready, or of Degraded: its status or its reason; of changes that begin to wait; and of a failure
// that was not said before. It is called after the status was written.
func (r *Reconciler) announce(before, after *v1alpha1.FileSystem) {
	of := func(fs *v1alpha1.FileSystem, kind string) *metav1.Condition {
		return meta.FindStatusCondition(fs.Status.Conditions, kind)
	}
	failures.Announce(r.Recorder, after, of(before, v1alpha1.ConditionReconciled), of(after, v1alpha1.ConditionReconciled))
	if is := of(after, v1alpha1.ConditionChangesHeld); is != nil && of(before, is.Type) == nil {
		r.Recorder.Eventf(after, nil, corev1.EventTypeNormal, is.Reason, "Wait", "%s", v1alpha1.Cut(is.Message, conditions.MaxNote))
	}
	if is := changed(before, after, v1alpha1.ConditionDegraded); is != nil {
		r.Recorder.Eventf(after, nil, corev1.EventTypeWarning, is.Reason, "Observe", "%s", v1alpha1.Cut(is.Message, conditions.MaxNote))
	}
	was := meta.FindStatusCondition(before.Status.Conditions, v1alpha1.ConditionReady)
	is := changed(before, after, v1alpha1.ConditionReady)
	if is == nil {
		return
	}
	kind := corev1.EventTypeNormal
	if is.Status != metav1.ConditionTrue && was != nil && was.Status == metav1.ConditionTrue ||
		meta.IsStatusConditionTrue(after.Status.Conditions, v1alpha1.ConditionStalled) {
		kind = corev1.EventTypeWarning
	}
	r.Recorder.Eventf(after, nil, kind, is.Reason, "Observe", "%s", v1alpha1.Cut(is.Message, conditions.MaxNote))
}

// changed is a condition whose status or reason has changed; nil when neither has, or it is absent.
func changed(before, after *v1alpha1.FileSystem, kind string) *metav1.Condition {
	was, is := meta.FindStatusCondition(before.Status.Conditions, kind), meta.FindStatusCondition(after.Status.Conditions, kind)
	if is == nil || was != nil && was.Status == is.Status && was.Reason == is.Reason {
		return nil
	}
	return is
}
