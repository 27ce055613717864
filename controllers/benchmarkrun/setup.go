package benchmarkrun

import (
	"context"
	"fmt"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/util/uuid"
	"k8s.io/client-go/kubernetes"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"parallelfs.dev/operator/api/v1alpha1"
	"parallelfs.dev/operator/controllers/failures"
)

// maxPasses is how many runs are reconciled at once, each on another filesystem.
const maxPasses = 3

// Name of the controller, in logs, metrics and events.
const Name = "benchmarkrun"

// Setup registers the reconciler with a manager.
func (r *Reconciler) Setup(mgr ctrl.Manager) error {
	r.Client = mgr.GetClient()
	r.Reader = mgr.GetAPIReader()
	r.Recorder = mgr.GetEventRecorder("parallelfs-" + Name)
	if r.Logs == nil {
		clientset, err := kubernetes.NewForConfigAndClient(mgr.GetConfig(), mgr.GetHTTPClient())
		if err != nil {
			return fmt.Errorf("make a client for logs: %w", err)
		}
		r.Logs = PodLogs{Clientset: clientset}
	}
	r.Process = string(uuid.NewUUID())
	options := controller.Options{RateLimiter: failures.Limiter(), MaxConcurrentReconciles: maxPasses}
	// For each filesystem, one run at a time is reconciled (busy).
	runs := ctrl.NewControllerManagedBy(mgr).
		Named(Name).
		// The controller's own writes of the status must not trigger it; a deletion must.
		For(&v1alpha1.BenchmarkRun{}, builder.WithPredicates(predicate.GenerationChangedPredicate{})).
		Watches(&v1alpha1.BenchmarkRun{}, handler.EnqueueRequestsFromMapFunc(r.runsBehind), builder.WithPredicates(movesLine())).
		Watches(&v1alpha1.BenchmarkRun{}, handler.EnqueueRequestsFromMapFunc(r.runWithOldestRaw), builder.WithPredicates(movesRaw())).
		Owns(&batchv1.Job{}).
		Owns(&corev1.ConfigMap{}).
		Watches(&corev1.Pod{}, handler.EnqueueRequestsFromMapFunc(runOfPod)).
		WithOptions(options)
	if !r.NoFileSystems {
		runs = runs.Watches(&v1alpha1.FileSystem{}, handler.EnqueueRequestsFromMapFunc(r.runsOfFileSystem))
	}
	return runs.Complete(r) //nolint:wrapcheck // the caller adds whose controller it is
}

// movesRaw accepts changes of a run after which raw output may have to be removed: the run has ended, or its raw output was removed and
// that was not enough.
func movesRaw() predicate.Predicate {
	return predicate.Funcs{
		CreateFunc: func(event.CreateEvent) bool { return false }, DeleteFunc: func(event.DeleteEvent) bool { return false },
		UpdateFunc: func(e event.UpdateEvent) bool {
			before, is := e.ObjectOld.(*v1alpha1.BenchmarkRun)
			after, is2 := e.ObjectNew.(*v1alpha1.BenchmarkRun)
			return is && is2 && (before.Status.CompletionTime == nil && after.Status.CompletionTime != nil ||
				before.Status.RawOutputRemoved == nil && after.Status.RawOutputRemoved != nil)
		},
	}
}

// runWithOldestRaw returns the run to trigger when a run has ended and its namespace has too much raw output.
func (r *Reconciler) runWithOldestRaw(ctx context.Context, run client.Object) []reconcile.Request {
	oldest, err := r.oldestRawOf(ctx, run.GetNamespace())
	if err != nil || oldest == nil {
		return nil // the cache answers this; the run itself checks again in its next pass
	}
	return []reconcile.Request{{NamespacedName: client.ObjectKeyFromObject(oldest)}}
}

func runOfPod(_ context.Context, pod client.Object) []reconcile.Request {
	name := pod.GetLabels()[v1alpha1.LabelBenchmarkRun]
	if name == "" {
		return nil
	}
	return []reconcile.Request{{NamespacedName: client.ObjectKey{Namespace: pod.GetNamespace(), Name: name}}}
}

// runsOfFileSystem returns the runs that have not ended, except those that wait for another run, because that run triggers them.
func (r *Reconciler) runsOfFileSystem(ctx context.Context, fs client.Object) []reconcile.Request {
	all, err := r.runsOf(ctx, fs.GetNamespace(), &v1alpha1.BenchmarkTarget{FileSystem: v1alpha1.FileSystemTarget{Name: fs.GetName()}})
	if err != nil {
		return nil // the cache answers this
	}
	var requests []reconcile.Request
	for _, run := range all {
		succeeded := meta.FindStatusCondition(run.Status.Conditions, v1alpha1.ConditionSucceeded)
		if run.Status.CompletionTime == nil && (succeeded == nil || succeeded.Reason != v1alpha1.ReasonWaitingForRun) {
			requests = append(requests, reconcile.Request{NamespacedName: client.ObjectKeyFromObject(run)})
		}
	}
	return requests
}
