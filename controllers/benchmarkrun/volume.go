package benchmarkrun

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"parallelfs.dev/operator/api/v1alpha1"
	"parallelfs.dev/operator/controllers/benchmarkrun/scope"
	"parallelfs.dev/operator/controllers/refusals"
	"parallelfs.dev/operator/internal/backend"
)

// gatherVolume reads the claim of a run with its volume and its StorageClass. They are read past the cache, one by one: the manager has no
// other use for them, and may only get them.
func (r *Reconciler) gatherVolume(ctx context.Context, w *scope.Scope) error {
	w.Volume = &scope.Volume{}
	w.Mount = backend.Mount{Path: scope.VolumePath}
	w.Clients = w.Places()
	claim := &corev1.PersistentVolumeClaim{}
	key := client.ObjectKey{Namespace: w.Run.Namespace, Name: w.Run.Spec.Target.PersistentVolumeClaim.ClaimName}
	if found, err := r.find(ctx, key, claim); err != nil || !found {
		return err
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
	return err //nolint:wrapcheck // it says what it did
}

// find reads an object past the cache; false when there is none.
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
