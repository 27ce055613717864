package moosefs

import (
	"path"
	"slices"
	"strings"

	"parallelfs.dev/operator/api/v1alpha1"
	"parallelfs.dev/operator/internal/backend"
)

// maxSlots is the number of storage pools: each has a label letter and a port of its own.
const maxSlots = 16

// Record decides which node holds the metadata, and which nodes and which slot belong to a pool.
func (Backend) Record(in backend.Input) (backend.Record, error) {
	metadata, err := recordMetadata(in)
	if err != nil {
		return backend.Record{}, err
	}
	pools, err := recordPools(in)
	if err != nil {
		return backend.Record{}, err
	}
	record := backend.Record{Metadata: metadata, StoragePools: pools}
	if err := refuseConflicts(in, record); err != nil {
		return backend.Record{}, err
	}
	return record, nil
}

// recordMetadata keeps the recorded node, and directory, for ever: a master on another would start without the metadata. On
// a disk, the node is recorded first, because the disk is chosen among those of that node.
func recordMetadata(in backend.Input) (v1alpha1.MetadataRecord, error) {
	fs := in.FileSystem
	record, err := recordMetadataNode(in)
	if err != nil || record.Directory != "" {
		return record, err
	}
	if !onDevices(fs.Spec.Metadata.Targets) {
		record.Directory = string(fs.Spec.Metadata.Targets.Directories[0])
		return record, nil
	}
	if disks := metadataTargets(in, record.Node); len(disks) > 0 {
		record.Target = disks[0].Name
		record.Directory = path.Join(targetPath(fs, record.Target), componentMaster)
	}
	return record, nil
}

func recordMetadataNode(in backend.Input) (v1alpha1.MetadataRecord, error) {
	fs := in.FileSystem
	if fs.Status.Metadata != nil {
		return *fs.Status.Metadata, nil
	}
	nodes := matching(in.Nodes, fs.Spec.Metadata.NodeSelector)
	switch len(nodes) {
	case 0:
		return v1alpha1.MetadataRecord{}, backend.Invalid(v1alpha1.ReasonNoNodes,
			"no node matches spec.metadata.nodeSelector (%s); label the node that shall run the MooseFS master", selectorText(fs.Spec.Metadata.NodeSelector))
	case 1:
		return v1alpha1.MetadataRecord{Node: nodes[0].Name}, nil
	default:
		return v1alpha1.MetadataRecord{}, backend.Invalid(v1alpha1.ReasonTooManyNodes,
			"spec.metadata.nodeSelector (%s) matches %s, but MooseFS has exactly one active master; leave the label on one node",
			selectorText(fs.Spec.Metadata.NodeSelector), nodeNames(nodes))
	}
}

func recordPools(in backend.Input) ([]backend.PoolRecord, error) {
	fs := in.FileSystem
	recorded := map[string]v1alpha1.StoragePoolStatus{}
	taken := map[int32]bool{}
	for _, p := range fs.Status.StoragePools {
		recorded[p.Name] = p
		taken[p.Slot] = true
	}
	var out []backend.PoolRecord
	for _, pool := range fs.Spec.StoragePools {
		record := backend.PoolRecord{Name: pool.Name}
		if p, ok := recorded[pool.Name]; ok {
			record.Slot, record.Nodes = p.Slot, slices.Clone(p.Nodes)
		} else {
			for taken[record.Slot] {
				record.Slot++
			}
			if record.Slot >= maxSlots {
				return nil, backend.Invalid(v1alpha1.ReasonInvalidSpec, "storage pool %q is one too many: a MooseFS filesystem has at most %d", pool.Name, maxSlots)
			}
			taken[record.Slot] = true
		}
		for _, n := range matching(in.Nodes, pool.NodeSelector) {
			if named(pool.Targets, n.Name) && !slices.Contains(record.Nodes, n.Name) {
				record.Nodes = append(record.Nodes, n.Name)
			}
		}
		slices.Sort(record.Nodes)
		if len(record.Nodes) == 0 {
			return nil, backend.Invalid(v1alpha1.ReasonNoNodes,
				"no node matches the nodeSelector (%s) of storage pool %q%s; label the nodes that shall hold its targets",
				selectorText(pool.NodeSelector), pool.Name, ofDevices(pool.Targets))
		}
		if int(copies(pool)) > len(record.Nodes) {
			return nil, backend.Invalid(v1alpha1.ReasonInvalidSpec,
				"storage pool %q wants %d copies on as many nodes, but has %s only; label more nodes or lower spec.storagePools[%s].copies",
				pool.Name, copies(pool), strings.Join(record.Nodes, ", "), pool.Name)
		}
		out = append(out, record)
	}
	return out, nil
}

// named is true when a pool has targets on a node that its selector matches: where devices are named, only the nodes that
// they are named of do.
func named(targets v1alpha1.TargetsSpec, node string) bool {
	return len(targets.Devices) == 0 || slices.ContainsFunc(targets.Devices, func(d v1alpha1.DeviceReference) bool { return d.Node == node })
}

func ofDevices(targets v1alpha1.TargetsSpec) string {
	if len(targets.Devices) == 0 {
		return ""
	}
	return " and stands in its targets.devices"
}

// refuseConflicts refuses a port or a directory that another filesystem uses on the same node.
func refuseConflicts(in backend.Input, record backend.Record) error {
	fs := in.FileSystem
	mine := uses(fs, record.Metadata, record.StoragePools)
	for i := range in.Others {
		other := &in.Others[i]
		if other.Spec.MooseFS == nil || other.Status.Metadata == nil {
			continue // it has claimed nothing yet, and will find our claim when it does
		}
		var pools []backend.PoolRecord
		for _, p := range other.Status.StoragePools {
			pools = append(pools, backend.PoolRecord{Name: p.Name, Slot: p.Slot, Nodes: p.Nodes})
		}
		theirs := uses(other, *other.Status.Metadata, pools)
		for _, node := range sortedKeys(mine) {
			directories, shared := theirs[node]
			if !shared {
				continue
			}
			if portsOf(fs).overlap(portsOf(other)) {
				return backend.Invalid(v1alpha1.ReasonPortConflict,
					"FileSystem %s/%s uses the ports %d to %d on node %s too; set spec.moosefs.basePort at least %d away from %d",
					other.Namespace, other.Name, portsOf(other).base, portsOf(other).base+portRange-1, node, portRange, portsOf(other).base)
			}
			for _, d := range mine[node] {
				for _, e := range directories {
					if d == e || strings.HasPrefix(d, e+"/") || strings.HasPrefix(e, d+"/") {
						return backend.Invalid(v1alpha1.ReasonDirectoryConflict,
							"FileSystem %s/%s keeps data in %s on node %s, and this one asks for %s; give each its own directory", other.Namespace, other.Name, e, node, d)
					}
				}
			}
		}
	}
	return nil
}

// uses lists the directories that a filesystem uses on each node where it has servers. Those on a disk of its own are not
// in the list: a disk that two want is refused where it is chosen.
func uses(fs *v1alpha1.FileSystem, metadata v1alpha1.MetadataRecord, pools []backend.PoolRecord) map[string][]string {
	out := map[string][]string{metadata.Node: nil}
	if metadata.Target == "" && metadata.Directory != "" {
		out[metadata.Node] = []string{metadata.Directory}
	}
	for _, record := range pools {
		for _, pool := range fs.Spec.StoragePools {
			if pool.Name != record.Name {
				continue
			}
			for _, node := range record.Nodes {
				directories := out[node]
				for _, d := range pool.Targets.Directories {
					directories = append(directories, string(d))
				}
				out[node] = directories // none, where all are disks: its ports are taken all the same
			}
		}
	}
	return out
}

func selectorText(selector v1alpha1.NodeSelector) string {
	var parts []string
	for _, key := range sortedKeys(selector) {
		parts = append(parts, key+"="+selector[key])
	}
	return strings.Join(parts, ",")
}

func nodeNames(nodes []backend.Node) string {
	names := make([]string, len(nodes))
	for i, n := range nodes {
		names[i] = n.Name
	}
	return strings.Join(names, ", ")
}
