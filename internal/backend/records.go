package backend

import (
	"slices"

	"parallelfs.dev/operator/api/v1alpha1"
)

// Given is a server with its permanent assignments, and its node.
type Given struct {
	Node string
	// GivenUp is true if that node was decommissioned.
	GivenUp bool
	v1alpha1.NodeMember
}

// Server returns its name among all servers of the filesystem (ServerStatus.Name).
func (g Given) Server() string { return g.Name + "." + g.Node }

// Target returns the assignment of one of its targets: a StorageTarget, or a directory.
func (g Given) Target(name string) (v1alpha1.MemberTarget, bool) {
	for i := range g.Targets {
		if g.Targets[i].Name == name {
			return g.Targets[i], true
		}
	}
	return v1alpha1.MemberTarget{}, false
}

// IsRecord reports whether a member has a permanent assignment: a storage server has its place in a pool, others have an id. It stays
// recorded whatever happens to its node and its configuration. For other members, status.metadata and the labels of nodes decide where they
// run.
func IsRecord(m *v1alpha1.NodeMember) bool { return m.Role == v1alpha1.RoleStorage || m.ID != 0 }

// GivenOn returns the servers with assignments, by node and name.
func GivenOn(nodes []v1alpha1.FileSystemNode) []Given {
	var out []Given
	for i := range nodes {
		for j := range nodes[i].Spec.Members {
			if m := &nodes[i].Spec.Members[j]; IsRecord(m) {
				out = append(out, Given{Node: nodes[i].Spec.Node, GivenUp: nodes[i].Spec.GivenUp != nil, NodeMember: *m})
			}
		}
	}
	return out
}

// Given returns the servers of the filesystem with assignments, by node and name.
func (in Input) Given() []Given { return GivenOn(in.FileSystemNodes) }

// GivenTo returns the assignments of a member of a node.
func (in Input) GivenTo(node, member string) (Given, bool) {
	n := in.FileSystemNodeOn(node)
	if n == nil {
		return Given{}, false
	}
	return GivenIn(n, member)
}

// GivenIn returns the assignments of a member in the FileSystemNode of its node.
func GivenIn(n *v1alpha1.FileSystemNode, member string) (Given, bool) {
	for i := range n.Spec.Members {
		if m := &n.Spec.Members[i]; m.Name == member && IsRecord(m) {
			return Given{Node: n.Spec.Node, GivenUp: n.Spec.GivenUp != nil, NodeMember: *m}, true
		}
	}
	return Given{}, false
}

// PoolSlot returns the recorded slot of a storage pool.
func (in Input) PoolSlot(name string) (int32, bool) {
	for i := range in.FileSystem.Status.StoragePools {
		if p := &in.FileSystem.Status.StoragePools[i]; p.Name == name {
			return p.Slot, true
		}
	}
	return 0, false
}

// Pool returns the record of a storage pool: its slot, and the nodes that have a server of it, by name. A node stays in the record when its
// labels change, because it holds data, and when its server has retired. A decommissioned node does not.
func (in Input) Pool(name string) (PoolRecord, bool) {
	slot, recorded := in.PoolSlot(name)
	if !recorded {
		return PoolRecord{Name: name}, false
	}
	return PoolRecord{Name: name, Slot: slot, Nodes: poolNodes(in.FileSystemNodes, name)}, true
}

// poolNodes returns the nodes that have a server of a pool and were not decommissioned, by name.
func poolNodes(nodes []v1alpha1.FileSystemNode, pool string) []string {
	var out []string
	for i := range nodes {
		if nodes[i].Spec.GivenUp == nil && slices.ContainsFunc(nodes[i].Spec.Members, func(m v1alpha1.NodeMember) bool {
			return m.Role == v1alpha1.RoleStorage && m.StoragePool == pool
		}) {
			out = append(out, nodes[i].Spec.Node)
		}
	}
	slices.Sort(out)
	return out
}

// Expected reports whether the disk of a StorageTarget shows that the filesystem has listed it before.
func (in Input) Expected(target string) bool {
	t := in.TargetNamed(target)
	if t == nil || t.Status.Record == nil {
		return false
	}
	m := t.Status.Record.Member
	return m != nil && m.Initialized != nil
}

// Copies returns the number of copies in a pool of a FileSystem whose spec is complete.
func Copies(pool v1alpha1.StoragePoolSpec) int32 { return pool.Copies }
