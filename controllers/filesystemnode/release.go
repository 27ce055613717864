package filesystemnode

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"parallelfs.dev/operator/api/v1alpha1"
	"parallelfs.dev/operator/controllers/cached"
	"parallelfs.dev/operator/controllers/conditions"
	"parallelfs.dev/operator/internal/backend"
)

// release removes the finalizer of a deleted FileSystemNode that no longer records anything: its FileSystem is deleted or has released
// everything, or all of its servers have retired. Their ids stay used, because they are in the FileSystem's status. It returns true when
// the object is removed.
func (r *Reconciler) release(ctx context.Context, node *v1alpha1.FileSystemNode) (bool, error) {
	if node.DeletionTimestamp.IsZero() || !controllerutil.ContainsFinalizer(node, v1alpha1.Finalizer) {
		return false, nil
	}
	if len(serving(node)) > 0 {
		// The cache may still have a FileSystem; only the API server can prove that it is deleted.
		for _, from := range []client.Reader{r.Client, r.Reader} {
			if alone, err := left(ctx, from, node); err != nil || !alone {
				return false, err
			}
		}
	}
	after := node.DeepCopy()
	controllerutil.RemoveFinalizer(after, v1alpha1.Finalizer)
	// The write requires the version that was read: a server that was added meanwhile must stay on record.
	err := r.Client.Patch(ctx, after, client.MergeFromWithOptions(node, client.MergeFromWithOptimisticLock{}))
	if client.IgnoreNotFound(err) != nil {
		return false, fmt.Errorf("release FileSystemNode %s: %w", node.Name, err)
	}
	return true, nil
}

// left is true when the FileSystem of a FileSystemNode is deleted, or is being deleted and has nothing left.
func left(ctx context.Context, from client.Reader, node *v1alpha1.FileSystemNode) (bool, error) {
	fs := &v1alpha1.FileSystem{}
	err := from.Get(ctx, client.ObjectKey{Namespace: node.Namespace, Name: node.Spec.FileSystem.Name}, fs)
	switch {
	case apierrors.IsNotFound(err):
		return true, nil
	case err != nil:
		return false, fmt.Errorf("read the FileSystem of FileSystemNode %s: %w", node.Name, err)
	default:
		return string(fs.UID) != node.Spec.FileSystem.UID ||
			!fs.DeletionTimestamp.IsZero() && !controllerutil.ContainsFinalizer(fs, v1alpha1.Finalizer), nil
	}
}

// serving returns the names of the servers that have not retired.
func serving(node *v1alpha1.FileSystemNode) []string {
	var out []string
	for i := range node.Spec.Members {
		if m := &node.Spec.Members[i]; !m.Retired {
			out = append(out, m.Name)
		}
	}
	return out
}

// sayKept writes the reason why a deleted FileSystemNode still exists into its status.
func sayKept(node *v1alpha1.FileSystemNode, status *v1alpha1.FileSystemNodeStatus) {
	members := serving(node)
	if node.DeletionTimestamp.IsZero() || len(members) == 0 {
		return
	}
	if was := meta.FindStatusCondition(node.Status.Conditions, v1alpha1.ConditionStalled); was != nil {
		meta.SetStatusCondition(&status.Conditions, *was) // with the time since when it is kept
	}
	conditions.Add(&status.Conditions, node.Generation, v1alpha1.ConditionReady, v1alpha1.ConditionStalled, metav1.ConditionTrue,
		v1alpha1.ReasonRecordKept, fmt.Sprintf("this FileSystemNode was deleted, but is kept as the record of the assignments of %s. The servers continue. It is removed when FileSystem %s "+
			"is deleted, or when all its servers have retired", backend.List(members), node.Spec.FileSystem.Name))
}

// announce makes an event when a deletion begins to wait, and for news about a maintenance.
func (r *Reconciler) announce(node *v1alpha1.FileSystemNode, after v1alpha1.FileSystemNodeStatus) {
	r.announceMaintenance(node, after)
	is := meta.FindStatusCondition(after.Conditions, v1alpha1.ConditionStalled)
	if is == nil || meta.FindStatusCondition(node.Status.Conditions, v1alpha1.ConditionStalled) != nil {
		return
	}
	r.Recorder.Eventf(node, nil, corev1.EventTypeWarning, is.Reason, "Keep", "%s", v1alpha1.Cut(is.Message, conditions.MaxNote))
}

// announceMaintenance makes an event when the reason of the condition Maintenance changes, and when a maintenance is over.
func (r *Reconciler) announceMaintenance(node *v1alpha1.FileSystemNode, after v1alpha1.FileSystemNodeStatus) {
	was := meta.FindStatusCondition(node.Status.Conditions, v1alpha1.ConditionMaintenance)
	is := meta.FindStatusCondition(after.Conditions, v1alpha1.ConditionMaintenance)
	switch {
	case is == nil && was != nil && was.Status == metav1.ConditionTrue:
		r.Recorder.Eventf(node, nil, corev1.EventTypeNormal, v1alpha1.ReasonHealthy, "Maintain",
			"The maintenance of node %s is over", node.Spec.Node)
	case is == nil || was != nil && was.Reason == is.Reason:
	case is.Status == metav1.ConditionTrue:
		r.Recorder.Eventf(node, nil, corev1.EventTypeNormal, is.Reason, "Maintain", "%s", v1alpha1.Cut(is.Message, conditions.MaxNote))
	default:
		r.Recorder.Eventf(node, nil, corev1.EventTypeWarning, is.Reason, "Maintain", "%s", v1alpha1.Cut(is.Message, conditions.MaxNote))
	}
}

// deleted returns the FileSystemNodes of a FileSystem that wait for their removal.
func (r *Reconciler) deleted(ctx context.Context, fs client.Object) []reconcile.Request {
	var all v1alpha1.FileSystemNodeList
	of := client.MatchingFields{cached.ByFileSystem: fs.GetName()}
	if err := r.Client.List(ctx, &all, client.InNamespace(fs.GetNamespace()), of, client.UnsafeDisableDeepCopy); err != nil {
		return nil // the cache answers this
	}
	var requests []reconcile.Request
	for i := range all.Items {
		if n := &all.Items[i]; !n.DeletionTimestamp.IsZero() {
			requests = append(requests, reconcile.Request{NamespacedName: client.ObjectKeyFromObject(n)})
		}
	}
	return requests
}
