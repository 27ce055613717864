package podspec_test

import (
	"testing"

	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"parallelfs.dev/operator/api/v1alpha1"
	"parallelfs.dev/operator/internal/backend"
	"parallelfs.dev/operator/internal/backend/shared/podspec"
)

// serverSet returns the DaemonSet of a component, which runs an image.
func serverSet(component, image string, where func(spec *corev1.PodSpec)) client.Object {
	set := &appsv1.DaemonSet{ObjectMeta: metav1.ObjectMeta{Name: component, Labels: map[string]string{v1alpha1.LabelComponent: component}}}
	spec := &set.Spec.Template.Spec
	spec.InitContainers, spec.Containers = []corev1.Container{{Image: "node:1"}}, []corev1.Container{{Image: image}, {Image: image}}
	where(spec)
	return set
}

func TestEachImageIsBroughtOnceToAllNodesThatRunIt(t *testing.T) {
	g := NewWithT(t)
	fs := &v1alpha1.FileSystem{ObjectMeta: metav1.ObjectMeta{Name: "scratch", Namespace: "storage"}}
	fs.Spec.Pods.Labels = map[string]v1alpha1.LabelValue{"team": "storage", v1alpha1.LabelImage: "mine"}
	fs.Spec.Pods.ImagePullSecrets = []v1alpha1.SecretReference{{Name: "registry"}}
	pods := podspec.Pods{FileSystem: fs, Images: backend.Images{Node: "node:1"}, Group: 9421}
	on := func(names ...string) func(*corev1.PodSpec) {
		return func(spec *corev1.PodSpec) { spec.Affinity = podspec.OnNodes(names...) }
	}
	labeled := func(key string) func(*corev1.PodSpec) {
		return func(spec *corev1.PodSpec) { spec.NodeSelector = map[string]string{key: ""} }
	}
	members := []client.Object{
		serverSet("master", "all:2", on("n1")), serverSet("chunkserver", "all:2", labeled("ssd")), serverSet("chunkserver", "all:2", labeled("ssd")),
		serverSet("meta", "meta:2", on("n2")), serverSet("client", "all:2", labeled("client")), &corev1.ConfigMap{},
	}
	pulls := pods.Pulls(members, []string{"master", "chunkserver", "meta"})
	g.Expect(pulls).To(HaveExactElements(
		And(HaveField("Image", "all:2"), HaveField("Components", []string{"chunkserver", "master"})),
		And(HaveField("Image", "meta:2"), HaveField("Components", []string{"meta"}))))
	spec := pulls[0].Set.Spec.Template.Spec
	g.Expect(spec.Affinity.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution.NodeSelectorTerms).To(HaveExactElements(
		podspec.OnNodes("n1").NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution.NodeSelectorTerms[0],
		corev1.NodeSelectorTerm{MatchExpressions: []corev1.NodeSelectorRequirement{{Key: "ssd", Operator: corev1.NodeSelectorOpIn, Values: []string{""}}}}))
	g.Expect(spec.Containers).To(HaveExactElements(And(HaveField("Image", "all:2"), HaveField("Command", []string{podspec.NodeBinary, "guard"}),
		HaveField("SecurityContext", pods.Unprivileged()))))
	g.Expect(spec.HostNetwork).To(BeFalse())
	g.Expect(spec.PriorityClassName).To(BeEmpty(), "nobody else's pod goes for it")
	g.Expect(spec.Volumes).To(HaveLen(1), "nothing but the node binary, which needs no shell in the image")
	g.Expect(spec.ImagePullSecrets).To(HaveExactElements(corev1.LocalObjectReference{Name: "registry"}))
	labels := pulls[0].Set.Spec.Template.Labels
	g.Expect(labels).To(And(HaveKeyWithValue("team", "storage"), HaveKeyWithValue(v1alpha1.LabelImages, "scratch"), Not(HaveKey(v1alpha1.LabelFileSystem))))
	for i := range pulls {
		for key, value := range pulls[i].Set.Spec.Selector.MatchLabels {
			g.Expect(pulls[i].Set.Spec.Template.Labels).To(HaveKeyWithValue(key, value))
		}
	}
	g.Expect(pulls[0].Set.Spec.Selector).NotTo(Equal(pulls[1].Set.Spec.Selector))
	g.Expect(pulls[0].Set.Name).NotTo(Equal(pulls[1].Set.Name))

	everywhere := pods.Pulls([]client.Object{serverSet("master", "all:2", on("n1")), serverSet("chunkserver", "all:2", func(*corev1.PodSpec) {})}, []string{"master", "chunkserver"})
	g.Expect(everywhere[0].Set.Spec.Template.Spec.Affinity).To(BeNil(), "an empty term of an affinity matches no node at all")
}

func TestNodesWithoutTheirNewImageAreNamedAndThoseThatCanNotPullItFirst(t *testing.T) {
	g := NewWithT(t)
	pulls := []podspec.Pull{{Image: "all:2", Components: []string{"master", "chunkserver"}}, {Image: "meta:2", Components: []string{"meta"}}}
	servers := []backend.Pod{
		{Component: "master", Node: "n1"}, {Component: "chunkserver", Node: "n1"}, {Component: "chunkserver", Node: "n2"}, {Component: "chunkserver", Node: "n3"},
		{Component: "meta", Node: "n1"}, {Component: "client", Node: "n4"}, {Component: "chunkserver"},
	}
	have := []podspec.PullPod{{Image: "all:2", Node: "n3", Problem: "ErrImagePull"}, {Image: "all:2", Node: "n1", Ready: true}, {Image: "all:2", Node: "n4"}}
	g.Expect(podspec.Unpulled(pulls, servers, have)).To(Equal("3 of 4 are missing: n3 can't pull all:2: ErrImagePull, n1 pulls meta:2, n2 pulls all:2"))
	have = append(have, podspec.PullPod{Image: "meta:2", Node: "n1", Ready: true}, podspec.PullPod{Image: "all:2", Node: "n2", Ready: true},
		podspec.PullPod{Image: "all:2", Node: "n3", Ready: true})
	g.Expect(podspec.Unpulled(pulls, servers, have)).To(BeEmpty())
}
