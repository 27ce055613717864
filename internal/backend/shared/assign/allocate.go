package assign

import (
	"fmt"
	"slices"

	"parallelfs.dev/operator/api/v1alpha1"
	"parallelfs.dev/operator/internal/backend"
	"parallelfs.dev/operator/internal/backend/shared/nodefacts"
)

// RecordPools decides the nodes and the slot of each pool. It starts from the records and from the disks, and only adds to them. A slot
// needs no promise, because the status holds the pools themselves.
func RecordPools(in backend.Input, disks OnDisks, numbers *Numbers) ([]backend.PoolRecord, error) {
	fs := in.FileSystem
	var out []backend.PoolRecord
	for _, pool := range fs.Spec.StoragePools {
		record, known := in.Pool(pool.Name)
		if slot, recorded := disks.Slot(pool.Name); !known && recorded {
			record.Slot = slot
		} else if !known {
			// The pool's own disks may record its slot.
			record.Waits = len(disks.Unread) > 0 || OnDevices(pool.Targets) && !hasDisks(in, pool.Name)
			if !record.Waits {
				number, ok := numbers.next(v1alpha1.NumberOfStoragePool)
				if !ok {
					return nil, backend.Invalid(v1alpha1.ReasonInvalidSpec, "storage pool %q is one too many: a %s filesystem has at most %d",
						pool.Name, fs.Spec.Type, numbers.by.Most[v1alpha1.NumberOfStoragePool])
				}
				record.Slot = number - 1
			}
		}
		for _, n := range backend.NodesOf(fs, in.Nodes, pool.NodeSelector) {
			if nodefacts.HasTargets(pool.Targets, n.Name) && !in.GaveUp(n.Name) {
				record.Nodes = append(record.Nodes, n.Name)
			}
		}
		slices.Sort(record.Nodes)
		record.Nodes = slices.Compact(record.Nodes)
		if len(record.Nodes) == 0 {
			return nil, backend.Invalid(v1alpha1.ReasonNoNodes,
				"no node matches %s of storage pool %q%s; label the nodes that shall hold its targets",
				nodefacts.SelectedBy(fs, "the nodeSelector", pool.NodeSelector), pool.Name, ofDevices(pool.Targets))
		}
		if int(backend.Copies(pool)) > len(record.Nodes) {
			return nil, backend.Invalid(v1alpha1.ReasonInvalidSpec,
				"storage pool %q wants %d copies on as many nodes, but has %s only; label more nodes or lower spec.storagePools[%s].copies",
				pool.Name, backend.Copies(pool), backend.List(record.Nodes), pool.Name)
		}
		out = append(out, record)
	}
	return out, nil
}

// Recorded returns the status of a filesystem with the given metadata, pools and numbers, and the servers that this adds to the pools, for
// Allocation.Joins. Earlier observations of a pool are kept.
func Recorded(
	in backend.Input, metadata v1alpha1.MetadataRecord, pools []backend.PoolRecord, numbers *Numbers,
) (v1alpha1.FileSystemStatus, []string) {
	status := in.FileSystem.Status
	status.Metadata, status.Given = &metadata, numbers.Settle()
	status.StoragePools = make([]v1alpha1.StoragePoolStatus, 0, len(pools))
	var joins []string
	for _, p := range pools {
		if p.Waits {
			continue
		}
		record, known := in.Pool(p.Name)
		if !known {
			joins = append(joins, fmt.Sprintf("storage pool %s is made", p.Name))
		}
		for _, node := range p.Nodes {
			if _, there := slices.BinarySearch(record.Nodes, node); known && !there {
				joins = append(joins, fmt.Sprintf("node %s joins storage pool %s", node, p.Name))
			}
		}
		pool := v1alpha1.StoragePoolStatus{Name: p.Name, Slot: p.Slot}
		for _, former := range in.FileSystem.Status.StoragePools {
			if former.Name == p.Name {
				pool = former
			}
		}
		status.StoragePools = append(status.StoragePools, pool)
	}
	return status, joins
}

// PoolNodes returns the nodes of pools, by name, for plan.TargetNodes.
func PoolNodes(pools []backend.PoolRecord) map[string][]string {
	out := map[string][]string{}
	for _, pool := range pools {
		out[pool.Name] = pool.Nodes
	}
	return out
}

func ofDevices(targets v1alpha1.TargetsSpec) string {
	if len(targets.Devices) == 0 {
		return ""
	}
	return " and is in its targets.devices"
}
