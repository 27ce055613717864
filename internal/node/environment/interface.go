package environment

import (
	"fmt"
	"net"
	"net/netip"
	"strings"
)

// Interface is one interface of the network namespace.
type Interface struct {
	Name      string
	Up        bool
	Loopback  bool
	Addresses []netip.Addr
}

// InterfaceWith returns the name of the interface with the address. If several have it, the first that is up and not the loopback counts.
func InterfaceWith(address string, all []Interface) (string, error) {
	want, err := netip.ParseAddr(address)
	if err != nil {
		return "", fmt.Errorf("%s: %q is no address: %w", addressVariable, address, err)
	}
	var has *Interface
	var seen []string
	for i, each := range all {
		for _, a := range each.Addresses {
			seen = append(seen, each.Name+" "+a.String())
			if a.Unmap().WithZone("") == want.Unmap().WithZone("") && (has == nil || better(each, *has)) {
				has = &all[i]
			}
		}
	}
	switch {
	case has == nil:
		return "", fmt.Errorf("no interface has the address %s (%s), which $(%s) is looked for by; there is: %s. The pod must use the network of its "+
			"node; or name the interfaces in the FileSystem (spec.network.interfaces)", address, addressVariable, interfaceVariable, strings.Join(seen, ", "))
	case !has.Up:
		return "", fmt.Errorf("the interface %s has the address %s (%s), but is down; bring it up (ip link set %s up)", has.Name, address,
			addressVariable, has.Name)
	}
	return has.Name, nil
}

func better(a, b Interface) bool {
	if a.Up != b.Up {
		return a.Up
	}
	return b.Loopback && !a.Loopback
}

// interfaceOf is InterfaceWith for this network namespace.
func interfaceOf(address string) (string, error) {
	all, err := Interfaces()
	if err != nil {
		return "", fmt.Errorf("can't find the interface with the address %s: %w", address, err)
	}
	return InterfaceWith(address, all)
}

// Interfaces returns the interfaces of this network namespace.
func Interfaces() ([]Interface, error) {
	found, err := net.Interfaces()
	if err != nil {
		return nil, fmt.Errorf("can't list the interfaces: %w", err)
	}
	all := make([]Interface, len(found))
	for i, each := range found {
		all[i] = Interface{Name: each.Name, Up: each.Flags&net.FlagUp != 0, Loopback: each.Flags&net.FlagLoopback != 0}
		addresses, err := each.Addrs()
		if err != nil {
			return nil, fmt.Errorf("can't list the addresses of the interface %s: %w", each.Name, err)
		}
		for _, a := range addresses {
			if network, ok := a.(*net.IPNet); ok {
				if parsed, ok := netip.AddrFromSlice(network.IP); ok {
					all[i].Addresses = append(all[i].Addresses, parsed.Unmap())
				}
			}
		}
	}
	return all, nil
}
