package inventory

import (
	"fmt"
	"net"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"parallelfs.dev/operator/api/v1alpha1"
	"parallelfs.dev/operator/internal/node/devices"
)

// networkInterfaces returns the adapters of the node, the bonds, VLANs and bridges over them, and the interface of the default route.
// Interfaces of pods and of their networks are left out, because they come and go.
func (c Collector) networkInterfaces() (all []v1alpha1.NetworkInterface, problems []string) {
	for _, name := range names(c.Sys, "class/net") {
		if !c.ofTheNode(name, 0) && name != c.defaultInterface() {
			continue
		}
		directory := filepath.Join(c.Sys, "class/net", name)
		i := v1alpha1.NetworkInterface{
			Name: text(name, 64), State: text(value(directory, "operstate"), 32),
			MTU:       int32(number(value(directory, "mtu"))),    //nolint:gosec // an int in the kernel
			SpeedMbps: max(0, number(value(directory, "speed"))), // -1 means unknown, and a link that is down has no value
			NUMANode:  c.interfaceNUMANode(name, 0),
		}
		found, err := c.Addresses(name)
		if err != nil {
			problems = append(problems, fmt.Sprintf("can't read the addresses of %s: %s", name, err))
		}
		slices.SortFunc(found, compareAddresses)
		for _, address := range found[:min(len(found), 32)] {
			i.Addresses = append(i.Addresses, text(address, 64))
		}
		all = append(all, i)
	}
	if len(all) > 256 {
		problems = append(problems, fmt.Sprintf("the node has %d network interfaces; only the first 256 are listed", len(all)))
		all = all[:256]
	}
	return all, problems
}

// compareAddresses sorts IPv4 before IPv6, and each numerically.
func compareAddresses(a, b string) int {
	parse := func(s string) []byte {
		ip, _, err := net.ParseCIDR(s)
		if err != nil {
			return nil
		}
		if four := ip.To4(); four != nil {
			return four
		}
		return ip
	}
	x, y := parse(a), parse(b)
	if len(x) != len(y) {
		return len(x) - len(y)
	}
	if order := slices.Compare(x, y); order != 0 {
		return order
	}
	return strings.Compare(a, b)
}

func number(s string) int64 {
	n, err := strconv.ParseInt(s, 10, 64)
	if err != nil {
		return 0
	}
	return n
}

// deep limits the depth of stacked interfaces: a VLAN on a bridge on a bond has two below it.
const deep = 8

// ofTheNode is true for an adapter and for an interface built on adapters.
func (c Collector) ofTheNode(name string, depth int) bool {
	if exists(c.Sys, "class/net", name, "device") {
		return true
	}
	kind := c.kind(name)
	if depth > deep || kind != "bond" && kind != "vlan" && kind != "bridge" {
		return false
	}
	return slices.ContainsFunc(c.below(name), func(lower string) bool { return c.ofTheNode(lower, depth+1) })
}

// kind returns the kernel's DEVTYPE, which is empty for an Ethernet adapter.
func (c Collector) kind(name string) string {
	for line := range strings.Lines(value(c.Sys, "class/net", name, "uevent")) {
		if kind, ok := strings.CutPrefix(strings.TrimSpace(line), "DEVTYPE="); ok {
			return kind
		}
	}
	return ""
}

// below returns the interfaces that one is built on (links lower_NAME).
func (c Collector) below(name string) []string {
	var all []string
	for _, entry := range names(c.Sys, "class/net", name) {
		if lower, ok := strings.CutPrefix(entry, "lower_"); ok {
			all = append(all, lower)
		}
	}
	return all
}

// defaultInterface returns the interface of the IPv4 default route (/proc/net/route, proc_pid_net(5)). If the node is itself a container,
// it is not an adapter.
func (c Collector) defaultInterface() string {
	for line := range strings.Lines(value(c.Proc, "net/route")) {
		if fields := strings.Fields(line); len(fields) > 7 && fields[1] == "00000000" && fields[7] == "00000000" {
			return fields[0]
		}
	}
	return ""
}

// interfaceNUMANode returns the NUMA node of the adapter, or of all adapters below if they agree.
func (c Collector) interfaceNUMANode(name string, depth int) *int32 {
	if exists(c.Sys, "class/net", name, "device") {
		return devices.NUMANode(c.Sys, filepath.Join(c.Sys, "class/net", name, "device"))
	}
	var common *int32
	if depth > deep {
		return nil
	}
	for i, lower := range c.below(name) {
		node := c.interfaceNUMANode(lower, depth+1)
		if node == nil || i > 0 && *common != *node {
			return nil
		}
		common = node
	}
	return common
}

// rdmaDevices reads one directory for each device, with one below it for each port (kernel
// Documentation/ABI/stable/sysfs-class-infiniband).
func (c Collector) rdmaDevices() []v1alpha1.RDMADevice {
	var all []v1alpha1.RDMADevice
	for _, name := range names(c.Sys, "class/infiniband") {
		directory := filepath.Join(c.Sys, "class/infiniband", name)
		d := v1alpha1.RDMADevice{Name: text(name, 64), NUMANode: devices.NUMANode(c.Sys, filepath.Join(directory, "device"))}
		ports := names(directory, "ports")
		slices.SortFunc(ports, func(a, b string) int { return int(number(a) - number(b)) })
		if len(ports) > 0 {
			port := filepath.Join(directory, "ports", ports[0])
			_, state, _ := strings.Cut(value(port, "state"), ": ") // "4: ACTIVE"
			d.State, d.Rate, d.LinkLayer = text(state, 32), text(value(port, "rate"), 64), text(value(port, "link_layer"), 32)
		}
		all = append(all, d)
	}
	return all[:min(len(all), 64)]
}
