package benchmarkrun

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"parallelfs.dev/operator/controllers/benchmarkrun/children"
	"parallelfs.dev/operator/controllers/benchmarkrun/scope"
)

// quotaWords are in the refusal of a pod by a ResourceQuota (k8s.io/apiserver, plugin resourcequota).
const quotaWords = "exceeded quota"

// gatherQuota finds out whether a quota keeps the pods of a job from being made. Neither a Job nor an MPIJob says so in its status, so
// their events are read, and only while pods are missing.
func (r *Reconciler) gatherQuota(ctx context.Context, w *scope.Scope, c *children.Child) error {
	if c.Deleting || c.Held || c.Succeeded || w.Now.Sub(c.Started) < scope.QuotaPatience || len(c.MainPods()) > 0 {
		return nil
	}
	// The launcher of an MPIJob is a Job of its own.
	for _, name := range []string{c.Name, c.Name + "-launcher"} {
		var events corev1.EventList
		of := client.MatchingFields{"involvedObject.name": name}
		if err := r.Reader.List(ctx, &events, client.InNamespace(w.Run.Namespace), of); err != nil {
			return fmt.Errorf("list the events of %s: %w", name, err)
		}
		slices.SortStableFunc(events.Items, func(a, b corev1.Event) int { return lastSeen(&a).Compare(lastSeen(&b)) })
		for _, e := range events.Items {
			// An object of that name that was there before has its events still.
			old := lastSeen(&e).Before(c.Created.Truncate(time.Second))
			if e.Type == corev1.EventTypeWarning && strings.Contains(e.Message, quotaWords) && !old {
				c.Quota = e.Message
			}
		}
	}
	return nil
}

func lastSeen(e *corev1.Event) time.Time {
	if e.Series != nil {
		return e.Series.LastObservedTime.Time
	}
	if !e.LastTimestamp.IsZero() {
		return e.LastTimestamp.Time
	}
	return cmp.Or(e.EventTime.Time, e.CreationTimestamp.Time)
}
