//go:build vm

package vm_test

import (
	"encoding/json"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"parallelfs.dev/operator/test/patience"
)

// A disk is one NVMe disk of the machine.
type disk struct {
	serial string
	// eui is the EUI-64 of its namespace.
	eui string
	// numaNode that its root port is attached to.
	numaNode int
	// warning is the critical warning in its health log (NVM Express Base Specification, SMART / Health Information log, byte 0).
	warning uint8
}

// disks lists the machine's disks, which tests find by serial. The order in which they are attached differs from boot to boot.
var disks = []disk{
	{serial: "PFSVM-A", eui: "525400a0000000a1", numaNode: 0},
	{serial: "PFSVM-B", eui: "525400a0000000b2", numaNode: 0, warning: 4},
	{serial: "PFSVM-C", eui: "525400a0000000c3", numaNode: 1},
	{serial: "PFSVM-D", eui: "525400a0000000d4", numaNode: 1},
}

// machine is a virtual machine that has started.
type machine struct {
	directory string
	command   *exec.Cmd
	// ended is closed when QEMU has ended.
	ended   chan struct{}
	port    net.Conn
	replies *json.Decoder
	// limit is how long one command may take.
	limit time.Duration
}

// sizes of the disks in bytes. XFS needs at least 300 MB (mkfs.xfs(8)).
const (
	diskSize = 512 << 20
	// numaMemory is the memory of each NUMA node.
	numaMemory = 768 << 20
)

// hardware is what differs between machines.
type hardware struct {
	// cores is the number on each of the two sockets, and numaMemory the bytes of each NUMA node.
	cores, numaMemory int
	// emulated is the processor of a machine without kvm (-cpu), empty for QEMU's own choice.
	emulated string
	// system is the size of the machine's own disk in bytes, and more has the sizes of virtio disks, whose serials are disk1 and up.
	system int64
	more   []int64
	// devices are further arguments of QEMU.
	devices []string
}

// server is a small machine.
var server = hardware{cores: 2, numaMemory: numaMemory, system: 128 << 20}

// diskFile is the raw file of a disk in the directory of a machine.
func diskFile(directory, serial string) string { return filepath.Join(directory, serial+".raw") }

// startLimit is how long a start may take before it is aborted, and commandLimit how long a command may. An emulated processor on an idle
// machine starts in a minute.
const startLimit, commandLimit = 20 * time.Minute, 30 * time.Minute

// boot starts a machine with the disks of a directory, attached in this order; missing disks are made.
func (h hardware) boot(t *testing.T, directory string, order ...string) *machine {
	t.Helper()
	for _, d := range disks {
		sparse(t, diskFile(directory, d.serial), diskSize)
	}
	sparse(t, diskFile(directory, "system"), h.system)
	for i, size := range h.more {
		sparse(t, diskFile(directory, fmt.Sprintf("disk%d", i+1)), size)
	}
	socket := filepath.Join(directory, "port")
	listener, err := net.Listen("unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()

	m := &machine{directory: directory, ended: make(chan struct{})}
	m.command = exec.Command("qemu-system-x86_64", h.arguments(directory, socket, order)...)
	m.command.Stdout, m.command.Stderr = os.Stderr, os.Stderr
	// QEMU ends with the test, however the test ends.
	m.command.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	began := time.Now()
	if err := m.command.Start(); err != nil {
		t.Fatal(err)
	}
	go func() {
		_ = m.command.Wait() // its output is more useful than its exit code
		_ = listener.Close()
		close(m.ended)
	}()
	t.Cleanup(func() {
		_ = m.command.Process.Kill() // it has already ended if the test reached its last step
		<-m.ended
	})
	if m.port, err = listener.Accept(); err != nil {
		t.Fatalf("QEMU has ended: %s", m.console())
	}
	t.Cleanup(func() { _ = m.port.Close() })
	m.replies = json.NewDecoder(m.port)
	m.limit = startLimit
	if code, _, _ := m.try(t, "", "true"); code != 0 {
		t.Fatalf("the machine runs no commands: %s", m.console())
	}
	m.limit = commandLimit
	t.Logf("started in %s with the disks in the order %s", time.Since(began).Round(time.Second), strings.Join(order, ", "))
	return m
}

// sparse makes a file that uses no space, unless it exists.
func sparse(t *testing.T, path string, size int64) {
	t.Helper()
	file, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err == nil {
		err = file.Truncate(size)
		_ = file.Close() // nothing was written
	}
	if err != nil {
		t.Fatal(err)
	}
}

// kernelOptions are those of the kernel (Documentation/admin-guide/kernel-parameters). An emulated processor that waits for a busy host
// must not look like broken hardware. The kernel would panic because its timer did not tick in time (no_timer_check), and the driver would
// give up on a disk after 30 s.
const kernelOptions = "console=ttyS0 quiet panic=-1 mitigations=off no_timer_check nvme_core.io_timeout=600 nvme_core.admin_timeout=600"

// arguments of QEMU: two sockets, each with processors, memory and a PCI Express root of its own, as on a server.
func (h hardware) arguments(directory, socket string, order []string) []string {
	accel := os.Getenv("VM_ACCEL")
	memory := func(node int) string {
		return fmt.Sprintf("memory-backend-ram,id=memory%d,size=%d", node, h.numaMemory)
	}
	numa := func(node int) string {
		return fmt.Sprintf("node,nodeid=%d,cpus=%d-%d,memdev=memory%[1]d", node, node*h.cores, (node+1)*h.cores-1)
	}
	arguments := []string{
		"-machine", "q35", "-accel", accel, "-nodefaults", "-no-user-config", "-display", "none", "-no-reboot",
		"-serial", "file:" + filepath.Join(directory, "console"),
		"-kernel", os.Getenv("VM_KERNEL"), "-initrd", os.Getenv("VM_INITRD"),
		"-append", kernelOptions,
		"-smp", fmt.Sprintf("%d,sockets=2,cores=%d,threads=1", 2*h.cores, h.cores), "-m", fmt.Sprintf("%dM", 2*h.numaMemory>>20),
		"-object", memory(0), "-numa", numa(0), "-object", memory(1), "-numa", numa(1),
		// The commands of the tests, and the machine's own disk.
		"-chardev", "socket,id=port,path=" + socket, "-device", "virtio-serial-pci",
		"-device", "virtserialport,chardev=port,name=parallelfs",
		"-drive", "if=none,id=system,format=raw,cache=unsafe,file=" + diskFile(directory, "system"),
		"-device", "virtio-blk-pci,drive=system,serial=system",
		// The kernel derives the NUMA node of a PCI device from its root bus, so that each node needs one.
		"-device", "pxb-pcie,id=root0,bus=pcie.0,bus_nr=64,numa_node=0",
		"-device", "pxb-pcie,id=root1,bus=pcie.0,bus_nr=128,numa_node=1",
	}
	if accel == "kvm" {
		arguments = append(arguments, "-cpu", "host")
	} else if h.emulated != "" {
		arguments = append(arguments, "-cpu", h.emulated)
	}
	for i := range h.more {
		name := fmt.Sprintf("disk%d", i+1)
		arguments = append(arguments,
			"-drive", fmt.Sprintf("if=none,id=%s,format=raw,cache=unsafe,file=%s", name, diskFile(directory, name)),
			"-device", fmt.Sprintf("virtio-blk-pci,bus=pcie.0,drive=%s,serial=%[1]s", name))
	}
	arguments = append(arguments, h.devices...)
	for slot, serial := range order {
		d := disks[slices.IndexFunc(disks, func(d disk) bool { return d.serial == serial })]
		arguments = append(arguments,
			"-device", fmt.Sprintf("pcie-root-port,id=port%d,bus=root%d,chassis=%d,slot=%d", slot, d.numaNode, slot+1, slot+1),
			"-drive", fmt.Sprintf("if=none,id=nvmedisk%d,format=raw,cache=unsafe,discard=unmap,file=%s", slot, diskFile(directory, d.serial)),
			"-device", fmt.Sprintf("nvme,id=nvme%d,bus=port%d,serial=%s,smart_critical_warning=%d", slot, slot, d.serial, d.warning),
			// A namespace of its own has an EUI-64; the one that comes with the controller has none.
			"-device", fmt.Sprintf("nvme-ns,bus=nvme%d,drive=nvmedisk%d,eui64=0x%s", slot, slot, d.eui))
	}
	return arguments
}

// console is the end of the output of the machine's kernel and first process.
func (m *machine) console() string {
	text, err := os.ReadFile(filepath.Join(m.directory, "console"))
	if err != nil {
		return err.Error()
	}
	lines := strings.Split(strings.TrimSpace(string(text)), "\n")
	return "the console ends with\n" + strings.Join(lines[max(0, len(lines)-30):], "\n")
}

// try runs a command in the machine.
func (m *machine) try(t *testing.T, stdin string, argv ...string) (code int, stdout, stderr string) {
	t.Helper()
	request := struct {
		Argv  []string `json:"argv"`
		Stdin string   `json:"stdin"`
	}{argv, stdin}
	reply := struct {
		Code           int
		Stdout, Stderr string
	}{}
	_ = m.port.SetReadDeadline(time.Now().Add(patience.Bound(m.limit))) // a unix socket has deadlines
	err := json.NewEncoder(m.port).Encode(request)
	if err == nil {
		err = m.replies.Decode(&reply)
	}
	if err != nil {
		t.Fatalf("%s: the machine does not answer: %s; %s", strings.Join(argv, " "), err, m.console())
	}
	return reply.Code, reply.Stdout, reply.Stderr
}

// run runs a command that must succeed, and returns its output.
func (m *machine) run(t *testing.T, argv ...string) string {
	t.Helper()
	code, stdout, stderr := m.try(t, "", argv...)
	if code != 0 {
		t.Fatalf("%s: exit code %d: %s%s", strings.Join(argv, " "), code, stdout, stderr)
	}
	return stdout
}

// sh runs a line of shell that must succeed.
func (m *machine) sh(t *testing.T, line string) string {
	t.Helper()
	return m.run(t, "sh", "-euc", line)
}

// write writes a file of JSON in the machine.
func (m *machine) write(t *testing.T, path string, value any) {
	t.Helper()
	content, err := json.Marshal(value)
	if err != nil {
		t.Fatal(err)
	}
	if code, _, stderr := m.try(t, string(content), "tee", path); code != 0 {
		t.Fatalf("%s: %s", path, stderr)
	}
}

// halt shuts the machine down: mounted filesystems are unmounted.
func (m *machine) halt(t *testing.T) {
	t.Helper()
	m.sh(t, "sync; umount -a -t ext4,xfs,btrfs")
	if err := m.port.Close(); err != nil {
		t.Fatal(err)
	}
	<-m.ended
	_ = os.Remove(filepath.Join(m.directory, "port")) // the listener has usually removed it
}
