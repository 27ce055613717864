package lustre_test

import (
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/cpuset"

	"parallelfs.dev/operator/api/v1alpha1"
	"parallelfs.dev/operator/internal/backend"
	"parallelfs.dev/operator/internal/backend/backendtest"
	"parallelfs.dev/operator/internal/backend/lustre"
	"parallelfs.dev/operator/internal/plan"
)

// four has the CPUs of the node on which a real Lustre was pinned.
var four = cpuset.New(0, 1, 2, 3)

// lists parses lists of CPUs; an empty one requests none.
func lists(t *testing.T, texts ...string) []cpuset.CPUSet {
	t.Helper()
	out := make([]cpuset.CPUSet, len(texts))
	for i, text := range texts {
		var err error
		out[i], err = cpuset.Parse(text)
		NewWithT(t).Expect(err).NotTo(HaveOccurred())
	}
	return out
}

func TestTheModuleOptionsHaveOnePartitionForEachRole(t *testing.T) {
	for name, c := range map[string]struct {
		version, metadata string
		pools             []string
		want              []string
		found             [][]int
	}{
		"as on the real one": {"2.17.57", "2-3", []string{"0-1", "0,1"},
			[]string{`options libcfs cpu_pattern="0[0-1] 1[2-3]"`, "options mdt mds_num_cpts=[1] mds_rdpg_num_cpts=[1]", "options ofd oss_cpts=[0] oss_io_cpts=[0]"},
			[][]int{{0, 1}, {2, 3}}},
		"the module of OSTs had another name": {"2.15.6", "", []string{"0-1"},
			[]string{`options libcfs cpu_pattern="0[0-1] 1[2-3]"`, "options ost oss_cpts=[0] oss_io_cpts=[0]"}, [][]int{{0, 1}, {2, 3}}},
		"only metadata is bound, and the rest has the rest": {"2.17.1", "3", []string{""},
			[]string{`options libcfs cpu_pattern="0[3] 1[0-2]"`, "options mdt mds_num_cpts=[0] mds_rdpg_num_cpts=[0]"}, [][]int{{3}, {0, 1, 2}}},
		"both share their CPUs": {"2.17.1", "0-3", []string{"0-3"},
			[]string{`options libcfs cpu_pattern="0[0-3]"`, "options mdt mds_num_cpts=[0] mds_rdpg_num_cpts=[0]", "options ofd oss_cpts=[0] oss_io_cpts=[0]"},
			[][]int{{0, 1, 2, 3}}},
		"nobody asks": {"2.17.1", "", []string{"", ""}, nil, nil},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			p, why := lustre.PartitionsOf("n1", four, lists(t, c.metadata)[0], lists(t, c.pools...))
			g.Expect(why).To(BeEmpty())
			g.Expect(p.ModuleOptions(c.version)).To(Equal(c.want))
			loaded := backend.LoadedModules{Partitions: c.found, Parameters: map[string]string{}}
			for _, line := range c.want {
				words := strings.Fields(line)
				for _, word := range words[2:] {
					name, value, _ := strings.Cut(word, "=")
					loaded.Parameters[words[1]+"."+name] = value
				}
			}
			for _, role := range []v1alpha1.Role{v1alpha1.RoleMetadata, v1alpha1.RoleStorage} {
				g.Expect(p.Drift(role, c.version, loaded)).To(BeEmpty())
				g.Expect(p.Drift(role, c.version, backend.LoadedModules{})).To(BeEmpty(), "what was not said does not differ")
			}
		})
	}
}

func TestOtherOptionsOfLoadedModulesAreReported(t *testing.T) {
	p, _ := lustre.PartitionsOf("n1", four, cpuset.New(2, 3), lists(t, "0-1"))
	asked := [][]int{{0, 1}, {2, 3}}
	for says, c := range map[string]struct {
		role       v1alpha1.Role
		partitions [][]int
		parameters map[string]string
	}{
		"the partitions of CPUs are 0[0-3], and 0[0-1] 1[2-3] are asked for": {v1alpha1.RoleMetadata, [][]int{{0, 1, 2, 3}}, nil},
		"the partitions of CPUs are 0[2-3] 1[0-1], and":                      {v1alpha1.RoleStorage, [][]int{{2, 3}, {0, 1}}, nil},
		"the module mdt was loaded with mds_num_cpts=(null), and [1] is asked for": {
			v1alpha1.RoleMetadata, asked, map[string]string{"mdt.mds_num_cpts": "(null)", "ofd.oss_cpts": "(null)"}},
		"the module ofd was loaded with oss_io_cpts=[1], and [0] is asked for": {
			v1alpha1.RoleStorage, asked, map[string]string{"ofd.oss_cpts": "[0]", "ofd.oss_io_cpts": "[1]"}},
	} {
		NewWithT(t).Expect(p.Drift(c.role, "2.17.57", backend.LoadedModules{Partitions: c.partitions, Parameters: c.parameters})).To(ContainSubstring(says))
	}
}

func TestEachOptionThatBindsThreadsIsAskedFor(t *testing.T) {
	g := NewWithT(t)
	p, _ := lustre.PartitionsOf("n1", four, cpuset.New(2, 3), lists(t, "0-1"))
	var asked []string
	for _, argv := range lustre.New().Questions("", ":/pfs").Commands() {
		asked = append(asked, argv...)
	}
	for _, version := range []string{"2.15.6", "2.17.57"} {
		for _, line := range p.ModuleOptions(version)[1:] {
			words := strings.Fields(line)
			for _, word := range words[2:] {
				name, _, _ := strings.Cut(word, "=")
				g.Expect(asked).To(ContainElement("/sys/module/" + words[1] + "/parameters/" + name))
			}
		}
	}
}

func TestUnsupportedOptionsOfModulesAreRefused(t *testing.T) {
	for says, c := range map[string]struct {
		metadata string
		pools    []string
	}{
		"asks for the CPUs 0-1 for one of the pools with OSTs on node n1, and for 2-3 for another":    {"", []string{"0-1", "2-3"}},
		"asks for the CPUs (none) for one of the pools with OSTs on node n1, and for 2-3 for another": {"", []string{"", "2-3"}},
		"cpuPinning of the MDTs of node n1 asks for the CPUs 1-2, and that of its OSTs for 0-1. Both": {"1-2", []string{"0-1"}},
	} {
		_, why := lustre.PartitionsOf("n1", four, lists(t, c.metadata)[0], lists(t, c.pools...))
		NewWithT(t).Expect(why).To(ContainSubstring(says))
	}
	var even, all []int
	for i := range 512 {
		if all = append(all, i); i%2 == 0 {
			even = append(even, i)
		}
	}
	_, why := lustre.PartitionsOf("n1", cpuset.New(all...), cpuset.New(even...), nil)
	NewWithT(t).Expect(why).To(ContainSubstring("more ranges than the kernel takes in an option of a module (1024 characters)"))
}

// onCPUs requests CPUs.
func onCPUs(list v1alpha1.CPUList) *v1alpha1.CPUPinning {
	return &v1alpha1.CPUPinning{Mode: v1alpha1.PinningCPUSet, CPUSets: []v1alpha1.CPUList{list}}
}

// twoSockets gives every node two sockets with a CPU each, and computes the CPUs of all servers.
func twoSockets(t *testing.T, in *backend.Input) {
	t.Helper()
	for node, found := range in.Inventories {
		found.CPU.NUMANodes = []v1alpha1.NUMANode{{ID: 0, CPUs: "0"}, {ID: 1, CPUs: "1"}}
		in.Inventories[node] = found
	}
	question := plan.PinInput{
		FileSystem: "storage/scratch", Daemons: lustre.New().PinDaemons(in.FileSystem, in.FileSystemNodes), Inventories: in.Inventories,
		Others: map[string][]plan.PinDaemon{},
	}
	for i := range in.Others {
		other := &in.Others[i]
		question.Others[other.Namespace+"/"+other.Name] = lustre.New().PinDaemons(other, in.OthersNodes[other.UID])
	}
	var problems []plan.Problem
	in.Pinnings, problems = plan.Pin(question)
	NewWithT(t).Expect(problems).To(BeEmpty())
}

// pinned is everything, with metadata on the CPU 0 of its nodes and data on the CPU 1.
func pinned(t *testing.T, asks func(fs *v1alpha1.FileSystem)) backend.Input {
	t.Helper()
	in := running(t)
	in.FileSystem.Spec.MetadataServers.CPUPinning, in.FileSystem.Spec.StoragePools[0].CPUPinning = onCPUs("0"), onCPUs("1")
	if asks != nil {
		asks(in.FileSystem)
	}
	twoSockets(t, &in)
	return in
}

// optionsOf returns the module options of a node.
func optionsOf(in backend.Input, node string) *v1alpha1.ModuleOptions {
	for _, n := range lustre.New().Nodes(in) {
		if n.Spec.Node == node {
			return n.Spec.ModuleOptions
		}
	}
	return nil
}

var split = []string{`options libcfs cpu_pattern="0[1] 1[0]"`, "options mdt mds_num_cpts=[1] mds_rdpg_num_cpts=[1]", "options ofd oss_cpts=[0] oss_io_cpts=[0]"}

func TestTheNodeFileOfEachNodeWithTargetsHasTheModuleOptions(t *testing.T) {
	g := NewWithT(t)
	in := pinned(t, nil)
	g.Expect(optionsOf(in, "n1")).To(HaveValue(Equal(v1alpha1.ModuleOptions{Lines: split})))
	g.Expect(optionsOf(in, "n2")).To(HaveValue(HaveField("Lines", split)))
	g.Expect(optionsOf(in, "n3")).To(BeNil(), "the MGS is never bound")
	in.FileSystem.Spec.Lustre.ModuleOptions = v1alpha1.ModuleOptionsWrite
	g.Expect(optionsOf(in, "n1")).To(HaveValue(HaveField("Write", true)))

	in.FileSystemNodes = lustre.New().Nodes(in)
	in.Pinnings = nil
	g.Expect(optionsOf(in, "n1")).To(HaveValue(HaveField("Lines", split)), "what is not known changes nothing")
	in.FileSystem.Spec.MetadataServers.CPUPinning, in.FileSystem.Spec.StoragePools[0].CPUPinning = nil, &v1alpha1.CPUPinning{Mode: v1alpha1.PinningNone}
	g.Expect(optionsOf(in, "n1")).To(BeNil(), "nobody asks any more")
}

func TestAServerThatHasNotServedWaitsForTheCPUsOfItsNode(t *testing.T) {
	g := NewWithT(t)
	in := pinned(t, nil)
	waits := func() string { return backendtest.Configured(lustre.New(), in, "n1")["ost-ssd"].Waits }
	g.Expect(waits()).To(BeEmpty())
	in.Pinnings = nil
	g.Expect(waits()).To(BeEmpty(), "it has served")
	for i := range in.FileSystemNodes {
		for j := range in.FileSystemNodes[i].Spec.Members {
			for k := range in.FileSystemNodes[i].Spec.Members[j].Targets {
				in.FileSystemNodes[i].Spec.Members[j].Targets[k].Initialized = nil
			}
		}
	}
	g.Expect(waits()).To(Equal("its CPUs on this node are not decided yet"))
}

// loadedWith makes every node report the parameters with which its modules were loaded.
func loadedWith(t *testing.T, in *backend.Input, loaded *backend.LoadedModules) {
	t.Helper()
	said := saying()
	for _, state := range said {
		state.Modules = loaded
	}
	ask(t, in, said)
}

func TestTheStatusShowsTheCPUsOfTheThreadsOfEachRole(t *testing.T) {
	g := NewWithT(t)
	in := pinned(t, nil)
	loadedWith(t, &in, &backend.LoadedModules{Partitions: [][]int{{1}, {0}}, Parameters: map[string]string{"mdt.mds_num_cpts": "[1]", "ofd.oss_cpts": "[0]"}})
	seen := lustre.New().Observe(in)
	g.Expect(seen.Pinned).To(HaveValue(HaveField("Reason", v1alpha1.ReasonAsAsked)))
	g.Expect(seen.Servers).To(ContainElements(
		And(HaveField("Name", "mdt-0.n1"), HaveField("Placement", HaveValue(Equal(v1alpha1.Placement{CPUs: "0", WantedCPUs: "0"})))),
		And(HaveField("Name", "ost-ssd.n2"), HaveField("Placement", HaveValue(Equal(v1alpha1.Placement{CPUs: "1", WantedCPUs: "1"})))),
		And(HaveField("Name", "mgs.n3"), HaveField("Placement", BeNil())),
	))
	g.Expect(seen.Problems).To(BeEmpty())

	loadedWith(t, &in, &backend.LoadedModules{Partitions: [][]int{{0, 1}}, Parameters: map[string]string{"mdt.mds_num_cpts": "(null)"}})
	in.FileSystemNodes = lustre.New().Nodes(in)
	seen = lustre.New().Observe(in)
	g.Expect(seen.Pinned).To(HaveValue(And(HaveField("Reason", v1alpha1.ReasonDrifted), HaveField("Message", And(
		ContainSubstring("mdt-0.n1: the partitions of CPUs are 0[0-1], and 0[1] 1[0] are asked for"), ContainSubstring("(lustre_rmmod)"),
		ContainSubstring("put the lines of spec.moduleOptions of FileSystemNode scratch-n1-"))))))
	g.Expect(seen.Servers).To(ContainElement(And(HaveField("Name", "mdt-0.n1"), HaveField("Placement.CPUs", "0-1"))))
	g.Expect(seen.Problems).To(BeEmpty(), "it serves")

	in.FileSystem.Spec.Lustre.ModuleOptions = v1alpha1.ModuleOptionsWrite
	for i := range in.FileSystemNodes {
		in.FileSystemNodes[i].Status.Agent = &v1alpha1.NodeAgentStatus{Message: "somebody else has written it"}
	}
	g.Expect(lustre.New().Observe(in).Pinned.Message).To(And(ContainSubstring("its agent reports: somebody else has written it"), Not(ContainSubstring("put the lines"))))
}

func TestANodeThatDoesNotSayItsPartitionsIsUnknownAndNotElsewhere(t *testing.T) {
	g := NewWithT(t)
	in := pinned(t, nil)
	loadedWith(t, &in, nil)
	seen := lustre.New().Observe(in)
	g.Expect(seen.Pinned).To(HaveValue(And(HaveField("Reason", v1alpha1.ReasonStarting),
		HaveField("Message", ContainSubstring("mdt-0.n1: its node does not say which partitions of CPUs there are")))))
	in.State, in.StateError = nil, "nobody listens"
	g.Expect(lustre.New().Observe(in).Pinned).To(HaveValue(HaveField("Reason", v1alpha1.ReasonStarting)))
	in.Pinnings = nil
	g.Expect(lustre.New().Observe(in).Pinned).To(HaveValue(HaveField("Reason", v1alpha1.ReasonPinningConflict)))
}

func TestPinnedIsAbsentIfNoRoleAsksForCPUs(t *testing.T) {
	g := NewWithT(t)
	in := running(t)
	loadedWith(t, &in, &backend.LoadedModules{Partitions: [][]int{{0, 1}}})
	seen := lustre.New().Observe(in)
	g.Expect(seen.Pinned).To(BeNil())
	g.Expect(seen.Servers).To(HaveEach(HaveField("Placement", BeNil())))
	g.Expect(optionsOf(in, "n1")).To(BeNil())
}

func TestCPUsThatMDTsAndOSTsShareOnlyPartlyAreRefused(t *testing.T) {
	g := NewWithT(t)
	in := pinned(t, func(fs *v1alpha1.FileSystem) { fs.Spec.MetadataServers.CPUPinning = onCPUs("0-1") })
	g.Expect(lustre.New().Observe(in).Problems).To(ContainElement(And(HaveField("Reason", v1alpha1.ReasonPinningConflict),
		HaveField("Message", ContainSubstring("cpuPinning of the MDTs of node n1 asks for the CPUs 0-1, and that of its OSTs for 1")))))
	g.Expect(optionsOf(in, "n1")).To(BeNil())
}

func TestTheFirstFileSystemOfANodeSetsTheOptionsOfItsModules(t *testing.T) {
	g := NewWithT(t)
	first := pinned(t, nil)
	first.FileSystemNodes = lustre.New().Nodes(first)
	other := first.FileSystem.DeepCopy()
	other.Name, other.UID, other.CreationTimestamp = "home", types.UID("other"), metav1.NewTime(noon.Add(-time.Hour))

	second := pinned(t, func(fs *v1alpha1.FileSystem) {
		fs.Spec.MetadataServers.CPUPinning, fs.Spec.StoragePools[0].CPUPinning = onCPUs("1"), onCPUs("0")
	})
	second.Others, second.OthersNodes = []v1alpha1.FileSystem{*other}, map[types.UID][]v1alpha1.FileSystemNode{other.UID: first.FileSystemNodes}
	twoSockets(t, &second)
	g.Expect(optionsOf(second, "n1")).To(BeNil())
	g.Expect(lustre.New().Observe(second).Problems).To(ContainElement(And(HaveField("Reason", v1alpha1.ReasonPinningConflict),
		HaveField("Message", ContainSubstring("cpuPinning asks for other CPUs on node n1 than FileSystem storage/home does")))))

	same := pinned(t, nil)
	same.Others, same.OthersNodes = second.Others, second.OthersNodes
	twoSockets(t, &same)
	g.Expect(optionsOf(same, "n1")).To(HaveValue(HaveField("Lines", split)))

	// The configuration of the first one stays, whatever is requested later.
	second.FileSystemNodes[0].Spec.ModuleOptions = &v1alpha1.ModuleOptions{Lines: []string{"options libcfs cpu_pattern=\"0[0] 1[1]\""}}
	first.Others, first.OthersNodes = []v1alpha1.FileSystem{*other}, map[types.UID][]v1alpha1.FileSystemNode{other.UID: second.FileSystemNodes}
	twoSockets(t, &first)
	g.Expect(optionsOf(first, "n1")).To(HaveValue(HaveField("Lines", split)))
}
