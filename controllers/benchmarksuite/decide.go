package benchmarksuite

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"parallelfs.dev/operator/api/v1alpha1"
	"parallelfs.dev/operator/controllers/conditions"
	"parallelfs.dev/operator/internal/backend"
)

const (
	// defaultReadyTimeout is the default of spec.readyTimeout.
	defaultReadyTimeout = 30 * time.Minute
	// soon is the time until the next pass after a step; the event of the write usually comes sooner.
	soon = time.Second
	// personInterval is how often a pass checks for a person's change that causes no event.
	personInterval = 30 * time.Second
	// tryInterval is how often a suite that was refused is tried again: its spec stays as it is, but the reason may be a quota.
	tryInterval = 5 * time.Minute
)

// action is the one thing that a pass does, besides writing the status.
type action int

const (
	// nothing writes only the status.
	nothing action = iota
	// makeFileSystem creates the FileSystem of a variant.
	makeFileSystem
	// makeRun creates a run of the variant.
	makeRun
	// suspendRun sets spec.suspend of the run to decision.suspend.
	suspendRun
	// keepResults adds the results of a run to those of the suite.
	keepResults
	// setRetain and setDestroy set the deletion policy of the disks, without a confirmation.
	setRetain
	// setDestroy is followed by confirm.
	setDestroy
	// deleteFileSystem deletes the FileSystem.
	deleteFileSystem
	// confirm permits that the disks are wiped.
	confirm
	// expire deletes the suite.
	expire
)

// decision is the action of a pass, and the content of the status.
type decision struct {
	action action
	// variant and run are the objects of the action.
	variant, run int
	// suspend is the value that suspendRun sets.
	suspend bool
	// next is the new status of the variant; nil leaves it unchanged.
	next *v1alpha1.SuiteVariantStatus
	// begun sets the suite's start time, and ended its end time.
	begun, ended bool

	status   metav1.ConditionStatus
	progress conditions.Progress
	reason   string
	message  string
	// current is status.current.
	current string
	// after is the time until the next pass, 0 to wait for an event.
	after time.Duration
}

func (w *world) reconciling(reason, format string, args ...any) decision {
	return decision{
		status: metav1.ConditionUnknown, progress: conditions.Reconciling, reason: reason,
		message: fmt.Sprintf(format, args...), after: w.poll,
	}
}

func stalled(reason, format string, args ...any) decision {
	return decision{
		status: metav1.ConditionFalse, progress: conditions.Stalled, reason: reason, message: fmt.Sprintf(format, args...), after: personInterval,
	}
}

// decide returns the next action.
func decide(w *world) decision {
	switch {
	case w.suite.Status.CompletionTime != nil:
		return decideEnded(w)
	case w.refused != nil:
		d := stalled(w.refused.reason, "%s", w.refused.message)
		if w.refused.reason == v1alpha1.ReasonInvalidSpec {
			d.after = tryInterval
		}
		return d
	}
	v, left := w.current()
	if !left || w.stopped() {
		return decideEnd(w)
	}
	d := w.decideVariant(v)
	d.variant = v
	if d.current == "" && d.progress == conditions.Reconciling {
		d.current = fmt.Sprintf("%s: %s", w.suite.Spec.Variants[v].Name, strings.ToLower(string(w.variant(v).State)))
	}
	return d
}

// stopped is true when a variant has failed and nothing may follow.
func (w *world) stopped() bool {
	failed := func(v v1alpha1.SuiteVariantStatus) bool { return v.State == v1alpha1.VariantFailed }
	return w.suite.Spec.OnFailure == v1alpha1.SuiteStop && slices.ContainsFunc(w.suite.Status.Variants, failed)
}

func (w *world) decideVariant(v int) decision {
	variant := w.variant(v)
	switch variant.State {
	case v1alpha1.VariantCreating:
		return w.decideCreating(&variant)
	case v1alpha1.VariantMeasuring:
		return w.decideMeasuring(v, &variant)
	case v1alpha1.VariantRemoving:
		return w.decideRemoving(&variant)
	default:
		return w.decidePending(v, &variant)
	}
}

func suspended() decision {
	return decision{
		status: metav1.ConditionUnknown, progress: conditions.Settled, reason: v1alpha1.ReasonSuspended,
		message: "spec.suspend is true; nothing new is started, and the FileSystem of the variant that was begun stays",
	}
}

// decidePending begins a variant: the status records that before any object is made.
func (w *world) decidePending(v int, variant *v1alpha1.SuiteVariantStatus) decision {
	if refused := w.unconfirmed(); refused != nil {
		return *refused
	}
	if w.suite.Spec.Suspend {
		return suspended()
	}
	if taken := w.taken(&w.plans[v]); taken != nil {
		return stalled(taken.reason, "%s", taken.message)
	}
	d := w.reconciling(v1alpha1.ReasonWaitingForVariant, "variant %s begins", variant.Name)
	now := w.time()
	variant.State, variant.FileSystem, variant.StartTime = v1alpha1.VariantCreating, w.plans[v].fileSystem.GetName(), &now
	d.next, d.begun, d.after = variant, true, soon
	return d
}

// unconfirmed refuses variants that would end with wiped disks, while no person has permitted that for this very object.
func (w *world) unconfirmed() *decision {
	if w.suite.Spec.AfterVariant != v1alpha1.AfterVariantDestroy || w.suite.Spec.ConfirmDestroy == string(w.suite.UID) {
		return nil
	}
	d := stalled(v1alpha1.ReasonDestroyUnconfirmed,
		"spec.afterVariant Destroy wipes the disks that each variant's FileSystem has formatted. The suite makes nothing until it is confirmed: "+
			"spec.confirmDestroy is %q instead of this object's uid: "+
			`kubectl patch benchmarksuite %s -n %s --type merge -p '{"spec":{"confirmDestroy":%q}}'`,
		w.suite.Spec.ConfirmDestroy, w.suite.Name, w.suite.Namespace, w.suite.UID)
	return &d
}

func (w *world) decideCreating(variant *v1alpha1.SuiteVariantStatus) decision {
	name := variant.FileSystem
	if variant.FileSystemUID == "" {
		fs := w.fileSystems[name]
		switch {
		case fs != nil && !made(w.suite, fs):
			return stalled(v1alpha1.ReasonNameTaken, "there is a FileSystem %s, which this suite did not make and does not touch; delete it, or suspend and delete this suite", name)
		case fs != nil:
			d := w.reconciling(v1alpha1.ReasonWaitingForVariant, "FileSystem %s was made", name)
			variant.FileSystemUID = string(fs.UID)
			d.next, d.after = variant, soon
			return d
		case w.suite.Spec.Suspend:
			return suspended()
		}
		d := w.reconciling(v1alpha1.ReasonWaitingForVariant, "FileSystem %s is being made", name)
		d.action, d.after = makeFileSystem, soon
		return d
	}
	fs := w.live(variant)
	switch {
	case fs == nil || !fs.DeletionTimestamp.IsZero():
		return w.fail(variant, fmt.Sprintf("FileSystem %s was deleted by somebody else before it was measured", name))
	case isReady(fs):
		return w.decideReady(variant)
	case w.suite.Spec.Suspend:
		return suspended()
	}
	why, stalls := waitsFor(fs)
	approval := w.awaitsApproval()
	if deadline := w.deadline(variant); !approval && w.now.After(deadline) {
		return w.fail(variant, fmt.Sprintf("FileSystem %s did not become Ready within %s (spec.readyTimeout): %s", name, w.readyTimeout(), why))
	}
	d := w.reconciling(v1alpha1.ReasonWaitingForVariant, "waiting until FileSystem %s is Ready: %s", name, why)
	if stalls || approval {
		d.status, d.progress = metav1.ConditionFalse, conditions.Stalled
	}
	variant.Message = v1alpha1.Cut(why, maxMessage)
	d.next = variant
	return d
}

// decideReady begins to measure, unless the FileSystem could not be removed in the end.
func (w *world) decideReady(variant *v1alpha1.SuiteVariantStatus) decision {
	if w.suite.Spec.AfterVariant == v1alpha1.AfterVariantDestroy {
		if refused := w.notItsOwn(variant); refused != nil {
			return *refused
		}
	}
	if w.suite.Spec.Suspend {
		return suspended()
	}
	now := w.time()
	variant.State, variant.ReadyTime, variant.Message = v1alpha1.VariantMeasuring, &now, ""
	if adopted := w.adopted(); len(adopted) > 0 {
		variant.Message = v1alpha1.Cut(fmt.Sprintf("these disks were taken over with their filesystems, and not formatted again: %s", backend.List(adopted)), maxMessage)
	}
	d := w.reconciling(v1alpha1.ReasonRunning, "FileSystem %s is Ready", variant.FileSystem)
	d.next, d.after = variant, soon
	return d
}

// adopted returns the disks that held data of an earlier FileSystem of that name, and that this one has not formatted.
func (w *world) adopted() []string {
	var out []string
	for i := range w.targets {
		if p := w.targets[i].Status.Provisioned; p != nil && p.PlanHash == "" {
			out = append(out, fmt.Sprintf("%s on %s", w.targets[i].Spec.Device.ID, w.targets[i].Spec.Node))
		}
	}
	return out
}

// notItsOwn refuses to wipe, or to measure before a wipe, if the FileSystem has disks that it did not format: their data was there before.
func (w *world) notItsOwn(variant *v1alpha1.SuiteVariantStatus) *decision {
	adopted := w.adopted()
	if len(adopted) == 0 {
		return nil
	}
	d := stalled(v1alpha1.ReasonDestroyRefused,
		"FileSystem %s has disks that the suite did not format, so it does not wipe them: %s. To keep the data on all its disks: "+
			`kubectl patch filesystem %s -n %s --type merge -p '{"spec":{"deletionPolicy":"Retain"}}' and then `+
			"kubectl delete filesystem %s -n %s; the suite then continues",
		variant.FileSystem, backend.List(adopted), variant.FileSystem, w.suite.Namespace, variant.FileSystem, w.suite.Namespace)
	return &d
}

// awaitsApproval is true while a person has to approve the plan of a disk, which may take days.
func (w *world) awaitsApproval() bool {
	return slices.ContainsFunc(w.targets, func(t v1alpha1.StorageTarget) bool {
		ready := meta.FindStatusCondition(t.Status.Conditions, v1alpha1.ConditionReady)
		return ready != nil && ready.Reason == v1alpha1.ReasonAwaitingApproval
	})
}

// deadline is when a variant's FileSystem must be Ready. The time restarts with every disk that is formatted, because its plan may have
// waited for an approval.
func (w *world) deadline(variant *v1alpha1.SuiteVariantStatus) time.Time {
	from := variant.StartTime.Time
	for i := range w.targets {
		if p := w.targets[i].Status.Provisioned; p != nil && p.Started != nil && p.Started.After(from) {
			from = p.Started.Time
		}
	}
	return from.Add(w.readyTimeout())
}

func (w *world) readyTimeout() time.Duration {
	if t := w.suite.Spec.ReadyTimeout; t != nil {
		return t.Duration
	}
	return defaultReadyTimeout
}

func (w *world) time() metav1.Time { return metav1.NewTime(w.now.UTC().Truncate(time.Second)) }

func isReady(fs *v1alpha1.FileSystem) bool {
	c := meta.FindStatusCondition(fs.Status.Conditions, v1alpha1.ConditionReady)
	return c != nil && c.Status == metav1.ConditionTrue && c.ObservedGeneration >= fs.Generation &&
		!meta.IsStatusConditionTrue(fs.Status.Conditions, v1alpha1.ConditionStalled) &&
		!meta.IsStatusConditionTrue(fs.Status.Conditions, v1alpha1.ConditionDegraded)
}

// waitsFor returns the FileSystem's own message, and whether a person has to act.
func waitsFor(fs *v1alpha1.FileSystem) (string, bool) {
	c := meta.FindStatusCondition(fs.Status.Conditions, v1alpha1.ConditionReady)
	if c == nil {
		return "it has no status yet", false
	}
	for _, kind := range []string{v1alpha1.ConditionDegraded, v1alpha1.ConditionStalled} {
		worse := meta.FindStatusCondition(fs.Status.Conditions, kind)
		if worse != nil && (c.Status == metav1.ConditionTrue || kind == v1alpha1.ConditionStalled) {
			c = worse
		}
	}
	return fmt.Sprintf("%s: %s", c.Reason, c.Message), meta.IsStatusConditionTrue(fs.Status.Conditions, v1alpha1.ConditionStalled)
}

// decideEnd decides how the suite has ended.
func decideEnd(w *world) decision {
	d := decision{
		status: metav1.ConditionTrue, progress: conditions.Settled, reason: v1alpha1.ReasonAllRunsSucceeded,
		action: keepResults, ended: true, after: soon,
	}
	var wrong []string
	for i := range w.suite.Spec.Variants {
		v := w.variant(i)
		if v.Failure != "" {
			wrong = append(wrong, fmt.Sprintf("variant %s: %s", v.Name, v.Failure))
		}
		if v.State == v1alpha1.VariantPending {
			wrong = append(wrong, fmt.Sprintf("variant %s was not begun", v.Name))
		}
		for _, run := range v.Runs {
			if run.Succeeded != "True" {
				wrong = append(wrong, fmt.Sprintf("run %s of variant %s: %s", run.Name, v.Name, run.Message))
			}
		}
	}
	all := len(w.suite.Spec.Variants) * len(w.suite.Spec.Runs)
	d.message = v1alpha1.CountOf(all, all, "run", "runs", "has", "have") + " all results"
	if len(wrong) > 0 {
		d.status, d.reason = metav1.ConditionFalse, v1alpha1.ReasonRunsFailed
		d.message = fmt.Sprintf("%d of %d runs have all their results; the first failure: %s", w.succeeded(), all, wrong[0])
	}
	return d
}

// succeeded counts the runs that have all their results.
func (w *world) succeeded() int {
	n := 0
	for _, v := range w.suite.Status.Variants {
		for _, run := range v.Runs {
			if run.Succeeded == "True" {
				n++
			}
		}
	}
	return n
}

// decideEnded deletes the suite when its lifetime is over.
func decideEnded(w *world) decision {
	d := decision{status: metav1.ConditionUnknown, progress: conditions.Settled}
	if known := meta.FindStatusCondition(w.suite.Status.Conditions, v1alpha1.ConditionSucceeded); known != nil {
		d.status, d.reason, d.message = known.Status, known.Reason, known.Message
	}
	if ttl := w.suite.Spec.TTLSecondsAfterFinished; ttl != nil {
		left := w.suite.Status.CompletionTime.Add(time.Duration(*ttl) * time.Second).Sub(w.now)
		if left <= 0 {
			d.action = expire
			return d
		}
		d.after = left
	}
	return d
}
