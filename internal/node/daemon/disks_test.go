//go:build disks

package daemon_test

import (
	"encoding/json"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	. "github.com/onsi/gomega"

	"parallelfs.dev/operator/internal/node/spec"
	"parallelfs.dev/operator/test/patience"
)

// mount mounts an image at the path of a target, with a marker on it.
func mount(t *testing.T, image string, of spec.Target) {
	t.Helper()
	g := NewWithT(t)
	marker, err := json.Marshal(spec.TargetMarker{Version: spec.TargetMarkerVersion, Owner: spec.Owner{Namespace: "storage", Name: "scratch", UID: "1"}, Target: of.Name, UUID: of.UUID})
	g.Expect(err).NotTo(HaveOccurred())
	// It appears as a whole, like the agent's mount.
	staging := t.TempDir()
	g.Expect(exec.Command("mount", "-o", "loop", image, staging).Run()).To(Succeed())
	g.Expect(os.WriteFile(filepath.Join(staging, spec.TargetMarkerFile), marker, 0o600)).To(Succeed())
	g.Expect(exec.Command("umount", staging).Run()).To(Succeed())
	g.Expect(exec.Command("mount", "-o", "loop", image, of.Path).Run()).To(Succeed())
	t.Cleanup(func() { g.Expect(exec.Command("umount", of.Path).Run()).To(Succeed()) })
}

func image(t *testing.T, uuid string) string {
	t.Helper()
	g, path := NewWithT(t), filepath.Join(t.TempDir(), "image")
	g.Expect(os.WriteFile(path, nil, 0o600)).To(Succeed())
	g.Expect(os.Truncate(path, 64<<20)).To(Succeed())
	g.Expect(exec.Command("mkfs.ext4", "-q", "-U", uuid, path).Run()).To(Succeed())
	return path
}

func TestADaemonWaitsForItsRealDiskAndNothingIsWrittenBelowIt(t *testing.T) {
	const uuid, otherUUID = "0a1b2c3d-0000-4000-8000-0000000000aa", "0a1b2c3d-0000-4000-8000-0000000000bb"
	g, c := NewWithT(t), &container{root: t.TempDir()}
	a := c.target(t, "a")
	c.tell(t, spec.Member{Targets: []spec.Target{a}}) // not provisioned yet: no disk has this UUID
	n := startNode(t, c.real(t))
	n.says(t, "is not mounted")
	a.UUID = uuid
	c.tell(t, spec.Member{Targets: []spec.Target{a}})

	t.Run("another disk that is mounted in its place is not used", func(t *testing.T) {
		mount(t, image(t, otherUUID), spec.Target{Name: "a", Path: a.Path, UUID: otherUUID})
		n.says(t, "another filesystem mounted on it: its UUID is "+otherUUID)
		NewWithT(t).Expect(filepath.Join(a.Path, "chunkserver")).NotTo(BeAnExistingFile())
	})
	g.Expect(os.ReadDir(a.Path)).To(BeEmpty(), "nothing was written into the mountpoint")

	mount(t, image(t, uuid), a)
	n.becomesTheDaemon(t)
	g.Expect(filepath.Join(a.Path, "chunkserver", "data")).To(BeADirectory())
	g.Expect(os.ReadFile(c.path("run", "mfshdd.cfg"))).To(BeEquivalentTo(a.Path + "/chunkserver/data\n"))
	g.Expect(n.Process.Kill()).To(Succeed())
	_ = n.Wait()
}

func TestATargetThatWasPreparedOnARealDisk(t *testing.T) {
	const uuid = "0a1b2c3d-0000-4000-8000-0000000000cc"
	c := &container{root: t.TempDir()}
	a := c.granted(t, "a", "101")
	a.UUID = uuid
	c.tell(t, node2(a))
	config := c.storage()
	config.User, config.NodeFile, config.Recover, config.Command = "root", c.path("nodes", spec.NodeFileName), nil, c.real(t).Command
	disk, identity := image(t, uuid), filepath.Join(a.Path, "storage", "data", "targetNumID")
	t.Run("is prepared once", func(t *testing.T) {
		mount(t, disk, a)
		n := startNode(t, config)
		n.becomesTheDaemon(t)
		NewWithT(t).Expect(os.ReadFile(identity)).To(BeEquivalentTo("101\n"))
		n.end(t)
	})
	t.Run("trap 1: a target directory that is not mounted is refused", func(t *testing.T) {
		n := startNode(t, config)
		n.says(t, "target a at "+a.Path+" is not mounted")
		NewWithT(t).Expect(os.ReadDir(a.Path)).To(BeEmpty(), "no second, empty target under the old id")
		n.end(t)
	})
	t.Run("trap 2: no marker of a container's own decides, and a second start prepares nothing again", func(t *testing.T) {
		g := NewWithT(t)
		mount(t, disk, a)
		before, err := os.Stat(identity)
		g.Expect(err).NotTo(HaveOccurred())
		n := startNode(t, config)
		n.becomesTheDaemon(t)
		n.says(t, "action=Use")
		after, err := os.Stat(identity)
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(os.SameFile(before, after)).To(BeTrue(), "it was not written again")
		n.end(t)
	})
}

// end kills the process, which keeps nothing on the disk open.
func (n *nodeRun) end(t *testing.T) {
	t.Helper()
	NewWithT(t).Expect(n.Process.Kill()).To(Succeed())
	_ = n.Wait()
}

func TestADaemonTakesThePlaceOfTheProcessWithItsPinningAndItsSignals(t *testing.T) {
	g, c := NewWithT(t), &container{root: t.TempDir()}
	config := c.real(t)
	config.OnTargets, config.Directories = nil, []spec.Directory{{Path: c.path("data"), Data: "data"}}
	// A child of nohup ignores SIGHUP, and so would its own children. A container's first process ignores nothing.
	hangup := make(chan os.Signal, 1)
	signal.Notify(hangup, syscall.SIGHUP)
	defer signal.Stop(hangup)
	n := startNode(t, config)
	n.says(t, "the agent of this node has not written the configuration of its servers yet")
	cpu := lastCPU(t)
	c.tell(t, spec.Member{Pinning: &spec.Pinning{CPUs: cpu, Why: "spec.storagePools"}})
	n.becomesTheDaemon(t)
	g.Expect(n.proc(t, "environ")).To(ContainSubstring("\x00PARALLELFS_DAEMON=storage/scratch/chunkserver/ssd\x00"))
	status := n.proc(t, "status")
	g.Expect(status).To(ContainSubstring("Cpus_allowed_list:\t" + cpu + "\n"))
	for _, signals := range []string{"SigBlk", "SigIgn", "SigCgt"} {
		_, line, _ := strings.Cut(status, signals+":\t")
		mask, err := strconv.ParseUint(line[:16], 16, 64)
		g.Expect(err).NotTo(HaveOccurred())
		// A child of make ignores the C library's own signals 32 and 33, which no program can use.
		g.Expect(mask&^(3<<31)).To(BeZero(), "%s: every signal has the effect that the daemon gives it", signals)
	}
	g.Expect(n.Process.Signal(syscall.SIGTERM)).To(Succeed())
	_ = n.Wait()
	state, ok := n.ProcessState.Sys().(syscall.WaitStatus)
	g.Expect(ok).To(BeTrue())
	g.Expect(state.Signal()).To(Equal(syscall.SIGTERM), "it is the daemon itself that the signal ends")
}

func (n *nodeRun) proc(t *testing.T, name string) string {
	t.Helper()
	content, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(n.Process.Pid), name))
	NewWithT(t).Expect(err).NotTo(HaveOccurred())
	return string(content)
}

// becomesTheDaemon waits until the process has become the program of real. The kernel shows the new program a moment before its
// environment, which is empty until then.
func (n *nodeRun) becomesTheDaemon(t *testing.T) {
	t.Helper()
	NewWithT(t).Eventually(func() (string, error) {
		path, err := os.Readlink(filepath.Join("/proc", strconv.Itoa(n.Process.Pid), "exe"))
		return filepath.Base(path), err
	}).WithTimeout(patience.Bound(time.Minute)).Should(Equal("sleep"), func() string { return n.reason.String() })
	NewWithT(t).Eventually(n.proc).WithArguments(t, "environ").WithTimeout(patience.Bound(time.Minute)).ShouldNot(BeEmpty())
}

// lastCPU returns the last CPU that this test may use.
func lastCPU(t *testing.T) string {
	t.Helper()
	content, err := os.ReadFile("/proc/self/status")
	NewWithT(t).Expect(err).NotTo(HaveOccurred())
	_, list, _ := strings.Cut(string(content), "Cpus_allowed_list:")
	list, _, _ = strings.Cut(list, "\n")
	return strings.TrimSpace(list[strings.LastIndexAny(list, ",-\t")+1:])
}
