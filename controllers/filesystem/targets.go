package filesystem

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"parallelfs.dev/operator/api/v1alpha1"
)

// byOwner holds all objects of a kind, grouped by FileSystem and sorted by node and name. They are the cache's own and read-only.
type byOwner[T any] struct {
	items []T
	of    map[owner]span
}

// owner is the FileSystem of an object, by uid, so that another one of the same name differs.
type owner struct{ namespace, uid string }

// span is the half-open range from..to of positions.
type span struct{ from, to int }

// place is the owner and the node by which an object is sorted.
type place struct {
	owner
	node string
}

func ownerIs(fs *v1alpha1.FileSystem) owner { return owner{fs.Namespace, string(fs.UID)} }

// split returns the objects of a FileSystem, and those of all others. It copies none, because there are thousands of a kilobyte each.
func (b byOwner[T]) split(fs *v1alpha1.FileSystem) (own []T, others [][]T) {
	s := b.of[ownerIs(fs)]
	for _, part := range [][]T{b.items[:s.from:s.from], b.items[s.to:]} {
		if len(part) > 0 {
			others = append(others, part)
		}
	}
	return b.items[s.from:s.to:s.to], others
}

// sideBySide sorts objects in place. Thousands are sorted faster node by node.
func sideBySide[T any](items []T, belongs func(*T) place, name func(*T) string) byOwner[T] {
	on := map[place][]int{}
	for i := range items {
		at := belongs(&items[i])
		on[at] = append(on[at], i)
	}
	out, from := byOwner[T]{items, map[owner]span{}}, make([]int, 0, len(items))
	for _, at := range slices.SortedFunc(maps.Keys(on), func(a, b place) int {
		return cmp.Or(strings.Compare(a.namespace, b.namespace), strings.Compare(a.uid, b.uid), strings.Compare(a.node, b.node))
	}) {
		slices.SortFunc(on[at], func(i, j int) int { return strings.Compare(name(&items[i]), name(&items[j])) })
		s, begun := out.of[at.owner]
		if !begun {
			s.from = len(from)
		}
		from = append(from, on[at]...)
		s.to = len(from)
		out.of[at.owner] = s
	}
	arrange(items, from)
	return out
}

// ownTargets holds the StorageTargets of a FileSystem and of others. The remaining ones exclude those that are being deleted.
type ownTargets struct {
	own, remaining []v1alpha1.StorageTarget
	others         [][]v1alpha1.StorageTarget
	// since is when this manager first saw the current condition Ready of each remaining target, by uid.
	since map[types.UID]time.Time
}

// targetsOf returns the StorageTargets of a FileSystem and of others, as they were read at a moment.
func (r *Reconciler) targetsOf(fs *v1alpha1.FileSystem, m *memory, all byOwner[v1alpha1.StorageTarget], at time.Time) ownTargets {
	if len(all.items) > 0 && len(all.items) == len(m.all) && &all.items[0] == &m.all[0] {
		return m.targets // it is the same list
	}
	out := ownTargets{}
	out.own, out.others = all.split(fs)
	out.remaining = remaining(out.own)
	out.since = r.sinceWhen(fs, out.remaining, at)
	m.all, m.targets = all.items, out
	return out
}

// targets returns all StorageTargets of the cluster.
func (r *Reconciler) targets(ctx context.Context) (byOwner[v1alpha1.StorageTarget], error) {
	return r.allTargets.get(&r.targetChanges, func() (byOwner[v1alpha1.StorageTarget], error) {
		var list v1alpha1.StorageTargetList
		if err := r.Client.List(ctx, &list, client.UnsafeDisableDeepCopy); err != nil {
			return byOwner[v1alpha1.StorageTarget]{}, fmt.Errorf("list StorageTargets: %w", err)
		}
		return sideBySide(list.Items, func(t *v1alpha1.StorageTarget) place {
			return place{owner{t.Namespace, t.Spec.FileSystem.UID}, t.Spec.Node}
		}, func(t *v1alpha1.StorageTarget) string { return t.Name }), nil
	})
}

// arrange moves to each position the item whose position is in from, and uses from up. It moves each item once, because there are thousands
// of StorageTargets of a kilobyte each.
func arrange[T any](items []T, from []int) {
	for start := range from {
		if from[start] == start {
			continue
		}
		// Within a cycle, each position gets its item, which frees the next position. The last position gets the item that was in the first.
		first, at := items[start], start
		for from[at] != start {
			next := from[at]
			items[at], from[at] = items[next], at
			at = next
		}
		items[at], from[at] = first, at
	}
}
