package decision

import (
	"fmt"

	"parallelfs.dev/operator/api/v1alpha1"
	"parallelfs.dev/operator/benchmarks"
	"parallelfs.dev/operator/controllers/benchmarkrun/children"
	"parallelfs.dev/operator/controllers/benchmarkrun/scope"
	"parallelfs.dev/operator/controllers/benchmarkrun/text"
)

// decidePreflight checks image and space before the first point. It does not delay a run that has passed the check.
func decidePreflight(w *scope.Scope) (Decision, bool) {
	d := reconciling(v1alpha1.ReasonPreflight, "looking at the image %s and the space of %s", w.Image, w.Run.Spec.Target.String())
	if w.Volume != nil && !w.Volume.Bound() {
		d.Message += ", which is bound when the pod is scheduled" + because(w.Volume)
	}
	d.Lease, d.After = LeaseTake, w.Poll
	c := w.Checker
	switch {
	case !w.Any(scope.OnClients):
		// The check needs no mount, and the backend supplies the image. The provenance is recorded all the same.
		d.Action, d.After = Inspect, scope.Soon
		return d, w.Provenance.CheckedBy == ""
	case c == nil:
		d.Action = Check
		return d, true
	case c.Deleting:
		return d, true
	case c.NoPods():
		d.noPods(w, c)
		if c.Failed {
			d.Action, d.Child = Remove, c
		}
		return d, true
	case w.Provenance.CheckedBy != string(c.Object.GetUID()):
		d.Message += children.Why(c)
		if c.Over() || w.Now.Sub(c.Created) > scope.CheckTimeout {
			d.Action, d.Child, d.After = Inspect, c, scope.Soon
		}
		return d, true
	}
	reason, sentence := unfit(w)
	if sentence == "" {
		return Decision{}, false
	}
	d = Stalled(reason, sentence)
	d.After = max(w.Provenance.CheckedAt.Add(scope.CheckAgain).Sub(w.Now), scope.Soon)
	if w.Now.Sub(w.Provenance.CheckedAt) >= scope.CheckAgain {
		d.Action, d.Child, d.After = Remove, c, scope.Soon
	}
	return d, true
}

// unfit returns why the run can't succeed, from the result of the check.
func unfit(w *scope.Scope) (reason, sentence string) {
	p := w.Provenance
	if p.CheckFailed != "" && w.Volume != nil && !w.Volume.Bound() {
		return v1alpha1.ReasonWaitingForVolume, fmt.Sprintf("%s was not bound when a pod used it: %s%s",
			w.Run.Spec.Target.String(), p.CheckFailed, because(w.Volume))
	}
	if p.CheckFailed != "" {
		return v1alpha1.ReasonImageRequired, fmt.Sprintf("the image %s could not be looked at: %s; see docs/benchmark-images.md",
			w.Image, p.CheckFailed)
	}
	var missing []string
	for _, program := range p.Checked.MissingPrograms {
		missing = append(missing, "the program "+program)
	}
	for _, user := range p.Checked.MissingUsers {
		missing = append(missing, "the user "+user)
	}
	if len(missing) > 0 {
		return v1alpha1.ReasonImageRequired, fmt.Sprintf("the image %s lacks %s, which %s needs; docs/benchmark-images.md says what "+
			"must be in it", w.Image, text.SentenceList(missing), w.Run.Spec.ToolName())
	}
	if p.Checked.Problem != "" {
		return v1alpha1.ReasonPreflightFailed, fmt.Sprintf("the filesystem could not be looked at: %s", p.Checked.Problem)
	}
	need, at := demand(w)
	switch {
	case need.Bytes > p.Checked.FreeBytes:
		return v1alpha1.ReasonPreflightFailed, fmt.Sprintf("%s needs %s, and %s has %s free: make room, or make the benchmark smaller",
			scope.Describe(w.Points[at]), v1alpha1.Bytes(need.Bytes), w.Run.Spec.Target.String(), v1alpha1.Bytes(p.Checked.FreeBytes))
	case p.Checked.FreeInodes >= 0 && need.Inodes > p.Checked.FreeInodes:
		return v1alpha1.ReasonPreflightFailed, fmt.Sprintf("a point of the sweep needs %d inodes, and %s has %d free: "+
			"remove files, or make the benchmark smaller", need.Inodes, w.Run.Spec.Target.String(), p.Checked.FreeInodes)
	}
	return "", ""
}

// demand returns the largest demand of an unfinished point, and the point that needs most space.
func demand(w *scope.Scope) (need benchmarks.Demand, at int) {
	for i, plan := range w.Plans {
		if w.State(i).Over {
			continue
		}
		if plan.Demand.Bytes > need.Bytes {
			need.Bytes, at = plan.Demand.Bytes, i
		}
		need.Inodes = max(need.Inodes, plan.Demand.Inodes)
	}
	return need, at
}
