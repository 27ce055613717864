package plan_test

import (
	"slices"
	"testing"

	. "github.com/onsi/gomega"

	"parallelfs.dev/operator/api/v1alpha1"
	"parallelfs.dev/operator/internal/plan"
)

// serversOf is a FileSystem whose metadata servers on mds1 take disks as the spec says, and its nodes with disks.
func serversOf(instances int32, targets v1alpha1.TargetsSpec, disks int, nodes ...string) plan.SelectInput {
	fs := aFileSystem("scratch", v1alpha1.TargetsSpec{Directories: []v1alpha1.DirectoryPath{"/srv/a"}})
	fs.Spec.MetadataServers.Targets, fs.Spec.MetadataServers.InstancesPerNode = targets, instances
	in := anInput(fs, disks, nodes...)
	in.Metadata = nodes
	return in
}

// slots counts the disks of each metadata server.
func slots(s plan.Selection) map[int32]int {
	n := map[int32]int{}
	for _, target := range s.Targets {
		n[target.Spec.Slot]++
	}
	return n
}

// carryingServer puts the target of a metadata server of a FileSystem from before on a disk.
func carryingServer(slot string) func(*v1alpha1.BlockDevice) {
	return func(b *v1alpha1.BlockDevice) {
		b.Target, b.Unusable = "storage/"+plan.TargetName("scratch", v1alpha1.RoleMetadata, slot, "mds1", v1alpha1.DeviceID(b.IDs[0])), []string{"it is not blank"}
	}
}

func TestADiskGoesToTheMetadataServerThatHasTheFewest(t *testing.T) {
	t.Run("also beside those that it has", func(t *testing.T) {
		for slot := range int32(2) {
			in := serversOf(2, selecting(4), 4, "mds1")
			in.Existing = plan.Select(in).Targets
			i := slices.IndexFunc(in.Existing, func(t v1alpha1.StorageTarget) bool { return t.Spec.Slot == slot })
			in.Existing = slices.Delete(in.Existing, i, i+1)
			NewWithT(t).Expect(slots(plan.Select(in))).To(Equal(map[int32]int{0: 2, 1: 2}), "without one of server %d", slot)
		}
	})
	t.Run("and those of a server that the spec has no more stay", func(t *testing.T) {
		in := serversOf(3, selecting(3), 4, "mds1")
		in.Existing = plan.Select(in).Targets
		in.FileSystem.Spec.MetadataServers.InstancesPerNode, in.FileSystem.Spec.MetadataServers.Targets.Select.CountPerNode = 2, 4
		NewWithT(t).Expect(slots(plan.Select(in))).To(Equal(map[int32]int{0: 2, 1: 1, 2: 1}))
	})
	t.Run("unless it carries a target of another one", func(t *testing.T) {
		in := serversOf(2, selecting(4), 4, "mds1")
		change(in, "mds1", 0, carryingServer("mds0"))
		change(in, "mds1", 1, carryingServer("mds0"))
		change(in, "mds1", 3, carryingServer("mds1"))
		s := plan.Select(in)
		of := map[v1alpha1.DeviceID]int32{}
		for _, target := range s.Targets {
			of[target.Spec.Device.ID] = target.Spec.Slot
		}
		NewWithT(t).Expect(of).To(Equal(map[v1alpha1.DeviceID]int32{"wwn-mds1-0000": 0, "wwn-mds1-0001": 0, "wwn-mds1-0002": 1, "wwn-mds1-0003": 1}))
	})
	t.Run("and a disk that carries the first server's goes there, although that has one", func(t *testing.T) {
		in := serversOf(2, selecting(2), 3, "mds1")
		in.Existing = plan.Select(in).Targets
		in.Existing = slices.DeleteFunc(in.Existing, func(t v1alpha1.StorageTarget) bool { return t.Spec.Slot == 1 })
		change(in, "mds1", 2, carryingServer("mds0"))
		NewWithT(t).Expect(slots(plan.Select(in))).To(Equal(map[int32]int{0: 2}))
	})
}

func TestEachNodeIsChosenForWhateverIsWrongWithAnother(t *testing.T) {
	t.Run("a decommissioned one", func(t *testing.T) {
		in := anInput(aFileSystem("scratch", naming(diskOf("oss1", 0), diskOf("oss2", 0))), 1, "oss1", "oss2")
		in.GaveUp = map[string]bool{"oss1": true}
		NewWithT(t).Expect(ids(plan.Select(in).Targets)).To(Equal([]string{"oss2:wwn-oss2-0000"}))
	})
	t.Run("one whose devices can't be shared out", func(t *testing.T) {
		in := serversOf(2, naming(diskOf("mds1", 0), diskOf("mds2", 0), diskOf("mds2", 1)), 2, "mds1", "mds2")
		NewWithT(t).Expect(ids(plan.Select(in).Targets)).To(Equal([]string{"mds2:wwn-mds2-0000", "mds2:wwn-mds2-0001"}))
	})
	t.Run("one without an agent, and one that has all that it should", func(t *testing.T) {
		in := anInput(aFileSystem("scratch", selecting(1)), 1, "oss1", "oss2", "oss3")
		delete(in.Inventories, "oss1")
		NewWithT(t).Expect(ids(plan.Select(in).Targets)).To(Equal([]string{"oss2:wwn-oss2-0000", "oss3:wwn-oss3-0000"}))
		in.Existing = ofOther("scratch", diskOf("oss1", 0))
		s := plan.Select(in)
		NewWithT(t).Expect(ids(s.Targets)).To(Equal([]string{"oss1:wwn-oss1-0000", "oss2:wwn-oss2-0000", "oss3:wwn-oss3-0000"}))
		NewWithT(t).Expect(s.Problems).To(BeEmpty(), "it needs no disk of the node whose agent is away")
	})
}

func TestATargetIsThatOfItsOwnPool(t *testing.T) {
	in := anInput(aFileSystem("scratch", naming(diskOf("oss1", 0))), 2, "oss1")
	in.FileSystem.Spec.StoragePools = append(in.FileSystem.Spec.StoragePools, v1alpha1.StoragePoolSpec{Name: "hdd", Targets: naming(diskOf("oss1", 1))})
	in.Pools["hdd"] = []string{"oss1"}
	s := plan.Select(in)
	NewWithT(t).Expect(s.Targets).To(HaveLen(2))
	in.Existing = s.Targets
	NewWithT(t).Expect(plan.Select(in)).To(Equal(s))
}

func TestADiskWithoutANameThatTheAPITakesIsNoTarget(t *testing.T) {
	in := anInput(aFileSystem("scratch", naming(v1alpha1.DeviceReference{Node: "oss1", ID: "wwn bad/id"})), 1, "oss1")
	change(in, "oss1", 0, func(b *v1alpha1.BlockDevice) { b.IDs, b.WWN, b.Serial = []string{"wwn bad/id"}, "", "" })
	s := plan.Select(in)
	NewWithT(t).Expect(s.Targets).To(BeEmpty())
	NewWithT(t).Expect(messages(s.Problems)).To(ConsistOf(ContainSubstring("has no name that the API takes")))
}

func TestAWWNThatADiskWithoutASerialNumberHasTooIsAName(t *testing.T) {
	in := anInput(aFileSystem("scratch", selecting(1)), 1, "oss1", "oss2")
	change(in, "oss1", 0, inEnclosure("S-one"))
	change(in, "oss2", 0, inEnclosure(""))
	NewWithT(t).Expect(ids(plan.Select(in).Targets)).To(ContainElement("oss1:wwn-" + placeholder))
}
