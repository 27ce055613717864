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
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"parallelfs.dev/operator/api/v1alpha1"
	"parallelfs.dev/operator/controllers/failures"
)

// maxPasses is how many runs are worked on at once, each of another filesystem: one whose output takes long to read delays no other.
// Reading an output takes up to 64 MiB beside the output itself, of 16.
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
	// Of each filesystem, one run at a time is reconciled (busy).
	return ctrl.NewControllerManagedBy(mgr).
		Named(Name).
		// The status that this controller writes must not wake it; a deletion must.
		For(&v1alpha1.BenchmarkRun{}, builder.WithPredicates(predicate.GenerationChangedPredicate{})).
		Watches(&v1alpha1.BenchmarkRun{}, handler.EnqueueRequestsFromMapFunc(r.runsBehind), builder.WithPredicates(movesLine())).
		Owns(&batchv1.Job{}).
		Owns(&corev1.ConfigMap{}).
		Watches(&corev1.Pod{}, handler.EnqueueRequestsFromMapFunc(runOfPod)).
		Watches(&v1alpha1.FileSystem{}, handler.EnqueueRequestsFromMapFunc(r.runsOfFileSystem)).
		WithOptions(controller.Options{RateLimiter: failures.Limiter(), MaxConcurrentReconciles: maxPasses}).
		Complete(r)
}

func runOfPod(_ context.Context, pod client.Object) []reconcile.Request {
	name := pod.GetLabels()[v1alpha1.LabelBenchmarkRun]
	if name == "" {
		return nil
	}
	return []reconcile.Request{{NamespacedName: client.ObjectKey{Namespace: pod.GetNamespace(), Name: name}}}
}

// runsOfFileSystem are those that have not ended, but for those that wait for another run: that one wakes them.
func (r *Reconciler) runsOfFileSystem(ctx context.Context, fs client.Object) []reconcile.Request {
	all, err := r.runsOf(ctx, fs.GetNamespace(), fs.GetName())
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
