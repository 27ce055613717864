package cached_test

import (
	"fmt"
	"runtime"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"parallelfs.dev/operator/api/v1alpha1"
	"parallelfs.dev/operator/controllers/cached"
)

// foreign returns an object of a stranger as a watch delivers it: no text in it is shared with another object.
func foreign(kind string, i int) client.Object {
	text := func(n int) string { return strings.Repeat(fmt.Sprintf("%07d ", i), n/8) }
	labels, annotations := map[string]string{"app": text(32), "batch.kubernetes.io/job-name": text(32)}, map[string]string{"mine": text(4 << 10)}
	labels[v1alpha1.LabelManagedBy], labels[v1alpha1.LabelBenchmarkRun] = v1alpha1.ManagedBy, fmt.Sprintf("creates-%d", i%10)
	meta := metav1.ObjectMeta{
		Namespace: "tenant", Name: fmt.Sprintf("mine-%d", i), UID: "0b8a2b1e-6f0c-4c55-9f3e-5a1de6b1a0f7", Labels: labels, Annotations: annotations,
		Finalizers:      []string{text(1 << 10)},
		OwnerReferences: []metav1.OwnerReference{{APIVersion: "batch/v1", Kind: "Job", Name: fmt.Sprintf("mine-%d", i), UID: "0b8a2b1e", Controller: new(true)}},
		ManagedFields:   []metav1.ManagedFieldsEntry{{Manager: "kubectl", FieldsV1: metav1.NewFieldsV1(text(2 << 10))}},
	}
	pod := corev1.PodSpec{Containers: []corev1.Container{{Name: "c", Image: text(200), Env: []corev1.EnvVar{{Name: "X", Value: text(4 << 10)}}}}}
	switch kind {
	case "ConfigMaps":
		return &corev1.ConfigMap{ObjectMeta: meta, Data: map[string]string{"rep-1.json": text(8 << 10)}, BinaryData: map[string][]byte{"x": []byte(text(8 << 10))}}
	case "Jobs":
		return &batchv1.Job{ObjectMeta: meta, Spec: batchv1.JobSpec{Template: corev1.PodTemplateSpec{Spec: pod}}}
	default:
		switch kind {
		case "pods of DaemonSets":
			meta.OwnerReferences[0].Kind = "DaemonSet"
		case "pods of nobody":
			meta.OwnerReferences = nil
		}
		return &corev1.Pod{ObjectMeta: meta, Spec: pod, Status: corev1.PodStatus{Phase: corev1.PodPending, Message: text(200), Conditions: []corev1.PodCondition{
			{Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Reason: "Unschedulable", Message: text(200)},
		}}}
	}
}

func inUse() int64 {
	var m runtime.MemStats
	for range 2 {
		runtime.GC()
	}
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

// 10,000 objects may take 20 MiB. A fifth of them is measured.
func TestTenThousandObjectsOfStrangersTakeLittleMemory(t *testing.T) {
	for _, kind := range []string{"ConfigMaps", "Jobs", "pods of Jobs", "pods of DaemonSets", "pods of nobody"} {
		t.Run(kind, func(t *testing.T) {
			const objects, most = 2_000, 20 << 20 / 5
			g, transform := NewWithT(t), cached.Own
			if strings.HasPrefix(kind, "pods") {
				transform = cached.Pod
			}
			store := cache.NewIndexer(cache.MetaNamespaceKeyFunc, cache.Indexers{cache.NamespaceIndex: cache.MetaNamespaceIndexFunc})
			before := inUse()
			for i := range objects {
				kept, err := transform(foreign(kind, i))
				g.Expect(err).NotTo(HaveOccurred())
				g.Expect(store.Add(kept)).To(Succeed())
			}
			added := inUse() - before
			g.Expect(store.List()).To(HaveLen(objects))
			g.Expect(added).To(BeNumerically("<=", most))
		})
	}
}
