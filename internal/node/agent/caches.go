package agent

import (
	"context"
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/predicate"

	"parallelfs.dev/operator/api/v1alpha1"
	"parallelfs.dev/operator/internal/node/caches"
)

// FieldOwnerCaches is the agent's name in managedFields for status.droppedCaches. The separate name keeps publications of the inventory,
// which don't contain the field, from removing it.
const FieldOwnerCaches = "parallelfs-agent-caches"

// longestError is the limit of DroppedCaches.error, in bytes.
const longestError = 512

// Caches drops the kernel's caches of the node once for each request in the node's NodeInventory, and writes the result there.
type Caches struct {
	// Client writes, and reads directly from the API server.
	Client client.Client
	Drop   func(ctx context.Context) error
	Now    func() time.Time

	// done is the last request that was carried out, until its result could be written.
	done *v1alpha1.DroppedCaches
}

func (r *Caches) setup(mgr ctrl.Manager) error {
	// The cache contains the inventory of this node only.
	return ctrl.NewControllerManagedBy(mgr).
		Named("caches").
		For(&v1alpha1.NodeInventory{}, builder.WithPredicates(predicate.AnnotationChangedPredicate{})).
		Complete(r)
}

// Reconcile carries out the request in the inventory unless that was already done. If the agent was killed before it wrote the result, the
// request is carried out again.
func (r *Caches) Reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	inventory := &v1alpha1.NodeInventory{}
	if err := r.Client.Get(ctx, request.NamespacedName, inventory); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	asked, last := inventory.Annotations[v1alpha1.AnnotationDropCaches], ""
	if inventory.Status.DroppedCaches != nil {
		last = inventory.Status.DroppedCaches.Request
	}
	if !caches.Due(asked, last) {
		return ctrl.Result{}, nil
	}
	if r.done == nil || r.done.Request != asked {
		err := r.Drop(ctx)
		if ctx.Err() != nil {
			return ctrl.Result{}, ctx.Err()
		}
		r.done = &v1alpha1.DroppedCaches{Request: asked, Time: metav1.NewTime(r.Now().UTC().Truncate(time.Second))}
		if err != nil {
			r.done.Error = v1alpha1.Cut(err.Error(), longestError)
		}
		log.FromContext(ctx).Info("Dropped the caches of the kernel", "request", asked, "error", r.done.Error)
	}
	return ctrl.Result{}, r.answer(ctx, inventory)
}

func (r *Caches) answer(ctx context.Context, inventory *v1alpha1.NodeInventory) error {
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(&v1alpha1.NodeInventoryStatus{DroppedCaches: r.done})
	if err != nil {
		return fmt.Errorf("encode the answer: %w", err)
	}
	intent := &unstructured.Unstructured{Object: map[string]any{
		"metadata": map[string]any{"name": inventory.Name, "uid": string(inventory.UID)},
		"status":   map[string]any{"droppedCaches": content["droppedCaches"]},
	}}
	intent.SetGroupVersionKind(v1alpha1.GroupVersion.WithKind("NodeInventory"))
	apply := client.ApplyConfigurationFromUnstructured(intent)
	err = r.Client.Status().Apply(ctx, apply, client.ForceOwnership, client.FieldOwner(FieldOwnerCaches))
	if err != nil {
		return fmt.Errorf("write that the caches were dropped: %w", err)
	}
	return nil
}
