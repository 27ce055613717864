package moosefs

import (
	"fmt"
	"regexp"
	"slices"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"parallelfs.dev/operator/api/v1alpha1"
	"parallelfs.dev/operator/internal/backend"
	"parallelfs.dev/operator/internal/backend/moosefs/cli"
	"parallelfs.dev/operator/internal/backend/shared/metadatajobs"
	"parallelfs.dev/operator/internal/backend/shared/podspec"
	"parallelfs.dev/operator/internal/node/spec"
)

// A node in maintenance comes back with its data, so MooseFS must not make new copies of it. The operator switches the node's chunkservers
// to maintenance mode (mfscli(1), -CM1 and -CM0). The master keeps the mode over its own restart. While every absent chunkserver is in that
// mode, whatever their number, the master copies nothing (csdb.c: csdb_stop_chunk_jobs, csdb_replicate_undergoals in 3.0.117). One absent
// chunkserver that is not in it ends that for all. After an orderly stop, a chunkserver is in that mode for half an hour (mfsmaster.cfg(5),
// CS_TEMP_MAINTENANCE_MODE_TIMEOUT), but a reboot may take longer.
//
// A chunkserver of a decommissioned node stays in the master's list as absent for CS_DAYS_TO_REMOVE_UNUSED (a week). Every maintenance in
// that week would copy data. The same job therefore makes the master forget the chunkserver (-CRC).

const (
	componentMaintenance = "maintenance"
	// maintenanceDeadline ends a job that waits in vain, for example for an image.
	maintenanceDeadline = 10 * time.Minute
)

// Absence describes the filesystem while a node is away.
func (Backend) Absence(in backend.Input, seen backend.Observation, node string) backend.Absence {
	in = in.Indexed()
	out := backend.Absence{Waits: untoldMaintenance(in, node)}
	var costs []string
	servers, together := 0, 0
	for i := range in.Pods {
		p := &in.Pods[i]
		if p.Node != node {
			continue
		}
		if why := seen.Sole[p.Name.Name]; why != "" && !slices.Contains(costs, why) {
			costs = append(costs, why)
		}
		if p.Component == componentChunkserver {
			if servers++; servers == 1 {
				together = seen.Together[p.Name.Name]
			}
			together = min(together, seen.Together[p.Name.Name])
		}
	}
	if m := in.FileSystem.Status.Metadata; m != nil && m.Node == node {
		out.Before = metadatajobs.WaitsForCopy(in.FileSystem, node)
	}
	if why := tooFewToWrite(in, node); why != "" {
		costs = append(costs, why)
	}
	out.Together = 1
	switch {
	case servers == 0:
		out.Together = backend.Most // it holds no data
	case oneServerOfANode(in.State):
		out.Together = max(1, together)
	case servers > max(1, together):
		costs = append(costs, fmt.Sprintf("it has %d chunkservers, and files of a storage class that is not the operator's own may have all their copies on them", servers))
	default:
		out.Together = max(1, together/servers)
	}
	if len(costs) > 0 {
		out.Costs, out.Together = backend.List(costs), 1
	}
	return out
}

// tooFewToWrite names the pool that would accept no new files while a node is away. The storage classes of pools are strict, so each copy
// needs a server of its own.
func tooFewToWrite(in backend.Input, node string) string {
	away := backend.Maintained(in.FileSystem)
	for _, pool := range in.FileSystem.Spec.StoragePools {
		record, recorded := in.Pool(pool.Name)
		if !recorded || !slices.Contains(record.Nodes, node) {
			continue
		}
		left := 0
		for _, n := range record.Nodes {
			if n != node && !slices.Contains(away, n) && !in.GaveUp(n) {
				left++
			}
		}
		if copies := int(backend.Copies(pool)); left < copies {
			return fmt.Sprintf("pool %s keeps %d copies on as many nodes, and without this one %d can take new files", pool.Name, copies, left)
		}
	}
	return ""
}

// ofOneLabel matches the expression of a storage class whose copies are all on chunkservers with one label, as those of pools are. A node
// has one such chunkserver.
var ofOneLabel = regexp.MustCompile(`^[0-9]+[A-Z](/\[RACK\])?$`)

// oneServerOfANode reports whether a node can have at most one copy of a chunk, according to the classes of all files.
func oneServerOfANode(state *backend.State) bool {
	if state == nil || len(state.ClassesInUse) == 0 && state.Data.Stable > 0 {
		return false // an older probe does not report it
	}
	return !slices.ContainsFunc(state.ClassesInUse, func(name string) bool {
		return !ofOneLabel.MatchString(state.StorageClasses[name])
	})
}

// untoldMaintenance describes what MooseFS does not show yet about the maintenance of a node; empty if it shows all of it.
func untoldMaintenance(in backend.Input, node string) string {
	for _, m := range in.FileSystem.Status.Maintenance {
		if m.Node != node {
			continue
		}
		if in.State == nil {
			return "the master answers"
		} else if !slices.ContainsFunc(in.State.Servers, func(s backend.Server) bool { return s.Role == v1alpha1.RoleStorage }) {
			return "a chunkserver is connected: mfscli lists none while all are away" // seen with 4.57.5
		}
		name, _ := maintenanceName(in)
		switch job := in.JobNamed(name); {
		case len(modeChanges(in, m)) == 0:
		case job != nil && job.Succeeded: // the probe of an earlier operator does not report it
		case m.Ended == nil:
			return "the chunkservers of the node are in maintenance mode"
		default:
			return "the chunkservers of the node are not in maintenance mode any more"
		}
	}
	return ""
}

// modeChanges returns the commands that switch the maintenance mode of the chunkservers of a node on or off. A chunkserver that the master
// does not list is not in that mode. For a node that is gone, the recorded address counts: while its chunkservers are in maintenance mode,
// MooseFS makes no new copies.
func modeChanges(in backend.Input, m v1alpha1.NodeMaintenance) []spec.Command {
	master, ok := masterNode(in)
	ports, on := portsOf(in.FileSystem), m.Ended == nil
	// A node that reports the address of another node would switch that node's chunkservers to maintenance mode.
	if !ok || in.State == nil || on && in.IsShared(m.Address) {
		return nil
	}
	var out []spec.Command
	for _, pool := range in.FileSystem.Spec.StoragePools {
		record, recorded := in.Pool(pool.Name)
		if !recorded {
			continue
		}
		for s := range in.ServersAt(m.Address) {
			if s.Role == v1alpha1.RoleStorage && s.Port == ports.chunkserver(record.Slot) && s.Maintained != on {
				out = append(out, spec.Command{Argv: cli.Maintain(backend.Address(master.IP, ports.clients()), s.IP, s.Port, on)})
			}
		}
	}
	return out
}

// forgets returns the commands that make the master forget the chunkservers of decommissioned nodes: those that it lists as absent, at the
// recorded address. If another node has the address now, its chunkservers are kept.
func forgets(in backend.Input) []spec.Command {
	master, ok := masterNode(in)
	if !ok || in.State == nil {
		return nil
	}
	ports := portsOf(in.FileSystem)
	var out []spec.Command
	for i := range in.FileSystemNodes {
		n := &in.FileSystemNodes[i].Spec
		if n.GivenUp == nil || n.GivenUp.Address == "" {
			continue
		}
		if owner, known := in.NodeAt(n.GivenUp.Address); known && owner.Name != n.Node {
			continue
		}
		for _, pool := range in.FileSystem.Status.StoragePools {
			for s := range in.ServersAt(n.GivenUp.Address) {
				if s.Role == v1alpha1.RoleStorage && s.Port == ports.chunkserver(pool.Slot) && !s.Online {
					out = append(out, spec.Command{Argv: cli.Forget(backend.Address(master.IP, ports.clients()), s.IP, s.Port)})
				}
			}
		}
	}
	return out
}

// maintenanceName returns the name and the commands of the job that corrects the maintenance modes of chunkservers and removes those to be
// forgotten; empty if everything is correct.
func maintenanceName(in backend.Input) (name string, commands []spec.Command) {
	commands = forgets(in)
	for _, m := range in.FileSystem.Status.Maintenance {
		commands = append(commands, modeChanges(in, m)...)
	}
	if len(commands) > 0 {
		name = backend.ChildName(in.FileSystem, "maintenance-"+backend.Hash(commands))
	}
	return name, commands
}

// TellMaintenance returns the jobs that switch maintenance modes.
func (Backend) TellMaintenance(in backend.Input) ([]client.Object, error) {
	b, err := newBuilder(in.Indexed())
	if err != nil {
		return nil, err
	}
	return b.maintenanceJobs(), nil
}

// maintenanceJobs returns the jobs that switch maintenance modes and forget chunkservers, from the difference between the record and the
// master's own answer. While the master does not answer, an existing job continues.
func (b *builder) maintenanceJobs() []client.Object {
	name, commands := maintenanceName(b.in)
	var out []client.Object
	for _, j := range b.in.Jobs {
		runs := !j.Succeeded && !j.Failed
		if j.Component == componentMaintenance && (j.Name == name || runs || b.in.State == nil) {
			out = append(out, backend.Keep(b.in.FileSystem.Namespace, j.Name))
		}
	}
	if name == "" || len(out) > 0 {
		return out
	}
	w := podspec.Workload{Component: componentMaintenance}
	pod := b.pod(componentMaintenance, "", configVolume)
	pod.Spec.RestartPolicy = corev1.RestartPolicyNever
	pod.Spec.TerminationGracePeriodSeconds = new(int64(30))
	pod.Spec.Affinity = podspec.OnNodes(b.master.Name)
	c := b.daemon(componentMaster, componentMaintenance, "configure", configVolume, "")
	c.SecurityContext = pods(b.in).Unprivileged()
	podspec.TellJob(pod, &c, "configure", spec.Configure{Commands: commands})
	pod.Spec.Containers = []corev1.Container{c}
	return []client.Object{&batchv1.Job{
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: b.in.FileSystem.Namespace, Labels: pods(b.in).Labels(w)},
		Spec: batchv1.JobSpec{
			BackoffLimit: new(int32(0)), ActiveDeadlineSeconds: new(int64(maintenanceDeadline.Seconds())), Template: *pod,
		},
	}}
}

// repeatMaintenance names the job whose effect does not show after a while, because mfscli exits with code 0 even if the master refuses.
func (o *observer) repeatMaintenance() {
	if o.in.State == nil {
		return
	}
	name, _ := maintenanceName(o.in)
	if job := o.in.JobNamed(name); job != nil && job.Ended.Add(settle).Before(o.in.State.Asked) {
		o.seen.Repeat = append(o.seen.Repeat, name)
	}
}
