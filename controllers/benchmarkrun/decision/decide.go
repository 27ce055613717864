// Package decision decides what one pass over a BenchmarkRun does, from its scope alone: one action, what happens to the lease, and the new
// status.
package decision

import (
	"encoding/json"
	"fmt"
	"strings"
	"time"

	mpiv2 "github.com/kubeflow/mpi-operator/pkg/apis/kubeflow/v2beta1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"parallelfs.dev/operator/api/v1alpha1"
	"parallelfs.dev/operator/controllers/benchmarkrun/children"
	"parallelfs.dev/operator/controllers/benchmarkrun/scope"
	"parallelfs.dev/operator/controllers/benchmarkrun/trust"
	"parallelfs.dev/operator/controllers/benchmarkrun/turns"
	"parallelfs.dev/operator/controllers/conditions"
	"parallelfs.dev/operator/controllers/refusals"
	"parallelfs.dev/operator/internal/backend"
)

// action is the one thing that a pass does, besides writing the status.
type action int

const (
	// Nothing writes only the status.
	Nothing action = iota
	// Start creates the job of a turn.
	Start
	// Keep writes the record of a turn that has ended.
	Keep
	// GiveUp writes the record of a turn that had no job.
	GiveUp
	// Mark records on a job that has left its queue that it has started.
	Mark
	// Remove deletes a job.
	Remove
	// Check creates the job that checks image and space.
	Check
	// Inspect records the result of that job.
	Inspect
	// DropCaches requests the agents to drop caches.
	DropCaches
	// Publish writes the complete results.
	Publish
	// Export creates the job that copies the results elsewhere.
	Export
	// MakeClaim creates the claim for a run on a StorageClass.
	MakeClaim
	// RemoveClaim deletes that claim.
	RemoveClaim
	// Clean creates the job that removes the run's files.
	Clean
	// Forget removes the raw output.
	Forget
	// Expire deletes the run.
	Expire
)

// leasing is what a pass does with the lease of the FileSystem.
type leasing int

const (
	// LeaseAsIs does not change it.
	LeaseAsIs leasing = iota
	// LeaseTake takes or keeps it; the action is postponed if another holder has it.
	LeaseTake
	// LeaseFree releases it.
	LeaseFree
)

// Decision is what a pass does, and the content of the status.
type Decision struct {
	Action action
	Lease  leasing
	// Child is the object that the actions Keep, Mark, Inspect and Remove apply to.
	Child *children.Child
	// Turn is the turn that Start and GiveUp apply to, or the running one.
	Turn    turns.Turn
	Running bool
	// Verdict, with Keep and GiveUp, is why the turn failed, whatever it printed. Invalid is what disturbed it, and Interrupted why it does
	// not count at all.
	Verdict, Invalid, Interrupted string
	// Unread, with Keep, skips the output.
	Unread bool
	// Request, with DropCaches, is the request to the agents.
	Request string
	// Intends writes the directory into the status before the first job writes there, so that no file can be forgotten. Cleaned removes it
	// from the status.
	Intends, Cleaned bool
	// LeftBehind is why the files could not be removed.
	LeftBehind string
	// Exported is where the results were copied to.
	Exported string
	// Forgotten records in the status that the raw output is gone.
	Forgotten bool
	// Ended completes the run. Unobserved keeps the status of the former spec.
	Ended, Unobserved bool

	Status   metav1.ConditionStatus
	Progress conditions.Progress
	Reason   string
	Message  string
	// After is when the next pass begins, 0 for when something changes.
	After time.Duration
}

func reconciling(reason, format string, args ...any) Decision {
	return Decision{Status: metav1.ConditionUnknown, Progress: conditions.Reconciling, Reason: reason, Message: fmt.Sprintf(format, args...)}
}

// Stalled is the decision to do nothing until a person changes something.
func Stalled(reason, message string) Decision {
	return Decision{Status: metav1.ConditionFalse, Progress: conditions.Stalled, Reason: reason, Message: message, Lease: LeaseFree}
}

// Decide returns the next step. The order of the checks matters: a running job comes before anything new, and the files are removed only if
// nothing runs.
func Decide(w *scope.Scope) Decision {
	if w.Run.Status.CompletionTime != nil {
		return decideEnded(w)
	}
	if w.Invalid != "" {
		return Stalled(v1alpha1.ReasonInvalidSpec, w.Invalid)
	}
	if d, busy := decideChildren(w); busy {
		return d
	}
	next, found := w.Next()
	switch {
	case w.Run.Spec.Suspend:
		return decideSuspended(w)
	case !found || w.TimedOut(0) || w.Records.Final():
		return decideEnd(w)
	}
	if d, waits := decideWaiting(w); waits {
		return d
	}
	if !begun(w) {
		if d, checks := decidePreflight(w); checks {
			return d
		}
	}
	d := running(w, next)
	d.Lease = LeaseTake
	switch {
	case w.Cleaner != nil:
		d.Action, d.Child, d.After = Remove, w.Cleaner, scope.Soon
	case next.Step > 0 && !begun(w):
		// The files of the earlier steps have been removed.
		d.Action, d.Interrupted, d.After = GiveUp, "was stopped between two phases, and its files were removed", scope.Soon
	case !begun(w):
		d.Intends, d.After = true, scope.Soon
	case w.Checker != nil:
		d.Action, d.Child, d.After = Remove, w.Checker, scope.Soon
	case w.Unpublished():
		d.Action, d.After = Publish, scope.Soon
	default:
		return decideTurn(w, d)
	}
	return d
}

// begun reports whether image and space were checked, and the status has the directory of the files. A run that was suspended begins again.
func begun(w *scope.Scope) bool {
	if !w.Any(scope.OnClients) {
		return w.Run.Status.StartTime != nil
	}
	return w.Run.Status.Directory != ""
}

// decideTurn starts a turn after the pause and after the caches were dropped.
func decideTurn(w *scope.Scope, d Decision) Decision {
	if pause := w.Run.Spec.Pause; pause != nil && d.Turn.Step == 0 {
		if left := w.Records.LastEnd().Add(pause.Duration).Sub(w.Now); left > 0 {
			d.Reason, d.Message = v1alpha1.ReasonPausing, fmt.Sprintf("pausing for %s (spec.pause) before %s", pause.Duration, w.Current(d.Turn))
			d.Running, d.After = false, left
			return d
		}
	}
	if w.Drops(d.Turn) {
		if step, waits := decideDrop(w, d); waits {
			return step
		}
	}
	d.Action, d.After = Start, w.Poll
	return d
}

// decideEnded removes what a run has left, and deletes the run when its time is over.
func decideEnded(w *scope.Scope) Decision {
	known := meta.FindStatusCondition(w.Run.Status.Conditions, v1alpha1.ConditionSucceeded)
	d := Decision{Status: metav1.ConditionUnknown, Progress: conditions.Settled}
	if known != nil {
		d.Status, d.Reason, d.Message = known.Status, known.Reason, known.Message
	}
	if w.Changed() && w.Unpublished() {
		d.Action, d.After = Publish, scope.Soon
		return d
	}
	if w.Changed() && destination(w) != "" {
		exported, step, waits := decideExport(w)
		if waits {
			// The status describes the old spec until this is done.
			d.Action, d.After, d.Unobserved = step.Action, step.After, true
			return d
		}
		d.Exported = exported
	}
	for _, c := range w.Jobs() {
		if !c.Deleting {
			d.Action, d.Child, d.After = Remove, c, scope.Soon
			return d
		}
	}
	if v := w.Volume; w.MakesClaim() && v != nil && v.Claim != nil && v.Claim.DeletionTimestamp.IsZero() {
		d.Action, d.After = RemoveClaim, scope.Soon
		return d
	}
	if ttl := w.Run.Spec.TTLSecondsAfterFinished; ttl != nil {
		if d.After = left(w, time.Duration(*ttl)*time.Second); d.After <= 0 {
			d.Action = Expire
			return d
		}
	}
	if w.Run.Status.RawOutputRemoved == nil {
		switch left := left(w, rawOutputTTL(w)); {
		case left <= 0 || w.RawExceeds:
			d.Action, d.Forgotten = Forget, true
		case d.After == 0 || left < d.After:
			d.After = left
		}
	}
	return d
}

// left returns the remainder of a time that began at the end of the run.
func left(w *scope.Scope, ttl time.Duration) time.Duration {
	return w.Run.Status.CompletionTime.Add(ttl).Sub(w.Now)
}

// DefaultRawOutputTTL is the default of spec.rawOutputTTL.
const DefaultRawOutputTTL = 30 * 24 * time.Hour

func rawOutputTTL(w *scope.Scope) time.Duration {
	if ttl := w.Run.Spec.RawOutputTTL; ttl != nil {
		return ttl.Duration
	}
	return DefaultRawOutputTTL
}

// unfinished returns the jobs that a run has to wait for. A job that finalizers of others keep is one of them only if its repetition is to
// be started again, because another job needs its name.
func unfinished(w *scope.Scope) []*children.Child {
	var out []*children.Child
	for i := range w.Children {
		c := &w.Children[i]
		_, recorded := w.Records.Find(c.Turn)
		stops := w.Run.Spec.Suspend || !w.Run.DeletionTimestamp.IsZero() || stopsFor(w) != ""
		if len(c.Kept) == 0 || !recorded && !stops {
			out = append(out, c)
		}
	}
	return out
}

// decideChildren handles the existing jobs, one at a time. It returns false if there are none.
func decideChildren(w *scope.Scope) (Decision, bool) {
	all := unfinished(w)
	if len(all) == 0 {
		if len(w.Lingering) == 0 {
			return Decision{}, false
		}
		d := reconciling(v1alpha1.ReasonRunning, "waiting until the pods %s have ended", backend.List(w.Lingering))
		d.After = scope.Soon
		return d, true
	}
	c := all[0]
	d := running(w, c.Turn)
	_, recorded := w.Records.Find(c.Turn)
	switch {
	case len(c.Kept) > 0:
		d.Lease, d.Running, d.After = LeaseFree, false, w.Poll
		d.Message = fmt.Sprintf("waiting until %s has gone, which its finalizers %s keep; nothing of it runs: find who has set them, or remove them", c.Name,
			strings.Join(c.Kept, ", "))
	case c.Deleting:
		d.Message = fmt.Sprintf("waiting until %s has gone", c.Name)
		d.Running, d.After = !recorded && !w.Run.Spec.Suspend, scope.Soon
	case recorded:
		d.Action, d.Child, d.After, d.Running = Remove, c, scope.Soon, false
	case c.NoPods():
		// It is no attempt, because nothing was ever started.
		d.After = scope.RetryInterval
		d.noPods(w, c)
		if c.Failed || w.Run.Spec.Suspend || stopsFor(w) != "" {
			d.Action, d.Child, d.Running = Remove, c, false
		}
	case c.Over():
		d.Action, d.Child, d.After = Keep, c, scope.Soon
		d.Invalid = disturbance(w, c)
	case w.Run.Spec.Suspend:
		d.Action, d.Child, d.After, d.Running = Remove, c, scope.Soon, false
		d.Message = fmt.Sprintf("stopping %s", c.Name)
	case stopsFor(w) != "":
		d.Action, d.Child, d.After = Keep, c, scope.Soon
		d.Invalid = "was stopped: " + stopsFor(w)
	case c.Evicted():
		d.Action, d.Child, d.After = Keep, c, scope.Soon
		d.Invalid = "was evicted from its queue"
	case c.Held:
		d.Reason, d.After = v1alpha1.ReasonQueued, w.Poll
		d.Message = fmt.Sprintf("%s waits in the queue %s", c.Name, w.Run.Spec.QueueName)
	case w.TimedOut(w.Now.Sub(c.Started)):
		d.Action, d.Child, d.After = Keep, c, scope.Soon
		d.Verdict = fmt.Sprintf("stopped because spec.limits.timeout (%s) was reached", w.Timeout())
	case w.Now.After(c.Started.Add(w.PointTimeout() + scope.OverdueAfter)):
		d.Action, d.Child, d.After = Keep, c, scope.Soon
		d.Verdict = fmt.Sprintf("did not end within %s (spec.limits.pointTimeout)%s", w.PointTimeout(), children.Why(c))
	case c.Object.GetLabels()[children.LabelQueue] != "" && c.Admitted.IsZero():
		d.Action, d.Child, d.After = Mark, c, w.Poll
	default:
		d.Lease, d.After = LeaseTake, w.Poll
		d.Message += children.Why(c)
		if c.Outlasting != "" {
			d.Message += fmt.Sprintf("; its tool has ended, and %s, which was not asked for, still runs", c.Outlasting)
		}
	}
	return d, true
}

// noPods handles a job whose pods the API server refuses: the run waits for a quota to have room, or for a person.
func (d *Decision) noPods(w *scope.Scope, c *children.Child) {
	d.Reason, d.Message = v1alpha1.ReasonQuotaExceeded, podsRefused(w, c)
	if !c.WaitsForQuota() {
		d.Status, d.Progress, d.Reason = metav1.ConditionFalse, conditions.Stalled, v1alpha1.ReasonPodsRefused
	}
}

// podsRefused returns why a job has no pods, and what would solve it.
func podsRefused(w *scope.Scope, c *children.Child) string {
	if c.WaitsForQuota() {
		return fmt.Sprintf("%s waits: a quota of namespace %s keeps its pods from being made: %s", c.Name, w.Run.Namespace, c.Refused)
	}
	kind := "Job"
	if _, is := c.Object.(*mpiv2.MPIJob); is {
		kind = "MPIJob"
	}
	owner := refusals.Owner{Kind: kind, Namespace: w.Run.Namespace, Name: c.Name}
	return refusals.Sentence(owner, 0, c.Refused, refusals.Fields{
		PriorityClass: "spec.priorityClassName", Resources: "spec.pods.resources of a new run",
	})
}

// running is the decision while a turn runs.
func running(w *scope.Scope, t turns.Turn) Decision {
	d := reconciling(v1alpha1.ReasonRunning, "running %s", w.Current(t))
	d.Running, d.Turn = true, t
	return d
}

func decideSuspended(w *scope.Scope) Decision {
	d := Decision{Status: metav1.ConditionUnknown, Progress: conditions.Settled, Reason: v1alpha1.ReasonSuspended, Lease: LeaseFree}
	sentence := "spec.suspend is true; the repetitions that have ended are kept"
	d.Message = sentence
	if w.Checker != nil && !w.Checker.Deleting {
		d.Action, d.Child, d.After = Remove, w.Checker, scope.Soon
		return d
	}
	if w.Run.Status.Directory == "" {
		if w.Cleaner != nil && !w.Cleaner.Deleting {
			d.Action, d.Child = Remove, w.Cleaner
		}
		return d
	}
	step, why := cleaning(w)
	switch step {
	case cleanDone:
		d.Cleaned, d.After = true, scope.Soon
	case cleanImpossible:
		d.LeftBehind, d.Message = why, fmt.Sprintf("%s; its files are still in %s: %s", sentence, w.Run.Status.Directory, why)
	default:
		d = cleaningUp(w, step, why)
	}
	return d
}

// decideEnd removes the files, writes the complete results, copies them to their destination, and then ends the run.
func decideEnd(w *scope.Scope) Decision {
	step, why := cleaning(w)
	if step != cleanDone && step != cleanImpossible {
		return cleaningUp(w, step, why)
	}
	if w.Unpublished() {
		d := reconciling(v1alpha1.ReasonCleaningUp, "writing the complete results")
		d.Action, d.After = Publish, scope.Soon
		return d
	}
	exported, d, waits := decideExport(w)
	if waits {
		return d
	}
	d = verdict(w)
	d.Ended, d.After, d.Lease, d.Exported = true, scope.Soon, LeaseFree, exported
	d.Cleaned = step == cleanDone
	if step == cleanImpossible {
		d.LeftBehind = why
		d.Message += fmt.Sprintf("; its files are still in %s: %s", w.Run.Status.Directory, why)
	}
	return d
}

// verdict describes how a run ended.
func verdict(w *scope.Scope) Decision {
	failed, first, left := 0, "", 0
	for i, s := range w.States() {
		if s.Bad != nil {
			failed++
			if first == "" {
				first = fmt.Sprintf("point %d (%s): %s", i, scope.Describe(w.Points[i]), s.Bad.Trouble())
			}
		} else if !s.Over {
			left++
		}
	}
	d := Decision{Status: metav1.ConditionFalse, Progress: conditions.Settled}
	switch {
	case left > 0 && !w.Records.Final():
		d.Reason = v1alpha1.ReasonTimedOut
		d.Message = fmt.Sprintf("spec.limits.timeout (%s) was reached; %s not run to the end",
			w.Timeout(), v1alpha1.CountOf(left, len(w.Points), "point", "points", "was", "were"))
	case failed > 0:
		d.Reason = v1alpha1.ReasonPointsFailed
		d.Message = fmt.Sprintf("%s; the first is %s", v1alpha1.CountOf(failed, len(w.Points), "point", "points", "failed", "failed"), first)
	default:
		d.Status, d.Reason = metav1.ConditionTrue, v1alpha1.ReasonAllPointsSucceeded
		d.Message = v1alpha1.CountOf(len(w.Points), len(w.Points), "point", "points", "has", "have") + " a result"
	}
	return d
}

// cleanStep is the progress of the removal of the run's files.
type cleanStep int

const (
	// cleanDone means that there is nothing to remove.
	cleanDone cleanStep = iota
	// cleanNeeded means that the job that removes them must be created.
	cleanNeeded
	// cleanRunning means that the job runs.
	cleanRunning
	// cleanNoClient means that no node mounts the filesystem now.
	cleanNoClient
	// cleanImpossible means that the run no longer waits for it.
	cleanImpossible
)

func cleaning(w *scope.Scope) (cleanStep, string) {
	switch c := w.Cleaner; {
	case w.Run.Status.Directory == "":
		return cleanDone, ""
	case c != nil && c.Succeeded:
		return cleanDone, ""
	case w.MakesClaim():
		return cleanDone, "" // the claim is deleted with everything on it
	case gone(w) != "":
		return cleanImpossible, gone(w)
	case c == nil && w.Volume == nil && (len(w.Mounted) == 0 || w.Mount.Path == ""):
		return cleanNoClient, fmt.Sprintf("no node has mounted FileSystem %s", w.FileSystem.Name)
	case c == nil:
		return cleanNeeded, ""
	case c.NoPods() && !c.Failed:
		return cleanRunning, podsRefused(w, c)
	case c.Failed:
		return cleanImpossible, fmt.Sprintf("Job %s failed (%s)%s", c.Name, c.Message, children.Why(c))
	case w.Now.Sub(c.Created) > scope.CleanTimeout:
		return cleanImpossible, fmt.Sprintf("Job %s did not end within %s%s", c.Name, scope.CleanTimeout, children.Why(c))
	default:
		return cleanRunning, ""
	}
}

// gone returns why no pod can reach the target now, empty if one can.
func gone(w *scope.Scope) string {
	target := w.Run.Spec.Target.String()
	var deleted bool
	switch {
	case w.Volume != nil && w.Volume.Claim == nil, w.Volume == nil && w.FileSystem == nil:
		return target + " is gone"
	case w.Volume != nil:
		deleted = !w.Volume.Claim.DeletionTimestamp.IsZero()
	default:
		deleted = !w.FileSystem.DeletionTimestamp.IsZero()
	}
	if deleted {
		return target + " is being deleted"
	}
	return ""
}

func cleaningUp(w *scope.Scope, step cleanStep, why string) Decision {
	d := reconciling(v1alpha1.ReasonCleaningUp, "removing %s", w.Run.Status.Directory)
	d.After = w.Poll
	switch step {
	case cleanNeeded:
		d.Action = Clean
	case cleanNoClient:
		d.Message += "; waiting because " + why
		d.After = scope.RetryInterval
	case cleanRunning:
		if why != "" {
			d.Message += "; " + why
		}
	}
	return d
}

// DecideDeleted stops the run and removes its files as far as that is possible. When nothing is left to do, finished is true, and the
// decision has a message if files remain. It never waits forever, because a finalizer must not block a deletion.
func DecideDeleted(w *scope.Scope) (d Decision, finished bool) {
	d = reconciling(v1alpha1.ReasonCleaningUp, "stopping")
	d.After = scope.Soon
	if Expired(w.Run, w.Now) {
		if w.Run.Status.Directory != "" {
			d.LeftBehind = fmt.Sprintf("the deletion took longer than %s", scope.DeleteTimeout)
		}
		return d, true
	}
	for _, c := range w.Jobs() {
		if !c.Deleting && c != w.Cleaner {
			d.Action, d.Child = Remove, c
			return d, false
		}
	}
	if len(unfinished(w))+len(w.Lingering) > 0 {
		return d, false
	}
	step, why := cleaning(w)
	switch step {
	case cleanDone:
		return d, true
	case cleanImpossible, cleanNoClient:
		d.LeftBehind = why
		return d, true
	default:
		return cleaningUp(w, step, why), false
	}
}

// Expired reports whether a deletion has waited long enough.
func Expired(run *v1alpha1.BenchmarkRun, now time.Time) bool {
	return now.Sub(run.DeletionTimestamp.Time) > scope.DeleteTimeout
}

// InUse is the decision while another holder has the lease.
func InUse(w *scope.Scope, by string) Decision {
	d := reconciling(v1alpha1.ReasonFileSystemInUse, "%s has the lease of %s; this run waits until it is free", by, w.Run.Spec.Target.String())
	if w.Volume != nil {
		d.Reason = v1alpha1.ReasonWaitingForRun
	}
	d.After = scope.RetryInterval
	return d
}

// disturbance returns what has changed since a job was started, empty if nothing has or it is unknown.
func disturbance(w *scope.Scope, c *children.Child) string {
	text := c.Object.GetAnnotations()[children.AnnotationTrust]
	if text == "" {
		return ""
	}
	var before trust.Fingerprint
	if err := json.Unmarshal([]byte(text), &before); err != nil {
		return fmt.Sprintf("can't be trusted: the annotation %s of %s can't be read", children.AnnotationTrust, c.Name)
	}
	if w.Volume == nil && w.FileSystem == nil {
		return "was disturbed: " + gone(w)
	}
	if changes := w.Trust(c.Nodes).DiffersFrom(before); changes != "" {
		return "was disturbed: " + changes
	}
	return ""
}
