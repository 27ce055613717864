package scope

import (
	"fmt"
	"strings"

	"parallelfs.dev/operator/controllers/benchmarkrun/trust"
)

// ToPublish is what the ConfigMap of results is to be about: it is written anew with each point that is over, at the end, and when the
// baseline is another one.
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

// Final is true when nothing more is run.
func (w *Scope) Final() bool {
	_, more := w.Next()
	return !more || w.TimedOut(0)
}

// Unpublished is true when the complete results have to be written. Before the first point is over, there are none.
func (w *Scope) Unpublished() bool {
	final := w.Final()
	about := w.ToPublish(final)
	return w.Published != about && (final || !strings.HasPrefix(about, "0 of"))
}

// ExportDirectory tells the runs of one name apart.
func (w *Scope) ExportDirectory() string {
	uid := string(w.Run.UID)
	return w.Run.Name + "-" + uid[:min(len(uid), trust.UIDLength)]
}

// Changed is true when a run that has ended has another spec than its status is about: another baseline, perhaps.
func (w *Scope) Changed() bool {
	return w.Run.Status.ObservedGeneration != w.Run.Generation && w.Run.Status.Results != "" && w.Invalid == ""
}
