package outcomes

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"parallelfs.dev/operator/api/v1alpha1"
	"parallelfs.dev/operator/controllers/benchmarkrun/decision"
)

// MaxNote bounds an event's note; the API's own limit is 1024 bytes.
const MaxNote = 1000

// Note is one event.
type Note struct {
	// Kind is corev1.EventTypeNormal or corev1.EventTypeWarning.
	Kind, Reason, Action, Text string
}

// Notes returns the events for the change from one status to the next: the start, each point that failed, what blocks the run until a
// person acts, and the end.
func Notes(before, after *v1alpha1.BenchmarkRun, d decision.Decision) []Note {
	var out []Note
	if before.Status.StartTime == nil && after.Status.StartTime != nil {
		out = append(out, Note{corev1.EventTypeNormal, "Started", "Run", fmt.Sprintf("%s, each run %s, in %s",
			v1alpha1.Count(len(after.Status.Points), "point", "points"), v1alpha1.Count(after.Spec.Repetitions, "time", "times"),
			after.Status.Directory)})
	}
	was := map[int32]v1alpha1.PointState{}
	for _, p := range before.Status.Points {
		was[p.Index] = p.State
	}
	for _, p := range after.Status.Points {
		if (p.State == v1alpha1.PointFailed || p.State == v1alpha1.PointInvalid) && was[p.Index] != p.State {
			out = append(out, Note{corev1.EventTypeWarning, "Point" + string(p.State), "Measure", fmt.Sprintf("point %d: %s", p.Index, p.Message)})
		}
	}
	had := meta.FindStatusCondition(before.Status.Conditions, v1alpha1.ConditionSucceeded)
	is := meta.FindStatusCondition(after.Status.Conditions, v1alpha1.ConditionSucceeded)
	stalled := meta.IsStatusConditionTrue(after.Status.Conditions, v1alpha1.ConditionStalled)
	changed := is != nil && (had == nil || had.Status != is.Status || had.Reason != is.Reason)
	switch ended := before.Status.CompletionTime == nil && after.Status.CompletionTime != nil; {
	case ended && is.Status == metav1.ConditionTrue:
		out = append(out, Note{corev1.EventTypeNormal, is.Reason, "End", is.Message})
	case ended, changed && stalled:
		out = append(out, Note{corev1.EventTypeWarning, is.Reason, "End", is.Message})
	case changed && is.Reason == v1alpha1.ReasonSuspended:
		out = append(out, Note{corev1.EventTypeNormal, is.Reason, "Suspend", is.Message})
	}
	if note, is := accepted(before, after); is {
		out = append(out, note)
	}
	if d.LeftBehind != "" && (changed || d.Ended) {
		out = append(out, LeftBehind(after, d))
	}
	return out
}

// accepted returns the event for a verdict on the expectations, when the run has ended or they were changed after its end.
func accepted(before, after *v1alpha1.BenchmarkRun) (Note, bool) {
	is := meta.FindStatusCondition(after.Status.Conditions, v1alpha1.ConditionAccepted)
	if is == nil || after.Status.CompletionTime == nil {
		return Note{}, false
	}
	had := meta.FindStatusCondition(before.Status.Conditions, v1alpha1.ConditionAccepted)
	if before.Status.CompletionTime != nil && had != nil && had.Reason == is.Reason {
		return Note{}, false
	}
	kind := corev1.EventTypeWarning
	if is.Status == metav1.ConditionTrue {
		kind = corev1.EventTypeNormal
	}
	return Note{kind, is.Reason, "Accept", v1alpha1.Cut(is.Message, MaxNote)}, true
}

// LeftBehind returns the event for files that could not be removed.
func LeftBehind(run *v1alpha1.BenchmarkRun, d decision.Decision) Note {
	return Note{corev1.EventTypeWarning, "FilesLeftBehind", "Clean", fmt.Sprintf("files are still in %s: %s; remove them by hand",
		run.Status.Directory, d.LeftBehind)}
}
