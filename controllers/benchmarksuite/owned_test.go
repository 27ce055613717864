package benchmarksuite

import (
	"testing"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"parallelfs.dev/operator/api/v1alpha1"
	"parallelfs.dev/operator/internal/plan"
)

// The suite decides from the agent's record of a disk whether it may wipe it. This test connects the two: its records are the agent's own
// decisions.
func TestADiskIsTheSuitesOwnOnlyWhenItsFileSystemHasFormattedIt(t *testing.T) {
	const uuid = "11111111-2222-4333-8444-555555555555"
	target := func(provisioned *v1alpha1.TargetProvisioned) *v1alpha1.StorageTarget {
		id := v1alpha1.DeviceID("wwn-0x5000c500a1b2c3d4")
		out := &v1alpha1.StorageTarget{
			ObjectMeta: metav1.ObjectMeta{Namespace: "lab", Name: plan.TargetName("night-one", v1alpha1.RoleStorage, "ssd", "n1", id)},
			Spec: v1alpha1.StorageTargetSpec{
				FileSystem: v1alpha1.TargetOwner{Name: "night-one", UID: fsUID}, Node: "n1", Role: v1alpha1.RoleStorage, StoragePool: "ssd",
				Device: v1alpha1.DeviceIdentity{ID: id, WWN: "0x5000c500a1b2c3d4", SizeBytes: 1 << 40},
				Format: v1alpha1.FormatSpec{FSType: v1alpha1.XFS}, FormatPolicy: v1alpha1.FormatIfBlank,
			},
		}
		out.Status.Provisioned = provisioned
		return out
	}
	look := func(carries bool, uid string) plan.Look {
		f := plan.Facts{Found: true, BlockDevice: v1alpha1.BlockDevice{
			KernelName: "sdb", Type: "disk", IDs: []string{"wwn-0x5000c500a1b2c3d4"}, WWN: "0x5000c500a1b2c3d4", SizeBytes: 1 << 40,
		}}
		if carries {
			which := target(nil)
			f.Signatures = []v1alpha1.Signature{{Device: "sdb", Type: "xfs", Offset: "0x0", UUID: uuid, Label: plan.Label(which)}}
			f.Marker = &plan.Marker{
				Namespace: "lab", FileSystem: "night-one", FileSystemUID: uid, Target: which.Name, UUID: uuid, Role: "Storage", StoragePool: "ssd",
			}
		}
		return plan.Look{Device: f}
	}
	record := func(provisioned *v1alpha1.TargetProvisioned, l plan.Look) *v1alpha1.TargetProvisioned {
		return plan.Decide(target(provisioned), l, noon, func() string { return uuid }).Provisioned
	}
	for name, c := range map[string]struct {
		recorded *v1alpha1.TargetProvisioned
		own      bool
	}{
		"a blank disk, formatted":                             {record(nil, look(false, "")), true},
		"one whose formatting was cut off before the record":  {record(record(nil, look(false, "")), look(true, fsUID)), true},
		"one with the data of a FileSystem of that name":      {record(nil, look(true, "the uid of last year")), false},
		"one with its own data, whose StorageTarget was lost": {record(nil, look(true, fsUID)), false},
		"one that was taken over, and the operator restarted": {record(record(nil, look(true, "the uid of last year")), look(true, fsUID)), false},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			g.Expect(c.recorded).NotTo(BeNil())
			s := leaving().disk("d1", v1alpha1.StorageTargetStatus{Provisioned: c.recorded})
			g.Expect(len(s.adopted()) == 0).To(Equal(c.own))
			g.Expect(decide(s.world).action == confirm).To(Equal(c.own))
		})
	}
}
