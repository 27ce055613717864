package benchmarksuite

import (
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"parallelfs.dev/operator/api/v1alpha1"
	"parallelfs.dev/operator/controllers/conditions"
)

// decideMeasuring makes the runs of a variant, one after the other.
func (w *world) decideMeasuring(v int, variant *v1alpha1.SuiteVariantStatus) decision {
	if fs := w.live(variant); fs == nil || !fs.DeletionTimestamp.IsZero() {
		return w.fail(variant, fmt.Sprintf("FileSystem %s was deleted by somebody else while it was measured", variant.FileSystem))
	}
	j, left := w.nextRun(v)
	if !left {
		return w.afterVariant(variant)
	}
	name, object := w.suite.Spec.Runs[j].Name, w.plans[v].runs[j].GetName()
	run, known := w.runs[object], entry(variant, name)
	switch {
	case run == nil && known != nil:
		return w.endRun(variant, j, "False", fmt.Sprintf("BenchmarkRun %s was deleted by somebody else before its end", object))
	case run == nil && w.suite.Spec.Suspend:
		return suspended()
	case run == nil:
		d := w.reconciling(v1alpha1.ReasonRunning, "making BenchmarkRun %s", object)
		d.action, d.run, d.after = makeRun, j, soon
		return d
	case !metav1.IsControlledBy(run, w.suite):
		return stalled(v1alpha1.ReasonNameTaken, "there is a BenchmarkRun %s, which this suite did not make and does not touch; delete it, and the suite goes on", object)
	case known == nil:
		d := w.reconciling(v1alpha1.ReasonRunning, "BenchmarkRun %s was made", object)
		variant.Runs = append(variant.Runs, v1alpha1.SuiteRunStatus{Name: name, BenchmarkRun: object, Succeeded: "Unknown"})
		d.next, d.after = variant, soon
		return d
	}
	return w.decideRun(variant, j, run)
}

// decideRun waits for the end of a run.
func (w *world) decideRun(variant *v1alpha1.SuiteVariantStatus, j int, run *v1alpha1.BenchmarkRun) decision {
	succeeded := meta.FindStatusCondition(run.Status.Conditions, v1alpha1.ConditionSucceeded)
	stalls := succeeded != nil && meta.IsStatusConditionTrue(run.Status.Conditions, v1alpha1.ConditionStalled)
	entry(variant, w.suite.Spec.Runs[j].Name).Progress = run.Status.Progress
	switch {
	case run.Status.CompletionTime != nil:
		value, message := "False", "it ended without a condition Succeeded"
		if succeeded != nil {
			value, message = string(succeeded.Status), fmt.Sprintf("%s: %s", succeeded.Reason, succeeded.Message)
		}
		if value != "True" {
			value = "False"
		}
		return w.endRun(variant, j, value, message)
	case stalls && hopeless(succeeded.Reason):
		// The run would continue if a person changed something; the next run must then find the filesystem idle.
		d := w.endRun(variant, j, "False", fmt.Sprintf("%s: %s", succeeded.Reason, succeeded.Message))
		d.action, d.suspend = suspendRun, true
		return d
	}
	d := w.reconciling(v1alpha1.ReasonRunning, "BenchmarkRun %s is under way", run.Name)
	if run.Spec.Suspend != w.suite.Spec.Suspend {
		d.action, d.suspend, d.run, d.after = suspendRun, w.suite.Spec.Suspend, j, soon
		return d
	}
	if w.suite.Spec.Suspend {
		d = suspended()
		d.next = variant
		return d
	}
	if succeeded != nil && succeeded.Message != "" {
		d.message = fmt.Sprintf("BenchmarkRun %s: %s", run.Name, succeeded.Message)
	}
	if stalls {
		d.status, d.progress, d.reason = metav1.ConditionFalse, conditions.Stalled, succeeded.Reason
	}
	d.next, d.current = variant, fmt.Sprintf("%s: %s %s", variant.Name, w.suite.Spec.Runs[j].Name, run.Status.Progress)
	return d
}

// hopeless is true for the reason of a stalled run that neither time nor the cluster's administrator can change: its spec, and the
// filesystem of the variant, stay as they are.
func hopeless(reason string) bool {
	return slices.Contains([]string{v1alpha1.ReasonInvalidSpec, v1alpha1.ReasonBackendUnsupported, v1alpha1.ReasonPreflightFailed}, reason)
}

// endRun records the end of a run, with its results. If nothing may follow a failure, the variant ends too.
func (w *world) endRun(variant *v1alpha1.SuiteVariantStatus, j int, succeeded, message string) decision {
	name := w.suite.Spec.Runs[j].Name
	d := w.reconciling(v1alpha1.ReasonRunning, "run %s of variant %s has ended", name, variant.Name)
	e := entry(variant, name)
	e.Succeeded = succeeded
	if succeeded != "True" {
		e.Message = v1alpha1.Cut(message, maxMessage)
		if w.suite.Spec.OnFailure == v1alpha1.SuiteStop {
			w.finish(variant, fmt.Sprintf("run %s has not all its results, and spec.onFailure is Stop", name))
		}
	}
	d.action, d.run, d.next, d.after = keepResults, j, variant, soon
	return d
}

// fail ends a variant as failed. A run in progress is suspended, so that it does not continue unexpectedly.
func (w *world) fail(variant *v1alpha1.SuiteVariantStatus, why string) decision {
	why = v1alpha1.Cut(why, maxMessage)
	d := w.reconciling(v1alpha1.ReasonWaitingForVariant, "variant %s ends early: %s", variant.Name, why)
	for i := range variant.Runs {
		e := &variant.Runs[i]
		if over(e) {
			continue
		}
		e.Succeeded, e.Message = "False", why
		d.action, d.suspend = keepResults, true
		run := w.runs[e.BenchmarkRun]
		if run != nil && metav1.IsControlledBy(run, w.suite) && !run.Spec.Suspend && run.Status.CompletionTime == nil {
			d.action = suspendRun
			d.run = slices.IndexFunc(w.suite.Spec.Runs, func(r v1alpha1.SuiteRun) bool { return r.Name == e.Name })
		}
	}
	variant.Failure, variant.Message = why, ""
	fs := w.live(variant)
	stays := fs != nil && fs.DeletionTimestamp.IsZero() && w.suite.Spec.AfterVariant == v1alpha1.AfterVariantKeep
	switch {
	case w.suite.Spec.OnFailure == v1alpha1.SuiteStop, fs == nil, stays:
		w.finish(variant, why)
	default:
		variant.State = v1alpha1.VariantRemoving
	}
	d.next, d.after = variant, soon
	return d
}

// afterVariant runs when the runs of a variant are over.
func (w *world) afterVariant(variant *v1alpha1.SuiteVariantStatus) decision {
	d := w.reconciling(v1alpha1.ReasonWaitingForVariant, "the runs of variant %s are over", variant.Name)
	if w.suite.Spec.AfterVariant == v1alpha1.AfterVariantKeep {
		w.finish(variant, "")
	} else {
		variant.State, variant.Message = v1alpha1.VariantRemoving, ""
	}
	d.next, d.after = variant, soon
	return d
}

// finish ends a variant.
func (w *world) finish(variant *v1alpha1.SuiteVariantStatus, failure string) {
	now := w.time()
	if variant.Failure == "" {
		variant.Failure = failure
	}
	variant.State, variant.CompletionTime, variant.Message = v1alpha1.VariantDone, &now, ""
	failed := slices.ContainsFunc(variant.Runs, func(s v1alpha1.SuiteRunStatus) bool { return s.Succeeded != "True" })
	if failed || variant.Failure != "" || len(variant.Runs) < len(w.suite.Spec.Runs) {
		variant.State = v1alpha1.VariantFailed
	}
}
