package backend

import (
	"path"
	"slices"
	"strings"

	"parallelfs.dev/operator/api/v1alpha1"
)

// The number of ports that a filesystem reserves from its base port.
const (
	mooseFSPorts = 32
	// BeeGFSPorts is that of a BeeGFS; see v1alpha1.BeeGFSSpec.BasePort.
	BeeGFSPorts = 64
)

// PortRange is the ports from First, Count of them. Count is 0 for a filesystem that has none yet.
type PortRange struct{ First, Count int32 }

// Overlap is true when a port is in both.
func (p PortRange) Overlap(other PortRange) bool {
	return p.First < other.First+other.Count && other.First < p.First+p.Count
}

// PortsOf are the ports that a filesystem of any type has, or asks for.
func PortsOf(fs *v1alpha1.FileSystem) PortRange {
	switch {
	case fs.Spec.Type == v1alpha1.MooseFS:
		return PortRange{fs.Spec.MooseFS.Ports(), mooseFSPorts}
	case fs.Status.BeeGFS != nil && fs.Status.BeeGFS.BasePort != 0:
		return PortRange{fs.Status.BeeGFS.BasePort, BeeGFSPorts}
	case fs.Spec.BeeGFS != nil && fs.Spec.BeeGFS.BasePort != nil:
		return PortRange{*fs.Spec.BeeGFS.BasePort, BeeGFSPorts}
	default:
		return PortRange{}
	}
}

// RefuseConflicts refuses a port or a directory that another filesystem, of any type, uses on the same node.
func RefuseConflicts(in Input, record Record) error {
	fs := in.FileSystem
	ports, field := PortsOf(fs), "spec.moosefs.basePort"
	if record.BeeGFS != nil {
		ports, field = PortRange{record.BeeGFS.BasePort, BeeGFSPorts}, "spec.beegfs.basePort"
	}
	mine := uses(fs, record)
	for i := range in.Others {
		other := &in.Others[i]
		if other.Status.Metadata == nil {
			continue // it has claimed nothing yet, and will find our claim when it does
		}
		theirs, theirPorts := uses(other, recordedBy(other)), PortsOf(other)
		for _, node := range SortedKeys(mine) {
			directories, sharesNode := theirs[node]
			if !sharesNode {
				continue
			}
			if ports.Overlap(theirPorts) {
				return Invalid(v1alpha1.ReasonPortConflict,
					"FileSystem %s/%s uses the ports %d to %d on node %s too; set %s at least %d away from %d",
					other.Namespace, other.Name, theirPorts.First, theirPorts.First+theirPorts.Count-1, node,
					field, max(ports.Count, theirPorts.Count), theirPorts.First)
			}
			for _, d := range mine[node] {
				for _, e := range directories {
					if Nested(d, e) {
						return Invalid(v1alpha1.ReasonDirectoryConflict,
							"FileSystem %s/%s keeps data in %s on node %s, and this one asks for %s; give each its own directory", other.Namespace, other.Name, e, node, d)
					}
				}
			}
		}
	}
	return nil
}

// Nested is true when two directories are the same, or one lies in the other.
func Nested(d, e string) bool {
	d, e = path.Clean(d), path.Clean(e)
	return d == e || strings.HasPrefix(d, e+"/") || strings.HasPrefix(e, d+"/")
}

// recordedBy is what the status of a filesystem has recorded.
func recordedBy(fs *v1alpha1.FileSystem) Record {
	record := Record{Metadata: *fs.Status.Metadata, BeeGFS: fs.Status.BeeGFS}
	for _, p := range fs.Status.StoragePools {
		record.StoragePools = append(record.StoragePools, PoolRecord{Name: p.Name, Slot: p.Slot, Nodes: p.Nodes})
	}
	return record
}

// uses lists the directories that a filesystem uses on each node where it has servers. Those on a disk of its own are not
// in the list: a disk that two want is refused where it is chosen. A node without any is in it, because of the ports.
func uses(fs *v1alpha1.FileSystem, record Record) map[string][]string {
	out := map[string][]string{record.Metadata.Node: nil}
	if record.Metadata.Target == "" && record.Metadata.Directory != "" {
		out[record.Metadata.Node] = []string{record.Metadata.Directory}
	}
	if record.BeeGFS != nil {
		for _, a := range record.BeeGFS.Allocations {
			directories := out[a.Node]
			for _, t := range a.Targets {
				if a.Role == v1alpha1.RoleMetadata && path.IsAbs(t.Name) {
					directories = append(directories, t.Name)
				}
			}
			out[a.Node] = directories
		}
	}
	for _, pool := range record.StoragePools {
		i := slices.IndexFunc(fs.Spec.StoragePools, func(p v1alpha1.StoragePoolSpec) bool { return p.Name == pool.Name })
		if i < 0 {
			continue
		}
		for _, node := range pool.Nodes {
			directories := out[node]
			for _, d := range fs.Spec.StoragePools[i].Targets.Directories {
				directories = append(directories, string(d))
			}
			out[node] = directories
		}
	}
	return out
}
