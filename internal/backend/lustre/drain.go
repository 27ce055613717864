package lustre

import (
	"cmp"
	"fmt"
	"iter"
	"slices"
	"strings"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"parallelfs.dev/operator/api/v1alpha1"
	"parallelfs.dev/operator/internal/backend"
	"parallelfs.dev/operator/internal/backend/lustre/cli"
	"parallelfs.dev/operator/internal/backend/shared/podspec"
	"parallelfs.dev/operator/internal/node/spec"
)

// An OST leaves in these steps. The nodes of the MDTs, or a Job, must prove each before the next one begins. First, no MDT makes objects on
// it any longer. Its files are moved, until none has an object on it. It is taken out of its pool and deactivated. All MDTs report that
// they no longer use it, and clients have had time to follow the same log. A second search finds no file with an object on it: none can
// have been made since. Only then is it recorded as drained, so that a person may take it out. It is unmounted when its StorageTarget is
// deleted, and removed from Lustre.

// componentDrain is the component of the Jobs of drains.
const componentDrain = "drain"

// settle is how long clients have to apply the changes that the MDTs have applied: they read the same log, when the MGS requests it
// (2.17.57 took more than 5 s).
const settle = 5 * time.Minute

// departure is an OST that a person wants to take out.
type departure struct {
	backend.Given
	target v1alpha1.MemberTarget
	// fills lists the nodes whose MDTs still make objects on it, and opens is the reason why some MDT still uses it, or may do so.
	fills []string
	opens bool
	// waits is the reason why nothing is done, empty when something is.
	waits string
}

// index is Lustre's own number of it.
func (d *departure) index() int32 { return d.target.ID - 1 }

// The Jobs of a drain: the first moves files and deactivates, the second proves that it is empty, the third removes it from Lustre.
func jobName(fs *v1alpha1.FileSystem, what string, id int32) string {
	return backend.ChildName(fs, fmt.Sprintf("%s-%s-%d", componentDrain, what, id))
}

const jobMove, jobProve, jobForget = "move", "prove", "forget"

// departuresOf returns the OSTs that are to be taken out and are not drained yet, by number.
func departuresOf(in backend.Input) []departure {
	if in.State == nil {
		return nil
	}
	var out []departure
	for _, g := range in.Given() {
		if g.Role != v1alpha1.RoleStorage || g.Retired {
			continue
		}
		for _, t := range g.Targets {
			disk := in.TargetNamed(t.Name)
			if disk == nil || !disk.Spec.Remove || t.ID == 0 || t.Drained != nil || t.Initialized == nil {
				continue
			}
			d := departure{Given: g, target: t}
			d.look(in)
			out = append(out, d)
		}
	}
	slices.SortFunc(out, func(x, y departure) int { return cmp.Compare(x.target.ID, y.target.ID) })
	return out
}

// look computes the progress of the departure.
func (d *departure) look(in backend.Input) {
	links := map[[2]int32]backend.Link{}
	for _, l := range in.State.Links {
		links[[2]int32{l.From, l.To}] = l
	}
	var unknown []string
	for _, g := range in.Given() {
		if g.Role != v1alpha1.RoleMetadata || g.Retired || g.ID == 0 {
			continue
		}
		if mdt := in.TargetWithID(v1alpha1.RoleMetadata, g.ID); mdt == nil || !mdt.Online {
			unknown = append(unknown, g.Server())
		}
		link, shut := links[[2]int32{g.ID, d.target.ID}]
		if !shut {
			d.fills = append(d.fills, g.Node)
		}
		d.opens = d.opens || !shut || !link.Closed
	}
	slices.Sort(d.fills)
	d.fills = slices.Compact(d.fills)
	switch said := in.TargetWithID(v1alpha1.RoleStorage, d.target.ID); {
	case len(unknown) > 0:
		d.waits = "it goes on when these MDTs serve, because they make objects: " + backend.List(unknown)
	case said == nil || !said.Online:
		d.waits = "it goes on when the target serves, because its files are read from it"
	case !othersStay(in, d):
		d.waits = fmt.Sprintf("no other target of storage pool %s stays and serves, so nothing can take its files; add one", d.StoragePool)
	}
}

// othersStay is true when another OST of the pool is online and is not to be taken out.
func othersStay(in backend.Input, d *departure) bool {
	for _, g := range in.Given() {
		if g.Role != v1alpha1.RoleStorage || g.StoragePool != d.StoragePool || g.Retired {
			continue
		}
		for _, t := range g.Targets {
			disk, said := in.TargetNamed(t.Name), in.TargetWithID(v1alpha1.RoleStorage, t.ID)
			if t.ID != d.target.ID && t.Drained == nil && disk != nil && !disk.Spec.Remove && said != nil && said.Online {
				return true
			}
		}
	}
	return false
}

// moved is the time when its files were moved and it was deactivated.
func (d *departure) moved(in backend.Input) (time.Time, bool) {
	job := in.JobNamed(jobName(in.FileSystem, jobMove, d.target.ID))
	if job == nil || !job.Succeeded {
		return time.Time{}, false
	}
	return job.Ended, true
}

// proven is the time when it was proven to be empty, after its last possible use.
func (d *departure) proven(in backend.Input) (time.Time, bool) {
	_, moved := d.moved(in)
	job := in.JobNamed(jobName(in.FileSystem, jobProve, d.target.ID))
	if d.waits != "" || d.opens || !moved || job == nil || !job.Succeeded {
		return time.Time{}, false
	}
	return job.Ended, true
}

// drains returns the Jobs of the OSTs that are to leave, of those that have left, and of those that are lost. While the state of the
// filesystem is unknown, the existing Jobs continue.
func (b *builder) drains() []client.Object {
	in, fs := b.in, b.in.FileSystem
	var out []client.Object
	want := func(name, node, mount string, commands ...spec.Command) {
		if in.JobNamed(name) != nil {
			out = append(out, backend.Keep(fs.Namespace, name))
			return
		}
		out = append(out, b.job(name, componentDrain, node, mount, commands))
	}
	if in.State == nil {
		for i := range in.Jobs {
			if in.Jobs[i].Component == componentDrain {
				out = append(out, backend.Keep(fs.Namespace, in.Jobs[i].Name))
			}
		}
		return out
	}
	c, mgs := cli.Commands{FSName: own(fs).FSName}, given(fs).ManagementNode
	stop := map[string][]spec.Command{}
	for _, d := range departuresOf(in) {
		move, prove := jobName(fs, jobMove, d.target.ID), jobName(fs, jobProve, d.target.ID)
		mount := adminMount(fs, fmt.Sprintf("%s-%d", componentDrain, d.target.ID))
		ended, moved := d.moved(in)
		for _, name := range []string{move, prove} { // an existing Job continues, or is the record of its work
			if in.JobNamed(name) != nil {
				out = append(out, backend.Keep(fs.Namespace, name))
			}
		}
		switch {
		case d.waits != "":
		case len(d.fills) > 0:
			for _, node := range d.fills {
				stop[node] = append(stop[node], spec.Command{Argv: c.StopNewObjects(d.index())})
			}
		case in.JobNamed(move) == nil:
			want(move, mgs, mount,
				spec.Command{Argv: cli.Migrate(mount, d.index()), TimeoutSeconds: -1},
				spec.Command{Argv: cli.ProveEmpty(mount, d.index()), TimeoutSeconds: -1},
				spec.Command{Argv: c.RemoveFromPool(d.StoragePool, []int32{d.index()}), MayFail: true}, // it may be done already
				spec.Command{Argv: c.Deactivate(d.index())})
		case moved && !d.opens && ended.Add(settle).Before(in.State.Asked) && in.JobNamed(prove) == nil:
			want(prove, mgs, mount, spec.Command{Argv: cli.ProveEmpty(mount, d.index()), TimeoutSeconds: -1})
		}
	}
	for _, node := range backend.SortedKeys(stop) {
		want(stopName(fs, node, stop[node]), node, "", stop[node]...)
	}
	for name, index := range forgetJobs(in) {
		want(name, mgs, "", spec.Command{Argv: c.Forget(index)})
	}
	for _, lost := range lostOSTs(in) {
		want(lost.job, mgs, "", spec.Command{Argv: c.Deactivate(lost.index)})
	}
	return out
}

// stopName names the Job that keeps the MDTs of a node from making objects.
func stopName(fs *v1alpha1.FileSystem, node string, commands []spec.Command) string {
	return backend.ChildName(fs, componentDrain+"-stop-"+backend.Hash(node, commands))
}

// forgetJobs returns the Jobs that remove OSTs from Lustre that were taken out, with their indices.
func forgetJobs(in backend.Input) iter.Seq2[string, int32] {
	return func(yield func(string, int32) bool) {
		if !canForget(backend.Version(in.FileSystem)) {
			return
		}
		for _, g := range in.Given() {
			for _, t := range g.Targets {
				if g.Role == v1alpha1.RoleStorage && isGone(in, g.Node, t) && !yield(jobName(in.FileSystem, jobForget, t.ID), t.ID-1) {
					return
				}
			}
		}
	}
}

// isGone is true for an OST that was drained and taken out, and that its node no longer serves.
func isGone(in backend.Input, node string, t v1alpha1.MemberTarget) bool {
	_, there := in.Node(node)
	return t.Drained != nil && t.TakenOut != nil && in.TargetWithID(v1alpha1.RoleStorage, t.ID) == nil && (!there || in.Unanswered[node] == "")
}

// canForget is true for versions with del_ost (2.16 and later).
func canForget(version string) bool { return backend.CompareVersions(version, "2.16") >= 0 }

// job runs commands on a node of the filesystem, with the filesystem mounted, unless they need no mount.
func (b *builder) job(name, component, node, mount string, commands []spec.Command) *batchv1.Job {
	fs := b.in.FileSystem
	configure := spec.Configure{Commands: commands, Host: true}
	of := podspec.Workload{Component: component}
	pod := b.pod(of)
	pod.Spec.RestartPolicy = corev1.RestartPolicyNever
	pod.Spec.TerminationGracePeriodSeconds = new(int64(60))
	pod.Spec.Affinity = podspec.OnNodes(node)
	c := b.container(component, "configure", "")
	if mount != "" {
		source, network := sourceOf(given(fs).ManagementNIDs, own(fs).FSName), b.network(false)
		configure.Mount = &spec.Mount{
			Path: mount, FSType: mountType, Source: source, Command: []string{"mount", "-t", mountType, source, mount},
			Kernel: true, Host: true, Network: &network,
		}
		podspec.HostDirectory(pod, &c, "admin", adminDirectory(fs), new(corev1.MountPropagationBidirectional))
	}
	podspec.TellJob(pod, &c, "configure", configure)
	pod.Spec.Containers = []corev1.Container{c}
	return &batchv1.Job{
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: fs.Namespace, Labels: pods(b.in).Labels(of)},
		Spec:       batchv1.JobSpec{BackoffLimit: new(int32(0)), Template: *pod},
	}
}

// Removal describes how the files of an OST are moved to others. The message of each step contains the reason for its wait.
func (Backend) Removal(_ *v1alpha1.FileSystem, target *v1alpha1.StorageTarget, _ []string) backend.Removal {
	switch target.Spec.Role {
	case v1alpha1.RoleManagement:
		return backend.Removal{Never: "the MGT knows all targets of the filesystem, and its place is written on their disks, so it can't be removed"}
	case v1alpha1.RoleMetadata:
		return backend.Removal{Never: "the operator can't move the metadata of an MDT to others, so it can't be removed"}
	}
	return backend.Removal{
		Waits: "waiting until no MDT makes objects on it any more", Moves: "a Job moves its files elsewhere, and looks whether any is left: ",
	}
}

// drain describes the progress of an OST that a person wants to take out.
func (o *observer) drain(out *backend.TargetStatus, record v1alpha1.MemberTarget) {
	if record.Drained != nil {
		out.Removing, out.Removable, out.Message = true, true, ""
		return
	}
	i := slices.IndexFunc(o.departures, func(d departure) bool { return d.target.ID == record.ID })
	if i < 0 {
		return
	}
	d := &o.departures[i]
	out.Removing = len(d.fills) == 0
	move, prove := jobName(o.fs, jobMove, record.ID), jobName(o.fs, jobProve, record.ID)
	says := func(name, otherwise string) string {
		job := o.in.JobNamed(name)
		switch {
		case job == nil:
			return otherwise
		case job.Failed:
			o.seen.Repeat = append(o.seen.Repeat, name)
			return fmt.Sprintf("job %s failed, and is made again: %s", name, cmp.Or(job.Message, "some of its files could not be moved; its log names them"))
		default:
			return strings.TrimSuffix(fmt.Sprintf("job %s does it: %s", name, job.Message), ": ")
		}
	}
	_, moved := d.moved(o.in)
	switch {
	case d.waits != "":
		out.Message = d.waits
	case len(d.fills) > 0:
		out.Message = "MDTs on these nodes make objects on it still: " + backend.List(d.fills)
	case !moved:
		out.Message = says(move, "a job begins")
	case d.opens:
		out.Message = "no file has an object on it; waiting until all MDTs have deactivated it"
	default:
		out.Message = "no file has an object on it, and it is deactivated; " +
			says(prove, fmt.Sprintf("that is looked at once more %s later, when clients have followed", settle))
	}
}

// sayShut describes how an OST that is to stay, and that MDTs do not use, gets into use again: it is unknown why they do not use it.
func (o *observer) sayShut(out *backend.TargetStatus, t *v1alpha1.StorageTarget) {
	if t.Spec.Remove || !slices.ContainsFunc(o.in.State.Links, func(l backend.Link) bool { return l.To == out.ID }) {
		return
	}
	name := TargetOf(own(o.fs).FSName, v1alpha1.RoleStorage, out.ID)
	out.Message = fmt.Sprintf("no new objects are made on it. To have it used again: lctl conf_param %s.osc.active=1 on node %s, and on each node with MDTs "+
		"lctl set_param osp.%s-osc-MDT*.max_create_count=20000", name, given(o.fs).ManagementNode, name)
}

// stopsAgain lists the Jobs that have ended although MDTs still make objects on an OST: a restarted MDT has lost the setting.
func (o *observer) stopsAgain() {
	for i := range o.in.Jobs {
		j := &o.in.Jobs[i]
		stops := strings.HasPrefix(j.Name, backend.ChildName(o.fs, componentDrain+"-stop-"))
		if j.Component == componentDrain && (j.Succeeded || j.Failed) && stops {
			o.seen.Repeat = append(o.seen.Repeat, j.Name)
		}
	}
}
