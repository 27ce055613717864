package cached_test

import (
	"encoding/json"
	"fmt"
	"slices"
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

// manyWords are more labels or annotations than an object of ours has, some of them with our prefix.
func manyWords() map[string]string {
	out := map[string]string{v1alpha1.LabelManagedBy: v1alpha1.ManagedBy, v1alpha1.LabelBenchmarkRun: "creates"}
	for i := range 2000 {
		out[fmt.Sprintf("parallelfs.dev/x%d", i)], out[fmt.Sprintf("mine-%d", i)] = strings.Repeat("x", 60), strings.Repeat("x", 60)
	}
	return out
}

func TestLittleIsCachedOfForeignObjectsWhateverTheirContent(t *testing.T) {
	large := strings.Repeat("x", 300<<10)
	for what, change := range map[string]func(o client.Object){
		"many labels":     func(o client.Object) { o.SetLabels(manyWords()) },
		"many finalizers": func(o client.Object) { o.SetFinalizers(slices.Repeat([]string{"tenant.example/wait"}, 10000)) },
		"a controller of a long name": func(o client.Object) {
			o.SetOwnerReferences([]metav1.OwnerReference{{APIVersion: "v1", Kind: large, Name: large, UID: "3", Controller: new(true)}})
		},
		"many owners": func(o client.Object) {
			o.SetOwnerReferences(slices.Repeat([]metav1.OwnerReference{{APIVersion: "v1", Kind: "ConfigMap", Name: "a", UID: "3"}}, 10000))
		},
	} {
		for name, object := range strangers() {
			t.Run(name+" with "+what, func(t *testing.T) {
				g := NewWithT(t)
				change(object)
				if pod, is := object.(*corev1.Pod); is {
					pod.Status = corev1.PodStatus{} // only the kubelet writes it
				}
				g.Expect(kept(g, object)).To(BeNumerically("<", 5000))
			})
		}
	}
}

func TestLittleIsCachedOfAForeignPodWithAController(t *testing.T) {
	for _, kind := range []string{"Job", "DaemonSet", "ReplicaSet", "StatefulSet"} {
		t.Run(kind, func(t *testing.T) {
			g := NewWithT(t)
			pod := strangers()["a pod"].(*corev1.Pod)
			pod.Status = corev1.PodStatus{}
			pod.Labels, pod.Annotations = manyWords(), manyWords()
			pod.Spec.Containers = slices.Repeat(pod.Spec.Containers, 50)
			pod.OwnerReferences = []metav1.OwnerReference{{APIVersion: "batch/v1", Kind: kind, Name: "mine", UID: "3", Controller: new(true)}}
			g.Expect(kept(g, pod)).To(BeNumerically("<", 8000))
			g.Expect(pod.Labels).To(HaveKeyWithValue(v1alpha1.LabelBenchmarkRun, "creates"))
		})
	}
}

// kept is how many bytes the cache keeps of an object.
func kept(g *WithT, object client.Object) int {
	transform := cached.Own
	if _, is := object.(*corev1.Pod); is {
		transform = cached.Pod
	}
	left, err := transform(object)
	g.Expect(err).NotTo(HaveOccurred())
	text, err := json.Marshal(left)
	g.Expect(err).NotTo(HaveOccurred())
	return len(text)
}

// 10,000 of them take at most 20 MiB.
func TestOfAForeignObjectOnlyItsOwnerIsCached(t *testing.T) {
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

func TestOwnObjectsAreCachedWithoutRawOutput(t *testing.T) {
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

func TestACachedMirrorPodStaysOneWhateverItsAnnotationsAre(t *testing.T) {
	g := NewWithT(t)
	pod := strangers()["a pod"].(*corev1.Pod)
	pod.OwnerReferences = []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "DaemonSet", Name: "mine", UID: "3", Controller: new(true)}}
	pod.Annotations = map[string]string{corev1.MirrorPodAnnotationKey: "hash"}
	for i := range 10 {
		pod.Annotations[fmt.Sprintf("a%d.parallelfs.dev/x", i)] = strings.Repeat("x", 1000)
	}
	left, err := cached.Pod(pod)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(left).To(HaveField("Annotations", HaveKey(corev1.MirrorPodAnnotationKey)))
}
