package inventory

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"parallelfs.dev/operator/api/v1alpha1"
	"parallelfs.dev/operator/internal/node/devices"
	"parallelfs.dev/operator/internal/node/spec"
)

// kernelFS is a filesystem that the kernel serves and mounts.
var kernelFS = spec.HostSoftware{
	Name: "KernelFS",
	Server: spec.HostNeed{
		Modules: []string{"kfs", "kfsdisk", "knet"}, Programs: []string{"kctl", "mkfs.kfs"}, Install: "kmod-kfs-server and kfs-server",
	},
	Client:     spec.HostNeed{Modules: []string{"kfs", "knet"}, Programs: []string{"kctl"}, Install: "kmod-kfs-client"},
	OneVersion: []string{"kfs"},
	NIDs:       []string{"kctl", "list_nids"}, NIDsOf: "knet",
}

const running = "6.12.48+deb13-amd64" // the release in newNode

// kernelNode is a node with all modules of KernelFS loaded. Its programs print what those of Lustre 2.17.57 printed.
type kernelNode struct {
	*node
	// prints holds the output of programs by command line, and asked the command lines that were run.
	prints map[string]devices.Output
	asked  []string
}

func newKernelNode(t *testing.T) *kernelNode {
	t.Helper()
	n := &kernelNode{node: newNode(t), prints: map[string]devices.Output{
		"/usr/sbin/kctl --version":     {Stdout: []byte("lctl 2.17.57\n")},
		"/usr/sbin/mkfs.kfs --version": {Stdout: []byte("mkfs.lustre 2.17.57\n")},
		"/usr/sbin/kctl list_nids":     {Stdout: []byte("192.168.77.1@tcp\n")},
	}}
	n.file("proc/modules", "xfs 2093056 1 - Live 0x0\nkfsdisk 716800 0 - Live 0x0 (OE)\nkfs 1335296 0 - Live 0x0 (OE)\nknet 1097728 6 kfs, Live 0x0 (OE)\n")
	n.file("sys/module/kfs/version", "2.17.57\n")
	n.file("sys/module/knet/version", "0.7.0\n") // like LNet's before 2.17
	for _, program := range []string{"kctl", "mkfs.kfs", "modinfo"} {
		n.file("host/usr/sbin/"+program, "")
	}
	n.collector.Software = []spec.HostSoftware{kernelFS}
	n.collector.Run = func(_ context.Context, argv ...string) (devices.Output, error) {
		line := strings.Join(argv, " ")
		n.asked = append(n.asked, line)
		if out, known := n.prints[line]; known {
			return out, nil
		}
		return devices.Output{}, errors.New("nobody expects " + line)
	}
	return n
}

// onDisk unloads modules and puts them on the disk of the node, with the output of modinfo(8) for each.
func (n *kernelNode) onDisk(builtFor, directory string, names ...string) {
	n.Helper()
	n.file("proc/modules", "")
	n.remove("sys/module")
	var dep strings.Builder
	for _, name := range names {
		fmt.Fprintf(&dep, "%s/%s.ko.xz:\n", directory, name)
		said := fmt.Sprintf("filename:       /lib/modules/%s/%s/%s.ko.xz\nlicense:        GPL\n", running, directory, name)
		if name != "kfsdisk" {
			said += "version:        2.17.57\n"
		}
		said += "depends:        libcfs\nname:           " + name + "\nvermagic:       " + builtFor + " SMP preempt mod_unload modversions \n"
		n.prints["/usr/sbin/modinfo -k "+running+" "+name] = devices.Output{Stdout: []byte(said)}
	}
	n.file("host/lib/modules/"+running+"/modules.dep", dep.String())
}

func (n *kernelNode) remove(path string) {
	n.Helper()
	NewWithT(n).Expect(os.RemoveAll(filepath.Join(n.root, path))).To(Succeed())
}

func TestTheSoftwareOfAKernelFilesystemOnANode(t *testing.T) {
	g := NewWithT(t)
	n := newKernelNode(t)
	status := n.collector.Collect(t.Context())
	g.Expect(status.Software).To(Equal([]v1alpha1.HostSoftware{{
		Name:     "KernelFS",
		Programs: []v1alpha1.HostProgram{{Name: "kctl", Version: "2.17.57"}, {Name: "mkfs.kfs", Version: "2.17.57"}},
		NIDs:     []string{"192.168.77.1@tcp"},
	}}), "nothing is missing, though knet has a version of its own and kfsdisk has none")
	g.Expect(status.Kernel.Modules).To(ContainElements(
		v1alpha1.KernelModule{Name: "kfs", State: "Loaded", Version: "2.17.57"},
		v1alpha1.KernelModule{Name: "kfsdisk", State: "Loaded"},
	))
	g.Expect(status.Problems).To(Equal([]string{"something of the disks"}))
}

func TestANodeWithoutTheFilesystemRunsNoProgram(t *testing.T) {
	g := NewWithT(t)
	n := newKernelNode(t)
	n.file("proc/modules", "")
	n.remove("host/usr/sbin")
	n.remove("sys/module")
	software := n.collector.Collect(t.Context()).Software
	g.Expect(n.asked).To(BeEmpty())
	g.Expect(software).To(Equal([]v1alpha1.HostSoftware{{
		Name: "KernelFS",
		MissingForServers: "the node lacks what KernelFS needs: its kernel " + running + " has no modules kfs, kfsdisk and knet, " +
			"and it has no programs kctl and mkfs.kfs; install kmod-kfs-server and kfs-server for this kernel",
		MissingForClients: "the node lacks what KernelFS needs: its kernel " + running + " has no modules kfs and knet, " +
			"and it has no program kctl; install kmod-kfs-client for this kernel",
	}}))
}

func TestTheNetworkInTheKernelIsNotAskedBeforeItIsLoaded(t *testing.T) {
	g := NewWithT(t)
	n := newKernelNode(t)
	n.onDisk(running, "updates/kernel/fs", "kfs", "kfsdisk", "knet")
	status := n.collector.Collect(t.Context())
	g.Expect(n.asked).NotTo(ContainElement(ContainSubstring("list_nids")), "the question would load it")
	g.Expect(status.Software[0].NIDs).To(BeEmpty())
	g.Expect(status.Software[0].MissingForServers).To(BeEmpty(), "the first mount loads what is there")
	g.Expect(status.Kernel.Modules).To(ContainElement(v1alpha1.KernelModule{Name: "kfs", State: "Available", Version: "2.17.57"}))
}

func TestTheSentenceNamesWhatIsMissing(t *testing.T) {
	const other = "6.1.0-30-amd64"
	for name, c := range map[string]struct {
		change          func(n *kernelNode)
		server, clients string
	}{
		"one program of servers": {
			func(n *kernelNode) { n.remove("host/usr/sbin/mkfs.kfs") },
			"it has no program mkfs.kfs; install kmod-kfs-server and kfs-server", "",
		},
		"one module of servers": {
			func(n *kernelNode) { n.onDisk(running, "updates", "kfs", "knet") },
			"has no module kfsdisk; install kmod-kfs-server", "",
		},
		"programs of another version than the module in memory": {
			func(n *kernelNode) { n.file("sys/module/kfs/version", "2.15.5\n") },
			"several versions: 2.15.5 (the module kfs) and 2.17.57 (kctl, mkfs.kfs)", "2.15.5 (the module kfs) and 2.17.57 (kctl)",
		},
		"programs of two versions": {
			func(n *kernelNode) {
				n.prints["/usr/sbin/mkfs.kfs --version"] = devices.Output{Stdout: []byte("mkfs.lustre 2.15.5_3_g1a2b3c\n")}
			},
			"several versions: 2.15.5_3_g1a2b3c (mkfs.kfs) and 2.17.57 (kctl, the module kfs)", "",
		},
		"modules that were built for another kernel": {
			func(n *kernelNode) { n.onDisk(other, "extra", "kfs", "kfsdisk", "knet") },
			"the module kfs was built for kernel " + other + ", and the node runs " + running + "; install kmod-kfs-server",
			"install kmod-kfs-client",
		},
		"modules that fit this kernel as well": {
			func(n *kernelNode) { n.onDisk(other, "weak-updates", "kfs", "kfsdisk", "knet") }, "", "",
		},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			n := newKernelNode(t)
			c.change(n)
			found := n.collector.Collect(t.Context()).Software[0]
			for said, expected := range map[string]string{found.MissingForServers: c.server, found.MissingForClients: c.clients} {
				if expected == "" {
					g.Expect(said).To(BeEmpty())
				} else {
					g.Expect(said).To(ContainSubstring(expected))
				}
			}
		})
	}
}

func TestAProgramOfAnOldReleaseHasNoVersion(t *testing.T) {
	g := NewWithT(t)
	n := newKernelNode(t)
	n.file("sys/module/kfs/version", "2.15.0\n")
	n.prints["/usr/sbin/kctl --version"] = devices.Output{Stdout: []byte("mount.lustre 2.15.0 (libmount)\n")}
	n.prints["/usr/sbin/mkfs.kfs --version"] = devices.Output{Code: 22, Stderr: []byte("usage: mkfs.lustre 9.9.9\n"), Stdout: []byte("9.9.9\n")}
	status := n.collector.Collect(t.Context())
	g.Expect(status.Software[0].Programs).To(Equal([]v1alpha1.HostProgram{{Name: "kctl", Version: "2.15.0"}, {Name: "mkfs.kfs"}}))
	g.Expect(status.Software[0].MissingForServers).To(BeEmpty())
	g.Expect(status.Problems).To(Equal([]string{"something of the disks"}))
}

func TestAMissingValueIsAProblemAndTheRestIsThere(t *testing.T) {
	g := NewWithT(t)
	n := newKernelNode(t)
	n.prints["/usr/sbin/kctl list_nids"] = devices.Output{Code: 22, Stderr: []byte("IOC_LIBCFS_GET_NI error 22: Invalid argument\nmore\n")}
	delete(n.prints, "/usr/sbin/mkfs.kfs --version")
	status := n.collector.Collect(t.Context())
	g.Expect(status.Software[0]).To(Equal(v1alpha1.HostSoftware{
		Name: "KernelFS", Programs: []v1alpha1.HostProgram{{Name: "kctl", Version: "2.17.57"}, {Name: "mkfs.kfs"}},
	}))
	g.Expect(status.Problems).To(ContainElements(
		"can't find out the NIDs of the node: kctl list_nids ended with exit code 22: IOC_LIBCFS_GET_NI error 22: Invalid argument",
		"can't find out the version of mkfs.kfs: nobody expects /usr/sbin/mkfs.kfs --version",
	))
}

func TestMessagesOfProgramsStayWithinTheLimitsOfTheAPI(t *testing.T) {
	g := NewWithT(t)
	n := newKernelNode(t)
	n.prints["/usr/sbin/kctl --version"] = devices.Output{Stdout: []byte("lctl 2." + strings.Repeat("1", 100) + "\n")}
	n.prints["/usr/sbin/kctl list_nids"] = devices.Output{Stdout: []byte(strings.Repeat(strings.Repeat("f", 200)+"@tcp\n10.0.0.1@o2ib\n", 40))}
	found := n.collector.Collect(t.Context()).Software[0]
	g.Expect(found.Programs[0].Version).To(HaveLen(64))
	g.Expect(found.NIDs).To(HaveLen(32))
	for _, nid := range found.NIDs {
		g.Expect(len(nid)).To(BeNumerically("<=", 128))
	}
	g.Expect(len(found.MissingForServers)).To(BeNumerically("<=", 1024))
}

func TestTheSameSoftwareResultsInTheSameBytes(t *testing.T) {
	g := NewWithT(t)
	n := newKernelNode(t)
	n.file("sys/module/kfs/version", "2.15.5\n")
	n.prints["/usr/sbin/mkfs.kfs --version"] = devices.Output{Stdout: []byte("mkfs.lustre 2.16.1\n")}
	first, err := json.Marshal(n.collector.Collect(t.Context()))
	g.Expect(err).NotTo(HaveOccurred())
	for range 5 {
		again, err := json.Marshal(n.collector.Collect(t.Context()))
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(string(again)).To(Equal(string(first)))
	}
}

func TestAServerAsksForTheVersionThatItsNodeHas(t *testing.T) {
	g := NewWithT(t)
	n := newKernelNode(t)
	version, missing := n.collector.ForServers(t.Context(), kernelFS)
	g.Expect(missing).To(BeEmpty())
	g.Expect(version).To(Equal("2.17.57"))

	n.prints["/usr/sbin/mkfs.kfs --version"] = devices.Output{Stdout: []byte("mkfs.lustre 2.15.5\n")}
	version, missing = n.collector.ForServers(t.Context(), kernelFS)
	g.Expect(version).To(BeEmpty())
	g.Expect(missing).To(ContainSubstring("of several versions"))

	n = newKernelNode(t)
	n.file("proc/modules", "")
	n.remove("sys/module")
	_, missing = n.collector.ForServers(t.Context(), kernelFS)
	g.Expect(missing).To(ContainSubstring("has no modules kfs, kfsdisk and knet"))
}

func TestANodeWhereAProgramServesInTheKernelsPlaceNeedsNoModules(t *testing.T) {
	g := NewWithT(t)
	n := newKernelNode(t)
	n.file("proc/modules", "")
	n.remove("sys/module")
	inPlace := kernelFS
	inPlace.StandIn = "umount.fuse.kfs"
	_, missing := n.collector.ForServers(t.Context(), inPlace)
	g.Expect(missing).To(ContainSubstring("has no modules"), "the node has no such program")
	n.file("host/usr/sbin/umount.fuse.kfs", "")
	version, missing := n.collector.ForServers(t.Context(), inPlace)
	g.Expect(missing).To(BeEmpty())
	g.Expect(version).To(Equal("2.17.57"), "that of its programs")
	n.collector.Software = []spec.HostSoftware{inPlace}
	g.Expect(n.collector.Collect(t.Context()).Software[0].NIDs).To(Equal([]string{"192.168.77.1@tcp"}))
	n.remove("host/usr/sbin/mkfs.kfs")
	_, missing = n.collector.ForServers(t.Context(), inPlace)
	g.Expect(missing).To(ContainSubstring("it has no program mkfs.kfs"))
}

func TestTheMountsOfANodeAndTheirEvictionsAreFound(t *testing.T) {
	g, n := NewWithT(t), newKernelNode(t)
	first, second := time.Unix(1795345432, 0), time.Unix(1795345440, 0)
	var now []spec.HostClient
	s := kernelFS
	s.Clients = []string{"kctl", "states"}
	s.ReadClients = func(output string) []spec.HostClient {
		g.Expect(output).To(Equal("what kctl says\n"), "the program failed, and what it printed counts")
		return now
	}
	n.collector.Software, n.collector.Evicted = []spec.HostSoftware{s}, map[string]map[string]time.Time{}
	n.prints["/usr/sbin/kctl states"] = devices.Output{Stdout: []byte("what kctl says\n"), Code: 2}
	clients := func() []v1alpha1.HostClient { return n.collector.Collect(t.Context()).Software[0].Clients }
	g.Expect(clients()).To(BeEmpty())

	now = []spec.HostClient{{Name: "lake", Disconnected: []string{"lake-2 DISCONN", "lake-1 CONNECTING"}, Evicted: map[string]time.Time{"a": first}}}
	g.Expect(clients()).To(Equal([]v1alpha1.HostClient{{
		Name: "lake", Disconnected: []string{"lake-1 CONNECTING", "lake-2 DISCONN"}, Evictions: 1, LastEvicted: &metav1.Time{Time: first},
	}}))
	g.Expect(clients()[0].Evictions).To(BeEquivalentTo(1), "none is counted twice")
	now = []spec.HostClient{{Name: "lake", Evicted: map[string]time.Time{"b": second}}}
	g.Expect(clients()).To(Equal([]v1alpha1.HostClient{{Name: "lake", Evictions: 2, LastEvicted: &metav1.Time{Time: second}}}), "the kernel has forgotten the first one")

	n.prints["/usr/sbin/kctl states"] = devices.Output{}
	delete(n.prints, "/usr/sbin/kctl states")
	found := n.collector.Collect(t.Context())
	g.Expect(found.Software[0].Clients).To(BeEmpty())
	g.Expect(found.Problems).To(ContainElement(ContainSubstring("can't find out how the mounts of KernelFS are connected")))

	n.file("proc/modules", "xfs 2093056 1 - Live 0x0\n")
	n.remove("sys/module")
	n.asked = nil
	n.collector.Collect(t.Context())
	g.Expect(n.asked).NotTo(ContainElement("/usr/sbin/kctl states"), "a question must load no module")
}
