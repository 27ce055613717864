package lustre

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"parallelfs.dev/operator/api/v1alpha1"
	"parallelfs.dev/operator/internal/backend"
)

// The data on the OSTs of a node that never comes back is lost. The MGS declares to all servers and clients that the OSTs are not used any
// longer; otherwise programs would wait for them forever. The OSTs stay in Lustre: their indices are never assigned again, so lfs find
// lists the damaged files by them.

// awayBefore is how long a node must have been away before it is given up: a restart takes minutes.
const awayBefore = 5 * time.Minute

// Without returns what is lost with a node that never comes back: all data of its OSTs.
func (Backend) Without(in backend.Input, node *v1alpha1.FileSystemNode) backend.Without {
	in = in.Indexed()
	fs, name := in.FileSystem, node.Spec.Node
	if given(fs).ManagementNode == name {
		return backend.Without{Never: "it has the MGS, whose place is written on every disk: bring its disk back in another machine of this name and with its addresses"}
	}
	if why := neverWithout(in, name); why != "" {
		return backend.Without{Never: why}
	}
	out := backend.Without{Settles: awayBefore}
	for _, g := range backend.GivenOn([]v1alpha1.FileSystemNode{*node}) {
		if g.Retired {
			continue
		}
		for i := range g.Targets {
			t := &g.Targets[i]
			is := TargetOf(own(fs).FSName, g.Role, t.ID)
			said := in.TargetWithID(g.Role, t.ID)
			switch {
			case g.Role == v1alpha1.RoleMetadata:
				return backend.Without{Never: fmt.Sprintf("it has %s, and Lustre can't go on without an MDT: what it names is nowhere else. Bring its disk back in another "+
					"machine of this name", is)}
			case said != nil:
				out.Here = fmt.Sprintf("%s is mounted at %s", is, said.IP)
			case isLost(t):
				out.Lost = append(out.Lost, fmt.Sprintf("all that is on %s (%s) of pool %s, and the files of which it had a part", is, t.Name, g.StoragePool))
			}
		}
	}
	switch {
	case in.State == nil:
		out.Waits = "no node reports what it serves: " + in.StateError
	case !managementServes(in):
		out.Waits = "the MGS does not serve, and only it can announce that the targets of this node are gone"
	default:
		out.Waits = backend.TooFewWithout(in, name)
	}
	return out
}

// managementServes is true when the node of the MGS reports that it serves. Another node may have the MGS of another Lustre.
func managementServes(in backend.Input) bool {
	node, _ := in.Node(given(in.FileSystem).ManagementNode)
	for t := range in.TargetsAt(node.IP, 0) {
		if t.Role == v1alpha1.RoleManagement && t.Online {
			return true
		}
	}
	return false
}

// isLost is true for an OST that may hold parts of files.
func isLost(t *v1alpha1.MemberTarget) bool {
	return t.Initialized != nil && t.Drained == nil && t.TakenOut == nil
}

// jobClose is the Job that declares to all servers and clients that a lost OST is not used any longer.
const jobClose = "close"

// lostOST is an OST of a node that was given up.
type lostOST struct {
	index int32
	job   string
	// opens lists the MDTs that still use it, or may do so.
	opens []string
}

// lostOSTs returns the OSTs of the nodes that were given up, by index.
func lostOSTs(in backend.Input) []lostOST {
	if in.State == nil {
		return nil
	}
	closed := map[[2]int32]bool{}
	for _, l := range in.State.Links {
		closed[[2]int32{l.From, l.To}] = l.Closed
	}
	all := in.Given()
	var out []lostOST
	for _, g := range all {
		for i := range g.Targets {
			t := &g.Targets[i]
			if !g.GivenUp || g.Role != v1alpha1.RoleStorage || !isLost(t) {
				continue
			}
			lost := lostOST{index: t.ID - 1, job: jobName(in.FileSystem, jobClose, t.ID)}
			for _, mdt := range all {
				if mdt.Role == v1alpha1.RoleMetadata && !mdt.Retired && mdt.ID != 0 && !closed[[2]int32{mdt.ID, t.ID}] {
					lost.opens = append(lost.opens, mdt.Server())
				}
			}
			out = append(out, lost)
		}
	}
	slices.SortFunc(out, func(x, y lostOST) int { return cmp.Compare(x.index, y.index) })
	return out
}

// diagnoseLost reports lost OSTs that are still in use: programs that make files may wait for them.
func (o *observer) diagnoseLost(say func(reason, format string, args ...any)) {
	var open []string
	for _, l := range lostOSTs(o.in) {
		if len(l.opens) == 0 {
			continue
		}
		name := TargetOf(own(o.fs).FSName, v1alpha1.RoleStorage, l.index+1)
		job := o.in.JobNamed(l.job)
		why := "job " + l.job + " begins"
		switch {
		case job == nil:
		case job.Failed:
			o.seen.Repeat = append(o.seen.Repeat, l.job)
			why = fmt.Sprintf("job %s failed, and is made again: %s", l.job, cmp.Or(job.Message, "its log shows why"))
		case job.Succeeded:
			why = "the MDTs and clients stop using them"
		default:
			why = cmp.Or(job.Message, "job "+l.job+" announces it")
		}
		open = append(open, fmt.Sprintf("%s by %s (%s)", name, strings.Join(l.opens, " and "), why))
	}
	if len(open) > 0 {
		say(v1alpha1.ReasonTargetsMissing, "targets of decommissioned nodes are still used: %s", backend.List(open))
	}
}
