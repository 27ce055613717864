package provision

import (
	"cmp"
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"parallelfs.dev/operator/api/v1alpha1"
	"parallelfs.dev/operator/internal/node/format/registry"
	"parallelfs.dev/operator/internal/node/record"
	"parallelfs.dev/operator/internal/plan"
)

// Conditions lists the conditions of a StorageTarget that the agent writes.
var Conditions = []string{
	v1alpha1.ConditionReady, v1alpha1.ConditionReconciling, v1alpha1.ConditionStalled, v1alpha1.ConditionReleased, v1alpha1.ConditionDestroyed,
}

// mostMessage bounds a condition's message, in bytes.
const mostMessage = 4096

// reasonOf returns the last recorded reason of the target's condition Ready.
func reasonOf(t *v1alpha1.StorageTarget) string {
	if c := meta.FindStatusCondition(t.Status.Conditions, v1alpha1.ConditionReady); c != nil {
		return c.Reason
	}
	return ""
}

// failure returns the decision after its step has failed. It keeps what was recorded.
func failure(d plan.Decision, failed *StepError) plan.Decision {
	message := failed.Err.Error()
	d.Progress = plan.Reconciling
	d.Ready = plan.Outcome{Status: metav1.ConditionFalse, Message: message}
	switch d.Action {
	case plan.Mount:
		d.Ready.Reason, d.Progress = v1alpha1.ReasonMountFailed, plan.Stalled
		d.Ready.Message = message + "; the disk is not formatted for that: repair it or replace it"
	case plan.Unmount:
		d.Ready.Reason = v1alpha1.ReasonUnmountFailed
		d.Released = &plan.Outcome{Status: metav1.ConditionFalse, Reason: v1alpha1.ReasonUnmountFailed, Message: message}
	case plan.Wipe:
		d.Ready.Reason = v1alpha1.ReasonWipeFailed
		d.Destroyed = &plan.Outcome{Status: metav1.ConditionFalse, Reason: v1alpha1.ReasonWipeFailed, Message: message}
	default:
		d.Ready.Reason = v1alpha1.ReasonProvisioningFailed
		d.Ready.Message = fmt.Sprintf("step %s failed: %s", failed.Step, message)
	}
	return d
}

// status returns the agent's part of the target's status after a decision. On a mounted target, the queue is set and read back in every
// pass, because a reboot resets it.
func (p *Provisioner) status(t *v1alpha1.StorageTarget, l plan.Look, d plan.Decision) v1alpha1.StorageTargetStatus {
	s := v1alpha1.StorageTargetStatus{
		ObservedGeneration: t.Generation, KernelName: l.Device.KernelName, Plan: d.Plan, Provisioned: d.Provisioned, NewDevice: d.NewDevice,
		// A target that is not mounted now keeps its former size.
		CapacityBytes: t.Status.CapacityBytes, Capacity: t.Status.Capacity,
		// The first value that was read is kept. Later the record on the disk is this cluster's own.
		Record: t.Status.Record, FormerOwner: d.FormerOwner, Registration: t.Status.Registration,
	}
	if s.Provisioned != nil && s.FormerOwner == nil {
		// The records on other disks of the FileSystem use this disk's former name.
		s.FormerOwner = t.Status.FormerOwner
	}
	if record := recorded(t, l); record != nil {
		s.Record = record
	}
	ready := d.Ready
	if d.Provisioned != nil && l.Device.Found && l.Mount.Mounted && l.Mount.KernelName == l.Device.KernelName {
		s.MountPath = p.mountpoint(t)
		p.size(&s)
		if ready.Status == metav1.ConditionTrue {
			p.proven(t, l, &s, &ready)
		}
	}
	s.Conditions = p.conditions(t, d, ready)
	return s
}

// proven adds what is done and read on a target that is mounted and proven.
func (p *Provisioner) proven(t *v1alpha1.StorageTarget, l plan.Look, s *v1alpha1.StorageTargetStatus, ready *plan.Outcome) {
	// A record is a file at the top of a disk. A target that only its own server mounts does not show it.
	_, served := registry.Served(t.Spec.Format)
	if tookOver := s.Provisioned.PlanHash == ""; tookOver && !served && (s.Record == nil || s.Record.Message != "") {
		s.Record = record.Read(s.MountPath, t)
	}
	if !served && t.Spec.Role == v1alpha1.RoleStorage {
		s.Registration = cmp.Or(registration(s.MountPath), s.Registration)
	}
	var refused []string
	if s.Queue, refused = ApplyQueue(p.Sys, l.Device.KernelName, t.Spec.Queue); len(refused) > 0 {
		ready.Reason, ready.Message = v1alpha1.ReasonQueueRefused, strings.Join(refused, "; ")
	}
}

func (p *Provisioner) size(s *v1alpha1.StorageTargetStatus) {
	if size, err := capacity(s.MountPath); err == nil {
		s.CapacityBytes, s.Capacity = size, v1alpha1.Bytes(size)
	}
	s.UsedInodesPerMille = usedInodes(s.MountPath)
}

// conditions returns the agent's conditions. A condition that has not changed keeps its time.
func (p *Provisioner) conditions(t *v1alpha1.StorageTarget, d plan.Decision, ready plan.Outcome) []metav1.Condition {
	list := []metav1.Condition{}
	add := func(kind string, o plan.Outcome) {
		c := metav1.Condition{
			Type: kind, Status: o.Status, Reason: o.Reason, Message: v1alpha1.Cut(o.Message, mostMessage), ObservedGeneration: t.Generation,
			LastTransitionTime: metav1.NewTime(p.Now()).Rfc3339Copy(),
		}
		if old := meta.FindStatusCondition(t.Status.Conditions, kind); old != nil && old.Status == c.Status {
			c.LastTransitionTime = old.LastTransitionTime
		}
		list = append(list, c)
	}
	add(v1alpha1.ConditionReady, ready)
	progress := plan.Outcome{Status: metav1.ConditionTrue, Reason: ready.Reason, Message: ready.Message}
	switch d.Progress {
	case plan.Reconciling:
		add(v1alpha1.ConditionReconciling, progress)
	case plan.Stalled:
		add(v1alpha1.ConditionStalled, progress)
	case plan.Settled:
	}
	if d.Released != nil {
		add(v1alpha1.ConditionReleased, *d.Released)
	}
	if d.Destroyed != nil {
		add(v1alpha1.ConditionDestroyed, *d.Destroyed)
	}
	return list
}
