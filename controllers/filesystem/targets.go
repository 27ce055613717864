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

// ownTargets are the StorageTargets of a FileSystem and of others. Of its own, those that are being deleted are not among the remaining
// ones.
type ownTargets struct {
	own, others, remaining []v1alpha1.StorageTarget
	// since is when this manager first saw the condition Ready of each remaining one as it is now, by uid.
	since map[types.UID]time.Time
}

// targetsOf are the StorageTargets of a FileSystem and of others, as they were seen at a moment.
func (r *Reconciler) targetsOf(fs *v1alpha1.FileSystem, m *memory, all []v1alpha1.StorageTarget, at time.Time) ownTargets {
	if len(all) > 0 && len(all) == len(m.all) && &all[0] == &m.all[0] {
		return m.targets // it is the same list
	}
	out := ownTargets{}
	out.own, out.others = split(all, func(t *v1alpha1.StorageTarget) bool { return isOf(fs, t) })
	out.remaining = remaining(out.own)
	out.since = r.sinceWhen(fs, out.remaining, at)
	m.all, m.targets = all, out
	return out
}

// targets are all StorageTargets of the cluster, sorted by node, namespace and name. They are the cache's own, only to be read.
func (r *Reconciler) targets(ctx context.Context) ([]v1alpha1.StorageTarget, error) {
	return r.allTargets.get(&r.targetChanges, func() ([]v1alpha1.StorageTarget, error) { return r.listTargets(ctx) })
}

func (r *Reconciler) listTargets(ctx context.Context) ([]v1alpha1.StorageTarget, error) {
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
