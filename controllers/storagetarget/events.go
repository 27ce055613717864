package storagetarget

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"parallelfs.dev/operator/api/v1alpha1"
	"parallelfs.dev/operator/controllers/conditions"
)

// announce makes an event for each change of the operator's conditions that is news about this target. It is called after they were
// written.
func (r *Reconciler) announce(before *v1alpha1.StorageTarget, mine []metav1.Condition) {
	for _, is := range mine {
		was := meta.FindStatusCondition(before.Status.Conditions, is.Type)
		same := was != nil && was.Status == is.Status && was.Reason == is.Reason
		if same || is.Type == v1alpha1.ConditionOnline && !newsOfTarget(before, was, is) {
			continue
		}
		health := is.Type == v1alpha1.ConditionDiskHealthy
		if health && is.Status != metav1.ConditionFalse && (was == nil || was.Status != metav1.ConditionFalse) {
			continue // a report without problems is no news, and an agent that is away is reported once for its node
		}
		kind := corev1.EventTypeNormal
		if was != nil && was.Status == metav1.ConditionTrue || health && is.Status == metav1.ConditionFalse {
			kind = corev1.EventTypeWarning
		}
		r.Recorder.Eventf(before, nil, kind, is.Reason, "Observe", "%s", v1alpha1.Cut(is.Type+": "+is.Message, conditions.MaxNote))
	}
}

// newsOfTarget is false for a change of Online that another object reports, or that is not news. The FileSystem reports a probe without an
// answer, and the progress of a growing filesystem. The agent reports the state of the disk. A new target is expected to be offline.
// Otherwise, thousands of targets would repeat it.
func newsOfTarget(target *v1alpha1.StorageTarget, was *metav1.Condition, is metav1.Condition) bool {
	switch is.Status {
	case metav1.ConditionTrue:
		return was != nil && was.Status == metav1.ConditionFalse
	case metav1.ConditionFalse:
		disk := meta.FindStatusCondition(target.Status.Conditions, v1alpha1.ConditionReady)
		return was != nil && (disk == nil || disk.Status == metav1.ConditionTrue)
	default:
		return is.Reason != v1alpha1.ReasonProbeUnreachable
	}
}

// related is an object for an event, without making a nil pointer into an object.
func related(fs *v1alpha1.FileSystem) runtime.Object {
	if fs == nil {
		return nil
	}
	return fs
}
