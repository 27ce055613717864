package podspec_test

import (
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/validation"

	"parallelfs.dev/operator/api/v1alpha1"
	"parallelfs.dev/operator/internal/backend"
	"parallelfs.dev/operator/internal/backend/shared/nodefacts"
	"parallelfs.dev/operator/internal/backend/shared/podspec"
)

func TestAGuardIsAPodWithoutRightsThatBelongsOnItsNodeAndDoesNotStayWhereNoPodMayCome(t *testing.T) {
	g := NewWithT(t)
	fs := &v1alpha1.FileSystem{ObjectMeta: metav1.ObjectMeta{Name: "scratch", Namespace: "storage"}}
	fs.Spec.Pods.Labels = map[string]v1alpha1.LabelValue{"team": "storage", v1alpha1.LabelGuarded: "mine"}
	fs.Spec.Pods.Tolerations = []v1alpha1.Toleration{{Operator: corev1.TolerationOpExists}}
	n := &v1alpha1.FileSystemNode{ObjectMeta: metav1.ObjectMeta{Name: backend.FileSystemNodeName("scratch", "oss1"), Namespace: "storage"}}
	n.Spec.Node = "oss1"
	node := backend.Node{Name: "oss1", Taints: nodefacts.TaintsOfPeople([]corev1.Taint{
		{Key: "node.kubernetes.io/unschedulable", Effect: corev1.TaintEffectNoSchedule},
		{Key: "storage", Value: "only", Effect: corev1.TaintEffectNoExecute},
		{Key: "better-not", Effect: corev1.TaintEffectPreferNoSchedule},
	})}
	pods := podspec.Pods{FileSystem: fs, Images: backend.Images{Node: "node:1"}}
	d := pods.Guard(n, node)
	spec := d.Spec.Template.Spec
	g.Expect(spec.Tolerations).To(HaveExactElements(corev1.Toleration{Key: "storage", Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffectNoExecute}))
	g.Expect(spec.Affinity).To(Equal(podspec.OnNodes("oss1")))
	g.Expect(spec.HostNetwork).To(BeFalse())
	g.Expect(*spec.AutomountServiceAccountToken).To(BeFalse())
	g.Expect(spec.Volumes).To(BeEmpty())
	g.Expect(spec.InitContainers).To(BeEmpty())
	g.Expect(spec.Containers).To(HaveExactElements(And(HaveField("Command", []string{"/node", "guard"}), HaveField("SecurityContext", pods.Unprivileged()))))
	g.Expect(d.Spec.Template.Labels).To(And(HaveKeyWithValue("team", "storage"), Not(HaveKey(v1alpha1.LabelFileSystem))), "it is no daemon")

	other := n.DeepCopy()
	other.Name = backend.FileSystemNodeName("scratch", "oss2")
	for _, open := range []bool{true, false} {
		budget := podspec.GuardBudget(fs, n, open)
		g.Expect(podspec.IsOpen(budget)).To(Equal(open))
		selector, err := metav1.LabelSelectorAsSelector(budget.Spec.Selector)
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(selector.Matches(labels.Set(d.Spec.Template.Labels))).To(BeTrue())
		g.Expect(selector.Matches(labels.Set(pods.Guard(other, node).Spec.Template.Labels))).To(BeFalse())
	}
	g.Expect(podspec.IsOpen(&policyv1.PodDisruptionBudget{})).To(BeTrue())
	without := pods.GuardHash(node.Taints)
	g.Expect(pods.GuardHash(nil)).NotTo(Equal(without))
	fs.Spec.Pods.ServiceAccountName = "storage"
	g.Expect(pods.GuardHash(node.Taints)).NotTo(Equal(without))
	g.Expect(pods.Guard(n, node).Spec.Template.Spec.ServiceAccountName).To(Equal("storage"))
}

func TestTheGuardsOfTwoFilesystemsOfOneNameAreDistinguishedByOneLabel(t *testing.T) {
	g := NewWithT(t)
	owner := func(namespace, name string) string {
		fs := &v1alpha1.FileSystem{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: namespace}}
		n := &v1alpha1.FileSystemNode{ObjectMeta: metav1.ObjectMeta{Name: backend.FileSystemNodeName(name, "oss1"), Namespace: namespace}}
		value := podspec.Pods{FileSystem: fs}.Guard(n, backend.Node{Name: "oss1"}).Spec.Template.Labels[v1alpha1.LabelGuardOwner]
		g.Expect(validation.IsValidLabelValue(value)).To(BeEmpty(), value)
		return value
	}
	g.Expect(owner("storage", "scratch")).To(Equal("storage.scratch"))
	g.Expect(owner("home", "scratch")).To(Equal("home.scratch"))
	// The names have the maximum length, and differ only in the middle.
	namespace, name := strings.Repeat("n", 62), strings.Repeat("s", 40)
	seen := map[string]bool{}
	for _, fs := range [][2]string{{namespace + "a", name}, {namespace + "b", name}, {namespace[:45] + "-", name}, {namespace[:45], "-" + name[1:]}} {
		value := owner(fs[0], fs[1])
		g.Expect(seen).NotTo(HaveKey(value))
		seen[value] = true
	}
}

func TestANodeWithServersHasAGuardUntilTheyRetire(t *testing.T) {
	g := NewWithT(t)
	n := &v1alpha1.FileSystemNode{}
	g.Expect(podspec.Guarded(n)).To(BeFalse())
	n.Spec.Members = []v1alpha1.NodeMember{{Name: "server-ssd", Retired: true}, {Name: "server-hdd"}}
	g.Expect(podspec.Guarded(n)).To(BeTrue())
	n.Spec.GivenUp = &v1alpha1.NodeGivenUp{}
	g.Expect(podspec.Guarded(n)).To(BeFalse())
	n.Spec.GivenUp, n.Spec.Members[1].Retired = nil, true
	g.Expect(podspec.Guarded(n)).To(BeFalse())
}
