//go:build envtest

package apiserver

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
)

// tenant lists what is of its own.
type tenant struct {
	client.Client
	namespaces []string
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
