package beegfs

import (
	"cmp"
	"fmt"
	"maps"
	"path"
	"slices"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"parallelfs.dev/operator/api/v1alpha1"
	"parallelfs.dev/operator/internal/backend"
	"parallelfs.dev/operator/internal/backend/beegfs/cli"
	"parallelfs.dev/operator/internal/backend/beegfs/drain"
	"parallelfs.dev/operator/internal/backend/shared/assign"
	"parallelfs.dev/operator/internal/backend/shared/podspec"
	"parallelfs.dev/operator/internal/node/spec"
)

// departure is a storage target that a person wants to take out.
type departure struct {
	target
	// waits is the reason why it is not moved to the pool draining; empty when it is to be there.
	waits string
}

// departuresOf returns the targets that are to be taken out.
func departuresOf(v *view) []departure {
	if !slices.ContainsFunc(v.targets, target.asked) {
		return nil
	}
	targets := make([]drain.Target, len(v.targets))
	for i := range v.targets {
		targets[i] = v.targets[i].draining()
	}
	waits := drain.Waits(targets, v.drainFacts())
	out := make([]departure, 0, len(waits))
	for _, i := range slices.Sorted(maps.Keys(waits)) {
		out = append(out, departure{target: v.targets[i], waits: waits[i]})
	}
	return out
}

// draining converts the target to the type of the package drain.
func (t target) draining() drain.Target {
	return drain.Target{
		ID: t.id, Server: t.server, Node: t.node, StoragePool: t.pool, Home: poolID(t.slot), Now: t.poolNow(), Online: t.online(),
		Mirror: t.mirror, Disk: t.disk, FilesIn: drain.Directories(t.dataPath()),
	}
}

// drainFacts returns the facts that a drain depends on besides its target.
func (v *view) drainFacts() drain.Facts {
	facts := drain.Facts{FileSystem: v.in.FileSystem, Mounted: v.mounted, Movers: v.movers, Job: v.in.JobNamed}
	if !has(v.in, featurePools) {
		facts.Lacks = featurePools
	}
	return facts
}

// mountedBy lists the clients that have, or may have, the filesystem mounted. These are all clients that BeeGFS lists, by node or address,
// and the nodes with a pod that mounts it. The list has at most eight, and the number of the rest.
func mountedBy(in backend.Input) []string {
	var out []string
	if in.State != nil {
		for _, s := range in.State.Sessions {
			name := s.IP
			if n, ok := in.NodeAt(s.IP); ok {
				name = n.Name
			}
			out = append(out, name)
		}
	}
	for _, p := range in.Pods {
		if p.Component == componentClient {
			out = append(out, p.Node)
		}
	}
	slices.Sort(out)
	out = slices.Compact(out)
	const most = 8
	if more := len(out) - most; more > 0 {
		out = append(out[:most], fmt.Sprintf("%d more", more))
	}
	return out
}

// isDraining is true when a target is to be in the pool draining.
func (v *view) isDraining(id int32) bool {
	d := v.departureOf[id]
	return d != nil && d.waits == ""
}

// FilesIn returns the directories with the chunks of each target that is in the pool draining.
func (Backend) FilesIn(in backend.Input) map[string][]string {
	out := map[string][]string{}
	for _, t := range targetsOf(in.Indexed()) {
		if !t.asked() || t.id == 0 || !assign.Finished(t.disk) {
			continue
		}
		// While BeeGFS does not answer, the agent goes on.
		if t.poolNow() == drain.Pool || in.State == nil && len(t.disk.Spec.FilesIn) > 0 {
			out[t.disk.Name] = drain.Directories(t.dataPath())
		}
	}
	return out
}

// drainedTargets returns the targets that hold no data, by id, and since when: those that the agent has reported as empty, and those
// already recorded. A target whose removal is no longer requested, or that is in another pool again, is not among them: it may hold data
// again.
func (v *view) drainedTargets() map[int32]time.Time {
	out := map[int32]time.Time{}
	for _, t := range v.targets {
		if !t.asked() || t.id == 0 || t.said != nil && t.poolNow() != drain.Pool {
			continue
		}
		if t.drained != nil {
			out[t.id] = t.drained.Time
			continue
		}
		d := t.draining()
		if since, empty := d.Empty(v.drainFacts()); empty && t.said != nil && v.in.Unconfirmed[t.node] == "" {
			out[t.id] = since
		}
	}
	return out
}

// drainObjects returns the jobs of the targets that are drained, until their drain is recorded.
func (b *builder) drainObjects() ([]client.Object, error) {
	var out []client.Object
	for _, d := range b.departures {
		if d.drained != nil || d.id == 0 {
			continue
		}
		jobs, err := b.drainObjectsOf(d)
		if err != nil {
			return nil, err
		}
		out = append(out, jobs...)
	}
	return out, nil
}

// drainObjectsOf returns the jobs of one target. They begin when BeeGFS has the target in the pool draining, so that it gets no new file
// while they run. While BeeGFS does not answer, the existing jobs stay.
func (b *builder) drainObjectsOf(d departure) ([]client.Object, error) {
	fs := b.in.FileSystem
	asked, facts := d.draining(), b.drainFacts()
	var out []client.Object
	for _, name := range drain.JobNames(fs, d.id) {
		if jobNamed(b.in, name) != nil && (b.in.State == nil || d.poolNow() == drain.Pool || d.said == nil) {
			out = append(out, backend.Keep(fs.Namespace, name))
			continue
		}
		if d.poolNow() != drain.Pool || d.disk == nil || !assign.Finished(d.disk) {
			continue
		}
		var job client.Object
		var err error
		if name == drain.AwaitEmptyName(fs, d.id) {
			job, err = b.awaitEmptyJob(d.target)
		} else if nodes := b.movers(); len(nodes) > 0 && asked.MayMove(facts) {
			job, err = b.migrateJob(d.target, nodes)
		}
		if err != nil {
			return nil, err
		}
		if job != nil {
			out = append(out, job)
		}
	}
	return out, nil
}

// awaitEmptyJob waits, on the target's node, until no chunk is left on the target.
func (b *builder) awaitEmptyJob(t target) (client.Object, error) {
	data := path.Join(t.directory(b.in.FileSystem), t.dataPath())
	disk := assign.MemberTarget(b.in.FileSystem, t.disk)
	told := spec.AwaitEmpty{
		Owner: backend.Owner(b.in.FileSystem), Target: spec.Target{Name: disk.Name, Path: disk.Path, UUID: disk.UUID},
		Directories: drain.Directories(data),
	}
	return b.job(jobSpec{
		name: drain.AwaitEmptyName(b.in.FileSystem, t.id), component: componentDrain, verb: "await-empty", told: told, nodes: []string{t.node},
		retries: drainRetries, targets: true,
	})
}

// migrateJob moves the files on a target to the others of its pool: each is copied to a new file, which then takes its name. A program with
// the old file open would then write to a deleted file, so nothing is moved while a client has a file open. The target's server lists the
// clients that read and write there, and the metadata servers list the clients that have opened any file.
func (b *builder) migrateJob(t target, nodes []string) (client.Object, error) {
	mount, err := clientMount(b.in.FileSystem, b.management.IP, podspec.RunDirectory+"/drain")
	if err != nil {
		return nil, err
	}
	tool := toolOf(b.in)
	var metadata []int32
	for _, a := range metadataServers(b.in) {
		metadata = append(metadata, a.ID)
	}
	slices.Sort(metadata)
	quiet := tool.Quiet(t.server, metadata)
	told := spec.Configure{Mount: &mount, Quiet: &quiet, Commands: []spec.Command{
		{Argv: tool.Migrate(t.id, poolID(t.slot), mount.Path), TimeoutSeconds: -1},
	}}
	return b.job(jobSpec{
		name: drain.MigrateName(b.in.FileSystem, t.id), component: componentDrain, verb: "configure", told: told, nodes: nodes,
		retries: drainRetries, privileged: true,
	})
}

// drainRetries is how often a job of a drain is tried before it is made again: it may take days, and its node may restart meanwhile.
const drainRetries = 6

// migrateNodes returns the client nodes that can mount a BeeGFS.
func migrateNodes(in backend.Input) []string {
	var out []string
	for _, n := range backend.ClientNodes(in.FileSystem, in.Nodes) {
		if n.Ready && withoutModule(in, n.Name) == "" {
			out = append(out, n.Name)
		}
	}
	return out
}

// drainMessage describes the progress of a drain.
func (o *observer) drainMessage(t target) string {
	d := o.departureOf[t.id]
	if d == nil {
		return ""
	}
	asked := t.draining()
	return cmp.Or(d.waits, asked.Progress(o.drainFacts()))
}

// removals returns the commands that remove targets and servers from BeeGFS that were drained and taken out, or given up with their node. A
// target comes first, once its server no longer serves it, then a server without targets. A metadata server is never removed: BeeGFS 7.4
// would remove even the one that holds the root directory.
func (v *view) removals(tool cli.Tool) (commands []spec.Command, why []string) {
	for _, l := range v.leftovers {
		if l.Drained != nil && l.said != nil && !l.said.Online && l.said.PoolID == drain.Pool {
			commands = append(commands, spec.Command{Argv: tool.RemoveTarget(l.ID)})
			why = append(why, fmt.Sprintf("target %d, which was taken out, is to be removed from BeeGFS", l.ID))
		} else if l.server.GivenUp && l.said != nil && !l.said.Online && mirrorOf(v.in, v1alpha1.RoleStorage, l.ID) == 0 {
			commands = append(commands, spec.Command{Argv: tool.RemoveTarget(l.ID)})
			why = append(why, fmt.Sprintf("target %d of node %s, which was decommissioned, is to be removed from BeeGFS", l.ID, l.server.Node))
		}
	}
	for _, a := range v.emptied() {
		if s := serverOf(v.in, v1alpha1.RoleStorage, a.ID); s != nil && !s.Online {
			commands = append(commands, spec.Command{Argv: tool.RemoveServer(a.ID)})
			why = append(why, fmt.Sprintf("server %s (%d), which has no targets left, is to be removed from BeeGFS", a.Server(), a.ID))
		}
	}
	return commands, why
}

// Removal describes how the files of a target are moved to other targets.
func (Backend) Removal(fs *v1alpha1.FileSystem, target *v1alpha1.StorageTarget, mounted []string) backend.Removal {
	return drain.Removal(fs, target, mounted)
}
