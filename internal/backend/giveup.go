package backend

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"parallelfs.dev/operator/api/v1alpha1"
)

// GaveUp reports whether a node was decommissioned, even if it is back.
func (in Input) GaveUp(node string) bool {
	n := in.FileSystemNodeOn(node)
	return n != nil && n.Spec.GivenUp != nil
}

// FileSystemNodeOn returns the FileSystemNode of a node, nil if there is none.
func (in Input) FileSystemNodeOn(node string) *v1alpha1.FileSystemNode {
	i, found := slices.BinarySearchFunc(in.FileSystemNodes, node, func(n v1alpha1.FileSystemNode, name string) int {
		return strings.Compare(n.Spec.Node, name)
	})
	if !found {
		return nil
	}
	return &in.FileSystemNodes[i]
}

// Remaining returns the Input without decommissioned nodes that are not Ready, and without the pods of retired servers there, so that
// nothing waits for them.
func (in Input) Remaining() Input {
	gone, gaveUp := map[string]bool{}, map[string]bool{}
	for i := range in.FileSystemNodes {
		n := &in.FileSystemNodes[i].Spec
		if n.GivenUp == nil {
			continue
		}
		node, _ := in.Node(n.Node)
		gone[n.Node], gaveUp[n.Node] = !node.Ready, true
	}
	if len(gaveUp) == 0 {
		return in
	}
	out := in
	out.Nodes = slices.DeleteFunc(slices.Clone(in.Nodes), func(n Node) bool { return gone[n.Name] })
	out.Pods = slices.DeleteFunc(slices.Clone(in.Pods), func(p Pod) bool { return gone[p.Node] || gaveUp[p.Node] && p.StoragePool != "" })
	return out.Indexed()
}

// Retire sets everything that was assigned to a node to retired, or back.
func Retire(n *v1alpha1.FileSystemNode, retired bool) {
	for i := range n.Spec.Members {
		if m := &n.Spec.Members[i]; IsRecord(m) {
			m.Retired = retired
		}
	}
}

// Storing reports whether a node has a storage server that has not retired.
func Storing(n *v1alpha1.FileSystemNode) bool {
	return slices.ContainsFunc(n.Spec.Members, func(m v1alpha1.NodeMember) bool { return m.Role == v1alpha1.RoleStorage && !m.Retired })
}

// TooFewWithout names the pool that, without a node, would have fewer nodes than copies; empty if there is none.
func TooFewWithout(in Input, node string) string {
	for _, pool := range in.FileSystem.Spec.StoragePools {
		record, recorded := in.Pool(pool.Name)
		if !recorded || !slices.Contains(record.Nodes, node) {
			continue
		}
		if left := len(record.Nodes) - 1; left < max(1, int(Copies(pool))) {
			return fmt.Sprintf("storage pool %s keeps %d copies on as many nodes, and has %d without this one; add a node to it first, or lower its copies",
				pool.Name, Copies(pool), left)
		}
	}
	return ""
}

// StillThere names a server of a node, or of no known node, that the filesystem lists as online; empty if there is none. For a
// decommissioned node, only its own address counts.
func StillThere(in Input, node string, name func(Server) string) string {
	if in.State == nil {
		return ""
	}
	record := in.FileSystemNodeOn(node)
	gone := record != nil && record.Spec.GivenUp != nil
	for i := range in.State.Servers {
		s := &in.State.Servers[i]
		if !s.Online {
			continue
		}
		switch owner, known := in.NodeAt(s.IP); {
		case known && owner.Name == node:
			return fmt.Sprintf("its %s is online", name(*s))
		case gone && !known && s.IP == record.Spec.GivenUp.Address && s.IP != "":
			return fmt.Sprintf("its %s is online at %s", name(*s), cmp.Or(Address(s.IP, s.Port), s.IP))
		case gone:
		case !known && s.IP != "":
			return fmt.Sprintf("a %s is online at %s, which is the address of no node or of several: it may be that of this one", name(*s), cmp.Or(Address(s.IP, s.Port), s.IP))
		}
	}
	return ""
}
