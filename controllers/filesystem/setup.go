package filesystem

import (
	"context"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"parallelfs.dev/operator/api/v1alpha1"
	"parallelfs.dev/operator/controllers/apply"
	"parallelfs.dev/operator/controllers/failures"
	"parallelfs.dev/operator/internal/backend/shared/nodefacts"
)

// Name of the controller, in logs, metrics and events.
const Name = "filesystem"

// Setup registers the reconciler with a manager.
func (r *Reconciler) Setup(mgr ctrl.Manager) error {
	r.secrets = &secretReader{Client: mgr.GetClient(), keep: r.Reread}
	r.Client, r.Reader = r.secrets, mgr.GetAPIReader()
	r.Recorder = mgr.GetEventRecorder("parallelfs-" + Name)
	r.Applier = &apply.Applier{Client: r.Client, Kinds: ChildKinds()}
	owner := handler.EnqueueRequestForOwner(mgr.GetScheme(), mgr.GetRESTMapper(), &v1alpha1.FileSystem{}, handler.OnlyControllerOwner())
	return ctrl.NewControllerManagedBy(mgr).
		Named(Name).
		// The controller's own writes of the status must not trigger it; a deletion must.
		For(&v1alpha1.FileSystem{}, builder.WithPredicates(predicate.Or(
			predicate.GenerationChangedPredicate{}, predicate.AnnotationChangedPredicate{}))).
		// A pass reuses what an earlier one has read of DaemonSets, Jobs, pods, targets, records, nodes and inventories, unless one of them has
		// changed.
		Watches(&appsv1.DaemonSet{}, r.podChanges.watch(owner)).
		Watches(&v1alpha1.StorageTarget{}, r.targetChanges.watchNews(owner, newsOfTarget)).
		Watches(&batchv1.Job{}, r.podChanges.watch(owner)).
		Watches(&v1alpha1.FileSystemNode{}, r.recordChanges.watch(owner)).
		Watches(&v1alpha1.NodeInventory{}, r.inventoryChanges.watch(handler.EnqueueRequestsFromMapFunc(r.whichLookAtNodes))).
		// If somebody changes a guard, the next pass corrects it.
		Watches(&appsv1.Deployment{}, r.guardChanges.watch(handler.Funcs{})).
		Watches(&policyv1.PodDisruptionBudget{}, r.guardChanges.watch(handler.Funcs{})).
		Watches(&corev1.Pod{}, r.podChanges.watch(handler.EnqueueRequestsFromMapFunc(fileSystemOfPod)), builder.WithPredicates(
			predicate.NewPredicateFuncs(func(pod client.Object) bool { return !r.namesAgents(pod) }))).
		// The next pass over a FileSystem looks at the agents. None is triggered for them: a release restarts all of them.
		Watches(&corev1.Pod{}, r.agentChanges.watch(handler.Funcs{}), builder.WithPredicates(predicate.NewPredicateFuncs(r.namesAgents))).
		Watches(&corev1.Node{}, r.nodeChanges.watch(handler.EnqueueRequestsFromMapFunc(r.allFileSystems)), builder.WithPredicates(nodeChanged())).
		// A probe of one filesystem that does not answer must not delay the others.
		WithOptions(controller.Options{MaxConcurrentReconciles: 4, RateLimiter: failures.Limiter()}).
		Complete(r)
}

// ChildKinds returns the kinds of children that are removed when they are no longer desired. It excludes Secrets, because to list them
// would need the right to read every Secret. It excludes FileSystemNodes, because they are a record that is removed only with its
// FileSystem.
func ChildKinds() []client.ObjectList {
	return []client.ObjectList{&appsv1.DaemonSetList{}, &batchv1.JobList{}, &corev1.ConfigMapList{}}
}

func fileSystemOfPod(_ context.Context, pod client.Object) []reconcile.Request {
	name := pod.GetLabels()[v1alpha1.LabelFileSystem]
	if name == "" {
		return nil
	}
	return []reconcile.Request{{NamespacedName: client.ObjectKey{Namespace: pod.GetNamespace(), Name: name}}}
}

func (r *Reconciler) allFileSystems(ctx context.Context, _ client.Object) []reconcile.Request {
	var all v1alpha1.FileSystemList
	if err := r.Client.List(ctx, &all, client.UnsafeDisableDeepCopy); err != nil {
		return nil // the cache answers this; the next pass, at most one interval later, reads the node as well
	}
	requests := make([]reconcile.Request, len(all.Items))
	for i := range all.Items {
		requests[i] = reconcile.Request{NamespacedName: client.ObjectKeyFromObject(&all.Items[i])}
	}
	return requests
}

// whichLookAtNodes returns the FileSystems that use what agents find on nodes: disks and CPUs.
func (r *Reconciler) whichLookAtNodes(ctx context.Context, _ client.Object) []reconcile.Request {
	var all v1alpha1.FileSystemList
	if err := r.Client.List(ctx, &all, client.UnsafeDisableDeepCopy); err != nil {
		return nil // the cache answers this; the next pass, at most one interval later, reads the inventory as well
	}
	var requests []reconcile.Request
	for i := range all.Items {
		if usesDevices(&all.Items[i]) || asksForCPUs(&all.Items[i]) {
			requests = append(requests, reconcile.Request{NamespacedName: client.ObjectKeyFromObject(&all.Items[i])})
		}
	}
	return requests
}

// nodeChanged accepts changes of every field of a node that passes read, and ignores heartbeats.
func nodeChanged() predicate.Predicate {
	return predicate.Funcs{UpdateFunc: func(e event.UpdateEvent) bool {
		before, ok := e.ObjectOld.(*corev1.Node)
		after, ok2 := e.ObjectNew.(*corev1.Node)
		if !ok || !ok2 {
			return true
		}
		return !equality.Semantic.DeepEqual(nodefacts.FactsOfNode(before), nodefacts.FactsOfNode(after))
	}}
}
