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

// tenant lists what is of its own.
type tenant struct {
	client.Client
	namespaces []string

	mutex sync.Mutex
	// lent are the objects that were given out to be read alone.
	lent []loan
}

// loan is an object that was given out to be read alone, and what the objects of its list were.
type loan struct {
	object runtime.Object
	was    map[types.UID]runtime.Object
}

// Tenant is a client for a controller that lists objects of the whole cluster. To it the cluster is what belongs to one test: the objects
// in the given namespaces, and those without a namespace whose name starts with one of them and a dash. So tests that run at the same time
// see neither ports nor disks of each other. All else it does as the client that it was made of.
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

// Unchanged fails when an object that a Tenant has given out to be read alone was changed since. A list without copies
// (client.UnsafeDisableDeepCopy) is the cache's own in a manager; here it is not, and nobody else would see it. The list itself may be put
// into another order.
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
			continue // its place in the list was cleared
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

// foreign is true for an object without a namespace that is another test's.
func (t *tenant) foreign(object runtime.Object) bool {
	o, is := object.(client.Object)
	return !is || !slices.ContainsFunc(t.namespaces, func(namespace string) bool { return strings.HasPrefix(o.GetName(), namespace+"-") })
}
