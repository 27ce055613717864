package filesystem

import (
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"

	"parallelfs.dev/operator/api/v1alpha1"
	"parallelfs.dev/operator/internal/backend"
	"parallelfs.dev/operator/internal/backend/shared/assign"
)

// makingLimit is how long the configuration of servers leaves a ready disk out because another disk of their node is being made a target.
// To make a filesystem on a disk takes seconds.
const makingLimit = 30 * time.Second

// disksBeingMade returns the nodes on which a disk is being made a target, with visible progress a short while ago. A disk that waits for a
// person does not count.
func disksBeingMade(in backend.Input, now time.Time) map[string]bool {
	out := map[string]bool{}
	for i := range in.Targets {
		t := &in.Targets[i]
		ready := assign.Condition(t, v1alpha1.ConditionReady)
		goesOn := ready == nil || ready.Reason == v1alpha1.ReasonPlanning || ready.Reason == v1alpha1.ReasonProvisioning
		if since, noticed := in.Since[t.UID]; goesOn && noticed && now.Sub(since) < makingLimit && !assign.Finished(t) {
			out[t.Spec.Node] = true
		}
	}
	return out
}

// keepWhileDisksAreMade leaves the FileSystemNodes of these nodes as they were read if they would only gain ready disks. So the
// configuration of a server with 24 disks changes once, and not 24 times, and the server starts with all of them.
func keepWhileDisksAreMade(read, wanted []v1alpha1.FileSystemNode, making map[string]bool) {
	if len(making) == 0 {
		return
	}
	was := make(map[string]*v1alpha1.FileSystemNode, len(read))
	for i := range read {
		was[read[i].Spec.Node] = &read[i]
	}
	for i := range wanted {
		spec := &wanted[i].Spec
		if live := was[spec.Node]; live != nil && making[spec.Node] && addsOnlyReadyDisks(live.Spec.Members, spec.Members) {
			spec.Members = live.Spec.Members
		}
	}
}

// addsOnlyReadyDisks reports whether members differ only in the UUIDs of disks that had none.
func addsOnlyReadyDisks(before, after []v1alpha1.NodeMember) bool {
	if len(before) != len(after) {
		return false
	}
	for i := range after {
		m := after[i]
		if len(m.Targets) != len(before[i].Targets) {
			return false
		}
		m.Targets = slices.Clone(m.Targets)
		for j := range m.Targets {
			if before[i].Targets[j].UUID == "" {
				m.Targets[j].UUID = ""
			}
		}
		if !equality.Semantic.DeepEqual(m, before[i]) {
			return false
		}
	}
	return true
}
