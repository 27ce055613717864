package moosefs

import (
	"slices"
	"testing"

	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"parallelfs.dev/operator/api/v1alpha1"
	"parallelfs.dev/operator/internal/backend"
	"parallelfs.dev/operator/internal/backend/shared/assign"
	"parallelfs.dev/operator/internal/backend/shared/nodefacts"
)

// short returns a filesystem with a minimal spec, and the operator's first choices for it.
func short(t *testing.T, nodes v1alpha1.NodesSpec) (backend.Input, v1alpha1.FileSystemSpec) {
	t.Helper()
	in := everything("4.57.5")
	in.FileSystem.Spec = v1alpha1.FileSystemSpec{
		Type: v1alpha1.MooseFS, Nodes: &nodes,
		MetadataServers: v1alpha1.MetadataSpec{Targets: v1alpha1.TargetsSpec{Directories: []v1alpha1.DirectoryPath{"/data/meta"}}},
		StoragePools:    []v1alpha1.StoragePoolSpec{{Name: "data", Targets: v1alpha1.TargetsSpec{Directories: []v1alpha1.DirectoryPath{"/data/scratch"}}}},
	}
	asked := *in.FileSystem.Spec.DeepCopy()
	choose(t, in, &asked)
	return in, asked
}

// choose does what a pass does before it records anything.
func choose(t *testing.T, in backend.Input, asked *v1alpha1.FileSystemSpec) {
	t.Helper()
	var chosen v1alpha1.ChosenStatus
	NewWithT(t).Expect(New().Choose(in, asked, &chosen)).To(Succeed())
	in.FileSystem.Spec, in.FileSystem.Status.Chosen = *asked.DeepCopy(), &chosen
	in.FileSystem.Complete()
}

// record does what a pass does with an allocation.
func record(t *testing.T, in *backend.Input) {
	t.Helper()
	allocation, err := New().Allocate(*in)
	NewWithT(t).Expect(err).NotTo(HaveOccurred())
	in.FileSystem.Status = allocation.Status
	in.FileSystemNodes = assign.WithRecords(in.FileSystemNodes, allocation.Nodes)
}

func TestRolesThatSelectNoNodesHaveThoseOfTheFileSystem(t *testing.T) {
	for name, nodes := range map[string]v1alpha1.NodesSpec{
		"by their names": {Names: []string{"n1", "n2", "n3"}},
		"by a label": {Selector: &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{
			{Key: "lab", Operator: metav1.LabelSelectorOpIn, Values: []string{"a", "b"}},
		}}},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			in, asked := short(t, nodes)
			for i := range in.Nodes {
				in.Nodes[i].Labels = map[string]string{"lab": "a"}
			}
			g.Expect(in.FileSystem.Spec.Version).To(Equal("4.57.5"), "the newest of which there is an image")
			record(t, &in)
			g.Expect(in.FileSystem.Status.Metadata.Node).To(Equal("n1"))
			choose(t, in, &asked)
			g.Expect(in.FileSystem.Status.Chosen.Metaloggers).To(Equal([]string{"n2", "n3"}), "other nodes than the master's")

			in.Nodes = append([]backend.Node{{Name: "a0", IP: "10.0.0.9", Ready: true, Labels: map[string]string{"lab": "b"}}}, in.Nodes...)
			if asked.Nodes.Names != nil {
				asked.Nodes.Names = append(asked.Nodes.Names, "a0", "n9")
				g.Expect(nodefacts.Strangers(&v1alpha1.FileSystem{Spec: asked}, in.Nodes)).To(Equal([]string{"n9"}))
			}
			in.Images.Daemons["moosefs-4.58.1"] = "moosefs:4.58.1"
			choose(t, in, &asked)
			record(t, &in)
			g.Expect(in.FileSystem.Status.Chosen).To(HaveValue(And(HaveField("Metaloggers", []string{"n2", "n3"}), HaveField("Version", "4.57.5"))),
				"a node that joins, and a newer image, change nothing that is there")
			g.Expect(in.FileSystem.Status.Metadata.Node).To(Equal("n1"))
			pool, _ := in.Indexed().Pool("data")
			g.Expect(pool.Nodes).To(Equal([]string{"a0", "n1", "n2", "n3"}))
			g.Expect(backend.ClientNodes(in.FileSystem, in.Nodes)).To(HaveLen(4))

			objects, err := New().Members(in)
			g.Expect(err).NotTo(HaveOccurred())
			terms := map[string][]corev1.NodeSelectorTerm{}
			for _, o := range objects {
				if set, is := o.(*appsv1.DaemonSet); is && set.Spec.Template.Spec.Affinity != nil {
					terms[set.Name] = set.Spec.Template.Spec.Affinity.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution.NodeSelectorTerms
				}
			}
			g.Expect(terms["scratch-metalogger"]).To(HaveLen(2))
			if asked.Nodes.Names != nil {
				g.Expect(terms["scratch-client"]).To(HaveLen(5), "one for each name")
			} else {
				g.Expect(terms["scratch-client"]).To(HaveExactElements(HaveField("MatchExpressions", HaveExactElements(
					corev1.NodeSelectorRequirement{Key: "lab", Operator: corev1.NodeSelectorOpIn, Values: []string{"a", "b"}}))))
			}
		})
	}
}

func TestAMetaloggerThatGetsTheMasterIsReplaced(t *testing.T) {
	g := NewWithT(t)
	in, asked := short(t, v1alpha1.NodesSpec{Names: []string{"n1", "n2", "n3"}})
	record(t, &in)
	choose(t, in, &asked)
	in.FileSystem.Status.Metadata.Node = "n2"
	choose(t, in, &asked)
	g.Expect(in.FileSystem.Status.Chosen.Metaloggers).To(Equal([]string{"n1", "n3"}))
}

func TestASelectorOfARoleGoesBeforeTheNodesOfTheFileSystem(t *testing.T) {
	g := NewWithT(t)
	in, _ := short(t, v1alpha1.NodesSpec{Names: []string{"n1", "n2", "n3"}})
	in.FileSystem.Spec.StoragePools[0].NodeSelector = v1alpha1.NodeSelector{storageLabel: ""}
	in.FileSystem.Spec.MetadataServers.NodeSelector = v1alpha1.NodeSelector{"none": ""}
	_, err := New().Allocate(in)
	g.Expect(err).To(MatchError(ContainSubstring("no node matches spec.metadataServers.nodeSelector (none=)")))
	in.FileSystem.Spec.MetadataServers.NodeSelector = nil
	record(t, &in)
	pool, _ := in.Indexed().Pool("data")
	g.Expect(pool.Nodes).To(Equal([]string{"n1", "n2"}))

	in, _ = short(t, v1alpha1.NodesSpec{Names: []string{"n8", "n9"}})
	_, err = New().Allocate(in)
	g.Expect(err).To(MatchError(ContainSubstring("no node matches spec.nodes (n8, n9)")))
}

func TestAnUnsetVersionIsOneThatHasAnImage(t *testing.T) {
	g := NewWithT(t)
	in, asked := everything("4.57.5"), v1alpha1.FileSystemSpec{}
	in.Images.Daemons = map[string]string{"moosefs-latest": "a", "beegfs-mgmtd": "b"}
	var chosen v1alpha1.ChosenStatus
	g.Expect(New().Choose(in, &asked, &chosen)).To(MatchError(ContainSubstring("spec.version is absent, and the operator has no image of a certain version")))
	in.FileSystem.Status.Version = "3.0.117"
	g.Expect(New().Choose(in, &asked, &chosen)).To(Succeed())
	g.Expect(chosen.Version).To(Equal("3.0.117"), "what it runs stays when the version is taken out of the spec")
}

func TestAFileSystemThatNamesNoPortsGetsTheFirstFreeOnesAndKeepsThem(t *testing.T) {
	g := NewWithT(t)
	in, asked := short(t, v1alpha1.NodesSpec{Names: []string{"n1", "n2", "n3"}})
	g.Expect(in.FileSystem.Spec.MooseFS.BasePort).To(Equal(int32(9419)))
	in.Claims = []backend.Claims{{Of: "storage/home", Ports: backend.PortRange{First: 9440, Count: 32}}, {Of: "storage/new"}}
	choose(t, in, &asked)
	g.Expect(in.FileSystem.Status.Chosen.BasePort).To(Equal(int32(9483)), "nothing is on record yet, and another one has taken those before")
	record(t, &in)
	in.Claims = nil
	choose(t, in, &asked)
	g.Expect(in.FileSystem.Spec.MooseFS.BasePort).To(Equal(int32(9483)))
	g.Expect(New().Nodes(in)[0].Spec.Facts.BasePort).To(Equal(int32(9483)), "the disks say it to who makes the filesystem again")

	old := everything("4.57.5")
	old.FileSystem.Spec.MooseFS.BasePort = 0
	old.FileSystem.Status.Metadata = &v1alpha1.MetadataRecord{Node: "n1"}
	old.Claims = []backend.Claims{{Of: "storage/home", Ports: backend.PortRange{First: 9419, Count: 32}}}
	choose(t, old, old.FileSystem.Spec.DeepCopy())
	g.Expect(old.FileSystem.Spec.MooseFS.BasePort).To(Equal(int32(9419)), "one that ran before ports were chosen keeps those that it had")
}

func TestOnePoolTakesTheFilesOutsideOfAllWhateverTheOrderOfTheList(t *testing.T) {
	g := NewWithT(t)
	root := func(name string) func(in backend.Input) bool {
		return func(in backend.Input) bool {
			for _, c := range storageClasses(in, nodefacts.NewDomains(in)).Commands {
				if len(c.Argv) == 3 && c.Argv[0] == "mfssetsclass" && c.Argv[2] == "/run/parallelfs-admin" {
					return c.Argv[1] == name
				}
			}
			return false
		}
	}
	in := everything("4.57.5")
	record(t, &in)
	in = in.Indexed()
	g.Expect(in).To(Satisfy(root("ssd")))
	in.FileSystem.Spec.DefaultStoragePool = "ssd"
	slices.Reverse(in.FileSystem.Spec.StoragePools)
	g.Expect(in).To(Satisfy(root("ssd")))
	in.FileSystem.Spec.DefaultStoragePool = "bulk"
	g.Expect(in).To(Satisfy(root("bulk")))
}
