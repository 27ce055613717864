package moosefs

import (
	"fmt"
	"path"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"parallelfs.dev/operator/api/v1alpha1"
	"parallelfs.dev/operator/internal/backend"
	"parallelfs.dev/operator/internal/node/spec"
)

// disk is a StorageTarget of a pool, beside what MooseFS says of it.
type disk struct {
	target v1alpha1.StorageTarget
	// status is what the FileSystem's status says of it.
	status v1alpha1.TargetStatus
	// server is true when its chunkserver is connected and tells its disks, listed when this one is among them.
	server, listed bool
	// said is MooseFS's own word for the state of a listed one.
	said string
}

// broken is true for a disk that its chunkserver has given up: it is not looked at again until the next start.
func (d disk) broken() bool {
	words := strings.Split(d.said, ", ")
	return slices.Contains(words, "damaged") || slices.Contains(words, "invalid")
}

// storage observes chunkservers, their targets and the pools.
func (o *observer) storage() {
	for _, pool := range o.fs.Spec.StoragePools {
		record, ok := backend.RecordedPool(o.fs, pool.Name)
		if !ok {
			continue
		}
		status := v1alpha1.StoragePoolStatus{Name: pool.Name, Slot: record.Slot, Nodes: record.Nodes}
		online, wanted, first := 0, 0, len(o.seen.Targets)
		for _, name := range record.Nodes {
			node, _ := backend.NodeNamed(o.in.Nodes, name)
			instance, server := o.chunkserver(pool.Name, name, node.IP, record.Slot)
			targets := o.poolTargets(pool, node.IP, record.Slot, instance)
			instance.Placement = o.placements.Of(name, chunkserverInstance(pool.Name), instance.Name,
				pool.CPUPinning, poolTargets(o.in, pool.Name, name))
			if len(targets) == 0 && backend.HasTargets(pool.Targets, name) {
				o.unplaced = append(o.unplaced, fmt.Sprintf("one in pool %s on node %s", pool.Name, name))
			}
			o.seen.Instances = append(o.seen.Instances, instance)
			if instance.Online {
				status.CapacityBytes += server.CapacityBytes
				status.UsedBytes += server.UsedBytes
			}
			for _, target := range targets {
				wanted++
				if target.Online {
					online++
				}
			}
			o.seen.Targets = append(o.seen.Targets, targets...)
		}
		sayWhatStays(pool, o.seen.Targets[first:])
		status.UsedBytes = backend.Coarse(status.UsedBytes, status.CapacityBytes)
		status.Capacity, status.Used = v1alpha1.Bytes(status.CapacityBytes), v1alpha1.Bytes(status.UsedBytes)
		status.Targets = backend.Ratio(online, wanted)
		o.seen.StoragePools = append(o.seen.StoragePools, status)
	}
}

// sayWhatStays says of the targets of a pool that are emptied when nobody can take their data. MooseFS keeps one copy of a chunk on a
// server, so each copy that leaves needs a server beside those that have the others.
func sayWhatStays(pool v1alpha1.StoragePoolSpec, targets []v1alpha1.TargetStatus) {
	takes := map[string]bool{}
	for _, t := range targets {
		if t.Online && !t.Removing {
			takes[t.Node] = true
		}
	}
	for i := range targets {
		t := &targets[i]
		others := len(takes)
		if takes[t.Node] {
			others--
		}
		if copies := int(backend.Copies(pool)); t.Online && t.Removing && !t.Removable && others < copies {
			t.Message = fmt.Sprintf("no other server of storage pool %s can take all of its data: MooseFS keeps one copy of a chunk on a server, "+
				"and beside this server, %d of the %d that %d copies need have a disk that stays; add a node to the pool", pool.Name, others, copies, copies)
		}
	}
}

func (o *observer) chunkserver(pool, node, ip string, slot int32) (v1alpha1.InstanceStatus, backend.Server) {
	port := o.ports.chunkserver(slot)
	instance := v1alpha1.InstanceStatus{
		Name: componentChunkserver + "-" + pool + "." + node, Role: v1alpha1.RoleStorage, Node: node, StoragePool: pool,
	}
	if ip == "" {
		instance.Message = "the node is not in the cluster; bring it back: it holds data"
		return instance, backend.Server{}
	}
	instance.Address = backend.Address(ip, port)
	server, listed := o.server(v1alpha1.RoleStorage, ip, port)
	away := o.in.Away(componentChunkserver, pool, "", node)
	switch {
	case listed && server.Online && away != "":
		instance.Message = away
	case listed && server.Online:
		instance.Online, instance.Version = true, server.Version
	case listed:
		instance.Message = o.podMessage(componentChunkserver, pool, node, "the master has lost the connection to this chunkserver")
	case o.in.State == nil:
		instance.Message = o.podMessage(componentChunkserver, pool, node, "unknown while the master does not answer")
	default:
		instance.Message = o.podMessage(componentChunkserver, pool, node, "the chunkserver has not registered with the master")
	}
	return instance, server
}

// poolTargets observes the targets that a pool should have on the node of a chunkserver: directories, or disks.
func (o *observer) poolTargets(
	pool v1alpha1.StoragePoolSpec, ip string, slot int32, instance v1alpha1.InstanceStatus,
) []v1alpha1.TargetStatus {
	var out []v1alpha1.TargetStatus
	if !backend.OnDevices(pool.Targets) {
		for _, d := range slices.Sorted(slices.Values(pool.Targets.Directories)) {
			status, _ := o.target(string(d), dataDirectory(string(d)), ip, slot, instance)
			out = append(out, status)
		}
		return out
	}
	for _, t := range poolTargets(o.in, pool.Name, instance.Node) {
		mountpoint := backend.TargetPath(o.fs, t.Name)
		status, entry := o.target(mountpoint, targetData(o.fs, t.Name), ip, slot, instance)
		status.StorageTarget = t.Name
		d := disk{target: t, server: instance.Online && (entry == nil || entry.Path != "")}
		if d.server && entry != nil {
			d.listed, d.said = true, entry.Status
		}
		if _, why := backend.Proven(t); why != "" && !status.Online {
			status.Message = backend.Shorten("its disk: " + why)
		} else if d.server && !d.listed {
			status.Message = "the chunkserver does not use this disk: it started before the disk was proven, or refuses it, as its log says"
		}
		if !d.listed && o.needless(t, ip, slot) {
			status.Removing, status.Removable = true, true
			status.Message = "the disk is not there, and MooseFS has enough copies of all data without it"
		}
		d.status = status
		o.disks = append(o.disks, d)
		out = append(out, status)
	}
	return out
}

// targetData is the directory that a chunkserver keeps its data in, on a disk.
func targetData(fs *v1alpha1.FileSystem, target string) string {
	return dataDirectory(path.Join(backend.TargetPath(fs, target), componentChunkserver))
}

// target observes one directory of a chunkserver. It also returns what MooseFS lists of it, nil when it does not. A chunkserver
// that does not say which disks it has is listed with one that has no path.
func (o *observer) target(directory, data, ip string, slot int32, instance v1alpha1.InstanceStatus) (
	status v1alpha1.TargetStatus, entry *backend.Target,
) {
	status = v1alpha1.TargetStatus{
		Name: instance.Node + ":" + directory, Node: instance.Node, StoragePool: instance.StoragePool, Directory: directory,
	}
	if !instance.Online {
		status.Message = instance.Message
		return status, nil
	}
	for _, t := range o.in.State.Targets {
		if t.IP != ip || t.Port != o.ports.chunkserver(slot) {
			continue
		}
		if t.Path != "" && strings.TrimRight(t.Path, "/") != data {
			continue
		}
		status.Online, status.CapacityBytes, status.UsedBytes = t.Online, t.CapacityBytes, backend.Coarse(t.UsedBytes, t.CapacityBytes)
		status.Removing, status.Removable = t.Removing, t.Removable
		if !t.Online {
			status.Message = "MooseFS says: " + t.Status
		}
		return status, &t
	}
	status.Message = "the chunkserver does not serve this directory"
	return status, nil
}

// settle is how long a disk must have been away before the counts of copies are trusted to be without it, by the manager's clock from the
// moment when it saw that the disk is away.
const settle = 5 * time.Minute

// needless is true for a disk that is to be removed, is not there, and is not needed: MooseFS moves nothing from a disk that it
// does not see, but makes the copies anew, and says when all data has as many as it should.
func (o *observer) needless(t v1alpha1.StorageTarget, ip string, slot int32) bool {
	since, seen := o.in.Since[t.Name]
	if _, why := backend.Proven(t); !seen || !t.Spec.Remove || why == "" || o.in.State == nil || !o.in.State.Data.Whole() {
		return false
	}
	silent := slices.ContainsFunc(o.in.State.Targets, func(s backend.Target) bool {
		return s.IP == ip && s.Port == o.ports.chunkserver(slot) && s.Path == ""
	})
	return !silent && since.Add(settle).Before(o.in.State.Asked)
}

// missingTargets names the targets that are not online: the disks that are not proven, and the others.
func (o *observer) missingTargets() (unproven, missing []string) {
	unready := map[string]bool{}
	for _, d := range o.disks {
		_, why := backend.Proven(d.target)
		unready[d.status.Name] = why != ""
	}
	for _, t := range o.seen.Targets {
		text := fmt.Sprintf("%s in pool %s (%s)", t.Name, t.StoragePool, t.Message)
		switch {
		case t.Online || t.Removable:
		case unready[t.Name]:
			unproven = append(unproven, fmt.Sprintf("%s on node %s in pool %s (%s)", t.StorageTarget, t.Node, t.StoragePool, t.Message))
		default:
			missing = append(missing, text)
		}
	}
	return append(unproven, o.unplaced...), missing
}

// unprovenMetadata says why the disk of the metadata is not ready, and is empty when it is or when there is none.
func (o *observer) unprovenMetadata() string {
	record := o.fs.Status.Metadata
	if record == nil || !backend.OnDevices(o.fs.Spec.Metadata.Targets) {
		return ""
	}
	disks := recordedTarget(o.in)
	switch {
	case record.Target == "":
		return fmt.Sprintf("one for the metadata on node %s", record.Node)
	case len(disks) == 0:
		return fmt.Sprintf("%s on node %s for the metadata (its StorageTarget is gone; the metadata is on that disk alone)", record.Target, record.Node)
	}
	if _, why := backend.Proven(disks[0]); why != "" {
		return backend.Shorten(fmt.Sprintf("%s on node %s for the metadata (its disk: %s)", record.Target, record.Node, why))
	}
	return ""
}

// restarts finds the chunkservers that have to start anew because a disk was proven after their start, is to be emptied, or
// has been. A chunkserver reads the list of its disks when it starts.
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

// changes says what a chunkserver does not know yet: the disks that its restart brings back, and other changes.
func (o *observer) changes(pod backend.Pod) (back, others []string) {
	for _, d := range o.disks {
		if d.target.Spec.Node != pod.Node || d.target.Spec.StoragePool != pod.StoragePool || !d.server {
			continue
		}
		if why := o.takeUp(d, pod); why != "" {
			back = append(back, why)
		} else if why := o.mark(d, pod); why != "" {
			others = append(others, why)
		}
	}
	return back, append(others, o.letGo(pod)...)
}

// unread is true when a pod started before it could know a change, and the next one will know it. The times may be of two clocks: where
// they differ, a daemon is restarted once more, or later. Whether it may be is decided without them.
func (o *observer) unread(pod backend.Pod, change metav1.Time) bool {
	known := change.Add(o.readTime)
	return pod.Started.Before(known) && !o.in.State.Asked.Before(known)
}

// takeUp says that a proven disk is not used: it was proven after the start of the chunkserver, or it came back after the
// chunkserver had given it up.
func (o *observer) takeUp(d disk, pod backend.Pod) string {
	since, why := backend.Proven(d.target)
	if why != "" || d.listed && !d.broken() || !o.unread(pod, since) {
		return ""
	}
	return fmt.Sprintf("the disk %s is proven, and the chunkserver has not taken it up", d.target.Name)
}

// mark says that MooseFS does not know yet that a disk is to be emptied, or still believes it.
func (o *observer) mark(d disk, pod backend.Pod) string {
	if !d.listed || d.status.Removing == d.target.Spec.Remove {
		return ""
	}
	asked := backend.Condition(d.target, v1alpha1.ConditionSafeToRemove)
	switch {
	case d.target.Spec.Remove && asked != nil && o.unread(pod, asked.LastTransitionTime):
		return fmt.Sprintf("the disk %s is to be emptied, and MooseFS does not know it", d.target.Name)
	case !d.target.Spec.Remove && asked == nil && o.settled(pod):
		return fmt.Sprintf("the disk %s is to stay, and MooseFS empties it", d.target.Name)
	default:
		return ""
	}
}

// letGo names the disks that the chunkserver still uses, although they are no longer this filesystem's: they can't be
// unmounted. Only one that MooseFS itself calls removable is a reason to restart.
func (o *observer) letGo(pod backend.Pod) []string {
	node, _ := backend.NodeNamed(o.in.Nodes, pod.Node)
	record, ok := backend.RecordedPool(o.fs, pod.StoragePool)
	if !ok || !o.settled(pod) {
		return nil
	}
	wanted := map[string]bool{}
	for _, t := range poolTargets(o.in, pod.StoragePool, pod.Node) {
		wanted[targetData(o.fs, t.Name)] = true
	}
	var why []string
	for _, t := range o.in.State.Targets {
		data := strings.TrimRight(t.Path, "/")
		mine := t.IP == node.IP && t.Port == o.ports.chunkserver(record.Slot) &&
			strings.HasPrefix(data, spec.TargetsDirectory(o.fs.Namespace, o.fs.Name)+"/")
		if mine && t.Removable && !wanted[data] {
			why = append(why, fmt.Sprintf("the disk at %s is empty and to be released, and the chunkserver still uses it", data))
		}
	}
	return why
}

// settled is true for a pod that ran for a while when MooseFS was asked, so that the answer is about what it was told.
func (o *observer) settled(pod backend.Pod) bool {
	return pod.Seen.Before(o.in.State.Asked.Add(-o.readTime))
}

// safe decides whether a chunkserver may be restarted although the filesystem has problems. Of them, only disks that are not
// there are no reason against it, and what follows from that: data with too few copies. Such data waits for a disk that the
// restart brings back, and for no other change. No other chunkserver may be away meanwhile.
func (o *observer) safe(brings bool) bool {
	for _, p := range o.seen.Problems {
		switch p.Reason {
		case v1alpha1.ReasonTargetsNotReady, v1alpha1.ReasonTargetsMissing, v1alpha1.ReasonChunksEndangered:
		default:
			return false
		}
	}
	disks := map[string]bool{}
	for _, d := range o.disks {
		disks[d.status.Name] = true
		if _, why := backend.Proven(d.target); why == "" && !d.server {
			return false // its chunkserver is away, or does not say how it is
		}
	}
	for _, t := range o.seen.Targets {
		if !t.Online && !disks[t.Name] {
			return false // a directory
		}
	}
	data := o.in.State.Data
	return data.Whole() || data.Known && brings
}
