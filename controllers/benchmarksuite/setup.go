package benchmarksuite

import (
	"context"

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

// Name of the controller, in logs, metrics and events.
const Name = "benchmarksuite"

// Setup registers the reconciler with a manager.
func (r *Reconciler) Setup(mgr ctrl.Manager) error {
	r.Client = mgr.GetClient()
	r.Reader = mgr.GetAPIReader()
	r.Recorder = mgr.GetEventRecorder("parallelfs-" + Name)
	return ctrl.NewControllerManagedBy(mgr).
		Named(Name).
		// A write of the status by this controller must not trigger it; a deletion must.
		For(&v1alpha1.BenchmarkSuite{}, builder.WithPredicates(predicate.GenerationChangedPredicate{})).
		Owns(&v1alpha1.BenchmarkRun{}).
		Watches(&v1alpha1.FileSystem{}, handler.EnqueueRequestsFromMapFunc(suiteOfFileSystem)).
		WithOptions(controller.Options{RateLimiter: failures.Limiter()}).
		Complete(r)
}

// suiteOfFileSystem returns the suite that made a FileSystem and does not own it.
func suiteOfFileSystem(_ context.Context, fs client.Object) []reconcile.Request {
	name := fs.GetLabels()[v1alpha1.LabelBenchmarkSuite]
	if name == "" {
		return nil
	}
	return []reconcile.Request{{NamespacedName: client.ObjectKey{Namespace: fs.GetNamespace(), Name: name}}}
}
