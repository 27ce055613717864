package plan_test

import (
	"fmt"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/api/resource"

	"parallelfs.dev/operator/api/v1alpha1"
	"parallelfs.dev/operator/internal/plan"
)

// diskOf is the reference to a blank disk of anInput.
func diskOf(node string, i int) v1alpha1.DeviceReference {
	return v1alpha1.DeviceReference{Node: node, ID: v1alpha1.DeviceID(fmt.Sprintf("wwn-%s-%04d", node, i))}
}

// withLogOf is the reference to a blank disk of oss1, with its log device.
func withLogOf(i, log int) v1alpha1.DeviceReference {
	d := diskOf("oss1", i)
	d.LogDevice = diskOf("oss1", log).ID
	return d
}

// ofOther are the targets of another FileSystem on a node.
func ofOther(name string, devices ...v1alpha1.DeviceReference) []v1alpha1.StorageTarget {
	return plan.Select(anInput(aFileSystem(name, naming(devices...)), 6, "oss1")).Targets
}

func TestADiskIsTakenAlsoByATargetThatHasNoSerialNumberOnRecord(t *testing.T) {
	in := anInput(aFileSystem("scratch", selecting(1)), 2, "oss1")
	in.Others = ofOther("home", diskOf("oss1", 0))
	in.Others[0].Spec.Device.Serial = ""
	NewWithT(t).Expect(ids(plan.Select(in).Targets)).To(Equal([]string{"oss1:wwn-oss1-0001"}))
}

func TestAConflictNamesTheFirstOtherAndOneThatHasTheDiskBeforeAll(t *testing.T) {
	in := anInput(aFileSystem("scratch", naming(diskOf("oss1", 0))), 1, "oss1")
	conflict := func() string { return plan.Select(in).Targets[0].Spec.Conflict }
	for _, name := range []string{"alpha", "home", "zoo"} {
		in.Others = append(in.Others, ofOther(name, diskOf("oss1", 0))...)
	}
	g := NewWithT(t)
	g.Expect(conflict()).To(ContainSubstring("and by StorageTarget storage/alpha-ssd"))
	finished(&in.Others[1])
	g.Expect(conflict()).To(ContainSubstring("and by StorageTarget storage/home-ssd"))
	finished(&in.Others[2])
	g.Expect(conflict()).To(ContainSubstring("and by StorageTarget storage/home-ssd"))
}

func TestEachDeviceOfATargetIsComparedWithThoseOfOthers(t *testing.T) {
	in := anInput(aFileSystem("scratch", naming(withLogOf(0, 1))), 6, "oss1")
	in.Existing = plan.Select(in).Targets
	in.Others = append(ofOther("alpha", diskOf("oss1", 0)), ofOther("zoo", withLogOf(3, 1))...)
	t.Run("and the first conflict is shown", func(t *testing.T) {
		s := plan.Select(in)
		NewWithT(t).Expect(s.Targets[0].Spec.Conflict).To(ContainSubstring("by StorageTarget storage/alpha-ssd"))
		NewWithT(t).Expect(s.Problems).To(HaveLen(1))
	})
	t.Run("also when a new target selects the disk, and an existing target has the log", func(t *testing.T) {
		finished(&in.Existing[0])
		finished(&in.Others[1])
		NewWithT(t).Expect(plan.Select(in).Targets[0].Spec.Conflict).To(ContainSubstring("as the log of StorageTarget storage/zoo-ssd"))
	})
}

func TestEachDiskThatTwoNodesShowIsNamedWhateverOtherDisksThereAre(t *testing.T) {
	in := anInput(aFileSystem("scratch", selecting(1)), 1, "oss1", "oss2")
	in.Inventories["oss1"] = in.Inventories["oss2"]
	// Two disks before it say nothing: one has no name, and the other is only here.
	inventory := v1alpha1.NodeInventoryStatus{BlockDevices: []v1alpha1.BlockDevice{
		{KernelName: "sd0", Type: "disk", SizeBytes: tib}, diskNumber("alone", 0, func(b *v1alpha1.BlockDevice) { b.KernelName, b.Unusable = "sd1", []string{"it holds ext4"} }),
		in.Inventories["oss2"].BlockDevices[0],
	}}
	// Only the last of the names of the disk, in their order, is that of the target.
	inventory.BlockDevices[2].IDs, inventory.BlockDevices[2].WWN = []string{"ata-other-link"}, ""
	in.Inventories["oss2"] = inventory
	s := plan.Select(in)
	NewWithT(t).Expect(messages(s.Problems)).To(ContainElement(HavePrefix("DeviceConflict: nodes oss2 and oss1 both show the disk ata-other-link ")))
}

func TestADiskThatTwoTargetsOfOtherNodesMayHaveIsNamedOnceWithTheFirst(t *testing.T) {
	in := anInput(aFileSystem("scratch", selecting(1)), 1, "oss1", "oss2", "oss3")
	change(in, "oss2", 0, func(b *v1alpha1.BlockDevice) { b.Serial, b.WWN = "", "0x6000" })
	change(in, "oss3", 0, func(b *v1alpha1.BlockDevice) { b.Serial, b.WWN = "S6", "" })
	in.Existing = plan.Select(in).Targets[1:]
	change(in, "oss1", 0, func(b *v1alpha1.BlockDevice) { b.Serial, b.WWN = "S6", "0x6000" })
	var conflicts []string
	for _, m := range messages(plan.Select(in).Problems) {
		if strings.HasPrefix(m, "DeviceConflict") {
			conflicts = append(conflicts, m)
		}
	}
	NewWithT(t).Expect(conflicts).To(HaveExactElements(ContainSubstring("nodes oss1 and oss2 both show the disk wwn-oss1-0000 ")))
}

func TestALogDeviceIsThatOfItsOwnTarget(t *testing.T) {
	named := func(devices ...v1alpha1.DeviceReference) plan.SelectInput {
		return anInput(aFileSystem("scratch", naming(devices...)), 6, "oss1")
	}
	logs := func(in plan.SelectInput) map[string]string {
		found := map[string]string{}
		for _, target := range plan.Select(in).Targets {
			found[string(target.Spec.Device.ID)] = ""
			if target.Spec.LogDevice != nil {
				found[string(target.Spec.Device.ID)] = string(target.Spec.LogDevice.ID)
			}
		}
		return found
	}
	const d0, d1, d2, d3, d4 = "wwn-oss1-0000", "wwn-oss1-0001", "wwn-oss1-0002", "wwn-oss1-0003", "wwn-oss1-0004"
	for name, c := range map[string]struct {
		in   plan.SelectInput
		want map[string]string
	}{
		"of each of two on a node":                     {named(withLogOf(0, 2), withLogOf(1, 3)), map[string]string{d0: d2, d1: d3}},
		"beside one that has none, whatever its place": {named(diskOf("oss1", 0), withLogOf(1, 3), diskOf("oss1", 2)), map[string]string{d0: "", d1: d3, d2: ""}},
		"beside the first, whose log is not there":     {named(withLogOf(0, 9), withLogOf(1, 3), withLogOf(2, 4)), map[string]string{d1: d3, d2: d4}},
		"beside the second, whose log is not there":    {named(withLogOf(0, 3), withLogOf(1, 9), withLogOf(2, 4)), map[string]string{d0: d3, d2: d4}},
		"beside the third, whose log is not there":     {named(withLogOf(0, 3), withLogOf(1, 4), withLogOf(2, 9)), map[string]string{d0: d3, d1: d4}},
		"in a pool beside metadata": {func() plan.SelectInput {
			in := named(withLogOf(0, 2))
			in.FileSystem.Spec.MetadataServers.Targets, in.Metadata = naming(diskOf("oss1", 1)), []string{"oss1"}
			return in
		}(), map[string]string{d0: d2, d1: ""}},
	} {
		t.Run(name, func(t *testing.T) { NewWithT(t).Expect(logs(c.in)).To(Equal(c.want)) })
	}
}

func TestASelectorSelectsNoMoreLogsThanItsNumberAndNoDiskOfATarget(t *testing.T) {
	spec := selecting(2, func(s *v1alpha1.DeviceSelector) { s.MinSize = resource.MustParse("1Ti") })
	small := &v1alpha1.DeviceSelector{MaxSize: resource.MustParse("4Gi")}
	spec.Format = &v1alpha1.FormatSpec{FSType: v1alpha1.XFS, LogDevices: small}
	in := anInput(aFileSystem("scratch", spec), 6, "oss1")
	for i := 3; i < 6; i++ {
		change(in, "oss1", i, func(b *v1alpha1.BlockDevice) { b.SizeBytes = 1 << 30 })
	}
	withLogs := func(in plan.SelectInput) (n int) {
		for _, target := range plan.Select(in).Targets {
			if target.Spec.LogDevice != nil {
				n++
			}
		}
		return n
	}
	for most, want := range map[int32]int{0: 2, 1: 1, 2: 2} {
		small.CountPerNode = most
		NewWithT(t).Expect(withLogs(in)).To(Equal(want), "of at most %d", most)
	}
	t.Run("and counts those that were assigned before", func(t *testing.T) {
		small.CountPerNode, in.FileSystem.Spec.StoragePools[0].Targets.Select.CountPerNode = 1, 1
		in := in
		in.Existing = plan.Select(in).Targets
		NewWithT(t).Expect(withLogs(in)).To(Equal(1))
		in.FileSystem.Spec.StoragePools[0].Targets.Select.CountPerNode = 2
		s := plan.Select(in)
		NewWithT(t).Expect(s.Targets).To(HaveLen(1))
		NewWithT(t).Expect(messages(s.Problems)).To(ConsistOf(ContainSubstring("all logs that logDevices.countPerNode (1) allows are in use")))
	})
	t.Run("and none that carries a target of this FileSystem", func(t *testing.T) {
		small.CountPerNode, in.FileSystem.Spec.StoragePools[0].Targets.Select.CountPerNode = 0, 1
		for i := 3; i < 6; i++ {
			change(in, "oss1", i, func(b *v1alpha1.BlockDevice) {
				b.Target, b.Unusable = "storage/"+plan.TargetName("scratch", v1alpha1.RoleStorage, "ssd", "oss1", v1alpha1.DeviceID(b.IDs[0])), []string{"it is not blank"}
			})
		}
		s := plan.Select(in)
		NewWithT(t).Expect(s.Targets).To(BeEmpty())
		NewWithT(t).Expect(messages(s.Problems)).To(ConsistOf(ContainSubstring("gets no log device")))
	})
}

// TestADiskThatWasChosenIsTheOneWithItsIdentity names the disk of a target by another link than the recorded one.
func TestADiskThatWasChosenIsTheOneWithItsIdentity(t *testing.T) {
	const link = v1alpha1.DeviceID("scsi-link")
	type device = v1alpha1.BlockDevice
	was := v1alpha1.DeviceIdentity{ID: "wwn-0x5", WWN: "0x5", Serial: "S1", SizeBytes: tib}
	without := func(change func(*v1alpha1.DeviceIdentity)) v1alpha1.DeviceIdentity { id := was; change(&id); return id }
	both, other := []string{string(link), "wwn-0x5"}, []string{string(link)}
	for name, c := range map[string]struct {
		was  v1alpha1.DeviceIdentity
		disk device
		same bool
	}{
		"it has the same WWN":                                   {was, device{IDs: other, WWN: "0x5", Serial: "S1"}, true},
		"it has another WWN, although it has the link":          {was, device{IDs: both, WWN: "0x6", Serial: "S1"}, false},
		"no WWN is on record, and it has the link":              {without(func(d *v1alpha1.DeviceIdentity) { d.WWN = "" }), device{IDs: both, WWN: "0x5", Serial: "S2"}, true},
		"its WWN is shared, and its serial number is the same":  {was, device{IDs: other, SharedWWN: "0x5", Serial: "S1"}, true},
		"its WWN is shared, and its serial number is another":   {was, device{IDs: both, SharedWWN: "0x5", Serial: "S2"}, false},
		"its WWN is shared, and it has no serial number":        {was, device{IDs: both, SharedWWN: "0x5"}, true},
		"its WWN is shared, and no serial number is on record":  {without(func(d *v1alpha1.DeviceIdentity) { d.Serial = "" }), device{IDs: both, SharedWWN: "0x5", Serial: "S1"}, true},
		"another WWN is shared, and it has the link":            {was, device{IDs: both, SharedWWN: "0x6", Serial: "S2"}, true},
		"neither has a WWN, and it has the link":                {without(func(d *v1alpha1.DeviceIdentity) { d.WWN = "" }), device{IDs: both, Serial: "S2"}, true},
		"its WWN is what was recorded as its name":              {v1alpha1.DeviceIdentity{ID: "0x5-name", SizeBytes: tib}, device{IDs: other, WWN: "0x5-name"}, true},
		"its serial number is what was recorded as its name":    {v1alpha1.DeviceIdentity{ID: "S1-name", SizeBytes: tib}, device{IDs: other, Serial: "S1-name"}, true},
		"nothing of it is what was recorded, and it has a link": {without(func(d *v1alpha1.DeviceIdentity) { d.WWN = "" }), device{IDs: other, Serial: "S1"}, false},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			in := anInput(aFileSystem("scratch", naming(diskOf("oss1", 0))), 1, "oss1")
			in.Existing = plan.Select(in).Targets
			in.Existing[0].Spec.Device = c.was
			c.disk.KernelName, c.disk.Type, c.disk.SizeBytes = "sda", "disk", tib
			in.Inventories["oss1"] = v1alpha1.NodeInventoryStatus{BlockDevices: []device{c.disk}}
			in.FileSystem = aFileSystem("scratch", naming(v1alpha1.DeviceReference{Node: "oss1", ID: link}))
			isNoLongerNamed := ContainElement(ContainSubstring("is no longer in devices"))
			if c.same {
				isNoLongerNamed = Not(isNoLongerNamed)
			}
			g.Expect(messages(plan.Select(in).Problems)).To(isNoLongerNamed)
		})
	}
}

func TestALinkIsMadeOfAWWNWhenItHasOneOfTheFormsOfUdev(t *testing.T) {
	for _, c := range []struct {
		link, wwn string
		want      bool
	}{
		{"wwn-0x5000c500a1b2c3d4", "0x5000c500a1b2c3d4", true},
		{"scsi-35000C500A1B2C3D4", "0x5000c500a1b2c3d4", true},
		{"ata-DISK_5000c500a1b2c3d4", "0x5000c500a1b2c3d4", false},
		{"wwn-0x5000c500a1b2c3d5", "0x5000c500a1b2c3d4", false},
		{"wwn-0x", "0x", false},
		{"wwn-", "", false},
	} {
		NewWithT(t).Expect(plan.IsLinkOfWWN(c.link, c.wwn)).To(Equal(c.want), c.link)
	}
}
