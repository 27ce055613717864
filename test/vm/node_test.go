//go:build vm

package vm_test

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"parallelfs.dev/operator/api/v1alpha1"
	"parallelfs.dev/operator/internal/node/spec"
	"parallelfs.dev/operator/internal/plan"
	"parallelfs.dev/operator/test/patience"
)

// node is the Kubernetes name that the machine would have.
const node = "oss1"

// The disks, by their content. Their serials identify them in all boots.
const (
	blank0      = "PFSVM-A" // on NUMA node 0
	foreign     = "PFSVM-B" // on NUMA node 0, with a foreign ext4
	blank1      = "PFSVM-C" // on NUMA node 1
	partitioned = "PFSVM-D" // on NUMA node 1, with a partition table and a partition
)

// TestNode is one story, because a start takes as long as all the rest. It inspects a machine, binds daemons to its sockets, makes one of
// its disks a target, and runs a MooseFS that the machine serves and mounts. Then the machine loses its power. The test finds all of it
// again after a restart in which the disks change their names.
func TestNode(t *testing.T) {
	directory := t.TempDir()
	m := server.boot(t, directory, blank0, foreign, blank1, partitioned)
	m.sh(t, "mkfs.ext4 -q -L precious /dev/disk/by-id/nvme-eui.525400a0000000b2; mount /dev/disk/by-id/nvme-eui.525400a0000000b2 /mnt; "+
		"echo thesis > /mnt/thesis.tex; umount /mnt; "+
		"printf 'label: gpt\n,100M,L\n' | sfdisk -q /dev/disk/by-id/nvme-eui.525400a0000000d4; udevadm settle; sync")
	before := map[string]string{}
	for _, serial := range []string{blank0, foreign, partitioned} {
		before[serial] = sum(t, directory, serial)
	}
	untouched := func(t *testing.T) {
		m.sh(t, "sync")
		for serial, content := range before {
			NewWithT(t).Expect(sum(t, directory, serial)).To(Equal(content), "the disk "+serial)
		}
	}

	found := inventory(t, m)
	t.Run("inventory", func(t *testing.T) { testInventory(t, found) })
	t.Run("selection", func(t *testing.T) { testSelect(t, found) })
	t.Run("pinning", func(t *testing.T) { testPinning(t, m, found) })
	t.Run("mounts", func(t *testing.T) { testMounts(t, m) })
	t.Run("guards", func(t *testing.T) { testGuards(t, m, directory, found) })
	var target v1alpha1.StorageTarget
	t.Run("provisioning", func(t *testing.T) { target = testFormat(t, m, found) })
	t.Run("all other disks are bit for bit what they were before", untouched)
	if t.Failed() || target.Name == "" {
		return // the next steps need all of this, and -run may have left it out
	}
	t.Run("power", func(t *testing.T) { testServesItself(t, m, target) })
	m.cut(t)

	m = server.boot(t, directory, foreign, blank0, partitioned, blank1)
	t.Run("restart", func(t *testing.T) { testRestarted(t, m, found, target) })
	t.Run("power is back", func(t *testing.T) { testPower(t, m, target) })
	t.Run("remounted", func(t *testing.T) { testRemounted(t, m, target) })
	t.Run("all other disks are bit for bit what they were before, after the restart", untouched)
	m.halt(t)

	m = server.boot(t, directory, blank0, foreign, partitioned)
	t.Run("missing disk", func(t *testing.T) { testMissing(t, m, target) })
	t.Run("all disks are bit for bit what they were before, without the target's", untouched)
	m.halt(t)
}

// sum is the SHA-256 of a disk's raw file.
func sum(t *testing.T, directory, serial string) string {
	t.Helper()
	file, err := os.Open(diskFile(directory, serial))
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	hash := sha256.New()
	if _, err := io.Copy(hash, file); err != nil {
		t.Fatal(err)
	}
	return hex.EncodeToString(hash.Sum(nil))
}

// inventory is the result of the agent's inspection. It repeats an incomplete inspection, as an agent does: the machine is emulated, and
// slow on a busy host.
func inventory(t *testing.T, m *machine) v1alpha1.NodeInventoryStatus {
	t.Helper()
	var found v1alpha1.NodeInventory
	NewWithT(t).Eventually(func() string {
		code, text, complaint := m.try(t, "", "agent", "inventory", "-o", "json")
		if code != 0 {
			return complaint
		}
		found = v1alpha1.NodeInventory{}
		decode(t, text, &found)
		for _, b := range found.Status.BlockDevices {
			if !plan.IsLookedAtCompletely(b) {
				return text
			}
		}
		return ""
	}).WithTimeout(patience.Bound(15*time.Minute)).Should(BeEmpty(), "all disks could be looked at")
	return found.Status
}

func decode(t *testing.T, text string, into any) {
	t.Helper()
	decoder := json.NewDecoder(strings.NewReader(text))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(into); err != nil {
		t.Fatalf("%s in %s", err, text)
	}
}

// bySerial is a disk of the inventory.
func bySerial(t *testing.T, found v1alpha1.NodeInventoryStatus, serial string) v1alpha1.BlockDevice {
	t.Helper()
	for _, device := range found.BlockDevices {
		if device.Serial == serial {
			return device
		}
	}
	t.Fatalf("the inventory has no disk with the serial %s: %+v", serial, found.BlockDevices)
	return v1alpha1.BlockDevice{}
}

func testInventory(t *testing.T, found v1alpha1.NodeInventoryStatus) {
	for _, d := range disks {
		t.Run("the NVMe disk "+d.serial+" is shown with all that it is known by", func(t *testing.T) {
			g := NewWithT(t)
			device := bySerial(t, found, d.serial)
			g.Expect(device.WWN).To(Equal("eui." + d.eui))
			g.Expect(device.IDs).To(ContainElements("nvme-eui."+d.eui, "nvme-QEMU_NVMe_Ctrl_"+d.serial))
			g.Expect(device.Model).To(Equal("QEMU NVMe Ctrl"))
			g.Expect(device.Transport).To(Equal("nvme"))
			g.Expect(device.Type).To(Equal("disk"))
			g.Expect(device.MediaType).To(Equal(v1alpha1.SSD))
			g.Expect(device.SizeBytes).To(BeEquivalentTo(diskSize))
			g.Expect(device.NUMANode).To(HaveValue(BeEquivalentTo(d.numaNode)))
		})
	}
	t.Run("a blank disk has no reason against it", func(t *testing.T) {
		for _, serial := range []string{blank0, blank1} {
			NewWithT(t).Expect(bySerial(t, found, serial).Unusable).To(BeEmpty())
		}
	})
	t.Run("a foreign filesystem is shown, and is a reason", func(t *testing.T) {
		g := NewWithT(t)
		device := bySerial(t, found, foreign)
		g.Expect(device.Signatures).To(ContainElement(And(HaveField("Type", "ext4"), HaveField("Label", "precious"))))
		g.Expect(device.Unusable).To(ContainElement(ContainSubstring("ext4")))
	})
	t.Run("a partition table and its partition are shown, and are reasons", func(t *testing.T) {
		g := NewWithT(t)
		device := bySerial(t, found, partitioned)
		g.Expect(device.Partitions).To(ConsistOf(device.KernelName + "p1"))
		g.Expect(device.Signatures).To(ContainElement(HaveField("Type", "gpt")))
		g.Expect(device.Unusable).To(ContainElement(ContainSubstring(device.KernelName + "p1")))
	})
	t.Run("the machine's own disk is shown with its mount, which is a reason", func(t *testing.T) {
		g := NewWithT(t)
		device := bySerial(t, found, "system")
		g.Expect(device.Mounts).To(ContainElement("/var/lib/parallelfs"))
		g.Expect(device.Unusable).To(ContainElement(ContainSubstring("/var/lib/parallelfs")))
	})
	t.Run("the health of each NVMe disk is that of its own log", func(t *testing.T) {
		for _, d := range disks {
			want := v1alpha1.DiskHealth{State: v1alpha1.DiskHealthy}
			if d.warning != 0 {
				want = v1alpha1.DiskHealth{State: v1alpha1.DiskFailing, Reasons: []string{"reliability is degraded by media errors or an internal error"}}
			}
			NewWithT(t).Expect(bySerial(t, found, d.serial).Health).To(HaveValue(Equal(want)), d.serial)
		}
	})
	t.Run("both sockets are shown with their CPUs and memory", func(t *testing.T) {
		g := NewWithT(t)
		g.Expect(found.CPU.Sockets).To(BeEquivalentTo(2))
		g.Expect(found.CPU.Threads).To(BeEquivalentTo(4))
		g.Expect(found.CPU.NUMANodes).To(HaveExactElements(
			And(HaveField("ID", BeEquivalentTo(0)), HaveField("CPUs", "0-1"), HaveField("MemoryBytes", BeNumerically("~", numaMemory, numaMemory/4))),
			And(HaveField("ID", BeEquivalentTo(1)), HaveField("CPUs", "2-3"), HaveField("MemoryBytes", BeNumerically("~", numaMemory, numaMemory/4)))))
	})
	t.Run("the count of disks that can become targets is that of the blank ones", func(t *testing.T) {
		NewWithT(t).Expect(found.Summary.Usable).To(BeEquivalentTo(2))
	})
}

// fileSystem has one pool of disks on the node.
func fileSystem(targets v1alpha1.TargetsSpec) *v1alpha1.FileSystem {
	return &v1alpha1.FileSystem{
		ObjectMeta: metav1.ObjectMeta{Namespace: "vm", Name: "scratch", UID: "5c6e7a3a-6a43-4b1c-8f0e-0d7f6f3a1b22"},
		Spec: v1alpha1.FileSystemSpec{
			Type: v1alpha1.MooseFS,
			MetadataServers: v1alpha1.MetadataSpec{
				InstancesPerNode: 1,
				Targets:          v1alpha1.TargetsSpec{Directories: []v1alpha1.DirectoryPath{"/var/lib/parallelfs/vm.scratch/master"}},
			},
			StoragePools: []v1alpha1.StoragePoolSpec{{Name: "ssd", Targets: targets}},
			Provisioning: v1alpha1.ProvisioningSpec{FormatPolicy: v1alpha1.FormatIfBlank},
		},
	}
}

// choose selects the disks for a FileSystem on the node.
func choose(found v1alpha1.NodeInventoryStatus, targets v1alpha1.TargetsSpec) plan.Selection {
	return chooseFor(fileSystem(targets), found)
}

func chooseFor(fs *v1alpha1.FileSystem, found v1alpha1.NodeInventoryStatus) plan.Selection {
	return plan.Select(plan.SelectInput{
		FileSystem: fs, TargetNodes: plan.TargetNodes{Metadata: []string{node}, Pools: map[string][]string{"ssd": {node}}},
		Inventories: map[string]v1alpha1.NodeInventoryStatus{node: found},
	})
}

func onNUMANode(count int32, numaNodes ...int32) v1alpha1.TargetsSpec {
	return v1alpha1.TargetsSpec{
		Select: &v1alpha1.DeviceSelector{MediaType: v1alpha1.SSD, NUMANodes: numaNodes, CountPerNode: count},
		Format: &v1alpha1.FormatSpec{FSType: v1alpha1.XFS, MountOptions: []v1alpha1.LocalMountOption{"noatime"}},
		Queue:  &v1alpha1.QueueSpec{Scheduler: "mq-deadline", ReadAheadKB: new(int32(4096)), MaxSectorsKB: new(int32(256)), Requests: new(int32(64))},
	}
}

func testSelect(t *testing.T, found v1alpha1.NodeInventoryStatus) {
	for name, c := range map[string]struct {
		targets v1alpha1.TargetsSpec
		serials []string
		problem string
	}{
		"NUMA node 0 has one blank disk": {onNUMANode(1, 0), []string{blank0}, ""},
		"NUMA node 1 has one blank disk": {onNUMANode(1, 1), []string{blank1}, ""},
		"both have two":                  {onNUMANode(2, 0, 1), []string{blank0, blank1}, ""},
		"a second one of NUMA node 1 is refused, because it has partitions": {onNUMANode(2, 1), []string{blank1}, node},
		"a NUMA node that is not there has none":                            {onNUMANode(1, 2), nil, node},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			selection := choose(found, c.targets)
			var got []string
			for _, target := range selection.Targets {
				got = append(got, target.Spec.Device.Serial)
				g.Expect(target.Spec.Device.WWN).To(Equal(bySerial(t, found, target.Spec.Device.Serial).WWN))
			}
			g.Expect(got).To(ConsistOf(c.serials))
			if c.problem == "" {
				g.Expect(selection.Problems).To(BeEmpty())
			} else {
				g.Expect(selection.Problems).To(ContainElement(HaveField("Message", ContainSubstring(c.problem))))
			}
		})
	}
}

// threads is the number of threads of the bound daemon, without those that every Go program has.
const threads = 6

func testPinning(t *testing.T, m *machine, found v1alpha1.NodeInventoryStatus) {
	// Four daemons could run on the node; two are enough, one on each socket.
	var daemons []plan.PinDaemon
	asked := &v1alpha1.CPUPinning{Mode: v1alpha1.PinningNUMANode, NUMANodes: []int32{0, 1}, MemoryPolicy: v1alpha1.MemoryBind}
	instances := []string{"chunkserver/ssd", "chunkserver/bulk"}
	for i, instance := range instances {
		daemons = append(daemons, plan.PinDaemon{Name: instance, Index: i, Field: "spec.storagePools[].cpuPinning", Pinning: asked, Nodes: []string{node}})
	}
	pinnings, problems := plan.Pin(plan.PinInput{
		FileSystem: "vm/scratch", Daemons: daemons, Inventories: map[string]v1alpha1.NodeInventoryStatus{node: found},
	})
	NewWithT(t).Expect(problems).To(BeEmpty())
	for i, instance := range instances {
		wanted := pinnings[node][instance]
		m.start(t, instance, spec.Member{Pinning: &wanted})
		t.Run(fmt.Sprintf("a daemon bound to NUMA node %d has all of its threads and its memory there", i), func(t *testing.T) {
			testBound(t, m, instance, i, pinnings[node][instance])
		})
	}
	t.Run("a daemon that is bound to a CPU that is not there is refused", func(t *testing.T) {
		g := NewWithT(t)
		path := m.runSpec(t, "chunkserver/more", spec.Member{Pinning: &spec.Pinning{CPUs: "3-4", Why: "this test"}})
		code, _, stderr := m.try(t, "", "env", "NODE_NAME="+nodeName, "node", "run", "--spec", path)
		g.Expect(code).NotTo(BeZero())
		g.Expect(stderr).To(And(ContainSubstring("3-4"), ContainSubstring("this test")))
	})
	t.Run("a thread that leaves its CPUs is drift", func(t *testing.T) {
		g := NewWithT(t)
		pid := strings.TrimSpace(m.run(t, "cat", fileOf(instances[0], "pid")))
		m.sh(t, "taskset -pc 3 $(ls /proc/"+pid+"/task | tail -1)")
		placement := placementOf(t, m, instances[0])
		// A new thread has the CPUs of the thread that started it, which may be the one that left its CPUs.
		g.Expect(placement.StrayThreads).To(BeNumerically(">=", 1))
		g.Expect(placement.CPUs).To(Equal("0-1,3"))
		g.Expect(placement.NUMANodes).To(Equal("0-1"))
		g.Expect(plan.Drift(pinnings[node][instances[0]], placement)).NotTo(BeEmpty())
	})
	for _, instance := range instances {
		m.stop(t, instance)
	}
}

func testBound(t *testing.T, m *machine, instance string, numaNode int, wanted spec.Pinning) {
	g := NewWithT(t)
	cpus := []string{"0-1", "2-3"}[numaNode]
	placement := placementOf(t, m, instance)
	g.Expect(placement.CPUs).To(Equal(cpus))
	g.Expect(placement.StrayThreads).To(BeZero())
	g.Expect(placement.NUMANodes).To(Equal(fmt.Sprint(numaNode)))
	g.Expect(placement.MemoryPolicy).To(Equal(fmt.Sprintf("bind:%d", numaNode)))
	g.Expect(placement.Program).To(Equal("daemon"))
	g.Expect(plan.Drift(wanted, placement)).To(BeEmpty())

	// The same facts without the node binary: what the kernel reports about each thread, and where its memory is.
	proc := "/proc/" + strings.TrimSpace(m.run(t, "cat", fileOf(instance, "pid")))
	lists := strings.Fields(m.sh(t, "cat "+proc+"/task/*/status | sed -n 's/^Cpus_allowed_list:[[:space:]]*//p'"))
	g.Expect(len(lists)).To(BeNumerically(">=", threads))
	g.Expect(lists).To(HaveEach(cpus))
	ran := strings.Fields(m.sh(t, "for task in "+proc+"/task/*; do sed 's/.*) //' $task/stat | cut -d' ' -f37; done"))
	g.Expect(ran).To(HaveEach(BeElementOf(fmt.Sprint(2*numaNode), fmt.Sprint(2*numaNode+1))), "the CPUs that they ran on last (proc_pid_stat(5), field 39)")
	elsewhere := m.sh(t, fmt.Sprintf("sed -n '/file=/d; / bind:%d .* N%d=/p' %s/numa_maps", numaNode, 1-numaNode, proc))
	g.Expect(elsewhere).To(BeEmpty(), "memory of its own on the other NUMA node")
	own := m.sh(t, fmt.Sprintf("sed 's/ /\\n/g' %s/numa_maps | sed -n 's/^N%d=//p'", proc, numaNode))
	g.Expect(strings.Fields(own)).NotTo(BeEmpty())
}

// nodeName is the name of the machine in no cluster.
const nodeName = "vm"

// fileOf is the path of a file about a daemon in the machine.
func fileOf(instance, kind string) string {
	return "/run/" + strings.ReplaceAll(instance, "/", "-") + "." + kind
}

// runSpec writes the configuration files of `node run`, and returns the path of the first.
func (m *machine) runSpec(t *testing.T, instance string, config spec.Member) string {
	t.Helper()
	run := spec.Run{
		Owner: owner(), Component: "chunkserver", User: "daemon",
		Ledger: "/var/lib/parallelfs/vm.scratch/ledger-" + strings.ReplaceAll(instance, "/", "-") + ".json",
		Daemon: instance, NodeFile: fileOf(instance, "node"),
		Directories: []spec.Directory{}, Files: []spec.File{}, Command: []string{"daemon", fmt.Sprint(threads), fileOf(instance, "pid")},
	}
	if len(config.Targets) > 0 {
		run.OnTargets = &spec.OnTargets{Directory: "daemon", Data: "data"}
	}
	m.run(t, "mkdir", "-p", "/var/lib/parallelfs/vm.scratch")
	config.Name = spec.MemberName(instance)
	m.write(t, run.NodeFile, spec.NodeFile{
		Version: spec.NodeFileVersion, FileSystem: run.Owner, Node: nodeName, Generation: 1, Members: []spec.Member{config},
	})
	m.write(t, fileOf(instance, "json"), run)
	return fileOf(instance, "json")
}

func owner() spec.Owner {
	fs := fileSystem(v1alpha1.TargetsSpec{})
	return spec.Owner{Namespace: fs.Namespace, Name: fs.Name, UID: string(fs.UID)}
}

// start starts a daemon, and returns when all of its threads run.
func (m *machine) start(t *testing.T, instance string, config spec.Member) {
	t.Helper()
	path, log, pid := m.runSpec(t, instance, config), fileOf(instance, "log"), fileOf(instance, "pid")
	m.sh(t, fmt.Sprintf("rm -f %[3]s; NODE_NAME=%[4]s node run --spec %[1]s > %[2]s 2>&1 & p=$!; "+
		"for i in $(seq 300); do [ ! -s %[3]s ] || exit 0; kill -0 $p || break; sleep 0.1; done; cat %[2]s; exit 1", path, log, pid, nodeName))
}

// stop ends a daemon, and returns when it has ended.
func (m *machine) stop(t *testing.T, instance string) {
	t.Helper()
	m.sh(t, fmt.Sprintf("p=$(cat %s); kill $p; while [ -e /proc/$p/exe ]; do sleep 0.1; done", fileOf(instance, "pid")))
}

// placementOf asks the node binary where a daemon runs.
func placementOf(t *testing.T, m *machine, instance string) v1alpha1.DaemonPlacement {
	t.Helper()
	var placements []v1alpha1.DaemonPlacement
	decode(t, m.run(t, "agent", "placement", "-o", "json"), &placements)
	for _, placement := range placements {
		if placement.Name == "vm/scratch/"+instance {
			return placement
		}
	}
	t.Fatalf("no daemon %s in %+v", instance, placements)
	return v1alpha1.DaemonPlacement{}
}
