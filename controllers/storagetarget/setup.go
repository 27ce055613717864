package storagetarget

import (
	"context"
	"maps"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"parallelfs.dev/operator/api/v1alpha1"
	"parallelfs.dev/operator/controllers/cached"
	"parallelfs.dev/operator/controllers/failures"
)

// Name of the controller, in logs, metrics and events.
const Name = "storagetarget"

// Setup registers the reconciler with a manager.
func (r *Reconciler) Setup(mgr ctrl.Manager) error {
	r.Client = mgr.GetClient()
	r.Reader = mgr.GetAPIReader()
	r.Recorder = mgr.GetEventRecorder("parallelfs-" + Name)
	// Only the existence of a node matters, and of its inventory also the health of disks with targets.
	healthChanges := builder.WithPredicates(predicate.Funcs{UpdateFunc: func(e event.UpdateEvent) bool {
		return !maps.EqualFunc(healthOf(e.ObjectOld), healthOf(e.ObjectNew), sameHealth)
	}})
	comesOrGoes := builder.WithPredicates(predicate.Funcs{UpdateFunc: func(event.UpdateEvent) bool { return false }})
	goes := predicate.Funcs{UpdateFunc: func(e event.UpdateEvent) bool { return !e.ObjectNew.GetDeletionTimestamp().IsZero() }}
	return ctrl.NewControllerManagedBy(mgr).
		Named(Name).
		// A deleted target may be removed when the agent has written that it is released, so changes of the status trigger a pass.
		For(&v1alpha1.StorageTarget{}).
		WatchesRawSource(r.Views.Targets()).
		// Views report a target's state in its filesystem; this watch is for the deletion of the FileSystem, and for the confirmation of a wipe.
		Watches(&v1alpha1.FileSystem{}, handler.EnqueueRequestsFromMapFunc(r.ofFileSystem), builder.WithPredicates(goes)).
		Watches(&v1alpha1.NodeInventory{}, handler.EnqueueRequestsFromMapFunc(r.onNode), healthChanges).
		Watches(&corev1.Node{}, handler.EnqueueRequestsFromMapFunc(r.onNode), comesOrGoes).
		WithOptions(controller.Options{MaxConcurrentReconciles: 4, RateLimiter: failures.Limiter()}).
		Complete(r)
}

// healthOf returns the health of the disks that carry targets, by target.
func healthOf(inventory client.Object) map[string]*v1alpha1.DiskHealth {
	out := map[string]*v1alpha1.DiskHealth{}
	if n, is := inventory.(*v1alpha1.NodeInventory); is {
		for i := range n.Status.BlockDevices {
			if d := &n.Status.BlockDevices[i]; d.Target != "" && d.Health != nil {
				out[d.Target] = d.Health
			}
		}
	}
	return out
}

func sameHealth(a, b *v1alpha1.DiskHealth) bool { return equality.Semantic.DeepEqual(a, b) }

// ofFileSystem returns the targets of a FileSystem.
func (r *Reconciler) ofFileSystem(ctx context.Context, fs client.Object) []reconcile.Request {
	return r.requests(ctx, client.InNamespace(fs.GetNamespace()), client.MatchingFields{cached.ByFileSystem: fs.GetName()})
}

// onNode returns the targets on a node, whose name is that of the object, in all namespaces. A starting manager gets one event for each
// node and each inventory: it must not read all targets each time.
func (r *Reconciler) onNode(ctx context.Context, node client.Object) []reconcile.Request {
	return r.requests(ctx, client.MatchingFields{cached.ByNode: node.GetName()})
}

func (r *Reconciler) requests(ctx context.Context, which ...client.ListOption) []reconcile.Request {
	var those v1alpha1.StorageTargetList
	if err := r.Client.List(ctx, &those, append(which, client.UnsafeDisableDeepCopy)...); err != nil {
		log.FromContext(ctx).Error(err, "The targets to look at can't be listed")
		return nil
	}
	requests := make([]reconcile.Request, len(those.Items))
	for i := range those.Items {
		requests[i] = reconcile.Request{NamespacedName: client.ObjectKeyFromObject(&those.Items[i])}
	}
	return requests
}
