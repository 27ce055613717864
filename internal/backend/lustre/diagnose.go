package lustre

import (
	"cmp"
	"fmt"
	"slices"

	"parallelfs.dev/operator/api/v1alpha1"
	"parallelfs.dev/operator/internal/backend"
)

// diagnose lists the problems that keep the filesystem from being Ready, worst first.
func (o *observer) diagnose() {
	say := func(reason, format string, args ...any) {
		o.seen.Problems = append(o.seen.Problems, backend.Problem{Reason: reason, Message: fmt.Sprintf(format, args...)})
	}
	waits := slices.Concat(o.unproven, o.unplaced)
	if len(waits) > 0 && o.in.State == nil {
		say(v1alpha1.ReasonTargetsNotReady, "waiting for %s: %s", v1alpha1.Count(len(waits), "disk", "disks"), backend.List(waits))
	}
	switch {
	case o.in.State != nil:
	case o.fs.Status.Metadata == nil || o.fs.Status.Metadata.Initialized == nil:
		say(v1alpha1.ReasonStarting, "waiting for the nodes to report for the first time what they serve: %s", o.in.StateError)
	default:
		say(v1alpha1.ReasonProbeUnreachable, "no node reports what it serves in an answer that the operator can believe: %s", o.in.StateError)
	}
	o.diagnosePinning(say)
	if o.in.State == nil {
		return
	}
	if len(o.missing) > 0 {
		targets := v1alpha1.Count(len(o.missing), "target does", "targets do")
		say(v1alpha1.ReasonTargetsMissing, "%s not serve: %s", targets, backend.List(o.missing))
	}
	if len(waits) > 0 {
		say(v1alpha1.ReasonTargetsNotReady, "waiting for %s: %s", v1alpha1.Count(len(waits), "disk", "disks"), backend.List(waits))
	}
	o.diagnoseLost(say)
	o.diagnoseServers(say)
	o.diagnosePools(say)
	o.diagnoseForgotten(say)
	o.diagnoseManagement(say)
	o.diagnoseClients(say)
}

// diagnoseServers lists the servers without a running pod, or without an answer; their targets may serve nevertheless.
func (o *observer) diagnoseServers(say func(reason, format string, args ...any)) {
	var away, skewed []string
	want := lineOf(backend.Version(o.fs))
	for i := range o.seen.Servers {
		s := &o.seen.Servers[i]
		if !s.Online {
			away = append(away, fmt.Sprintf("%s (%s)", s.Name, s.Message))
		}
		if s.Version != "" && lineOf(s.Version) != want {
			skewed = append(skewed, fmt.Sprintf("%s runs %s", s.Name, s.Version))
		}
	}
	if len(away) > 0 {
		say(v1alpha1.ReasonServersMissing, "servers are not online: %s", backend.List(away))
	}
	if len(skewed) > 0 {
		say(v1alpha1.ReasonVersionSkew, "spec.version is %s, and modules of nodes are of another line: %s; install those of one line everywhere, or correct spec.version",
			o.fs.Spec.Version, backend.List(skewed))
	}
}

// diagnoseManagement reports that the present NIDs of the MGS's node differ from those on every disk.
func (o *observer) diagnoseManagement(say func(reason, format string, args ...any)) {
	record := given(o.fs)
	node, there := o.in.Node(record.ManagementNode)
	found, known := o.in.Inventories[record.ManagementNode]
	if !there || !known || len(record.ManagementNIDs) == 0 {
		return
	}
	have, err := NetworkOf(o.fs.Spec.Network, own(o.fs).RDMA).NIDs(node, found)
	if err != nil {
		have = []string{"none: " + err.Error()}
	}
	if lost := without(record.ManagementNIDs, have); len(lost) > 0 {
		say(v1alpha1.ReasonServersMissing, "every disk records the MGS at %s, and its node %s has now %s; give the node its addresses back. "+
			"To change what stands on the disks (tunefs.lustre --writeconf on all of them) is a person's work", backend.List(record.ManagementNIDs), node.Name, backend.List(have))
	}
}

// diagnosePools reports pools that differ from the spec, or whose Job has not ended.
func (o *observer) diagnosePools(say func(reason, format string, args ...any)) {
	w := o.work
	if w.name == "" {
		return
	}
	wrong := w.differs(o.in.State)
	job := o.in.JobNamed(w.name)
	if job != nil && (job.Failed || job.Succeeded && wrong != "") {
		o.seen.Repeat = append(o.seen.Repeat, w.name)
	}
	if wrong == "" && w.done(o.in) {
		return
	}
	progress := "it begins when no other runs"
	switch {
	case job == nil:
	case job.Failed:
		progress = "it failed, and is tried again: " + cmp.Or(job.Message, "its log shows why")
	case job.Succeeded:
		progress = "it has ended, and runs again"
	default:
		progress = cmp.Or(job.Message, "it runs")
	}
	say(v1alpha1.ReasonPoolsNotPlaced, "pools, their directories and layouts are not as asked for; job %s makes them so: %s%s", w.name, progress, wrong)
}

// diagnoseForgotten lists the OSTs that were taken out and that could not be removed from Lustre: the node of the MGS may have restarted
// meanwhile.
func (o *observer) diagnoseForgotten(say func(reason, format string, args ...any)) {
	for name := range forgetJobs(o.in) {
		if job := o.in.JobNamed(name); job != nil && job.Failed {
			o.seen.Repeat = append(o.seen.Repeat, name)
			say(v1alpha1.ReasonPoolsNotPlaced, "Lustre still lists an OST that was taken out and is no longer used: job %s failed, and is made again: %s",
				name, cmp.Or(job.Message, "its log shows why"))
		}
	}
}

func (o *observer) diagnoseClients(say func(reason, format string, args ...any)) {
	var missing []string
	for _, c := range o.seen.Clients {
		if n, _ := o.in.Node(c.Node); !c.Mounted && n.Ready {
			missing = append(missing, fmt.Sprintf("%s (%s)", c.Node, c.Message))
		}
	}
	if len(missing) > 0 {
		say(v1alpha1.ReasonClientsMissing, "the filesystem is not mounted on %s", backend.List(missing))
	}
}
