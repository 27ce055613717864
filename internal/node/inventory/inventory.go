// Package inventory finds what a node has: kernel, processors, disks, networks, and the host's settings that storage
// servers depend on. It only reads. The same node gives the same inventory, byte for byte.
package inventory

import (
	"context"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"parallelfs.dev/operator/api/v1alpha1"
	"parallelfs.dev/operator/internal/node/devices"
	"parallelfs.dev/operator/internal/node/host"
	"parallelfs.dev/operator/internal/node/modules"
	"parallelfs.dev/operator/internal/node/procfs"
	"parallelfs.dev/operator/internal/node/spec"
	"parallelfs.dev/operator/internal/plan"
)

// Collector collects the inventory of a node. ThisHost returns the one that a program uses; the fields are there for tests.
type Collector struct {
	// Sys and Proc are where sysfs and procfs of the node are mounted, Host is the root directory of the node.
	Sys, Proc, Host string
	// Devices looks at the disks, as devices.Looker.All does.
	Devices func(ctx context.Context) ([]plan.Facts, []string)
	// Daemons says where the filesystems' daemons on the node run, and what could not be found out. Nil for none.
	Daemons func(ctx context.Context) ([]v1alpha1.DaemonPlacement, []string)
	// Settings are what the filesystems' documentation asks of the kernel, and Modules those of the filesystems' own that do not come with it.
	Settings []spec.HostSetting
	Modules  []spec.KernelModule
	// Software are what filesystems need on the node itself, and Run runs a program of the node in the node's own root directory.
	Software []spec.HostSoftware
	Run      devices.Runner
	// Evicted are the evictions that were seen, by the filesystem and then by what tells them apart: a kernel remembers the last ones only.
	// Nil to remember none.
	Evicted map[string]map[string]time.Time
	// Volatile names the filesystem that a path is on when it does not outlive a restart of the node. Nil for all paths that do.
	Volatile func(path string) string
	// Addresses are those of a network interface, with their prefix.
	Addresses func(name string) ([]string, error)
}

// ThisHost collects the inventory of the node that the program runs on, with what the filesystems expect of it. In a container it needs
// the network and the process ids of the node.
func ThisHost(settings []spec.HostSetting, modules []spec.KernelModule, software []spec.HostSoftware) Collector {
	return Collector{
		Sys: "/sys", Proc: "/proc", Host: host.Root, Devices: devices.ThisHost().All, Addresses: addresses, Volatile: volatileAt,
		Settings: settings, Modules: modules, Software: software, Run: onNode(host.Root), Evicted: map[string]map[string]time.Time{},
	}
}

// Collect looks at the whole node. What could not be found out is a sentence in Problems.
func (c Collector) Collect(ctx context.Context) v1alpha1.NodeInventoryStatus {
	var status v1alpha1.NodeInventoryStatus
	facts, problems := c.Devices(ctx)
	for _, f := range facts {
		status.BlockDevices = append(status.BlockDevices, f.BlockDevice)
	}
	kernel := modules.Node{Sys: c.Sys, Proc: c.Proc, Host: c.Host, Known: c.Modules}.Look()
	built, more := c.built(ctx, kernel)
	status.Kernel, problems = c.kernel(kernel, built), append(problems, more...)
	for _, s := range c.Software {
		software, more := c.software(ctx, s, kernel, built)
		status.Software, problems = append(status.Software, software), append(problems, more...)
	}
	cpu, err := c.cpu()
	if err != nil {
		problems = append(problems, err.Error())
	}
	status.CPU = cpu
	interfaces, more := c.networkInterfaces()
	status.NetworkInterfaces, problems = interfaces, append(problems, more...)
	status.RDMADevices = c.rdmaDevices()
	status.Settings = c.settings()
	if c.Daemons != nil {
		placements, more := c.Daemons(ctx)
		status.Daemons, problems = placements, append(problems, more...)
		slices.SortFunc(status.Daemons, func(a, b v1alpha1.DaemonPlacement) int { return strings.Compare(a.Name, b.Name) })
	}
	if c.Volatile != nil {
		status.VolatileState = c.Volatile(filepath.Join(c.Host, stateDirectory))
	}
	status.Summary = summary(status)
	status.Problems = cut(problems, 32, 1024)
	return status
}

// cut keeps a list within the limits of the API.
func cut(all []string, items, length int) []string {
	slices.Sort(all)
	all = slices.Compact(all)
	all = all[:min(len(all), items)]
	for i := range all {
		all[i] = text(all[i], length)
	}
	return all
}

// text is at most length bytes of valid UTF-8.
func text(s string, length int) string {
	s = strings.ToValidUTF8(s, "?")
	if len(s) <= length {
		return s
	}
	return strings.ToValidUTF8(s[:length], "")
}

// summary counts disks by what they are, not what is made from them: a disk with an LVM on it is one disk.
func summary(status v1alpha1.NodeInventoryStatus) v1alpha1.InventorySummary {
	var s v1alpha1.InventorySummary
	var capacity int64
	for _, d := range status.BlockDevices {
		if d.Type == "disk" || d.Type == "loop" && len(d.IDs) > 0 {
			s.Disks++
		}
		if len(d.Unusable) == 0 {
			s.Usable++
			capacity += d.SizeBytes
		}
	}
	s.UsableCapacity = v1alpha1.Bytes(capacity)
	good := 0
	for _, setting := range status.Settings {
		if setting.AsExpected {
			good++
		}
	}
	s.Settings = fmt.Sprintf("%d/%d", good, len(status.Settings))
	return s
}

// value is the content of a file of sysfs or procfs, without the white space around it; empty when it can't be read.
func value(path ...string) string {
	content, err := procfs.Read(filepath.Join(path...))
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(content))
}

// names are what a directory holds, sorted; none when it is not there.
func names(path ...string) []string {
	entries, err := procfs.List(filepath.Join(path...))
	if err != nil {
		return nil
	}
	all := make([]string, len(entries))
	for i, entry := range entries {
		all[i] = entry.Name()
	}
	return all
}

func exists(path ...string) bool {
	_, err := os.Stat(filepath.Join(path...))
	return err == nil
}

// addresses asks the kernel for the addresses of an interface. Those of the link (fe80::/10) say nothing.
func addresses(name string) ([]string, error) {
	found, err := net.InterfaceByName(name)
	if err != nil {
		return nil, err
	}
	all, err := found.Addrs()
	if err != nil {
		return nil, err
	}
	var out []string
	for _, address := range all {
		if a, ok := address.(*net.IPNet); ok && !a.IP.IsLinkLocalUnicast() {
			out = append(out, a.String())
		}
	}
	return out, nil
}
