package benchmarkrun

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	"parallelfs.dev/operator/api/v1alpha1"
	"parallelfs.dev/operator/benchmarks"
	"parallelfs.dev/operator/controllers/servers"
)

const (
	// dropTimeout is how long the agents have to drop caches.
	dropTimeout = time.Minute
	// dropFresh is how long dropped caches count as empty: an operator that was away meanwhile has them dropped again.
	dropFresh = 5 * time.Minute
)

// drop is how far the dropping of caches for the next turn is.
type drop struct {
	// request is what the agents were asked, empty when they were not, or when that is too long ago. asked is when.
	request string
	asked   time.Time
	// everyone was asked; waiting are the nodes that have not answered, and failed says why one could not.
	everyone bool
	waiting  []string
	failed   string
}

// drops is true when caches are dropped before a turn.
func (w *world) drops(t turn) bool {
	return w.run.Spec.Caches != nil && (t.step == 0 || benchmarks.DropsBetweenPhases(&w.run.Spec))
}

// requestOf begins what the agents are asked for a turn; the time follows, because the same text is never carried out twice.
func (w *world) requestOf(t turn) string {
	return fmt.Sprintf("%s%s/", w.run.UID, t.suffix())
}

// gatherDrop reads what the agents were asked for the next turn, and what they say to it. What was asked stands on the NodeInventories
// alone.
func (r *Reconciler) gatherDrop(ctx context.Context, w *world) error {
	if w.run.Spec.Caches == nil || w.run.Status.CompletionTime != nil || len(w.children) > 0 || w.invalid != "" {
		return nil
	}
	next, found := w.next()
	if !found || !w.drops(next) {
		return nil
	}
	nodes := w.dropNodes(next)
	for _, node := range nodes {
		inventory := w.inventories[node]
		if inventory == nil {
			return nil // decideWaiting names it
		}
		request := inventory.Annotations[v1alpha1.AnnotationDropCaches]
		at, is := strings.CutPrefix(request, w.requestOf(next))
		seconds, err := strconv.ParseInt(at, 10, 64)
		if !is || err != nil || w.now.Sub(time.Unix(seconds, 0)) > dropFresh {
			continue
		}
		if w.dropped.request == "" || request > w.dropped.request {
			w.dropped = drop{request: request, asked: time.Unix(seconds, 0)}
		}
	}
	if w.dropped.request == "" {
		return nil
	}
	w.dropped.everyone = true
	for _, node := range nodes {
		if w.inventories[node].Annotations[v1alpha1.AnnotationDropCaches] != w.dropped.request {
			w.dropped.everyone = false
		}
	}
	waiting, err := servers.DroppedCaches(ctx, r.Client, nodes, w.dropped.request)
	if err != nil {
		w.dropped.failed = err.Error()
	}
	w.dropped.waiting = waiting
	return nil
}

// decideDrop has the caches dropped before a turn; it does not wait when they are.
func decideDrop(w *world, d decision) (decision, bool) {
	d.reason, d.message = v1alpha1.ReasonDroppingCaches, "dropping caches before "+w.current(d.turn)
	d.running, d.after = false, soon
	switch at := w.dropped; {
	case at.request == "":
		d.action, d.request = dropCaches, w.requestOf(d.turn)+strconv.FormatInt(w.now.Unix(), 10)
	case !at.everyone:
		d.action, d.request = dropCaches, at.request
	case at.failed != "":
		d.action, d.verdict = giveUp, "was not run: "+at.failed
	case len(at.waiting) == 0:
		return d, false
	case w.now.Sub(at.asked) > dropTimeout:
		d.action = giveUp
		d.verdict = fmt.Sprintf("was not run: the caches of %s were not dropped within %s; look at the agents of these nodes",
			sentenceList(at.waiting), dropTimeout)
	}
	return d, true
}
