// Package inventory collects the properties of a node: kernel, processors, disks, networks, and the host's settings that storage servers
// depend on. It only reads. The same node gives the same inventory, byte for byte.
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

// Collector collects the inventory of a node. Programs use ThisHost; the fields exist for tests.
type Collector struct {
	// Sys and Proc are the mount points of the node's sysfs and procfs, and Host is the root directory of the node.
	Sys, Proc, Host string
	// Devices reads the disks, like devices.Looker.All.
	Devices func(ctx context.Context) ([]plan.Facts, []string)
	// Daemons returns the placements of the filesystems' daemons on the node, and what could not be read. nil means no daemons.
	Daemons func(ctx context.Context) ([]v1alpha1.DaemonPlacement, []string)
	// Settings lists the kernel settings that the filesystems' documentation asks for. Modules lists the filesystems' own modules that are not
	// part of the kernel.
	Settings []spec.HostSetting
	Modules  []spec.KernelModule
	// Software lists what filesystems need on the node itself. Run runs a program of the node in the node's own root directory.
	Software []spec.HostSoftware
	Run      devices.Runner
	// Evicted holds the observed evictions by filesystem and then by identity, because a kernel remembers only the last ones. If it is nil,
	// evictions are not remembered.
	Evicted map[string]map[string]time.Time
	// Volatile names the filesystem of a path if it does not survive a reboot of the node. If it is nil, all paths count as persistent.
	Volatile func(path string) string
	// Addresses returns the addresses of a network interface with their prefix length.
	Addresses func(name string) ([]string, error)
}

// ThisHost collects the inventory of the node that the program runs on, compared with the filesystems' requirements. In a container it
// needs the node's network and process ids.
func ThisHost(settings []spec.HostSetting, modules []spec.KernelModule, software []spec.HostSoftware) Collector {
	return Collector{
		Sys: "/sys", Proc: "/proc", Host: host.Root, Devices: devices.ThisHost().All, Addresses: addresses, Volatile: volatileAt,
		Settings: settings, Modules: modules, Software: software, Run: onNode(host.Root), Evicted: map[string]map[string]time.Time{},
	}
}

// Collect scans the whole node. Problems lists what could not be read.
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
	if status.UnsharedState, err = c.unshared(); err != nil {
		problems = append(problems, err.Error())
	} else if at := status.UnsharedState; at != "" {
		problems = append(problems, fmt.Sprintf("%s is on %s, which is not a shared mount: servers do not see disks that the agent mounts. "+
			"Run at each start of the node: mount --make-rshared %s", stateDirectory, at, at))
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

// text cuts s to at most length bytes of valid UTF-8.
func text(s string, length int) string {
	s = strings.ToValidUTF8(s, "?")
	if len(s) <= length {
		return s
	}
	return strings.ToValidUTF8(s[:length], "")
}

// summary counts physical disks, not devices built on them: a disk with an LVM on it is one disk.
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
	s.Settings = countSettings(status.Settings)
	return s
}

// countSettings returns how many settings are as expected, such as 7/9.
func countSettings(all []v1alpha1.HostSetting) string {
	good := 0
	for _, setting := range all {
		if setting.AsExpected {
			good++
		}
	}
	return fmt.Sprintf("%d/%d", good, len(all))
}

// value returns the content of a file in sysfs or procfs without surrounding white space. It is empty if the file can't be read.
func value(path ...string) string {
	content, err := procfs.Read(filepath.Join(path...))
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(content))
}

// names returns the sorted names in a directory, or none if it does not exist.
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

// addresses returns the addresses of an interface from the kernel. Link-local addresses (fe80::/10) are left out.
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
