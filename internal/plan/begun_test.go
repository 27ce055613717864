package plan_test

import (
	"testing"

	. "github.com/onsi/gomega"

	"parallelfs.dev/operator/api/v1alpha1"
	"parallelfs.dev/operator/internal/plan"
)

// TestAFilesystemThatWasMadeIsMadeAgainOnlyWhenThatIsApproved begins with a target whose mkfs has ended, and which has no marker.
func TestAFilesystemThatWasMadeIsMadeAgainOnlyWhenThatIsApproved(t *testing.T) {
	disk := look(holding("xfs", uuidOne, plan.Label(aTarget())))
	shown := decide(aTarget(begun, policy(v1alpha1.FormatApproved)), disk)
	NewWithT(t).Expect(shown.Action).To(Equal(plan.Mount))
	for name, c := range map[string]struct {
		policy   v1alpha1.FormatPolicy
		approved string
		want     plan.Action
	}{
		"its plan is approved":                 {v1alpha1.FormatApproved, shown.Plan.Hash, plan.Record},
		"another plan is approved":             {v1alpha1.FormatApproved, "sha256:0", plan.Mount},
		"its plan is approved, and the policy": {v1alpha1.FormatIfBlank, shown.Plan.Hash, plan.Mount},
		"nothing is approved":                  {v1alpha1.FormatIfBlank, "", plan.Mount},
	} {
		target := aTarget(begun, policy(c.policy), func(t *v1alpha1.StorageTarget) { t.Spec.ApprovedPlan = c.approved })
		NewWithT(t).Expect(decide(target, disk).Action).To(Equal(c.want), name)
	}
}

func TestTheStatusShowsThePlanThatWasBegunWhileItIsStillTheOne(t *testing.T) {
	g := NewWithT(t)
	p := plan.Make(aTarget(), look(), uuidOne)
	withPlan := func(t *v1alpha1.StorageTarget) { t.Status.Plan = &p }
	conflict := func(t *v1alpha1.StorageTarget) { t.Spec.Conflict = "a and b" }
	g.Expect(decide(aTarget(begun, withPlan, conflict), look()).Plan).To(BeIdenticalTo(&p))
	g.Expect(decide(aTarget(withPlan, conflict), look()).Plan).To(BeNil(), "nothing was begun")
	g.Expect(decide(aTarget(begun, withPlan, policy(v1alpha1.FormatNever)), look()).Plan).To(BeIdenticalTo(&p), "a blank disk is formatted as it says")
	other := decide(aTarget(begun, withPlan, policy(v1alpha1.FormatNever)), look(holding("ext4", uuidTwo, "")))
	g.Expect(other.Plan.Hash).NotTo(Equal(p.Hash), "what was not begun with has another plan")
}

// A UUID that is on a device already would make what is there the target's own.
func TestAPlanGetsANewUUIDWhenADeviceHasTheOneThatWasShown(t *testing.T) {
	was := func(t *v1alpha1.StorageTarget) { t.Status.Plan = &v1alpha1.TargetPlan{UUID: uuidTwo} }
	for name, c := range map[string]struct {
		target *v1alpha1.StorageTarget
		look   plan.Look
		want   string
	}{
		"neither has it":                           {aTarget(was, withLog), plan.Look{Device: blankDisk(), Log: blankLog()}, uuidTwo},
		"the disk has it":                          {aTarget(was), look(holding("xfs", uuidTwo, "")), uuidOne},
		"the disk has it, and there is a log":      {aTarget(was, withLog), plan.Look{Device: blankDisk(holding("xfs", uuidTwo, "")), Log: blankLog()}, uuidOne},
		"the log has it":                           {aTarget(was, withLog), plan.Look{Device: blankDisk(), Log: blankLog(holding("xfs_external_log", uuidTwo, ""))}, uuidOne},
		"it is of another form than an agent's is": {aTarget(func(t *v1alpha1.StorageTarget) { t.Status.Plan = &v1alpha1.TargetPlan{UUID: "x"} }), look(), uuidOne},
	} {
		NewWithT(t).Expect(decide(c.target, c.look).Plan.UUID).To(Equal(c.want), name)
	}
}
