package lustre_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"parallelfs.dev/operator/api/v1alpha1"
	"parallelfs.dev/operator/internal/backend"
	"parallelfs.dev/operator/internal/backend/lustre"
	"parallelfs.dev/operator/internal/backend/shared/assign"
)

// disk is a StorageTarget that was chosen on a node, and is not formatted yet.
func disk(name, node string, role v1alpha1.Role, pool string, slot int32) v1alpha1.StorageTarget {
	return v1alpha1.StorageTarget{
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "storage"},
		Spec: v1alpha1.StorageTargetSpec{
			FileSystem: v1alpha1.TargetOwner{Name: "scratch", UID: "6f1c"}, Node: node, Role: role, StoragePool: pool, Slot: slot,
			Device: v1alpha1.DeviceIdentity{ID: v1alpha1.DeviceID("wwn-" + name), SizeBytes: 1 << 40},
		},
	}
}

// servers is a Lustre on nodes with two MDTs and two OSTs each. Its root directory is to be on the first MDT of n2, which also has the MGT.
func servers(nodes ...string) backend.Input {
	everywhere := v1alpha1.NodeSelector{"server": ""}
	format := &v1alpha1.FormatSpec{FSType: v1alpha1.Ldiskfs}
	in := backend.Input{Chosen: true, Inventories: map[string]v1alpha1.NodeInventoryStatus{}, FileSystem: &v1alpha1.FileSystem{
		ObjectMeta: metav1.ObjectMeta{Name: "scratch", Namespace: "storage", UID: "6f1c"},
		Spec: v1alpha1.FileSystemSpec{
			Type: v1alpha1.Lustre, Version: "2.17.57", Lustre: &v1alpha1.LustreSpec{FSName: "pfs", BasePort: 9700},
			MetadataServers: v1alpha1.MetadataSpec{
				NodeSelector: everywhere, InstancesPerNode: 2, Targets: v1alpha1.TargetsSpec{Select: &v1alpha1.DeviceSelector{CountPerNode: 2}, Format: format},
			},
			StoragePools: []v1alpha1.StoragePoolSpec{{
				Name: "ssd", Copies: 1, NodeSelector: everywhere, Targets: v1alpha1.TargetsSpec{Select: &v1alpha1.DeviceSelector{CountPerNode: 2}, Format: format},
			}},
		},
		Status: v1alpha1.FileSystemStatus{
			Metadata:     &v1alpha1.MetadataRecord{Node: "n2", Target: root},
			StoragePools: []v1alpha1.StoragePoolStatus{{Name: "ssd", Slot: 3}},
		},
	}}
	for i, n := range []string{"n0", "n1", "n2", "n3"} {
		ip := fmt.Sprintf("10.0.0.%d", i)
		in.Nodes = append(in.Nodes, backend.Node{Name: n, IP: ip, Ready: true, Labels: everywhere})
		in.Inventories[n] = v1alpha1.NodeInventoryStatus{NetworkInterfaces: []v1alpha1.NetworkInterface{{Name: "eno1", Addresses: []string{ip + "/24"}}}}
	}
	for _, n := range nodes {
		in.Targets = append(in.Targets,
			disk("mdt0-"+n, n, v1alpha1.RoleMetadata, "", 0), disk("mdt1-"+n, n, v1alpha1.RoleMetadata, "", 1),
			disk("ost0-"+n, n, v1alpha1.RoleStorage, "ssd", 0), disk("ost1-"+n, n, v1alpha1.RoleStorage, "ssd", 0))
	}
	return in
}

const root = "mdt0-n2"

// give allocates once, and writes the results into the input.
func give(t *testing.T, in *backend.Input) backend.Allocation {
	t.Helper()
	given, err := lustre.New().Allocate(*in)
	NewWithT(t).Expect(err).NotTo(HaveOccurred())
	in.FileSystem.Status, in.FileSystemNodes = given.Status, assign.WithRecords(in.FileSystemNodes, given.Nodes)
	return given
}

// memberOfN1 is a member of the node n1.
func memberOfN1(in backend.Input, name string) *v1alpha1.NodeMember {
	for i := range in.FileSystemNodes {
		for j := range in.FileSystemNodes[i].Spec.Members {
			if m := &in.FileSystemNodes[i].Spec.Members[j]; in.FileSystemNodes[i].Spec.Node == "n1" && m.Name == name {
				return m
			}
		}
	}
	return nil
}

// usedUp sets the highest number of a kind that the status has as assigned.
func usedUp(in backend.Input, kind v1alpha1.NumberKind, highest int32) {
	in.FileSystem.Status.Given = &v1alpha1.GivenNumbers{Highest: []v1alpha1.HighestNumber{{Kind: kind, Number: highest}}}
}

// indices returns the names of targets, by StorageTarget.
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
	g.Expect(memberOfN1(in, "mdt-1")).To(HaveValue(And(HaveField("Slot", int32(1)), HaveField("ID", int32(4)))))
	g.Expect(memberOfN1(in, "ost-ssd")).To(HaveValue(And(HaveField("Slot", int32(3)), HaveField("StoragePool", "ssd"), HaveField("ID", int32(0)))))
}

func TestTheMGSHasNoIndex(t *testing.T) {
	g := NewWithT(t)
	in := servers("n2")
	in.FileSystem.Spec.Lustre.Management = &v1alpha1.LustreManagement{
		NodeSelector: v1alpha1.NodeSelector{"mgs": ""}, Targets: v1alpha1.TargetsSpec{Select: &v1alpha1.DeviceSelector{CountPerNode: 1}},
	}
	in.Nodes[2].Labels = map[string]string{"server": "", "mgs": ""}
	in.Targets = append(in.Targets, disk("mgt-n2", "n2", v1alpha1.RoleManagement, "", 0))
	give(t, &in)
	g.Expect(indices(in.FileSystemNodes)).NotTo(HaveKey("mgt-n2"))
	g.Expect(lustre.Member(&in.Targets[4].Spec)).To(Equal("mgs"))
	g.Expect(lustre.TargetOf("pfs", v1alpha1.RoleManagement, 0).String()).To(Equal("MGS"))
}

func TestAnAssignedIndexStays(t *testing.T) {
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

func TestARestartedOperatorAssignsTheSameIndices(t *testing.T) {
	g := NewWithT(t)
	in := servers("n1", "n2")
	first, err := lustre.New().Allocate(in)
	g.Expect(err).NotTo(HaveOccurred())

	// The status was written, and no FileSystemNode. Meanwhile, a node joined whose name comes first.
	in.Targets = append(servers("n0").Targets, in.Targets...)
	in.FileSystem.Status = first.Status
	second, err := lustre.New().Allocate(in)
	g.Expect(err).NotTo(HaveOccurred())
	after := indices(second.Nodes)
	for name, index := range indices(first.Nodes) {
		g.Expect(after).To(HaveKeyWithValue(name, index))
	}
	g.Expect(second.Status.Given.HighestOf(v1alpha1.NumberOfStorageTarget)).To(Equal(int32(6)))
}

func TestAnIndexIsNeverAssignedToAnotherDisk(t *testing.T) {
	g := NewWithT(t)
	in := servers("n1", "n2")
	give(t, &in)
	in.Targets = in.Targets[:len(in.Targets)-1] // the disk of the last OST is gone, and another one comes
	in.Targets = append(in.Targets, disk("new-n2", "n2", v1alpha1.RoleStorage, "ssd", 0))
	give(t, &in)
	g.Expect(indices(in.FileSystemNodes)).To(And(HaveKeyWithValue("ost1-n2", "ost-ssd pfs-OST0003"), HaveKeyWithValue("new-n2", "ost-ssd pfs-OST0004")))
}

func TestARestoredStatusAssignsNothingTwice(t *testing.T) {
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
	memberOfN1(in, "ost-ssd").Retired = true
	in.Targets = append(in.Targets, disk("new-n1", "n1", v1alpha1.RoleStorage, "ssd", 0))
	give(t, &in)
	g.Expect(memberOfN1(in, "ost-ssd")).To(HaveValue(And(HaveField("Targets", HaveLen(3)), HaveField("Retired", false))))
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

func TestARootWithTheIndexOfAnotherTargetIsRefused(t *testing.T) {
	in := servers("n1", "n2")
	usedUp(in, v1alpha1.NumberOfMetadataTarget, 1)
	_, err := lustre.New().Allocate(in)
	NewWithT(t).Expect(err).To(MatchError(ContainSubstring("mdt0-n2 is to hold the root directory, as MDT0000")))
}

func TestAPoolThatWaitsForADiskThatMaySayItsSlotGetsNothingYet(t *testing.T) {
	g := NewWithT(t)
	in := servers("n2")
	in.FileSystem.Status.StoragePools = nil
	in.Targets[3].Status.Provisioned = &v1alpha1.TargetProvisioned{}
	given := give(t, &in)
	g.Expect(given.Unread).To(ContainSubstring("ost1-n2 on node n2 (it is being taken over)"))
	g.Expect(indices(in.FileSystemNodes)).To(BeEmpty())
	in.Targets[3].Status.Provisioned.PlanHash = "sha256:1"
	g.Expect(give(t, &in).Unread).To(BeEmpty())
	g.Expect(indices(in.FileSystemNodes)).To(HaveLen(4))
	g.Expect(in.FileSystem.Status.StoragePools[0].Slot).To(BeZero())
}

func TestADecommissionedNodeGetsNothingNew(t *testing.T) {
	g := NewWithT(t)
	in := servers("n1", "n2")
	give(t, &in)
	in.FileSystemNodes[1].Spec.GivenUp = &v1alpha1.NodeGivenUp{}
	in.Targets = append(in.Targets, disk("new-n1", "n1", v1alpha1.RoleStorage, "ssd", 0))
	give(t, &in)
	g.Expect(indices(in.FileSystemNodes)).NotTo(HaveKey("new-n1"))
}

func TestADiskThatWasTakenOutDoesNotComeBackWithItsIndex(t *testing.T) {
	g := NewWithT(t)
	in := servers("n1", "n2")
	give(t, &in)
	out := metav1.NewTime(time.Date(2026, 11, 1, 12, 0, 0, 0, time.UTC))
	memberOfN1(in, "ost-ssd").Targets[0].TakenOut = &out
	_, err := lustre.New().Allocate(in)
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
	g.Expect(promised).To(Equal(assign.MostPromises))
	g.Expect(give(t, &in).More).To(BeFalse())
	g.Expect(indices(in.FileSystemNodes)).To(HaveLen(304))
	g.Expect(in.FileSystem.Status.Given.HighestOf(v1alpha1.NumberOfStorageTarget)).To(Equal(int32(302)))
}

func TestTheLastIndexIsFollowedByASentence(t *testing.T) {
	in := servers("n1", "n2")
	usedUp(in, v1alpha1.NumberOfStorageTarget, 65503)
	_, err := lustre.New().Allocate(in)
	NewWithT(t).Expect(err).To(MatchError(ContainSubstring("all 65504 numbers of a storage target were given")))
}

// recorded returns a StorageTarget of another cluster whose disk has this record.
func recorded(t v1alpha1.StorageTarget, member string, server, target int32) v1alpha1.StorageTarget {
	t.Status.Provisioned = &v1alpha1.TargetProvisioned{}
	slot := t.Spec.Slot
	if t.Spec.Role == v1alpha1.RoleStorage {
		slot = 3
	}
	t.Status.Record = &v1alpha1.TargetRecord{
		Facts: &v1alpha1.FileSystemFacts{Type: v1alpha1.Lustre, MetadataNode: "n2", MetadataTarget: root},
		Member: &v1alpha1.RecordedMember{Name: member, Role: t.Spec.Role, StoragePool: t.Spec.StoragePool, Slot: slot,
			ID: server, TargetID: target},
	}
	return t
}

func TestTheAssignmentOnADiskIsUsedAgainAndNoNewOneBeforeLustreAnswers(t *testing.T) {
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

func TestTheAssignmentOnADiskIsNeverUsedForAnother(t *testing.T) {
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
	_, err := lustre.New().Allocate(in)
	g.Expect(err).To(MatchError(ContainSubstring("records the number 9, and 3 is recorded")))
}

func TestTwoDisksOfOneIndexAreRefused(t *testing.T) {
	g := NewWithT(t)
	in := servers("n1", "n2")
	give(t, &in)
	in.Targets = append(in.Targets, recorded(disk("old-n2", "n2", v1alpha1.RoleStorage, "ssd", 0), "ost-ssd", 0, 1))
	_, err := lustre.New().Allocate(in)
	g.Expect(err).To(MatchError(ContainSubstring("the targets ost0-n1 and old-n2 both have the number 1")))
}

// told returns the Lustre configuration of the disks, by StorageTarget.
func told(t *testing.T, in backend.Input) map[string]*v1alpha1.LustreTarget {
	t.Helper()
	targets := slices.Clone(in.Targets)
	lustre.New().TellTargets(in, targets)
	out := map[string]*v1alpha1.LustreTarget{}
	for i := range targets {
		out[targets[i].Name] = targets[i].Spec.Lustre
	}
	return out
}

func TestDisksGetRecordedAssignmentsOnly(t *testing.T) {
	g := NewWithT(t)
	in := servers("n1", "n2")
	for name, is := range told(t, in) {
		g.Expect(is).To(BeNil(), name)
	}
	give(t, &in)
	g.Expect(in.FileSystem.Status.Lustre).To(HaveValue(Equal(v1alpha1.LustreStatus{
		ManagementNode: "n2", ManagementTarget: root, ManagementNIDs: []string{"10.0.0.2@tcp"},
	})))
	is := told(t, in)
	g.Expect(is[root]).To(HaveValue(Equal(v1alpha1.LustreTarget{Kind: v1alpha1.LustreMDT, FSName: "pfs", Index: new(int32(0)), WithMGT: true})))
	g.Expect(is["mdt1-n1"]).To(HaveValue(Equal(v1alpha1.LustreTarget{
		Kind: v1alpha1.LustreMDT, FSName: "pfs", Index: new(int32(2)), ManagementNIDs: []string{"10.0.0.2@tcp"},
	})))
	g.Expect(is["ost1-n2"]).To(HaveValue(Equal(v1alpha1.LustreTarget{
		Kind: v1alpha1.LustreOST, FSName: "pfs", Index: new(int32(3)), ManagementNIDs: []string{"10.0.0.2@tcp"},
	})))
	in.Targets = append(in.Targets, disk("new-n1", "n1", v1alpha1.RoleStorage, "ssd", 0))
	g.Expect(told(t, in)["new-n1"]).To(BeNil(), "it has no index yet")
}

func TestASeparateMGTIsConfiguredAndAllOthersGetItsAddress(t *testing.T) {
	g := NewWithT(t)
	in := withMGT("n1", "n2")
	give(t, &in)
	g.Expect(in.FileSystem.Status.Lustre).To(HaveValue(Equal(v1alpha1.LustreStatus{
		ManagementNode: "n3", ManagementTarget: "mgt-n3", ManagementNIDs: []string{"10.0.0.3@tcp"},
	})))
	is := told(t, in)
	g.Expect(is["mgt-n3"]).To(HaveValue(Equal(v1alpha1.LustreTarget{Kind: v1alpha1.LustreMGT})))
	g.Expect(is[root]).To(HaveValue(And(HaveField("WithMGT", false), HaveField("ManagementNIDs", []string{"10.0.0.3@tcp"}))))
}

// withMGT is servers with an MGT on a disk of its own, on n3.
func withMGT(nodes ...string) backend.Input {
	in := servers(nodes...)
	in.FileSystem.Spec.Lustre.Management = &v1alpha1.LustreManagement{
		NodeSelector: v1alpha1.NodeSelector{"mgs": ""}, Targets: v1alpha1.TargetsSpec{Select: &v1alpha1.DeviceSelector{CountPerNode: 1}},
	}
	in.Nodes[3].Labels = map[string]string{"mgs": ""}
	in.Targets = append(in.Targets, disk("mgt-n3", "n3", v1alpha1.RoleManagement, "", 0))
	return in
}

func TestTheNIDsOfTheMGSAreTakenOnce(t *testing.T) {
	g := NewWithT(t)
	in := servers("n1", "n2")
	give(t, &in)
	in.Nodes[2].IP = "10.0.9.9"
	in.Inventories["n2"] = v1alpha1.NodeInventoryStatus{NetworkInterfaces: []v1alpha1.NetworkInterface{{Name: "eno1", Addresses: []string{"10.0.9.9/24"}}}}
	in.Targets = append(in.Targets, disk("new-n1", "n1", v1alpha1.RoleStorage, "ssd", 0))
	give(t, &in)
	g.Expect(in.FileSystem.Status.Lustre.ManagementNIDs).To(Equal([]string{"10.0.0.2@tcp"}))
	g.Expect(told(t, in)["new-n1"].ManagementNIDs).To(Equal([]string{"10.0.0.2@tcp"}))
}

func TestAnMGSWhoseLNetIsUpWithoutItsNIDsIsRefusedBeforeAnythingIsWritten(t *testing.T) {
	g := NewWithT(t)
	in := servers("n1", "n2")
	found := in.Inventories["n2"]
	found.Software = []v1alpha1.HostSoftware{{Name: "Lustre", NIDs: []string{"10.9.9.9@tcp"}}}
	in.Inventories["n2"] = found
	_, err := lustre.New().Allocate(in)
	g.Expect(err).To(MatchError(ContainSubstring("has the network tcp with 10.9.9.9@tcp, and without 10.0.0.2@tcp")))
	found.Software[0].NIDs = []string{"10.0.0.2@tcp"}
	_, err = lustre.New().Allocate(in)
	g.Expect(err).NotTo(HaveOccurred())
}

func TestTheAssignmentOnADiskNeverChanges(t *testing.T) {
	g := NewWithT(t)
	in := servers("n1", "n2")
	give(t, &in)
	g.Expect(lustre.New().Unassigned(in)).To(BeTrue())
	for i := range in.Targets {
		in.Targets[i].Spec.Lustre = told(t, in)[in.Targets[i].Name]
	}
	in.FileSystemNodes, in.FileSystem.Status.Lustre = nil, nil
	again := slices.Clone(in.Targets)
	for i := range again {
		again[i].Spec.Lustre = nil // as they are chosen anew
	}
	g.Expect(lustre.New().Unassigned(in)).To(BeFalse())
	lustre.New().TellTargets(in, again)
	for i := range again {
		g.Expect(again[i].Spec.Lustre).To(Equal(in.Targets[i].Spec.Lustre))
	}
}

func TestNothingIsRecordedBeforeThereIsADiskForTheRoot(t *testing.T) {
	g := NewWithT(t)
	in := servers("n1", "n2")
	in.FileSystem.Status = v1alpha1.FileSystemStatus{}
	in.Targets, in.Chosen = nil, false
	given, err := lustre.New().Allocate(in)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(given.Waits).To(BeTrue())
	g.Expect(given.TargetNodes.Metadata).To(Equal([]string{"n0", "n1", "n2", "n3"}))

	in = servers("n1", "n2")
	in.FileSystem.Status = v1alpha1.FileSystemStatus{}
	for i := range in.Targets {
		in.Targets[i].Status.Plan = &v1alpha1.TargetPlan{}
	}
	give(t, &in)
	g.Expect(in.FileSystem.Status.Metadata).To(HaveValue(And(HaveField("Node", "n1"), HaveField("Target", "mdt0-n1"))))
	g.Expect(indices(in.FileSystemNodes)).To(And(HaveLen(8), HaveKeyWithValue("mdt0-n1", "mdt-0 pfs-MDT0000")))
}

func TestAnotherLustreOnANodeIsRefused(t *testing.T) {
	for says, change := range map[string]func(other *v1alpha1.FileSystem, theirs *v1alpha1.FileSystemNode){
		"has its MGS on node n2, and the kernel of a node has one": func(other *v1alpha1.FileSystem, _ *v1alpha1.FileSystemNode) {
			other.Status.Lustre.ManagementNode = "n2"
		},
		`is called "pfs" in Lustre, too, and has targets on node n1`: func(other *v1alpha1.FileSystem, _ *v1alpha1.FileSystemNode) {
			other.Spec.Lustre.FSName = "pfs"
		},
	} {
		in := servers("n1", "n2")
		other := v1alpha1.FileSystem{
			ObjectMeta: metav1.ObjectMeta{Namespace: "storage", Name: "other", UID: "7a2d"},
			Spec:       v1alpha1.FileSystemSpec{Type: v1alpha1.Lustre, Lustre: &v1alpha1.LustreSpec{FSName: "other"}},
			Status:     v1alpha1.FileSystemStatus{Lustre: &v1alpha1.LustreStatus{ManagementNode: "n9"}},
		}
		theirs := v1alpha1.FileSystemNode{Spec: v1alpha1.FileSystemNodeSpec{Node: "n1", Members: []v1alpha1.NodeMember{{Name: "ost-x"}}}}
		in.Others, in.OthersNodes = []v1alpha1.FileSystem{other}, map[types.UID][]v1alpha1.FileSystemNode{"7a2d": {theirs}}
		_, err := lustre.New().Allocate(in)
		NewWithT(t).Expect(err).NotTo(HaveOccurred())
		change(&in.Others[0], &theirs)
		_, err = lustre.New().Allocate(in)
		NewWithT(t).Expect(err).To(MatchError(ContainSubstring(says)))
	}
}

func TestAContradictionIsRefused(t *testing.T) {
	for says, change := range map[string]func(in *backend.Input){
		"spec.lustre is required": func(in *backend.Input) { in.FileSystem.Spec.Lustre = nil },
		"spec.lustre.parameters: osc.*.active is refused": func(in *backend.Input) {
			in.FileSystem.Spec.Lustre.Parameters = v1alpha1.LustreParameters{"osc.*.active": "0"}
		},
		"names 1 disks of node n1 for 2 MDTs": func(in *backend.Input) {
			in.FileSystem.Spec.MetadataServers.Targets = v1alpha1.TargetsSpec{Devices: []v1alpha1.DeviceReference{{Node: "n1", ID: "wwn-1"}}}
		},
		"an MDT can't be taken away, so set it to 2 again": func(in *backend.Input) { in.FileSystem.Spec.MetadataServers.InstancesPerNode = 1 },
		"an MDT can't be taken away, so set it to 2, or more, again": func(in *backend.Input) {
			in.FileSystem.Spec.MetadataServers.NodeCount = 1
		},
		"matches 4 usable nodes": func(in *backend.Input) { in.FileSystem.Spec.MetadataServers.NodeCount = 5 },
	} {
		in := servers("n1", "n2")
		give(t, &in)
		change(&in)
		_, err := lustre.New().Allocate(in)
		NewWithT(t).Expect(err).To(MatchError(ContainSubstring(says)))
	}
}

func TestMDTsThatJoinAreNamed(t *testing.T) {
	g := NewWithT(t)
	in := servers("n1", "n2")
	g.Expect(give(t, &in).Joins).NotTo(ContainElement(ContainSubstring("metadata server")), "the first of all join nothing")
	in.Targets = append(in.Targets, disk("mdt0-n3", "n3", v1alpha1.RoleMetadata, "", 0))
	g.Expect(give(t, &in).Joins).To(ContainElement("metadata server mdt-0.n3 is added"))
}
