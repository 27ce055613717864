package lustre

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"

	"parallelfs.dev/operator/api/v1alpha1"
	"parallelfs.dev/operator/internal/backend"
)

// Network is the network of LNet that a filesystem uses.
type Network struct {
	// Name is tcp or o2ib.
	Name string
	// Interfaces are those that are asked for, in order of preference; none means the one with the node's InternalIP. All of them are one
	// network, over which LNet spreads what it sends (multi-rail).
	Interfaces []string
}

// NetworkOf is the network that spec.network and spec.lustre.rdma ask for.
func NetworkOf(asked *v1alpha1.NetworkSpec, rdma bool) Network {
	n := Network{Name: "tcp"}
	if rdma {
		n.Name = "o2ib"
	}
	if asked == nil {
		return n
	}
	for _, name := range asked.Interfaces {
		n.Interfaces = append(n.Interfaces, string(name))
	}
	return n
}

// NID is how LNet names an address.
func (n Network) NID(address string) string { return address + "@" + n.Name }

// NIDs are those that a node has on the network, by what its agent found. An *InvalidSpecError says what is missing.
func (n Network) NIDs(node backend.Node, found v1alpha1.NodeInventoryStatus) ([]string, error) {
	on, err := n.on(node, found)
	if err != nil {
		return nil, err
	}
	out := make([]string, len(on))
	for i := range on {
		out[i] = n.NID(on[i].address)
	}
	return out, nil
}

// Add is the command that brings the network up on a node. LNet belongs to the kernel, and so to all filesystems of the node: it is only
// for a node on which no network of that name is up, and what is up is never changed.
func (n Network) Add(node backend.Node, found v1alpha1.NodeInventoryStatus) ([]string, error) {
	on, err := n.on(node, found)
	if err != nil {
		return nil, err
	}
	names := make([]string, len(on))
	for i := range on {
		names[i] = on[i].name
	}
	return []string{"lnetctl", "net", "add", "--net", n.Name, "--if", strings.Join(names, ",")}, nil
}

// Missing says which of the NIDs that a node should have its LNet does not have, as a sentence with what to do; empty when none.
func (n Network) Missing(node string, want, have []string) string {
	missing := slices.DeleteFunc(slices.Clone(want), func(nid string) bool { return slices.Contains(have, nid) })
	switch {
	case len(missing) == 0:
		return ""
	case slices.ContainsFunc(have, func(nid string) bool { return strings.HasSuffix(nid, "@"+n.Name) }):
		return fmt.Sprintf("LNet of node %s has the network %s with %s, and without %s; the operator changes no network that is up: "+
			"correct it there (lnetctl net del, lnetctl net add), or spec.network", node, n.Name, backend.List(have), backend.List(missing))
	default:
		return fmt.Sprintf("LNet of node %s has no network %s", node, n.Name)
	}
}

// place is an interface of a node, and its address.
type place struct{ name, address string }

// on are the interfaces of a node that the network uses.
func (n Network) on(node backend.Node, found v1alpha1.NodeInventoryStatus) ([]place, error) {
	var out []place
	if len(n.Interfaces) == 0 {
		for _, i := range found.NetworkInterfaces {
			if slices.ContainsFunc(i.Addresses, func(a string) bool { return plain(a) == node.IP }) {
				out = append(out, place{i.Name, node.IP})
			}
		}
		if len(out) == 0 {
			return nil, backend.Invalid(v1alpha1.ReasonInvalidSpec,
				"no interface of node %s has its InternalIP %q; name the interfaces in spec.network.interfaces", node.Name, node.IP)
		}
		return out[:1], nil
	}
	for _, name := range n.Interfaces {
		for _, i := range found.NetworkInterfaces {
			if address := ipv4(i.Addresses); i.Name == name && address != "" {
				out = append(out, place{name, address})
			}
		}
	}
	if len(out) == 0 {
		return nil, backend.Invalid(v1alpha1.ReasonInvalidSpec, "node %s has none of the interfaces in spec.network.interfaces (%s), or none of them "+
			"has an IPv4 address, which is what LNet names nodes by", node.Name, strings.Join(n.Interfaces, ", "))
	}
	return out, nil
}

// plain is an address without its prefix.
func plain(address string) string {
	ip, _, _ := strings.Cut(address, "/")
	return ip
}

// ipv4 is the first address that is IPv4: NIDs of IPv6 were not tried.
func ipv4(addresses []string) string {
	for _, a := range addresses {
		if ip, err := netip.ParseAddr(plain(a)); err == nil && ip.Is4() {
			return ip.String()
		}
	}
	return ""
}
