package plan_test

import (
	"testing"

	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/api/resource"

	"parallelfs.dev/operator/api/v1alpha1"
	"parallelfs.dev/operator/internal/node/spec"
	"parallelfs.dev/operator/internal/plan"
)

// twoSockets is a node with two NUMA nodes of 8 CPUs with two threads each, and one with memory only.
func twoSockets(policy string) v1alpha1.NodeInventoryStatus {
	return v1alpha1.NodeInventoryStatus{CPU: v1alpha1.CPUStatus{
		NUMANodes:               []v1alpha1.NUMANode{{ID: 0, CPUs: "0-7,16-23"}, {ID: 1, CPUs: "8-15,24-31"}, {ID: 2}},
		KubeletCPUManagerPolicy: policy,
	}}
}

func daemon(instance string, index int, pinning v1alpha1.CPUPinning, nodes ...string) plan.PinDaemon {
	return plan.PinDaemon{Name: instance, Index: index, Field: "spec of " + instance, Pinning: &pinning, Nodes: nodes}
}

func cpuSet(sets ...v1alpha1.CPUList) v1alpha1.CPUPinning {
	return v1alpha1.CPUPinning{Mode: v1alpha1.PinningCPUSet, CPUSets: sets}
}

func numaNodes(nodes ...int32) v1alpha1.CPUPinning {
	return v1alpha1.CPUPinning{Mode: v1alpha1.PinningNUMANode, NUMANodes: nodes}
}

func pinInput(daemons ...plan.PinDaemon) plan.PinInput {
	return plan.PinInput{
		FileSystem: "storage/scratch", Daemons: daemons,
		Inventories: map[string]v1alpha1.NodeInventoryStatus{"oss1": twoSockets("none"), "oss2": twoSockets("static")},
	}
}

func TestDaemonsGetTheirCPUs(t *testing.T) {
	bind := cpuSet("0-3", "4-11")
	bind.MemoryPolicy = v1alpha1.MemoryBind
	static := int32(4)
	pinnings, problems := plan.Pin(pinInput(
		daemon("mds0", 0, numaNodes(0, 1), "oss1", "oss2"), daemon("mds1", 1, numaNodes(0, 1), "oss1"), daemon("mds2", 2, numaNodes(0, 1), "oss1"),
		daemon("a", 0, bind, "oss1"), daemon("b", 1, bind, "oss1"),
		daemon("none", 0, v1alpha1.CPUPinning{Mode: v1alpha1.PinningNone}, "oss1"), plan.PinDaemon{Name: "nil", Nodes: []string{"oss1"}},
		daemon("static", 0, v1alpha1.CPUPinning{Mode: v1alpha1.PinningKubeletStatic, CPUs: &static, Memory: resource.MustParse("1Gi")}, "oss2"),
	))
	g := NewWithT(t)
	g.Expect(problems).To(BeEmpty())
	socket := func(cpus, node, who string) spec.Pinning {
		return spec.Pinning{CPUs: cpus, MemoryNodes: node, MemoryPolicy: "Preferred", Why: "spec of " + who + ": NUMA node " + node}
	}
	g.Expect(pinnings).To(Equal(map[string]map[string]spec.Pinning{
		"oss1": {
			"mds0": socket("0-7,16-23", "0", "mds0"), "mds1": socket("8-15,24-31", "1", "mds1"), "mds2": socket("0-7,16-23", "0", "mds2"),
			"a": {CPUs: "0-3", MemoryNodes: "0", MemoryPolicy: "Bind", Why: "spec of a: CPUs 0-3"},
			"b": {CPUs: "4-11", MemoryNodes: "0-1", MemoryPolicy: "Bind", Why: "spec of b: CPUs 4-11"},
		},
		"oss2": {"mds0": socket("0-7,16-23", "0", "mds0")},
	}))
}

func TestContradictionsNameBothSides(t *testing.T) {
	four := int32(4)
	static := v1alpha1.CPUPinning{Mode: v1alpha1.PinningKubeletStatic, CPUs: &four, Memory: resource.MustParse("1Gi")}
	unknown := pinInput(daemon("a", 0, static, "oss3"))
	unknown.Inventories["oss3"] = twoSockets("")
	others := pinInput(daemon("a", 0, cpuSet("0-3"), "oss1"))
	others.Others = map[string][]plan.PinDaemon{"storage/home": {daemon("a", 0, cpuSet("3-5"), "oss1")}}
	for name, c := range map[string]struct {
		in   plan.PinInput
		says []string
	}{
		"a NUMA node that is not there":            {pinInput(daemon("a", 0, numaNodes(3), "oss1")), []string{"spec of a asks for NUMA node 3, and node oss1 has the NUMA nodes 0, 1, 2"}},
		"a NUMA node without CPUs":                 {pinInput(daemon("a", 0, numaNodes(2), "oss1")), []string{"has only memory and no CPUs"}},
		"CPUs that are not there":                  {pinInput(daemon("a", 0, cpuSet("30-33"), "oss1")), []string{"spec of a asks for the CPUs 30-33, and node oss1 has 0-31: 32-33 is not there"}},
		"fewer sets than instances":                {pinInput(daemon("a", 1, cpuSet("0-3"), "oss1")), []string{"spec of a has 1 cpuSets, and instance 1 (a) needs one of its own"}},
		"what is no list of CPUs":                  {pinInput(daemon("a", 0, cpuSet("7-3"), "oss1")), []string{"no list of CPUs"}},
		"an empty list of CPUs":                    {pinInput(daemon("a", 0, cpuSet(""), "oss1")), []string{"no list of CPUs"}},
		"a node without an inventory":              {pinInput(daemon("a", 0, numaNodes(0), "oss9")), []string{"kubectl label node oss9 parallelfs.dev/agent="}},
		"a kubelet without the static policy":      {pinInput(daemon("a", 0, static, "oss1")), []string{"the CPU manager policy of node oss1 is none"}},
		"a kubelet whose policy is not known":      {unknown, []string{"the CPU manager policy of node oss3 is not known"}},
		"a mode that is unknown":                   {pinInput(daemon("a", 0, v1alpha1.CPUPinning{Mode: "Magic"}, "oss1")), []string{`the mode "Magic" is unknown`}},
		"two roles that share CPUs":                {pinInput(daemon("a", 0, cpuSet("0-3"), "oss1"), daemon("b", 0, cpuSet("2-5"), "oss1")), []string{"node oss1: spec of a (a of FileSystem storage/scratch) and spec of b (b of FileSystem storage/scratch) share the CPUs 2-3", "spec of b (b"}},
		"two FileSystems that share a CPU":         {others, []string{"(a of FileSystem storage/scratch) and spec of a (a of FileSystem storage/home) share the CPUs 3;"}},
		"two instances of one list that overlap":   {pinInput(daemon("m0", 0, cpuSet("0-3", "3-4"), "oss1"), daemon("m1", 1, cpuSet("0-3", "3-4"), "oss1")), []string{"share the CPUs 3;", "share the CPUs 3;"}},
		"a node that is named twice is asked once": {pinInput(daemon("a", 0, numaNodes(7), "oss1", "oss1")), []string{"NUMA node 7"}},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			pinnings, problems := plan.Pin(c.in)
			g.Expect(pinnings).To(BeEmpty(), "a daemon with a problem is not pinned")
			var expected []any
			for _, says := range c.says {
				expected = append(expected, And(HavePrefix("PinningConflict: "), ContainSubstring(says)))
			}
			g.Expect(messages(problems)).To(ConsistOf(expected...))
		})
	}
	t.Run("but CPUs of another node, and sockets, may be shared", func(t *testing.T) {
		_, problems := plan.Pin(pinInput(daemon("a", 0, cpuSet("0-3"), "oss1"), daemon("b", 0, cpuSet("0-3"), "oss2"), daemon("c", 0, numaNodes(0), "oss1"), daemon("d", 0, numaNodes(0), "oss1")))
		NewWithT(t).Expect(problems).To(BeEmpty())
	})
}

func TestOneDaemonWithoutCPUsTakesNoneFromOthers(t *testing.T) {
	none := daemon("none", 0, v1alpha1.CPUPinning{Mode: v1alpha1.PinningNone}, "oss1")
	broken := daemon("broken", 0, cpuSet("7-3"), "oss1")
	t.Run("nor does a node without an agent", func(t *testing.T) {
		pinnings, _ := plan.Pin(pinInput(none, daemon("a", 0, numaNodes(0), "oss0", "oss1")))
		NewWithT(t).Expect(pinnings["oss1"]).To(HaveKey("a"))
	})
	t.Run("nor hides that two others share some", func(t *testing.T) {
		in := pinInput(daemon("a", 0, cpuSet("0-3"), "oss1"))
		in.Others = map[string][]plan.PinDaemon{"storage/home": {none, broken, daemon("b", 0, cpuSet("3-5"), "oss1")}}
		_, problems := plan.Pin(in)
		NewWithT(t).Expect(messages(problems)).To(ConsistOf(ContainSubstring("share the CPUs 3;")))
	})
}

func TestThreadsOfOneKernelMayShareCPUsAndDaemonsMayNotHaveThem(t *testing.T) {
	g := NewWithT(t)
	threads := func(name, cpus string) plan.PinDaemon {
		d := daemon(name, 0, cpuSet(v1alpha1.CPUList(cpus)), "oss1")
		d.Kernel = true
		return d
	}
	in := pinInput(threads("mdt", "0-3"), threads("ost/ssd", "0-3"))
	in.Others = map[string][]plan.PinDaemon{"storage/home": {threads("mdt", "0-3")}}
	pinnings, problems := plan.Pin(in)
	g.Expect(problems).To(BeEmpty())
	g.Expect(pinnings["oss1"]).To(And(HaveKeyWithValue("mdt", HaveField("CPUs", "0-3")), HaveKeyWithValue("ost/ssd", HaveField("CPUs", "0-3"))))
	in.Others["storage/other"] = []plan.PinDaemon{daemon("master", 0, cpuSet("3-4"), "oss1")}
	_, problems = plan.Pin(in)
	g.Expect(messages(problems)).To(ConsistOf(ContainSubstring("share the CPUs 3"), ContainSubstring("share the CPUs 3")))
}

func TestDriftShowsTheKernelsValues(t *testing.T) {
	wanted := spec.Pinning{CPUs: "0-7,16-23", MemoryNodes: "0", MemoryPolicy: "Preferred", Why: "spec.metadataServers.cpuPinning: NUMA node 0"}
	right := v1alpha1.DaemonPlacement{Name: "storage/scratch/master", CPUs: "0-7,16-23", NUMANodes: "0", MemoryPolicy: "prefer:0"}
	bind := wanted
	bind.MemoryPolicy = "Bind"
	noMemory := wanted
	noMemory.MemoryNodes = ""
	for name, c := range map[string]struct {
		wanted spec.Pinning
		change func(*v1alpha1.DaemonPlacement)
		says   string
	}{
		"as asked":                         {wanted, func(*v1alpha1.DaemonPlacement) {}, ""},
		"the other preferring policy":      {wanted, func(p *v1alpha1.DaemonPlacement) { p.MemoryPolicy = "prefer (many):0" }, ""},
		"the same CPUs, written otherwise": {wanted, func(p *v1alpha1.DaemonPlacement) { p.CPUs = "16-23,0-3,4-7" }, ""},
		"memory that nobody asks for":      {noMemory, func(p *v1alpha1.DaemonPlacement) { p.MemoryPolicy = "bind:3" }, ""},
		"other CPUs":                       {wanted, func(p *v1alpha1.DaemonPlacement) { p.CPUs = "0-31" }, "it may run on the CPUs 0-31, and 0-7,16-23 are asked for"},
		"fewer CPUs":                       {wanted, func(p *v1alpha1.DaemonPlacement) { p.CPUs = "0-7" }, "it may run on the CPUs 0-7"},
		"CPUs that are not known":          {wanted, func(p *v1alpha1.DaemonPlacement) { p.CPUs = "" }, "not known"},
		"a stray thread":                   {wanted, func(p *v1alpha1.DaemonPlacement) { p.StrayThreads = 2 }, "2 of its threads"},
		"another memory policy":            {bind, func(*v1alpha1.DaemonPlacement) {}, `its memory policy is "prefer:0", and bind:0 is asked for (spec.metadataServers.cpuPinning`},
		"memory of another NUMA node":      {wanted, func(p *v1alpha1.DaemonPlacement) { p.MemoryPolicy = "prefer:1" }, `"prefer:1"`},
		"what is asked for is no list":     {spec.Pinning{CPUs: "x"}, func(*v1alpha1.DaemonPlacement) {}, "no list of CPUs"},
	} {
		t.Run(name, func(t *testing.T) {
			found := right
			c.change(&found)
			drift := plan.Drift(c.wanted, found)
			if c.says == "" {
				NewWithT(t).Expect(drift).To(BeEmpty())
				return
			}
			NewWithT(t).Expect(drift).To(ContainSubstring(c.says))
		})
	}
}
