package moosefs

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"parallelfs.dev/operator/api/v1alpha1"
	"parallelfs.dev/operator/internal/backend"
	"parallelfs.dev/operator/internal/backend/shared/assign"
	"parallelfs.dev/operator/internal/backend/shared/nodefacts"
)

// disk is a StorageTarget of a pool, with MooseFS's entry for it.
type disk struct {
	target *v1alpha1.StorageTarget
	// at is the position of its entry among the targets of the Observation.
	at int
	// proven is since when the agent has reported it as proven, and unproven why it does not.
	proven   metav1.Time
	unproven string
	// server is true if its chunkserver is connected and reports its disks, listed if this disk is among them.
	server, listed bool
	// said is MooseFS's own word for the state of a listed disk.
	said string
}

// broken reports whether the chunkserver has stopped using a disk. It does not try the disk again until its next start.
func (d *disk) broken() bool {
	words := strings.Split(d.said, ", ")
	return slices.Contains(words, "damaged") || slices.Contains(words, "invalid")
}

// storage observes chunkservers, their targets and the pools.
func (o *observer) storage() {
	for _, pool := range o.fs.Spec.StoragePools {
		record, ok := o.in.Pool(pool.Name)
		if !ok {
			continue
		}
		status := v1alpha1.StoragePoolStatus{Name: pool.Name, Slot: record.Slot}
		online, wanted, first := 0, 0, len(o.seen.Targets)
		for _, name := range record.Nodes {
			node, _ := o.in.Node(name)
			seen, server := o.chunkserver(pool.Name, name, node.IP, record.Slot)
			disks, before := poolTargets(o.in, pool.Name, name), len(o.seen.Targets)
			o.targets(pool, disks, node.IP, record.Slot, seen)
			targets := o.seen.Targets[before:]
			seen.Placement = o.placements.Of(name, chunkserverDaemon(pool.Name), seen.Name, pool.CPUPinning, disks)
			if len(targets) == 0 && nodefacts.HasTargets(pool.Targets, name) {
				o.unplaced = append(o.unplaced, fmt.Sprintf("one in pool %s on node %s", pool.Name, name))
			}
			o.seen.Servers = append(o.seen.Servers, seen)
			if seen.Online {
				status.CapacityBytes += server.CapacityBytes
				status.UsedBytes += server.UsedBytes
			}
			for i := range targets {
				wanted++
				if targets[i].Online {
					online++
				}
			}
		}
		sayWhatStays(pool, o.seen.Targets[first:])
		status.Fullness = backend.Fullness(o.seen.Targets[first:])
		status.UsedBytes = backend.Coarse(status.UsedBytes, status.CapacityBytes)
		status.Capacity, status.Used = v1alpha1.Bytes(status.CapacityBytes), v1alpha1.Bytes(status.UsedBytes)
		status.Targets = backend.Ratio(online, wanted)
		o.seen.StoragePools = append(o.seen.StoragePools, status)
	}
}

// sayWhatStays adds a message to the targets that are drained if no server can take their data. MooseFS keeps one copy of a chunk on a
// server, so each copy that leaves needs another server than those with the other copies.
func sayWhatStays(pool v1alpha1.StoragePoolSpec, targets []backend.TargetStatus) {
	takes := map[string]bool{}
	for i := range targets {
		if t := &targets[i]; t.Online && !t.Removing {
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
			t.Message = fmt.Sprintf("the other servers of storage pool %s can't take its data: MooseFS keeps at most one copy of a chunk on a server, "+
				"and besides this one, only %d of the %d that %d copies need have a disk that stays; add a node to the pool", pool.Name, others, copies, copies)
		}
	}
}

func (o *observer) chunkserver(pool, node, ip string, slot int32) (backend.ServerStatus, backend.Server) {
	port := o.ports.chunkserver(slot)
	seen := backend.ServerStatus{
		Name: componentChunkserver + "-" + pool + "." + node, Role: v1alpha1.RoleStorage, Node: node, StoragePool: pool,
	}
	if ip == "" {
		seen.Message = "the node " + o.in.Gone(node) + "; bring it back: it holds data"
		return seen, backend.Server{}
	}
	seen.Address = backend.Address(ip, port)
	server, listed := o.server(v1alpha1.RoleStorage, ip, port)
	away := o.in.Away(componentChunkserver, pool, "", node)
	switch {
	case listed && server.Online && away != "":
		seen.Message = away
	case listed && server.Online:
		seen.Online, seen.Version = true, server.Version
	case listed:
		seen.Message = o.podMessage(componentChunkserver, pool, node, "the master has lost the connection to this chunkserver")
	case o.in.State == nil:
		seen.Message = o.podMessage(componentChunkserver, pool, node, "unknown while the master does not answer")
	default:
		seen.Message = o.podMessage(componentChunkserver, pool, node, "the chunkserver has not registered with the master")
	}
	return seen, server
}

// targets observes the targets that a pool should have on the node of a chunkserver: directories, or these disks.
func (o *observer) targets(
	pool v1alpha1.StoragePoolSpec, disks []*v1alpha1.StorageTarget, ip string, slot int32, seen backend.ServerStatus,
) {
	if !assign.OnDevices(pool.Targets) {
		o.listed.read(o.in, ip, o.ports.chunkserver(slot), "/"+dataSubdirectory)
		for _, d := range slices.Sorted(slices.Values(pool.Targets.Directories)) {
			status, _ := o.target(string(d), seen)
			if status.Online {
				status.Inodes, status.UsedInodes = backend.InodesOfDirectory(o.in.FileSystemNodeOn(seen.Node), string(d))
			}
			o.seen.Targets = append(o.seen.Targets, status)
		}
		return
	}
	o.listed.read(o.in, ip, o.ports.chunkserver(slot), diskData)
	server := [2]string{pool.Name, seen.Node}
	for _, t := range disks {
		status, entry := o.target(o.directory+"/"+t.Name, seen)
		status.StorageTarget = t.Name
		if status.Online {
			status.Inodes, status.UsedInodes = backend.InodesOnDisk(t)
		}
		d := disk{target: t, at: len(o.seen.Targets), server: seen.Online && (entry == nil || entry.Path != "")}
		if d.server && entry != nil {
			d.listed, d.said = true, entry.Status
		}
		if d.proven, d.unproven = assign.Proven(t); d.unproven != "" && !status.Online {
			status.Message = backend.Shorten("its disk: " + d.unproven)
		} else if d.server && !d.listed {
			status.Message = "the chunkserver does not use this disk: it started before the disk was proven, or it refuses the disk, and its log shows why"
		}
		if !d.listed && o.needless(&d) {
			status.Removing, status.Removable = true, true
			status.Message = "the disk is not there, and MooseFS has enough copies of all data without it"
		}
		o.disksOf[server] = append(o.disksOf[server], len(o.disks))
		o.disks = append(o.disks, d)
		o.seen.Targets = append(o.seen.Targets, status)
	}
}

// targetData returns the directory in which a chunkserver keeps its data on a disk.
func targetData(fs *v1alpha1.FileSystem, target string) string {
	return assign.TargetPath(fs, target) + diskData
}

// diskData is the path of that directory on the disk.
const diskData = "/" + componentChunkserver + "/" + dataSubdirectory

// listing holds the entries that MooseFS lists for one chunkserver. One listing is reused for thousands of chunkservers, one after the
// other.
type listing struct {
	// at holds the directories whose data the chunkserver lists. all replaces each of them if the chunkserver does not report its directories;
	// MooseFS then lists one entry without a path.
	at  map[string]*backend.Target
	all *backend.Target
}

// read reads the entries for the chunkserver at an address. The path of the data below each directory is the same.
func (l *listing) read(in backend.Input, ip string, port int32, below string) {
	if l.at == nil {
		l.at = map[string]*backend.Target{}
	}
	clear(l.at)
	l.all = nil
	for t := range in.TargetsAt(ip, port) {
		if t.Path == "" {
			l.all = cmp.Or(l.all, t)
		} else if directory, ok := strings.CutSuffix(strings.TrimRight(t.Path, "/"), below); ok {
			l.at[directory] = cmp.Or(l.at[directory], t)
		}
	}
}

// target observes one directory of the chunkserver whose listing was read. The data is in a subdirectory. It also returns MooseFS's entry,
// nil if there is none.
func (o *observer) target(directory string, seen backend.ServerStatus) (status backend.TargetStatus, entry *backend.Target) {
	status = backend.TargetStatus{Node: seen.Node, StoragePool: seen.StoragePool, Directory: directory}
	if !seen.Online {
		status.Message = seen.Message
		return status, nil
	}
	t := cmp.Or(o.listed.at[directory], o.listed.all)
	if t == nil {
		status.Message = "the chunkserver does not serve this directory"
		return status, nil
	}
	status.Online, status.CapacityBytes, status.UsedBytes = t.Online, t.CapacityBytes, backend.Coarse(t.UsedBytes, t.CapacityBytes)
	status.Removing, status.Removable = t.Removing, t.Removable
	if !t.Online {
		status.Message = "MooseFS reports: " + t.Status
	}
	return status, t
}

// settle is how long a disk must have been away before the counts of copies exclude it for certain, on the manager's clock from the moment
// when it saw that the disk is away.
const settle = 5 * time.Minute

// needless reports whether a disk that should be removed is missing and not needed. MooseFS moves nothing from a disk that it does not see,
// but replaces its copies, and reports when all data has enough of them.
func (o *observer) needless(d *disk) bool {
	since, seen := o.in.Since[d.target.UID]
	if !seen || !d.target.Spec.Remove || d.unproven == "" || o.in.State == nil || !o.in.State.Data.Whole() {
		return false
	}
	if o.listed.all != nil {
		return false // its chunkserver does not report its disks
	}
	return since.Add(settle).Before(o.in.State.Asked)
}

// missingTargets names the targets that are not online: the disks that are not proven, and the others.
func (o *observer) missingTargets() (unproven, missing []string) {
	unready := map[int]bool{}
	for i := range o.disks {
		if o.disks[i].unproven != "" {
			unready[o.disks[i].at] = true
		}
	}
	for i := range o.seen.Targets {
		switch t := &o.seen.Targets[i]; {
		case t.Online || t.Removable:
		case unready[i]:
			unproven = append(unproven, fmt.Sprintf("%s on node %s in pool %s (%s)", t.StorageTarget, t.Node, t.StoragePool, t.Message))
		default:
			missing = append(missing, fmt.Sprintf("%s in pool %s (%s)", t.Name(), t.StoragePool, t.Message))
		}
	}
	return append(unproven, o.unplaced...), missing
}

// unprovenMetadata returns why the disk of the metadata is not ready; empty if it is, or if there is none.
func (o *observer) unprovenMetadata() string {
	record := o.fs.Status.Metadata
	if record == nil || !assign.OnDevices(o.fs.Spec.MetadataServers.Targets) {
		return ""
	}
	disks := recordedTarget(o.in)
	switch {
	case record.Target == "":
		return fmt.Sprintf("one for the metadata on node %s", record.Node)
	case len(disks) == 0:
		return fmt.Sprintf("%s on node %s for the metadata (its StorageTarget is gone; the metadata is on that disk alone)", record.Target, record.Node)
	}
	if _, why := assign.Proven(disks[0]); why != "" {
		return backend.Shorten(fmt.Sprintf("%s on node %s for the metadata (its disk: %s)", record.Target, record.Node, why))
	}
	return ""
}
