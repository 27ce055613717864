package plan_test

import (
	"testing"

	. "github.com/onsi/gomega"

	"parallelfs.dev/operator/api/v1alpha1"
	"parallelfs.dev/operator/internal/plan"
)

// placeholder is the WWN that an enclosure gives to each of its disks.
const placeholder = "0x5000000000000001"

// inEnclosure is a disk that has it, with the links that udev makes.
func inEnclosure(serial string) func(*v1alpha1.BlockDevice) {
	return func(b *v1alpha1.BlockDevice) {
		b.WWN, b.Serial = placeholder, serial
		b.IDs = []string{"wwn-" + placeholder, "ata-WDC_" + serial, "scsi-35000000000000001"}
	}
}

// dropped is what a look makes of such a disk when another one of its node has its WWN.
func dropped(b *v1alpha1.BlockDevice) {
	b.WWN, b.SharedWWN, b.IDs = "", b.WWN, b.IDs[1:2]
}

func TestDisksWithOneWWNAndTwoSerialNumbersAreTwoTargets(t *testing.T) {
	named := naming(v1alpha1.DeviceReference{Node: "oss1", ID: "S-one"}, v1alpha1.DeviceReference{Node: "oss2", ID: "ata-WDC_S-two"})
	t.Run("of two nodes, by their names", func(t *testing.T) {
		g := NewWithT(t)
		in := anInput(aFileSystem("scratch", named), 1, "oss1", "oss2")
		change(in, "oss1", 0, inEnclosure("S-one"))
		change(in, "oss2", 0, inEnclosure("S-two"))
		s := plan.Select(in)
		g.Expect(s.Problems).To(BeEmpty())
		g.Expect(ids(s.Targets)).To(Equal([]string{"oss1:ata-WDC_S-one", "oss2:ata-WDC_S-two"}))
		g.Expect(s.Targets).To(HaveEach(HaveField("Spec.Conflict", "")))
	})
	t.Run("of two nodes, selected", func(t *testing.T) {
		g := NewWithT(t)
		in := anInput(aFileSystem("scratch", selecting(1)), 1, "oss1", "oss2")
		change(in, "oss1", 0, inEnclosure("S-one"))
		change(in, "oss2", 0, inEnclosure("S-two"))
		s := plan.Select(in)
		g.Expect(s.Problems).To(BeEmpty())
		g.Expect(ids(s.Targets)).To(Equal([]string{"oss1:ata-WDC_S-one", "oss2:ata-WDC_S-two"}))
	})
	t.Run("of one node, selected, and a third one of another node", func(t *testing.T) {
		g := NewWithT(t)
		in := anInput(aFileSystem("scratch", selecting(2)), 2, "oss1", "oss2")
		for i, serial := range []string{"S-one", "S-two"} {
			change(in, "oss1", i, inEnclosure(serial))
			change(in, "oss1", i, dropped)
		}
		change(in, "oss2", 0, inEnclosure("S-three"))
		s := plan.Select(in)
		g.Expect(s.Problems).To(BeEmpty())
		g.Expect(ids(s.Targets)).To(Equal([]string{"oss1:ata-WDC_S-one", "oss1:ata-WDC_S-two", "oss2:ata-WDC_S-three", "oss2:wwn-oss2-0001"}))
	})
	t.Run("that were chosen by that WWN before the second disk came", func(t *testing.T) {
		g := NewWithT(t)
		in := anInput(aFileSystem("scratch", naming(v1alpha1.DeviceReference{Node: "oss1", ID: "wwn-" + placeholder})), 1, "oss1")
		change(in, "oss1", 0, inEnclosure("S-one"))
		first := plan.Select(in).Targets
		g.Expect(ids(first)).To(Equal([]string{"oss1:wwn-" + placeholder}))

		in = anInput(aFileSystem("scratch", naming(v1alpha1.DeviceReference{Node: "oss1", ID: "S-one"}, v1alpha1.DeviceReference{Node: "oss1", ID: "S-two"})), 2, "oss1")
		for i, serial := range []string{"S-one", "S-two"} {
			change(in, "oss1", i, inEnclosure(serial))
			change(in, "oss1", i, dropped)
		}
		in.Existing = first
		s := plan.Select(in)
		g.Expect(s.Problems).To(BeEmpty())
		g.Expect(ids(s.Targets)).To(Equal([]string{"oss1:ata-WDC_S-two", "oss1:wwn-" + placeholder}), "what was chosen keeps its name")

		// A FileSystem that is created again with the same disks recognizes them by labels with their old ids.
		in.Existing = nil
		change(in, "oss1", 0, func(b *v1alpha1.BlockDevice) {
			b.Target, b.Unusable = "storage/"+first[0].Name, []string{"it is not blank"}
		})
		g.Expect(ids(plan.Select(in).Targets)).To(Equal([]string{"oss1:ata-WDC_S-two", "oss1:wwn-" + placeholder}))
	})
}

func TestADiskThatTwoNodesReachIsOneDiskWhateverItsWWN(t *testing.T) {
	in := anInput(aFileSystem("scratch", selecting(1)), 1, "oss1", "oss2")
	for _, node := range []string{"oss1", "oss2"} {
		change(in, node, 0, inEnclosure("S-one"))
	}
	g := NewWithT(t)
	s := plan.Select(in)
	g.Expect(s.Targets).To(HaveLen(1))
	g.Expect(messages(s.Problems)).To(ConsistOf(ContainSubstring("both show the disk"), ContainSubstring("oss2 has 0 of 1 disks")))
}

func TestADiskThatTwoInventoriesShowIsAProblemOfBothNodesUntilATargetWasMadeOnIt(t *testing.T) {
	g := NewWithT(t)
	in := anInput(aFileSystem("scratch", selecting(1)), 1, "oss1", "oss2")
	// The agent of oss1 shows the blank disk of oss2 as its own.
	in.Inventories["oss1"] = in.Inventories["oss2"]
	s := plan.Select(in)
	g.Expect(ids(s.Targets)).To(Equal([]string{"oss1:wwn-oss2-0000"}))
	both := And(HavePrefix("DeviceConflict: nodes oss2 and oss1 both show the disk wwn-oss2-0000 "), ContainSubstring("StorageTarget storage/scratch-ssd"))
	g.Expect(messages(s.Problems)).To(ContainElement(both))

	t.Run("also when the target was chosen long ago", func(t *testing.T) {
		in.Existing = s.Targets
		NewWithT(t).Expect(messages(plan.Select(in).Problems)).To(ContainElement(both))
	})
	t.Run("and what oss1 shows takes nothing from a target that oss2 has made", func(t *testing.T) {
		g := NewWithT(t)
		in := in
		in.Existing = nil
		alone := in
		alone.Pools = map[string][]string{"ssd": {"oss2"}}
		in.Existing = plan.Select(alone).Targets
		finished(&in.Existing[0])
		s := plan.Select(in)
		g.Expect(s.Targets).To(HaveExactElements(And(HaveField("Spec.Node", "oss2"), HaveField("Spec.Conflict", ""))))
		g.Expect(messages(s.Problems)).NotTo(ContainElement(HavePrefix("DeviceConflict")))
	})
}

func TestADiskIsTheOneThatWasRecordedWhenOnlyItsWWNIsThatOfAnotherOneNow(t *testing.T) {
	g := NewWithT(t)
	want := aTarget().Spec.Device
	shared := func(f *plan.Facts) { f.WWN, f.SharedWWN = "", f.WWN }
	g.Expect(plan.HasIdentity(blankDisk(shared), want)).To(BeEmpty())
	g.Expect(plan.HasIdentity(blankDisk(shared, func(f *plan.Facts) { f.Serial = "S2" }), want)).To(ContainSubstring("wrong serial"))
	want.Serial = ""
	g.Expect(plan.HasIdentity(blankDisk(shared), want)).To(ContainSubstring("wrong WWN"), "nothing says which of the disks was meant")
}
