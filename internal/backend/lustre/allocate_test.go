package lustre_test

import (
	"fmt"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"parallelfs.dev/operator/api/v1alpha1"
	"parallelfs.dev/operator/internal/backend"
	"parallelfs.dev/operator/internal/backend/lustre"
)

// disk is a StorageTarget that was chosen on a node, and that nobody has formatted yet.
func disk(name, node string, role v1alpha1.Role, pool string, slot int32) v1alpha1.StorageTarget {
	return v1alpha1.StorageTarget{
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "storage"},
		Spec: v1alpha1.StorageTargetSpec{
			FileSystem: v1alpha1.TargetOwner{Name: "scratch", UID: "6f1c"}, Node: node, Role: role, StoragePool: pool, Slot: slot,
			Device: v1alpha1.DeviceIdentity{ID: v1alpha1.DeviceID("wwn-" + name), SizeBytes: 1 << 40},
		},
	}
}

// servers is a Lustre of nodes with two MDTs and two OSTs each, whose root directory is to be on n2's first.
func servers(nodes ...string) backend.Input {
	in := backend.Input{Chosen: true, FileSystem: &v1alpha1.FileSystem{
		ObjectMeta: metav1.ObjectMeta{Name: "scratch", Namespace: "storage", UID: "6f1c"},
		Spec:       v1alpha1.FileSystemSpec{StoragePools: []v1alpha1.StoragePoolSpec{{Name: "ssd"}}},
		Status: v1alpha1.FileSystemStatus{
			Metadata:     &v1alpha1.MetadataRecord{Node: "n2", Target: root},
			StoragePools: []v1alpha1.StoragePoolStatus{{Name: "ssd", Slot: 3}},
		},
	}}
	for _, n := range nodes {
		in.Targets = append(in.Targets,
			disk("mdt0-"+n, n, v1alpha1.RoleMetadata, "", 0), disk("mdt1-"+n, n, v1alpha1.RoleMetadata, "", 1),
			disk("ost0-"+n, n, v1alpha1.RoleStorage, "ssd", 0), disk("ost1-"+n, n, v1alpha1.RoleStorage, "ssd", 0))
	}
	return in
}

const root = "mdt0-n2"

// give asks once, and writes all that it says into the input.
func give(t *testing.T, in *backend.Input) lustre.Indices {
	t.Helper()
	given, err := lustre.GiveIndices(*in, root)
	NewWithT(t).Expect(err).NotTo(HaveOccurred())
	in.FileSystem.Status.Given, in.FileSystemNodes = given.Given, backend.WithRecords(in.FileSystemNodes, given.Nodes)
	return given
}

// usedUp has the status say that so many numbers of a kind were given.
func usedUp(in backend.Input, kind v1alpha1.NumberKind, highest int32) {
	in.FileSystem.Status.Given = &v1alpha1.GivenNumbers{Highest: []v1alpha1.HighestNumber{{Kind: kind, Number: highest}}}
}

// indices are the names of targets, by StorageTarget.
func indices(nodes []v1alpha1.FileSystemNode) map[string]string {
	out := map[string]string{}
	for _, given := range backend.GivenOn(nodes) {
		for _, t := range given.Targets {
			out[t.Name] = given.Name + " " + lustre.TargetOf("pfs", given.Role, t.ID).String()
		}
	}
	return out
}

func TestMDT0000IsTheRootsAndTheNextOneIsOnAnotherNode(t *testing.T) {
	g := NewWithT(t)
	in := servers("n1", "n2", "n3")
	given := give(t, &in)
	g.Expect(given.More).To(BeFalse())
	g.Expect(indices(in.FileSystemNodes)).To(Equal(map[string]string{
		"mdt0-n2": "mdt-0 pfs-MDT0000", "mdt0-n1": "mdt-0 pfs-MDT0001", "mdt0-n3": "mdt-0 pfs-MDT0002",
		"mdt1-n1": "mdt-1 pfs-MDT0003", "mdt1-n2": "mdt-1 pfs-MDT0004", "mdt1-n3": "mdt-1 pfs-MDT0005",
		"ost0-n1": "ost-ssd pfs-OST0000", "ost1-n1": "ost-ssd pfs-OST0001", "ost0-n2": "ost-ssd pfs-OST0002", "ost1-n2": "ost-ssd pfs-OST0003",
		"ost0-n3": "ost-ssd pfs-OST0004", "ost1-n3": "ost-ssd pfs-OST0005",
	}))
	g.Expect(in.FileSystem.Status.Given.HighestOf(v1alpha1.NumberOfMetadataTarget)).To(Equal(int32(6)))
	g.Expect(in.FileSystem.Status.Given.HighestOf(v1alpha1.NumberOfStorageTarget)).To(Equal(int32(6)))
	n1 := in.FileSystemNodes[0].Spec
	g.Expect(n1.Node).To(Equal("n1"))
	g.Expect(n1.Members).To(HaveLen(3))
	g.Expect(n1.Members[1]).To(And(HaveField("Name", "mdt-1"), HaveField("Slot", int32(1)), HaveField("ID", int32(4))))
	g.Expect(n1.Members[2]).To(And(HaveField("Name", "ost-ssd"), HaveField("Slot", int32(3)), HaveField("StoragePool", "ssd"), HaveField("ID", int32(0))))
}

func TestTheMGSHasNoIndex(t *testing.T) {
	g := NewWithT(t)
	in := servers("n2")
	in.Targets = append(in.Targets, disk("mgt-n2", "n2", v1alpha1.RoleManagement, "", 0))
	give(t, &in)
	g.Expect(indices(in.FileSystemNodes)).NotTo(HaveKey("mgt-n2"))
	g.Expect(lustre.Member(&in.Targets[4].Spec)).To(Equal("mgs"))
	g.Expect(lustre.TargetOf("pfs", v1alpha1.RoleManagement, 0).String()).To(Equal("MGS"))
}

func TestAnIndexThatWasGivenStays(t *testing.T) {
	g := NewWithT(t)
	in := servers("n1", "n2")
	give(t, &in)
	before := indices(in.FileSystemNodes)

	again := give(t, &in)
	g.Expect(again.Nodes).To(BeEmpty())
	g.Expect(in.FileSystem.Status.Given.Promised).To(BeEmpty(), "all of it is recorded")

	in.Targets = append(servers("n0").Targets, in.Targets...)
	give(t, &in)
	after := indices(in.FileSystemNodes)
	for name, index := range before {
		g.Expect(after).To(HaveKeyWithValue(name, index))
	}
	g.Expect(after).To(And(HaveKeyWithValue("mdt0-n0", "mdt-0 pfs-MDT0004"), HaveKeyWithValue("ost1-n0", "ost-ssd pfs-OST0005")))
}

func TestAnOperatorThatWasKilledGivesTheSameIndices(t *testing.T) {
	g := NewWithT(t)
	in := servers("n1", "n2")
	first, err := lustre.GiveIndices(in, root)
	g.Expect(err).NotTo(HaveOccurred())

	// The status was written, and no FileSystemNode. Meanwhile, a node joined whose name comes first.
	in.Targets = append(servers("n0").Targets, in.Targets...)
	in.FileSystem.Status.Given = first.Given
	second, err := lustre.GiveIndices(in, root)
	g.Expect(err).NotTo(HaveOccurred())
	after := indices(second.Nodes)
	for name, index := range indices(first.Nodes) {
		g.Expect(after).To(HaveKeyWithValue(name, index))
	}
	g.Expect(second.Given.HighestOf(v1alpha1.NumberOfStorageTarget)).To(Equal(int32(6)))
}

func TestAnIndexIsNeverGivenToAnotherDisk(t *testing.T) {
	g := NewWithT(t)
	in := servers("n1", "n2")
	give(t, &in)
	in.Targets = in.Targets[:len(in.Targets)-1] // the disk of the last OST is gone, and another one comes
	in.Targets = append(in.Targets, disk("new-n2", "n2", v1alpha1.RoleStorage, "ssd", 0))
	give(t, &in)
	g.Expect(indices(in.FileSystemNodes)).To(And(HaveKeyWithValue("ost1-n2", "ost-ssd pfs-OST0003"), HaveKeyWithValue("new-n2", "ost-ssd pfs-OST0004")))
}

func TestARestoredStatusGivesNothingTwice(t *testing.T) {
	g := NewWithT(t)
	in := servers("n1", "n2")
	give(t, &in)
	in.Targets = append(in.Targets, disk("new-n1", "n1", v1alpha1.RoleStorage, "ssd", 0))
	in.FileSystem.Status.Given = nil
	give(t, &in)
	g.Expect(indices(in.FileSystemNodes)).To(HaveKeyWithValue("new-n1", "ost-ssd pfs-OST0004"), "the FileSystemNodes know what the status has forgotten")

	in.Targets = append(in.Targets, disk("new-n2", "n2", v1alpha1.RoleStorage, "ssd", 0))
	in.State = &backend.State{Targets: []backend.Target{{ID: 9}, {Role: v1alpha1.RoleMetadata, ID: 7}}}
	in.FileSystem.Status.Given = nil
	give(t, &in)
	g.Expect(indices(in.FileSystemNodes)).To(HaveKeyWithValue("new-n2", "ost-ssd pfs-OST0009"), "Lustre remembers an OST0008 that nobody recorded")
	g.Expect(in.FileSystem.Status.Given.HighestOf(v1alpha1.NumberOfMetadataTarget)).To(Equal(int32(7)))
}

func TestAMemberThatRetiredServesAgainWithANewDisk(t *testing.T) {
	g := NewWithT(t)
	in := servers("n1", "n2")
	give(t, &in)
	in.FileSystemNodes[0].Spec.Members[2].Retired = true
	in.Targets = append(in.Targets, disk("new-n1", "n1", v1alpha1.RoleStorage, "ssd", 0))
	give(t, &in)
	g.Expect(in.FileSystemNodes[0].Spec.Members[2].Targets).To(HaveLen(3))
	g.Expect(in.FileSystemNodes[0].Spec.Members[2].Retired).To(BeFalse())
}

func TestNoMDTComesBeforeTheRoots(t *testing.T) {
	g := NewWithT(t)
	in := servers("n1")
	give(t, &in)
	g.Expect(indices(in.FileSystemNodes)).To(Equal(map[string]string{"ost0-n1": "ost-ssd pfs-OST0000", "ost1-n1": "ost-ssd pfs-OST0001"}))
	in.Targets = append(in.Targets, servers("n2").Targets...)
	give(t, &in)
	g.Expect(indices(in.FileSystemNodes)).To(And(HaveKeyWithValue(root, "mdt-0 pfs-MDT0000"), HaveKeyWithValue("mdt0-n1", "mdt-0 pfs-MDT0001")))
}

func TestARootWhoseIndexIsAnothersIsRefused(t *testing.T) {
	in := servers("n1", "n2")
	usedUp(in, v1alpha1.NumberOfMetadataTarget, 1)
	_, err := lustre.GiveIndices(in, root)
	NewWithT(t).Expect(err).To(MatchError(ContainSubstring("mdt0-n2 is to hold the root directory, as MDT0000")))
}

func TestAPoolWithoutASlotGetsNothingYet(t *testing.T) {
	g := NewWithT(t)
	in := servers("n2")
	in.FileSystem.Status.StoragePools = nil
	give(t, &in)
	g.Expect(indices(in.FileSystemNodes)).To(HaveLen(2))
	g.Expect(in.FileSystem.Status.Given.HighestOf(v1alpha1.NumberOfStorageTarget)).To(BeZero())
}

func TestANodeThatWasGivenUpGetsNothingNew(t *testing.T) {
	g := NewWithT(t)
	in := servers("n1", "n2")
	give(t, &in)
	in.FileSystemNodes[0].Spec.GivenUp = &v1alpha1.NodeGivenUp{}
	in.Targets = append(in.Targets, disk("new-n1", "n1", v1alpha1.RoleStorage, "ssd", 0))
	give(t, &in)
	g.Expect(indices(in.FileSystemNodes)).NotTo(HaveKey("new-n1"))
}

func TestADiskThatWasTakenOutDoesNotComeBackWithItsIndex(t *testing.T) {
	g := NewWithT(t)
	in := servers("n1", "n2")
	give(t, &in)
	out := metav1.NewTime(time.Date(2026, 11, 1, 12, 0, 0, 0, time.UTC))
	in.FileSystemNodes[0].Spec.Members[2].Targets[0].TakenOut = &out
	_, err := lustre.GiveIndices(in, root)
	g.Expect(err).To(MatchError(ContainSubstring("ost0-n1 on node n1 was taken out")))
}

func TestIndicesComeInPortionsThatTheStatusHasRoomFor(t *testing.T) {
	g := NewWithT(t)
	in := servers("n2")
	for i := range 300 {
		in.Targets = append(in.Targets, disk(fmt.Sprintf("ost-%03d", i), fmt.Sprintf("n%03d", i%25), v1alpha1.RoleStorage, "ssd", 0))
	}
	given := give(t, &in)
	g.Expect(given.More).To(BeTrue())
	promised := 0
	for _, node := range in.FileSystem.Status.Given.Promised {
		promised += len(node.Numbers)
	}
	g.Expect(promised).To(Equal(backend.MostPromises))
	g.Expect(give(t, &in).More).To(BeFalse())
	g.Expect(indices(in.FileSystemNodes)).To(HaveLen(304))
	g.Expect(in.FileSystem.Status.Given.HighestOf(v1alpha1.NumberOfStorageTarget)).To(Equal(int32(302)))
}

func TestTheLastIndexIsFollowedByASentence(t *testing.T) {
	in := servers("n1", "n2")
	usedUp(in, v1alpha1.NumberOfStorageTarget, 65503)
	_, err := lustre.GiveIndices(in, root)
	NewWithT(t).Expect(err).To(MatchError(ContainSubstring("all 65504 numbers of a storage target were given")))
}

// recorded says that the disk of a StorageTarget of another cluster carries what it was given.
func recorded(t v1alpha1.StorageTarget, member string, server, target int32) v1alpha1.StorageTarget {
	t.Status.Provisioned = &v1alpha1.TargetProvisioned{}
	slot := t.Spec.Slot
	if t.Spec.Role == v1alpha1.RoleStorage {
		slot = 3
	}
	t.Status.Record = &v1alpha1.TargetRecord{
		Facts: &v1alpha1.FileSystemFacts{MetadataNode: "n2", MetadataTarget: root},
		Member: &v1alpha1.RecordedMember{Name: member, Role: t.Spec.Role, StoragePool: t.Spec.StoragePool, Slot: slot,
			ID: server, TargetID: target},
	}
	return t
}

func TestWhatADiskSaysIsGivenAgainAndNothingNewBeforeLustreHasSpoken(t *testing.T) {
	g := NewWithT(t)
	in := servers("n1", "n2")
	in.Targets[4] = recorded(in.Targets[4], "mdt-0", 1, 1)
	in.Targets[6] = recorded(in.Targets[6], "ost-ssd", 0, 6)
	given := give(t, &in)
	g.Expect(indices(in.FileSystemNodes)).To(Equal(map[string]string{root: "mdt-0 pfs-MDT0000", "ost0-n2": "ost-ssd pfs-OST0005"}))
	g.Expect(given.Unread).To(ContainSubstring("nothing new gets a number before Lustre has said"))

	in.State = &backend.State{}
	g.Expect(give(t, &in).Unread).To(BeEmpty())
	g.Expect(indices(in.FileSystemNodes)).To(HaveLen(8))
}

func TestWhatADiskSaysIsNeverGivenToAnother(t *testing.T) {
	g := NewWithT(t)
	in := servers("n1", "n2")
	in.Targets[4] = recorded(in.Targets[4], "mdt-0", 1, 1)
	in.Targets[6] = recorded(in.Targets[6], "ost-ssd", 0, 6)
	in.State = &backend.State{}
	give(t, &in)
	g.Expect(indices(in.FileSystemNodes)).To(And(HaveKeyWithValue("mdt0-n1", "mdt-0 pfs-MDT0001"), HaveKeyWithValue("ost0-n1", "ost-ssd pfs-OST0006")))
}

func TestADiskThatContradictsTheRecordIsRefused(t *testing.T) {
	g := NewWithT(t)
	in := servers("n1", "n2")
	give(t, &in)
	in.Targets[6] = recorded(in.Targets[6], "ost-ssd", 0, 9)
	_, err := lustre.GiveIndices(in, root)
	g.Expect(err).To(MatchError(ContainSubstring("says that it has the number 9, and 3 is recorded")))
}

func TestTwoDisksOfOneIndexAreRefused(t *testing.T) {
	g := NewWithT(t)
	in := servers("n1", "n2")
	give(t, &in)
	in.Targets = append(in.Targets, recorded(disk("old-n2", "n2", v1alpha1.RoleStorage, "ssd", 0), "ost-ssd", 0, 1))
	_, err := lustre.GiveIndices(in, root)
	g.Expect(err).To(MatchError(ContainSubstring("the targets ost0-n1 and old-n2 both have the number 1")))
}
