package nodefacts

import (
	"fmt"
	"net/netip"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"parallelfs.dev/operator/api/v1alpha1"
	"parallelfs.dev/operator/internal/backend"
)

// InternalIPs returns the internal addresses of a node, in the order of its kubelet.
func InternalIPs(n *corev1.Node) []string {
	var out []string
	for _, a := range n.Status.Addresses {
		if a.Type == corev1.NodeInternalIP {
			out = append(out, a.Address)
		}
	}
	return out
}

// AddressOf returns the address that the daemons of a node use: its first InternalIP of the first family that it has one of; empty if no
// address is of these families. Families that a later version of a backend supports are added at the end, so that an upgrade changes no
// address.
func AddressOf(internalIPs []string, families []corev1.IPFamily) string {
	for _, family := range families {
		for _, ip := range internalIPs {
			if familyOf(ip) == family {
				return ip
			}
		}
	}
	return ""
}

// AllFamilies is Backend.Families for a filesystem that can use every family.
func AllFamilies() []corev1.IPFamily {
	return []corev1.IPFamily{corev1.IPv4Protocol, corev1.IPv6Protocol}
}

// familyOf returns the family of an address; empty if the text is no address.
func familyOf(ip string) corev1.IPFamily {
	switch a, err := netip.ParseAddr(ip); {
	case err != nil:
		return ""
	case a.Unmap().Is4():
		return corev1.IPv4Protocol
	default:
		return corev1.IPv6Protocol
	}
}

// WithAddresses returns the nodes with the addresses that a filesystem of these families can use. It returns the same slice if all nodes
// already have such an address.
func WithAddresses(nodes []backend.Node, families []corev1.IPFamily) []backend.Node {
	out := nodes
	for i := range nodes {
		if ip := AddressOf(nodes[i].InternalIPs, families); ip != nodes[i].IP && len(nodes[i].InternalIPs) > 0 {
			if &out[0] == &nodes[0] {
				out = slices.Clone(nodes)
			}
			out[i].IP = ip
		}
	}
	return out
}

// RefuseAddress returns an *InvalidSpecError if the filesystem can use no address of a node.
func RefuseAddress(in backend.Input, families []corev1.IPFamily, name string) error {
	if why := backend.Unusable(in, families, name); why != "" {
		return backend.Invalid(v1alpha1.ReasonNoAddress, "node %s %s", name, why)
	}
	return nil
}

// RefuseAddresses returns an *InvalidSpecError if an allocation adds a node whose addresses the filesystem can't use. It is checked first
// because a record is permanent and the node's disks are formatted.
func RefuseAddresses(in backend.Input, families []corev1.IPFamily, a *backend.Allocation) error {
	names := slices.Concat(a.TargetNodes.Management, a.TargetNodes.Metadata)
	for _, pool := range backend.SortedKeys(a.TargetNodes.Pools) {
		names = append(names, a.TargetNodes.Pools[pool]...)
	}
	for i := range a.Nodes {
		names = append(names, a.Nodes[i].Spec.Node)
	}
	if m := a.Status.Metadata; m != nil && in.FileSystem.Status.Metadata == nil {
		names = append(names, m.Node)
	}
	slices.Sort(names)
	for _, name := range slices.Compact(names) {
		if in.OnRecord(name) {
			continue
		}
		if why := backend.Unusable(in, families, name); why != "" {
			return backend.Invalid(v1alpha1.ReasonNoAddress, "node %s %s, or take the labels of this filesystem's nodeSelectors from it", name, why)
		}
	}
	return nil
}

// AddressProblem names the servers' and clients' nodes whose addresses the filesystem can't use; nil if there are none.
func AddressProblem(in backend.Input, families []corev1.IPFamily) *backend.Problem {
	var without []string
	clients := backend.ClientNodes(in.FileSystem, in.Nodes)
	for i := range in.Nodes {
		n := &in.Nodes[i]
		wanted := in.OnRecord(n.Name) && !in.GaveUp(n.Name) || slices.ContainsFunc(clients, func(c backend.Node) bool { return c.Name == n.Name })
		if wanted && backend.Unusable(in, families, n.Name) != "" {
			without = append(without, n.Name)
		}
	}
	switch len(without) {
	case 0:
		return nil
	case 1:
		return &backend.Problem{
			Reason: v1alpha1.ReasonNoAddress, Message: "node " + without[0] + " " + backend.Unusable(in, families, without[0]),
		}
	default:
		return &backend.Problem{Reason: v1alpha1.ReasonNoAddress, Message: fmt.Sprintf("%d nodes have no address that the filesystem can use: %s; for example, node %s %s",
			len(without), backend.List(without), without[0], backend.Unusable(in, families, without[0]))}
	}
}
