package moosefs

import (
	"slices"

	"parallelfs.dev/operator/api/v1alpha1"
	"parallelfs.dev/operator/internal/backend"
	"parallelfs.dev/operator/internal/backend/shared/assign"
	"parallelfs.dev/operator/internal/backend/shared/metadatajobs"
	"parallelfs.dev/operator/internal/backend/shared/nodefacts"
	"parallelfs.dev/operator/internal/plan"
)

// maxSlots is the number of storage pools. Each pool has a label letter and a port of its own.
const maxSlots = 16

// numbering has numbers for pools only, because MooseFS identifies its servers by their addresses.
var numbering = assign.Numbering{Most: map[v1alpha1.NumberKind]int32{v1alpha1.NumberOfStoragePool: maxSlots}}

// Allocate decides the node of the metadata, and the nodes and the slot of each pool.
func (b Backend) Allocate(in backend.Input) (backend.Allocation, error) {
	in = in.Indexed()
	node, err := metadataNode(in)
	if err != nil {
		return backend.Allocation{}, err
	}
	disks, err := assign.ReadDisks(in)
	if err != nil {
		return backend.Allocation{}, err
	}
	numbers := assign.NewNumbers(in, disks, numbering)
	pools, err := assign.RecordPools(in, disks, numbers)
	if err != nil {
		return backend.Allocation{}, err
	}
	nodes := plan.TargetNodes{
		Metadata:     metadatajobs.MetadataNodes(in.FileSystem, in.Nodes, in.FileSystem.Spec.MetadataServers.NodeSelector, node),
		Pools:        assign.PoolNodes(pools),
		LostMetadata: metadatajobs.LostMetadataTarget(in.FileSystem, in.Nodes, in.FileSystem.Spec.MetadataServers.NodeSelector),
	}
	if disks.Waits(in.FileSystem) {
		return backend.Allocation{Status: in.FileSystem.Status, TargetNodes: nodes, Waits: true, Unread: disks.Why()}, nil
	}
	metadata, err := disks.RecordMetadata(in, b.MetadataPlace(in.FileSystem), node)
	if err != nil {
		return backend.Allocation{}, err
	}
	fs := *in.FileSystem
	var joins []string
	fs.Status, joins = assign.Recorded(in, metadata, pools, numbers)
	records := assign.NewRecords(in)
	records.Join(pools, chunkserverDaemon)
	if err := assign.RefuseConflicts(in, b.Claims(&fs, records.All())); err != nil {
		return backend.Allocation{}, err
	}
	out := backend.Allocation{Status: fs.Status, Nodes: records.Changed(), Joins: joins, TargetNodes: nodes}
	if slices.ContainsFunc(pools, func(p backend.PoolRecord) bool { return p.Waits }) {
		out.Unread = disks.Why()
	}
	return out, nil
}

// reservedPorts is how many ports a filesystem reserves from its base port; see v1alpha1.MooseFSSpec.BasePort.
const reservedPorts = 32

// Claims returns the ports of a filesystem, and the directories of the metadata and the pools.
func (Backend) Claims(fs *v1alpha1.FileSystem, nodes []v1alpha1.FileSystemNode) backend.Claims {
	claims := backend.NewClaims(fs, backend.PortRange{First: fs.Spec.MooseFS.Ports(), Count: reservedPorts}, "spec.moosefs.basePort")
	if fs.Status.Metadata == nil && own(fs).BasePort == 0 {
		claims.Ports = backend.PortRange{} // it will choose free ports
	}
	if fs.Status.Metadata != nil {
		claims.UseMetadata(*fs.Status.Metadata)
		claims.UsePools(fs, nodes)
	}
	return claims
}

// metadataNode returns the recorded node, or the one that matches.
func metadataNode(in backend.Input) (string, error) {
	fs := in.FileSystem
	if fs.Status.Metadata != nil {
		return fs.Status.Metadata.Node, nil
	}
	selector := fs.Spec.MetadataServers.NodeSelector
	nodes := nodefacts.OneNode(in, v1alpha1.RoleMetadata, selector, fs.Spec.MetadataServers.Targets)
	by := nodefacts.SelectedBy(fs, "spec.metadataServers.nodeSelector", selector)
	switch len(nodes) {
	case 0:
		return "", backend.Invalid(v1alpha1.ReasonNoNodes,
			"no node matches %s; label the node that shall run the MooseFS master", by)
	case 1:
		return nodes[0].Name, nil
	default:
		return "", backend.Invalid(v1alpha1.ReasonTooManyNodes,
			"%s matches %s, but MooseFS has exactly one active master; leave the label on one node", by, nodefacts.NodeNames(nodes))
	}
}
