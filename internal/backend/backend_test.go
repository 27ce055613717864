package backend

import (
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"

	"parallelfs.dev/operator/api/v1alpha1"
)

func TestAPoolKeepsItsSlotAndItsNodes(t *testing.T) {
	g := NewWithT(t)
	pool := func(name, label string) v1alpha1.StoragePoolSpec {
		targets := v1alpha1.TargetsSpec{Directories: []v1alpha1.DirectoryPath{"/data"}}
		return v1alpha1.StoragePoolSpec{Name: name, NodeSelector: v1alpha1.NodeSelector{label: ""}, Copies: 1, Targets: targets}
	}
	in := Input{
		FileSystem: &v1alpha1.FileSystem{
			Spec:   v1alpha1.FileSystemSpec{Type: "Example", StoragePools: []v1alpha1.StoragePoolSpec{pool("new", "ssd"), pool("old", "hdd")}},
			Status: v1alpha1.FileSystemStatus{StoragePools: []v1alpha1.StoragePoolStatus{{Name: "old", Slot: 0}}},
		},
		FileSystemNodes: onNodes("old", "n9"),
		Nodes:           []Node{{Name: "n1", Labels: map[string]string{"ssd": "", "hdd": ""}}},
	}
	of := func(most int32) *Numbers {
		return NewNumbers(in, OnDisks{}, Numbering{Most: map[v1alpha1.NumberKind]int32{v1alpha1.NumberOfStoragePool: most}})
	}
	g.Expect(RecordPools(in, OnDisks{}, of(2))).To(Equal([]PoolRecord{{Name: "new", Slot: 1, Nodes: []string{"n1"}}, {Name: "old", Slot: 0, Nodes: []string{"n1", "n9"}}}))
	_, err := RecordPools(in, OnDisks{}, of(1))
	g.Expect(err).To(MatchError(ContainSubstring(`storage pool "new" is one too many: a Example filesystem has at most 1`)))

	in.FileSystem.Spec.StoragePools[0].Targets.Directories = nil
	g.Expect(RecordPools(in, OnDisks{}, of(1))).To(ContainElement(And(HaveField("Name", "new"), HaveField("Waits", true))),
		"its disks may say which slot it has, none is chosen yet, and no slot is used up meanwhile")
}

func TestServersThatJoinAreNamed(t *testing.T) {
	g := NewWithT(t)
	fs := &v1alpha1.FileSystem{Status: v1alpha1.FileSystemStatus{StoragePools: []v1alpha1.StoragePoolStatus{{Name: "ssd", UsedBytes: 7}}}}
	in := Input{FileSystem: fs, FileSystemNodes: onNodes("ssd", "n1", "n2")}
	metadata := v1alpha1.MetadataRecord{Node: "n1"}
	numbers := NewNumbers(in, OnDisks{}, Numbering{Most: map[v1alpha1.NumberKind]int32{v1alpha1.NumberOfStoragePool: 2}})
	same, joins := Recorded(in, metadata, []PoolRecord{{Name: "ssd", Nodes: []string{"n1", "n2"}}}, numbers)
	g.Expect(joins).To(BeEmpty())
	g.Expect(same.StoragePools).To(Equal(fs.Status.StoragePools), "what was observed of a pool stays")
	g.Expect(same.Metadata).To(HaveValue(Equal(metadata)))
	g.Expect(same.Given.HighestOf(v1alpha1.NumberOfStoragePool)).To(Equal(int32(1)))

	pools := []PoolRecord{{Name: "ssd", Nodes: []string{"n1", "n2", "n3"}}, {Name: "bulk", Slot: 1, Nodes: []string{"n4"}}}
	grown, joins := Recorded(in, metadata, pools, numbers)
	g.Expect(joins).To(Equal([]string{"node n3 joins storage pool ssd", "storage pool bulk is made"}))
	g.Expect(grown.StoragePools).To(HaveExactElements(HaveField("Name", "ssd"), And(HaveField("Name", "bulk"), HaveField("Slot", int32(1)))))
	g.Expect(PoolNodes(pools)).To(Equal(map[string][]string{"ssd": {"n1", "n2", "n3"}, "bulk": {"n4"}}))
	g.Expect(fs.Status.Metadata).To(BeNil(), "the question is left as it was")
	g.Expect(fs.Status.StoragePools).To(HaveLen(1))
}

func TestPodsOfDifferentSlotsAreToldApart(t *testing.T) {
	g := NewWithT(t)
	p := Pods{FileSystem: &v1alpha1.FileSystem{ObjectMeta: metav1.ObjectMeta{Name: "scratch", Namespace: "storage"}}, Software: "example"}
	first := Workload{Component: "meta", Slot: "0"}
	set := p.DaemonSet("meta-0", first, p.Template(first))
	g.Expect(set.Spec.Selector.MatchLabels).To(HaveKeyWithValue(v1alpha1.LabelSlot, "0"))
	g.Expect(p.Labels(Workload{Component: "meta", Slot: "1"})).NotTo(HaveKeyWithValue(v1alpha1.LabelSlot, "0"))
	g.Expect(set.Spec.Template.Labels).To(HaveKeyWithValue("app.kubernetes.io/name", "example"))
}

func TestOnlyWhatNeedsARestartChangesTheHashOfATemplate(t *testing.T) {
	g := NewWithT(t)
	p := Pods{FileSystem: &v1alpha1.FileSystem{ObjectMeta: metav1.ObjectMeta{Name: "scratch"}}}
	hash := func(told string, nodes ...string) string {
		w := Workload{Component: "meta"}
		pod := p.Template(w)
		pod.Spec.Affinity = OnNodes(nodes...)
		return p.DaemonSet("meta", w, pod, told).Spec.Template.Annotations[TemplateHashAnnotation]
	}
	g.Expect(hash("a", "n1")).To(Equal(hash("a", "n1", "n2")), "which nodes there are is no reason to restart")
	g.Expect(hash("a", "n1")).NotTo(Equal(hash("b", "n1")), "what a daemon is told is one")
}

func TestPodsHaveWhatTheUserAsksForAndOnlyResourcesRestartThem(t *testing.T) {
	g := NewWithT(t)
	template := func(pods v1alpha1.PodsSpec) corev1.PodTemplateSpec {
		p := Pods{FileSystem: &v1alpha1.FileSystem{ObjectMeta: metav1.ObjectMeta{Name: "scratch"}, Spec: v1alpha1.FileSystemSpec{Pods: pods}}}
		w := Workload{Component: "meta", Role: v1alpha1.RoleMetadata}
		pod := p.Template(w)
		pod.Spec.Containers = []corev1.Container{p.Container("meta", "example-meta:7.4.6", "run", "config", "meta.json"), {Name: "probe"}}
		return p.DaemonSet("meta", w, pod, "told").Spec.Template
	}
	before := template(v1alpha1.PodsSpec{})
	g.Expect(before.Spec.Tolerations).To(ConsistOf(corev1.Toleration{Operator: corev1.TolerationOpExists}))
	g.Expect(before.Spec.PriorityClassName).To(Equal("system-node-critical"))

	asked := v1alpha1.PodsSpec{
		Tolerations: []v1alpha1.Toleration{
			{Key: "storage", Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffectNoExecute, TolerationSeconds: new(int64(60))},
			{Key: "tier", Operator: corev1.TolerationOpEqual, Value: "fast"},
		},
		PriorityClassName: "storage", Labels: map[string]v1alpha1.LabelValue{"cost-center": "7", v1alpha1.LabelFileSystem: "another"},
		Annotations: map[string]v1alpha1.AnnotationValue{"scrape": "true"}, ImagePullSecrets: []v1alpha1.SecretReference{{Name: "registry"}},
	}
	after := template(asked)
	g.Expect(after.Spec.Tolerations).To(HaveExactElements(
		corev1.Toleration{Key: "storage", Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffectNoExecute, TolerationSeconds: new(int64(60))},
		corev1.Toleration{Key: "tier", Operator: corev1.TolerationOpEqual, Value: "fast"}))
	g.Expect(after.Spec.PriorityClassName).To(Equal("storage"))
	g.Expect(after.Spec.ImagePullSecrets).To(HaveExactElements(corev1.LocalObjectReference{Name: "registry"}))
	g.Expect(after.Labels).To(And(HaveKeyWithValue("cost-center", "7"), HaveKeyWithValue(v1alpha1.LabelFileSystem, "scratch")), "the operator's own labels stay")
	g.Expect(after.Annotations).To(HaveKeyWithValue("scrape", "true"))
	g.Expect(after.Annotations[TemplateHashAnnotation]).To(Equal(before.Annotations[TemplateHashAnnotation]), "nothing of it restarts a daemon")

	asked.Resources.Metadata = &v1alpha1.ContainerResources{
		Requests: v1alpha1.ResourceAmounts{corev1.ResourceMemory: "16Gi"}, Limits: v1alpha1.ResourceAmounts{corev1.ResourceMemory: "32Gi"},
	}
	asked.Resources.Storage = &v1alpha1.ContainerResources{Requests: v1alpha1.ResourceAmounts{corev1.ResourceMemory: "1Gi"}}
	after = template(asked)
	g.Expect(after.Spec.Containers[0].Resources.Requests.Memory().String()).To(Equal("16Gi"))
	g.Expect(after.Spec.Containers[0].Resources.Limits.Memory().String()).To(Equal("32Gi"))
	g.Expect(after.Spec.Containers[1].Resources.Requests).To(BeEmpty(), "only the daemon has it")
	g.Expect(after.Annotations[TemplateHashAnnotation]).NotTo(Equal(before.Annotations[TemplateHashAnnotation]))
}

func TestServersThatAreAwayAreNamedWhereNothingElseIsWrong(t *testing.T) {
	g := NewWithT(t)
	seen := Observation{Servers: []ServerStatus{{Name: "a.n1", Online: true}, {Name: "b.n2", Message: "it is starting"}, {Name: "c.n3"}}}
	seen.NameAway(func(i ServerStatus) bool { return i.Name == "c.n3" })
	g.Expect(seen.Problems).To(Equal([]Problem{{Reason: v1alpha1.ReasonServersMissing, Message: "servers are not online: b.n2 (it is starting)"}}))
	seen.Problems = []Problem{{Reason: v1alpha1.ReasonTargetsMissing}}
	seen.NameAway(func(ServerStatus) bool { return false })
	g.Expect(seen.Problems).To(ConsistOf(HaveField("Reason", v1alpha1.ReasonTargetsMissing)), "the cause is said already")
}

func TestTheNamesOfFileSystemNodesDoNotCollide(t *testing.T) {
	g := NewWithT(t)
	names := map[string]string{}
	long := strings.Repeat("a", 60)
	for _, of := range [][2]string{
		{"scratch", "n1"}, {"scratch", "n1.example.com"}, {"scratch", "n1.example.org"}, {"scratch", long}, {"scratch", long + "b"},
		{"a", "b-n1"}, {"a-b", "n1"}, {"scratch", strings.Repeat("a", 31) + "-x"}, {strings.Repeat("f", 63), strings.Repeat("n", 253)},
	} {
		name := FileSystemNodeName(of[0], of[1])
		g.Expect(validation.IsDNS1123Subdomain(name)).To(BeEmpty(), name)
		g.Expect(name).To(MatchRegexp("^" + of[0] + "-[a-z0-9-]*[a-z0-9]-[0-9a-f]{16}$"))
		g.Expect(names).NotTo(HaveKey(name))
		names[name] = of[0] + " " + of[1]
	}
	g.Expect(FileSystemNodeName("scratch", "n1")).To(Equal("scratch-n1-331ac9316742474d"), "a name is for ever")
}

func TestEveryContainerOfAPodWithExclusiveCPUsIsLimited(t *testing.T) {
	g := NewWithT(t)
	pod := &corev1.PodTemplateSpec{Spec: corev1.PodSpec{InitContainers: make([]corev1.Container, 1), Containers: make([]corev1.Container, 2)}}
	pinning := &v1alpha1.CPUPinning{Mode: v1alpha1.PinningKubeletStatic, CPUs: new(int32(8)), Memory: resource.MustParse("16Gi")}
	told, err := Pin(pod, "spec.metadataServers", pinning, "told")
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(told).To(Equal([]any{"told"}))
	for _, c := range append(pod.Spec.InitContainers, pod.Spec.Containers...) {
		g.Expect(c.Resources.Limits).NotTo(BeEmpty())
		g.Expect(c.Resources.Limits).To(Equal(c.Resources.Requests), "or the kubelet gives no CPU of its own to any of them")
	}
	g.Expect(pod.Spec.Containers[0].Resources.Limits.Cpu().String()).To(Equal("8"))
}

func TestSentencesStayReadable(t *testing.T) {
	g := NewWithT(t)
	g.Expect(List(nil)).To(BeEmpty())
	g.Expect(List([]string{"a", "b"})).To(Equal("a, b"))
	g.Expect(List([]string{strings.Repeat("ä", 400), "b"})).To(Equal(strings.Repeat("ä", 400)+" and 1 more"), "the first item may say what to do")
	g.Expect(List([]string{strings.Repeat("ä", 190), strings.Repeat("b", 190), "c"})).To(Equal(strings.Repeat("ä", 190) + " and 2 more"))
	g.Expect(List(strings.Split("abcdefghij", ""))).To(Equal("a, b, c and 7 more"))
	g.Expect(Shorten(strings.Repeat("ä", 501))).To(Equal(strings.Repeat("ä", 500) + "..."))
	g.Expect(Coarse(1234567, 1000000)).To(BeEquivalentTo(1234000))
	g.Expect(Coarse(7, 100)).To(BeEquivalentTo(7))
	g.Expect(Ratio(3, 4)).To(Equal("3/4"))
}
