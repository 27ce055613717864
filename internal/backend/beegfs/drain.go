package beegfs

import (
	"fmt"
	"path"
	"slices"
	"strings"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"parallelfs.dev/operator/api/v1alpha1"
	"parallelfs.dev/operator/internal/backend"
	"parallelfs.dev/operator/internal/backend/beegfs/cli"
	"parallelfs.dev/operator/internal/node/spec"
)

// drain is a storage target that a person wants to take out.
type drain struct {
	target
	// waits says why it is not moved to the pool draining; empty when it is to be there.
	waits string
}

// drainsOf are the targets that are to be taken out. One that is in the pool draining stays there; of the others, at least one
// target of each pool has to stay, and be there to take the files.
func drainsOf(v *view) []drain {
	// takers counts the targets of each pool that stay, as far as it is decided.
	takers := map[string]int{}
	for i := range v.targets {
		if t := &v.targets[i]; t.takes() {
			takers[t.pool.Name]++
		}
	}
	var out []drain
	for i := range v.targets {
		t := &v.targets[i]
		if !t.asked() {
			continue
		}
		d := drain{target: *t}
		if t.poolNow() != drainingPoolID {
			others := takers[t.pool.Name]
			if t.takes() {
				others--
			}
			if d.waits = v.staysFor(t, others); d.waits == "" {
				takers[t.pool.Name] = others
			}
		}
		out = append(out, d)
	}
	return out
}

// takes is true for a target that gets the files of its pool.
func (t *target) takes() bool { return t.online() && t.poolNow() == poolID(t.slot) }

// staysFor says why a target is not drained now, when so many others of its pool stay; empty when it may be.
func (v *view) staysFor(t *target, others int) string {
	switch {
	case t.mirror != 0:
		return fmt.Sprintf("refused: target %d is one side of buddy group %d, and BeeGFS can't take a target out of a buddy group that holds data", t.id, t.mirror)
	case backend.Copies(*t.pool) > 1:
		return fmt.Sprintf("refused: pool %s is mirrored", t.pool.Name)
	case !has(v.in, featurePools):
		return "refused: BeeGFS 8 can keep new files off a target only by a storage pool of its own, which needs a license (" + featurePools + ")"
	case t.said == nil || !t.said.Online:
		return "what is on it can be moved when it is online"
	case !t.disk.Spec.WritersStopped && len(v.mounted()) > 0:
		return fmt.Sprintf("refused: the filesystem is mounted by %s, and BeeGFS moves files without locking them: what is written to a file meanwhile may be lost; "+
			"stop what writes, then set spec.writersStopped of the StorageTarget", strings.Join(v.mounted(), ", "))
	case others == 0:
		return fmt.Sprintf("refused: pool %s has no other target that is online, stays, and could take the files; add one first", t.pool.Name)
	default:
		return ""
	}
}

// mountedBy are the clients that have the filesystem mounted, or may have: those that BeeGFS lists, wherever they are, by node or address,
// and nodes with a pod that mounts it. At most eight, and the number of the rest.
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
	d := v.drainOf[id]
	return d != nil && d.waits == ""
}

// FilesIn are the directories with the chunks of each target that is in the pool draining.
func (Backend) FilesIn(in backend.Input) map[string][]string {
	out := map[string][]string{}
	for _, t := range targetsOf(in.Indexed()) {
		if !t.asked() || t.id == 0 || !backend.Finished(t.disk) {
			continue
		}
		// While nothing can be asked, the agent goes on.
		if t.poolNow() == drainingPoolID || in.State == nil && len(t.disk.Spec.FilesIn) > 0 {
			out[t.disk.Name] = t.filesIn()
		}
	}
	return out
}

// filesIn are the directories of a target's chunks, relative to its mountpoint (chunks, and buddymir for mirrored ones; StorageTk of 7.4.6
// and 8.3.1).
func (t target) filesIn() []string {
	data := t.dataPath()
	return []string{path.Join(data, "chunks"), path.Join(data, "buddymir")}
}

// saysEmpty is true when the agent of the target's node has found no file on it, after it was asked and as it is asked now. Only that agent
// and the operator can write it, unlike Jobs and pods in the namespace.
func (t target) saysEmpty() bool {
	if t.disk == nil || t.disk.Status.Files == nil {
		return false
	}
	files := t.disk.Status.Files
	return files.Empty && files.Left == 0 && files.NoneSince != nil &&
		files.ObservedGeneration == t.disk.Generation && slices.Equal(t.disk.Spec.FilesIn, t.filesIn())
}

// drainedTargets are the targets that hold no data, by id, and since when: those of which the agent has said so, and those
// that were recorded before. One that is no longer asked to be removed, or that is back in another pool, is not among them: it may hold
// data again.
func (v *view) drainedTargets() map[int32]time.Time {
	out := map[int32]time.Time{}
	for _, t := range v.targets {
		if !t.asked() || t.id == 0 || t.said != nil && t.poolNow() != drainingPoolID {
			continue
		}
		if t.drained != nil {
			out[t.id] = t.drained.Time
		} else if when, empty := provenEmpty(v.in, t); empty && t.said != nil {
			out[t.id] = when
		}
	}
	return out
}

// provenEmpty is true when the agent found no file on the target, and every job of a drain has succeeded. The jobs alone prove nothing:
// whoever may make Jobs or pods in the namespace can forge them. Where there are clients, migrate has to have: files whose stripes
// name the target, and that have written nothing to it yet, leave no trace on the disk.
func provenEmpty(in backend.Input, t target) (when time.Time, empty bool) {
	if !t.saysEmpty() {
		return time.Time{}, false
	}
	when = t.disk.Status.Files.NoneSince.Time
	for _, name := range drainJobs(in.FileSystem, t.id) {
		job := jobNamed(in, name)
		if job == nil || !job.Succeeded {
			return time.Time{}, false
		}
		if job.Ended.After(when) {
			when = job.Ended
		}
	}
	return when, true
}

// drainJobs are the names of the jobs that empty a target.
func drainJobs(fs *v1alpha1.FileSystem, id int32) []string {
	names := []string{awaitEmptyName(fs, id)}
	if fs.Spec.Clients != nil {
		names = append(names, migrateName(fs, id))
	}
	return names
}

func awaitEmptyName(fs *v1alpha1.FileSystem, id int32) string {
	return backend.ChildName(fs, fmt.Sprintf("await-empty-%d", id))
}

func migrateName(fs *v1alpha1.FileSystem, id int32) string {
	return backend.ChildName(fs, fmt.Sprintf("migrate-%d", id))
}

// drainObjects are the jobs of the targets that are drained, until it is recorded that they are.
func (b *builder) drainObjects() ([]client.Object, error) {
	var out []client.Object
	for _, d := range b.drains {
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

// drainObjectsOf are the jobs of one target. They begin when BeeGFS has it in the pool draining, so that no new file is placed on it
// behind their back, and those that are there stay while nothing can be asked.
func (b *builder) drainObjectsOf(d drain) ([]client.Object, error) {
	fs := b.in.FileSystem
	var out []client.Object
	for _, name := range drainJobs(fs, d.id) {
		if jobNamed(b.in, name) != nil && (b.in.State == nil || d.poolNow() == drainingPoolID || d.said == nil) {
			out = append(out, backend.Keep(fs.Namespace, name))
			continue
		}
		if d.poolNow() != drainingPoolID || d.disk == nil || !backend.Finished(d.disk) {
			continue
		}
		var job client.Object
		var err error
		if name == awaitEmptyName(fs, d.id) {
			job, err = b.awaitEmptyJob(d.target)
		} else if nodes := b.movers(); len(nodes) > 0 && (d.disk.Spec.WritersStopped || len(b.mounted()) == 0) {
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

// awaitEmptyJob waits, on the target's node, until the storage server has no chunk left on it (chunks, and buddymir for mirrored ones;
// StorageTk of 7.4.6 and 8.3.1).
func (b *builder) awaitEmptyJob(t target) (client.Object, error) {
	data := path.Join(t.directory(b.in.FileSystem), t.dataPath())
	disk := backend.MemberTarget(b.in.FileSystem, t.disk)
	told := spec.AwaitEmpty{
		Owner: backend.Owner(b.in.FileSystem), Target: spec.Target{Name: disk.Name, Path: disk.Path, UUID: disk.UUID},
		Directories: []string{path.Join(data, "chunks"), path.Join(data, "buddymir")},
	}
	return b.job(jobSpec{
		name: awaitEmptyName(b.in.FileSystem, t.id), component: componentDrain, verb: "await-empty", told: told, nodes: []string{t.node},
		retries: drainRetries, targets: true,
	})
}

// migrateJob moves the files that are on a target to the others of its pool: each is copied to a new file, which then takes its name. Who
// has the old one open then writes to what is gone, so nothing is moved while a client has a file open on the target's server.
func (b *builder) migrateJob(t target, nodes []string) (client.Object, error) {
	mount, err := clientMount(b.in.FileSystem, b.management.IP, backend.RunDirectory+"/drain")
	if err != nil {
		return nil, err
	}
	tool := toolOf(b.in)
	quiet := tool.Quiet(t.server)
	told := spec.Configure{Mount: &mount, Quiet: &quiet, Commands: []spec.Command{
		{Argv: tool.Migrate(t.id, poolID(t.slot), mount.Path), TimeoutSeconds: -1},
	}}
	return b.job(jobSpec{
		name: migrateName(b.in.FileSystem, t.id), component: componentDrain, verb: "configure", told: told, nodes: nodes,
		retries: drainRetries, privileged: true,
	})
}

// drainRetries is how often a job of a drain is tried before it is made anew: it may take days, in which its node may start anew.
const drainRetries = 6

// migrateNodes are the client nodes that can mount a BeeGFS.
func migrateNodes(in backend.Input) []string {
	var out []string
	for _, n := range backend.Matching(in.Nodes, in.FileSystem.Spec.Clients.NodeSelector) {
		if n.Ready && withoutModule(in, n.Name) == "" {
			out = append(out, n.Name)
		}
	}
	return out
}

// drainMessage says how far a drain is.
func (o *observer) drainMessage(t target) string {
	d := o.drainOf[t.id]
	if d == nil {
		return ""
	}
	if d.waits != "" {
		return d.waits
	}
	if t.poolNow() != drainingPoolID {
		return ""
	}
	var says []string
	if o.fs.Spec.Clients != nil {
		switch job := jobNamed(o.in, migrateName(o.fs, t.id)); {
		case job == nil && len(o.movers()) == 0:
			says = append(says, "no client node can mount the filesystem to move its files: status.missing of the FileSystem says why")
		case job == nil && !t.disk.Spec.WritersStopped && len(o.mounted()) > 0:
			says = append(says, "its files are moved when spec.writersStopped is true: the filesystem is mounted by "+strings.Join(o.mounted(), ", "))
		case job == nil:
			says = append(says, "the job that moves its files begins")
		case job.Succeeded:
			says = append(says, "all files that a client finds were moved")
		default:
			says = append(says, fmt.Sprintf("files are moved by job %s, while no client has a file open on storage server %d", job.Name, t.server))
			if job.Message != "" {
				says = append(says, "its last try: "+job.Message)
			}
		}
	}
	if t.disk != nil && t.disk.Status.Files != nil && t.disk.Status.Files.Message != "" {
		says = append(says, "the agent of node "+t.node+" can't count the files that are left: "+t.disk.Status.Files.Message)
	}
	if job := jobNamed(o.in, awaitEmptyName(o.fs, t.id)); job != nil && job.Message != "" {
		says = append(says, job.Message)
	}
	return strings.Join(says, "; ")
}

// removals are the commands that make BeeGFS forget what was drained and taken out, or given up with its node: a target that its server no
// longer serves, then a server without targets. A metadata server is never among them: BeeGFS 7.4 would remove even the one that holds the
// root directory.
func (v *view) removals(tool cli.Tool) (commands []spec.Command, why []string) {
	for _, l := range v.leftovers {
		if l.Drained != nil && l.said != nil && !l.said.Online && l.said.PoolID == drainingPoolID {
			commands = append(commands, spec.Command{Argv: tool.RemoveTarget(l.ID)})
			why = append(why, fmt.Sprintf("target %d, which was taken out, is to be forgotten", l.ID))
		} else if l.server.GivenUp && l.said != nil && !l.said.Online && mirrorOf(v.in, v1alpha1.RoleStorage, l.ID) == 0 {
			commands = append(commands, spec.Command{Argv: tool.RemoveTarget(l.ID)})
			why = append(why, fmt.Sprintf("target %d of node %s, which was given up, is to be forgotten", l.ID, l.server.Node))
		}
	}
	for _, a := range v.emptied() {
		if s := serverOf(v.in, v1alpha1.RoleStorage, a.ID); s != nil && !s.Online {
			commands = append(commands, spec.Command{Argv: tool.RemoveServer(a.ID)})
			why = append(why, fmt.Sprintf("server %s (%d), which has no targets left, is to be forgotten", a.Instance(), a.ID))
		}
	}
	return commands, why
}

// Removal says how the files of a target come elsewhere: a client moves them, and nothing keeps writers away meanwhile. So a person has to
// say that nothing writes, or nobody has mounted the filesystem; the job looks again whether that holds.
func (Backend) Removal(fs *v1alpha1.FileSystem, target *v1alpha1.StorageTarget, mounted []string) backend.Removal {
	switch pool := target.Spec.StoragePool; {
	case target.Spec.Role == v1alpha1.RoleManagement:
		return backend.Removal{Never: "the management service can't be moved to another disk: without its store BeeGFS forgets ids, pools and mirrors"}
	case target.Spec.Role == v1alpha1.RoleMetadata:
		return backend.Removal{Never: "BeeGFS can't move metadata to another server: what this one holds would be lost, and all files below its directories with it"}
	case slices.ContainsFunc(fs.Spec.StoragePools, func(p v1alpha1.StoragePoolSpec) bool { return p.Name == pool && p.Copies > 1 }):
		return backend.Removal{Never: fmt.Sprintf("storage pool %s is mirrored, and BeeGFS can't take a target out of a buddy group that holds data", pool)}
	}
	removal := backend.Removal{
		Waits: "waiting until the target is in BeeGFS's pool draining, which gets no new files",
		Moves: "the filesystem moves the data elsewhere: ",
	}
	if fs.Spec.Clients == nil {
		removal.Moves = "BeeGFS places no new files on it, but only a client can move those that are there: set spec.clients of the FileSystem, " +
			"or migrate or delete the files yourself; "
	}
	if len(mounted) > 0 && !target.Spec.WritersStopped {
		removal.Writers = fmt.Sprintf("the filesystem is mounted on %s, and BeeGFS moves files without locking them: what is written to a file meanwhile may be lost. "+
			"Stop what writes, then set spec.writersStopped to true", backend.List(mounted))
	}
	return removal
}
