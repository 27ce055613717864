// Package decisiontest makes random runs that have the lease of their FileSystem, and carries out what is decided of them.
package decisiontest

import (
	"math/rand/v2"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	"parallelfs.dev/operator/api/v1alpha1"
	"parallelfs.dev/operator/controllers/benchmarkrun/children"
	"parallelfs.dev/operator/controllers/benchmarkrun/decision"
	"parallelfs.dev/operator/controllers/benchmarkrun/scope"
	"parallelfs.dev/operator/controllers/benchmarkrun/scope/scopetest"
	"parallelfs.dev/operator/controllers/benchmarkrun/turns"
)

// RandomRun returns a run with a foreign finalizer: alive, suspended or deleted, with a job in any state or none.
func RandomRun(random *rand.Rand) *scope.Scope {
	w := scopetest.Idle()
	w.Run.Finalizers = []string{v1alpha1.Finalizer, "example.com/keeps"}
	w.Run.Spec.Suspend = random.IntN(4) == 0
	if random.IntN(4) == 0 {
		w.Run.DeletionTimestamp = new(metav1.NewTime(scopetest.Now))
	}
	if random.IntN(8) == 0 {
		return w // its jobs are gone
	}
	c := scopetest.Job(w, 0, 1, time.Duration(random.IntN(40))*time.Minute)
	c.Pods = []corev1.Pod{scopetest.PodOf(children.RoleClient, corev1.PodRunning)}
	switch random.IntN(7) {
	case 0:
		c.Succeeded = true
	case 1:
		c.Failed = true
	case 2:
		c.Refused, c.Pods = "exceeded quota", nil
	case 3:
		c.Held, c.Pods = true, nil
	case 4:
		c.Deleting = true
	case 5:
		c.Deleting, c.Kept, c.Pods = true, []string{"example.com/keeps"}, nil // forever
	}
	return w
}

// Decide returns the decision of a pass over a run, whether it is deleted or not.
func Decide(w *scope.Scope) decision.Decision {
	if w.Run.DeletionTimestamp.IsZero() {
		return decision.Decide(w)
	}
	d, gone := decision.DecideDeleted(w)
	if gone {
		controllerutil.RemoveFinalizer(w.Run, v1alpha1.Finalizer)
	}
	return d
}

// CarryOut changes a scope as a decision says and the cluster does. A job that is to start never does.
func CarryOut(w *scope.Scope, d decision.Decision) {
	switch {
	case d.Action == decision.Keep:
		w.Records.Add(turns.Record{
			Point: d.Child.Turn.Point, Repetition: d.Child.Turn.Repetition, Attempt: d.Child.Turn.Attempt,
			Started: w.Now, Finished: w.Now, Invalid: d.Invalid, Error: d.Verdict,
		})
	case d.Action == decision.Remove && d.Child == w.Cleaner:
		w.Cleaner = nil
	case d.Action == decision.Remove:
		w.Children = slices.DeleteFunc(w.Children, func(c children.Child) bool { return len(c.Kept) == 0 })
	case d.Action == decision.Clean:
		w.Cleaner = &children.Child{Name: "sweep-clean", Succeeded: true}
	case d.Cleaned:
		w.Run.Status.Directory = ""
	case len(w.Children) > 0 && w.Children[0].Deleting:
		w.Children = slices.DeleteFunc(w.Children, func(c children.Child) bool { return len(c.Kept) == 0 })
	}
	if d.Status != "" {
		w.Run.Status.Conditions = []metav1.Condition{{Type: v1alpha1.ConditionSucceeded, Status: d.Status, Reason: d.Reason}}
	}
}
