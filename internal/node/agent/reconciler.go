package agent

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/events"
	"k8s.io/client-go/util/workqueue"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"parallelfs.dev/operator/api/v1alpha1"
	"parallelfs.dev/operator/internal/node/provision"
	"parallelfs.dev/operator/internal/plan"
)

// Pass takes one target as far as possible, and records its status before it writes to a disk.
type Pass func(ctx context.Context, target *v1alpha1.StorageTarget, record provision.Record) error

const (
	// workers limits the number of disks that are worked on at once.
	workers = 8
	// firstRetry and lastRetry bound the time to the next attempt after a failure.
	firstRetry = 5 * time.Second
	lastRetry  = time.Minute
	// catchUp is the time after which a pass that met a write conflict is repeated.
	catchUp = 200 * time.Millisecond
	// stalledAgain is the longest time until a blocked target, or one that its server has not mounted yet, is checked again.
	stalledAgain = 30 * time.Second
	// countAgain is the longest time until the files of a target that is being drained are counted again.
	countAgain = 15 * time.Second
	// otherWork is the time until a target is tried again whose device is in use by the work on another target.
	otherWork = 2 * time.Second
)

// Reconciler runs the work on the disks of this node's StorageTargets.
type Reconciler struct {
	// Client writes. Live reads directly from the API server: no decision about a disk is based on a stale cache.
	Client   client.Client
	Live     client.Reader
	Recorder events.EventRecorder
	NodeName string
	Resync   time.Duration
	Pass     Pass
	// Withdraw is called before the disk of a deleted target is released (NodeFiles.Withdraw).
	Withdraw func(ctx context.Context, t *v1alpha1.StorageTarget) error
	// Acted is called when a target has changed.
	Acted func()

	devices inUse
}

func (r *Reconciler) setup(mgr ctrl.Manager, wake <-chan event.GenericEvent) error {
	return ctrl.NewControllerManagedBy(mgr).
		Named(Name).
		// A status written by this agent must not trigger a pass. An approval or a deletion changes the generation.
		For(&v1alpha1.StorageTarget{}, builder.WithPredicates(
			predicate.Or(predicate.GenerationChangedPredicate{}, predicate.Funcs{UpdateFunc: holderChanged}), predicate.NewPredicateFuncs(r.here))).
		WatchesRawSource(source.Channel(wake, handler.EnqueueRequestsFromMapFunc(r.all))).
		WithOptions(controller.Options{
			MaxConcurrentReconciles: workers,
			RateLimiter:             workqueue.NewTypedItemExponentialFailureRateLimiter[reconcile.Request](firstRetry, lastRetry),
		}).
		Complete(r)
}

// holderChanged is true if the target has another holder than before, which makes this node's status of it obsolete.
func holderChanged(e event.UpdateEvent) bool {
	was, ok := e.ObjectOld.(*v1alpha1.StorageTarget)
	is, also := e.ObjectNew.(*v1alpha1.StorageTarget)
	return ok && also && plan.HolderOf(was).Node != plan.HolderOf(is).Node
}

// here is true for the targets of this node.
func (r *Reconciler) here(object client.Object) bool {
	target, ok := object.(*v1alpha1.StorageTarget)
	return ok && target.Spec.Node == r.NodeName
}

// targets returns the targets of this node from the cache.
func (r *Reconciler) targets(ctx context.Context) ([]v1alpha1.StorageTarget, error) {
	var list v1alpha1.StorageTargetList
	err := r.Client.List(ctx, &list)
	return slices.DeleteFunc(list.Items, func(t v1alpha1.StorageTarget) bool { return !r.here(&t) }), err
}

// all requests a pass over each target of this node.
func (r *Reconciler) all(ctx context.Context, _ client.Object) []reconcile.Request {
	targets, err := r.targets(ctx)
	if err != nil {
		return nil // the resync will reach them
	}
	requests := make([]reconcile.Request, len(targets))
	for i := range targets {
		requests[i] = reconcile.Request{NamespacedName: client.ObjectKeyFromObject(&targets[i])}
	}
	return requests
}

// Reconcile makes one pass over one target.
func (r *Reconciler) Reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	target := &v1alpha1.StorageTarget{}
	if err := r.Live.Get(ctx, request.NamespacedName, target); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	if !r.here(target) {
		return ctrl.Result{}, nil
	}
	release, free := r.devices.take(ids(target))
	if !free {
		return ctrl.Result{RequeueAfter: otherWork}, nil
	}
	defer release()
	if plan.IsOfPair(target) {
		// The target may have been handed over before its device was taken. Then nothing is done to its disk.
		if err := r.Live.Get(ctx, request.NamespacedName, target); err != nil {
			return ctrl.Result{}, client.IgnoreNotFound(err)
		}
	}
	if !target.DeletionTimestamp.IsZero() && r.Withdraw != nil {
		if err := r.Withdraw(ctx, target); err != nil {
			return ctrl.Result{}, err
		}
	}
	changed := false
	err := r.Pass(ctx, target, func(ctx context.Context, t *v1alpha1.StorageTarget, wanted v1alpha1.StorageTargetStatus) error {
		wrote, err := r.record(ctx, t, wanted)
		changed = changed || wrote
		return err
	})
	if changed && r.Acted != nil {
		r.Acted()
	}
	var failed *provision.StepError
	switch {
	case err == nil && (meta.IsStatusConditionTrue(target.Status.Conditions, v1alpha1.ConditionStalled) ||
		meta.IsStatusConditionTrue(target.Status.Conditions, v1alpha1.ConditionReconciling) || r.waitsForServer(target)):
		// The obstacle may disappear without an event: no event reports that a program closed a disk or that a server mounted it.
		return ctrl.Result{RequeueAfter: min(stalledAgain, r.Resync)}, nil
	case err == nil && len(target.Spec.FilesIn) > 0:
		// The target is being drained: count its remaining files again.
		return ctrl.Result{RequeueAfter: min(countAgain, r.Resync)}, nil
	case err == nil:
		return ctrl.Result{RequeueAfter: r.Resync}, nil
	case apierrors.IsConflict(err):
		return ctrl.Result{RequeueAfter: catchUp}, nil
	case apierrors.IsNotFound(err):
		return ctrl.Result{}, nil // the target is gone
	case errors.As(err, &failed):
		log.FromContext(ctx).Info("A step failed; it is tried again", "step", failed.Step, "reason", failed.Err.Error())
	}
	return ctrl.Result{}, err
}

// waitsForServer is true for a target that is ready, and that its server on this node has not mounted yet. The filesystem is configured
// when the status shows the mount.
func (r *Reconciler) waitsForServer(t *v1alpha1.StorageTarget) bool {
	ready := meta.IsStatusConditionTrue(t.Status.Conditions, v1alpha1.ConditionReady)
	return ready && t.Status.MountPath == "" && plan.HolderOf(t).Node == r.NodeName
}

// ids returns the device ids of a target.
func ids(t *v1alpha1.StorageTarget) []string {
	out := []string{string(t.Spec.Device.ID)}
	if now := string(plan.DeviceOf(t).ID); now != out[0] {
		out = append(out, now)
	}
	if t.Spec.LogDevice != nil {
		out = append(out, string(t.Spec.LogDevice.ID))
	}
	return out
}

// inUse holds the ids of the devices that are being worked on.
type inUse struct {
	mutex sync.Mutex
	ids   map[string]bool
}

// take takes all of the devices or none.
func (u *inUse) take(wanted []string) (release func(), free bool) {
	u.mutex.Lock()
	defer u.mutex.Unlock()
	if u.ids == nil {
		u.ids = map[string]bool{}
	}
	if slices.ContainsFunc(wanted, func(id string) bool { return u.ids[id] }) {
		return nil, false
	}
	for _, id := range wanted {
		u.ids[id] = true
	}
	return func() {
		u.mutex.Lock()
		defer u.mutex.Unlock()
		for _, id := range wanted {
			delete(u.ids, id)
		}
	}, true
}

// record writes the agent's part of the status if it differs, and copies the API server's answer into t. The write is valid only for
// exactly the object that was read: an approval or a deletion in between makes it a conflict.
func (r *Reconciler) record(ctx context.Context, t *v1alpha1.StorageTarget, wanted v1alpha1.StorageTargetStatus) (wrote bool, err error) {
	if t.Status.Provisioned != nil && wanted.Provisioned == nil {
		return false, fmt.Errorf("%s: how the disk became a target (status.provisioned) would be forgotten; nothing was written, please report it", t.Name)
	}
	before := t.DeepCopy()
	if equality.Semantic.DeepEqual(own(before.Status), own(wanted)) {
		return false, nil
	}
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(&wanted)
	if err != nil {
		return false, fmt.Errorf("encode the status of %s: %w", t.Name, err)
	}
	intent := &unstructured.Unstructured{Object: map[string]any{
		"metadata": map[string]any{
			"name": t.Name, "namespace": t.Namespace, "uid": string(t.UID), "resourceVersion": t.ResourceVersion,
		},
		"status": content,
	}}
	intent.SetGroupVersionKind(v1alpha1.GroupVersion.WithKind("StorageTarget"))
	err = r.Client.Status().Apply(ctx, client.ApplyConfigurationFromUnstructured(intent), client.ForceOwnership, client.FieldOwner(FieldOwner))
	if err != nil {
		return false, fmt.Errorf("write the status of %s: %w", t.Name, err)
	}
	after := &v1alpha1.StorageTarget{}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(intent.Object, after); err != nil {
		return true, fmt.Errorf("decode the status of %s: %w", t.Name, err)
	}
	after.DeepCopyInto(t)
	if ready := meta.FindStatusCondition(t.Status.Conditions, v1alpha1.ConditionReady); ready != nil {
		log.FromContext(ctx).Info("Wrote the status", "ready", ready.Status, "reason", ready.Reason, "message", ready.Message)
	}
	r.announce(before, t)
	return true, nil
}

// own is the part of a status that the agent writes, in a form that can be compared.
func own(s v1alpha1.StorageTargetStatus) v1alpha1.StorageTargetStatus {
	s = *s.DeepCopy()
	s.Service = nil // the operator's
	s.Holder = nil  // written by Pairs
	s.Conditions = slices.DeleteFunc(s.Conditions, func(c metav1.Condition) bool { return !slices.Contains(provision.Conditions, c.Type) })
	slices.SortFunc(s.Conditions, func(a, b metav1.Condition) int {
		return slices.Index(provision.Conditions, a.Type) - slices.Index(provision.Conditions, b.Type)
	})
	return s
}

// runnable is a function that a manager runs.
type runnable = manager.RunnableFunc

// ready returns an error unless a full scan that began within the limit has confirmed the published inventory. So the operator can rely on
// the inventory of an agent that is ready, and compares no clocks of two nodes.
func ready(confirmed *atomic.Pointer[time.Time], limit time.Duration, now func() time.Time) func(*http.Request) error {
	return func(*http.Request) error {
		began := confirmed.Load()
		switch {
		case began == nil:
			return errors.New("the NodeInventory was not published yet; the agent's log shows why")
		case now().Sub(*began) > limit:
			return fmt.Errorf("no scan of the node has confirmed the NodeInventory for more than %s; the agent's log shows why", limit)
		}
		return nil
	}
}
