package scope

import (
	"fmt"
	"slices"
	"time"

	"parallelfs.dev/operator/api/v1alpha1"
	"parallelfs.dev/operator/benchmarks"
	"parallelfs.dev/operator/controllers/benchmarkrun/turns"
)

// Drop is how far the dropping of caches for the next turn is.
type Drop struct {
	// Request is what the agents were asked, empty when they were not, or when that is too long ago. asked is when.
	Request string
	Asked   time.Time
	// Everyone was asked; waiting are the nodes that have not answered, and failed says why one could not.
	Everyone bool
	Waiting  []string
	Failed   string
}

// Drops is true when caches are dropped before a turn.
func (w *Scope) Drops(t turns.Turn) bool {
	return w.Run.Spec.Caches != nil && (t.Step == 0 || benchmarks.DropsBetweenPhases(&w.Run.Spec))
}

// RequestOf begins what the agents are asked for a turn; the time follows, because the same text is never carried out twice.
func (w *Scope) RequestOf(t turns.Turn) string {
	return fmt.Sprintf("%s%s/", w.Run.UID, t.Suffix())
}

// DropNodes are the nodes whose caches are dropped before a turn, sorted.
func (w *Scope) DropNodes(t turns.Turn) []string {
	caches := w.Run.Spec.Caches
	if caches == nil || w.FileSystem == nil {
		return nil
	}
	var out []string
	if caches.Drop != v1alpha1.CachesOfServers && OnClients(w.Plans[t.Point].Steps[t.Step].Command.Launch) {
		placed, err := w.Place(t.Point, t.Step)
		if err == nil {
			for _, p := range placed {
				out = append(out, p.Node)
			}
		}
	}
	if caches.Drop != v1alpha1.CachesOfClients {
		out = append(out, w.Members.Nodes()...)
	}
	slices.Sort(out)
	return slices.Compact(out)
}
