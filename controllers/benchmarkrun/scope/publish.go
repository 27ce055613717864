package scope

import (
	"fmt"
	"strings"

	"parallelfs.dev/operator/controllers/benchmarkrun/trust"
)

// ToPublish returns the state that the ConfigMap of results should have. The ConfigMap is written again for each point that is over, at the
// end, and when the baseline changes.
func (w *Scope) ToPublish(final bool) string {
	over := 0
	for _, s := range w.States() {
		if s.Over {
			over++
		}
	}
	out := fmt.Sprintf("%d of %d points", over, len(w.Points))
	if w.BaselineOf != "" {
		spec := w.Run.Spec.Baseline
		out += fmt.Sprintf(", compared with %s, %s %%", w.BaselineOf, spec.TolerancePercent)
		if spec.AllowDifferences {
			out += " in spite of differences"
		}
	}
	if final {
		out += ", final"
	}
	return out
}

// Final reports whether nothing more runs.
func (w *Scope) Final() bool {
	_, more := w.Next()
	return !more || w.TimedOut(0)
}

// Unpublished reports whether the complete results have to be written. Before the first point is over, there are none.
func (w *Scope) Unpublished() bool {
	final := w.Final()
	about := w.ToPublish(final)
	return w.Published != about && (final || !strings.HasPrefix(about, "0 of"))
}

// ExportDirectory returns a directory that differs between runs of one name.
func (w *Scope) ExportDirectory() string {
	uid := string(w.Run.UID)
	return w.Run.Name + "-" + uid[:min(len(uid), trust.UIDLength)]
}

// Changed reports whether the spec of a run that has ended differs from the spec that its status describes, for example in the baseline.
func (w *Scope) Changed() bool {
	return w.Run.Status.ObservedGeneration != w.Run.Generation && w.Run.Status.Results != "" && w.Invalid == ""
}
