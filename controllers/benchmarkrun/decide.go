package benchmarkrun

import (
	"fmt"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"parallelfs.dev/operator/api/v1alpha1"
	"parallelfs.dev/operator/controllers/conditions"
)

const (
	// defaultPointTimeout is that of spec.limits.pointTimeout.
	defaultPointTimeout = 30 * time.Minute
	// overdueAfter is how long after the point's timeout the operator ends a job itself: the node binary in the pod should
	// have ended it by then, unless the pod never started.
	overdueAfter = time.Minute
	// quotaPatience is how long pods may be missing before the events of their job are read.
	quotaPatience = 5 * time.Second
	// cleanTimeout bounds the removal of the run's files.
	cleanTimeout = 2 * time.Minute
	// deleteTimeout bounds how long a deletion waits for anything at all.
	deleteTimeout = 4 * time.Minute

	// soon is when to go on after a step; the events of what was written mostly come sooner.
	soon = time.Second
	// retryInterval is how often something that the run waits for is looked at.
	retryInterval = 5 * time.Second
	// mpiInterval is how often the cluster is asked for the API of MPIJobs while it has none.
	mpiInterval = 30 * time.Second
)

// action is the one thing that a pass does, besides writing the status.
type action int

const (
	// nothing but the status.
	nothing action = iota
	// start makes the job of a turn.
	start
	// keep writes the record of a turn that has ended.
	keep
	// give up writes the record of a turn that had no job.
	giveUp
	// mark notes on a job that came out of its queue that it has started.
	mark
	// remove deletes a job.
	remove
	// check makes the job that looks at image and space, inspect records what it has found.
	check
	inspect
	// dropCaches asks the agents to drop caches.
	dropCaches
	// publish writes the complete results, and export makes the job that takes them elsewhere.
	publish
	export
	// clean makes the job that removes the run's files.
	clean
	// expire deletes the run.
	expire
)

// leasing is what a pass does with the lease of the FileSystem.
type leasing int

const (
	// leaseAsIs leaves it to whom it is.
	leaseAsIs leasing = iota
	// leaseTake takes or keeps it; the action is put off when somebody else has it.
	leaseTake
	// leaseFree lets it go.
	leaseFree
)

// decision is what a pass does and what the status says.
type decision struct {
	action action
	lease  leasing
	// child is what keep, mark, inspect and remove are about.
	child *child
	// turn is what start and giveUp are about, or what runs.
	turn    turn
	running bool
	// verdict, with keep and giveUp, says why the turn failed, whatever it printed; invalid says what disturbed it, and interrupted why it
	// counts for nothing.
	verdict, invalid, interrupted string
	// request, with dropCaches, is what the agents are asked.
	request string
	// intends writes the directory into the status: it comes before the first job that writes there, so that no file can be
	// forgotten. cleaned takes it out again.
	intends, cleaned bool
	// leftBehind says why the files could not be removed.
	leftBehind string
	// exported says where the results went besides.
	exported string
	// ended completes the run. unobserved leaves the status as of the spec before.
	ended, unobserved bool

	status   metav1.ConditionStatus
	progress conditions.Progress
	reason   string
	message  string
	// after is when to look again, 0 for when something changes.
	after time.Duration
}

func (w *world) reconciling(reason, format string, args ...any) decision {
	return decision{status: metav1.ConditionUnknown, progress: conditions.Reconciling, reason: reason, message: fmt.Sprintf(format, args...)}
}

func stalled(reason, message string) decision {
	return decision{status: metav1.ConditionFalse, progress: conditions.Stalled, reason: reason, message: message, lease: leaseFree}
}

// decide says what to do now. The order is that of what must never be mixed up: what runs is dealt with before anything
// new is started, and the files are removed only when nothing runs.
func decide(w *world) decision {
	if w.run.Status.CompletionTime != nil {
		return decideEnded(w)
	}
	if w.invalid != "" {
		return stalled(v1alpha1.ReasonInvalidSpec, w.invalid)
	}
	if d, busy := decideChildren(w); busy {
		return d
	}
	next, found := w.next()
	switch {
	case w.run.Spec.Suspend:
		return decideSuspended(w)
	case !found || w.timedOut(0):
		return decideEnd(w)
	}
	if d, waits := decideWaiting(w, next.point); waits {
		return d
	}
	if !w.begun() {
		if d, checks := decidePreflight(w); checks {
			return d
		}
	}
	d := w.running(next)
	d.lease = leaseTake
	switch {
	case w.cleaner != nil:
		d.action, d.child, d.after = remove, w.cleaner, soon
	case next.step > 0 && !w.begun():
		// The files of the steps before have been removed.
		d.action, d.interrupted, d.after = giveUp, "was stopped between two phases, and its files were removed", soon
	case !w.begun():
		d.intends, d.after = true, soon
	case w.checker != nil:
		d.action, d.child, d.after = remove, w.checker, soon
	case w.unpublished():
		d.action, d.after = publish, soon
	default:
		return decideTurn(w, d)
	}
	return d
}

// begun is true when the image and the space were looked at, and the status names where the files are. A run that was suspended
// begins anew.
func (w *world) begun() bool {
	if !w.any(onClients) {
		return w.run.Status.StartTime != nil
	}
	return w.run.Status.Directory != ""
}

// decideTurn starts a turn, after the pause and when the caches are dropped.
func decideTurn(w *world, d decision) decision {
	if pause := w.run.Spec.Pause; pause != nil && d.turn.step == 0 {
		if left := w.records.lastEnd().Add(pause.Duration).Sub(w.now); left > 0 {
			d.reason, d.message = v1alpha1.ReasonPausing, fmt.Sprintf("pausing for %s (spec.pause) before %s", pause.Duration, w.current(d.turn))
			d.running, d.after = false, left
			return d
		}
	}
	if w.drops(d.turn) {
		if step, waits := decideDrop(w, d); waits {
			return step
		}
	}
	d.action, d.after = start, w.poll
	return d
}

// decideEnded leaves nothing behind, and deletes the run when its time is over.
func decideEnded(w *world) decision {
	known := meta.FindStatusCondition(w.run.Status.Conditions, v1alpha1.ConditionSucceeded)
	d := decision{status: metav1.ConditionUnknown, progress: conditions.Settled}
	if known != nil {
		d.status, d.reason, d.message = known.Status, known.Reason, known.Message
	}
	if w.changed() && w.unpublished() {
		d.action, d.after = publish, soon
		return d
	}
	if w.changed() && w.destination() != "" {
		exported, step, waits := decideExport(w)
		if waits {
			// The status is about the old spec until this is done.
			d.action, d.after, d.unobserved = step.action, step.after, true
			return d
		}
		d.exported = exported
	}
	for _, c := range w.jobs() {
		if !c.deleting {
			d.action, d.child, d.after = remove, c, soon
			return d
		}
	}
	if ttl := w.run.Spec.TTLAfterFinished; ttl != nil {
		left := w.run.Status.CompletionTime.Add(ttl.Duration).Sub(w.now)
		if left <= 0 {
			d.action = expire
			return d
		}
		d.after = left
	}
	return d
}

// jobs are all that the run has.
func (w *world) jobs() []*child {
	var out []*child
	for i := range w.children {
		out = append(out, &w.children[i])
	}
	for _, c := range []*child{w.cleaner, w.checker, w.exporter} {
		if c != nil {
			out = append(out, c)
		}
	}
	return out
}

// decideChildren deals with the jobs that are there, one at a time. It is not busy when there are none.
func decideChildren(w *world) (decision, bool) {
	if len(w.children) == 0 {
		if len(w.lingering) == 0 {
			return decision{}, false
		}
		d := w.reconciling(v1alpha1.ReasonRunning, "waiting until the pods %s have ended", strings.Join(w.lingering, ", "))
		d.after = soon
		return d, true
	}
	c := &w.children[0]
	d := w.running(c.turn)
	_, recorded := w.records.find(c.turn)
	switch {
	case c.deleting:
		d.message = fmt.Sprintf("waiting until %s has gone", c.name)
		d.running, d.after = !recorded && !w.run.Spec.Suspend, soon
	case recorded:
		d.action, d.child, d.after, d.running = remove, c, soon, false
	case c.noPods():
		// It is no attempt: nothing was ever started.
		d.reason, d.message, d.after = v1alpha1.ReasonQuotaExceeded, w.overQuota(c), retryInterval
		if c.failed || w.run.Spec.Suspend {
			d.action, d.child, d.running = remove, c, false
		}
	case c.over():
		d.action, d.child, d.after = keep, c, soon
		d.invalid = w.disturbance(c)
	case w.run.Spec.Suspend:
		d.action, d.child, d.after, d.running = remove, c, soon, false
		d.message = fmt.Sprintf("stopping %s", c.name)
	case c.evicted():
		d.action, d.child, d.after = keep, c, soon
		d.invalid = "was evicted from its queue"
	case c.held:
		d.reason, d.after = v1alpha1.ReasonQueued, w.poll
		d.message = fmt.Sprintf("%s waits in the queue %s", c.name, w.run.Spec.QueueName)
	case w.timedOut(w.now.Sub(c.started)):
		d.action, d.child, d.after = keep, c, soon
		d.verdict = fmt.Sprintf("stopped because spec.limits.timeout (%s) was reached", w.run.Spec.Limits.Timeout.Duration)
	case w.now.After(c.started.Add(w.pointTimeout() + overdueAfter)):
		d.action, d.child, d.after = keep, c, soon
		d.verdict = fmt.Sprintf("did not end within %s (spec.limits.pointTimeout)%s", w.pointTimeout(), why(c))
	case c.object.GetLabels()[labelQueue] != "" && c.admitted.IsZero():
		d.action, d.child, d.after = mark, c, w.poll
	default:
		d.lease, d.after = leaseTake, w.poll
		if reason := why(c); reason != "" {
			d.message += reason
		}
	}
	return d, true
}

// overQuota says that a job waits for a quota to have room.
func (w *world) overQuota(c *child) string {
	return fmt.Sprintf("%s waits: a quota of namespace %s keeps its pods from being made: %s", c.name, w.run.Namespace, c.quota)
}

// why says what keeps the pods of a job from running, and is empty when nothing does.
func why(c *child) string {
	for i := range c.pods {
		if message := podTrouble(&c.pods[i]); message != "" {
			return fmt.Sprintf("; its pod %s", message)
		}
	}
	return ""
}

// running is the decision while a turn is run.
func (w *world) running(t turn) decision {
	d := w.reconciling(v1alpha1.ReasonRunning, "running %s", w.current(t))
	d.running, d.turn = true, t
	return d
}

// current names a turn as in status.current.
func (w *world) current(t turn) string {
	words := fmt.Sprintf("repetition %d/%d", t.repetition, max(int(w.run.Spec.Repetitions), t.repetition))
	if t.warmUp {
		words = fmt.Sprintf("warm-up %d", t.repetition)
	}
	if t.point < len(w.plans) && len(w.plans[t.point].Steps) > 1 {
		words += ", " + w.plans[t.point].Steps[min(t.step, len(w.plans[t.point].Steps)-1)].Name
	}
	if t.attempt > 1 {
		words += fmt.Sprintf(", attempt %d", t.attempt)
	}
	if t.point >= len(w.points) {
		return fmt.Sprintf("point %d (%s)", t.point, words)
	}
	return fmt.Sprintf("%s (%s)", describe(w.points[t.point]), words)
}

func (w *world) pointTimeout() time.Duration {
	if l := w.run.Spec.Limits; l != nil && l.PointTimeout != nil {
		return l.PointTimeout.Duration
	}
	return defaultPointTimeout
}

// timedOut is true when the repetitions, and what runs now, have taken the time of the whole run.
func (w *world) timedOut(now time.Duration) bool {
	l := w.run.Spec.Limits
	if l == nil || l.Timeout == nil {
		return false
	}
	sum, _ := w.records.total()
	return sum+now >= l.Timeout.Duration
}

func decideSuspended(w *world) decision {
	d := decision{status: metav1.ConditionUnknown, progress: conditions.Settled, reason: v1alpha1.ReasonSuspended, lease: leaseFree}
	sentence := "spec.suspend is true; the repetitions that have ended are kept"
	d.message = sentence
	if w.checker != nil && !w.checker.deleting {
		d.action, d.child, d.after = remove, w.checker, soon
		return d
	}
	if w.run.Status.Directory == "" {
		if w.cleaner != nil && !w.cleaner.deleting {
			d.action, d.child = remove, w.cleaner
		}
		return d
	}
	step, why := cleaning(w)
	switch step {
	case cleanDone:
		d.cleaned, d.after = true, soon
	case cleanImpossible:
		d.leftBehind, d.message = why, fmt.Sprintf("%s; its files are still in %s: %s", sentence, w.run.Status.Directory, why)
	default:
		d = w.cleaningUp(step, why)
	}
	return d
}

// decideEnd removes the files, writes the complete results and takes them where they are wanted, then ends the run.
func decideEnd(w *world) decision {
	step, why := cleaning(w)
	if step != cleanDone && step != cleanImpossible {
		return w.cleaningUp(step, why)
	}
	if w.unpublished() {
		d := w.reconciling(v1alpha1.ReasonCleaningUp, "writing the complete results")
		d.action, d.after = publish, soon
		return d
	}
	exported, d, waits := decideExport(w)
	if waits {
		return d
	}
	d = w.verdict()
	d.ended, d.after, d.lease, d.exported = true, soon, leaseFree, exported
	d.cleaned = step == cleanDone
	if step == cleanImpossible {
		d.leftBehind = why
		d.message += fmt.Sprintf("; its files are still in %s: %s", w.run.Status.Directory, why)
	}
	return d
}

// verdict is how a run that is over has ended.
func (w *world) verdict() decision {
	failed, first, left := 0, "", 0
	for i, s := range w.states() {
		if s.bad != nil {
			failed++
			if first == "" {
				first = fmt.Sprintf("point %d (%s): %s", i, describe(w.points[i]), s.bad.trouble())
			}
		} else if !s.over {
			left++
		}
	}
	d := decision{status: metav1.ConditionFalse, progress: conditions.Settled}
	switch {
	case left > 0:
		d.reason = v1alpha1.ReasonTimedOut
		d.message = fmt.Sprintf("spec.limits.timeout (%s) was reached; %d of %d points were not run to their end",
			w.run.Spec.Limits.Timeout.Duration, left, len(w.points))
	case failed > 0:
		d.reason = v1alpha1.ReasonPointsFailed
		d.message = fmt.Sprintf("%d of %d points failed; the first is %s", failed, len(w.points), first)
	default:
		d.status, d.reason = metav1.ConditionTrue, v1alpha1.ReasonAllPointsSucceeded
		d.message = fmt.Sprintf("%d points have a result", len(w.points))
	}
	return d
}

// cleanStep is how far the removal of the run's files is.
type cleanStep int

const (
	// cleanDone means that there is nothing to remove.
	cleanDone cleanStep = iota
	// cleanNeeded means that the job that removes must be made.
	cleanNeeded
	// cleanRunning means that it is at work.
	cleanRunning
	// cleanNoClient means that no node mounts the filesystem now.
	cleanNoClient
	// cleanImpossible means that nobody waits for it any longer.
	cleanImpossible
)

func cleaning(w *world) (cleanStep, string) {
	switch c := w.cleaner; {
	case w.run.Status.Directory == "":
		return cleanDone, ""
	case c != nil && c.succeeded:
		return cleanDone, ""
	case w.fileSystem == nil:
		return cleanImpossible, fmt.Sprintf("FileSystem %s is gone", w.run.Spec.FileSystem.Name)
	case !w.fileSystem.DeletionTimestamp.IsZero():
		return cleanImpossible, fmt.Sprintf("FileSystem %s is being deleted", w.fileSystem.Name)
	case c == nil && (len(w.mounted) == 0 || w.mount.Path == ""):
		return cleanNoClient, fmt.Sprintf("no node has mounted FileSystem %s", w.fileSystem.Name)
	case c == nil:
		return cleanNeeded, ""
	case c.noPods() && !c.failed:
		return cleanRunning, w.overQuota(c)
	case c.failed:
		return cleanImpossible, fmt.Sprintf("Job %s failed (%s)%s", c.name, c.message, why(c))
	case w.now.Sub(c.created) > cleanTimeout:
		return cleanImpossible, fmt.Sprintf("Job %s did not end within %s%s", c.name, cleanTimeout, why(c))
	default:
		return cleanRunning, ""
	}
}

func (w *world) cleaningUp(step cleanStep, why string) decision {
	d := w.reconciling(v1alpha1.ReasonCleaningUp, "removing %s", w.run.Status.Directory)
	d.after = w.poll
	switch step {
	case cleanNeeded:
		d.action = clean
	case cleanNoClient:
		d.message += "; waiting because " + why
		d.after = retryInterval
	case cleanRunning:
		if why != "" {
			d.message += "; " + why
		}
	}
	return d
}

// decideDeleted stops and cleans up as far as that is possible. When nothing is left to do, it is finished, with a
// sentence when files stay behind. It never waits without a bound: a finalizer must not trap.
func decideDeleted(w *world) (d decision, finished bool) {
	d = w.reconciling(v1alpha1.ReasonCleaningUp, "stopping")
	d.after = soon
	if expired(w.run, w.now) {
		if w.run.Status.Directory != "" {
			d.leftBehind = fmt.Sprintf("the deletion took longer than %s", deleteTimeout)
		}
		return d, true
	}
	for _, c := range w.jobs() {
		if !c.deleting && c != w.cleaner {
			d.action, d.child = remove, c
			return d, false
		}
	}
	if len(w.children)+len(w.lingering) > 0 {
		return d, false
	}
	step, why := cleaning(w)
	switch step {
	case cleanDone:
		return d, true
	case cleanImpossible, cleanNoClient:
		d.leftBehind = why
		return d, true
	default:
		return w.cleaningUp(step, why), false
	}
}

// expired is true when a deletion has waited long enough.
func expired(run *v1alpha1.BenchmarkRun, now time.Time) bool {
	return now.Sub(run.DeletionTimestamp.Time) > deleteTimeout
}
