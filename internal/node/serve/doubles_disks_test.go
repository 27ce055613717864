//go:build disks

package serve_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	"github.com/onsi/gomega/types"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"parallelfs.dev/operator/api/v1alpha1"
	"parallelfs.dev/operator/internal/backend"
	"parallelfs.dev/operator/internal/backend/lustre"
	"parallelfs.dev/operator/internal/backend/lustre/cli"
	"parallelfs.dev/operator/internal/node/devices"
	"parallelfs.dev/operator/internal/node/format/ldiskfs"
	"parallelfs.dev/operator/internal/node/provision"
	"parallelfs.dev/operator/internal/node/spec"
	"parallelfs.dev/operator/internal/node/store"
	"parallelfs.dev/operator/internal/plan"
	"parallelfs.dev/operator/test/patience"
)

// These tests run the node binary on a node with Lustre targets, with the doubles as the node's own programs. The pods are processes in
// their own mount namespaces, and the sandbox is the node.

const (
	mdt0UUID = "4a9ee1e2-bd33-4b75-be9a-1a68b6ea9309"
	ost0UUID = "0d6f4f5e-7f11-4f0e-9f5b-7a3a5f1c2b3d"
	mgtUUID  = "7c0b7f53-3a0b-4c7e-9a52-1d8e6a8f2b11"
	// anotherUUID is the UUID of an MGT that replaces the first.
	anotherUUID = "c5a0e2d4-6a4e-4a0b-8f0d-2b7f0c9e5d21"
	nodeName    = "n1"
)

// long is far longer than any operation here takes.
var long = patience.Bound(3 * time.Minute)

// lnet is the network of the filesystem.
var lnet = spec.KernelNetwork{
	Name: "tcp", Interfaces: []string{"$(NODE_INTERFACE)"}, Start: [][]string{{"modprobe", "lnet"}, {"lnetctl", "lnet", "configure"}},
	List: []string{"lctl", "list_nids"}, Add: []string{"lnetctl", "net", "add", "--net", "tcp", "--if", "$(INTERFACES)"},
}

// machine is the node with its disks and its node file.
type machine struct {
	*testing.T
	Gomega
	directory string
	file      spec.NodeFile
}

func newMachine(t *testing.T) *machine {
	t.Helper()
	owner := spec.Owner{Namespace: "storage", Name: "scratch", UID: "11111111-2222-3333-4444-555555555555"}
	m := &machine{t, NewWithT(t), t.TempDir(), spec.NodeFile{Version: spec.NodeFileVersion, FileSystem: owner, Node: nodeName}}
	m.must("mkdir", "-p", "/mnt/targets", "/mnt/clients")
	t.Cleanup(m.powerCut)
	return m
}

func (m *machine) must(argv ...string) string {
	m.Helper()
	output, err := exec.Command(argv[0], argv[1:]...).CombinedOutput()
	m.Expect(err).NotTo(HaveOccurred(), "%v: %s", argv, output)
	return string(output)
}

// answer returns the output of a program, whatever its exit code is.
func (m *machine) answer(argv ...string) string {
	m.Helper()
	output, err := exec.Command(argv[0], argv[1:]...).Output()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		m.Fatal(err)
	}
	return string(output)
}

// powerCut resets the kernel's state of the node: afterwards nothing is mounted, and no network is up.
func (m *machine) powerCut() {
	if genuine {
		for path := range strings.FieldsSeq(mounted()) {
			m.answer("umount", "-f", path)
		}
		m.Eventually(func() string { return m.answer("sh", "-c", "lustre_rmmod; lsmod | grep '^libcfs'") }).WithTimeout(long).Should(BeEmpty())
		return
	}
	for path := range strings.FieldsSeq(mounted()) {
		_ = syscall.Unmount(path, syscall.MNT_DETACH)
	}
	process, err := os.ReadFile("/run/lustre-double/kernel.lock")
	id, scanned := strconv.Atoi(strings.TrimSpace(string(process)))
	if err != nil || scanned != nil || id < 2 {
		return
	}
	_ = syscall.Kill(id, syscall.SIGKILL)
	m.Eventually(func() bool {
		var status syscall.WaitStatus
		_, _ = syscall.Wait4(id, &status, syscall.WNOHANG, nil)
		return syscall.Kill(id, 0) != nil
	}).WithTimeout(long).Should(BeTrue())
	m.Expect(os.RemoveAll("/run/lustre-double/kernel.lock")).To(Succeed())
}

// target makes a Lustre target on a disk of its own, as the agent does, and adds it to a member's configuration.
func (m *machine) target(member, name, uuid string, given v1alpha1.LustreTarget) *v1alpha1.StorageTarget {
	m.Helper()
	id, device := m.disk(name)
	t := &v1alpha1.StorageTarget{
		ObjectMeta: metav1.ObjectMeta{Namespace: "storage", Name: name},
		Spec: v1alpha1.StorageTargetSpec{
			FileSystem: v1alpha1.TargetOwner{Name: "scratch", UID: m.file.FileSystem.UID}, Cluster: "c1", Role: v1alpha1.RoleStorage,
			Format: v1alpha1.FormatSpec{FSType: v1alpha1.Ldiskfs}, Lustre: &given,
		},
	}
	wanted := plan.NewOf(t, plan.Look{}, uuid)
	wanted.Device = device
	m.Expect(ldiskfs.Format{}.Problems(wanted)).To(BeEmpty())
	m.must(ldiskfs.Format{}.Make(wanted)...)
	content, err := json.Marshal(given)
	m.Expect(err).NotTo(HaveOccurred())
	m.file.Members = append(m.file.Members, spec.Member{Name: member, Targets: []spec.Target{{
		Name: name, Path: "/mnt/targets/" + name, UUID: uuid,
		Served: &spec.ServedTarget{DeviceID: id, FSType: "ldiskfs", Mark: wanted.Mark, Given: content},
	}}})
	m.must("mkdir", "-p", "/mnt/targets/"+name)
	m.tell()
	t.Spec.Device = v1alpha1.DeviceIdentity{ID: v1alpha1.DeviceID(id), SizeBytes: m.size(device)}
	t.Status.Provisioned = &v1alpha1.TargetProvisioned{PlanHash: "sha256:1", UUID: uuid, Label: wanted.Label, Finished: &metav1.Time{Time: time.Unix(1, 0)}}
	return t
}

// disk returns the stable name and the device of a blank disk: a loop device, or a disk of the real machine. A failed mount removes the
// loop device that it was given (mount.lustre).
func (m *machine) disk(name string) (id, device string) {
	m.Helper()
	if genuine {
		id = fmt.Sprintf("virtio-disk%d", len(m.file.Members)+1)
		device, err := filepath.EvalSymlinks("/dev/disk/by-id/" + id)
		m.Expect(err).NotTo(HaveOccurred())
		m.must("wipefs", "--all", "--force", "--quiet", device)
		return id, device
	}
	image := filepath.Join(m.directory, name)
	m.must("truncate", "--size=256M", image)
	device = strings.TrimSpace(m.must("losetup", "--find", "--show", image))
	m.Cleanup(func() { m.must("losetup", "--detach", device) })
	id = "lab-" + name
	link := "/dev/disk/by-id/" + id
	m.Expect(os.Symlink("../../"+filepath.Base(device), link)).To(Succeed())
	m.Cleanup(func() { m.Expect(os.Remove(link)).To(Succeed()) })
	return id, device
}

func (m *machine) size(device string) int64 {
	m.Helper()
	bytes, err := strconv.ParseInt(strings.TrimSpace(m.must("blockdev", "--getsize64", device)), 10, 64)
	m.Expect(err).NotTo(HaveOccurred())
	return bytes
}

// agent returns the provisioner for the node's disks.
func (m *machine) agent() *provision.Provisioner {
	p := provision.New(devices.ThisHost(), func() string { return ost0UUID })
	p.Path = func(_, _, target string) string { return "/mnt/targets/" + target }
	p.OnNode = provision.Run
	return p
}

// pass makes one pass of the agent over a target.
func (m *machine) pass(t *v1alpha1.StorageTarget) {
	m.Helper()
	m.Expect(m.agent().Pass(m.Context(), t, func(_ context.Context, t *v1alpha1.StorageTarget, wanted v1alpha1.StorageTargetStatus) error {
		t.Status = wanted
		return nil
	})).To(Succeed())
}

// ready returns the condition Ready of a target.
func ready(t *v1alpha1.StorageTarget) metav1.Condition { return t.Status.Conditions[0] }

// tell writes the node file.
func (m *machine) tell() {
	m.Helper()
	content, err := json.Marshal(m.file)
	m.Expect(err).NotTo(HaveOccurred())
	path := filepath.Join(m.directory, "node.json")
	m.Expect(os.WriteFile(path+".tmp", content, 0o600)).To(Succeed())
	m.Expect(os.Rename(path+".tmp", path)).To(Succeed())
}

// pod is a container that runs a verb of the node binary.
type pod struct {
	command *exec.Cmd
	mutex   sync.Mutex
	said    bytes.Buffer
	ended   chan error
}

func (p *pod) Write(b []byte) (int, error) {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	return p.said.Write(b)
}

// Said returns its output so far.
func (p *pod) Said() string {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	return p.said.String()
}

// start starts a pod. Mounts of the node propagate to it.
func (m *machine) start(verb string, config any) *pod {
	m.Helper()
	content, err := json.Marshal(config)
	m.Expect(err).NotTo(HaveOccurred())
	path := filepath.Join(m.TempDir(), "spec.json")
	m.Expect(os.WriteFile(path, content, 0o600)).To(Succeed())
	p := &pod{ended: make(chan error, 1)}
	p.command = exec.Command("unshare", "--mount", "--propagation", "unchanged", filepath.Join(programs, "node"), verb, "--spec", path)
	p.command.Env = []string{"NODE_NAME=" + nodeName, "NODE_IP=192.168.77.1", "PATH=" + os.Getenv("PATH")}
	p.command.Stdout, p.command.Stderr = p, p
	m.Expect(p.command.Start()).To(Succeed())
	go func() { p.ended <- p.command.Wait() }()
	m.Cleanup(func() { _ = p.command.Process.Kill() })
	return p
}

func (m *machine) serves(daemon string) spec.Serve {
	return spec.Serve{
		Owner: m.file.FileSystem, Backend: "Lustre", Version: "2.17.0", Daemon: daemon, NodeFile: filepath.Join(m.directory, "node.json"),
		Network: lnet, GraceSeconds: 60,
	}
}

// mounted returns the paths on the node at which Lustre is mounted.
func mounted() string {
	output, _ := exec.Command("findmnt", "-rno", "TARGET", "-t", "lustre,lustre_tgt,fuse.lustre,fuse.lustre_tgt").Output() // it fails when there is none
	return strings.Join(slices.Sorted(strings.FieldsSeq(string(output))), " ")
}

func (m *machine) eventuallyMounted(paths string, pods ...*pod) {
	m.Helper()
	m.Eventually(mounted).WithTimeout(long).WithPolling(100*time.Millisecond).Should(Equal(paths), func() string {
		var all []string
		for _, p := range pods {
			all = append(all, p.Said())
		}
		return strings.Join(all, "\n")
	})
}

// filesystem makes one with two targets on one node, and returns the second target.
func (m *machine) filesystem() *v1alpha1.StorageTarget {
	m.Helper()
	m.target("mdt-0", "mdt0", mdt0UUID, v1alpha1.LustreTarget{Kind: v1alpha1.LustreMDT, FSName: "pfs", Index: new(int32(0)), WithMGT: true})
	return m.target("ost-ssd", "ost0", ost0UUID, v1alpha1.LustreTarget{Kind: v1alpha1.LustreOST, FSName: "pfs", Index: new(int32(0)), ManagementNIDs: []string{"192.168.77.1@tcp"}})
}

func TestPodsKeepTheTargetsOfANodeMountedAndUnmountThemInPeace(t *testing.T) {
	m := newMachine(t)
	m.filesystem()
	ost := m.start("serve", m.serves("ost/ssd"))
	m.Eventually(ost.Said).WithTimeout(long).Should(ContainSubstring("can't mount target ost0"), "there is no MGS yet, and it goes on trying")
	mdt := m.start("serve", m.serves("mdt/0"))
	m.eventuallyMounted("/mnt/targets/mdt0 /mnt/targets/ost0", mdt, ost)
	m.Expect(m.must("lctl", "list_nids")).To(Equal("192.168.77.1@tcp\n"), "its network was added, on the interface of the node's address")
	m.Expect(m.must("lctl", "dl")).To(And(ContainSubstring("UP mdt pfs-MDT0000"), ContainSubstring("UP obdfilter pfs-OST0000")))
	m.Expect(<-m.start("check-served", m.serves("ost/ssd")).ended).To(Succeed())

	// A killed pod unmounts nothing, and the next one finds the mount.
	m.Expect(ost.command.Process.Kill()).To(Succeed())
	m.Expect(<-ost.ended).NotTo(Succeed())
	m.Expect(mounted()).To(Equal("/mnt/targets/mdt0 /mnt/targets/ost0"))
	ost = m.start("serve", m.serves("ost/ssd"))
	m.Eventually(ost.Said).WithTimeout(long).Should(ContainSubstring("a target is served"))

	// A target that disappears from the node file is unmounted, and one that reappears is mounted.
	targets := m.file.Members[1].Targets
	m.file.Members[1].Targets = nil
	m.tell()
	m.eventuallyMounted("/mnt/targets/mdt0", ost)
	m.file.Members[1].Targets = targets
	m.tell()
	m.eventuallyMounted("/mnt/targets/mdt0 /mnt/targets/ost0", ost)

	for _, p := range []*pod{ost, mdt} {
		m.Expect(p.command.Process.Signal(syscall.SIGTERM)).To(Succeed())
		m.Expect(<-p.ended).To(Succeed(), p.Said())
	}
	m.Expect(mounted()).To(BeEmpty())
	m.Expect(<-m.start("check-served", m.serves("ost/ssd")).ended).NotTo(Succeed())
}

func TestADiskThatDiffersFromItsAssignmentIsNotMounted(t *testing.T) {
	m := newMachine(t)
	m.filesystem()
	m.must("tunefs.lustre", "--comment=mine", "/dev/disk/by-id/"+m.file.Members[0].Targets[0].Served.DeviceID)
	mdt := m.start("serve", m.serves("mdt/0"))
	m.Eventually(mdt.Said).WithTimeout(long).Should(ContainSubstring(`its mark is \"mine\"`))
	m.Consistently(mounted, time.Second).Should(BeEmpty())
}

func TestANodeOfAnotherVersionServesNothing(t *testing.T) {
	m := newMachine(t)
	m.filesystem()
	config := m.serves("mdt/0")
	config.Version = "2.15.5"
	mdt := m.start("serve", config)
	m.Eventually(mdt.Said).WithTimeout(long).Should(ContainSubstring("this node has version 2.17.57"))
	m.Expect(mounted()).To(BeEmpty())
}

func TestAClientIsMountedByTheNodesOwnProgramAndEndsWithItsPod(t *testing.T) {
	m := newMachine(t)
	m.filesystem()
	mdt, ost := m.start("serve", m.serves("mdt/0")), m.start("serve", m.serves("ost/ssd"))
	m.eventuallyMounted("/mnt/targets/mdt0 /mnt/targets/ost0", mdt, ost)
	mount := spec.Mount{
		Path: "/mnt/clients/scratch", FSType: "lustre", Source: "192.168.77.1@tcp:/pfs", Kernel: true, Host: true, Network: &lnet,
		Command: []string{"mount", "-t", "lustre", "192.168.77.1@tcp:/pfs", "/mnt/clients/scratch"},
	}
	client := m.start("mount", mount)
	m.Eventually(client.Said).WithTimeout(long).Should(ContainSubstring("mounted, and the filesystem answers"))
	m.Expect(mounted()).To(ContainSubstring("/mnt/clients/scratch"), "the node has the mount, and not only the pod")
	m.Expect(<-m.start("check-mount", mount).ended).To(Succeed())

	// Commands of the filesystem's own tools see the node's mount.
	commands := m.start("configure", spec.Configure{Host: true, Commands: []spec.Command{{Argv: []string{"lfs", "getdirstripe", "-D", "/mnt/clients/scratch"}}}})
	m.Expect(<-commands.ended).To(Succeed(), commands.Said())
	m.Expect(commands.Said()).To(ContainSubstring("lmv_max_inherit_rr: 3"))

	// The backend's pattern for evictions matches the client's report of one.
	m.must("lctl", "set_param", "mdt.pfs-MDT0000.evict_client="+strings.TrimSpace(m.must("lctl", "get_param", "-n", "llite.*.uuid")))
	states := cli.Commands{FSName: "pfs"}.ClientStates()
	m.Eventually(func() string { return m.answer(states...) }).WithTimeout(long).Should(MatchRegexp(cli.Eviction))
	m.Eventually(func() []cli.Mounted { return cli.ParseClients(m.answer(cli.AllClientStates()...)) }).WithTimeout(long).Should(ConsistOf(And(
		HaveField("FSName", "pfs"), HaveField("Evicted", HaveLen(1)), HaveField("Disconnected", BeEmpty()),
	)), "the agent of the node reads the same")

	m.Expect(client.command.Process.Signal(syscall.SIGTERM)).To(Succeed())
	m.Expect(<-client.ended).To(Succeed(), client.Said())
	m.Expect(mounted()).To(Equal("/mnt/targets/mdt0 /mnt/targets/ost0"))
	for _, p := range []*pod{ost, mdt} {
		m.Expect(p.command.Process.Signal(syscall.SIGTERM)).To(Succeed())
		m.Expect(<-p.ended).To(Succeed(), p.Said())
	}
}

func TestTheAgentProvesAMountedTargetAndReleasesItWhenItIsDeleted(t *testing.T) {
	m := newMachine(t)
	target := m.filesystem()
	m.pass(target)
	m.Expect(ready(target).Reason).To(Equal(v1alpha1.ReasonProven), ready(target).Message)
	mdt, ost := m.start("serve", m.serves("mdt/0")), m.start("serve", m.serves("ost/ssd"))
	m.eventuallyMounted("/mnt/targets/mdt0 /mnt/targets/ost0", mdt, ost)
	m.pass(target)
	m.Expect(ready(target).Reason).To(Equal(v1alpha1.ReasonProven), ready(target).Message)
	m.Expect(ready(target).Message).To(ContainSubstring("is mounted by its server"))
	m.Expect(target.Status.MountPath).To(Equal("/mnt/targets/ost0"))

	// Its server was killed.
	m.Expect(ost.command.Process.Kill()).To(Succeed())
	m.Expect(<-ost.ended).NotTo(Succeed())
	target.DeletionTimestamp = &metav1.Time{Time: time.Unix(2, 0)}
	m.pass(target)
	m.Expect(mounted()).To(Equal("/mnt/targets/mdt0"))
	m.Expect(meta.IsStatusConditionTrue(target.Status.Conditions, v1alpha1.ConditionReleased)).To(BeTrue(), ready(target).Message)

	target.Spec.DestroyFor = m.file.FileSystem.UID
	m.pass(target)
	m.Expect(meta.IsStatusConditionTrue(target.Status.Conditions, v1alpha1.ConditionDestroyed)).To(BeTrue(), ready(target).Message)
	m.Expect(mdt.command.Process.Signal(syscall.SIGTERM)).To(Succeed())
	m.Expect(<-mdt.ended).To(Succeed(), mdt.Said())
}

func TestAProbeOfANodeReportsWhatItsKernelServes(t *testing.T) {
	m := newMachine(t)
	m.filesystem()
	mdt, ost := m.start("serve", m.serves("mdt/0")), m.start("serve", m.serves("ost/ssd"))
	m.eventuallyMounted("/mnt/targets/mdt0 /mnt/targets/ost0", mdt, ost)
	key := filepath.Join(m.directory, "key")
	m.Expect(os.WriteFile(key, []byte("0123456789abcdefghijklmnop"), 0o600)).To(Succeed())
	probe := m.start("probe", spec.Probe{
		Backend: "Lustre", Version: "2.17.57", Address: "192.168.77.1@tcp:/pfs", Listen: "$(NODE_IP):9732", KeyFile: key, FileSystem: m.file.FileSystem,
		IntervalSeconds: 1, Host: true,
	})
	metrics := func() string {
		response, err := http.Get("http://192.168.77.1:9732/metrics")
		if err != nil {
			return err.Error()
		}
		defer response.Body.Close()
		text, err := io.ReadAll(response.Body)
		if err != nil {
			return err.Error()
		}
		return string(text)
	}
	online := func(role, id, value string) types.GomegaMatcher {
		return MatchRegexp(`(?m)^parallelfs_target_online\{[^}]*id="` + id + `"[^}]*role="` + role + `"[^}]*\} ` + value + `$`)
	}
	m.Eventually(metrics).WithTimeout(long).Should(And(online("Metadata", "1", "1"), online("Storage", "1", "1")), probe.Said)
	m.Expect(metrics()).To(MatchRegexp(`(?m)^parallelfs_target_capacity_bytes\{[^}]*role="Storage"[^}]*\} [1-9]`))

	m.Expect(ost.command.Process.Signal(syscall.SIGTERM)).To(Succeed())
	m.Expect(<-ost.ended).To(Succeed(), ost.Said())
	m.Eventually(metrics).WithTimeout(long).Should(And(online("Metadata", "1", "1"), Not(online("Storage", "1", "1"))), probe.Said)
	m.Expect(metrics()).To(MatchRegexp(`(?m)^parallelfs_up\{[^}]*\} 1$`), "a node without OSTs answers, too")
	m.Expect(mdt.command.Process.Signal(syscall.SIGTERM)).To(Succeed())
	m.Expect(<-mdt.ended).To(Succeed(), mdt.Said())
}

func TestTheLogsOfAnMGSAreHandedOutWhileItServesAndAreThoseOfAnotherDiskLater(t *testing.T) {
	m := newMachine(t)
	nids := []string{"192.168.77.1@tcp"}
	m.target("mgs", "mgt", mgtUUID, v1alpha1.LustreTarget{Kind: v1alpha1.LustreMGT})
	m.target("mdt-0", "mdt0", mdt0UUID, v1alpha1.LustreTarget{Kind: v1alpha1.LustreMDT, FSName: "pfs", Index: new(int32(0)), ManagementNIDs: nids})
	m.target("ost-ssd", "ost0", ost0UUID, v1alpha1.LustreTarget{Kind: v1alpha1.LustreOST, FSName: "pfs", Index: new(int32(0)), ManagementNIDs: nids})
	mgs, mdt, ost := m.start("serve", m.serves("mgs")), m.start("serve", m.serves("mdt/0")), m.start("serve", m.serves("ost/ssd"))
	const all = "/mnt/targets/mdt0 /mnt/targets/mgt /mnt/targets/ost0"
	m.eventuallyMounted(all, mgs, mdt, ost)
	m.must("lctl", "set_param", "-P", "osc.*.max_pages_per_rpc=256")
	m.must("lctl", "conf_param", "pfs-OST0000.osc.max_dirty_mb=16")

	secret := "correct-horse"
	for _, name := range []string{"key", "secret"} {
		m.Expect(os.WriteFile(filepath.Join(m.directory, name), []byte(secret), 0o600)).To(Succeed())
	}
	probe := m.start("probe", spec.Probe{
		Backend: "Lustre", Version: "2.17.57", Address: "192.168.77.1@tcp:/pfs", Listen: "$(NODE_IP):9732", KeyFile: filepath.Join(m.directory, "key"),
		FileSystem: m.file.FileSystem, IntervalSeconds: 1, Host: true, Store: &spec.Store{SecretFile: filepath.Join(m.directory, "secret")},
	})
	var packed []byte
	m.Eventually(func() (err error) {
		packed, err = store.Fetch(m.Context(), http.DefaultClient, "192.168.77.1:9732", []byte(secret))
		return err
	}).WithTimeout(long).Should(Succeed(), probe.Said)
	files, said, err := store.Unpack(bytes.NewReader(packed))
	m.Expect(err).NotTo(HaveOccurred())
	m.Expect(lustre.New().ReadStore("2.17.57", backend.StoreContent{Files: files}, said)).To(BeZero())
	m.Expect(files).To(And(HaveKey("CONFIGS/pfs-client"), HaveKey("CONFIGS/pfs-MDT0000"), HaveKey("CONFIGS/params"), Not(HaveKey("CONFIGS/mountdata"))))
	m.Expect(m.answer("sh", "-c", "ls -d /run/parallelfs-store-*")).To(BeEmpty(), "nothing is left on the node")

	// The disk of the MGT is lost. Another one gets the configuration logs as described in docs/backups.md, and becomes the MGT.
	before := m.must("lctl", "--device", "MGS", "llog_print", "pfs-client")
	m.Expect(before).To(ContainSubstring("osc.max_dirty_mb=16"))
	m.Expect(mgs.command.Process.Signal(syscall.SIGTERM)).To(Succeed())
	m.Expect(<-mgs.ended).To(Succeed(), mgs.Said())
	m.file.Members[0].Targets = nil
	another := m.target("mgs", "mgt2", anotherUUID, v1alpha1.LustreTarget{Kind: v1alpha1.LustreMGT})
	m.file.Members[0], m.file.Members = m.file.Members[3], m.file.Members[:3]
	m.tell()
	device := m.must("readlink", "-f", "/dev/disk/by-id/"+string(another.Spec.Device.ID))
	for name, content := range files {
		if name, is := strings.CutPrefix(name, "CONFIGS/"); is && name != "double" { // except the double's own file
			m.Expect(os.WriteFile(filepath.Join(m.directory, name), content, 0o600)).To(Succeed())
			requests := filepath.Join(m.directory, "requests")
			m.Expect(os.WriteFile(requests, []byte("cd CONFIGS\nwrite "+filepath.Join(m.directory, name)+" "+name+"\n"), 0o600)).To(Succeed())
			m.must("debugfs", "-w", "-f", requests, strings.TrimSpace(device))
		}
	}
	mgs = m.start("serve", m.serves("mgs"))
	m.eventuallyMounted("/mnt/targets/mdt0 /mnt/targets/mgt2 /mnt/targets/ost0", mgs)
	m.Expect(m.must("lctl", "--device", "MGS", "llog_print", "pfs-client")).To(Equal(before))
	m.Expect(m.must("lctl", "--device", "MGS", "llog_print", "params")).To(ContainSubstring("max_pages_per_rpc"))
	m.must("lctl", "pool_new", "pfs.fast")
	for _, p := range []*pod{mdt, ost, mgs} {
		m.Expect(p.command.Process.Signal(syscall.SIGTERM)).To(Succeed())
		m.Expect(<-p.ended).To(Succeed(), p.Said())
	}
}

func TestAJobMakesPoolsAndLayoutsInAMountOfItsOwnAndCanBeRepeated(t *testing.T) {
	m := newMachine(t)
	m.filesystem()
	mdt, ost := m.start("serve", m.serves("mdt/0")), m.start("serve", m.serves("ost/ssd"))
	m.eventuallyMounted("/mnt/targets/mdt0 /mnt/targets/ost0", mdt, ost)
	const admin = "/mnt/admin/mnt"
	m.must("mkdir", "-p", "/mnt/admin")
	var commands []spec.Command
	for _, argv := range lustre.PoolCommands("pfs", map[string][]int32{"ssd": {0}}, nil) {
		commands = append(commands, spec.Command{Argv: argv, MayFail: true})
	}
	for _, argv := range [][]string{{"mkdir", "-p", "-m", "0755", admin + "/ssd"}, lustre.LayoutCommand(admin+"/ssd", "ssd", nil)} {
		commands = append(commands, spec.Command{Argv: argv})
	}
	config := spec.Configure{Commands: commands, Host: true, Mount: &spec.Mount{
		Path: admin, FSType: "lustre", Source: "192.168.77.1@tcp:/pfs", Kernel: true, Host: true, Network: &lnet,
		Command: []string{"mount", "-t", "lustre", "192.168.77.1@tcp:/pfs", admin},
	}}
	for range 2 {
		job := m.start("configure", config)
		m.Expect(<-job.ended).To(Succeed(), job.Said())
		m.Expect(mounted()).To(Equal("/mnt/targets/mdt0 /mnt/targets/ost0"), "its mount is gone")
	}
	m.Eventually(func() string { return m.must("lctl", "pool_list", "pfs.ssd") }).WithTimeout(long).Should(ContainSubstring("pfs-OST0000"))
	for _, p := range []*pod{ost, mdt} {
		m.Expect(p.command.Process.Signal(syscall.SIGTERM)).To(Succeed())
		m.Expect(<-p.ended).To(Succeed(), p.Said())
	}
}
