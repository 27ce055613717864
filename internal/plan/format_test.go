package plan_test

import (
	"testing"

	. "github.com/onsi/gomega"

	"parallelfs.dev/operator/api/v1alpha1"
	"parallelfs.dev/operator/internal/plan"
)

func TestAFormatThatThisAgentDoesNotKnowIsNeitherMadeNorMounted(t *testing.T) {
	g := NewWithT(t)
	const says = `format.fsType "zfs" is not one of ext4, xfs, btrfs and ldiskfs`
	zfs := func(t *v1alpha1.StorageTarget) { t.Spec.Format.FSType = "zfs" }
	p := plan.Make(aTarget(zfs), plan.Look{Device: blankDisk()}, uuidOne)
	g.Expect(p.Refusals).To(ContainElement(says))
	g.Expect(p.Steps).To(BeEmpty())

	made := aTarget(zfs, finished)
	l := plan.Look{Device: blankDisk(carrying(made, uuidOne, uidNow))}
	l.Device.Signatures[0].Type = "zfs"
	d := decide(made, l)
	g.Expect(d.Action).To(Equal(plan.None))
	g.Expect(d.Ready.Reason).To(Equal(v1alpha1.ReasonTargetMissing))
	g.Expect(d.Ready.Message).To(ContainSubstring(says))
}

func TestAFormatWithoutALogOfItsOwnIsNotMountedWithOne(t *testing.T) {
	g := NewWithT(t)
	const says = "a log device belongs to XFS, and format.fsType is ext4"
	ext4 := func(t *v1alpha1.StorageTarget) { t.Spec.Format.FSType = v1alpha1.Ext4 }
	g.Expect(plan.Make(aTarget(ext4, withLog), plan.Look{Device: blankDisk(), Log: blankLog()}, uuidOne).Refusals).To(ContainElement(says))

	made := aTarget(ext4, withLog, finished)
	l := plan.Look{Device: blankDisk(carrying(made, uuidOne, uidNow)), Log: blankLog(holding("xfs_external_log", uuidOne, ""))}
	l.Device.Signatures[0].Type = "ext4"
	d := decide(made, l)
	g.Expect(d.Action).To(Equal(plan.None))
	g.Expect(d.Ready.Message).To(ContainSubstring(says))
}
