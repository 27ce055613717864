package admitted_test

import (
	"testing"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"parallelfs.dev/operator/controllers/admitted"
	"parallelfs.dev/operator/controllers/cached"
)

func TestTheFactsOfADaemonsPodAreTheSameFromTheCacheAndFromTheWholePod(t *testing.T) {
	g := NewWithT(t)
	template := corev1.PodTemplateSpec{Spec: *asked()}
	template.Annotations = map[string]string{"other": "stays"}
	admitted.Mark(&template)
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Annotations: template.Annotations, OwnerReferences: []metav1.OwnerReference{{Kind: "DaemonSet", Controller: new(true)}}},
		Spec:       *template.Spec.DeepCopy(),
	}
	g.Expect(admitted.Changed(pod)).To(BeEmpty())
	pod.Spec.InitContainers[0].Image = "mirror/node:1"
	pod.Spec.Containers[0].Resources.Limits[corev1.ResourceCPU] = resource.MustParse("1")
	want := []string{"the cpu of container benchmark is limited to 1", "container install has the image mirror/node:1 instead of node:1"}
	g.Expect(admitted.Changed(pod)).To(Equal(want))
	kept, err := cached.Pod(pod.DeepCopy())
	g.Expect(err).NotTo(HaveOccurred())
	short, is := kept.(*corev1.Pod)
	g.Expect(is).To(BeTrue())
	g.Expect(admitted.Changed(short)).To(Equal(want))
	g.Expect(short.Annotations).To(HaveLen(1), "no other annotation of a pod is read")
	g.Expect(short.Spec.InitContainers[0].Image).To(Equal("node:1"), "an image of a mirror is no image of another operator")
	g.Expect(short.Spec.Containers).To(BeEmpty(), "only pods that bring images to nodes keep them")
}
