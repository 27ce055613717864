package lustre

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"

	"parallelfs.dev/operator/api/v1alpha1"
	"parallelfs.dev/operator/internal/backend"
	"parallelfs.dev/operator/internal/node/spec"
)

// Network is the network of LNet that a filesystem uses.
type Network struct {
	// Name is tcp or o2ib.
	Name string
	// Interfaces lists the requested interfaces, in order of preference; an empty list means the one with the node's InternalIP. All of them
	// are one network, over which LNet spreads its traffic (multi-rail).
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

// NID is LNet's form of an address.
func (n Network) NID(address string) string { return address + "@" + n.Name }

// NIDs returns the NIDs of a node on the network, from the inventory of its agent. An *InvalidSpecError names the missing part.
func (n Network) NIDs(node backend.Node, found v1alpha1.NodeInventoryStatus) ([]string, error) {
	if len(n.Interfaces) == 0 {
		for _, i := range found.NetworkInterfaces {
			if slices.ContainsFunc(i.Addresses, func(a string) bool { return plain(a) == node.IP }) {
				return []string{n.NID(node.IP)}, nil
			}
		}
		return nil, backend.Invalid(v1alpha1.ReasonInvalidSpec,
			"no interface of node %s has its InternalIP %q; name the interfaces in spec.network.interfaces", node.Name, node.IP)
	}
	var out []string
	for _, name := range n.Interfaces {
		for _, i := range found.NetworkInterfaces {
			if address := ipv4(i.Addresses); i.Name == name && address != "" {
				out = append(out, n.NID(address))
			}
		}
	}
	if len(out) == 0 {
		return nil, backend.Invalid(v1alpha1.ReasonInvalidSpec, "node %s has none of the interfaces in spec.network.interfaces (%s), or none of them "+
			"has an IPv4 address, which is what LNet names nodes by", node.Name, strings.Join(n.Interfaces, ", "))
	}
	return out, nil
}

// Missing returns a sentence with the NIDs that disks would name but the node's LNet does not have, although it has the network, and with
// the remedy; empty when none is missing. A network that is not up will get them.
func (n Network) Missing(node string, want, have []string) string {
	missing := without(want, have)
	if len(missing) == 0 || !slices.ContainsFunc(have, func(nid string) bool { return strings.HasSuffix(nid, "@"+n.Name) }) {
		return ""
	}
	return fmt.Sprintf("LNet of node %s has the network %s with %s, and without %s; the operator changes no network that is up: "+
		"correct it there (lnetctl net del, lnetctl net add), or spec.network", node, n.Name, backend.List(have), backend.List(missing))
}

// told describes how a node gets the network. LNet belongs to the kernel, and so to all filesystems of the node. So the description applies
// only to a node without a network of that name, and a network that is up is never changed.
func (n Network) told() spec.KernelNetwork {
	interfaces := n.Interfaces
	if len(interfaces) == 0 {
		interfaces = []string{"$(NODE_INTERFACE)"}
	}
	return spec.KernelNetwork{
		Name: n.Name, Interfaces: interfaces,
		// A module whose options name networks brings them up itself; "lnet configure" does nothing where LNet is up (lnetctl(8)).
		Start: [][]string{{"modprobe", "lnet"}, {"lnetctl", "lnet", "configure"}},
		List:  []string{"lctl", "list_nids"},
		Add:   []string{"lnetctl", "net", "add", "--net", n.Name, "--if", "$(INTERFACES)"},
	}
}

// plain is an address without its prefix.
func plain(address string) string {
	ip, _, _ := strings.Cut(address, "/")
	return ip
}

// ipv4 is the first address that is IPv4: NIDs with IPv6 were not tested.
func ipv4(addresses []string) string {
	for _, a := range addresses {
		if ip, err := netip.ParseAddr(plain(a)); err == nil && ip.Is4() {
			return ip.String()
		}
	}
	return ""
}
