package lustre_test

import (
	"testing"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"parallelfs.dev/operator/api/v1alpha1"
	"parallelfs.dev/operator/internal/backend"
	"parallelfs.dev/operator/internal/backend/lustre"
)

// leftBehind returns the disks of a Lustre whose FileSystem was deleted and made again: each has its earlier record, and waits for the same
// configuration.
func leftBehind(t *testing.T) backend.Input {
	t.Helper()
	in := servers("n1", "n2")
	in.FileSystem.Spec.StoragePools = append(in.FileSystem.Spec.StoragePools, v1alpha1.StoragePoolSpec{
		Name: "bulk", Copies: 1, NodeSelector: v1alpha1.NodeSelector{"server": ""}, Targets: v1alpha1.TargetsSpec{Select: &v1alpha1.DeviceSelector{CountPerNode: 1}},
	})
	in.Targets = append(in.Targets, disk("bulk-n1", "n1", v1alpha1.RoleStorage, "bulk", 0))
	give(t, &in)
	given := told(t, in)
	in.FileSystem.Status, in.FileSystemNodes = v1alpha1.FileSystemStatus{}, nil
	for i := range in.Targets {
		status := &in.Targets[i].Status
		status.Record = &v1alpha1.TargetRecord{Lustre: given[in.Targets[i].Name]}
		status.Conditions = []metav1.Condition{{Type: v1alpha1.ConditionReady, Status: metav1.ConditionFalse, Reason: v1alpha1.ReasonDeviceRefused}}
	}
	return in
}

func TestTheAssignmentsOnTheDisksOfAnEarlierLustreAreUsedAgain(t *testing.T) {
	g := NewWithT(t)
	in := leftBehind(t)
	// Since then, the node of the MGS has another address, and there is a new disk.
	in.Nodes[2].IP = "10.0.9.9"
	allocation := give(t, &in)
	g.Expect(allocation.Unread).To(BeEmpty())
	g.Expect(in.FileSystem.Status.Metadata).To(HaveValue(And(HaveField("Node", "n2"), HaveField("Target", root))))
	g.Expect(in.FileSystem.Status.Lustre).To(HaveValue(Equal(v1alpha1.LustreStatus{
		ManagementNode: "n2", ManagementTarget: root, ManagementNIDs: []string{"10.0.0.2@tcp"},
	})), "the disks say so")
	for name, is := range told(t, in) {
		t := in.TargetNamed(name)
		g.Expect(is).To(Equal(t.Status.Record.Lustre), name)
	}
	again := give(t, &in)
	g.Expect(again.Nodes).To(BeEmpty())

	in.Targets = append(in.Targets, disk("new-n1", "n1", v1alpha1.RoleStorage, "ssd", 0))
	g.Expect(give(t, &in).Unread).To(ContainSubstring("before Lustre has said which ones it remembers"))
	in.State = &backend.State{}
	give(t, &in)
	g.Expect(indices(in.FileSystemNodes)).To(HaveKeyWithValue("new-n1", "ost-ssd pfs-OST0005"))
}

func TestNothingIsAssignedWhileTheRootDiskOfAnEarlierLustreIsUnread(t *testing.T) {
	g := NewWithT(t)
	in := leftBehind(t)
	for i := range in.Targets {
		if in.Targets[i].Name == root {
			in.Targets[i].Status.Record = nil
		}
	}
	allocation, err := lustre.New().Allocate(in)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(allocation.Waits).To(BeTrue())
	g.Expect(allocation.Unread).To(HavePrefix("no new ids are assigned until these disks are read"))
}

func TestTheNIDsOfTheMGSAreNotGuessedWhileADiskMaySayThem(t *testing.T) {
	g := NewWithT(t)
	in := leftBehind(t)
	for i := range in.Targets {
		if in.Targets[i].Name != root {
			in.Targets[i].Status.Record = nil
		}
	}
	allocation := give(t, &in)
	g.Expect(in.FileSystem.Status.Lustre.ManagementNIDs).To(BeEmpty())
	g.Expect(allocation.Unread).To(ContainSubstring("until these disks are read"))
	for name, is := range told(t, in) {
		g.Expect(is).To(BeNil(), name)
	}
}

func TestDisksOfAnotherLustreAreRefused(t *testing.T) {
	for says, change := range map[string]func(in *backend.Input){
		`is of the Lustre "old", and spec.lustre.fsName is "pfs"`: func(in *backend.Input) { in.Targets[2].Status.Record.Lustre.FSName = "old" },
		"spec.lustre.management names another disk for it": func(in *backend.Input) {
			in.FileSystem.Spec.Lustre.Management = withMGT().FileSystem.Spec.Lustre.Management
		},
		"and that of ost0-n1 at 10.9.9.9@tcp": func(in *backend.Input) {
			in.Targets[2].Status.Record.Lustre.ManagementNIDs = []string{"10.9.9.9@tcp"}
		},
		"the target id 1 is that of both": func(in *backend.Input) { in.Targets[3].Status.Record.Lustre.Index = new(int32(0)) },
	} {
		in := leftBehind(t)
		for i := range in.Targets {
			in.Targets[i].Status.Record.Lustre = in.Targets[i].Status.Record.Lustre.DeepCopy()
		}
		change(&in)
		_, err := lustre.New().Allocate(in)
		NewWithT(t).Expect(err).To(MatchError(ContainSubstring(says)))
	}
}
