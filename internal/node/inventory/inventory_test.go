package inventory

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	. "github.com/onsi/gomega"

	"parallelfs.dev/operator/api/v1alpha1"
	"parallelfs.dev/operator/internal/node/spec"
	"parallelfs.dev/operator/internal/plan"
)

// node is a node with two sockets made of files.
type node struct {
	*testing.T
	root      string
	collector Collector
}

// tuned lists the settings that a filesystem's manual asks for.
var tuned = []spec.HostSetting{
	{Name: spec.CStates, Expected: "C1", Source: "the manual"},
	{Name: spec.CPUGovernor, Expected: "performance", Source: "the manual"},
	{Name: spec.SMT, Expected: "off", Source: "the manual"},
	{Name: spec.TransparentHugePages, Expected: "always", Source: "the manual"},
	{Name: "vm.dirty_background_ratio", Expected: "5", Source: "the manual"},
	{Name: "vm.dirty_ratio", Expected: "20", Source: "the manual"},
	{Name: "vm.min_free_kbytes", Expected: "262144", Source: "the manual"},
	{Name: "vm.vfs_cache_pressure", Expected: "50", Source: "the manual"},
	{Name: "vm.zone_reclaim_mode", Expected: "1", Source: "the manual"},
}

func newNode(t *testing.T) *node {
	t.Helper()
	n := &node{T: t, root: t.TempDir()}
	n.collector = Collector{
		Sys: n.root + "/sys", Proc: n.root + "/proc", Host: n.root + "/host", Settings: tuned,
		Modules: []spec.KernelModule{{Name: "examplefs", DKMS: "examplefs-dkms", Sources: "usr/src/examplefs-*", ByHand: "opt/examplefs/*", Rebuild: "rebuild"}},
		Devices: func(context.Context) ([]plan.Facts, []string) {
			return []plan.Facts{
				{BlockDevice: v1alpha1.BlockDevice{KernelName: "dm-0", Type: "lvm", SizeBytes: 1 << 40, Unusable: []string{"it is an LVM"}}},
				{BlockDevice: v1alpha1.BlockDevice{KernelName: "loop3", Type: "loop", SizeBytes: 1 << 20, Unusable: []string{"no name"}}},
				{BlockDevice: v1alpha1.BlockDevice{KernelName: "sda", Type: "disk", SizeBytes: 1 << 41}},
				{BlockDevice: v1alpha1.BlockDevice{KernelName: "sdb", Type: "disk", SizeBytes: 1 << 40, Unusable: []string{"it is mounted"}}},
				{BlockDevice: v1alpha1.BlockDevice{KernelName: "sdc", Type: "disk", SizeBytes: 1 << 39}},
			}, []string{"something of the disks"}
		},
		Addresses: func(name string) ([]string, error) {
			return map[string][]string{
				"eno1": {"fd00::5/64", "192.168.10.5/16", "9.1.0.5/16"}, "bond0.7": {"172.16.0.5/24"},
			}[name], nil
		},
	}
	for cpu, place := range [][2]int{{0, 0}, {0, 1}, {1, 0}, {1, 1}, {0, 0}, {0, 1}, {1, 0}, {1, 1}} {
		topology := fmt.Sprintf("sys/devices/system/cpu/cpu%d/topology/", cpu)
		n.file(topology+"physical_package_id", fmt.Sprintln(place[0]))
		n.file(topology+"core_cpus_list", fmt.Sprintf("%d,%d\n", cpu%4, cpu%4+4))
		n.file(fmt.Sprintf("sys/devices/system/cpu/cpu%d/cpufreq/scaling_governor", cpu), "performance\n")
		for state, name := range []string{"POLL", "C1", "C6"} {
			idle := fmt.Sprintf("sys/devices/system/cpu/cpu%d/cpuidle/state%d/", cpu, state)
			n.file(idle+"name", name+"\n")
			n.file(idle+"disable", "0\n")
		}
	}
	n.file("sys/devices/system/cpu/online", "0-7\n")
	n.file("sys/devices/system/cpu/smt/active", "1\n")
	n.file("sys/devices/system/cpu/cpuidle/current_driver", "intel_idle\n")
	n.file("proc/cpuinfo", "processor\t: 0\nmodel name\t: Intel(R) Xeon(R) Gold 6326 CPU @ 2.90GHz\n\nprocessor\t: 1\nmodel name\t: other\n")
	for id, cpus := range []string{"0-1,4-5", "2-3,6-7"} {
		n.file(fmt.Sprintf("sys/devices/system/node/node%d/cpulist", id), cpus+"\n")
		n.file(fmt.Sprintf("sys/devices/system/node/node%d/meminfo", id), fmt.Sprintf("Node %d MemTotal:       131896016 kB\nNode %d MemFree: 1 kB\n", id, id))
	}
	n.file("sys/devices/system/node/online", "0-1\n")
	n.file("host/var/lib/kubelet/cpu_manager_state", `{"policyName":"static","defaultCpuSet":"0-7","checksum":1}`)

	n.file("proc/sys/kernel/osrelease", "6.12.48+deb13-amd64\n")
	n.file("proc/modules", "xfs 2093056 1 - Live 0x0000000000000000\nlibcrc32c 16384 1 xfs, Live 0x0\n")
	n.file("proc/filesystems", "nodev\tsysfs\n\text4\n\txfs\n")
	n.file("host/lib/modules/6.12.48+deb13-amd64/modules.builtin", "kernel/fs/fuse/fuse.ko\nkernel/fs/ext4/ext4.ko\n")
	n.file("host/lib/modules/6.12.48+deb13-amd64/modules.dep",
		"kernel/fs/xfs/xfs.ko.xz: kernel/lib/libcrc32c.ko.xz\nkernel/fs/btrfs/btrfs.ko.xz: kernel/lib/raid6/raid6_pq.ko.xz\n")

	n.file("sys/devices/pci0000:00/0000:00:1f.0/numa_node", "0\n")
	n.file("sys/devices/pci0000:80/0000:80:02.0/numa_node", "1\n")
	n.adapter("eno1", "pci0000:00/0000:00:1f.0", map[string]string{"speed": "25000", "mtu": "9000", "operstate": "up"})
	n.adapter("eno2", "pci0000:80/0000:80:02.0", map[string]string{"speed": "-1", "mtu": "1500", "operstate": "down"})
	n.adapter("ib0", "pci0000:80/0000:80:02.0", map[string]string{"speed": "100000", "mtu": "2044", "operstate": "up", "type": "32"})
	n.virtual("bond0", "bond", "eno2")
	n.virtual("bond0.7", "vlan", "bond0")
	n.virtual("br-both", "bridge", "bond0", "eno1")
	n.virtual("cni0", "bridge", "veth1")
	n.virtual("veth1", "")
	n.virtual("flannel.1", "vxlan", "eno1")
	n.virtual("lo", "")
	n.file("proc/net/route", "Iface\tDestination\tGateway \tFlags\tRefCnt\tUse\tMetric\tMask\neno1\t00000000\t0101A8C0\t0003\t0\t0\t0\t00000000\n")

	n.file("sys/devices/pci0000:80/0000:80:02.0/infiniband/mlx5_0/ports/1/state", "4: ACTIVE\n")
	n.file("sys/devices/pci0000:80/0000:80:02.0/infiniband/mlx5_0/ports/1/rate", "100 Gb/sec (4X EDR)\n")
	n.file("sys/devices/pci0000:80/0000:80:02.0/infiniband/mlx5_0/ports/1/link_layer", "InfiniBand\n")
	n.symlink("sys/devices/pci0000:80/0000:80:02.0/infiniband/mlx5_0/device", "../..")
	n.symlink("sys/class/infiniband/mlx5_0", "../../devices/pci0000:80/0000:80:02.0/infiniband/mlx5_0")

	n.file("sys/kernel/mm/transparent_hugepage/enabled", "always [madvise] never\n")
	for name, found := range map[string]string{"dirty_background_ratio": "5", "dirty_ratio": "20", "min_free_kbytes": "67584", "vfs_cache_pressure": "100"} {
		n.file("proc/sys/vm/"+name, found+"\n")
	}
	return n
}

func (n *node) file(path, content string) {
	n.Helper()
	g := NewWithT(n)
	path = filepath.Join(n.root, path)
	g.Expect(os.MkdirAll(filepath.Dir(path), 0o700)).To(Succeed())
	g.Expect(os.WriteFile(path, []byte(content), 0o600)).To(Succeed())
}

func (n *node) symlink(path, to string) {
	n.Helper()
	g := NewWithT(n)
	path = filepath.Join(n.root, path)
	g.Expect(os.MkdirAll(filepath.Dir(path), 0o700)).To(Succeed())
	g.Expect(os.Symlink(to, path)).To(Succeed())
}

func (n *node) adapter(name, device string, files map[string]string) {
	n.Helper()
	directory := "devices/" + device + "/net/" + name
	for file, content := range files {
		n.file("sys/"+directory+"/"+file, content+"\n")
	}
	n.symlink("sys/"+directory+"/device", "../..")
	n.symlink("sys/class/net/"+name, "../../"+directory)
}

func (n *node) virtual(name, kind string, below ...string) {
	n.Helper()
	directory := "devices/virtual/net/" + name
	n.file("sys/"+directory+"/uevent", "DEVTYPE="+kind+"\nINTERFACE="+name+"\n")
	n.file("sys/"+directory+"/mtu", "1500\n")
	for _, lower := range below {
		n.symlink("sys/"+directory+"/lower_"+lower, "../../../../class/net/"+lower)
	}
	n.symlink("sys/class/net/"+name, "../../"+directory)
}

func TestTheProcessorsOfTwoSockets(t *testing.T) {
	g := NewWithT(t)
	g.Expect(newNode(t).collector.Collect(t.Context()).CPU).To(Equal(v1alpha1.CPUStatus{
		Model: "Intel(R) Xeon(R) Gold 6326 CPU @ 2.90GHz", Sockets: 2, Cores: 4, Threads: 8,
		NUMANodes: []v1alpha1.NUMANode{
			{ID: 0, CPUs: "0-1,4-5", MemoryBytes: 131896016 << 10}, {ID: 1, CPUs: "2-3,6-7", MemoryBytes: 131896016 << 10},
		},
		Siblings:                []string{"0,4", "1,5", "2,6", "3,7"},
		KubeletCPUManagerPolicy: "static",
	}))
}

func TestProcessorsThatAreOfflineAreNotCounted(t *testing.T) {
	g := NewWithT(t)
	n := newNode(t)
	n.file("sys/devices/system/cpu/online", "0-3\n")
	for cpu := range 4 {
		n.file(fmt.Sprintf("sys/devices/system/cpu/cpu%d/topology/core_cpus_list", cpu), fmt.Sprintln(cpu))
	}
	n.file("host/var/lib/kubelet/cpu_manager_state", "not JSON")
	cpu := n.collector.Collect(t.Context()).CPU
	g.Expect([]int32{cpu.Sockets, cpu.Cores, cpu.Threads}).To(Equal([]int32{2, 4, 4}))
	g.Expect(cpu.Siblings).To(BeEmpty(), "no two of them share a core")
	g.Expect(cpu.KubeletCPUManagerPolicy).To(BeEmpty())
}

func TestTheModulesOfTheKernel(t *testing.T) {
	g := NewWithT(t)
	kernel := newNode(t).collector.Collect(t.Context()).Kernel
	g.Expect(kernel).To(Equal(v1alpha1.KernelStatus{Release: "6.12.48+deb13-amd64", Modules: []v1alpha1.KernelModule{
		{
			Name: "btrfs", State: "Available",
		},
		{
			Name: "examplefs", State: "Missing", Message: "/lib/modules/6.12.48+deb13-amd64 has no module examplefs: install examplefs-dkms and " +
				"the headers of kernel 6.12.48+deb13-amd64 (linux-headers-6.12.48+deb13-amd64 or kernel-devel-6.12.48+deb13-amd64)",
		},
		{Name: "ext4", State: "BuiltIn"}, {Name: "fuse", State: "BuiltIn"},
		{Name: "xfs", State: "Loaded"},
	}}))
}

func TestTheNetworkIsThatOfTheNodeAndNotThatOfItsPods(t *testing.T) {
	g := NewWithT(t)
	status := newNode(t).collector.Collect(t.Context())
	g.Expect(status.NetworkInterfaces).To(Equal([]v1alpha1.NetworkInterface{
		{Name: "bond0", MTU: 1500, NUMANode: new(int32(1))},
		{Name: "bond0.7", MTU: 1500, NUMANode: new(int32(1)), Addresses: []string{"172.16.0.5/24"}},
		{Name: "br-both", MTU: 1500},
		{Name: "eno1", SpeedMbps: 25000, MTU: 9000, State: "up", NUMANode: new(int32(0)), Addresses: []string{"9.1.0.5/16", "192.168.10.5/16", "fd00::5/64"}},
		{Name: "eno2", MTU: 1500, State: "down", NUMANode: new(int32(1))},
		{Name: "ib0", SpeedMbps: 100000, MTU: 2044, State: "up", NUMANode: new(int32(1))},
	}))
	g.Expect(status.RDMADevices).To(Equal([]v1alpha1.RDMADevice{
		{Name: "mlx5_0", State: "ACTIVE", Rate: "100 Gb/sec (4X EDR)", LinkLayer: "InfiniBand", NUMANode: new(int32(1))},
	}))
}

func TestInANodeThatIsAContainerTheInterfaceOfTheDefaultRouteIsItsOwn(t *testing.T) {
	g := NewWithT(t)
	n := newNode(t)
	n.file("proc/net/route", "Iface\tDestination\tGateway \tFlags\tRefCnt\tUse\tMetric\tMask\nveth1\t00000000\t0101A8C0\t0003\t0\t0\t0\t00000000\n")
	g.Expect(n.collector.Collect(t.Context()).NetworkInterfaces).To(ContainElement(HaveField("Name", "veth1")))
}

func TestSettingsAreShownBesideWhatIsExpected(t *testing.T) {
	for name, c := range map[string]struct {
		change         func(n *node)
		setting, found string
		asExpected     bool
	}{
		"a deep idle state":                {func(*node) {}, "cStates", "C6", false},
		"a deep idle state of one CPU":     {func(n *node) { n.disable("state2", 7) }, "cStates", "C6", false},
		"deep idle states are disabled":    {func(n *node) { n.disable("state2", 8) }, "cStates", "C1", true},
		"no idle states, as in a VM":       {func(n *node) { n.noIdle("none") }, "cStates", "none", true},
		"idle states that nobody shows":    {func(n *node) { n.noIdle("") }, "cStates", "unknown", false},
		"all CPUs at full speed":           {func(*node) {}, "cpuGovernor", "performance", true},
		"one CPU saves power":              {func(n *node) { n.file("sys/devices/system/cpu/cpu3/cpufreq/scaling_governor", "powersave") }, "cpuGovernor", "performance,powersave", false},
		"SMT is on":                        {func(*node) {}, "smt", "on", false},
		"SMT is off":                       {func(n *node) { n.file("sys/devices/system/cpu/smt/active", "0\n") }, "smt", "off", true},
		"huge pages on request":            {func(*node) {}, "transparentHugePages", "madvise", false},
		"huge pages always":                {func(n *node) { n.file("sys/kernel/mm/transparent_hugepage/enabled", "[always] madvise never") }, "transparentHugePages", "always", true},
		"a sysctl that is as expected":     {func(*node) {}, "vm.dirty_ratio", "20", true},
		"a sysctl that is not":             {func(*node) {}, "vm.vfs_cache_pressure", "100", false},
		"a sysctl that the kernel has not": {func(*node) {}, "vm.zone_reclaim_mode", "unknown", false},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			n := newNode(t)
			c.change(n)
			g.Expect(n.collector.Collect(t.Context()).Settings).To(ContainElement(And(
				HaveField("Name", c.setting), HaveField("Found", c.found), HaveField("AsExpected", c.asExpected),
				HaveField("Expected", Not(BeEmpty())), HaveField("Source", Equal("the manual")))))
		})
	}
}

func TestANodeIsComparedOnlyWithWhatItsOwnServersAskFor(t *testing.T) {
	asked := []spec.HostSetting{
		{Name: "vm.dirty_ratio", Expected: "20", Source: "the guide", FileSystem: "Example", Roles: []string{"Metadata", "Storage"}},
		{Name: spec.CStates, Expected: "C1", Source: "the guide", FileSystem: "Example", Roles: []string{"Storage"}},
		{Name: "vm.overcommit_memory", Expected: "1", Source: "the practices", FileSystem: "Other", Roles: []string{"Metadata"}},
		{Name: "vm.dirty_ratio", Expected: "40", Source: "the practices", FileSystem: "Other", Roles: []string{"Metadata"}},
	}
	found := func() v1alpha1.NodeInventoryStatus {
		return v1alpha1.NodeInventoryStatus{Settings: []v1alpha1.HostSetting{
			{Name: "vm.dirty_ratio", Found: "40", Expected: "20"}, {Name: spec.CStates, Found: "haltpoll idle", AsExpected: true}, {Name: "vm.overcommit_memory", Found: "0"},
		}}
	}
	for name, c := range map[string]struct {
		serves []string
		want   []v1alpha1.HostSetting
		count  string
	}{
		"no server":                      {count: "0/0"},
		"a server of a third filesystem": {serves: []string{"Third Storage"}, count: "0/0"},
		"a storage server of Example": {serves: []string{"Example Storage"}, count: "1/2", want: []v1alpha1.HostSetting{
			{Name: "vm.dirty_ratio", Found: "40", Expected: "20", Source: "the guide"}, {Name: spec.CStates, Found: "haltpoll idle", Expected: "C1", AsExpected: true, Source: "the guide"},
		}},
		"a metadata server of Other": {serves: []string{"Other Metadata"}, count: "1/2", want: []v1alpha1.HostSetting{
			{Name: "vm.dirty_ratio", Found: "40", Expected: "40", AsExpected: true, Source: "the practices"}, {Name: "vm.overcommit_memory", Found: "0", Expected: "1", Source: "the practices"},
		}},
		"a server of another role": {serves: []string{"Other Storage"}, count: "0/0"},
		"two filesystems, of which the first one counts": {serves: []string{"Other Metadata", "Example Metadata"}, count: "0/2", want: []v1alpha1.HostSetting{
			{Name: "vm.dirty_ratio", Found: "40", Expected: "20", Source: "the guide"}, {Name: "vm.overcommit_memory", Found: "0", Expected: "1", Source: "the practices"},
		}},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			status := found()
			Applying(&status, asked, func(fileSystem, role string) bool { return slices.Contains(c.serves, fileSystem+" "+role) })
			g.Expect(status.Settings).To(Equal(c.want))
			g.Expect(status.Summary.Settings).To(Equal(c.count))
		})
	}
}

// disable disables an idle state on the first CPUs.
func (n *node) disable(state string, cpus int) {
	n.Helper()
	for cpu := range cpus {
		n.file(fmt.Sprintf("sys/devices/system/cpu/cpu%d/cpuidle/%s/disable", cpu, state), "1\n")
	}
}

// noIdle removes all idle states.
func (n *node) noIdle(driver string) {
	n.Helper()
	for cpu := range 8 {
		NewWithT(n).Expect(os.RemoveAll(filepath.Join(n.root, fmt.Sprintf("sys/devices/system/cpu/cpu%d/cpuidle", cpu)))).To(Succeed())
	}
	n.file("sys/devices/system/cpu/cpuidle/current_driver", driver)
}

func TestTheSummaryCountsDisksAndWhatCanBeUsed(t *testing.T) {
	g := NewWithT(t)
	g.Expect(newNode(t).collector.Collect(t.Context()).Summary).To(Equal(v1alpha1.InventorySummary{
		Disks: 3, Usable: 2, UsableCapacity: "2.5TiB", Settings: "3/9",
	}))
}

func TestTheSameNodeResultsInTheSameBytes(t *testing.T) {
	g := NewWithT(t)
	n := newNode(t)
	n.collector.Daemons = func(context.Context) ([]v1alpha1.DaemonPlacement, []string) {
		return []v1alpha1.DaemonPlacement{{Name: "b/x"}, {Name: "a/x"}}, []string{"z", "a"}
	}
	first, err := json.Marshal(n.collector.Collect(t.Context()))
	g.Expect(err).NotTo(HaveOccurred())
	for range 3 {
		again, err := json.Marshal(n.collector.Collect(t.Context()))
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(string(again)).To(Equal(string(first)))
	}
	status := n.collector.Collect(t.Context())
	g.Expect(status.Daemons[0].Name).To(Equal("a/x"))
	g.Expect(status.Problems).To(Equal([]string{"a", "something of the disks", "z"}))
}

func TestAnUnknownValueIsAProblemAndTheRestIsThere(t *testing.T) {
	g := NewWithT(t)
	n := newNode(t)
	g.Expect(os.RemoveAll(filepath.Join(n.root, "sys/devices/system/cpu/online"))).To(Succeed())
	n.collector.Addresses = func(string) ([]string, error) { return nil, errors.New("no such interface") }
	n.collector.Daemons = func(context.Context) ([]v1alpha1.DaemonPlacement, []string) {
		return nil, []string{strings.Repeat("é", 2000)}
	}
	status := n.collector.Collect(t.Context())
	g.Expect(status.Problems).To(ContainElements(ContainSubstring("can't read the CPUs of the node"), "can't read the addresses of eno1: no such interface"))
	for _, problem := range status.Problems {
		g.Expect(len(problem)).To(BeNumerically("<=", 1024))
	}
	g.Expect(status.BlockDevices).To(HaveLen(5))
	g.Expect(status.NetworkInterfaces).NotTo(BeEmpty())
}

func TestThisHostIsCollected(t *testing.T) {
	g := NewWithT(t)
	status := ThisHost(tuned, nil, nil).Collect(t.Context())
	g.Expect(status.Kernel.Release).NotTo(BeEmpty())
	g.Expect(status.CPU.Threads).To(BeNumerically(">", 0))
	g.Expect(status.Settings).To(HaveLen(9))
	g.Expect(addresses("lo")).To(ContainElement("127.0.0.1/8"))
}
