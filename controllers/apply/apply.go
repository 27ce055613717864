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
	// Kinds are the kinds in which CompareAll looks for children that are not wanted.
	Kinds []client.ObjectList
	// equal are the children that are as they should be, by what was compared: most are, in each pass. settled are those that the API server
	// would leave as they are, although they look different, by their content.
	equal, settled known
}

// Comparison is what there is of an owner's children, beside what should be there.
type Comparison struct {
	applier *Applier
	owner   client.Object
	// wanted children in their order, those among them that are not written, and those that are there and not wanted.
	wanted   []child
	held     map[childKey]bool
	unwanted []child
	// err is why not all that are there could be listed.
	err error
}

// child is one child that is wanted or there.
type child struct {
	key    childKey
	change Change
	// intent is sent for one that is missing or changed; object is the wanted one, or the one that is not wanted.
	intent *unstructured.Unstructured
	object client.Object
	err    error
}

// Compare compares the wanted children of the owner with what is there, and writes nothing. They get the labels. Of a
// PartialObjectMetadata, nothing is compared: it stays as it is (backend.Keep), or, when it has a time of deletion, it goes
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

// CompareAll is Compare, and finds the children of Kinds as well that carry the labels and are controlled by the owner, but are not wanted.
func (a *Applier) CompareAll(ctx context.Context, owner client.Object, labels map[string]string, wanted []client.Object) *Comparison {
	c := a.Compare(ctx, owner, labels, wanted)
	keep := map[childKey]bool{}
	for i := range c.wanted {
		keep[c.wanted[i].key] = true
	}
	c.unwanted, c.err = a.unwanted(ctx, owner, labels, keep)
	return c
}

// Hold leaves some children as they are.
func (c *Comparison) Hold(differences ...Difference) {
	for _, d := range differences {
		c.held[d.key] = true
	}
}

// Apply makes the children as they should be, in the order given, and removes those that are not wanted. It goes on after an error, so that
// one bad child does not hide another, and returns all of them joined.
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
		a.equal.add(key, as)
		return key, nil, nothing, nil
	}
	// Only what is compared like for like shows that an admission webhook has rewritten it, and would do so again.
	if same, err := a.staysTheSame(ctx, key, live, intent); err != nil || same {
		return key, nil, nothing, err
	}
	return key, intent, Changed, nil
}

// comparedAs is a hash of a wanted child, its owner and the version of the live one.
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

// write makes or changes a child.
func (a *Applier) write(ctx context.Context, w *child) error {
	err := a.Client.Apply(ctx, client.ApplyConfigurationFromUnstructured(w.intent), client.ForceOwnership, client.FieldOwner(FieldOwner))
	if apierrors.IsInvalid(err) && w.change == Changed && w.key.kind == jobKind {
		// A Job can't be changed, such as in how its image is pulled: it goes, and the next pass makes it anew.
		return a.deleteJob(ctx, w.key)
	}
	if err != nil {
		return fmt.Errorf("apply %s %s: %w", w.key.kind.Kind, w.key.name, err)
	}
	return nil
}

// remove deletes a child that is not wanted.
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

// unwanted are the children that are not to be kept.
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
