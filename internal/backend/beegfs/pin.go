package beegfs

import (
	"fmt"
	"slices"
	"strconv"

	"k8s.io/utils/cpuset"

	"parallelfs.dev/operator/api/v1alpha1"
	"parallelfs.dev/operator/internal/backend"
	"parallelfs.dev/operator/internal/backend/shared/assign"
	"parallelfs.dev/operator/internal/backend/shared/podspec"
	"parallelfs.dev/operator/internal/plan"
)

// metadataNodes returns the nodes with metadata servers, by name.
func metadataNodes(in backend.Input) []string {
	var nodes []string
	for _, a := range in.Given() {
		if a.Role == v1alpha1.RoleMetadata {
			nodes = append(nodes, a.Node)
		}
	}
	slices.Sort(nodes)
	return slices.Compact(nodes)
}

// metadataNodesOf returns the nodes that have a metadata server in a slot, by name.
func metadataNodesOf(in backend.Input, slot int32) []string {
	var nodes []string
	for _, a := range in.Given() {
		if a.Role == v1alpha1.RoleMetadata && a.Slot == slot {
			nodes = append(nodes, a.Node)
		}
	}
	slices.Sort(nodes)
	return nodes
}

// PinDaemons returns the metadata servers, each with its slot as its entry in the list of pins, and the storage servers, one for each pool
// on each node. The management service is not pinned.
func (Backend) PinDaemons(fs *v1alpha1.FileSystem, nodes []v1alpha1.FileSystemNode) []plan.PinDaemon {
	in := backend.Input{FileSystem: fs, FileSystemNodes: nodes}
	var out []plan.PinDaemon
	for slot := range metaSlots(fs) {
		out = append(out, plan.PinDaemon{
			Name: metaDaemon(slot), Index: int(slot), Field: "spec.metadataServers.cpuPinning", Pinning: fs.Spec.MetadataServers.CPUPinning,
			Nodes: metadataNodesOf(in, slot), Role: v1alpha1.RoleMetadata, InDirectories: !assign.OnDevices(fs.Spec.MetadataServers.Targets),
		})
	}
	for _, pool := range fs.Spec.StoragePools {
		if record, ok := in.Pool(pool.Name); ok {
			out = append(out, plan.PinDaemon{
				Name: storageDaemon(pool.Name), Field: "spec.storagePools[" + pool.Name + "].cpuPinning",
				Pinning: pool.CPUPinning, Nodes: record.Nodes,
				Role: v1alpha1.RoleStorage, StoragePool: pool.Name, InDirectories: !assign.OnDevices(pool.Targets),
			})
		}
	}
	return out
}

// variableWorkers is the number of worker threads of a metadata server, which differs from node to node.
const variableWorkers = "META_WORKERS"

// workersPerCore is the number of worker threads that a new metadata server gets for each of its cores. On dedicated metadata servers,
// "this is typically set to a value between four and eight times the number of CPU cores" (beegfs-meta.conf of 7.4.6 and 8.3.1,
// tuneNumWorkers).
const workersPerCore = 4

// mostWorkers is the upper bound of spec.metadataServers.beegfs.workerThreads.
const mostWorkers = 4096

// askedWorkers returns spec.metadataServers.beegfs.workerThreads, nil without it.
func askedWorkers(fs *v1alpha1.FileSystem) *int32 {
	if own := fs.Spec.MetadataServers.BeeGFS; own != nil {
		return own.WorkerThreads
	}
	return nil
}

// perCore returns the number of worker threads for each core, 0 for a filesystem that has a constant number.
func perCore(fs *v1alpha1.FileSystem) int32 {
	if askedWorkers(fs) != nil || fs.Status.Chosen == nil {
		return 0
	}
	return fs.Status.Chosen.MetadataWorkersPerCore
}

// metaWorkers returns tuneNumWorkers of the metadata servers.
func metaWorkers(fs *v1alpha1.FileSystem) string {
	asked := askedWorkers(fs)
	switch {
	case asked != nil:
		return fmt.Sprint(*asked)
	case perCore(fs) > 0:
		return variable(variableWorkers)
	default:
		return fmt.Sprint(defaultMetaWorkers)
	}
}

// workersOf returns the number of worker threads of one metadata server. A server without CPUs of its own has an equal part of the cores of
// its node. That number is recorded with the server and stays, so that an inventory that changes or is missing restarts no server.
func workersOf(in backend.Input, a backend.Given) int32 {
	pinning := in.FileSystem.Spec.MetadataServers.CPUPinning
	found := in.Inventories[a.Node].CPU
	cores := found.Cores
	switch {
	case podspec.Bound(pinning):
		set, err := cpuset.Parse(in.Pinnings[a.Node][metaDaemon(a.Slot)].CPUs)
		if err != nil {
			return defaultMetaWorkers
		}
		cores = coresOf(set, found.Siblings)
	case pinning != nil && pinning.CPUs != nil:
		cores = *pinning.CPUs
		if found.Cores > 0 && found.Threads > found.Cores {
			cores = (cores*found.Cores + found.Threads - 1) / found.Threads
		}
	default:
		if before := recordedWorkers(a); before > 0 {
			return before
		}
		slots := metaSlots(in.FileSystem)
		cores = (cores + slots - 1) / slots
	}
	return min(max(cores*perCore(in.FileSystem), defaultMetaWorkers), mostWorkers)
}

// recordedWorkers returns the number that the record of a server has, 0 if it has none.
func recordedWorkers(a backend.Given) int32 {
	n, err := strconv.ParseInt(string(a.Variables[variableWorkers]), 10, 32)
	if err != nil {
		return 0
	}
	return int32(n)
}

// coresOf returns the number of cores to which the CPUs belong. The list siblings has the CPUs of each core that has several, such as 0,32.
func coresOf(cpus cpuset.CPUSet, siblings []string) int32 {
	cores := cpus.Size()
	for _, text := range siblings {
		if of, err := cpuset.Parse(text); err == nil {
			cores -= max(of.Intersection(cpus).Size()-1, 0)
		}
	}
	return int32(cores) //nolint:gosec // at most the CPUs of a machine
}
