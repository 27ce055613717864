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

// allTargets are the StorageTargets of the cluster: those of each FileSystem lie side by side, sorted by node and name. They are the cache's
// own, only to be read.
type allTargets struct {
	items []v1alpha1.StorageTarget
	of    map[targetOwner]span
}

// targetOwner is the FileSystem of a StorageTarget, and not another one that had its name before.
type targetOwner struct{ namespace, uid string }

// span is from the one item to before the other.
type span struct{ from, to int }

func ownerOf(t *v1alpha1.StorageTarget) targetOwner {
	return targetOwner{t.Namespace, t.Spec.FileSystem.UID}
}

// split are those of a FileSystem, and those of all others. None is copied: there are thousands, of a kilobyte each.
func (a allTargets) split(fs *v1alpha1.FileSystem) (own []v1alpha1.StorageTarget, others [][]v1alpha1.StorageTarget) {
	s := a.of[targetOwner{fs.Namespace, string(fs.UID)}]
	for _, part := range [][]v1alpha1.StorageTarget{a.items[:s.from:s.from], a.items[s.to:]} {
		if len(part) > 0 {
			others = append(others, part)
		}
	}
	return a.items[s.from:s.to:s.to], others
}

// ownTargets are the StorageTargets of a FileSystem and of others. Of its own, those that are being deleted are not among the remaining
// ones.
type ownTargets struct {
	own, remaining []v1alpha1.StorageTarget
	others         [][]v1alpha1.StorageTarget
	// since is when this manager first saw the condition Ready of each remaining one as it is now, by uid.
	since map[types.UID]time.Time
}

// targetsOf are the StorageTargets of a FileSystem and of others, as they were seen at a moment.
func (r *Reconciler) targetsOf(fs *v1alpha1.FileSystem, m *memory, all allTargets, at time.Time) ownTargets {
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

func (r *Reconciler) targets(ctx context.Context) (allTargets, error) {
	return r.allTargets.get(&r.targetChanges, func() (allTargets, error) { return r.listTargets(ctx) })
}

func (r *Reconciler) listTargets(ctx context.Context) (allTargets, error) {
	var list v1alpha1.StorageTargetList
	if err := r.Client.List(ctx, &list, client.UnsafeDisableDeepCopy); err != nil {
		return allTargets{}, fmt.Errorf("list StorageTargets: %w", err)
	}
	// Thousands are sorted faster node by node.
	type place struct {
		targetOwner
		node string
	}
	on := map[place][]int{}
	for i := range list.Items {
		t := &list.Items[i]
		at := place{ownerOf(t), t.Spec.Node}
		on[at] = append(on[at], i)
	}
	out, from := allTargets{list.Items, map[targetOwner]span{}}, make([]int, 0, len(list.Items))
	for _, at := range slices.SortedFunc(maps.Keys(on), func(a, b place) int {
		return cmp.Or(strings.Compare(a.namespace, b.namespace), strings.Compare(a.uid, b.uid), strings.Compare(a.node, b.node))
	}) {
		slices.SortFunc(on[at], func(i, j int) int { return strings.Compare(list.Items[i].Name, list.Items[j].Name) })
		s, begun := out.of[at.targetOwner]
		if !begun {
			s.from = len(from)
		}
		from = append(from, on[at]...)
		s.to = len(from)
		out.of[at.targetOwner] = s
	}
	arrange(list.Items, from)
	return out, nil
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
