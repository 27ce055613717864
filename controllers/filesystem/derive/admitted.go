package derive

import (
	"fmt"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"parallelfs.dev/operator/api/v1alpha1"
	"parallelfs.dev/operator/controllers/conditions"
	"parallelfs.dev/operator/internal/backend"
)

// Admitted sets the condition PodsAsAsked, which exists while admission has changed pods of the filesystem.
func Admitted(fs *v1alpha1.FileSystem, in backend.Input) {
	var changed []string
	for i := range in.Pods {
		p := &in.Pods[i]
		switch len(p.Changed) {
		case 0:
		case 1:
			changed = append(changed, fmt.Sprintf("%s: %s", p.Server(), p.Changed[0]))
		default:
			changed = append(changed, fmt.Sprintf("%s: %s, and %s", p.Server(), p.Changed[0], v1alpha1.Count(len(p.Changed)-1, "more change", "more changes")))
		}
	}
	for _, j := range in.Jobs {
		if j.Outlasting != "" {
			changed = append(changed, fmt.Sprintf("Job %s: container %s was added, and still runs although the Job's own have ended",
				j.Name, j.Outlasting))
		}
	}
	if len(changed) == 0 {
		meta.RemoveStatusCondition(&fs.Status.Conditions, v1alpha1.ConditionPodsAsAsked)
		return
	}
	message := "a LimitRange or a webhook changed pods; exclude this namespace from it, or set spec.pods.resources: " + backend.List(changed)
	conditions.Add(&fs.Status.Conditions, fs.Generation, v1alpha1.ConditionReady, v1alpha1.ConditionPodsAsAsked, metav1.ConditionFalse,
		v1alpha1.ReasonChangedByAdmission, message)
}
