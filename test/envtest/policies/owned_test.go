//go:build envtest

package policies_test

import (
	"testing"

	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"parallelfs.dev/operator/api/v1alpha1"
)

// controlled returns an object of each kind in the manager's cache of its own objects. A BenchmarkRun controls it.
func controlled() map[string]client.Object {
	meta := metav1.ObjectMeta{
		GenerateName: "creates-", Namespace: "default", Labels: map[string]string{v1alpha1.LabelManagedBy: v1alpha1.ManagedBy},
		OwnerReferences: []metav1.OwnerReference{{APIVersion: v1alpha1.GroupVersion.String(), Kind: "BenchmarkRun", Name: "creates", UID: "9", Controller: new(true)}},
	}
	labels := map[string]string{"app": "creates"}
	pod := corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: labels}, Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "c", Image: "i"}}}}
	selector, job := &metav1.LabelSelector{MatchLabels: labels}, *pod.DeepCopy()
	job.Spec.RestartPolicy = corev1.RestartPolicyNever
	return map[string]client.Object{
		"ConfigMap":           &corev1.ConfigMap{ObjectMeta: meta, Data: map[string]string{"a": "1"}},
		"DaemonSet":           &appsv1.DaemonSet{ObjectMeta: meta, Spec: appsv1.DaemonSetSpec{Selector: selector, Template: pod}},
		"Deployment":          &appsv1.Deployment{ObjectMeta: meta, Spec: appsv1.DeploymentSpec{Selector: selector, Template: pod}},
		"Job":                 &batchv1.Job{ObjectMeta: meta, Spec: batchv1.JobSpec{Template: job}},
		"PodDisruptionBudget": &policyv1.PodDisruptionBudget{ObjectMeta: meta, Spec: policyv1.PodDisruptionBudgetSpec{Selector: selector}},
	}
}

func TestOnlyTheManagerMakesWhatItKeepsInMemory(t *testing.T) {
	const refused = "only the operator makes objects that an object of parallelfs.dev controls"
	alex, manager := user(t, "an administrator of the cluster"), user(t, "the manager")
	for kind, object := range controlled() {
		t.Run(kind, func(t *testing.T) {
			g := NewWithT(t)
			g.Expect(alex.Create(t.Context(), copyOf(object))).To(MatchError(ContainSubstring(refused)), "made with label and owner")

			labeled := copyOf(object)
			labeled.SetOwnerReferences(nil)
			g.Expect(alex.Create(t.Context(), labeled)).To(Succeed())
			labeled.SetOwnerReferences(object.GetOwnerReferences())
			g.Expect(alex.Update(t.Context(), labeled)).To(MatchError(ContainSubstring(refused)), "the owner is added")

			owned := copyOf(object)
			owned.SetLabels(nil)
			g.Expect(alex.Create(t.Context(), owned)).To(Succeed(), "the manager does not see it")
			owned.SetLabels(object.GetLabels())
			g.Expect(alex.Update(t.Context(), owned)).To(MatchError(ContainSubstring(refused)), "the label is added")

			own := copyOf(object)
			g.Expect(manager.Create(t.Context(), own)).To(Succeed())
			own.SetAnnotations(map[string]string{"note": "seen"})
			g.Expect(alex.Update(t.Context(), own)).To(Succeed(), "an object of the operator may be changed")
		})
	}
}

func copyOf(o client.Object) client.Object { return o.DeepCopyObject().(client.Object) } //nolint:forcetypeassert // the copy of an object is one
