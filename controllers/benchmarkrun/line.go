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

// One run at a time measures a filesystem, and its runs stand in a line, the oldest first. A run waits for the one just before it, and only
// for that: so a run that goes on or ends says something new to one other run, however long the line is.

// gatherLine finds the other runs of the filesystem, and which of them this one comes after.
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

// runsOf are the runs that measure the same, in their turn. They lie in the cache, and are only to be read.
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

// wantsToRun is false for a run that has ended or can't run as things stand, so that it does not hold up the next one.
func wantsToRun(run *v1alpha1.BenchmarkRun) bool {
	succeeded := meta.FindStatusCondition(run.Status.Conditions, v1alpha1.ConditionSucceeded)
	return run.Status.CompletionTime == nil && !run.Spec.Suspend && run.DeletionTimestamp.IsZero() &&
		!meta.IsStatusConditionTrue(run.Status.Conditions, v1alpha1.ConditionStalled) &&
		(succeeded == nil || succeeded.Reason != v1alpha1.ReasonNoClients)
}

// movesLine lets those changes of a run through that change the line: it comes, goes, or wants to run from now on, or no longer.
func movesLine() predicate.Predicate {
	return predicate.Funcs{UpdateFunc: func(e event.UpdateEvent) bool {
		before, is := e.ObjectOld.(*v1alpha1.BenchmarkRun)
		after, is2 := e.ObjectNew.(*v1alpha1.BenchmarkRun)
		return is && is2 && wantsToRun(before) != wantsToRun(after)
	}}
}

// runsBehind are to be woken when a run comes or goes.
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

// woken are those of all runs to which it matters that this one comes or goes: the next one in the line, and the first, which waits until
// nobody measures.
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
