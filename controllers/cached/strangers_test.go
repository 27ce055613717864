package cached_test

import (
	"encoding/json"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"parallelfs.dev/operator/api/v1alpha1"
	"parallelfs.dev/operator/controllers/cached"
)

// strangers are as large as objects can be, with our labels, of somebody else.
func strangers() map[string]client.Object {
	large := strings.Repeat("x", 1<<20)
	meta := metav1.ObjectMeta{
		Namespace: "tenant", Name: "mine", UID: "7", ResourceVersion: "8",
		Labels:        map[string]string{v1alpha1.LabelManagedBy: v1alpha1.ManagedBy, v1alpha1.LabelBenchmarkRun: "creates"},
		Annotations:   map[string]string{"mine": strings.Repeat("x", 200<<10)},
		ManagedFields: []metav1.ManagedFieldsEntry{{Manager: "kubectl"}},
	}
	pod := corev1.PodTemplateSpec{Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "c", Env: []corev1.EnvVar{{Name: "X", Value: large}}}}}}
	return map[string]client.Object{
		"a ConfigMap":           &corev1.ConfigMap{ObjectMeta: meta, Data: map[string]string{"rep-1.json": large}, BinaryData: map[string][]byte{"x": []byte(large)}},
		"a Job":                 &batchv1.Job{ObjectMeta: meta, Spec: batchv1.JobSpec{Template: pod}},
		"a DaemonSet":           &appsv1.DaemonSet{ObjectMeta: meta, Spec: appsv1.DaemonSetSpec{Template: pod}},
		"a Deployment":          &appsv1.Deployment{ObjectMeta: meta, Spec: appsv1.DeploymentSpec{Template: pod}},
		"a PodDisruptionBudget": &policyv1.PodDisruptionBudget{ObjectMeta: meta, Spec: policyv1.PodDisruptionBudgetSpec{Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"x": large}}}},
		"a pod":                 &corev1.Pod{ObjectMeta: meta, Spec: pod.Spec, Status: corev1.PodStatus{Message: large}},
	}
}

// 10,000 of them take at most 20 MiB.
func TestOfAStrangersObjectNothingIsKeptButWhoseItIs(t *testing.T) {
	for name, object := range strangers() {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			transform := cached.Own
			if _, is := object.(*corev1.Pod); is {
				transform = cached.Pod
			}
			kept, err := transform(object)
			g.Expect(err).NotTo(HaveOccurred())
			text, err := json.Marshal(kept)
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(len(text)).To(BeNumerically("<", 2000))
			g.Expect(kept).To(And(HaveField("Name", "mine"), HaveField("UID", BeEquivalentTo("7")), HaveField("Labels", HaveLen(2))))
		})
	}
}

func TestOfOurOwnObjectsEverythingIsKeptButRawOutput(t *testing.T) {
	for name, object := range strangers() {
		if name == "a pod" {
			continue // a pod is controlled by a DaemonSet or a Job
		}
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			object.SetOwnerReferences([]metav1.OwnerReference{{APIVersion: "parallelfs.dev/v1alpha1", Kind: "BenchmarkRun", Name: "creates", UID: "9", Controller: new(true)}})
			want := object.DeepCopyObject().(client.Object)
			want.SetManagedFields(nil)
			if m, is := want.(*corev1.ConfigMap); is {
				m.BinaryData = nil
			}
			kept, err := cached.Own(object)
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(kept).To(Equal(want))
		})
	}
}
