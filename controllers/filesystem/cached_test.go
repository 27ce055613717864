package filesystem

import (
	"testing"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/randfill"

	"parallelfs.dev/operator/api/v1alpha1"
	"parallelfs.dev/operator/controllers/cached"
	"parallelfs.dev/operator/internal/backend/shared/nodefacts"
)

func TestCachedPodsAndNodesHaveTheFactsOfTheWholeObjects(t *testing.T) {
	const seed = 1
	fill := randfill.NewWithSeed(seed).NilChance(0).NumElements(1, 4).MaxDepth(12) //nolint:mnd // so many of each
	wanted := map[types.UID]string{"set": "hash"}
	for range 200 {
		g := NewWithT(t)
		pod, node := &corev1.Pod{}, &corev1.Node{}
		fill.Fill(&pod.ObjectMeta)
		fill.Fill(&pod.Status)
		fill.Fill(&pod.Spec.NodeName)
		pod.Spec.InitContainers = []corev1.Container{{Name: "install", Image: "registry/node:1", Args: []string{"install"}}}
		pod.Status.Conditions[0].Type, pod.Status.Conditions[0].Status = corev1.PodReady, corev1.ConditionTrue
		pod.OwnerReferences = []metav1.OwnerReference{{Kind: "DaemonSet", UID: "set", Controller: new(true)}}
		pod.Labels[v1alpha1.LabelComponent] = "storage"
		facts, started := podFacts(pod, wanted), start(pod)
		g.Expect(facts.NodeImage).NotTo(BeEmpty())
		kept, err := cached.Pod(pod.DeepCopy())
		g.Expect(err).NotTo(HaveOccurred())
		slim, _ := kept.(*corev1.Pod)
		g.Expect(podFacts(slim, wanted)).To(Equal(facts))
		g.Expect(start(slim)).To(Equal(started))

		fill.Fill(&node.ObjectMeta)
		fill.Fill(&node.Spec)
		fill.Fill(&node.Status)
		node.Status.Addresses[0] = corev1.NodeAddress{Type: corev1.NodeInternalIP, Address: "10.0.0.1"}
		node.Status.Conditions[0].Type, node.Status.Conditions[0].Status = corev1.NodeReady, corev1.ConditionTrue
		known := nodefacts.FactsOfNode(node)
		g.Expect(known).To(And(HaveField("IP", Not(BeEmpty())), HaveField("Ready", true)))
		kept, err = cached.Node(node.DeepCopy())
		g.Expect(err).NotTo(HaveOccurred())
		same, _ := kept.(*corev1.Node)
		g.Expect(nodefacts.FactsOfNode(same)).To(Equal(known))
	}
}
