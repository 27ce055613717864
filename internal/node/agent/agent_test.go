package agent

import (
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"sigs.k8s.io/controller-runtime/pkg/event"

	"parallelfs.dev/operator/api/v1alpha1"
)

func TestTheCacheHoldsOnlyTheTargetsOfTheNode(t *testing.T) {
	g := NewWithT(t)
	g.Expect(ofNode("oss1").Matches(labels.Set{v1alpha1.LabelNode: "oss1"})).To(BeTrue())
	g.Expect(ofNode("oss1").Matches(labels.Set{v1alpha1.LabelNode: "oss2"})).To(BeFalse())
	g.Expect(ofNode(strings.Repeat("a.", 60)+"example").Matches(labels.Set{})).To(BeTrue(), "a name that is no label can't be selected by")
}

func TestADeviceIsWorkedOnForOneTargetAtATime(t *testing.T) {
	g := NewWithT(t)
	var u inUse
	release, free := u.take([]string{"data-1", "log"})
	g.Expect(free).To(BeTrue())
	_, free = u.take([]string{"data-2", "log"})
	g.Expect(free).To(BeFalse(), "the log is in use")
	other, free := u.take([]string{"data-2"})
	g.Expect(free).To(BeTrue(), "nothing was taken by the failed attempt")
	other()
	release()
	_, free = u.take([]string{"data-2", "log"})
	g.Expect(free).To(BeTrue())
}

func TestEachChangeEmitsOneEvent(t *testing.T) {
	now := metav1.NewTime(time.Unix(1, 0))
	condition := func(kind string, status metav1.ConditionStatus, reason string) metav1.Condition {
		return metav1.Condition{Type: kind, Status: status, Reason: reason, Message: "because"}
	}
	intent := &v1alpha1.TargetProvisioned{UUID: "u", PlanHash: "sha256:1", Started: &now}
	finished := &v1alpha1.TargetProvisioned{UUID: "u", PlanHash: "sha256:1", Started: &now, Finished: &now}
	adopted := &v1alpha1.TargetProvisioned{UUID: "u", Finished: &now}
	type status = v1alpha1.StorageTargetStatus
	cases := map[string]struct {
		was, is  status
		approved string
		reasons  []string
	}{
		"a plan that waits for its approval is reported": {
			is: status{Plan: &v1alpha1.TargetPlan{Hash: "sha256:1", Destroys: []string{"sda: xfs"}}}, reasons: []string{"PlanReady"},
		},
		"a plan that is refused is reported as a refusal": {
			is: status{Plan: &v1alpha1.TargetPlan{Hash: "sha256:1", Refusals: []string{"mounted"}},
				Conditions: []metav1.Condition{condition(v1alpha1.ConditionReady, metav1.ConditionFalse, v1alpha1.ReasonDeviceRefused)}},
			reasons: []string{"DeviceRefused"},
		},
		"an approval is reported when it is used": {
			is: status{Provisioned: intent}, approved: "sha256:1", reasons: []string{"ApprovalUsed"},
		},
		"a blank disk that is formatted uses no approval": {is: status{Provisioned: intent}},
		"a finished target was formatted": {
			was: status{Provisioned: intent}, is: status{Provisioned: finished}, reasons: []string{"Formatted"},
		},
		"a disk that was taken over was not formatted": {is: status{Provisioned: adopted}, reasons: []string{"Adopted"}},
		"a mount is reported": {
			was: status{Provisioned: finished}, is: status{Provisioned: finished, MountPath: "/x"}, reasons: []string{"Mounted"},
		},
		"a wipe is reported": {
			is: status{Conditions: []metav1.Condition{condition(v1alpha1.ConditionDestroyed, metav1.ConditionTrue, v1alpha1.ReasonWiped)}}, reasons: []string{"Wiped"},
		},
		"a wipe that failed is reported": {
			is: status{Conditions: []metav1.Condition{condition(v1alpha1.ConditionDestroyed, metav1.ConditionFalse, v1alpha1.ReasonWipeFailed)}}, reasons: []string{"WipeFailed"},
		},
		"a mount that fails is reported": {
			is: status{Conditions: []metav1.Condition{condition(v1alpha1.ConditionReady, metav1.ConditionFalse, v1alpha1.ReasonMountFailed)}}, reasons: []string{"MountFailed"},
		},
		"nothing new is not told": {
			was: status{Provisioned: finished, MountPath: "/x", Conditions: []metav1.Condition{condition(v1alpha1.ConditionReady, metav1.ConditionFalse, v1alpha1.ReasonMountFailed)}},
			is:  status{Provisioned: finished, MountPath: "/x", Conditions: []metav1.Condition{condition(v1alpha1.ConditionReady, metav1.ConditionFalse, v1alpha1.ReasonMountFailed)}},
		},
		"work in progress is not reported": {
			is: status{Conditions: []metav1.Condition{condition(v1alpha1.ConditionReady, metav1.ConditionFalse, v1alpha1.ReasonProvisioning)}},
		},
	}
	for sentence, c := range cases {
		t.Run(sentence, func(t *testing.T) {
			g := NewWithT(t)
			before, after := &v1alpha1.StorageTarget{Status: c.was}, &v1alpha1.StorageTarget{Status: c.is}
			after.Spec.ApprovedPlan = c.approved
			var reasons []string
			for _, n := range notes(before, after) {
				reasons = append(reasons, n.reason)
				g.Expect(n.text).NotTo(BeEmpty())
				g.Expect(n.kind).To(BeElementOf(corev1.EventTypeNormal, corev1.EventTypeWarning))
			}
			g.Expect(reasons).To(Equal(c.reasons))
		})
	}
}

func TestATargetIsScannedAgainWhenAnotherNodeHoldsIt(t *testing.T) {
	g := NewWithT(t)
	held := func(node string, number int64) *v1alpha1.StorageTarget {
		t := &v1alpha1.StorageTarget{Spec: v1alpha1.StorageTargetSpec{Node: "oss1", SecondNode: "oss2"}}
		if node != "" {
			t.Status.Holder = &v1alpha1.TargetHolder{Node: node, Number: number}
		}
		return t
	}
	for _, move := range []struct {
		from, to *v1alpha1.StorageTarget
		looks    bool
	}{
		{held("", 0), held("oss2", 1), true},
		{held("oss2", 1), held("oss1", 2), true},
		{held("", 0), held("oss1", 0), false},
		{held("oss2", 1), held("oss2", 1), false},
	} {
		g.Expect(holderChanged(event.UpdateEvent{ObjectOld: move.from, ObjectNew: move.to})).To(Equal(move.looks))
	}
}
