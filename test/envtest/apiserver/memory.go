//go:build envtest

package apiserver

import (
	"cmp"
	"context"
	"reflect"
	"sync"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
)

// memory caches the API server's answers to reads until this process writes an object of the same kind and namespace. A story reads the
// same objects in each of many passes, and equal answers would take most of a test's time.
//
// A cached answer equals a direct one only if all writers of the namespace use clients with this memory. Nothing else writes there: the
// server has no controllers. Objects without a namespace have a cache for the test that they belong to: see shard.
type memory struct {
	mutex sync.Mutex
	// writes counts the writes by place, and everywhere counts writes that may affect any place.
	writes     map[place]int
	everywhere int
	// answers holds the cached answers by question.
	answers map[question]answer
}

// place is the scope of a write's effect on answers. An empty shard means the whole cluster.
type place struct {
	kind  schema.GroupKind
	shard string
}

// question is a read.
type question struct {
	place
	// into is the type that the answer is decoded into, because one object has several.
	into reflect.Type
	// name is the name of the object; labels and fields are the selectors of a list.
	name, labels, fields string
}

// answer is an object, a list or the error NotFound, with the number of writes to its place at the time of the read.
type answer struct {
	object runtime.Object
	err    error
	writes int
}

func newMemory() *memory {
	return &memory{writes: map[place]int{}, answers: map[question]answer{}}
}

// over returns a client that reads through the memory.
func (m *memory) over(c client.WithWatch) client.WithWatch {
	return interceptor.NewClient(c, interceptor.Funcs{
		Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, o client.Object, opts ...client.GetOption) error {
			kind, err := apiutil.GVKForObject(o, c.Scheme())
			if err != nil || len(opts) > 0 {
				return c.Get(ctx, key, o, opts...)
			}
			q := question{place: place{kind.GroupKind(), shard(key.Namespace, key.Name)}, into: reflect.TypeOf(o), name: key.Name}
			return m.read(q, o, func() error { return c.Get(ctx, key, o) })
		},
		List: func(ctx context.Context, c client.WithWatch, l client.ObjectList, opts ...client.ListOption) error {
			q, known := listed(c, l, opts)
			if !known {
				return c.List(ctx, l, opts...)
			}
			return m.read(q, l, func() error { return c.List(ctx, l, opts...) })
		},
		Create: func(ctx context.Context, c client.WithWatch, o client.Object, opts ...client.CreateOption) error {
			return m.write(c, o, func() error { return c.Create(ctx, o, opts...) })
		},
		Update: func(ctx context.Context, c client.WithWatch, o client.Object, opts ...client.UpdateOption) error {
			return m.write(c, o, func() error { return c.Update(ctx, o, opts...) })
		},
		Patch: func(ctx context.Context, c client.WithWatch, o client.Object, p client.Patch, opts ...client.PatchOption) error {
			return m.write(c, o, func() error { return c.Patch(ctx, o, p, opts...) })
		},
		Apply: func(ctx context.Context, c client.WithWatch, o runtime.ApplyConfiguration, opts ...client.ApplyOption) error {
			apply := func() error { return c.Apply(ctx, o, opts...) }
			if len((&client.ApplyOptions{}).ApplyOptions(opts).DryRun) > 0 {
				return apply()
			}
			return m.write(c, o, apply)
		},
		Delete: func(ctx context.Context, c client.WithWatch, o client.Object, opts ...client.DeleteOption) error {
			return m.write(c, o, func() error { return c.Delete(ctx, o, opts...) })
		},
		DeleteAllOf: func(ctx context.Context, c client.WithWatch, o client.Object, opts ...client.DeleteAllOfOption) error {
			return m.write(c, nil, func() error { return c.DeleteAllOf(ctx, o, opts...) })
		},
		SubResourceCreate: func(ctx context.Context, c client.Client, sub string, o, s client.Object,
			opts ...client.SubResourceCreateOption) error {
			return m.write(c, o, func() error { return c.SubResource(sub).Create(ctx, o, s, opts...) })
		},
		SubResourceUpdate: func(ctx context.Context, c client.Client, sub string, o client.Object, opts ...client.SubResourceUpdateOption) error {
			return m.write(c, o, func() error { return c.SubResource(sub).Update(ctx, o, opts...) })
		},
		SubResourcePatch: func(ctx context.Context, c client.Client, sub string, o client.Object, p client.Patch,
			opts ...client.SubResourcePatchOption) error {
			return m.write(c, o, func() error { return c.SubResource(sub).Patch(ctx, o, p, opts...) })
		},
		SubResourceApply: func(ctx context.Context, c client.Client, sub string, o runtime.ApplyConfiguration,
			opts ...client.SubResourceApplyOption) error {
			return m.write(c, o, func() error { return c.SubResource(sub).Apply(ctx, o, opts...) })
		},
	})
}

// listed returns the question for a list. It returns false for a paged list, or for options that the memory does not support.
func listed(c client.Client, list client.ObjectList, opts []client.ListOption) (question, bool) {
	kind, err := apiutil.GVKForObject(list, c.Scheme())
	asked := (&client.ListOptions{}).ApplyOptions(opts)
	if err != nil || asked.Limit > 0 || asked.Continue != "" || asked.Raw != nil {
		return question{}, false
	}
	kind.Kind = kind.Kind[:len(kind.Kind)-len("List")]
	q := question{place: place{kind.GroupKind(), asked.Namespace}, into: reflect.TypeOf(list)}
	if asked.LabelSelector != nil {
		q.labels = asked.LabelSelector.String()
	}
	if asked.FieldSelector != nil {
		q.fields = asked.FieldSelector.String()
	}
	return q, true
}

// read answers from the memory, or calls ask and caches the answer unless there was a write in the meantime.
func (m *memory) read(q question, into runtime.Object, ask func() error) error {
	m.mutex.Lock()
	kept, known := m.answers[q]
	writes := m.writes[q.place] + m.everywhere
	m.mutex.Unlock()
	if known && kept.writes == writes {
		if kept.err == nil {
			reflect.ValueOf(into).Elem().Set(reflect.ValueOf(kept.object.DeepCopyObject()).Elem())
		}
		return kept.err
	}
	err := ask()
	if err != nil && !apierrors.IsNotFound(err) {
		return err
	}
	m.mutex.Lock()
	defer m.mutex.Unlock()
	if m.writes[q.place]+m.everywhere == writes {
		m.answers[q] = answer{into.DeepCopyObject(), err, writes}
	}
	return err
}

// write counts a write before and after it. A concurrent read may return either state, and is not cached.
func (m *memory) write(c client.Client, what any, do func() error) error {
	m.count(c, what)
	defer m.count(c, what) // the server may have chosen a name
	return do()
}

// count counts a write of an object, or a write everywhere if the object is unknown.
func (m *memory) count(c client.Client, what any) {
	m.mutex.Lock()
	defer m.mutex.Unlock()
	o, is := what.(client.Object)
	if !is {
		m.everywhere++
		return
	}
	kind, err := apiutil.GVKForObject(o, c.Scheme())
	if err != nil {
		m.everywhere++
		return
	}
	m.writes[place{kind.GroupKind(), shard(o.GetNamespace(), o.GetName())}]++
	m.writes[place{kind: kind.GroupKind()}]++
}

// shard returns the part of the cluster that an object belongs to: its namespace, or its own name.
func shard(namespace, name string) string { return cmp.Or(namespace, name) }
