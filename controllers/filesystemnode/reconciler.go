// Package filesystemnode reconciles FileSystemNodes: it writes the filesystem's own state of its servers on a node, and removes the
// finalizer of a deleted one when it no longer records anything. The spec has the permanent records and the configuration of the servers,
// which the controller of FileSystems writes. The agent's own part of the status has the work of the agent.
package filesystemnode

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"

	"parallelfs.dev/operator/api/v1alpha1"
	"parallelfs.dev/operator/controllers/apply"
	"parallelfs.dev/operator/controllers/conditions"
	"parallelfs.dev/operator/controllers/failures"
	"parallelfs.dev/operator/controllers/views"
	"parallelfs.dev/operator/internal/backend"
)

// Name of the controller, in logs, metrics and events.
const Name = "filesystemnode"

// FieldOwner is the owner of the operator's part of the status in managedFields. The agent has its own, so that neither removes the fields
// of the other.
const FieldOwner = "parallelfs-manager"

// Reconciler reconciles FileSystemNodes.
type Reconciler struct {
	Client client.Client
	// Reader reads from the API server, because a FileSystem that it does not find must really be deleted.
	Reader   client.Reader
	Recorder events.EventRecorder
	// Views has the results of the passes over FileSystems.
	Views *views.Board
	Clock clock.PassiveClock

	failed failures.Teller
}

// +kubebuilder:rbac:groups=parallelfs.dev,resources=filesystemnodes,verbs=get;list;watch;patch
// +kubebuilder:rbac:groups=parallelfs.dev,resources=filesystems,verbs=get;list;watch
// +kubebuilder:rbac:groups=events.k8s.io,resources=events,verbs=create;patch
// +kubebuilder:rbac:groups=parallelfs.dev,resources=filesystemnodes/status,verbs=patch

// Setup registers the reconciler with a manager.
func (r *Reconciler) Setup(mgr ctrl.Manager) error {
	r.Client, r.Reader = mgr.GetClient(), mgr.GetAPIReader()
	r.Recorder = mgr.GetEventRecorder("parallelfs-" + Name)
	const workers = 4
	goes := predicate.Funcs{
		CreateFunc: func(event.CreateEvent) bool { return false },
		UpdateFunc: func(e event.UpdateEvent) bool { return !e.ObjectNew.GetDeletionTimestamp().IsZero() },
	}
	return ctrl.NewControllerManagedBy(mgr).
		Named(Name).
		For(&v1alpha1.FileSystemNode{}, builder.WithPredicates(predicate.GenerationChangedPredicate{})).
		WatchesRawSource(r.Views.Nodes()).
		Watches(&v1alpha1.FileSystem{}, handler.EnqueueRequestsFromMapFunc(r.deleted), builder.WithPredicates(goes)).
		WithOptions(controller.Options{MaxConcurrentReconciles: workers, RateLimiter: failures.Limiter()}).
		Complete(r)
}

// Reconcile updates the operator's part of the status of one FileSystemNode.
func (r *Reconciler) Reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	node := &v1alpha1.FileSystemNode{}
	again, err := r.reconcile(ctx, request, node)
	r.failed.Tell(r.Recorder, request.NamespacedName, node, err)
	return apply.Again(ctrl.Result{RequeueAfter: again}, err)
}

func (r *Reconciler) reconcile(ctx context.Context, request ctrl.Request, node *v1alpha1.FileSystemNode) (again time.Duration, err error) {
	if err := r.Client.Get(ctx, request.NamespacedName, node); err != nil {
		return 0, client.IgnoreNotFound(err)
	}
	if goes, err := r.release(ctx, node); goes || err != nil {
		return 0, err
	}
	fileSystem := client.ObjectKey{Namespace: node.Namespace, Name: node.Spec.FileSystem.Name}
	wanted := *node.Status.DeepCopy()
	// The earlier status stays until a pass over the FileSystem has observed it.
	if seen, ok := r.Views.Node(fileSystem, types.UID(node.Spec.FileSystem.UID), node.Name); ok {
		if again = starting(node, seen, r.Clock.Now()); again == 0 {
			wanted = describe(node, seen)
		}
	}
	sayStarting(node, &wanted, r.Clock.Now())
	sayKept(node, &wanted)
	if equality.Semantic.DeepEqual(wanted, node.Status) {
		return again, nil
	}
	return again, r.write(ctx, node, wanted)
}

func (r *Reconciler) write(ctx context.Context, node *v1alpha1.FileSystemNode, wanted v1alpha1.FileSystemNodeStatus) error {
	wanted.Agent = nil
	status, err := runtime.DefaultUnstructuredConverter.ToUnstructured(&wanted)
	if err != nil {
		return fmt.Errorf("convert the status of FileSystemNode %s: %w", node.Name, err)
	}
	intent := &unstructured.Unstructured{Object: map[string]any{
		"metadata": map[string]any{"name": node.Name, "namespace": node.Namespace, "uid": string(node.UID)}, "status": status,
	}}
	intent.SetGroupVersionKind(v1alpha1.GroupVersion.WithKind("FileSystemNode"))
	err = r.Client.Status().Apply(ctx, client.ApplyConfigurationFromUnstructured(intent), client.ForceOwnership, client.FieldOwner(FieldOwner))
	if err != nil {
		return client.IgnoreNotFound(fmt.Errorf("write the status of FileSystemNode %s: %w", node.Name, err))
	}
	r.announce(node, wanted)
	return nil
}

// startLimit is how long a new node may take to start before its status has more details.
const startLimit = 10 * time.Minute

// sayStarting reports, for a node without a status, that its servers are starting.
func sayStarting(node *v1alpha1.FileSystemNode, status *v1alpha1.FileSystemNodeStatus, now time.Time) {
	if meta.FindStatusCondition(status.Conditions, v1alpha1.ConditionReady) != nil {
		return
	}
	meta.SetStatusCondition(&status.Conditions, metav1.Condition{
		Type: v1alpha1.ConditionReady, Status: metav1.ConditionFalse, Reason: v1alpha1.ReasonStarting, ObservedGeneration: node.Generation,
		LastTransitionTime: metav1.NewTime(now).Rfc3339Copy(),
		Message: "its servers are being started; what is missing is in status.missing of the FileSystem, and in the StorageTargets of " +
			"this node",
	})
}

// starting is how long that short status is still enough. It is zero when all servers are online, or were, when something keeps one from
// starting, or when the start takes too long. The steps of a start, disk by disk and server by server, would otherwise cause many writes
// for each node, and are over before a person can read them.
func starting(node *v1alpha1.FileSystemNode, seen views.Node, now time.Time) time.Duration {
	was := meta.FindStatusCondition(node.Status.Conditions, v1alpha1.ConditionReady)
	offline := func(m v1alpha1.MemberStatus) bool { return m.State != v1alpha1.StateOnline }
	up := seen.Online == seen.Wanted && !slices.ContainsFunc(seen.Members, offline)
	if up || seen.Troubled || was != nil && was.Reason != v1alpha1.ReasonStarting {
		return 0
	}
	return max(node.CreationTimestamp.Add(startLimit).Sub(now), 0)
}

// describe returns the status with the desired operator's part.
func describe(node *v1alpha1.FileSystemNode, seen views.Node) v1alpha1.FileSystemNodeStatus {
	status := *node.Status.DeepCopy()
	status.ObservedGeneration, status.Members = node.Generation, seen.Members
	online := 0
	var away []string
	for _, m := range seen.Members {
		if m.State == v1alpha1.StateOnline {
			online++
		} else {
			away = append(away, m.Name+" ("+m.Message+")")
		}
	}
	status.BootID = cmp.Or(seen.BootID, status.BootID)
	status.Summary = v1alpha1.FileSystemNodeSummary{
		Servers: backend.Ratio(online, len(seen.Members)), Targets: backend.Ratio(seen.Online, seen.Wanted),
	}
	ready, reason := metav1.ConditionTrue, v1alpha1.ReasonHealthy
	message := fmt.Sprintf("%s servers and %s targets are online", status.Summary.Servers, status.Summary.Targets)
	switch {
	case len(away) > 0 && seen.Silent && !seen.Troubled:
		ready, reason = metav1.ConditionUnknown, v1alpha1.ReasonProbeUnreachable
		message = fmt.Sprintf("the state of its servers is unknown; the condition Ready of FileSystem %s shows why", node.Spec.FileSystem.Name)
	case len(away) > 0:
		ready, reason, message = metav1.ConditionFalse, v1alpha1.ReasonServersMissing, "servers are not online: "+backend.List(away)
	case seen.Online < seen.Wanted:
		ready, reason = metav1.ConditionFalse, v1alpha1.ReasonTargetsMissing
		message = fmt.Sprintf("%s targets are online; the StorageTargets of this node show what the others lack", status.Summary.Targets)
	}
	describeMaintenance(node, seen, &status)
	if seen.GivingUp == nil {
		meta.RemoveStatusCondition(&status.Conditions, v1alpha1.ConditionGivenUp)
	} else {
		given := metav1.ConditionFalse
		if node.Spec.GivenUp != nil {
			given, ready, reason, message = metav1.ConditionTrue, metav1.ConditionFalse, seen.GivingUp.Reason, seen.GivingUp.Message
		}
		conditions.Add(&status.Conditions, node.Generation, v1alpha1.ConditionReady, v1alpha1.ConditionGivenUp, given,
			seen.GivingUp.Reason, seen.GivingUp.Message)
	}
	conditions.Set(&status.Conditions, node.Generation, v1alpha1.ConditionReady, ready, conditions.Settled, reason, message)
	return status
}

// describeMaintenance describes the maintenance of a node, and a restart of the node without a maintenance. The report of such a restart
// stays until the next maintenance.
func describeMaintenance(node *v1alpha1.FileSystemNode, seen views.Node, status *v1alpha1.FileSystemNodeStatus) {
	say := func(is metav1.ConditionStatus, reason, message string) {
		conditions.Add(&status.Conditions, node.Generation, v1alpha1.ConditionReady, v1alpha1.ConditionMaintenance, is, reason, message)
	}
	was := meta.FindStatusCondition(node.Status.Conditions, v1alpha1.ConditionMaintenance)
	// A node that starts while its maintenance ends has started within it.
	asked := was != nil && (was.Status == metav1.ConditionTrue || was.Reason == v1alpha1.ReasonMaintenanceTooLong)
	switch m := seen.Maintenance; {
	case m != nil && m.May:
		say(metav1.ConditionTrue, m.Reason, m.Message)
	case !asked && seen.BootID != "" && node.Status.BootID != "" && seen.BootID != node.Status.BootID:
		say(metav1.ConditionFalse, v1alpha1.ReasonRebooted, fmt.Sprintf("node %s rebooted without a drain, so its servers went away without notice. "+
			"Before the next reboot, drain it (kubectl drain %s --ignore-daemonsets)", node.Spec.Node, node.Spec.Node))
	case m != nil:
		say(metav1.ConditionFalse, m.Reason, m.Message)
	case was == nil || was.Reason != v1alpha1.ReasonRebooted:
		meta.RemoveStatusCondition(&status.Conditions, v1alpha1.ConditionMaintenance)
	}
}
