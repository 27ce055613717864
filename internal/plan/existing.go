package plan

import (
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"parallelfs.dev/operator/api/v1alpha1"
)

// Existing returns the targets of a FileSystem as input of Select, and all of them by name.
func Existing(own []v1alpha1.StorageTarget, gaveUp map[string]bool) (
	out []v1alpha1.StorageTarget, there map[string]*v1alpha1.StorageTarget,
) {
	out, there = make([]v1alpha1.StorageTarget, 0, len(own)), make(map[string]*v1alpha1.StorageTarget, len(own))
	for i := range own {
		t := own[i]
		there[t.Name] = &own[i]
		if gaveUp[t.Spec.Node] {
			continue // it is deleted, whatever is on its disk
		}
		if ComesBack(&t) {
			t.DeletionTimestamp = nil // its disk is not free, and no other one replaces it
		}
		out = append(out, t)
	}
	return out, there
}

// ComesBack reports whether a person is deleting a target that may hold data and was not decommissioned.
func ComesBack(t *v1alpha1.StorageTarget) bool {
	return !t.DeletionTimestamp.IsZero() && !MayDelete(t) && t.Annotations[v1alpha1.AnnotationGiveUp] != t.Spec.Node
}

// MayDelete reports whether a target of a FileSystem that is not being deleted holds nothing. Either no byte was ever written to it, or a
// person asked for its removal and the filesystem itself now reports that nothing on it is needed.
func MayDelete(t *v1alpha1.StorageTarget) bool {
	if t.Status.Provisioned == nil {
		return true
	}
	if IsAway(t) {
		return false // the second node has to hand it back first
	}
	safe := meta.FindStatusCondition(t.Status.Conditions, v1alpha1.ConditionSafeToRemove)
	return t.Spec.Remove && safe != nil && safe.Status == metav1.ConditionTrue && safe.ObservedGeneration == t.Generation
}
