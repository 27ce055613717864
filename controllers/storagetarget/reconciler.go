// Package storagetarget reconciles StorageTargets: it writes the filesystem's own state of a target, and removes the finalizer of a deleted
// one when its disk was released. The agent on the target's node does everything that touches the disk.
package storagetarget

import (
	"context"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/events"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"parallelfs.dev/operator/api/v1alpha1"
	"parallelfs.dev/operator/controllers/apply"
	"parallelfs.dev/operator/controllers/conditions"
	"parallelfs.dev/operator/controllers/failures"
	"parallelfs.dev/operator/controllers/views"
	"parallelfs.dev/operator/internal/backend"
)

// FieldOwner is the owner of the operator's conditions in a StorageTarget's managedFields. The agent has its own, so that neither removes
// the conditions of the other.
const FieldOwner = "parallelfs-manager"

// maxMessage bounds a condition's message, in bytes.
const maxMessage = 4096

// Reconciler reconciles StorageTargets.
type Reconciler struct {
	Client client.Client
	// Reader reads from the API server.
	Reader   client.Reader
	Recorder events.EventRecorder
	// Views has the results of the passes over FileSystems.
	Views *views.Board

	failed failures.Teller
}

// +kubebuilder:rbac:groups=parallelfs.dev,resources=storagetargets,verbs=get;list;watch;create;patch;delete
// +kubebuilder:rbac:groups=parallelfs.dev,resources=storagetargets/status,verbs=patch
// +kubebuilder:rbac:groups=parallelfs.dev,resources=storagetargets/finalizers,verbs=update
// +kubebuilder:rbac:groups="",resources=namespaces,verbs=get
// +kubebuilder:rbac:groups=parallelfs.dev,resources=nodeinventories,verbs=get;list;watch

// Reconcile updates the operator's part of the status of one StorageTarget, or removes its finalizer.
func (r *Reconciler) Reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	target := &v1alpha1.StorageTarget{}
	err := r.reconcile(ctx, request, target)
	r.failed.Tell(r.Recorder, request.NamespacedName, target, err)
	return apply.Again(ctrl.Result{}, err)
}

func (r *Reconciler) reconcile(ctx context.Context, request ctrl.Request, target *v1alpha1.StorageTarget) error {
	if err := r.Client.Get(ctx, request.NamespacedName, target); err != nil {
		return client.IgnoreNotFound(err)
	}
	f, err := r.gather(ctx, target.DeepCopy())
	if err != nil {
		return err
	}
	if !target.DeletionTimestamp.IsZero() {
		if gone, err := r.release(ctx, f); gone || err != nil {
			return err
		}
	}
	if !known(f) {
		return nil // the first pass over the FileSystem triggers this controller again
	}
	return r.write(ctx, f.target, observe(f), service(f))
}

// gather reads the facts.
func (r *Reconciler) gather(ctx context.Context, target *v1alpha1.StorageTarget) (facts, error) {
	f := facts{target: target}
	fs := &v1alpha1.FileSystem{}
	found, err := r.find(ctx, client.ObjectKey{Namespace: target.Namespace, Name: target.Spec.FileSystem.Name}, fs)
	if err != nil {
		return f, err
	}
	if found && string(fs.UID) == target.Spec.FileSystem.UID {
		f.fileSystem = fs
		if observed, ok := r.Views.Target(client.ObjectKeyFromObject(fs), fs.UID, target.Name); ok {
			f.observed = &observed
		}
	}
	if f.node, err = r.find(ctx, client.ObjectKey{Name: target.Spec.Node}, &corev1.Node{}); err != nil {
		return f, err
	}
	inventory := &v1alpha1.NodeInventory{}
	if f.agent, err = r.find(ctx, client.ObjectKey{Name: target.Spec.Node}, inventory); err != nil {
		return f, err
	}
	carries := func(d v1alpha1.BlockDevice) bool { return d.Target == target.Namespace+"/"+target.Name }
	if i := slices.IndexFunc(inventory.Status.BlockDevices, carries); i >= 0 {
		f.disk = &inventory.Status.BlockDevices[i]
	}
	if !target.DeletionTimestamp.IsZero() {
		var n v1alpha1.FileSystemNode
		name := backend.FileSystemNodeName(target.Spec.FileSystem.Name, target.Spec.Node)
		there, err := r.find(ctx, client.ObjectKey{Namespace: target.Namespace, Name: name}, &n)
		if err != nil {
			return f, err
		}
		f.gaveUp = there && n.Spec.GivenUp != nil && n.Spec.FileSystem.UID == target.Spec.FileSystem.UID
	}
	if f.fileSystem != nil && !target.DeletionTimestamp.IsZero() && confirmsDestroy(f.fileSystem) {
		var namespace corev1.Namespace
		if err := r.Reader.Get(ctx, client.ObjectKey{Name: target.Namespace}, &namespace); err != nil {
			return f, fmt.Errorf("read namespace %s: %w", target.Namespace, err)
		}
		f.namespaceEnds = !namespace.DeletionTimestamp.IsZero()
	}
	return f, nil
}

// find returns an object of the cache itself, which must not be changed: a NodeInventory has 30 KiB, and is read for each disk.
func (r *Reconciler) find(ctx context.Context, key client.ObjectKey, into client.Object) (bool, error) {
	err := r.Client.Get(ctx, key, into, client.UnsafeDisableDeepCopy)
	if apierrors.IsNotFound(err) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("read %T %s: %w", into, key, err)
	}
	return true, nil
}

// release removes the finalizer of a deleted target when that is permitted, and announces it.
func (r *Reconciler) release(ctx context.Context, f facts) (bool, error) {
	if !controllerutil.ContainsFinalizer(f.target, v1alpha1.Finalizer) {
		return true, nil // another finalizer is left, or the cache is outdated
	}
	reason, message := mayGo(f)
	if reason == "" {
		return false, nil
	}
	// The decision holds for exactly the version that was read: a status that an agent writes meanwhile causes a conflict.
	before := f.target.DeepCopy()
	controllerutil.RemoveFinalizer(f.target, v1alpha1.Finalizer)
	if err := r.Client.Patch(ctx, f.target, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{})); err != nil {
		return false, client.IgnoreNotFound(fmt.Errorf("remove the finalizer of %s: %w", f.target.Name, err))
	}
	log.FromContext(ctx).Info("Released a target", "reason", reason, "what", message)
	kind := corev1.EventTypeNormal
	if reason == reasonGaveUp {
		kind = corev1.EventTypeWarning
	}
	r.Recorder.Eventf(f.target, related(f.fileSystem), kind, reason, "Release", "%s", v1alpha1.Cut(message, conditions.MaxNote))
	return true, nil
}

// write applies the operator's part of the status when it differs, and announces the changes.
func (r *Reconciler) write(
	ctx context.Context, target *v1alpha1.StorageTarget, wanted []metav1.Condition, service *v1alpha1.TargetService,
) error {
	var mine []metav1.Condition
	for _, c := range wanted {
		c.Message = v1alpha1.Cut(c.Message, maxMessage)
		// Setting it over the one that is there keeps the time of its last change.
		mine = append(mine, over(target.Status.Conditions, c))
	}
	if same(target.Status.Conditions, mine) && equality.Semantic.DeepEqual(target.Status.Service, service) {
		return nil
	}
	var list []any
	for i := range mine {
		content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(&mine[i])
		if err != nil {
			return fmt.Errorf("convert the condition %s: %w", mine[i].Type, err)
		}
		list = append(list, content)
	}
	status := map[string]any{"conditions": list}
	if service != nil {
		content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(service)
		if err != nil {
			return fmt.Errorf("convert the filesystem's report: %w", err)
		}
		status["service"] = content
	}
	intent := &unstructured.Unstructured{Object: map[string]any{
		"metadata": map[string]any{"name": target.Name, "namespace": target.Namespace, "uid": string(target.UID)},
		"status":   status,
	}}
	intent.SetGroupVersionKind(v1alpha1.GroupVersion.WithKind("StorageTarget"))
	err := r.Client.Status().Apply(ctx, client.ApplyConfigurationFromUnstructured(intent),
		client.ForceOwnership, client.FieldOwner(FieldOwner))
	if err != nil {
		return client.IgnoreNotFound(fmt.Errorf("write the status of %s: %w", target.Name, err))
	}
	r.announce(target, mine)
	return nil
}

// over is the condition after it was set in a list.
func over(list []metav1.Condition, c metav1.Condition) metav1.Condition {
	list = append([]metav1.Condition(nil), list...)
	meta.SetStatusCondition(&list, c)
	return *meta.FindStatusCondition(list, c.Type)
}

// same reports whether a list has exactly these conditions of the operator.
func same(list, mine []metav1.Condition) bool {
	for _, kind := range []string{v1alpha1.ConditionOnline, v1alpha1.ConditionSafeToRemove, v1alpha1.ConditionDiskHealthy} {
		if !equality.Semantic.DeepEqual(meta.FindStatusCondition(list, kind), meta.FindStatusCondition(mine, kind)) {
			return false
		}
	}
	return true
}
