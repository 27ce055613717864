// Package apply is the only writer of a FileSystem's children. It creates and changes the desired objects by server-side apply, removes the
// others, and writes nothing if nothing has changed.
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

// HashAnnotation holds the hash of the last applied object, without this annotation. It distinguishes a field that is no longer desired
// from one that another writer has set.
const HashAnnotation = "parallelfs.dev/applied-hash"

// Result counts what Apply wrote.
type Result struct {
	Applied, Deleted int
}

// Applier writes the children of one kind of owner.
type Applier struct {
	// Client reads from the cache and writes.
	Client client.Client
	// Kinds lists the kinds in which CompareAll searches for unwanted children.
	Kinds []client.ObjectList
	// equal remembers children that need no change, by the compared content, because most need none in each pass. settled remembers, by
	// content, children that look different but that the API server would leave as they are.
	equal, settled known
}

// Comparison holds the difference between an owner's existing and desired children.
type Comparison struct {
	applier *Applier
	owner   client.Object
	// wanted holds the desired children in their order, held the ones among them that are not written, and unwanted the existing ones to
	// remove.
	wanted   []child
	held     map[childKey]bool
	unwanted []child
	// err is the reason why not all existing children could be listed.
	err error
}

// child is one desired or existing child.
type child struct {
	key    childKey
	change Change
	// intent is sent if the child is missing or changed. object is the desired object, or the unwanted one.
	intent *unstructured.Unstructured
	object client.Object
	err    error
}

// Compare compares the desired children of the owner with the existing ones, and writes nothing. The labels are set on the desired
// children. A PartialObjectMetadata is not compared: it stays as it is (backend.Keep) or, if it has a deletion time, it is removed
// (backend.Absent).
func (a *Applier) Compare(ctx context.Context, owner client.Object, labels map[string]string, wanted []client.Object) *Comparison {
	c := &Comparison{applier: a, owner: owner, held: map[childKey]bool{}}
	for _, object := range wanted {
		if there, ok := object.(*metav1.PartialObjectMetadata); ok {
			key := childKey{there.GroupVersionKind().GroupKind(), client.ObjectKeyFromObject(there)}
			c.wanted = append(c.wanted, child{key: key, object: there})
			continue
		}
		key, intent, change, err := a.compare(ctx, owner, labels, object)
		c.wanted = append(c.wanted, child{key: key, change: change, intent: intent, object: object, err: err})
	}
	return c
}

// CompareAll extends Compare to unwanted children: objects of Kinds that have the labels and are controlled by the owner, but are not
// desired.
func (a *Applier) CompareAll(ctx context.Context, owner client.Object, labels map[string]string, wanted []client.Object) *Comparison {
	c := a.Compare(ctx, owner, labels, wanted)
	keep := map[childKey]bool{}
	for i := range c.wanted {
		keep[c.wanted[i].key] = true
	}
	c.unwanted, c.err = a.unwanted(ctx, owner, labels, keep)
	return c
}

// Hold excludes some children from being written.
func (c *Comparison) Hold(differences ...Difference) {
	for _, d := range differences {
		c.held[d.key] = true
	}
}

// Apply writes the desired children in the given order, and removes the unwanted ones. It continues after an error, so that one bad child
// does not hide another, and returns all errors joined.
func (c *Comparison) Apply(ctx context.Context) (Result, error) { return c.apply(ctx, oneByOne) }

// ApplyTogether is Apply for children whose order does not matter.
func (c *Comparison) ApplyTogether(ctx context.Context) (Result, error) {
	return c.apply(ctx, Together)
}

func (c *Comparison) apply(ctx context.Context, each func(n int, do func(i int) error) error) (Result, error) {
	applied, deleted := make([]int, len(c.wanted)), make([]int, len(c.wanted)+len(c.unwanted))
	writing := each(len(c.wanted), func(i int) (err error) {
		w := &c.wanted[i]
		switch {
		case w.err != nil:
			return w.err
		case c.held[w.key]:
		case w.object.GetDeletionTimestamp() != nil:
			deleted[i], err = c.applier.removeSecret(ctx, c.owner, w.key.name)
		case w.change != nothing:
			if err = c.applier.write(ctx, w); err == nil {
				applied[i] = 1
			}
		}
		return err
	})
	removing := each(len(c.unwanted), func(i int) error {
		u := &c.unwanted[i]
		if c.held[u.key] {
			return nil
		}
		err := c.applier.remove(ctx, u)
		if err == nil {
			deleted[len(c.wanted)+i] = 1
		}
		return err
	})
	return Result{Applied: sum(applied), Deleted: sum(deleted)}, errors.Join(c.err, writing, removing)
}

func sum(counts []int) (out int) {
	for _, n := range counts {
		out += n
	}
	return out
}

// removeSecret deletes a Secret that the owner controls, and returns the number of deleted Secrets.
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

// compare determines how a child differs from the desired one, and returns the object to send if it does.
func (a *Applier) compare(ctx context.Context, owner client.Object, labels map[string]string, object client.Object) (
	key childKey, intent *unstructured.Unstructured, change Change, err error,
) {
	gvk, err := apiutil.GVKForObject(object, a.Client.Scheme())
	if err != nil {
		return childKey{}, nil, nothing, fmt.Errorf("find the kind of child %q: %w", object.GetName(), err)
	}
	key = childKey{gvk.GroupKind(), client.ObjectKeyFromObject(object)}
	liveObject, err := a.Client.Scheme().New(gvk)
	if err != nil {
		return key, nil, nothing, fmt.Errorf("make an empty %s: %w", gvk.Kind, err)
	}
	live := liveObject.(client.Object)
	getErr := a.Client.Get(ctx, key.name, live, client.UnsafeDisableDeepCopy) // it is only read
	if client.IgnoreNotFound(getErr) != nil {
		return key, nil, nothing, fmt.Errorf("read %s %s: %w", gvk.Kind, key.name, getErr)
	}
	as, err := comparedAs(owner, labels, object, live)
	if err != nil {
		return key, nil, nothing, err
	}
	if a.equal.has(key, as) {
		return key, nil, nothing, nil
	}
	if intent, err = a.intent(owner, labels, object, gvk); err != nil {
		return key, nil, nothing, err
	}
	switch {
	case apierrors.IsNotFound(getErr):
		return key, intent, Missing, nil
	case metav1.GetControllerOf(live) == nil && isSameSecret(live, object):
		return key, nil, nothing, nil // a user made it first, to supply a secret of his own: it stays as it is
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
		a.equal.add(key, as)
		return key, nil, nothing, nil
	}
	// Only a comparison of equal forms shows that an admission webhook has rewritten the object and would do so again.
	if same, err := a.staysTheSame(ctx, key, live, intent); err != nil || same {
		return key, nil, nothing, err
	}
	return key, intent, Changed, nil
}

// comparedAs returns a hash of a desired child, its owner and the version of the live object.
func comparedAs(owner client.Object, labels map[string]string, object, live client.Object) ([sha256.Size]byte, error) {
	raw, err := json.Marshal(struct {
		Owner, Live types.UID
		Version     string
		Labels      map[string]string
		Object      client.Object
	}{owner.GetUID(), live.GetUID(), live.GetResourceVersion(), labels, object})
	if err != nil {
		return [sha256.Size]byte{}, fmt.Errorf("encode %s: %w", object.GetName(), err)
	}
	return sha256.Sum256(raw), nil
}

// write creates or changes a child.
func (a *Applier) write(ctx context.Context, w *child) error {
	err := a.Client.Apply(ctx, client.ApplyConfigurationFromUnstructured(w.intent), client.ForceOwnership, client.FieldOwner(FieldOwner))
	if apierrors.IsInvalid(err) && w.change == Changed && w.key.kind == jobKind {
		// A Job is immutable, for example its image pull policy: delete it, and the next pass creates it again.
		return a.deleteJob(ctx, w.key)
	}
	if err != nil {
		return fmt.Errorf("apply %s %s: %w", w.key.kind.Kind, w.key.name, err)
	}
	return nil
}

// remove deletes an unwanted child.
func (a *Applier) remove(ctx context.Context, u *child) error {
	uid := u.object.GetUID()
	err := a.Client.Delete(ctx, u.object, client.PropagationPolicy(metav1.DeletePropagationBackground), client.Preconditions{UID: &uid})
	if client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("delete %s %s: %w", u.key.kind.Kind, u.key.name, err)
	}
	return nil
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

// isSameSecret is true for a Secret that has everything desired.
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

// intent returns the object as it is sent: the given object with the owner, the labels and the hash, without a status.
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

// dropNulls removes null values, and empty objects that typed structs without omitempty leave behind, such as creationTimestamp and
// resources. Otherwise the operator would own fields that it never set.
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

// unwanted returns the children that are not in keep.
func (a *Applier) unwanted(ctx context.Context, owner client.Object, selector map[string]string, keep map[childKey]bool) ([]child, error) {
	var out []child
	var errs []error
	for _, empty := range a.Kinds {
		list := empty.DeepCopyObject().(client.ObjectList)
		if err := a.Client.List(ctx, list, client.InNamespace(owner.GetNamespace()), client.MatchingLabels(selector)); err != nil {
			errs = append(errs, fmt.Errorf("list children: %w", err))
			continue
		}
		errs = append(errs, eachItem(list, func(there client.Object) error {
			gvk, err := apiutil.GVKForObject(there, a.Client.Scheme())
			if err != nil {
				return fmt.Errorf("find the kind of child %q: %w", there.GetName(), err)
			}
			key := childKey{gvk.GroupKind(), client.ObjectKeyFromObject(there)}
			if !keep[key] && metav1.IsControlledBy(there, owner) && there.GetDeletionTimestamp() == nil {
				out = append(out, child{key: key, change: Unwanted, object: there})
			}
			return nil
		}))
	}
	return out, errors.Join(errs...)
}
