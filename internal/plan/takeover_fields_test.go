package plan_test

import (
	"reflect"
	"testing"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"parallelfs.dev/operator/api/v1alpha1"
	"parallelfs.dev/operator/internal/plan"
)

// TestADiskWhoseMarkerDiffersFromTheFormerOwnerIsNeitherMountedNorMarked changes each field of the marker that a target
// which is being taken over expects on its disk.
func TestADiskWhoseMarkerDiffersFromTheFormerOwnerIsNeitherMountedNorMarked(t *testing.T) {
	takingOver := aTarget(finished, allowed)
	takingOver.Status.Provisioned.FormerOwner, takingOver.Status.FormerOwner = former(), former()
	takingOver.Status.Provisioned.Label = plan.Label(formersTarget())
	g := NewWithT(t)
	g.Expect(decide(takingOver, formersDisk()).Action).To(Equal(plan.Mount))
	g.Expect(decide(takingOver, mounted(formersTarget(), uuidOne, uidFormer)).Action).To(Equal(plan.Mark))
	for i := range reflect.TypeFor[plan.Marker]().NumField() {
		t.Run(reflect.TypeFor[plan.Marker]().Field(i).Name, func(t *testing.T) {
			change := func(m *plan.Marker) { reflect.ValueOf(m).Elem().Field(i).SetString("another") }
			disk, served := formersDisk(), mounted(formersTarget(), uuidOne, uidFormer)
			change(disk.Device.Marker)
			change(served.Mount.Marker)
			for _, l := range []plan.Look{disk, served} {
				d := decide(takingOver, l)
				NewWithT(t).Expect(d.Action).To(Equal(plan.None))
				NewWithT(t).Expect(d.Ready.Status).To(Equal(metav1.ConditionFalse), d.Ready.Message)
			}
		})
	}
}

func TestADiskOfAMetadataServerIsTakenOverInTheSamePlace(t *testing.T) {
	metadata := func(slot int32) func(t *v1alpha1.StorageTarget) {
		return func(t *v1alpha1.StorageTarget) {
			t.Spec.Role, t.Spec.StoragePool, t.Spec.Slot = v1alpha1.RoleMetadata, "", slot
		}
	}
	recorded := func(slot int32) plan.Look {
		return formersDisk(func(f *plan.Facts) { f.Marker.Role, f.Marker.StoragePool, f.Record.Member.Slot = "Metadata", "", slot })
	}
	g := NewWithT(t)
	g.Expect(decide(aTarget(allowed, metadata(1)), recorded(1)).Plan.Refusals).To(BeEmpty())
	g.Expect(decide(aTarget(allowed, metadata(0)), recorded(1)).Plan.Refusals).To(ConsistOf(ContainSubstring("it was the disk of metadata server 1 of its node")))
	storage := formersDisk(func(f *plan.Facts) { f.Record.Member.Slot = 1 })
	g.Expect(decide(aTarget(allowed), storage).Plan.Refusals).To(BeEmpty(), "the slot of a pool's target says nothing")
}

func TestADiskIsNotOfferedToAnotherOwnerWhile(t *testing.T) {
	t.Run("something is mounted at the mountpoint", func(t *testing.T) {
		l := formersDisk()
		l.Mount = plan.Mounted{Mounted: true, KernelName: "sdq"}
		NewWithT(t).Expect(decide(aTarget(allowed), l).FormerOwner).To(BeNil())
	})
	t.Run("only its own server mounts it", func(t *testing.T) {
		target := aTarget(allowed, ofLustre(10))
		l := formersDisk()
		l.Device.Signatures[0].Type = "ext4"
		d := decide(approved(target, l), l)
		NewWithT(t).Expect(d.Action).To(Equal(plan.None))
		NewWithT(t).Expect(d.FormerOwner).To(BeNil())
	})
}

func TestTheNumbersOfAFormerTargetAreShownWhereItHasSome(t *testing.T) {
	for _, c := range []struct {
		server, target int32
		shown          bool
	}{{3, 12, true}, {3, 0, true}, {0, 12, true}, {0, 0, false}} {
		l := formersDisk(func(f *plan.Facts) { f.Record.Member.ID, f.Record.TargetID = c.server, c.target })
		says := ContainSubstring(", server id ")
		if !c.shown {
			says = Not(says)
		}
		NewWithT(t).Expect(decide(aTarget(), l).Plan.Steps[0]).To(says)
	}
}

func TestTheLabelOfATargetThatIsAdoptedIsTheOneOfATargetOnTheWholeDisk(t *testing.T) {
	for name, c := range map[string]struct {
		label string
		want  string
	}{
		"its own":                   {plan.Label(aTarget()), plan.Label(aTarget())},
		"that of the former target": {plan.Label(formersTarget()), plan.Label(formersTarget())},
		"one that a person has set": {"data", plan.Label(aTarget())},
	} {
		disk := look(carrying(aTarget(), uuidOne, uidNow), func(f *plan.Facts) { f.Signatures[0].Label = c.label })
		d := decide(aTarget(), disk)
		NewWithT(t).Expect(d.Action).To(Equal(plan.Adopt), name)
		NewWithT(t).Expect(d.Provisioned.Label).To(Equal(c.want), name)
	}
}

func TestATargetHasTheLabelOfAFormerOneOnlyAfterItHasTakenItOver(t *testing.T) {
	anothers := func(t *v1alpha1.StorageTarget) { t.Status.Provisioned.Label = plan.Label(formersTarget()) }
	formerShown := func(t *v1alpha1.StorageTarget) { t.Status.FormerOwner = former() }
	own := plan.Label(aTarget())
	for name, c := range map[string]struct {
		target *v1alpha1.StorageTarget
		want   []string
	}{
		"it was taken over":                            {aTarget(finished, anothers, formerShown), []string{own, plan.Label(formersTarget())}},
		"it was never another's":                       {aTarget(finished, anothers), []string{own}},
		"it waits for the approval of its plan":        {aTarget(formerShown), []string{own}},
		"it was begun for a format":                    {aTarget(begun, anothers, formerShown), []string{own}},
		"it was taken over, and made with its own one": {aTarget(finished, formerShown), []string{own}},
	} {
		NewWithT(t).Expect(plan.Labels(c.target)).To(Equal(c.want), name)
	}
}
