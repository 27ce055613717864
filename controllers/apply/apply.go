// Package apply is the only writer of a FileSystem's children: it applies what should be there by server-side apply,
// removes what should not, and writes nothing when nothing has changed.
package apply

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"maps"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	"parallelfs.dev/operator/api/v1alpha1"
)

// FieldOwner is the manager's name in managedFields.
const FieldOwner = "parallelfs-operator"

// HashAnnotation holds the hash of the object as it was last applied, without this annotation. It tells a field
// that is no longer wanted from one that somebody else has set.
const HashAnnotation = "parallelfs.dev/applied-hash"

// Result counts what Apply wrote.
type Result struct {
	Applied, Deleted int
}

// Applier writes the children of one kind of owner.
type Applier struct {
	// Client reads from the cache and writes.
	Client client.Client
	// Kinds are the kinds that children can have; Prune looks at each of them.
	Kinds []client.ObjectList
	// settled are the children that the API server would leave as they are, although they look different.
	settled settled
}

// Apply makes the cluster hold exactly the wanted children of the owner, in the order given, and removes children that
// carry the given labels and are controlled by the owner but are not wanted. Of a PartialObjectMetadata, nothing is written: it
// is not removed (backend.Keep), or, when it has a time of deletion, it is (backend.Absent). It goes on after an error, so that one bad
// child does not hide another, and returns all of them joined.
func (a *Applier) Apply(ctx context.Context, owner client.Object, selector map[string]string, wanted []client.Object) (Result, error) {
	result, keep, applyErr := a.applyAll(ctx, owner, selector, wanted)
	// Without a full picture of what is wanted nothing is removed: a child that failed to apply is still in keep.
	deleted, err := a.prune(ctx, owner, selector, keep)
	result.Deleted += deleted
	return result, errors.Join(applyErr, err)
}

// Ensure makes the cluster hold the wanted children of the owner as Apply does, and removes none.
func (a *Applier) Ensure(ctx context.Context, owner client.Object, labels map[string]string, wanted []client.Object) (Result, error) {
	result, _, err := a.applyAll(ctx, owner, labels, wanted)
	return result, err
}

func (a *Applier) applyAll(ctx context.Context, owner client.Object, labels map[string]string,
	wanted []client.Object) (Result, map[childKey]bool, error) {
	var result Result
	var errs []error
	keep := map[childKey]bool{}
	for _, object := range wanted {
		if there, ok := object.(*metav1.PartialObjectMetadata); ok {
			keep[childKey{there.GroupVersionKind().GroupKind(), client.ObjectKeyFromObject(there)}] = true
			if there.DeletionTimestamp != nil {
				deleted, err := a.removeSecret(ctx, owner, client.ObjectKeyFromObject(there))
				result.Deleted += deleted
				errs = append(errs, err)
			}
			continue
		}
		key, wrote, err := a.applyOne(ctx, owner, labels, object)
		keep[key] = true
		if err != nil {
			errs = append(errs, err)
			continue
		}
		if wrote {
			result.Applied++
		}
	}
	return result, keep, errors.Join(errs...)
}

// removeSecret deletes a Secret that the owner controls, and returns how many it was.
func (a *Applier) removeSecret(ctx context.Context, owner client.Object, name types.NamespacedName) (int, error) {
	secret := &corev1.Secret{}
	err := a.Client.Get(ctx, name, secret)
	if apierrors.IsNotFound(err) || err == nil && !metav1.IsControlledBy(secret, owner) {
		return 0, nil
	}
	if err == nil {
		err = a.Client.Delete(ctx, secret, client.Preconditions{UID: &secret.UID})
	}
	if client.IgnoreNotFound(err) != nil {
		return 0, fmt.Errorf("remove Secret %s, which is not needed any more: %w", name.Name, err)
	}
	return 1, nil
}

type childKey struct {
	kind schema.GroupKind
	name types.NamespacedName
}

// compare says how a child differs from the wanted one, with the object to send when it does.
func (a *Applier) compare(ctx context.Context, owner client.Object, labels map[string]string, object client.Object) (
	key childKey, intent *unstructured.Unstructured, change Change, err error,
) {
	gvk, err := apiutil.GVKForObject(object, a.Client.Scheme())
	if err != nil {
		return childKey{}, nil, nothing, fmt.Errorf("find the kind of child %q: %w", object.GetName(), err)
	}
	key = childKey{gvk.GroupKind(), client.ObjectKeyFromObject(object)}
	if intent, err = a.intent(owner, labels, object, gvk); err != nil {
		return key, nil, nothing, err
	}
	liveObject, err := a.Client.Scheme().New(gvk)
	if err != nil {
		return key, nil, nothing, fmt.Errorf("make an empty %s: %w", gvk.Kind, err)
	}
	live := liveObject.(client.Object)
	err = a.Client.Get(ctx, key.name, live)
	switch {
	case apierrors.IsNotFound(err):
		return key, intent, Missing, nil
	case err != nil:
		return key, nil, nothing, fmt.Errorf("read %s %s: %w", gvk.Kind, key.name, err)
	case metav1.GetControllerOf(live) == nil && isSameSecret(live, object):
		return key, nil, nothing, nil // the user's own, who made it first, to bring a secret of his own: it stays as it is, and his
	case !metav1.IsControlledBy(live, owner):
		return key, nil, nothing, fmt.Errorf("%s %s exists and does not belong to %s; delete or rename it", gvk.Kind, key.name, owner.GetName())
	}
	current, err := runtime.DefaultUnstructuredConverter.ToUnstructured(live)
	if err != nil {
		return key, nil, nothing, fmt.Errorf("convert %s %s: %w", gvk.Kind, key.name, err)
	}
	if live.GetAnnotations()[HashAnnotation] != intent.GetAnnotations()[HashAnnotation] {
		return key, intent, Changed, nil
	}
	if holds(current, intent.Object) {
		return key, nil, nothing, nil
	}
	// Only what is compared like for like shows that an admission webhook has rewritten it, and would do so again.
	if same, err := a.staysTheSame(ctx, key, live, intent); err != nil || same {
		return key, nil, nothing, err
	}
	return key, intent, Changed, nil
}

func (a *Applier) applyOne(ctx context.Context, owner client.Object, labels map[string]string,
	object client.Object) (childKey, bool, error) {
	key, intent, change, err := a.compare(ctx, owner, labels, object)
	if err != nil || change == nothing {
		return key, false, err
	}
	err = a.Client.Apply(ctx, client.ApplyConfigurationFromUnstructured(intent), client.ForceOwnership, client.FieldOwner(FieldOwner))
	if apierrors.IsInvalid(err) && change == Changed && key.kind == jobKind {
		// A Job can't be changed, such as in how its image is pulled: it goes, and the next pass makes it anew.
		return key, true, a.deleteJob(ctx, key)
	}
	if err != nil {
		return key, false, fmt.Errorf("apply %s %s: %w", key.kind.Kind, key.name, err)
	}
	return key, true, nil
}

var jobKind = schema.GroupKind{Group: batchv1.GroupName, Kind: "Job"}

func (a *Applier) deleteJob(ctx context.Context, key childKey) error {
	job := &batchv1.Job{}
	if err := a.Client.Get(ctx, key.name, job); err != nil {
		return client.IgnoreNotFound(fmt.Errorf("read Job %s: %w", key.name, err))
	}
	uid := job.UID
	err := a.Client.Delete(ctx, job, client.PropagationPolicy(metav1.DeletePropagationBackground), client.Preconditions{UID: &uid})
	if client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("delete Job %s, which can't be changed to what it should be: %w", key.name, err)
	}
	return nil
}

// isSameSecret is true for a Secret that has all that is wanted of one.
func isSameSecret(live, wanted client.Object) bool {
	have, ok := live.(*corev1.Secret)
	want, ok2 := wanted.(*corev1.Secret)
	if !ok || !ok2 || len(want.Data) == 0 {
		return false
	}
	for name, value := range want.Data {
		if there, ok := have.Data[name]; !ok || !bytes.Equal(there, value) {
			return false
		}
	}
	return true
}

// intent is the object as it is sent: the given object with the owner, the labels and the hash, without a status.
func (a *Applier) intent(owner client.Object, labels map[string]string, object client.Object,
	gvk schema.GroupVersionKind) (*unstructured.Unstructured, error) {
	object = object.DeepCopyObject().(client.Object)
	if err := controllerutil.SetControllerReference(owner, object, a.Client.Scheme()); err != nil {
		return nil, fmt.Errorf("set the owner of %s %s: %w", gvk.Kind, object.GetName(), err)
	}
	merged := maps.Clone(object.GetLabels())
	if merged == nil {
		merged = map[string]string{}
	}
	maps.Copy(merged, labels)
	merged[v1alpha1.LabelManagedBy] = v1alpha1.ManagedBy
	object.SetLabels(merged)

	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(object)
	if err != nil {
		return nil, fmt.Errorf("convert %s %s: %w", gvk.Kind, object.GetName(), err)
	}
	delete(content, "status")
	dropNulls(content)
	u := &unstructured.Unstructured{Object: content}
	u.SetGroupVersionKind(gvk)
	raw, err := json.Marshal(u.Object)
	if err != nil {
		return nil, fmt.Errorf("encode %s %s: %w", gvk.Kind, object.GetName(), err)
	}
	sum := sha256.Sum256(raw)
	annotations := u.GetAnnotations()
	if annotations == nil {
		annotations = map[string]string{}
	}
	annotations[HashAnnotation] = hex.EncodeToString(sum[:8])
	u.SetAnnotations(annotations)
	return u, nil
}

// dropNulls removes null values and the empty objects that typed structs without omitempty leave behind, such as
// creationTimestamp and resources: the operator would own fields that it never set.
func dropNulls(object map[string]any) {
	for key, value := range object {
		switch v := value.(type) {
		case nil:
			delete(object, key)
		case map[string]any:
			dropNulls(v)
			if len(v) == 0 && (key == "resources" || key == "strategy" || key == "updateStrategy") {
				delete(object, key)
			}
		case []any:
			for _, item := range v {
				if m, ok := item.(map[string]any); ok {
					dropNulls(m)
				}
			}
		}
	}
}

func (a *Applier) prune(ctx context.Context, owner client.Object, selector map[string]string, keep map[childKey]bool) (int, error) {
	deleted := 0
	err := a.unwanted(ctx, owner, selector, keep, func(key childKey, child client.Object) error {
		uid := child.GetUID()
		err := a.Client.Delete(ctx, child, client.PropagationPolicy(metav1.DeletePropagationBackground), client.Preconditions{UID: &uid})
		if client.IgnoreNotFound(err) != nil {
			return fmt.Errorf("delete %s %s: %w", key.kind.Kind, key.name, err)
		}
		deleted++
		return nil
	})
	return deleted, err
}

// unwanted calls each with every child that is not to be kept.
func (a *Applier) unwanted(ctx context.Context, owner client.Object, selector map[string]string, keep map[childKey]bool,
	each func(childKey, client.Object) error) error {
	var errs []error
	for _, empty := range a.Kinds {
		list := empty.DeepCopyObject().(client.ObjectList)
		if err := a.Client.List(ctx, list, client.InNamespace(owner.GetNamespace()), client.MatchingLabels(selector)); err != nil {
			errs = append(errs, fmt.Errorf("list children: %w", err))
			continue
		}
		err := eachItem(list, func(child client.Object) error {
			gvk, err := apiutil.GVKForObject(child, a.Client.Scheme())
			if err != nil {
				return fmt.Errorf("find the kind of child %q: %w", child.GetName(), err)
			}
			key := childKey{gvk.GroupKind(), client.ObjectKeyFromObject(child)}
			if keep[key] || !metav1.IsControlledBy(child, owner) || child.GetDeletionTimestamp() != nil {
				return nil
			}
			return each(key, child)
		})
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}
