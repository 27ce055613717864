package cached

import (
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"

	"parallelfs.dev/operator/api/v1alpha1"
)

// Own keeps an object that an object of our API controls, without its managed fields. A ConfigMap of a run keeps the records without the
// raw output, of which a sweep has many megabytes. A user who may write to a namespace can put our labels on foreign objects: these keep
// only identity and controller, because no other field of them is read.
func Own(object any) (any, error) {
	o, is := object.(metav1.Object)
	if !is {
		return object, nil // it was deleted while there was no watch: client-go's DeletedFinalStateUnknown
	}
	o.SetManagedFields(nil)
	if ours(o) {
		if m, is := o.(*corev1.ConfigMap); is && m.Labels[v1alpha1.LabelBenchmarkRun] != "" {
			m.BinaryData = nil
		}
		return object, nil
	}
	o.SetAnnotations(nil)
	o.SetFinalizers(nil)
	o.SetLabels(words(only(selected, o.GetLabels())))
	o.SetOwnerReferences(controller(o))
	switch o := o.(type) {
	case *corev1.ConfigMap:
		o.Data, o.BinaryData = nil, nil
	case *batchv1.Job:
		o.Spec, o.Status = batchv1.JobSpec{}, batchv1.JobStatus{}
	case *appsv1.DaemonSet:
		o.Spec, o.Status = appsv1.DaemonSetSpec{}, appsv1.DaemonSetStatus{}
	case *appsv1.Deployment:
		o.Spec, o.Status = appsv1.DeploymentSpec{}, appsv1.DeploymentStatus{}
	case *policyv1.PodDisruptionBudget:
		o.Spec, o.Status = policyv1.PodDisruptionBudgetSpec{}, policyv1.PodDisruptionBudgetStatus{}
	}
	return object, nil
}

// selected are the labels by which the controllers list objects.
var selected = []string{
	v1alpha1.LabelManagedBy, v1alpha1.LabelFileSystem, v1alpha1.LabelBenchmarkRun, v1alpha1.LabelBenchmarkSuite, v1alpha1.LabelComponent,
	v1alpha1.LabelBackup, v1alpha1.LabelGuard, v1alpha1.LabelGuarded, v1alpha1.LabelImages, v1alpha1.LabelRecovery, v1alpha1.LabelCheck,
	v1alpha1.LabelCopies,
}

// only returns the labels or annotations with these keys. The API server limits the values of labels to 63 bytes.
func only(keys []string, of map[string]string) map[string]string {
	out := map[string]string{}
	for _, key := range keys {
		if value, is := of[key]; is {
			out[key] = value
		}
	}
	return out
}

// controller returns the owner reference of a stranger's controller. The API server does not limit the length of its fields.
func controller(o metav1.Object) []metav1.OwnerReference {
	owner := metav1.GetControllerOf(o)
	if owner == nil {
		return nil
	}
	for _, field := range []*string{&owner.APIVersion, &owner.Kind, &owner.Name, (*string)(&owner.UID)} {
		*field = v1alpha1.Cut(*field, validation.DNS1123SubdomainMaxLength)
	}
	return []metav1.OwnerReference{*owner}
}

// ours is true for what an object of our API controls. The chart's admission policy "owned" lets only the manager make such objects.
func ours(o metav1.Object) bool {
	owner := metav1.GetControllerOf(o)
	return owner != nil && strings.HasPrefix(owner.APIVersion, v1alpha1.GroupVersion.Group+"/")
}
