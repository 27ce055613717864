package benchmarksuite

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"parallelfs.dev/operator/api/v1alpha1"
	"parallelfs.dev/operator/controllers/conditions"
	"parallelfs.dev/operator/internal/backend"
)

// note is one event.
type note struct {
	// kind is corev1.EventTypeNormal or corev1.EventTypeWarning.
	kind, reason, action, text string
}

// notes returns the events of the step from one status to the next: the start, the end of each run and each variant, conditions that block
// the suite until a person acts, and the end.
func notes(before, after *v1alpha1.BenchmarkSuite) []note {
	var out []note
	if before.Status.StartTime == nil && after.Status.StartTime != nil {
		out = append(out, note{corev1.EventTypeNormal, "Started", "Measure", fmt.Sprintf("%s, each measured by %s, then: %s",
			v1alpha1.Count(len(after.Spec.Variants), "variant", "variants"), v1alpha1.Count(len(after.Spec.Runs), "run", "runs"),
			after.Spec.AfterVariant)})
	}
	known := map[string]v1alpha1.SuiteVariantStatus{}
	for _, v := range before.Status.Variants {
		known[v.Name] = v
	}
	for i := range after.Status.Variants {
		v := &after.Status.Variants[i]
		was := known[v.Name]
		out = append(out, notesOf(&was, v)...)
	}
	return append(out, notesOfCondition(before, after)...)
}

func notesOf(was, is *v1alpha1.SuiteVariantStatus) []note {
	var out []note
	say := func(kind, reason, format string, args ...any) {
		out = append(out, note{kind, reason, "Measure", fmt.Sprintf(format, args...)})
	}
	for i := range is.Runs {
		run := &is.Runs[i]
		if known := entry(was, run.Name); !over(run) || (known != nil && over(known)) {
			continue
		}
		if run.Succeeded == "True" {
			say(corev1.EventTypeNormal, "RunSucceeded", "run %s of variant %s has all its results", run.Name, is.Name)
		} else {
			say(corev1.EventTypeWarning, "RunFailed", "run %s of variant %s: %s", run.Name, is.Name, run.Message)
		}
	}
	if is.State == was.State {
		return out
	}
	switch is.State {
	case v1alpha1.VariantMeasuring:
		say(corev1.EventTypeNormal, "VariantReady", "FileSystem %s of variant %s is Ready", is.FileSystem, is.Name)
	case v1alpha1.VariantDone:
		say(corev1.EventTypeNormal, "VariantDone", "variant %s is over", is.Name)
	case v1alpha1.VariantFailed:
		why := "some of its results are missing"
		if is.Failure != "" {
			why = is.Failure
		}
		say(corev1.EventTypeWarning, "VariantFailed", "variant %s: %s", is.Name, why)
	}
	return out
}

func notesOfCondition(before, after *v1alpha1.BenchmarkSuite) []note {
	was := meta.FindStatusCondition(before.Status.Conditions, v1alpha1.ConditionSucceeded)
	is := meta.FindStatusCondition(after.Status.Conditions, v1alpha1.ConditionSucceeded)
	if is == nil {
		return nil
	}
	changed := was == nil || was.Status != is.Status || was.Reason != is.Reason
	switch ended := before.Status.CompletionTime == nil && after.Status.CompletionTime != nil; {
	case ended && is.Status == metav1.ConditionTrue:
		return []note{{corev1.EventTypeNormal, is.Reason, "End", is.Message}}
	case ended:
		return []note{{corev1.EventTypeWarning, is.Reason, "End", is.Message}}
	case changed && meta.IsStatusConditionTrue(after.Status.Conditions, v1alpha1.ConditionStalled):
		return []note{{corev1.EventTypeWarning, is.Reason, "Wait", is.Message}}
	case changed && is.Reason == v1alpha1.ReasonSuspended:
		return []note{{corev1.EventTypeNormal, is.Reason, "Suspend", is.Message}}
	}
	return nil
}

// wiping lists the disks that were confirmed to be wiped.
func wiping(d decision) note { return note{corev1.EventTypeWarning, "Destroying", "Remove", d.message} }

// goodbye lists the objects that stay when a suite is deleted.
func goodbye(w *world) []note {
	names := w.staying()
	if len(names) == 0 {
		return nil
	}
	return []note{{corev1.EventTypeNormal, "FileSystemsStay", "Delete", fmt.Sprintf(
		"the suite is deleted, its runs go with it, and no disk is wiped; these FileSystems stay until they are deleted: %s", backend.List(names))}}
}

func (r *Reconciler) emit(suite *v1alpha1.BenchmarkSuite, all ...note) {
	for _, n := range all {
		r.Recorder.Eventf(suite, nil, n.kind, n.reason, n.action, "%s", v1alpha1.Cut(n.text, conditions.MaxNote))
	}
}
