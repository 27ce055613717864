package benchmarkrun

import (
	"context"
	"strconv"
	"strings"
	"time"

	"parallelfs.dev/operator/api/v1alpha1"
	"parallelfs.dev/operator/controllers/agents"
	"parallelfs.dev/operator/controllers/benchmarkrun/decision"
	"parallelfs.dev/operator/controllers/benchmarkrun/scope"
)

// gatherDrop reads the request to the agents for the next turn, and their answers. The request is stored on the NodeInventories only.
func (r *Reconciler) gatherDrop(ctx context.Context, w *scope.Scope) error {
	if w.Run.Spec.Caches == nil || w.Run.Status.CompletionTime != nil || len(w.Children) > 0 || w.Invalid != "" {
		return nil
	}
	next, found := w.Next()
	if !found || !w.Drops(next) {
		return nil
	}
	nodes := w.DropNodes(next)
	for _, node := range nodes {
		inventory := w.Inventories[node]
		if inventory == nil {
			return nil // decideWaiting reports it
		}
		request := inventory.Annotations[v1alpha1.AnnotationDropCaches]
		at, is := strings.CutPrefix(request, w.RequestOf(next))
		seconds, err := strconv.ParseInt(at, 10, 64)
		if !is || err != nil || w.Now.Sub(time.Unix(seconds, 0)) > decision.DropFresh {
			continue
		}
		if w.Dropped.Request == "" || request > w.Dropped.Request {
			w.Dropped = scope.Drop{Request: request, Asked: time.Unix(seconds, 0)}
		}
	}
	if w.Dropped.Request == "" {
		return nil
	}
	w.Dropped.Everyone = true
	for _, node := range nodes {
		if w.Inventories[node].Annotations[v1alpha1.AnnotationDropCaches] != w.Dropped.Request {
			w.Dropped.Everyone = false
		}
	}
	waiting, err := agents.DroppedCaches(ctx, r.Client, nodes, w.Dropped.Request)
	if err != nil {
		w.Dropped.Failed = err.Error()
	}
	w.Dropped.Waiting = waiting
	return nil
}
