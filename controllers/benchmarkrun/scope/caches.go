package scope

import (
	"fmt"
	"slices"
	"time"

	"parallelfs.dev/operator/api/v1alpha1"
	"parallelfs.dev/operator/benchmarks"
	"parallelfs.dev/operator/controllers/benchmarkrun/turns"
)

// Drop is the progress of dropping the caches for the next turn.
type Drop struct {
	// Request is the request to the agents, empty if there is none or it is too old. Asked is its time.
	Request string
	Asked   time.Time
	// Everyone is true if all agents have the request. Waiting lists the nodes that have not answered, and Failed is why one could not drop
	// its caches.
	Everyone bool
	Waiting  []string
	Failed   string
}

// Drops reports whether caches are dropped before a turn.
func (w *Scope) Drops(t turns.Turn) bool {
	return w.Run.Spec.Caches != nil && (t.Step == 0 || benchmarks.DropsBetweenPhases(&w.Run.Spec))
}

// RequestOf returns the beginning of the request for a turn. The time follows, because agents never carry out the same text twice.
func (w *Scope) RequestOf(t turns.Turn) string {
	return fmt.Sprintf("%s%s/", w.Run.UID, t.Suffix())
}

// DropNodes returns the nodes whose caches are dropped before a turn, sorted.
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
