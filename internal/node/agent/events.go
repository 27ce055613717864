package agent

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"parallelfs.dev/operator/api/v1alpha1"
)

// mostNote bounds an event's note, in bytes; the API's own limit is 1024.
const mostNote = 1000

// Event reasons that are not condition reasons.
const (
	reasonPlanReady    = "PlanReady"
	reasonApprovalUsed = "ApprovalUsed"
	reasonFormatted    = "Formatted"
	reasonAdopted      = "Adopted"
	reasonMounted      = "Mounted"
)

// note is one event.
type note struct{ kind, reason, action, text string }

// notes returns the events for the step from one status to the next, one for each change.
func notes(before, after *v1alpha1.StorageTarget) []note {
	var out []note
	tell := func(kind, reason, action, text string) { out = append(out, note{kind, reason, action, text}) }
	was, is := before.Status, after.Status
	device := string(after.Spec.Device.ID)
	if is.Plan != nil && (was.Plan == nil || was.Plan.Hash != is.Plan.Hash) && len(is.Plan.Refusals) == 0 && is.Provisioned == nil {
		tell(corev1.EventTypeNormal, reasonPlanReady, "Plan",
			fmt.Sprintf("plan %s for %s would destroy %s", is.Plan.Hash, device, destroyed(is.Plan)))
	}
	started := func(p *v1alpha1.TargetProvisioned) bool { return p != nil && p.PlanHash != "" }
	if started(is.Provisioned) && (!started(was.Provisioned) || was.Provisioned.PlanHash != is.Provisioned.PlanHash) &&
		is.Provisioned.PlanHash == after.Spec.ApprovedPlan {
		tell(corev1.EventTypeNormal, reasonApprovalUsed, "Approve",
			"the approval of plan "+is.Provisioned.PlanHash+" is used now, and never again")
	}
	finished := func(p *v1alpha1.TargetProvisioned) bool { return p != nil && p.Finished != nil }
	if finished(is.Provisioned) && !finished(was.Provisioned) {
		if is.Provisioned.PlanHash == "" {
			tell(corev1.EventTypeNormal, reasonAdopted, "Adopt", fmt.Sprintf("%s was taken over as it is: UUID %s", device, is.Provisioned.UUID))
		} else {
			tell(corev1.EventTypeNormal, reasonFormatted, "Format", fmt.Sprintf("%s is formatted and marked: UUID %s", device, is.Provisioned.UUID))
		}
	}
	if is.MountPath != "" && was.MountPath != is.MountPath {
		tell(corev1.EventTypeNormal, reasonMounted, "Mount", fmt.Sprintf("%s (%s) is mounted at %s", device, is.KernelName, is.MountPath))
	}
	if c := turned(was, is, v1alpha1.ConditionDestroyed); c != nil {
		tell(kindOf(c), c.Reason, "Wipe", c.Message)
	}
	if c := turned(was, is, v1alpha1.ConditionReleased); c != nil {
		tell(kindOf(c), c.Reason, "Unmount", c.Message)
	}
	if c := turned(was, is, v1alpha1.ConditionReady); c != nil && c.Status == metav1.ConditionFalse && refuses(c.Reason) {
		tell(corev1.EventTypeWarning, c.Reason, "Refuse", c.Message)
	}
	return out
}

// refuses is true for reasons that need action by a person.
func refuses(reason string) bool {
	switch reason {
	case v1alpha1.ReasonPlanning, v1alpha1.ReasonProvisioning, v1alpha1.ReasonAwaitingApproval, v1alpha1.ReasonUnmounted, v1alpha1.ReasonWiped,
		v1alpha1.ReasonUnmountFailed, v1alpha1.ReasonWipeFailed: // the last two have their own conditions
		return false
	default:
		return true
	}
}

// turned returns the condition of a type if it is new, or if its status or reason has changed.
func turned(was, is v1alpha1.StorageTargetStatus, kind string) *metav1.Condition {
	c, old := meta.FindStatusCondition(is.Conditions, kind), meta.FindStatusCondition(was.Conditions, kind)
	if c == nil || old != nil && old.Status == c.Status && old.Reason == c.Reason {
		return nil
	}
	return c
}

func kindOf(c *metav1.Condition) string {
	if c.Status == metav1.ConditionTrue {
		return corev1.EventTypeNormal
	}
	return corev1.EventTypeWarning
}

// destroyed lists what a plan would destroy.
func destroyed(p *v1alpha1.TargetPlan) string {
	switch len(p.Destroys) {
	case 0:
		return "nothing: it is blank"
	case 1:
		return p.Destroys[0]
	default:
		return fmt.Sprintf("%s, and %d more (status.plan.destroys)", p.Destroys[0], len(p.Destroys)-1)
	}
}

func (r *Reconciler) announce(before, after *v1alpha1.StorageTarget) {
	for _, n := range notes(before, after) {
		r.Recorder.Eventf(after, nil, n.kind, n.reason, n.action, "%s", v1alpha1.Cut(n.text, mostNote))
	}
}
