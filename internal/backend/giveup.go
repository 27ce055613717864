package backend

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"parallelfs.dev/operator/api/v1alpha1"
)

// GaveUp is true for a node that was given up, whether it is back or not.
func (in Input) GaveUp(node string) bool {
	n := in.FileSystemNodeOn(node)
	return n != nil && n.Spec.GivenUp != nil
}

// FileSystemNodeOn is that of a node, nil when there is none.
func (in Input) FileSystemNodeOn(node string) *v1alpha1.FileSystemNode {
	i, found := slices.BinarySearchFunc(in.FileSystemNodes, node, func(n v1alpha1.FileSystemNode, name string) int {
		return strings.Compare(n.Spec.Node, name)
	})
	if !found {
		return nil
	}
	return &in.FileSystemNodes[i]
}

// Remaining is the Input without the nodes that were given up, as long as they are not Ready, and without the pods of those that have
// retired there: nobody waits for them.
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

// Retire makes all that a node was given retired.
func Retire(n *v1alpha1.FileSystemNode, retired bool) {
	for i := range n.Spec.Members {
		if m := &n.Spec.Members[i]; IsRecord(m) {
			m.Retired = retired
		}
	}
}

// Storing is true for a node with a storage server that has not retired.
func Storing(n *v1alpha1.FileSystemNode) bool {
	return slices.ContainsFunc(n.Spec.Members, func(m v1alpha1.NodeMember) bool { return m.Role == v1alpha1.RoleStorage && !m.Retired })
}

// TooFewWithout says which pool would have fewer nodes than it keeps copies without a node; empty when none would.
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

// StillThere says which server of a node, or of no node that is known, the filesystem lists as online; empty when none is. Of a node that
// was given up, only its own address counts.
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
			return fmt.Sprintf("its %s takes part", name(*s))
		case gone && !known && s.IP == record.Spec.GivenUp.Address && s.IP != "":
			return fmt.Sprintf("its %s takes part at %s", name(*s), cmp.Or(Address(s.IP, s.Port), s.IP))
		case gone:
		case !known && s.IP != "":
			return fmt.Sprintf("a %s takes part at %s, which is the address of no node or of several: it may be that of this one", name(*s), cmp.Or(Address(s.IP, s.Port), s.IP))
		}
	}
	return ""
}
