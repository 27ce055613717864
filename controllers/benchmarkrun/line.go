package benchmarkrun

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"parallelfs.dev/operator/api/v1alpha1"
	"parallelfs.dev/operator/controllers/benchmarkrun/scope"
	"parallelfs.dev/operator/controllers/cached"
)

// One run at a time measures a filesystem. Its runs form a queue, the oldest first. A run waits only for the one directly before it, so a
// change of one run triggers only one other run, however long the queue is.

// gatherLine finds the other runs of the filesystem, and which of them is directly before this one.
func (r *Reconciler) gatherLine(ctx context.Context, w *scope.Scope) error {
	all, err := r.runsOf(ctx, w.Run.Namespace, &w.Run.Spec.Target)
	if err != nil {
		return err
	}
	for _, other := range all {
		if other.UID == w.Run.UID {
			continue
		}
		w.Others = append(w.Others, scope.Other{Name: other.Name, UID: other.UID})
		if wantsToRun(other) && inTurn(other, w.Run) < 0 {
			w.Before = other.Name
		}
	}
	return nil
}

// runsOf returns the runs on the same target, in the order of the queue. They are in the cache and read-only.
func (r *Reconciler) runsOf(ctx context.Context, namespace string, target *v1alpha1.BenchmarkTarget) ([]*v1alpha1.BenchmarkRun, error) {
	var list v1alpha1.BenchmarkRunList
	of := cached.RunsOf(target)
	if err := r.Client.List(ctx, &list, client.InNamespace(namespace), of, client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("list BenchmarkRuns: %w", err)
	}
	out := make([]*v1alpha1.BenchmarkRun, len(list.Items))
	for i := range list.Items {
		out[i] = &list.Items[i]
	}
	slices.SortFunc(out, inTurn)
	return out, nil
}

// inTurn orders runs by age, then by name.
func inTurn(a, b *v1alpha1.BenchmarkRun) int {
	return cmp.Or(a.CreationTimestamp.Compare(b.CreationTimestamp.Time), strings.Compare(a.Name, b.Name))
}

// wantsToRun returns false for a run that has ended or can't run at present, so that it does not block the next one.
func wantsToRun(run *v1alpha1.BenchmarkRun) bool {
	succeeded := meta.FindStatusCondition(run.Status.Conditions, v1alpha1.ConditionSucceeded)
	return run.Status.CompletionTime == nil && !run.Spec.Suspend && run.DeletionTimestamp.IsZero() &&
		!meta.IsStatusConditionTrue(run.Status.Conditions, v1alpha1.ConditionStalled) &&
		(succeeded == nil || succeeded.Reason != v1alpha1.ReasonNoClients)
}

// movesLine accepts changes of a run that change the queue: it is created, is deleted, or begins or ceases to want to run.
func movesLine() predicate.Predicate {
	return predicate.Funcs{UpdateFunc: func(e event.UpdateEvent) bool {
		before, is := e.ObjectOld.(*v1alpha1.BenchmarkRun)
		after, is2 := e.ObjectNew.(*v1alpha1.BenchmarkRun)
		return is && is2 && wantsToRun(before) != wantsToRun(after)
	}}
}

// runsBehind returns the runs to trigger when a run is created or deleted.
func (r *Reconciler) runsBehind(ctx context.Context, object client.Object) []reconcile.Request {
	run, is := object.(*v1alpha1.BenchmarkRun)
	if !is {
		return nil
	}
	all, err := r.runsOf(ctx, run.Namespace, &run.Spec.Target)
	if err != nil {
		return nil // the cache answers this
	}
	var requests []reconcile.Request
	for _, other := range woken(run, all) {
		requests = append(requests, reconcile.Request{NamespacedName: client.ObjectKeyFromObject(other)})
	}
	return requests
}

// woken returns the runs that depend on this one: the next one in the queue, and the first one, which waits until no run measures.
func woken(run *v1alpha1.BenchmarkRun, all []*v1alpha1.BenchmarkRun) []*v1alpha1.BenchmarkRun {
	var out []*v1alpha1.BenchmarkRun
	for _, other := range all {
		if other.Name == run.Name || !wantsToRun(other) {
			continue
		}
		if len(out) == 0 {
			out = append(out, other)
		}
		if inTurn(run, other) < 0 {
			return slices.Compact(append(out, other))
		}
	}
	return out
}
