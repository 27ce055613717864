package plan_test

import (
	"testing"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"parallelfs.dev/operator/api/v1alpha1"
	"parallelfs.dev/operator/internal/plan"
)

// shared is an input in which oss1 and oss2 show the same two disks, one of which the pool names on each of them.
func shared() plan.SelectInput {
	fs := aFileSystem("scratch", naming(
		v1alpha1.DeviceReference{Node: "oss1", ID: "wwn-san-0000"}, v1alpha1.DeviceReference{Node: "oss2", ID: "wwn-san-0001"}))
	in := anInput(fs, 0, "oss1", "oss2")
	for _, node := range in.Pools["ssd"] {
		in.Inventories[node] = v1alpha1.NodeInventoryStatus{BlockDevices: []v1alpha1.BlockDevice{
			// One enclosure, whose logical units have its serial number.
			diskNumber("san", 0, func(b *v1alpha1.BlockDevice) { b.Serial = "the enclosure" }),
			diskNumber("san", 1, func(b *v1alpha1.BlockDevice) { b.Serial = "the enclosure" }),
		}}
	}
	in.Seconds = map[string]map[string]string{"ssd": {"oss1": "oss2", "oss2": "oss1"}}
	return in
}

func nodesOf(targets []v1alpha1.StorageTarget) map[string]string {
	nodes := map[string]string{}
	for _, t := range targets {
		nodes[string(t.Spec.Device.ID)] = t.Spec.Node + ", then " + t.Spec.SecondNode
	}
	return nodes
}

func TestADiskThatBothNodesOfAPairShowIsOneTargetOfTheNodeThatItIsNamedOn(t *testing.T) {
	g := NewWithT(t)
	selection := plan.Select(shared())
	g.Expect(selection.Problems).To(BeEmpty())
	g.Expect(nodesOf(selection.Targets)).To(Equal(map[string]string{"wwn-san-0000": "oss1, then oss2", "wwn-san-0001": "oss2, then oss1"}))
	for i := range selection.Targets {
		g.Expect(selection.Targets[i].Spec.ServeOn).To(BeEmpty())
		g.Expect(selection.Targets[i].Spec.Conflict).To(BeEmpty())
	}
}

func TestNothingIsATargetOfTwoNodesBecauseTwoInventoriesShowIt(t *testing.T) {
	in := shared()
	in.Seconds = nil
	in.FileSystem.Spec.StoragePools[0].Targets.Devices = in.FileSystem.Spec.StoragePools[0].Targets.Devices[:1]
	selection := plan.Select(in)
	NewWithT(t).Expect(nodesOf(selection.Targets)).To(Equal(map[string]string{"wwn-san-0000": "oss1, then "}))
}

func TestADiskIsNoTargetOfTwoNodesUntilTheSecondShowsThatItHasTheSameOne(t *testing.T) {
	other := func(f func(b *v1alpha1.BlockDevice)) func(in *plan.SelectInput) {
		return func(in *plan.SelectInput) { change(*in, "oss2", 0, f) }
	}
	for says, c := range map[string]func(in *plan.SelectInput){
		"node oss2 has no NodeInventory": func(in *plan.SelectInput) {
			delete(in.Inventories, "oss2")
		},
		"that node was decommissioned": func(in *plan.SelectInput) { in.GaveUp = map[string]bool{"oss2": true} },
		"that node shows no disk with this name": other(func(b *v1alpha1.BlockDevice) {
			b.IDs, b.WWN, b.Serial = []string{"wwn-another"}, "0xanother", "another"
		}),
		"wrong WWN":    other(func(b *v1alpha1.BlockDevice) { b.WWN = "0xanother" }),
		"wrong serial": other(func(b *v1alpha1.BlockDevice) { b.Serial = "another" }),
		"grown disk":   other(func(b *v1alpha1.BlockDevice) { b.SizeBytes++ }),
		"shrunk disk":  other(func(b *v1alpha1.BlockDevice) { b.SizeBytes-- }),
		"is mounted at /srv": other(func(b *v1alpha1.BlockDevice) {
			b.Mounts = []string{"/srv"}
		}),
		"is made from it": other(func(b *v1alpha1.BlockDevice) { b.Holders = []string{"md0"} }),
		"is read-only":    other(func(b *v1alpha1.BlockDevice) { b.ReadOnly = true }),
		"that node shows 2 disks with its WWN": func(in *plan.SelectInput) {
			inventory := in.Inventories["oss2"]
			path := inventory.BlockDevices[0]
			path.KernelName = "sdz"
			inventory.BlockDevices = append(inventory.BlockDevices, path)
			in.Inventories["oss2"] = inventory
		},
		"the disk has no WWN or no serial number": func(in *plan.SelectInput) {
			for _, node := range []string{"oss1", "oss2"} {
				change(*in, node, 0, func(b *v1alpha1.BlockDevice) { b.Serial = "" })
			}
		},
	} {
		t.Run(says, func(t *testing.T) {
			g := NewWithT(t)
			in := shared()
			c(&in)
			selection := plan.Select(in)
			g.Expect(nodesOf(selection.Targets)).NotTo(HaveKey("wwn-san-0000"))
			g.Expect(messages(selection.Problems)).To(ContainElement(And(
				ContainSubstring("node oss1: wwn-san-0000 is not taken up, because node oss2 is to serve it, too"), ContainSubstring(says))))
		})
	}
}

func TestTheNumberOfNodesOfATargetNeverChangesWithTheSpec(t *testing.T) {
	g := NewWithT(t)
	in := shared()
	in.Existing = plan.Select(in).Targets
	in.Seconds = nil
	delete(in.Inventories, "oss2")
	g.Expect(nodesOf(plan.Select(in).Targets)).To(Equal(nodesOf(in.Existing)))

	in = shared()
	in.Seconds = nil
	in.Existing = plan.Select(in).Targets
	in.Seconds = shared().Seconds
	g.Expect(nodesOf(plan.Select(in).Targets)).To(Equal(map[string]string{"wwn-san-0000": "oss1, then ", "wwn-san-0001": "oss2, then "}))
}

func TestTheSecondNodeTakesTheDiskForNothingElse(t *testing.T) {
	g := NewWithT(t)
	in := shared()
	in.Existing = plan.Select(in).Targets

	another := aFileSystem("another", selecting(1))
	another.ObjectMeta = metav1.ObjectMeta{Namespace: "storage", Name: "another", UID: "uid-of-another"}
	theirs := anInput(another, 0, "oss2")
	theirs.Inventories = in.Inventories
	theirs.Others = in.Existing
	selection := plan.Select(theirs)
	g.Expect(selection.Targets).To(BeEmpty())
	g.Expect(messages(selection.Problems)).To(ContainElement(ContainSubstring("it belongs to StorageTarget storage/scratch-ssd-")))

	another.Spec.StoragePools[0].Targets = naming(v1alpha1.DeviceReference{Node: "oss2", ID: "wwn-san-0000"})
	selection = plan.Select(theirs)
	g.Expect(selection.Targets).To(ConsistOf(HaveField("Spec.Conflict", ContainSubstring("the device is wanted twice"))))
}
