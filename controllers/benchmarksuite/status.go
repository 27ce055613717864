package benchmarksuite

import (
	"fmt"
	"strings"

	"parallelfs.dev/operator/api/v1alpha1"
	"parallelfs.dev/operator/controllers/conditions"
	"parallelfs.dev/operator/controllers/failures"
)

const (
	maxCurrent   = 256
	maxMessage   = 1024
	maxShortened = 512
)

// derive computes the status from the previous one, the decision and the results.
func derive(w *world, d decision, f *found) v1alpha1.BenchmarkSuiteStatus {
	status := *w.suite.Status.DeepCopy()
	failures.Clear(&status.Conditions)
	status.ObservedGeneration = w.suite.Generation
	if d.reason != "" {
		conditions.Set(&status.Conditions, w.suite.Generation, v1alpha1.ConditionSucceeded, d.status, d.progress, d.reason, d.message)
	}
	if w.suite.Status.CompletionTime != nil {
		return status
	}
	now := w.time()
	if d.begun && status.StartTime == nil {
		status.StartTime = &now
	}
	if d.ended {
		status.CompletionTime = &now
	}
	status.Variants = nil
	ended, all := 0, len(w.suite.Spec.Variants)*len(w.suite.Spec.Runs)
	for i := range w.suite.Spec.Variants {
		v := w.variant(i)
		if d.next != nil && d.variant == i {
			v = *d.next
		}
		w.sayWhenChanged(&v)
		for j := range v.Runs {
			if over(&v.Runs[j]) {
				ended++
			}
		}
		status.Variants = append(status.Variants, v)
	}
	status.Progress = fmt.Sprintf("%d/%d", ended, all)
	status.Current = v1alpha1.Cut(strings.TrimSpace(d.current), maxCurrent)
	if f != nil {
		var shortened string
		status.Results = f.name
		status.Table, shortened = tableOf(f.figures)
		status.Shortened = v1alpha1.Cut(strings.TrimPrefix(shortened+"; "+f.note, "; "), maxShortened)
		status.Shortened = strings.TrimSuffix(status.Shortened, "; ")
	}
	return status
}

// sayWhenChanged reports that another program or person has changed the measured FileSystem: until then, it has generation 1.
func (w *world) sayWhenChanged(v *v1alpha1.SuiteVariantStatus) {
	fs := w.live(v)
	if fs == nil || fs.Generation <= 1 || v.State != v1alpha1.VariantMeasuring {
		return
	}
	const sentence = "the spec of the FileSystem was changed after it was made: not all its runs measure what the suite asks for"
	if !strings.Contains(v.Message, sentence) {
		v.Message = v1alpha1.Cut(strings.TrimPrefix(v.Message+"; "+sentence, "; "), maxMessage)
	}
}
