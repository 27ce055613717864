package storagetarget

import (
	"context"

	corev1 "k8s.io/api/core/v1"
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

// Name of the controller, in logs, metrics and events.
const Name = "storagetarget"

// Setup registers the reconciler with a manager.
func (r *Reconciler) Setup(mgr ctrl.Manager) error {
	r.Client = mgr.GetClient()
	r.Reader = mgr.GetAPIReader()
	r.Recorder = mgr.GetEventRecorder("parallelfs-" + Name)
	// Of a node and of its inventory it matters only that they are there.
	comesOrGoes := builder.WithPredicates(predicate.Funcs{UpdateFunc: func(event.UpdateEvent) bool { return false }})
	goes := predicate.Funcs{UpdateFunc: func(e event.UpdateEvent) bool { return !e.ObjectNew.GetDeletionTimestamp().IsZero() }}
	return ctrl.NewControllerManagedBy(mgr).
		Named(Name).
		// A deleted target goes when the agent has written that it is released, so changes of the status wake it.
		For(&v1alpha1.StorageTarget{}).
		WatchesRawSource(r.Views.Targets()).
		// What a FileSystem says of a target comes from there; here it matters that the FileSystem goes, and whether its data is to be wiped.
		Watches(&v1alpha1.FileSystem{}, handler.EnqueueRequestsFromMapFunc(r.targets(func(t *v1alpha1.StorageTarget, fs client.Object) bool {
			return t.Namespace == fs.GetNamespace() && t.Spec.FileSystem.Name == fs.GetName()
		})), builder.WithPredicates(goes)).
		Watches(&v1alpha1.NodeInventory{}, handler.EnqueueRequestsFromMapFunc(r.targets(onNode)), comesOrGoes).
		Watches(&corev1.Node{}, handler.EnqueueRequestsFromMapFunc(r.targets(onNode)), comesOrGoes).
		WithOptions(controller.Options{MaxConcurrentReconciles: 4, RateLimiter: failures.Limiter()}).
		Complete(r)
}

func onNode(t *v1alpha1.StorageTarget, named client.Object) bool {
	return t.Spec.Node == named.GetName()
}

// targets maps an object to the StorageTargets that it is about.
func (r *Reconciler) targets(about func(*v1alpha1.StorageTarget, client.Object) bool) handler.MapFunc {
	return func(ctx context.Context, o client.Object) []reconcile.Request {
		var all v1alpha1.StorageTargetList
		if err := r.Client.List(ctx, &all, client.InNamespace(o.GetNamespace())); err != nil {
			return nil // the cache answers this
		}
		var requests []reconcile.Request
		for i := range all.Items {
			if about(&all.Items[i], o) {
				requests = append(requests, reconcile.Request{NamespacedName: client.ObjectKeyFromObject(&all.Items[i])})
			}
		}
		return requests
	}
}
