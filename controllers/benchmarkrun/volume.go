package benchmarkrun

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	"parallelfs.dev/operator/api/v1alpha1"
	"parallelfs.dev/operator/controllers/benchmarkrun/jobs"
	"parallelfs.dev/operator/controllers/benchmarkrun/scope"
	"parallelfs.dev/operator/controllers/refusals"
	"parallelfs.dev/operator/internal/backend"
)

// gatherVolume reads the claim of a run with its volume and its StorageClass. They are read one by one from the API server, because the
// manager has no other use for them, and only the right to get them.
func (r *Reconciler) gatherVolume(ctx context.Context, w *scope.Scope) error {
	w.Volume = &scope.Volume{}
	w.Mount = backend.Mount{Path: scope.VolumePath}
	w.Clients = w.Places()
	claim := &corev1.PersistentVolumeClaim{}
	key := client.ObjectKey{Namespace: w.Run.Namespace, Name: w.ClaimName()}
	if found, err := r.find(ctx, key, claim); err != nil || !found {
		return err
	}
	if w.MakesClaim() && !metav1.IsControlledBy(claim, w.Run) {
		return foreign("PersistentVolumeClaim", claim.Name, w.Run)
	}
	w.Volume.Claim = claim
	if name := claim.Spec.VolumeName; name != "" {
		volume := &corev1.PersistentVolume{}
		if found, err := r.find(ctx, client.ObjectKey{Name: name}, volume); err != nil {
			return err
		} else if found {
			w.Volume.PersistentVolume = volume
		}
	}
	if name := claim.Spec.StorageClassName; name != nil && *name != "" {
		class := &storagev1.StorageClass{}
		if found, err := r.find(ctx, client.ObjectKey{Name: *name}, class); err != nil {
			return err
		} else if found {
			w.Volume.Class = class
		}
	}
	if w.Volume.Bound() {
		return nil
	}
	trouble, err := refusals.WarningOf(ctx, r.Reader, refusals.Owner{
		Kind: "PersistentVolumeClaim", Namespace: claim.Namespace, Name: claim.Name, Since: claim.CreationTimestamp.Time,
	})
	w.Volume.Trouble = v1alpha1.Cut(trouble, scope.MaxBaseline)
	return err //nolint:wrapcheck // the error describes the request
}

// makeClaim creates the claim of a run on a StorageClass. The run owns it, so it is deleted with the run at the latest.
func (r *Reconciler) makeClaim(ctx context.Context, w *scope.Scope, render jobs.Renderer) error {
	claim, err := render.Claim()
	if err != nil {
		return err //nolint:wrapcheck // it names the field
	}
	if err := controllerutil.SetControllerReference(w.Run, claim, r.Client.Scheme()); err != nil {
		return fmt.Errorf("set the owner of PersistentVolumeClaim %s: %w", claim.Name, err)
	}
	if err := r.Client.Create(ctx, claim); err != nil && !apierrors.IsAlreadyExists(err) {
		return fmt.Errorf("create PersistentVolumeClaim %s: %w", claim.Name, err)
	}
	return nil
}

// removeClaim deletes the claim that the run has made, and no other claim of that name.
func (r *Reconciler) removeClaim(ctx context.Context, w *scope.Scope) error {
	claim := w.Volume.Claim
	if !w.MakesClaim() || !metav1.IsControlledBy(claim, w.Run) {
		return foreign("PersistentVolumeClaim", claim.Name, w.Run)
	}
	uid := claim.UID
	if err := r.Client.Delete(ctx, claim, client.Preconditions{UID: &uid}); client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("delete PersistentVolumeClaim %s: %w", claim.Name, err)
	}
	return nil
}

// find reads an object from the API server; false if there is none.
func (r *Reconciler) find(ctx context.Context, key client.ObjectKey, into client.Object) (bool, error) {
	err := r.Reader.Get(ctx, key, into)
	if apierrors.IsNotFound(err) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("read %T %s: %w", into, key.Name, err)
	}
	return true, nil
}
