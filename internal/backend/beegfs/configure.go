package beegfs

import (
	"cmp"
	"fmt"
	"path"
	"slices"
	"strings"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"parallelfs.dev/operator/api/v1alpha1"
	"parallelfs.dev/operator/internal/backend"
	"parallelfs.dev/operator/internal/backend/beegfs/cli"
	"parallelfs.dev/operator/internal/backend/beegfs/drain"
	"parallelfs.dev/operator/internal/backend/shared/nodefacts"
	"parallelfs.dev/operator/internal/backend/shared/podspec"
	"parallelfs.dev/operator/internal/node/spec"
)

// work lists the commands that make the configuration of BeeGFS equal to the spec, computed from its answers.
type work struct {
	// name is the name of the job, and commands are what it runs; empty when nothing is to be done.
	name     string
	commands []spec.Command
	// why lists the differences, for people.
	why []string
	// pools has the jobs that make the pools' directories.
	pools []poolJob
}

// poolJob makes the directory of a pool and sets how its files are striped. The Job is kept as the record that this was done, because the
// management service does not report it.
type poolJob struct {
	name     string
	commands []spec.Command
	// ready is true when BeeGFS has everything that the commands need.
	ready bool
}

// workLeft compares the answers of BeeGFS with the spec. The result is empty while BeeGFS does not answer.
func (v *view) workLeft() work {
	in := v.in
	if in.State == nil {
		return work{}
	}
	w, t := work{}, toolOf(in)
	w.placeTargets(v, t)
	placed := len(w.commands) == 0
	if placed {
		w.mirrorStorage(v, t)
		w.mirrorMetadata(in, t)
	}
	commands, why := v.removals(t)
	w.commands, w.why = append(w.commands, commands...), append(w.why, why...)
	if len(w.commands) > 0 {
		w.name = backend.ChildName(in.FileSystem, configurePrefix+backend.Hash(w.commands))
	}
	w.pools = poolJobs(v, t)
	for _, p := range w.pools {
		if job := jobNamed(in, p.name); job == nil || !job.Succeeded {
			w.why = append(w.why, fmt.Sprintf("the directory of a pool is not made or its stripes not set (job %s)", p.name))
		}
	}
	return w
}

// toolOf returns the tool of a filesystem, with the address of the management service.
func toolOf(in backend.Input) cli.Tool {
	return cli.NewTool(backend.Version(in.FileSystem), grpcAddress(in))
}

// configurePrefix is in the names of the jobs that carry out work.
const configurePrefix = "configure-"

func (w *work) do(why string, commands ...[]string) {
	for _, argv := range commands {
		w.commands = append(w.commands, spec.Command{Argv: argv})
	}
	w.why = append(w.why, why)
}

// placeTargets makes the pools, and moves each target into its own. Without a license, BeeGFS 8 would refuse all of it.
func (w *work) placeTargets(v *view, t cli.Tool) {
	in := v.in
	type way struct{ from, to int32 }
	moves := map[way][]int32{}
	needsDraining := false
	for _, target := range v.targets {
		if target.said == nil {
			continue
		}
		to := poolID(target.slot)
		if v.isDraining(target.id) {
			to, needsDraining = drain.Pool, true
		}
		if from := target.poolNow(); from != to && from != 0 && target.mirror == 0 {
			moves[way{from, to}] = append(moves[way{from, to}], target.id)
		}
	}
	if !has(in, featurePools) {
		return
	}
	names := map[int32]string{}
	for _, p := range in.FileSystem.Status.StoragePools {
		names[poolID(p.Slot)] = p.Name
	}
	if needsDraining {
		names[drain.Pool] = drain.PoolName
	}
	for _, id := range backend.SortedKeys(names) {
		i := slices.IndexFunc(in.State.Pools, func(p backend.Pool) bool { return p.ID == id })
		switch {
		case i < 0 && id == cli.DefaultPoolID:
			// The default pool always exists; a list without it is invalid.
		case i < 0:
			w.do(fmt.Sprintf("pool %s (%d) is not made", names[id], id), t.AddPool(id, names[id]))
		case in.State.Pools[i].Name != names[id]:
			w.do(fmt.Sprintf("pool %d is called %s and not %s", id, in.State.Pools[i].Name, names[id]), t.RenamePool(id, names[id]))
		}
	}
	ways := make([]way, 0, len(moves))
	for m := range moves {
		ways = append(ways, m)
	}
	slices.SortFunc(ways, func(a, b way) int { return cmp.Or(cmp.Compare(a.from, b.from), cmp.Compare(a.to, b.to)) })
	for _, m := range ways {
		ids := moves[m]
		slices.Sort(ids)
		w.do(fmt.Sprintf("pool %d has targets (%s) that belong in pool %s (%d)", m.from, listOf(ids), names[m.to], m.to), t.Move(m.from, m.to, ids)...)
	}
}

func listOf(ids []int32) string {
	out := make([]string, len(ids))
	for i, id := range ids {
		out[i] = fmt.Sprint(id)
	}
	return backend.List(out)
}

// mirrorStorage makes buddy groups of the targets of mirrored pools, once all targets with an assigned number are online: the more targets
// there are, the fewer stay without a buddy.
func (w *work) mirrorStorage(v *view, t cli.Tool) {
	in, domains := v.in, nodefacts.NewDomains(v.in)
	for _, pool := range in.FileSystem.Spec.StoragePools {
		if backend.Copies(pool) < 2 || !has(in, featureMirrors) {
			continue
		}
		var free []member
		complete, mirrored := true, false
		for _, target := range v.targets {
			if target.pool.Name != pool.Name {
				continue
			}
			// A group is permanent, so none is made while the failure domain of a node is unknown.
			_, known := domains.Of(target.node)
			complete = complete && target.online() && known
			mirrored = mirrored || target.mirror != 0
			if target.mirror == 0 && target.online() && !target.asked() && target.poolNow() == poolID(target.slot) {
				free = append(free, member{target.id, target.node})
			}
		}
		groups := pairs(free, domains)
		switch {
		case len(groups) == 0:
		case !mirrored && jobSucceeded(in, poolJobName(in, pool)):
			// The groups were made earlier, so this is not the management store that holds them. New groups would not find the data of the old ones.
			w.why = append(w.why, fmt.Sprintf(
				"BeeGFS lists no buddy group of pool %s, which had some: bring back the store of the management service; new groups would lose what the old ones hold",
				pool.Name))
		case !complete:
			w.why = append(w.why, fmt.Sprintf("buddy groups of pool %s are made when all its targets are online, and their nodes in the cluster", pool.Name))
		default:
			for _, g := range groups {
				w.do(fmt.Sprintf("targets %d and %d are no buddy group yet", g[0], g[1]), t.AddMirror("s", g[0], g[1]))
			}
		}
	}
}

// mirrorMetadata makes buddy groups of all metadata servers, then mirrors the root directory, while no client has mounted the filesystem.
func (w *work) mirrorMetadata(in backend.Input, t cli.Tool) {
	if !mirrorsMetadata(in.FileSystem) || !has(in, featureMirrors) {
		return
	}
	var free []member
	complete, domains := true, nodefacts.NewDomains(in)
	for _, a := range metadataServers(in) {
		s := serverOf(in, v1alpha1.RoleMetadata, a.ID)
		_, known := domains.Of(a.Node)
		complete = complete && s != nil && s.Online && known
		if mirrorOf(in, v1alpha1.RoleMetadata, a.ID) == 0 {
			free = append(free, member{a.ID, a.Node})
		}
	}
	groups := pairs(free, domains)
	switch {
	case len(groups) > 0 && !complete:
		w.why = append(w.why, "buddy groups of the metadata servers are made when all of them are online, and their nodes in the cluster")
	case len(groups) > 0 && in.State.MetadataMirrored && len(free) == len(metadataServers(in)):
		w.why = append(w.why,
			"BeeGFS lists no buddy group of metadata servers, and the metadata is mirrored: bring back the store of the management service")
	case len(groups) > 0:
		for _, g := range groups {
			if g[1] == in.State.RootID && !in.State.MetadataMirrored {
				g[0], g[1] = g[1], g[0] // the owner of the root directory has to be the primary
			}
			w.do(fmt.Sprintf("metadata servers %d and %d are no buddy group yet", g[0], g[1]), t.AddMirror("m", g[0], g[1]))
		}
	case in.State.MetadataMirrored:
	case !awaitsMirror(in):
		w.why = append(w.why, "the metadata is not mirrored, and can't be while clients have mounted the filesystem: remove spec.clients until it is mirrored")
	case len(in.State.Sessions) > 0:
		w.why = append(w.why, "the metadata is mirrored when BeeGFS has forgotten the last client, half an hour after that client left")
	default:
		w.do("the metadata is not mirrored yet", t.MirrorMetadata())
	}
}

// The striping of a pool whose spec has none (v1alpha1.StripingSpec).
const (
	defaultChunkSize      = 512 << 10
	defaultTargetsPerFile = 4
)

// poolJobs make the directories of the pools.
func poolJobs(v *view, t cli.Tool) []poolJob {
	in := v.in
	var out []poolJob
	for _, pool := range in.FileSystem.Spec.StoragePools {
		slot, ok := in.PoolSlot(pool.Name)
		if !ok {
			continue
		}
		out = append(out, poolJob{
			name: poolJobName(in, pool),
			commands: poolCommands(t, pool, ownPool(pool).Striping, poolID(slot),
				in.FileSystem.Spec.TakesRest(pool.Name)),
			ready: poolReady(v, pool, poolID(slot)),
		})
	}
	return out
}

// poolJobName contains a hash of the job's commands.
func poolJobName(in backend.Input, pool v1alpha1.StoragePoolSpec) string {
	slot, _ := in.PoolSlot(pool.Name)
	return backend.ChildName(in.FileSystem, fmt.Sprintf("pool-%d-%s", slot,
		backend.Hash(poolCommands(cli.Bare(backend.Version(in.FileSystem)), pool, ownPool(pool).Striping,
			poolID(slot), in.FileSystem.Spec.TakesRest(pool.Name)))))
}

// poolCommands make a pool's directory, and the one for benchmarks in it. A new directory copies the striping of its parent; a later change
// of the parent does not change it. One pool also gets the files outside of those directories.
func poolCommands(t cli.Tool, pool v1alpha1.StoragePoolSpec, striping *v1alpha1.StripingSpec, id int32, takesRest bool) []spec.Command {
	chunk, perFile := int64(defaultChunkSize), int32(defaultTargetsPerFile)
	if s := striping; s != nil {
		chunk = cmp.Or(s.ChunkSize.Value(), chunk)
		perFile = cmp.Or(s.TargetsPerFile, perFile)
	}
	directory := "/" + pool.Name
	var out []spec.Command
	if takesRest {
		out = append(out, spec.Command{Argv: t.Stripe("/", id, chunk, perFile, backend.Copies(pool) > 1)})
	}
	for _, d := range []string{directory, path.Join(directory, spec.BenchmarkHome)} {
		out = append(out,
			spec.Command{Argv: t.MakeDirectory(d), MayFail: true}, // the directory may exist
			spec.Command{Argv: t.Stripe(d, id, chunk, perFile, backend.Copies(pool) > 1)})
	}
	return out
}

// poolReady is true when a pool has targets, or buddy groups if it is mirrored, and there is a metadata server to make directories. A
// directory that is made before the metadata is mirrored would never be mirrored.
func poolReady(v *view, pool v1alpha1.StoragePoolSpec, id int32) bool {
	metadata := slices.ContainsFunc(v.in.State.Servers, func(s backend.Server) bool { return s.Role == v1alpha1.RoleMetadata && s.Online })
	placed := slices.ContainsFunc(v.targets, func(t target) bool {
		return t.pool.Name == pool.Name && t.poolNow() == id && (backend.Copies(pool) < 2 || t.mirror != 0)
	})
	return metadata && placed && (v.in.State.MetadataMirrored || !mirrorsMetadata(v.in.FileSystem))
}

// jobs returns the jobs that make the configuration of BeeGFS equal to the spec. While BeeGFS does not answer, the running jobs continue,
// and none begins.
func (b *builder) jobs() ([]client.Object, error) {
	out, err := b.drainObjects()
	if err != nil {
		return nil, err
	}
	if b.in.State == nil {
		return append(b.configureJobs(func(backend.Job) bool { return true }), out...), nil
	}
	resyncs, err := b.resyncJobs()
	if err != nil {
		return nil, err
	}
	out = append(out, resyncs...)
	w := b.workLeft()
	for _, p := range w.pools {
		switch {
		case jobNamed(b.in, p.name) != nil:
			out = append(out, backend.Keep(b.in.FileSystem.Namespace, p.name))
		case p.ready:
			job, err := b.configureJob(p.name, p.commands)
			if err != nil {
				return nil, err
			}
			out = append(out, job)
		}
	}
	// A running job changes the work that is left. So it runs to its end, and another job does the rest.
	running := b.configureJobs(func(j backend.Job) bool {
		return !j.Succeeded && !j.Failed && strings.HasPrefix(j.Name, backend.ChildName(b.in.FileSystem, configurePrefix))
	})
	switch {
	case len(running) > 0:
		out = append(out, running...)
	case w.name == "":
	case jobNamed(b.in, w.name) != nil:
		out = append(out, backend.Keep(b.in.FileSystem.Namespace, w.name))
	default:
		job, err := b.configureJob(w.name, w.commands)
		if err != nil {
			return nil, err
		}
		out = append(out, job)
	}
	return out, nil
}

// configureJobs keeps the existing jobs that which selects.
func (b *builder) configureJobs(which func(j backend.Job) bool) []client.Object {
	var out []client.Object
	for _, j := range b.in.Jobs {
		if j.Component == componentConfigure && which(j) {
			out = append(out, backend.Keep(b.in.FileSystem.Namespace, j.Name))
		}
	}
	return out
}

// configureJob runs commands on the node of the management service. It is tried once: afterwards, the remaining work is computed again.
func (b *builder) configureJob(name string, commands []spec.Command) (client.Object, error) {
	return b.job(jobSpec{
		name: name, component: componentConfigure, verb: "configure", told: spec.Configure{Commands: commands},
		nodes: []string{b.in.FileSystem.Status.Metadata.Node}, deadline: configureDeadline,
	})
}

// configureDeadline ends a configure job that waits for something that never comes, such as an image.
const configureDeadline = 10 * time.Minute

// jobSpec describes a Job.
type jobSpec struct {
	name, component, verb string
	// told is the configuration that the verb reads.
	told  any
	nodes []string
	// retries is how often the job is tried again; deadline ends it in any case, 0 means never.
	retries  int32
	deadline time.Duration
	// privileged is true for a job that mounts, and targets for one that reads the disks.
	privileged, targets bool
}

// job makes a Job. An existing Job is never changed: its name identifies its commands.
func (b *builder) job(s jobSpec) (client.Object, error) {
	tools, err := image(b.in, "tools", s.component)
	if err != nil {
		return nil, err
	}
	w := podspec.Workload{Component: s.component}
	pod := b.pod(w)
	pod.Spec.RestartPolicy = corev1.RestartPolicyNever
	pod.Spec.TerminationGracePeriodSeconds = new(int64(30))
	pod.Spec.Affinity = podspec.OnNodes(s.nodes...)
	c := b.container(s.verb, tools, s.verb, "")
	b.nameManagement(pod)
	podspec.TellJob(pod, &c, s.verb, s.told)
	if s.targets {
		podspec.MountTargets(b.in.FileSystem, pod, &c)
	}
	if s.privileged {
		c.SecurityContext = podspec.Privileged()
	}
	pod.Spec.Containers = []corev1.Container{c}
	job := &batchv1.Job{
		ObjectMeta: metav1.ObjectMeta{Name: s.name, Namespace: b.in.FileSystem.Namespace, Labels: pods(b.in).Labels(w)},
		Spec:       batchv1.JobSpec{BackoffLimit: new(s.retries), Template: *pod},
	}
	if s.deadline > 0 {
		job.Spec.ActiveDeadlineSeconds = new(int64(s.deadline.Seconds()))
	}
	return job, nil
}

// jobNamed returns the state of a job, nil when it does not exist.
func jobNamed(in backend.Input, name string) *backend.Job { return in.JobNamed(name) }

func jobSucceeded(in backend.Input, name string) bool {
	job := jobNamed(in, name)
	return job != nil && job.Succeeded
}

// progress describes the state of the work, in words that follow a semicolon.
func (w work) progress(in backend.Input) string {
	names := []string{w.name}
	for _, p := range w.pools {
		names = append(names, p.name)
	}
	var says []string
	for _, name := range names {
		switch job := jobNamed(in, name); {
		case job == nil || job.Succeeded && name != w.name:
		case job.Failed:
			says = append(says, fmt.Sprintf("job %s failed, and is tried again: %s", name, cmp.Or(job.Message, "its log shows why")))
		case job.Succeeded:
			says = append(says, fmt.Sprintf("job %s has ended, but BeeGFS does not show the change; the job runs again", name))
		default:
			says = append(says, strings.TrimSuffix(fmt.Sprintf("job %s does it: %s", name, job.Message), ": "))
		}
	}
	if len(says) == 0 {
		return "a job does it when all that it needs is there"
	}
	return strings.Join(says, "; ")
}

// patience is how long the chunks of moved files may take to disappear before the files are searched for again.
const patience = 10 * time.Minute

// repeats lists the jobs that have ended without a visible effect.
func repeats(v *view, w work) []string {
	in := v.in
	if in.State == nil {
		return nil
	}
	var out []string
	if jobNamed(in, w.name) != nil {
		out = append(out, w.name)
	}
	for _, p := range w.pools {
		if job := jobNamed(in, p.name); job != nil && job.Failed {
			out = append(out, p.name)
		}
	}
	for _, t := range v.resyncs() {
		if job := jobNamed(in, resyncJobName(in.FileSystem, &t)); job != nil && job.Failed {
			out = append(out, job.Name)
		}
	}
	for _, d := range v.departures {
		for _, name := range drain.JobNames(in.FileSystem, d.id) {
			job := jobNamed(in, name)
			switch {
			case job == nil || d.drained != nil:
			case job.Failed, job.Succeeded && name == drain.MigrateName(in.FileSystem, d.id) &&
				!jobSucceeded(in, drain.AwaitEmptyName(in.FileSystem, d.id)) && job.Ended.Add(patience).Before(in.State.Asked):
				out = append(out, name)
			}
		}
	}
	return out
}
