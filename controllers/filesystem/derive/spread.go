package derive

import (
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"parallelfs.dev/operator/api/v1alpha1"
	"parallelfs.dev/operator/controllers/conditions"
	"parallelfs.dev/operator/internal/backend"
)

// Spread sets the condition about copies in different failure domains, if the spec names any.
func Spread(fs *v1alpha1.FileSystem, spread *backend.Problem) {
	if spread == nil {
		meta.RemoveStatusCondition(&fs.Status.Conditions, v1alpha1.ConditionSpread)
		return
	}
	status := metav1.ConditionFalse
	switch spread.Reason {
	case v1alpha1.ReasonAsAsked:
		status = metav1.ConditionTrue
	case v1alpha1.ReasonDataUnknown:
		status = metav1.ConditionUnknown
	}
	conditions.Add(&fs.Status.Conditions, fs.Generation, v1alpha1.ConditionReady, v1alpha1.ConditionSpread, status,
		spread.Reason, spread.Message)
}
