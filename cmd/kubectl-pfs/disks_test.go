package main

import (
	"encoding/json"
	"fmt"
	"testing"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"parallelfs.dev/operator/api/v1alpha1"
)

// inventoried returns two nodes with a disk of each kind.
func inventoried() []client.Object {
	big := int64(4_000_787_030_016)
	return []client.Object{
		&v1alpha1.NodeInventory{ObjectMeta: metav1.ObjectMeta{Name: "oss3"}, Status: v1alpha1.NodeInventoryStatus{BlockDevices: []v1alpha1.BlockDevice{
			{KernelName: "sda", SizeBytes: 480_103_981_056, MediaType: "SSD", Transport: "sata", Unusable: []string{"sda2 is mounted at /", "it has partitions"}},
			{KernelName: "sdb", IDs: []string{"wwn-0xwell"}, SizeBytes: big, MediaType: "HDD", Transport: "sas", Target: "storage/well",
				Unusable: []string{"it carries storage/well"}},
			{KernelName: "sdc", IDs: []string{"wwn-0xfree"}, SizeBytes: big, MediaType: "HDD", Transport: "sas", Serial: "S1"},
			{KernelName: "sdd", IDs: []string{"wwn-0xblank"}, SizeBytes: big, MediaType: "HDD", Transport: "sas"},
		}}},
		&v1alpha1.NodeInventory{ObjectMeta: metav1.ObjectMeta{Name: "oss4"}, Status: v1alpha1.NodeInventoryStatus{BlockDevices: []v1alpha1.BlockDevice{
			{KernelName: "nvme0n1", IDs: []string{"nvme-eui.1"}, SizeBytes: big, MediaType: "SSD", Transport: "nvme"},
		}}},
		serving("well", "oss3"), planned("blank", "oss3", hashOf("a")),
		diskOf("gone", "oss4", is(v1alpha1.ConditionReady, metav1.ConditionFalse, v1alpha1.ReasonTargetMissing, "no disk has its name")),
	}
}

func TestDisksShowWhoUsesThemAndWhyOthersCannotBeUsed(t *testing.T) {
	g := NewWithT(t)
	pfs := on(t, inventoried())
	got := pfs("disks")
	golden(t, "disks.txt", got.stdout)
	g.Expect(got.stderr).To(Equal("6 disks; 2 of them are usable, 8 TB together.\n"))
	g.Expect(pfs("disks", "--node", "oss4").stdout).NotTo(ContainSubstring("oss3"))
	g.Expect(pfs("disks", "--node", "nowhere").stderr).To(ContainSubstring(`there is no NodeInventory of a node "nowhere"`))
}

func TestUsableDisksAreBlankUnusedAndWithoutAnOwner(t *testing.T) {
	g := NewWithT(t)
	var got []disk
	g.Expect(json.Unmarshal([]byte(on(t, inventoried())("disks", "--usable", "-o", "json").stdout), &got)).To(Succeed())
	names := []string{}
	for _, d := range got {
		names = append(names, d.Node+"/"+d.Device)
	}
	g.Expect(names).To(Equal([]string{"oss3/sdc", "oss4/nvme0n1"}))
	g.Expect(got[0].Serial).To(Equal("S1"))
}

// largeCluster has 1000 nodes and 24,000 targets of one FileSystem.
func largeCluster() snapshot {
	const nodes, each = 1000, 24
	seen := snapshot{fileSystems: []v1alpha1.FileSystem{*scratchOf(is(v1alpha1.ConditionReady, metav1.ConditionTrue, v1alpha1.ReasonHealthy, "well"))}}
	for n := range nodes {
		node := fmt.Sprintf("oss%04d", n)
		inventory := v1alpha1.NodeInventory{ObjectMeta: metav1.ObjectMeta{Name: node}}
		for d := range each {
			name := fmt.Sprintf("scratch-%s-%02d", node, d)
			seen.targets = append(seen.targets, *serving(name, node))
			inventory.Status.BlockDevices = append(inventory.Status.BlockDevices, v1alpha1.BlockDevice{
				KernelName: fmt.Sprintf("sd%d", d), IDs: []string{"wwn-0x" + name}, SizeBytes: 4e12, Target: "storage/" + name, Unusable: []string{"it carries a target"},
			})
		}
		seen.inventories = append(seen.inventories, inventory)
		seen.nodes = append(seen.nodes, v1alpha1.FileSystemNode{ObjectMeta: metav1.ObjectMeta{Name: node}})
	}
	return seen
}

func BenchmarkStatusOf24000Targets(b *testing.B) {
	seen := largeCluster()
	for b.Loop() {
		state := reportOf(&seen.fileSystems[0], seen.targets, seen.nodes, whenSeen)
		if state.render() == "" {
			b.Fatal("nothing")
		}
	}
}

func BenchmarkDisksOf24000Targets(b *testing.B) {
	seen := largeCluster()
	for b.Loop() {
		if disksTable(disksOf(seen.inventories, seen.targets)) == "" {
			b.Fatal("nothing")
		}
	}
}

// BenchmarkDecoding24000Targets measures how long a client decodes the answers of the API server.
func BenchmarkDecoding24000Targets(b *testing.B) {
	data, err := json.Marshal(v1alpha1.StorageTargetList{Items: largeCluster().targets})
	if err != nil {
		b.Fatal(err)
	}
	b.SetBytes(int64(len(data)))
	for b.Loop() {
		if json.Unmarshal(data, &v1alpha1.StorageTargetList{}) != nil {
			b.Fatal("unreadable")
		}
	}
}

func TestADiskThatReportsProblemsIsShownWithThem(t *testing.T) {
	g := NewWithT(t)
	failing := diskOf("worn", "oss5", is(v1alpha1.ConditionReady, metav1.ConditionTrue, v1alpha1.ReasonProven, ""),
		is(v1alpha1.ConditionDiskHealthy, metav1.ConditionFalse, v1alpha1.ReasonDiskFailing, "disk sda reports its own failure: the media is read-only"))
	health := &v1alpha1.DiskHealth{State: v1alpha1.DiskFailing, Reasons: []string{"the media is read-only"}}
	got := disksOf([]v1alpha1.NodeInventory{{
		ObjectMeta: metav1.ObjectMeta{Name: "oss5"},
		Status: v1alpha1.NodeInventoryStatus{BlockDevices: []v1alpha1.BlockDevice{
			{KernelName: "sda", Target: "storage/worn", Health: health},
			{KernelName: "sdb", Health: health},
			{KernelName: "sdc", Health: &v1alpha1.DiskHealth{State: v1alpha1.DiskHealthy}},
		}},
	}}, []v1alpha1.StorageTarget{*failing})
	g.Expect(got).To(HaveExactElements(
		And(HaveField("State", v1alpha1.ReasonDiskFailing), HaveField("Why", HaveExactElements(ContainSubstring("the media is read-only")))),
		And(HaveField("State", ""), HaveField("Why", HaveExactElements("its health is Failing: the media is read-only")), HaveField("Health", v1alpha1.DiskFailing)),
		And(HaveField("State", ""), HaveField("Why", BeEmpty()), HaveField("Health", v1alpha1.DiskHealthy)),
	))
}
