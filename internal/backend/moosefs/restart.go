package moosefs

import (
	"fmt"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"parallelfs.dev/operator/api/v1alpha1"
	"parallelfs.dev/operator/internal/backend"
	"parallelfs.dev/operator/internal/backend/shared/assign"
	"parallelfs.dev/operator/internal/node/spec"
)

// restarts finds the chunkservers that must restart because a disk was proven after their start, or because the mark for removal of a disk
// has changed. A chunkserver reads the list of its disks only when it starts.
func (o *observer) restarts() {
	for _, pod := range o.in.Pods {
		if pod.Component != componentChunkserver || !pod.Ready || pod.Seen.IsZero() || o.in.State == nil {
			continue
		}
		back, others := o.changes(pod)
		if len(back)+len(others) > 0 {
			o.seen.Restarts = append(o.seen.Restarts, backend.Restart{
				Pod: pod.Name, Why: backend.List(append(back, others...)), Safe: o.safe(len(back) > 0),
			})
		}
	}
}

// changes returns the changes that a chunkserver has not read yet: the disks that its restart brings back, and other changes.
func (o *observer) changes(pod backend.Pod) (back, others []string) {
	for _, at := range o.disksOf[[2]string{pod.StoragePool, pod.Node}] {
		d := &o.disks[at]
		if !d.server {
			continue
		}
		if why := o.takeUp(d, pod); why != "" {
			back = append(back, why)
		} else if why := o.mark(d, pod); why != "" {
			others = append(others, why)
		}
	}
	return back, append(others, o.stillUsed(pod)...)
}

// unread reports whether a pod started too early to read a change, and the next one will read it. The times may be of two clocks. If they
// differ, a daemon restarts once more, or later. The decision whether it may restart does not use them.
func (o *observer) unread(pod backend.Pod, change metav1.Time) bool {
	known := change.Add(o.readTime)
	return pod.Started.Before(known) && !o.in.State.Asked.Before(known)
}

// takeUp returns why a proven disk is not used: it was proven after the start of the chunkserver, or it came back after the chunkserver had
// stopped using it.
func (o *observer) takeUp(d *disk, pod backend.Pod) string {
	if d.unproven != "" || d.listed && !d.broken() || !o.unread(pod, d.proven) {
		return ""
	}
	return fmt.Sprintf("the disk %s is proven, and the chunkserver has not taken it up", d.target.Name)
}

// mark describes a mark for removal that MooseFS has not read yet, or a withdrawn one that it still follows.
func (o *observer) mark(d *disk, pod backend.Pod) string {
	if !d.listed || o.seen.Targets[d.at].Removing == d.target.Spec.Remove {
		return ""
	}
	asked := assign.Condition(d.target, v1alpha1.ConditionSafeToRemove)
	switch {
	case d.target.Spec.Remove && asked != nil && o.unread(pod, asked.LastTransitionTime):
		return fmt.Sprintf("the disk %s is to be emptied, but MooseFS has not read that yet", d.target.Name)
	case !d.target.Spec.Remove && asked == nil && o.settled(pod):
		return fmt.Sprintf("the disk %s is to stay, but MooseFS is emptying it", d.target.Name)
	default:
		return ""
	}
}

// stillUsed names the disks that the chunkserver still uses although they no longer belong to this filesystem, so that they can't be
// unmounted. Only a disk that MooseFS itself reports as removable is a reason to restart.
func (o *observer) stillUsed(pod backend.Pod) []string {
	node, _ := o.in.Node(pod.Node)
	slot, ok := o.in.PoolSlot(pod.StoragePool)
	if !ok || !o.settled(pod) {
		return nil
	}
	wanted := func(data string) bool {
		return slices.ContainsFunc(poolTargets(o.in, pod.StoragePool, pod.Node), func(t *v1alpha1.StorageTarget) bool {
			return targetData(o.fs, t.Name) == data
		})
	}
	var why []string
	for t := range o.in.TargetsAt(node.IP, o.ports.chunkserver(slot)) {
		if !t.Removable {
			continue
		}
		data := strings.TrimRight(t.Path, "/")
		mine := strings.HasPrefix(data, spec.TargetsDirectory(o.fs.Namespace, o.fs.Name)+"/")
		if mine && !wanted(data) {
			why = append(why, fmt.Sprintf("the disk at %s is empty and to be released, and the chunkserver still uses it", data))
		}
	}
	return why
}

// settled reports whether a pod had run for a while when MooseFS was queried, so that the answer reflects the pod's configuration.
func (o *observer) settled(pod backend.Pod) bool {
	return pod.Seen.Before(o.in.State.Asked.Add(-o.readTime))
}

// safe decides whether a chunkserver may restart although the filesystem has problems. It allows missing disks, and data with too few
// copies, which follows from them. Such data waits for a disk that the restart brings back, and not for any other change. No other
// chunkserver may be away meanwhile.
func (o *observer) safe(brings bool) bool {
	for _, p := range o.seen.Problems {
		switch p.Reason {
		case v1alpha1.ReasonTargetsNotReady, v1alpha1.ReasonTargetsMissing, v1alpha1.ReasonChunksEndangered:
		default:
			return false
		}
	}
	for i := range o.disks {
		if d := &o.disks[i]; d.unproven == "" && !d.server {
			return false // its chunkserver is away, or does not report its state
		}
	}
	for i := range o.seen.Targets {
		if t := &o.seen.Targets[i]; !t.Online && t.StorageTarget == "" {
			return false // a directory
		}
	}
	data := o.in.State.Data
	return data.Whole() || data.Known && brings
}

// sole names the pods whose restart makes programs wait.
func (o *observer) sole() {
	o.seen.Sole = map[string]string{}
	alone, one := o.alone(), map[string]bool{}
	for _, pool := range o.fs.Spec.StoragePools {
		one[pool.Name] = backend.Copies(pool) < 2
	}
	for _, p := range o.in.Pods {
		switch {
		case p.Component == componentMaster:
			o.seen.Sole[p.Name.Name] = "there is one master"
		case p.Component == componentChunkserver && one[p.StoragePool]:
			o.seen.Sole[p.Name.Name] = fmt.Sprintf("pool %s keeps one copy", p.StoragePool)
		case p.Component == componentChunkserver && alone != "":
			o.seen.Sole[p.Name.Name] = alone
		}
	}
}

// alone returns why a chunkserver may hold the only copy of a chunk, although its pool keeps several copies; empty if there is no sign of
// that. Users may have storage classes of their own, and the master's matrix of copies counts all chunks. A pool with one copy explains
// chunks that have one copy.
func (o *observer) alone() string {
	if o.in.State == nil || !o.in.State.Data.Known {
		return "" // nothing restarts then
	}
	explained := slices.ContainsFunc(o.fs.Spec.StoragePools, func(p v1alpha1.StoragePoolSpec) bool { return backend.Copies(p) < 2 })
	switch data := o.in.State.Data; {
	case data.Fewest == 1 && !explained:
		return "there are chunks with one copy"
	case data.Fewest == 0 && data.Stable > 0:
		return "MooseFS does not report how many copies each chunk has"
	default:
		return ""
	}
}
