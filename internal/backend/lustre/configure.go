package lustre

import (
	"cmp"
	"path"
	"slices"

	"parallelfs.dev/operator/api/v1alpha1"
	"parallelfs.dev/operator/internal/backend"
	"parallelfs.dev/operator/internal/backend/lustre/cli"
)

// PoolCommands bring Lustre's pools from what it lists to what is wanted, each with the indices of its OSTs; they run on the MGS. A pool
// that nobody wants stays: files that name a destroyed one can't be moved any more.
func PoolCommands(fsName string, wanted, listed map[string][]int32) [][]string {
	c := cli.Commands{FSName: fsName}
	var out [][]string
	for _, name := range backend.SortedKeys(wanted) {
		have, known := listed[name]
		if !known {
			out = append(out, c.AddPool(name))
		}
		if more := without(wanted[name], have); len(more) > 0 {
			out = append(out, c.AddToPool(name, more))
		}
		if less := without(have, wanted[name]); len(less) > 0 {
			out = append(out, c.RemoveFromPool(name, less))
		}
	}
	return out
}

// without are those of some that are not among others.
func without[T cmp.Ordered](some, others []T) []T {
	sorted := slices.Sorted(slices.Values(others))
	return slices.DeleteFunc(slices.Clone(some), func(n T) bool {
		_, found := slices.BinarySearch(sorted, n)
		return found
	})
}

// LayoutCommand says how new files in a pool's directory are laid out: as asked for, or each on one OST of the pool.
func LayoutCommand(mount, pool string, asked []v1alpha1.LustreComponent) []string {
	layout := []cli.Component{{OSTs: 1}}
	if len(asked) > 0 {
		layout = nil
	}
	for _, c := range asked {
		component := cli.Component{End: c.End.Value(), OSTs: cmp.Or(c.OSTs, 1), StripeSize: c.StripeSize.Value(), OnMDT: c.OnMetadata}
		if c.AllOSTs {
			component.OSTs = cli.AllOSTs
		}
		layout = append(layout, component)
	}
	return cli.SetLayout(path.Join(mount, pool), pool, layout)
}

// DirectoriesWanted is the default layout of new directories that is asked for.
func DirectoriesWanted(asked v1alpha1.LustreDirectories) cli.Directories {
	d := cli.Directories{MDTs: cmp.Or(asked.MDTsPerDirectory, 1), RoundRobinDepth: 3}
	if asked.RoundRobinDepth != nil {
		d.RoundRobinDepth = *asked.RoundRobinDepth
	}
	return d
}
