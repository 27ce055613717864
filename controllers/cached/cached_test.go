package cached

import (
	"slices"
	"testing"
	"unsafe"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/randfill"

	"parallelfs.dev/operator/api/v1alpha1"
)

// filler fills objects with whatever their fields can hold.
func filler() *randfill.Filler {
	const seed, most = 1, 4
	return randfill.NewWithSeed(seed).NilChance(0.2).NumElements(1, most).Funcs(
		func(q *resource.Quantity, c randfill.Continue) { q.Set(c.Int63()) },
		func(*runtime.RawExtension, randfill.Continue) {},
	)
}

func TestOwnObjectsAreCachedWithoutTheirManagedFieldsOnly(t *testing.T) {
	fill := filler()
	for range 200 {
		for _, object := range []client.Object{&v1alpha1.StorageTarget{}, &v1alpha1.NodeInventory{}, &v1alpha1.FileSystemNode{}, &v1alpha1.FileSystem{}} {
			g := NewWithT(t)
			fill.Fill(object)
			whole, _ := object.DeepCopyObject().(client.Object)
			whole.SetManagedFields(nil)
			kept, err := Any(object)
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(equality.Semantic.DeepEqual(kept, whole)).To(BeTrue(), "%#v", whole)
		}
	}
}

func TestEqualTextsOfManyTargetsAreInMemoryOnce(t *testing.T) {
	g := NewWithT(t)
	conditions := func() []string {
		t := &v1alpha1.StorageTarget{Status: v1alpha1.StorageTargetStatus{Conditions: []metav1.Condition{{Message: string([]byte("it is proven"))}}}}
		kept, err := Any(t)
		g.Expect(err).NotTo(HaveOccurred())
		target, _ := kept.(*v1alpha1.StorageTarget)
		return []string{target.Status.Conditions[0].Message}
	}
	first, second := conditions(), conditions()
	g.Expect(unsafe.StringData(first[0])).To(BeIdenticalTo(unsafe.StringData(second[0])))
}

func TestTheNodeAndTheStateOfAServersPodAreCached(t *testing.T) {
	fill := filler()
	for _, owner := range []string{"DaemonSet", "ReplicaSet", "Job"} {
		g := NewWithT(t)
		pod := &corev1.Pod{}
		fill.Fill(pod)
		pod.OwnerReferences = []metav1.OwnerReference{{Kind: owner, Controller: new(true)}}
		pod.Spec.InitContainers = []corev1.Container{{Name: "install", Image: "node:1", Command: []string{"install"}}}
		pod.Spec.Containers = []corev1.Container{{Name: "storage", Image: "server:1", Args: []string{"-d"}}}
		pod.Labels = map[string]string{v1alpha1.LabelFileSystem: "scratch", v1alpha1.LabelImages: "scratch", "app.kubernetes.io/component": "agent"}
		pod.Annotations = map[string]string{"parallelfs.dev/version": "8", "parallelfs.dev/template-hash": "f00"}
		pod.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}, {Type: corev1.PodScheduled, Message: "no node"}}
		want := pod.DeepCopy()
		want.ManagedFields, want.Finalizers = nil, nil
		want.Spec = corev1.PodSpec{NodeName: pod.Spec.NodeName}
		if owner != "Job" {
			want.Spec.InitContainers = []corev1.Container{{Name: "install", Image: "node:1"}}
			want.Spec.Containers = []corev1.Container{{Name: "storage", Image: "server:1"}}
		}
		want.Status = corev1.PodStatus{Phase: pod.Status.Phase, Conditions: pod.Status.Conditions}
		for _, c := range pod.Status.ContainerStatuses {
			want.Status.ContainerStatuses = append(want.Status.ContainerStatuses, read(&c))
		}
		for _, c := range pod.Status.InitContainerStatuses {
			want.Status.InitContainerStatuses = append(want.Status.InitContainerStatuses, read(&c))
		}
		pod.Labels["app"], pod.Annotations["mine"] = "of a stranger", "of a stranger"
		pod.Status.Conditions = append(slices.Clone(pod.Status.Conditions), corev1.PodCondition{Type: "parallelfs.dev/mine"})
		g.Expect(Pod(pod)).To(BeEquivalentTo(want))
	}
}

// read returns the fields of a container's status that the controllers read.
func read(c *corev1.ContainerStatus) corev1.ContainerStatus {
	return corev1.ContainerStatus{
		Name: c.Name, State: c.State, LastTerminationState: c.LastTerminationState, Ready: c.Ready, RestartCount: c.RestartCount,
	}
}

func TestThePodOfADaemonSetThatIsNotScheduledYetKeepsTheNameOfItsNode(t *testing.T) {
	g := NewWithT(t)
	term := func(name string) *corev1.Affinity {
		return &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{RequiredDuringSchedulingIgnoredDuringExecution: &corev1.NodeSelector{
			NodeSelectorTerms: []corev1.NodeSelectorTerm{{MatchFields: []corev1.NodeSelectorRequirement{
				{Key: metav1.ObjectNameField, Operator: corev1.NodeSelectorOpIn, Values: []string{name}},
			}}},
		}}}
	}
	kept := func(node string) *corev1.Affinity {
		pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{OwnerReferences: []metav1.OwnerReference{{Kind: "DaemonSet", Controller: new(true)}}}}
		pod.Spec.NodeName, pod.Spec.Affinity = node, term("n1")
		pod.Spec.Affinity.PodAntiAffinity = &corev1.PodAntiAffinity{}
		_, err := Pod(pod)
		g.Expect(err).NotTo(HaveOccurred())
		return pod.Spec.Affinity
	}
	g.Expect(kept("")).To(Equal(term("n1")))
	g.Expect(kept("n1")).To(BeNil(), "its nodeName names the node")
}

func TestTheCacheKeepsTheFieldsOfNodesThatBackendsRead(t *testing.T) {
	g := NewWithT(t)
	node := &corev1.Node{}
	filler().Fill(node)
	node.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeMemoryPressure}, {Type: corev1.NodeReady, Status: corev1.ConditionTrue}}
	node.Status.Capacity = corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("64"), corev1.ResourceMemory: resource.MustParse("256Gi")}
	node.Status.Images = []corev1.ContainerImage{{Names: []string{"one of many"}}}
	want := node.DeepCopy()
	want.ManagedFields = nil
	want.Status = corev1.NodeStatus{
		Addresses: node.Status.Addresses, Conditions: node.Status.Conditions[1:], Capacity: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("64")},
		NodeInfo: corev1.NodeSystemInfo{BootID: node.Status.NodeInfo.BootID, KernelVersion: node.Status.NodeInfo.KernelVersion},
	}
	kept, err := Node(node)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(equality.Semantic.DeepEqual(kept, want)).To(BeTrue())
}

func TestObjectsOfOtherKindsAreUnchanged(t *testing.T) {
	g := NewWithT(t)
	gone := "DeletedFinalStateUnknown"
	g.Expect(Any(gone)).To(Equal(gone))
	g.Expect(Pod(gone)).To(Equal(gone))
	g.Expect(Node(gone)).To(Equal(gone))
}
