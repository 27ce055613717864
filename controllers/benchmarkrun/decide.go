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
	// cleanTimeout bounds the removal of the run's files.
	cleanTimeout = 2 * time.Minute
	// deleteTimeout bounds how long a deletion waits for anything at all.
	deleteTimeout = 4 * time.Minute

	// soon is when to go on after a step; the events of what was written mostly come sooner.
	soon = time.Second
	// pollInterval is how often a running job is looked at. MPIJobs are not watched, because the cluster may not serve them.
	pollInterval = 3 * time.Second
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
	// start makes the job of a repetition.
	start
	// keep writes the record of a repetition that has ended.
	keep
	// remove deletes a job.
	remove
	// clean makes the job that removes the run's files.
	clean
	// expire deletes the run.
	expire
)

// decision is what a pass does and what the status says.
type decision struct {
	action action
	// child is what keep and remove are about.
	child *child
	// point and repetition are what start is about, or what runs.
	point, repetition int
	running           bool
	// verdict, with keep, says why the repetition failed, whatever it printed.
	verdict string
	// intends writes the directory into the status: it comes before the first job that writes there, so that no file can be
	// forgotten. cleaned takes it out again.
	intends, cleaned bool
	// leftBehind says why the files could not be removed.
	leftBehind string
	// ended completes the run.
	ended bool

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
	return decision{status: metav1.ConditionFalse, progress: conditions.Stalled, reason: reason, message: message}
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
	d := w.running(next.point, next.repetition)
	switch {
	case w.cleaner != nil:
		d.action, d.child, d.after = remove, w.cleaner, soon
	case w.run.Status.Directory == "":
		d.intends, d.after = true, soon
	default:
		d.action, d.after = start, pollInterval
	}
	return d
}

// decideEnded leaves nothing behind, and deletes the run when its time is over.
func decideEnded(w *world) decision {
	known := meta.FindStatusCondition(w.run.Status.Conditions, v1alpha1.ConditionSucceeded)
	d := decision{status: metav1.ConditionUnknown, progress: conditions.Settled}
	if known != nil {
		d.status, d.reason, d.message = known.Status, known.Reason, known.Message
	}
	for i := range w.children {
		if !w.children[i].deleting {
			d.action, d.child, d.after = remove, &w.children[i], soon
			return d
		}
	}
	if w.cleaner != nil && !w.cleaner.deleting {
		d.action, d.child, d.after = remove, w.cleaner, soon
		return d
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
	d := w.running(c.point, c.repetition)
	_, recorded := w.records[c.point][c.repetition]
	switch {
	case c.deleting:
		d.message = fmt.Sprintf("waiting until %s has gone", c.name)
		d.running, d.after = !recorded && !w.run.Spec.Suspend, soon
	case recorded:
		d.action, d.child, d.after, d.running = remove, c, soon, false
	case c.over():
		d.action, d.child, d.after = keep, c, soon
	case w.run.Spec.Suspend:
		d.action, d.child, d.after, d.running = remove, c, soon, false
		d.message = fmt.Sprintf("stopping %s", c.name)
	case w.timedOut(w.now.Sub(c.created)):
		d.action, d.child, d.after = keep, c, soon
		d.verdict = fmt.Sprintf("stopped because spec.limits.timeout (%s) was reached", w.run.Spec.Limits.Timeout.Duration)
	case w.now.After(c.created.Add(w.pointTimeout() + overdueAfter)):
		d.action, d.child, d.after = keep, c, soon
		d.verdict = fmt.Sprintf("did not end within %s (spec.limits.pointTimeout)%s", w.pointTimeout(), why(c))
	default:
		d.after = pollInterval
		if reason := why(c); reason != "" {
			d.message += reason
		}
	}
	return d, true
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

// running is the decision while a repetition is being run.
func (w *world) running(point, repetition int) decision {
	d := w.reconciling(v1alpha1.ReasonRunning, "running %s", w.current(point, repetition))
	d.running, d.point, d.repetition = true, point, repetition
	return d
}

// current names a repetition as in status.current.
func (w *world) current(point, repetition int) string {
	if point >= len(w.points) {
		return fmt.Sprintf("point %d (repetition %d/%d)", point, repetition, w.run.Spec.Repetitions)
	}
	return fmt.Sprintf("%s (repetition %d/%d)", describe(w.points[point]), repetition, w.run.Spec.Repetitions)
}

type turn struct{ point, repetition int }

// next is the first repetition that has no record, of the first point that has not ended.
func (w *world) next() (turn, bool) {
	for i := range w.points {
		if w.pointEnded(i) {
			continue
		}
		for repetition := 1; repetition <= int(w.run.Spec.Repetitions); repetition++ {
			if _, recorded := w.records[i][repetition]; !recorded {
				return turn{i, repetition}, true
			}
		}
	}
	return turn{}, false
}

// pointEnded is true when a point has all its repetitions, or a failed one.
func (w *world) pointEnded(point int) bool {
	_, failed := w.records.failure(point)
	return failed || len(w.records[point]) >= int(w.run.Spec.Repetitions)
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

// decideWaiting names what must be there before a repetition can start.
func decideWaiting(w *world, point int) (decision, bool) {
	wait := func(reason, format string, args ...any) (decision, bool) {
		d := w.reconciling(reason, format, args...)
		d.after = retryInterval
		return d, true
	}
	name := w.run.Spec.FileSystem.Name
	if w.fileSystem == nil {
		return wait(v1alpha1.ReasonWaitingForFileSystem, "there is no FileSystem %s in namespace %s", name, w.run.Namespace)
	}
	if _, err := w.pool(); err != nil {
		return stalled(v1alpha1.ReasonInvalidSpec, err.Error()), true
	}
	if !w.hasImage {
		return stalled(v1alpha1.ReasonInvalidSpec,
			fmt.Sprintf("spec.tool: the operator was started without an image for %s; give it --benchmark-image=%s=<image>", w.run.Spec.Tool, w.run.Spec.Tool)), true
	}
	ready := meta.FindStatusCondition(w.fileSystem.Status.Conditions, v1alpha1.ConditionReady)
	switch {
	case !w.fileSystem.DeletionTimestamp.IsZero():
		return wait(v1alpha1.ReasonWaitingForFileSystem, "FileSystem %s is being deleted", name)
	case ready == nil:
		return wait(v1alpha1.ReasonWaitingForFileSystem, "FileSystem %s is not Ready yet", name)
	case ready.Status != metav1.ConditionTrue:
		return wait(v1alpha1.ReasonWaitingForFileSystem, "FileSystem %s is not Ready (%s)", name, ready.Reason)
	case w.mount.Path == "":
		return wait(v1alpha1.ReasonNoClients, "FileSystem %s has no clients: set its spec.clients", name)
	case w.active != "":
		return wait(v1alpha1.ReasonWaitingForRun, "BenchmarkRun %s is using FileSystem %s", w.active, name)
	case w.older != "":
		return wait(v1alpha1.ReasonWaitingForRun, "BenchmarkRun %s, which is older, measures FileSystem %s first", w.older, name)
	}
	if w.mpiMissing {
		d := stalled(v1alpha1.ReasonMPIOperatorMissing, "the cluster has no MPIJob (kubeflow.org/v2beta1), which a distributed run needs; "+
			"install the MPI operator: it is part of the Helm chart (value mpiOperator.enabled), or see https://github.com/kubeflow/mpi-operator")
		d.after = mpiInterval
		return d, true
	}
	if need := w.clientsNeeded(point); len(w.clients) < need {
		return wait(v1alpha1.ReasonNoClients, "%d nodes are needed that match spec.clients.nodeSelector and have mounted FileSystem %s; there are %d",
			need, name, len(w.clients))
	}
	if c := w.commands[point]; c.Distributed && c.Clients == 0 && c.Processes%len(w.clients) != 0 {
		return stalled(v1alpha1.ReasonInvalidSpec, fmt.Sprintf("%s: %d processes can't be spread evenly over the %d nodes that match spec.clients.nodeSelector; "+
			"set spec.clients.count, or make processes a multiple", describe(w.points[point]), c.Processes, len(w.clients))), true
	}
	return decision{}, false
}

// clientsNeeded is the largest number of clients of this point and those that follow: a run that can't end is better not started.
func (w *world) clientsNeeded(point int) int {
	need := 1
	for i := point; i < len(w.commands); i++ {
		if !w.pointEnded(i) {
			need = max(need, w.commands[i].Clients)
		}
	}
	return need
}

func decideSuspended(w *world) decision {
	d := decision{status: metav1.ConditionUnknown, progress: conditions.Settled, reason: v1alpha1.ReasonSuspended}
	sentence := "spec.suspend is true; the repetitions that have ended are kept"
	d.message = sentence
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

// decideEnd removes the files, then ends the run.
func decideEnd(w *world) decision {
	step, why := cleaning(w)
	if step == cleanDone || step == cleanImpossible {
		d := w.verdict()
		d.ended, d.after = true, soon
		d.cleaned = step == cleanDone
		if step == cleanImpossible {
			d.leftBehind = why
			d.message += fmt.Sprintf("; its files are still in %s: %s", w.run.Status.Directory, why)
		}
		return d
	}
	return w.cleaningUp(step, why)
}

// verdict is how a run that is over has ended.
func (w *world) verdict() decision {
	failed, first, left := 0, "", 0
	for i := range w.points {
		if entry, is := w.records.failure(i); is {
			failed++
			if first == "" {
				first = fmt.Sprintf("point %d (%s): %s", i, describe(w.points[i]), entry.Error)
			}
		} else if !w.pointEnded(i) {
			left++
		}
	}
	d := decision{status: metav1.ConditionFalse, progress: conditions.Settled}
	switch {
	case left > 0:
		d.reason = v1alpha1.ReasonTimedOut
		d.message = fmt.Sprintf("spec.limits.timeout (%s) was reached; %d of %d points were not run to their end", w.run.Spec.Limits.Timeout.Duration, left, len(w.points))
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
	d.after = pollInterval
	switch step {
	case cleanNeeded:
		d.action = clean
	case cleanNoClient:
		d.message += "; waiting because " + why
		d.after = retryInterval
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
	for i := range w.children {
		if !w.children[i].deleting {
			d.action, d.child = remove, &w.children[i]
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
