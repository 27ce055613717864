package filesystem

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"

	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"parallelfs.dev/operator/api/v1alpha1"
)

// targetList is the list of all StorageTargets as a pass has read it last. While none of them changes, which is most of the time, the next
// pass takes the same: to list and to sort 24,000 of a kilobyte each would be a fifth of a pass, and of its memory. The zero value reads
// the list in each pass.
type targetList struct {
	mutex sync.Mutex
	// watched is true when each change is noted before a pass is asked for because of it.
	watched bool
	// changes counts the changes, and read is how many there had been before items were read; nil when they were not.
	changes, read int64
	items         []v1alpha1.StorageTarget
}

// known is what was read last, nil when something has changed since; changes is what to keep a new list with.
func (l *targetList) known() (items []v1alpha1.StorageTarget, changes int64) {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	if l.watched && l.read == l.changes {
		items = l.items
	}
	return items, l.changes
}

// keep keeps what was read after so many changes.
func (l *targetList) keep(items []v1alpha1.StorageTarget, changes int64) {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	if l.watched {
		l.items, l.read = items, changes
	}
}

// watch returns a handler that notes each change before another one asks for a pass because of it.
func (l *targetList) watch(then handler.EventHandler) handler.EventHandler {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	l.watched = true
	return &noting{list: l, then: then}
}

func (l *targetList) changed() {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	l.changes++
}

type (
	queue  = workqueue.TypedRateLimitingInterface[reconcile.Request]
	noting struct {
		list *targetList
		then handler.EventHandler
	}
)

// Create implements handler.EventHandler.
func (n *noting) Create(ctx context.Context, e event.CreateEvent, q queue) {
	n.list.changed()
	n.then.Create(ctx, e, q)
}

// Update implements handler.EventHandler.
func (n *noting) Update(ctx context.Context, e event.UpdateEvent, q queue) {
	n.list.changed()
	n.then.Update(ctx, e, q)
}

// Delete implements handler.EventHandler.
func (n *noting) Delete(ctx context.Context, e event.DeleteEvent, q queue) {
	n.list.changed()
	n.then.Delete(ctx, e, q)
}

// Generic implements handler.EventHandler.
func (n *noting) Generic(ctx context.Context, e event.GenericEvent, q queue) {
	n.list.changed()
	n.then.Generic(ctx, e, q)
}

// targets are all StorageTargets of the cluster, sorted by node, namespace and name. They are the cache's own, only to be read.
func (r *Reconciler) targets(ctx context.Context) ([]v1alpha1.StorageTarget, error) {
	known, changes := r.all.known()
	if known != nil {
		return known, nil
	}
	var all v1alpha1.StorageTargetList
	if err := r.Client.List(ctx, &all, client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("list StorageTargets: %w", err)
	}
	// Thousands are sorted faster node by node.
	on := map[string][]int{}
	for i := range all.Items {
		node := all.Items[i].Spec.Node
		on[node] = append(on[node], i)
	}
	from := make([]int, 0, len(all.Items))
	for _, node := range slices.Sorted(maps.Keys(on)) {
		slices.SortFunc(on[node], func(i, j int) int {
			a, b := &all.Items[i], &all.Items[j]
			return cmp.Or(strings.Compare(a.Namespace, b.Namespace), strings.Compare(a.Name, b.Name))
		})
		from = append(from, on[node]...)
	}
	arrange(all.Items, from)
	r.all.keep(all.Items, changes)
	return all.Items, nil
}

// arrange puts at each place what lies at the place that from names for it, which it uses up. It moves each item once: a StorageTarget has
// a kilobyte, and there are thousands.
func arrange[T any](items []T, from []int) {
	for start := range from {
		if from[start] == start {
			continue
		}
		// Each place of a cycle gets what belongs there, which leaves the next place free; the last one gets what lay in the first.
		first, at := items[start], start
		for from[at] != start {
			next := from[at]
			items[at], from[at] = items[next], at
			at = next
		}
		items[at], from[at] = first, at
	}
}
