//go:build envtest

package apiserver

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/diff"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
)

// tenant restricts lists to one test's objects.
type tenant struct {
	client.Client
	namespaces []string

	mutex sync.Mutex
	// lent holds the read-only objects that were returned.
	lent []loan
}

// loan is a read-only object that was returned, with the original objects of its list.
type loan struct {
	object runtime.Object
	was    map[types.UID]runtime.Object
}

// Tenant returns a client for a controller that lists objects of the whole cluster. It lists only the objects of one test: those in the
// given namespaces, and those without a namespace whose name starts with one of them and a dash. Therefore concurrent tests don't see each
// other's ports and disks. Everything else is done by the given client.
func Tenant(c client.Client, namespaces ...string) client.Client {
	return &tenant{Client: c, namespaces: namespaces}
}

// List implements client.Reader.
func (t *tenant) List(ctx context.Context, list client.ObjectList, options ...client.ListOption) error {
	asked := (&client.ListOptions{}).ApplyOptions(options)
	if asked.UnsafeDisableDeepCopy == nil || !*asked.UnsafeDisableDeepCopy {
		return t.list(ctx, asked, list, options...)
	}
	if err := t.list(ctx, asked, list, options...); err != nil {
		return err
	}
	return t.lend(list)
}

// Unchanged returns an error if a read-only object from a Tenant was changed since. In a manager, a list without copies
// (client.UnsafeDisableDeepCopy) belongs to the cache. Here it does not, so a change would otherwise go unnoticed. The list itself may be
// reordered.
func Unchanged(c client.Client) error {
	t, is := c.(*tenant)
	if !is {
		return nil
	}
	t.mutex.Lock()
	defer t.mutex.Unlock()
	for _, l := range t.lent {
		o, is := l.object.(client.Object)
		if !is || o.GetUID() == "" {
			continue // its slot in the list was cleared
		}
		if was, known := l.was[o.GetUID()]; !known || !equality.Semantic.DeepEqual(was, l.object) {
			return fmt.Errorf("%T %s was to be read alone, and was changed: %s", o, o.GetName(), diff.Diff(was, l.object))
		}
	}
	return nil
}

func (t *tenant) lend(list client.ObjectList) error {
	items, err := meta.ExtractList(list)
	if err != nil {
		return err
	}
	was := map[types.UID]runtime.Object{}
	t.mutex.Lock()
	defer t.mutex.Unlock()
	for _, item := range items {
		if o, is := item.(client.Object); is {
			was[o.GetUID()] = item.DeepCopyObject()
		}
		t.lent = append(t.lent, loan{item, was})
	}
	return nil
}

func (t *tenant) list(ctx context.Context, asked *client.ListOptions, list client.ObjectList, options ...client.ListOption) error {
	if asked.Namespace != "" {
		return t.Client.List(ctx, list, options...)
	}
	kind, err := apiutil.GVKForObject(list, t.Scheme())
	if err != nil {
		return fmt.Errorf("can't tell the kind of a list: %w", err)
	}
	kind.Kind = strings.TrimSuffix(kind.Kind, "List")
	namespaced, err := apiutil.IsGVKNamespaced(kind, t.RESTMapper())
	if err != nil {
		return fmt.Errorf("can't tell whether %s has a namespace: %w", kind.Kind, err)
	}
	if !namespaced {
		if err := t.Client.List(ctx, list, options...); err != nil {
			return err
		}
		items, err := meta.ExtractList(list)
		if err != nil {
			return err
		}
		return meta.SetList(list, slices.DeleteFunc(items, t.foreign))
	}
	var all []runtime.Object
	for _, namespace := range t.namespaces {
		if err := t.Client.List(ctx, list, append(slices.Clone(options), client.InNamespace(namespace))...); err != nil {
			return err
		}
		items, err := meta.ExtractList(list)
		if err != nil {
			return err
		}
		for _, item := range items {
			all = append(all, item.DeepCopyObject()) // the next list is read into the same memory
		}
	}
	return meta.SetList(list, all)
}

// foreign is true for an object without a namespace that belongs to another test.
func (t *tenant) foreign(object runtime.Object) bool {
	o, is := object.(client.Object)
	return !is || !slices.ContainsFunc(t.namespaces, func(namespace string) bool { return strings.HasPrefix(o.GetName(), namespace+"-") })
}
