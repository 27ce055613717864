package lustre

import (
	"cmp"
	"fmt"
	"path"
	"slices"
	"strings"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"parallelfs.dev/operator/api/v1alpha1"
	"parallelfs.dev/operator/internal/backend"
	"parallelfs.dev/operator/internal/backend/lustre/cli"
	"parallelfs.dev/operator/internal/node/spec"
)

// componentConfigure is the component of the Jobs that make pools.
const componentConfigure = "configure"

// work makes the parts of a filesystem that are on no disk of their own: pools, their directories and layouts, parameters, and limits.
type work struct {
	// name of the Job, a hash of its commands; empty while they can't run.
	name     string
	commands []spec.Command
	// pools maps each pool to the indices of its OSTs.
	pools map[string][]int32
}

// workOf returns the work for a filesystem as it is recorded. OSTs are included once they have served. It first begins when all targets
// with an index serve, so that it runs once, and not once for each OST.
func workOf(in backend.Input) work {
	fs := in.FileSystem
	w := work{pools: map[string][]int32{}}
	first, root := fs.Status.Metadata == nil || fs.Status.Metadata.Initialized == nil, false
	for _, g := range in.Given() {
		if g.Retired || g.GivenUp {
			continue
		}
		for _, t := range g.Targets {
			switch {
			case t.ID == 0: // its number is on record with the other one of its nodes
			case t.TakenOut != nil, isLeaving(in, t):
			case t.Initialized == nil && first:
				return w
			case t.Initialized == nil:
			case g.Role == v1alpha1.RoleStorage:
				w.pools[g.StoragePool] = append(w.pools[g.StoragePool], t.ID-1)
			default:
				root = root || t.ID == rootID
			}
		}
	}
	if !root || len(w.pools) == 0 {
		return w
	}
	w.commands = w.all(fs)
	hashed := []any{w.commands}
	if r := given(fs).Recovered; r != nil && r.Compared != nil {
		hashed = append(hashed, r.PlanHash) // settings that are newer than the backup are made again
	}
	w.name = backend.ChildName(fs, componentConfigure+"-"+backend.Hash(hashed...))
	return w
}

// all returns the commands. Each can be run again. Some fail when they are repeated; the pools that MDT0000 lists show whether these were
// done.
func (w work) all(fs *v1alpha1.FileSystem) []spec.Command {
	mount := adminMount(fs, componentConfigure)
	var out []spec.Command
	do := func(argv ...string) { out = append(out, spec.Command{Argv: argv}) }
	for _, argv := range ParameterCommands(own(fs).Parameters) {
		do(argv...)
	}
	osts := 0
	for _, indices := range w.pools {
		slices.Sort(indices)
		osts += len(indices)
	}
	for _, argv := range PoolCommands(own(fs).FSName, w.pools, nil) {
		out = append(out, spec.Command{Argv: argv, MayFail: true, TimeoutSeconds: poolSeconds * int64(osts+1)})
	}
	do(cli.SetDirectories(mount, DirectoriesWanted(own(fs).Directories))...)
	for i := range fs.Spec.StoragePools {
		pool := fs.Spec.StoragePools[i].Name
		if len(w.pools[pool]) == 0 {
			continue
		}
		layout := ownPool(&fs.Spec.StoragePools[i]).Layout
		if fs.Spec.TakesRest(pool) {
			do(LayoutCommand(mount, pool, layout)...)
		}
		for _, directory := range []string{path.Join(mount, pool), path.Join(mount, pool, spec.BenchmarkHome)} {
			do("mkdir", "-p", "-m", "0755", directory)
			do(LayoutCommand(directory, pool, layout)...)
		}
	}
	for _, argv := range ProjectCommands(own(fs).FSName, mount, own(fs).Projects) {
		do(argv...)
	}
	return out
}

// poolSeconds is how long it may take to make a pool, and to add an OST to it; a real one took about 10 s (2.17.57, emulated).
const poolSeconds = 30

// ownPool returns the part of a pool's spec that only a Lustre has.
func ownPool(pool *v1alpha1.StoragePoolSpec) v1alpha1.LustrePool {
	if pool.Lustre == nil {
		return v1alpha1.LustrePool{}
	}
	return *pool.Lustre
}

// done is true when the Job of this very work has succeeded.
func (w work) done(in backend.Input) bool {
	job := in.JobNamed(w.name)
	return w.name != "" && job != nil && job.Succeeded
}

// differs lists the pools that MDT0000 has in another form, in words that follow a sentence; empty when none differs, or when it does not
// answer.
func (w work) differs(state *backend.State) string {
	if state == nil || len(state.Pools) == 0 {
		return ""
	}
	listed := map[string][]int32{}
	for _, p := range state.Pools {
		for _, id := range p.Targets {
			listed[p.Name] = append(listed[p.Name], id-1)
		}
	}
	var wrong []string
	for _, name := range backend.SortedKeys(w.pools) {
		if lacks := without(w.pools[name], listed[name]); len(lacks) > 0 {
			wrong = append(wrong, fmt.Sprintf("%s lacks the OSTs %v", name, lacks))
		}
	}
	if len(wrong) == 0 {
		return ""
	}
	return "; " + strings.Join(wrong, ", ")
}

// isLeaving is true for an OST that a person takes out: it is no longer in any pool.
func isLeaving(in backend.Input, t v1alpha1.MemberTarget) bool {
	disk := in.TargetNamed(t.Name)
	return t.Drained != nil || disk != nil && disk.Spec.Remove && t.Initialized != nil
}

// adminMount is where a Job mounts the filesystem, on the node of the MGS. Each Job that may run at the same time as others has its own
// mount point.
func adminMount(fs *v1alpha1.FileSystem, place string) string {
	return path.Join(adminDirectory(fs), place)
}

func adminDirectory(fs *v1alpha1.FileSystem) string { return path.Join(backend.StateRoot(fs), "admin") }

// jobs returns the Job of the work. A running Job continues to its end. While the state of the filesystem is unknown, none begins.
func (b *builder) jobs() []client.Object {
	fs, w := b.in.FileSystem, workOf(b.in)
	var running []client.Object
	for i := range b.in.Jobs {
		if j := &b.in.Jobs[i]; j.Component == componentConfigure && (!j.Succeeded && !j.Failed || b.in.State == nil) {
			running = append(running, backend.Keep(fs.Namespace, j.Name))
		}
	}
	switch {
	case len(running) > 0:
		return running
	case w.name == "" || b.in.State == nil:
		return nil
	case b.in.JobNamed(w.name) != nil:
		return []client.Object{backend.Keep(fs.Namespace, w.name)}
	}
	return []client.Object{b.configureJob(w)}
}

// configureDeadline ends a Job that waits for something that never comes, such as a server.
const configureDeadline = time.Hour

// configureJob runs the commands on the node of the MGS, where pools and parameters are set.
func (b *builder) configureJob(w work) client.Object {
	mount := adminMount(b.in.FileSystem, componentConfigure)
	job := b.job(w.name, componentConfigure, given(b.in.FileSystem).ManagementNode, mount, w.commands)
	job.Spec.ActiveDeadlineSeconds = new(int64(configureDeadline.Seconds()))
	return job
}

// PoolCommands change Lustre's pools from the listed ones to the desired ones, each with the indices of its OSTs; they run on the MGS. A
// pool that is no longer desired stays: files that name a destroyed pool can no longer be moved.
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

// without returns the elements of some that are not in others.
func without[T cmp.Ordered](some, others []T) []T {
	sorted := slices.Sorted(slices.Values(others))
	return slices.DeleteFunc(slices.Clone(some), func(n T) bool {
		_, found := slices.BinarySearch(sorted, n)
		return found
	})
}

// LayoutCommand sets how new files in a directory are laid out on the OSTs of a pool: as requested, or each file on one of them.
func LayoutCommand(directory, pool string, asked []v1alpha1.LustreComponent) []string {
	layout := []cli.Component{{OSTs: 1}}
	if len(asked) > 0 {
		layout = nil
	}
	for _, c := range asked {
		component := cli.Component{
			End: c.End.Value(), OSTs: cmp.Or(c.OSTs, 1), StripeSize: c.StripeSize.Value(), OnMDT: c.Place == v1alpha1.OnMDT,
		}
		if c.Place == v1alpha1.OnAllOSTs {
			component.OSTs = cli.AllOSTs
		}
		layout = append(layout, component)
	}
	return cli.SetLayout(directory, pool, layout)
}

// ProjectCommands make the directories of projects and limit them. They come last: a directory takes its layout from the one above it.
func ProjectCommands(fsName, mount string, projects []v1alpha1.LustreProject) [][]string {
	if len(projects) == 0 {
		return nil
	}
	out := cli.Commands{FSName: fsName}.EnforceQuotas()
	for _, p := range projects {
		directory := path.Join(mount, p.Directory)
		out = append(out, []string{"mkdir", "-p", "-m", "0755", directory}, cli.SetProject(directory, p.ID),
			cli.LimitProject(mount, p.ID, p.Space.Value(), p.Files))
	}
	return out
}

// DirectoriesWanted is the requested default layout of new directories.
func DirectoriesWanted(asked v1alpha1.LustreDirectories) cli.Directories {
	d := cli.Directories{MDTs: cmp.Or(asked.MDTsPerDirectory, 1), RoundRobinDepth: 3}
	if asked.RoundRobinDepth != nil {
		d.RoundRobinDepth = *asked.RoundRobinDepth
	}
	return d
}
