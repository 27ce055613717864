package filesystem

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"parallelfs.dev/operator/api/v1alpha1"
	"parallelfs.dev/operator/internal/plan"
)

// provisioned returns a target of pool ssd that holds data, with these conditions.
func provisioned(conditions ...metav1.Condition) *v1alpha1.StorageTarget {
	return &v1alpha1.StorageTarget{
		ObjectMeta: metav1.ObjectMeta{Name: "scratch-ssd-01234567", Namespace: "storage", Generation: 2},
		Spec: v1alpha1.StorageTargetSpec{
			FileSystem: v1alpha1.TargetOwner{Name: "scratch"}, Node: "oss1", Role: v1alpha1.RoleStorage, StoragePool: "ssd",
		},
		Status: v1alpha1.StorageTargetStatus{Provisioned: &v1alpha1.TargetProvisioned{UUID: "aaaa"}, Conditions: conditions},
	}
}

func TestDisksAreTakenUpNodeByNodeAndNotMoreAtATimeThanAPassHasTimeFor(t *testing.T) {
	g := NewWithT(t)
	var missing []client.Object
	for i := range atOnce + 500 { // in the order of names, in which they are chosen
		missing = append(missing, &v1alpha1.StorageTarget{
			ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("t%06d", i)}, Spec: v1alpha1.StorageTargetSpec{Node: fmt.Sprintf("oss%02d", i%50)},
		})
	}
	now, more := takenUp(missing, len(missing))
	g.Expect(now).To(HaveLen(atOnce))
	g.Expect(more).To(Equal(500))
	g.Expect(slices.IsSortedFunc(now, func(a, b client.Object) int {
		return strings.Compare(a.(*v1alpha1.StorageTarget).Spec.Node, b.(*v1alpha1.StorageTarget).Spec.Node)
	})).To(BeTrue())
	now, more = takenUp(nil, 0)
	g.Expect(now).To(BeEmpty())
	g.Expect(more).To(BeZero())
	now, more = takenUp(missing, 6*atOnce+1)
	g.Expect(now).To(HaveLen(atOnce+1), "the disks of a large filesystem are taken up in six passes")
	g.Expect(more).To(Equal(499))
}

func TestOnlyATargetThatHoldsNothingMayBeDeleted(t *testing.T) {
	safe := metav1.Condition{Type: v1alpha1.ConditionSafeToRemove, Status: metav1.ConditionTrue, ObservedGeneration: 2}
	cases := map[string]struct {
		target *v1alpha1.StorageTarget
		remove bool
		may    bool
	}{
		"one that was never provisioned may":                                    {target: &v1alpha1.StorageTarget{}, may: true},
		"one whose provisioning has begun may not":                              {target: provisioned()},
		"one that nobody marked for removal may not, whatever was said of it":   {target: provisioned(safe)},
		"one that is marked for removal may not before the filesystem says so":  {target: provisioned(), remove: true},
		"one that is marked for removal may when the filesystem says so":        {target: provisioned(safe), remove: true, may: true},
		"one may not because of what was said before it was marked another way": {target: provisioned(earlier(safe)), remove: true},
		"one may not while its data is moved":                                   {target: provisioned(refuted(safe)), remove: true},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			c.target.Spec.Remove = c.remove
			NewWithT(t).Expect(plan.MayDelete(c.target)).To(Equal(c.may))
		})
	}
}

func earlier(c metav1.Condition) metav1.Condition { c.ObservedGeneration--; return c }

func refuted(c metav1.Condition) metav1.Condition { c.Status = metav1.ConditionFalse; return c }

func TestADeletionReportsWhatIsLeftWhyAndWhatToDo(t *testing.T) {
	failed := func(kind, message string) metav1.Condition {
		return metav1.Condition{Type: kind, Status: metav1.ConditionFalse, Message: message}
	}
	const command = "kubectl annotate storagetargets -n storage -l parallelfs.dev/filesystem=scratch,parallelfs.dev/node=oss1 parallelfs.dev/give-up=oss1"
	cases := map[string]struct {
		conditions []metav1.Condition
		node       string
		destroy    bool
		// ago is how long ago it was deleted.
		ago      time.Duration
		stalled  bool
		messages []string
	}{
		"it waits for an agent that unmounts": {messages: []string{"1 disk is left: scratch-ssd-01234567 on oss1 (being unmounted)"}},
		"it waits for an agent that wipes":    {destroy: true, messages: []string{"(being unmounted and wiped)"}},
		"it can't wait for a node that is gone": {
			node: "the node is not in the cluster", stalled: true,
			messages: []string{"oss1 (the node is not in the cluster)", "if the node is gone for good, decommission its disks, whose data stays there: " + command},
		},
		"it says that an agent is silent": {
			ago: time.Hour, stalled: true, messages: []string{"its agent has not answered since the deletion at 2026-01-01T11:00:00Z", command},
		},
		"it names what uses a disk": {
			conditions: []metav1.Condition{failed(v1alpha1.ConditionReleased, "process 7 uses it")}, stalled: true,
			messages: []string{"could not be unmounted: process 7 uses it", command},
		},
		"it names why a disk could not be wiped": {
			conditions: []metav1.Condition{failed(v1alpha1.ConditionDestroyed, "the marker is another's")}, destroy: true, stalled: true,
			messages: []string{"could not be wiped: the marker is another's", "set spec.deletionPolicy to Retain", command},
		},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			target := provisioned(c.conditions...)
			if c.destroy {
				target.Spec.DestroyFor = "1-2-3"
			}
			noon := time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)
			target.DeletionTimestamp = new(metav1.NewTime(noon.Add(-c.ago)))
			rest := left([]v1alpha1.StorageTarget{*target}, noon, func(string) string { return c.node })
			g.Expect(rest.stalled).To(Equal(c.stalled))
			for _, text := range c.messages {
				g.Expect(rest.message).To(ContainSubstring(text))
			}
		})
	}
}

func TestANodeWithANameThatIsNoLabelIsDecommissionedTargetByTarget(t *testing.T) {
	target := provisioned()
	target.Spec.Node = strings.Repeat("n", 64)
	NewWithT(t).Expect(giveUp(target)).To(Equal(fmt.Sprintf(
		"kubectl annotate storagetargets -n storage scratch-ssd-01234567 parallelfs.dev/give-up=%s", target.Spec.Node)))
}
