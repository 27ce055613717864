package storagetarget

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"parallelfs.dev/operator/api/v1alpha1"
	"parallelfs.dev/operator/controllers/conditions"
)

// announce makes an event of every change of one of the operator's conditions: its status or its reason. It is called after
// they were written.
func (r *Reconciler) announce(before *v1alpha1.StorageTarget, mine []metav1.Condition) {
	for _, is := range mine {
		was := meta.FindStatusCondition(before.Status.Conditions, is.Type)
		if was != nil && was.Status == is.Status && was.Reason == is.Reason {
			continue
		}
		kind := corev1.EventTypeNormal
		if was != nil && was.Status == metav1.ConditionTrue {
			kind = corev1.EventTypeWarning
		}
		r.Recorder.Eventf(before, nil, kind, is.Reason, "Observe", "%s", v1alpha1.Cut(is.Type+": "+is.Message, conditions.MaxNote))
	}
}

// related is an object for an event, without making a nil pointer into an object.
func related(fs *v1alpha1.FileSystem) runtime.Object {
	if fs == nil {
		return nil
	}
	return fs
}
