package filesystem

import (
	"context"
	"math/rand/v2"
	"testing"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"

	"parallelfs.dev/operator/api/v1alpha1"
)

func TestEachItemIsPutWhereItBelongs(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 1))
	for range 1000 {
		from := random.Perm(random.IntN(10))
		items, want := make([]int, len(from)), make([]int, len(from))
		for i := range items {
			items[i] = i
		}
		copy(want, from)
		arrange(items, from)
		NewWithT(t).Expect(items).To(Equal(want))
	}
}

// listing is a cache that counts how often StorageTargets are listed. While it lists them, another thing may happen.
type listing struct {
	client.Client
	names     []string
	lists     int
	meanwhile func()
}

func (l *listing) List(_ context.Context, into client.ObjectList, _ ...client.ListOption) error {
	l.lists++
	list, _ := into.(*v1alpha1.StorageTargetList)
	for _, name := range l.names {
		t := v1alpha1.StorageTarget{ObjectMeta: metav1.ObjectMeta{Namespace: "storage", Name: name}}
		t.Spec.Node = name[:1]
		list.Items = append(list.Items, t)
	}
	if l.meanwhile != nil {
		l.meanwhile()
	}
	return nil
}

func TestTargetsAreReadAgainWhenOneOfThemHasChangedSince(t *testing.T) {
	g, all := NewWithT(t), &listing{names: []string{"b2", "a3", "b1", "a1"}}
	r := &Reconciler{Client: all}
	names := func() (out []string) {
		targets, err := r.targets(t.Context())
		g.Expect(err).NotTo(HaveOccurred())
		for i := range targets {
			out = append(out, targets[i].Name)
		}
		return out
	}
	g.Expect(names()).To(Equal([]string{"a1", "a3", "b1", "b2"}))
	names()
	g.Expect(all.lists).To(Equal(2), "nobody notes what changes")

	asked := 0
	events := r.all.watch(handler.Funcs{UpdateFunc: func(context.Context, event.UpdateEvent, queue) {
		asked++
		all.names[0] = "b3"
		g.Expect(names()).To(Equal([]string{"a1", "a3", "b1", "b3"}), "a pass that is asked for sees why")
		all.names[0] = "b2"
	}})
	names()
	names()
	g.Expect(all.lists).To(Equal(3), "nothing has changed since")
	events.Update(t.Context(), event.UpdateEvent{}, nil)
	g.Expect(asked).To(Equal(1))
	g.Expect(all.lists).To(Equal(4))
	for n, happens := range []func(){
		func() { events.Create(t.Context(), event.CreateEvent{}, nil) },
		func() { events.Delete(t.Context(), event.DeleteEvent{}, nil) },
		func() { events.Generic(t.Context(), event.GenericEvent{}, nil) },
	} {
		happens()
		names()
		g.Expect(all.lists).To(Equal(5 + n))
	}

	events.Delete(t.Context(), event.DeleteEvent{}, nil)
	all.meanwhile = func() { events.Delete(t.Context(), event.DeleteEvent{}, nil) }
	names()
	all.meanwhile = nil
	before := all.lists
	names()
	g.Expect(all.lists).To(Equal(before+1), "the list may be from before the change")
}
