package plan_test

import (
	"testing"

	. "github.com/onsi/gomega"

	"parallelfs.dev/operator/api/v1alpha1"
	"parallelfs.dev/operator/internal/plan"
)

func TestAPoolThatNamesNoNumberHasAllDisksThatMatch(t *testing.T) {
	g := NewWithT(t)
	in := anInput(aFileSystem("scratch", selecting(0)), 24, "oss1")
	small := anInput(in.FileSystem, 12, "oss2").Inventories["oss2"]
	in.Pools["ssd"], in.Inventories["oss2"] = []string{"oss1", "oss2"}, small
	s := plan.Select(in)
	g.Expect(s.Problems).To(BeEmpty(), "nodes may have different numbers of disks")
	g.Expect(s.Targets).To(HaveLen(24 + 12))

	in.Existing = s.Targets
	g.Expect(plan.Select(in)).To(Equal(s), "and they stay")
	small.BlockDevices = append(small.BlockDevices, diskNumber("oss2", 12))
	in.Inventories["oss2"] = small
	later := plan.Select(in).Targets
	g.Expect(ids(later)).To(ContainElement("oss2:wwn-oss2-0012"), "a disk that is plugged in later is chosen")
	for i := range later {
		g.Expect(later[i].Spec.FormatPolicy).To(Equal(v1alpha1.FormatApproved), "and waits for a person")
	}
}

func TestANodeWithoutAMatchingDiskIsNamedAlsoWhenAllAreRequested(t *testing.T) {
	g := NewWithT(t)
	in := anInput(aFileSystem("scratch", selecting(0)), 1, "oss1")
	change(in, "oss1", 0, func(b *v1alpha1.BlockDevice) { b.Unusable = []string{"it holds ext4"} })
	s := plan.Select(in)
	g.Expect(s.Targets).To(BeEmpty())
	g.Expect(messages(s.Problems)).To(ConsistOf(And(ContainSubstring("node oss1 has no disk that matches"), ContainSubstring("it holds ext4"))))
}

func TestADiskThatIsExcludedIsNotChosenAndOneThatWasChosenStays(t *testing.T) {
	g := NewWithT(t)
	in := anInput(aFileSystem("scratch", selecting(0)), 3, "oss1")
	before := plan.Select(in)
	exclude := func(s *v1alpha1.DeviceSelector) { s.ExcludeIDGlobs = []v1alpha1.Glob{"scsi-oss1-0000", "nvme-*"} }
	in.FileSystem = aFileSystem("scratch", selecting(0, exclude))
	g.Expect(ids(plan.Select(in).Targets)).To(Equal([]string{"oss1:wwn-oss1-0001", "oss1:wwn-oss1-0002"}), "by any one of its names")
	in.Existing = before.Targets
	g.Expect(ids(plan.Select(in).Targets)).To(Equal(ids(before.Targets)))
	in = anInput(aFileSystem("scratch", selecting(3, exclude)), 3, "oss1")
	g.Expect(messages(plan.Select(in).Problems)).To(ConsistOf(ContainSubstring("one of its ids matches excludeIDGlobs")))
}

func TestMetadataThatNamesNoNumberHasADiskForEachServer(t *testing.T) {
	g := NewWithT(t)
	fs := aFileSystem("scratch", v1alpha1.TargetsSpec{Directories: []v1alpha1.DirectoryPath{"/srv/a"}})
	fs.Spec.MetadataServers.Targets, fs.Spec.MetadataServers.InstancesPerNode = selecting(0), 3
	in := anInput(fs, 8, "mds1")
	in.Metadata = []string{"mds1"}
	s := plan.Select(in)
	g.Expect(s.Problems).To(BeEmpty())
	slots := map[int32]int{}
	for i := range s.Targets {
		slots[s.Targets[i].Spec.Slot]++
	}
	g.Expect(slots).To(Equal(map[int32]int{0: 1, 1: 1, 2: 1}))
}

// atItsDisks are metadata servers of a node whose disks are attached to these NUMA nodes, -1 for one that the kernel does not say.
func atItsDisks(numa ...int32) plan.PinInput {
	fs := aFileSystem("scratch", v1alpha1.TargetsSpec{Directories: []v1alpha1.DirectoryPath{"/srv/a"}})
	fs.Spec.MetadataServers.Targets, fs.Spec.MetadataServers.InstancesPerNode = selecting(0), int32(len(numa))
	disks := anInput(fs, len(numa), "oss1")
	disks.Metadata = []string{"oss1"}
	in := pinInput()
	in.Targets = plan.Select(disks).Targets
	inventory := in.Inventories["oss1"]
	inventory.BlockDevices = disks.Inventories["oss1"].BlockDevices
	for i, on := range numa {
		if on >= 0 {
			inventory.BlockDevices[i].NUMANode = &on
		}
		d := daemon("mds"+string(rune('0'+i)), i, numaNodes(), "oss1")
		d.Role = v1alpha1.RoleMetadata
		in.Daemons = append(in.Daemons, d)
	}
	in.Inventories["oss1"] = inventory
	return in
}

func TestAServerThatNamesNoNUMANodeGetsThatOfItsOwnDisk(t *testing.T) {
	g := NewWithT(t)
	pinnings, problems := plan.Pin(atItsDisks(1, 0, 1))
	g.Expect(problems).To(BeEmpty())
	of := map[string]string{}
	for name, p := range pinnings["oss1"] {
		of[name] = p.MemoryNodes
	}
	g.Expect(of).To(Equal(map[string]string{"mds0": "1", "mds1": "0", "mds2": "1"}))
}

func TestAServerGetsTheNUMANodeOfNoDiskOfAnother(t *testing.T) {
	in := atItsDisks(1)
	in.Daemons[0].Nodes = []string{"oss0", "oss1"}
	in.Inventories["oss0"] = in.Inventories["oss1"]
	inventory := in.Inventories["oss1"]
	on := int32(0)
	inventory.BlockDevices = append(inventory.BlockDevices, diskNumber("oss1", 9, func(b *v1alpha1.BlockDevice) { b.NUMANode = &on }))
	in.Inventories["oss1"] = inventory
	for _, change := range []func(*v1alpha1.StorageTarget){
		func(t *v1alpha1.StorageTarget) { t.Spec.Node = "oss9" },
		func(t *v1alpha1.StorageTarget) { t.Spec.Role = v1alpha1.RoleManagement },
		func(t *v1alpha1.StorageTarget) { t.Spec.StoragePool = "ssd" },
		func(t *v1alpha1.StorageTarget) { t.Spec.Slot = 1 },
	} {
		other := *in.Targets[0].DeepCopy()
		other.Spec.Device.ID = v1alpha1.DeviceID(diskNumber("oss1", 9).IDs[0])
		change(&other)
		in.Targets = append(in.Targets, other)
	}
	pinnings, problems := plan.Pin(in)
	NewWithT(t).Expect(problems).To(BeEmpty())
	NewWithT(t).Expect(pinnings["oss1"]).To(HaveKeyWithValue("mds0", HaveField("MemoryNodes", "1")), "and a node where it has no disk takes nothing from it")
}

func TestAServerOnDisksWithoutANUMANodeIsNamed(t *testing.T) {
	for name, c := range map[string]struct {
		in   plan.PinInput
		says string
	}{
		"the kernel does not say it": {atItsDisks(-1), "does not say to which NUMA node its disk wwn-oss1-0000 is attached"},
		"its disks are on two of them": {func() plan.PinInput {
			in := atItsDisks(0, 1)
			in.Daemons = in.Daemons[:1]
			in.Daemons[0].Kernel = true // one list of CPUs serves the disks of all slots
			return in
		}(), "its disks on node oss1 are attached to the NUMA nodes 0, 1"},
		"its disks are gone": {func() plan.PinInput {
			in := atItsDisks(0)
			in.Inventories["oss1"] = twoSockets("none")
			return in
		}(), "none of its disks is there on node oss1"},
		"its data is in directories": {func() plan.PinInput {
			in := atItsDisks(0)
			in.Daemons[0].InDirectories = true
			return in
		}(), "it is not known to which NUMA node the disks of directories are attached"},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			pinnings, problems := plan.Pin(c.in)
			g.Expect(pinnings).To(BeEmpty())
			g.Expect(messages(problems)).To(ConsistOf(And(HavePrefix("PinningConflict: "), ContainSubstring(c.says), ContainSubstring("numaNodes"))))
		})
	}
	g := NewWithT(t)
	in := atItsDisks(0)
	in.Targets = nil
	pinnings, problems := plan.Pin(in)
	g.Expect(pinnings).To(BeEmpty())
	g.Expect(problems).To(BeEmpty(), "a server without a disk is not chosen for yet")
}
