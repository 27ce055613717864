package assign

import (
	"testing"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"parallelfs.dev/operator/api/v1alpha1"
	"parallelfs.dev/operator/internal/backend"
)

const anyFS v1alpha1.FileSystemType = "AnyFS"

// tookOver returns the StorageTarget of a disk that was taken over, with the record on the disk.
func tookOver(name, node string, facts v1alpha1.FileSystemFacts, m v1alpha1.RecordedMember) v1alpha1.StorageTarget {
	return v1alpha1.StorageTarget{
		ObjectMeta: metav1.ObjectMeta{Namespace: "storage", Name: name},
		Spec: v1alpha1.StorageTargetSpec{
			FileSystem: v1alpha1.TargetOwner{Name: "scratch"}, Node: node, Role: m.Role, StoragePool: m.StoragePool,
			Device: v1alpha1.DeviceIdentity{ID: v1alpha1.DeviceID("disk-" + name)},
		},
		Status: v1alpha1.StorageTargetStatus{
			Provisioned: &v1alpha1.TargetProvisioned{UUID: "u", Finished: new(metav1.Unix(1, 0))},
			Record:      &v1alpha1.TargetRecord{Facts: &facts, Member: &m},
		},
	}
}

// twoDisks returns the disks of two servers of a pool.
func twoDisks() backend.Input {
	facts := v1alpha1.FileSystemFacts{Type: anyFS, MetadataNode: "n1", MetadataTarget: "meta", BasePort: 8064}
	server := func(id, target int32) v1alpha1.RecordedMember {
		return v1alpha1.RecordedMember{Name: "storage-ssd", Role: v1alpha1.RoleStorage, StoragePool: "ssd", Slot: 3, ID: id, TargetID: target}
	}
	return backend.Input{
		Chosen: true,
		FileSystem: &v1alpha1.FileSystem{Spec: v1alpha1.FileSystemSpec{
			Type: anyFS, MetadataServers: v1alpha1.MetadataSpec{Targets: v1alpha1.TargetsSpec{Directories: []v1alpha1.DirectoryPath{"/data/meta"}}},
			StoragePools: []v1alpha1.StoragePoolSpec{{Name: "ssd"}},
		}},
		Targets: []v1alpha1.StorageTarget{tookOver("a", "n1", facts, server(4, 7)), tookOver("b", "n2", facts, server(5, 8))},
	}
}

func TestRecordsOnDisksAreCombined(t *testing.T) {
	g, in := NewWithT(t), twoDisks()
	in.Targets[0].Status.Record.Facts.MetadataTarget = "" // the disk was written before the metadata had its disk
	found, err := ReadDisks(in)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(found.Facts).To(Equal(&v1alpha1.FileSystemFacts{Type: anyFS, MetadataNode: "n1", MetadataTarget: "meta", BasePort: 8064}))
	g.Expect(found.Given).To(HaveExactElements(
		And(HaveField("Node", "n1"), HaveField("ID", int32(4)), HaveField("Targets", HaveExactElements(HaveField("ID", int32(7))))),
		And(HaveField("Node", "n2"), HaveField("ID", int32(5)), HaveField("Targets", HaveExactElements(HaveField("ID", int32(8)))))))
	slot, recorded := found.Slot("ssd")
	g.Expect(recorded).To(BeTrue())
	g.Expect(slot).To(BeEquivalentTo(3))
	g.Expect(found.Unread).To(BeEmpty())
	g.Expect(found.Waits(in.FileSystem)).To(BeFalse())
}

func TestDisksThatContradictEachOtherOrTheFileSystemAreNamed(t *testing.T) {
	for what, c := range map[string]struct {
		change  func(in *backend.Input, record *v1alpha1.TargetRecord)
		message string
	}{
		"another type":             {func(_ *backend.Input, record *v1alpha1.TargetRecord) { record.Facts.Type = "OtherFS" }, "holds data of a OtherFS filesystem"},
		"another node of metadata": {func(_ *backend.Input, record *v1alpha1.TargetRecord) { record.Facts.MetadataNode = "n9" }, "the metadata is on node n1, the other one on n9"},
		"another disk of metadata": {func(_ *backend.Input, record *v1alpha1.TargetRecord) { record.Facts.MetadataTarget = "x" }, "the metadata is on meta, the other one on x"},
		"another port":             {func(_ *backend.Input, record *v1alpha1.TargetRecord) { record.Facts.BasePort = 9 }, "the first port is 8064, the other one 9"},
		"another slot of the pool": {func(_ *backend.Input, record *v1alpha1.TargetRecord) { record.Member.Slot = 1 }, "pool ssd has the slot 3, the other one 1"},
		"the slot of another pool": {func(_ *backend.Input, record *v1alpha1.TargetRecord) { record.Member.StoragePool = "hdd" }, "the slot 3 is that of two pools"},
		"the id of another server": {func(_ *backend.Input, record *v1alpha1.TargetRecord) { record.Member.ID = 4 }, "the Storage server id 4 is that of two servers"},
		"the id of another disk":   {func(_ *backend.Input, record *v1alpha1.TargetRecord) { record.Member.TargetID = 7 }, "the target id 7 is that of both"},
		"another id of its server": {func(in *backend.Input, _ *v1alpha1.TargetRecord) { in.Targets[1].Spec.Node = "n1" },
			"server storage-ssd.n1 has the id 4, the other one 5"},
		"another node than is recorded": {func(in *backend.Input, _ *v1alpha1.TargetRecord) {
			in.FileSystem.Status.Metadata = &v1alpha1.MetadataRecord{Node: "n3"}
		}, "node of the metadata is n1, and this FileSystem has recorded n3"},
		"another disk than is recorded": {func(in *backend.Input, _ *v1alpha1.TargetRecord) {
			in.FileSystem.Status.Metadata = &v1alpha1.MetadataRecord{Node: "n1", Target: "x"}
		}, "StorageTarget of the metadata is meta, and this FileSystem has recorded x"},
		"another slot than is recorded": {func(in *backend.Input, _ *v1alpha1.TargetRecord) {
			in.FileSystem.Status.StoragePools = []v1alpha1.StoragePoolStatus{{Name: "ssd", Slot: 0}}
		}, "slot of pool ssd is 3, and this FileSystem has recorded 0"},
	} {
		t.Run(what, func(t *testing.T) {
			g, in := NewWithT(t), twoDisks()
			c.change(&in, in.Targets[1].Status.Record)
			_, err := ReadDisks(in)
			g.Expect(err).To(MatchError(ContainSubstring(c.message)))
			g.Expect(err).To(HaveField("Reason", v1alpha1.ReasonRecordsDisagree))
		})
	}
}

func TestADiskIsReadBeforeAnythingNewIsAssigned(t *testing.T) {
	blank := v1alpha1.BlockDevice{KernelName: "sdb", IDs: []string{"disk-b"}}
	carries := blank
	carries.Target = "storage/b"
	busy := blank
	busy.Unusable = []string{"it is in use"}
	inventory := func(b v1alpha1.BlockDevice) map[string]v1alpha1.NodeInventoryStatus {
		return map[string]v1alpha1.NodeInventoryStatus{"n2": {BlockDevices: []v1alpha1.BlockDevice{b}}}
	}
	for what, c := range map[string]struct {
		change func(in *backend.Input, t *v1alpha1.StorageTarget)
		unread string
	}{
		"one that this cluster has made says nothing": {change: func(_ *backend.Input, t *v1alpha1.StorageTarget) {
			t.Status.Provisioned.PlanHash, t.Status.Record = "sha256:1", nil
		}},
		"one that no server was told of says nothing": {change: func(_ *backend.Input, t *v1alpha1.StorageTarget) { t.Status.Record = &v1alpha1.TargetRecord{} }},
		"one that is being taken over":                {func(_ *backend.Input, t *v1alpha1.StorageTarget) { t.Status.Record = nil }, "it is being taken over"},
		"one whose record can't be used": {func(_ *backend.Input, t *v1alpha1.StorageTarget) {
			t.Status.Record = &v1alpha1.TargetRecord{Message: "it was copied here"}
		}, "it was copied here"},
		"one that carries a target, and was not taken over": {func(in *backend.Input, t *v1alpha1.StorageTarget) {
			t.Status, in.Inventories = v1alpha1.StorageTargetStatus{}, inventory(carries)
		}, "it carries a target, and was not taken over yet"},
		"one of another cluster, whatever the inventory says": {func(in *backend.Input, t *v1alpha1.StorageTarget) {
			t.Status, in.Inventories = v1alpha1.StorageTargetStatus{}, inventory(blank)
			t.Status.Conditions = []metav1.Condition{{Type: v1alpha1.ConditionReady, Status: metav1.ConditionFalse, Reason: v1alpha1.ReasonOtherCluster}}
		}, "it carries a target, and was not taken over yet: OtherCluster"},
		"one that could not be looked at": {func(in *backend.Input, t *v1alpha1.StorageTarget) {
			t.Status, in.Inventories = v1alpha1.StorageTargetStatus{}, inventory(busy)
		}, "no agent has looked at it yet"},
		"one on which its agent has found no target says nothing": {change: func(in *backend.Input, t *v1alpha1.StorageTarget) {
			t.Status, in.Inventories = v1alpha1.StorageTargetStatus{Plan: &v1alpha1.TargetPlan{Hash: "sha256:1"}}, inventory(busy)
			t.Status.Conditions = []metav1.Condition{{Type: v1alpha1.ConditionReady, Status: metav1.ConditionFalse, Reason: v1alpha1.ReasonAwaitingApproval}}
		}},
		"a blank one has no assignments": {change: func(in *backend.Input, t *v1alpha1.StorageTarget) {
			t.Status, in.Inventories = v1alpha1.StorageTargetStatus{}, inventory(blank)
		}},
		"one that is not there holds up no filesystem of this cluster": {change: func(_ *backend.Input, t *v1alpha1.StorageTarget) {
			t.Status = v1alpha1.StorageTargetStatus{}
		}},
		"one that is not there, of a cluster that was lost": {func(in *backend.Input, t *v1alpha1.StorageTarget) {
			t.Status, in.FileSystem.Spec.Provisioning.TakeOver = v1alpha1.StorageTargetStatus{}, "lost"
		}, "it is not there"},
	} {
		t.Run(what, func(t *testing.T) {
			g, in := NewWithT(t), twoDisks()
			c.change(&in, &in.Targets[1])
			found, err := ReadDisks(in)
			g.Expect(err).NotTo(HaveOccurred())
			if c.unread == "" {
				g.Expect(found.Unread).To(BeEmpty())
				g.Expect(found.Why()).To(BeEmpty())
				return
			}
			g.Expect(found.Unread).To(HaveExactElements(And(HavePrefix("b on node n2 ("), ContainSubstring(c.unread))))
			g.Expect(found.Why()).To(ContainSubstring("b on node n2"))
			g.Expect(found.Waits(in.FileSystem)).To(BeFalse(), "another disk says what the filesystem was given")
			in.Targets = in.Targets[1:]
			found, err = ReadDisks(in)
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(found.Waits(in.FileSystem)).To(BeTrue(), "nobody says what the filesystem was given")
		})
	}
}

func TestNothingIsAssignedBeforeTheDisksAreChosenAndTheMetadataDiskWasRead(t *testing.T) {
	g, in := NewWithT(t), twoDisks()
	in.Chosen = false
	found, err := ReadDisks(in)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(found.Waits(in.FileSystem)).To(BeTrue())
	g.Expect(found.Why()).To(BeEmpty(), "that takes a moment, and nobody has to do anything")

	in = twoDisks()
	in.FileSystem.Spec.MetadataServers.Targets.Directories = nil
	found, err = ReadDisks(in)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(found.Waits(in.FileSystem)).To(BeTrue(), "its node may not have listed the disk of the metadata yet")

	in = twoDisks()
	in.Targets[1].Name = "meta"
	in.Targets[1].Status.Record = nil
	found, err = ReadDisks(in)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(found.Waits(in.FileSystem)).To(BeTrue(), "whether it was initialized, its own disk says")
}

func TestRecordsOnDisksFromBeforeARecoveryDelayNothing(t *testing.T) {
	g, in := NewWithT(t), twoDisks()
	in.FileSystem.Status.Metadata = &v1alpha1.MetadataRecord{Node: "n9", Recovered: &v1alpha1.MetadataRecovered{PlanHash: "0123abcd"}}
	_, err := ReadDisks(in)
	g.Expect(err).NotTo(HaveOccurred())
	in.FileSystem.Status.Metadata.Recovered = nil
	_, err = ReadDisks(in)
	g.Expect(err).To(MatchError(ContainSubstring("node of the metadata")))
}

// fromAnother makes a disk one that was taken over from another owner.
func fromAnother(t *v1alpha1.StorageTarget, name string) {
	t.Status.FormerOwner = &v1alpha1.FormerTarget{
		Owner:  v1alpha1.FormerOwner{Cluster: "lost", Namespace: "lab", FileSystem: "old", Node: "was-" + t.Spec.Node},
		Target: name, UUID: "u",
	}
}

func TestDisksOfAnotherOwnerCallTheMetadataByTheNameThatItHad(t *testing.T) {
	g, in := NewWithT(t), twoDisks()
	for i := range in.Targets {
		fromAnother(&in.Targets[i], "old-"+in.Targets[i].Name)
		in.Targets[i].Status.Record.Facts.MetadataNode, in.Targets[i].Status.Record.Facts.MetadataTarget = "was-n3", "old-meta"
	}
	found, err := ReadDisks(in)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(found.Unread).To(ConsistOf(ContainSubstring("a on node n1 (the disk with its metadata, StorageTarget old-meta of before, was not taken over"),
		HavePrefix("b on node n2 (")))
	g.Expect(found.Waits(in.FileSystem)).To(BeTrue(), "nothing is initialized while the metadata of the disks is missing")

	meta := tookOver("meta", "n3", v1alpha1.FileSystemFacts{Type: anyFS, MetadataNode: "was-n3", MetadataTarget: "old-meta", BasePort: 8064},
		v1alpha1.RecordedMember{Name: "meta-0", Role: v1alpha1.RoleMetadata, Initialized: new(metav1.Unix(1, 0))})
	fromAnother(&meta, "old-meta")
	in.Targets = append(in.Targets, meta)
	found, err = ReadDisks(in)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(found.Unread).To(BeEmpty())
	g.Expect(found.Facts).To(HaveField("MetadataTarget", "meta"))
	g.Expect(found.Facts).To(HaveField("MetadataNode", "n3"))
	g.Expect(MetadataExpected(in)).To(BeFalse(), "nothing is recorded yet")
	in.FileSystem.Status.Metadata = &v1alpha1.MetadataRecord{Node: "n3", Target: "meta"}
	g.Expect(MetadataExpected(in)).To(BeTrue(), "it is there, and never made anew")
}

func TestADiskOfANamedFormerOwnerIsReadBeforeAnythingNewIsAssigned(t *testing.T) {
	g, in := NewWithT(t), twoDisks()
	t1 := &in.Targets[1]
	t1.Status = v1alpha1.StorageTargetStatus{Plan: &v1alpha1.TargetPlan{Hash: "sha256:1"}}
	fromAnother(t1, "old-b")
	in.FileSystem.Spec.Provisioning.TakeOverFrom = []v1alpha1.FormerOwner{t1.Status.FormerOwner.Owner}
	in.Inventories = map[string]v1alpha1.NodeInventoryStatus{"n1": {}, "n2": {}}
	found, err := ReadDisks(in)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(found.Unread).To(ConsistOf(ContainSubstring("it was not taken over from its former owner yet")))

	// Its agent does not look at a disk that the target of the former owner still has.
	t1.Status, t1.Spec.Conflict = v1alpha1.StorageTargetStatus{}, "StorageTarget lab/old-b uses it"
	found, err = ReadDisks(in)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(found.Unread).To(ConsistOf(ContainSubstring("another target has its disk: StorageTarget lab/old-b uses it")))
}
