package plan_test

import (
	"testing"

	. "github.com/onsi/gomega"

	"parallelfs.dev/operator/api/v1alpha1"
	"parallelfs.dev/operator/internal/plan"
)

// in makes a target one of another cluster, which may have the same names and the same manifests.
func in(cluster string) func(*v1alpha1.StorageTarget) {
	return func(t *v1alpha1.StorageTarget) { t.Spec.Cluster = cluster }
}

func takingOver(from string) func(*v1alpha1.StorageTarget) {
	return func(t *v1alpha1.StorageTarget) { t.Spec.TakeOver = from }
}

func TestADiskOfAnotherClusterIsLeftAlone(t *testing.T) {
	others := aTarget(in(there))
	disk := look(carrying(others, uuidOne, uidOld))
	shown := plan.Make(aTarget(), disk, uuidTwo)
	for name, c := range map[string]struct {
		target *v1alpha1.StorageTarget
		look   plan.Look
		says   string
	}{
		"a new target does not adopt it":                   {aTarget(), disk, `set spec.provisioning.takeOver of FileSystem scratch to "` + there + `"`},
		"under the policy Never":                           {aTarget(policy(v1alpha1.FormatNever)), disk, there},
		"under the policy Approved":                        {aTarget(policy(v1alpha1.FormatApproved)), disk, there},
		"an approval of its plan does not format it":       {aTarget(policy(v1alpha1.FormatApproved), func(t *v1alpha1.StorageTarget) { t.Spec.ApprovedPlan = shown.Hash }), disk, there},
		"another cluster's name takes nothing over":        {aTarget(takingOver("c3c3c3c3")), disk, there},
		"nor does that of a marker that names no cluster":  {aTarget(), look(carrying(aTarget(in("")), uuidOne, uidOld)), `another cluster, ""`},
		"a begun target does not adopt it":                 {aTarget(begun, takingOver(there)), disk, there},
		"a finished target does not mount it":              {aTarget(finished), disk, "has taken over the target since"},
		"the wish to take over is used up when it is done": {aTarget(finished, takingOver(there)), disk, "has taken over the target since"},
		"a mounted one gets no new marker":                 {aTarget(finished), mounted(others, uuidOne, uidNow), "has taken over the target since"},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			d := decide(c.target, c.look)
			g.Expect(d.Action).To(Equal(plan.None), d.Ready.Message)
			g.Expect(d.Ready.Reason).To(Equal(v1alpha1.ReasonOtherCluster), d.Ready.Message)
			g.Expect(d.Ready.Message).To(ContainSubstring(c.says))
			g.Expect(d.Progress).To(Equal(plan.Stalled))
		})
	}
	t.Run("a deleted target does not wipe it", func(t *testing.T) {
		d := decide(aTarget(finished, deleted(uidNow)), look(carrying(others, uuidOne, uidNow)))
		NewWithT(t).Expect(d.Action).To(Equal(plan.None))
		NewWithT(t).Expect(d.Destroyed).To(HaveValue(HaveField("Message", ContainSubstring(there))))
	})
}

func TestADiskOfAnotherClusterIsTakenOverOnce(t *testing.T) {
	g := NewWithT(t)
	disk := look(carrying(aTarget(in(there)), uuidOne, uidOld))
	target := aTarget(policy(v1alpha1.FormatNever), takingOver(there))
	d := decide(target, disk)
	g.Expect(d.Action).To(Equal(plan.Adopt), d.Ready.Message)
	g.Expect(d.Provisioned.TakenFrom).To(Equal(there), "the record allows what comes next, and not the wish")
	target.Status.Provisioned = d.Provisioned

	g.Expect(decide(target, disk).Action).To(Equal(plan.Mount))
	d = decide(target, mounted(aTarget(in(there)), uuidOne, uidOld))
	g.Expect(d.Action).To(Equal(plan.Mark))

	d = decide(target, mounted(aTarget(), uuidOne, uidNow))
	g.Expect(d.Ready.Reason).To(Equal(v1alpha1.ReasonProven))
	g.Expect(d.Provisioned.TakenFrom).To(BeEmpty())
	target.Status.Provisioned = d.Provisioned
	g.Expect(decide(target, mounted(aTarget(in(there)), uuidOne, uidNow)).Ready.Reason).To(Equal(v1alpha1.ReasonOtherCluster),
		"the other cluster is alive, and took it back")
}
