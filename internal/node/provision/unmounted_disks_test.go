//go:build disks

package provision_test

import (
	"encoding/binary"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	"golang.org/x/sys/unix"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"parallelfs.dev/operator/api/v1alpha1"
	"parallelfs.dev/operator/internal/node/provision/provisiontest"
)

// The multi-mount protection is the kernel's own, on an ext4; the doubles of Lustre's kernel know nothing of it.
const sharedUUID = "6f7f1c1e-3b6a-4a4e-8a37-1f2e5c9d0b44"

// pair is a disk that two nodes reach, with a filesystem that says who has it mounted, and its target.
type pair struct {
	*provisiontest.Lab
	disk   *provisiontest.Disk
	target *v1alpha1.StorageTarget
}

func newPair(t *testing.T) *pair {
	t.Helper()
	l := provisiontest.New(t)
	p := &pair{Lab: l, disk: l.Disk("ost", 64*provisiontest.Mebi)}
	p.Must("mkfs.ext4", "-q", "-O", "mmp", "-E", "mmp_update_interval=1", "-U", sharedUUID, p.disk.Loop)
	p.target = l.Target(p.disk, func(t *v1alpha1.StorageTarget) { t.Spec.Format.FSType = v1alpha1.Ldiskfs })
	p.target.Status.Provisioned = &v1alpha1.TargetProvisioned{UUID: sharedUUID, Finished: &metav1.Time{Time: time.Unix(1, 0)}}
	return p
}

// stillMounted returns why the target is not proven to be unmounted; empty if it is.
func (p *pair) stillMounted() string {
	p.T.Helper()
	held, why, err := p.Agent(nil).ProveUnmounted(p.T.Context(), p.target)
	p.Expect(err).NotTo(HaveOccurred())
	if held == nil {
		p.Expect(why).NotTo(BeEmpty())
		return why
	}
	p.Expect(held.Close()).To(Succeed())
	p.Expect(why).To(BeEmpty())
	return ""
}

// takesUp is why the target is not taken up, empty when it is.
func (p *pair) takesUp() string {
	p.T.Helper()
	why, err := p.Agent(nil).TakeUp(p.T.Context(), p.target)
	p.Expect(err).NotTo(HaveOccurred())
	return why
}

// mounted mounts a device, and returns what unmounts it.
func (p *pair) mounted(device string) (at string, unmount func()) {
	p.T.Helper()
	at = p.T.TempDir()
	p.Must("mount", device, at)
	there := true
	unmount = func() {
		if there {
			there = false
			p.Must("umount", at)
		}
	}
	p.T.Cleanup(unmount)
	return at, unmount
}

// powerCut leaves the disk as a machine does that loses its power while it has it mounted.
func (p *pair) powerCut() {
	p.T.Helper()
	at, unmount := p.mounted(p.disk.Loop)
	p.Must("sync", "-f", at)
	cut := p.disk.File + ".cut"
	p.Must("cp", "--sparse=always", p.disk.File, cut)
	unmount()
	p.Must("dd", "if="+cut, "of="+p.disk.Loop, "bs=1M", "conv=fsync", "status=none")
}

func TestAnUnmountedTargetIsReleasedAndNotMountedMeanwhile(t *testing.T) {
	p := newPair(t)
	p.Expect(p.stillMounted()).To(BeEmpty(), "it was never mounted")
	_, unmount := p.mounted(p.disk.Loop)
	p.Expect(p.stillMounted()).NotTo(BeEmpty())
	unmount()
	agent := p.Agent(nil)
	held, why, err := agent.ProveUnmounted(t.Context(), p.target)
	p.Expect(err).NotTo(HaveOccurred())
	p.Expect(why).To(BeEmpty())
	at := t.TempDir()
	p.Expect(exec.Command("mount", p.disk.Loop, at).Run()).NotTo(Succeed(), "the device is open exclusively")
	device, err := os.Open(p.disk.Loop)
	p.Expect(err).NotTo(HaveOccurred())
	p.Expect(unix.Flock(int(device.Fd()), unix.LOCK_EX|unix.LOCK_NB)).To(MatchError(unix.EWOULDBLOCK), "no other agent writes to the disk")
	p.Expect(device.Close()).To(Succeed())
	p.Expect(held.Close()).To(Succeed())
	p.Expect(p.stillMounted()).To(BeEmpty())
	_, unmount = p.mounted(p.disk.Loop)
	unmount()
}

func TestATargetIsNotReleasedWhile(t *testing.T) {
	for name, c := range map[string]struct {
		use  func(p *pair)
		says string
	}{
		"it is mounted in the mounts of another process": {func(p *pair) {
			c := exec.Command("unshare", "--mount", "--propagation", "private", "sh", "-ec", `mount "$0" "$1"; echo mounted; read -r end`, p.disk.Loop, p.T.TempDir())
			in, err := c.StdinPipe()
			p.Expect(err).NotTo(HaveOccurred())
			out, err := c.StdoutPipe()
			p.Expect(err).NotTo(HaveOccurred())
			p.Expect(c.Start()).To(Succeed())
			p.T.Cleanup(func() { p.Expect(errors.Join(in.Close(), ended(c))).To(Succeed()) })
			_, err = out.Read(make([]byte, len("mounted\n")))
			p.Expect(err).NotTo(HaveOccurred())
		}, "is mounted at"},
		"it is mounted where no process sees it": {func(p *pair) {
			at, _ := p.mounted(p.disk.Loop)
			file, err := os.Create(filepath.Join(at, "open"))
			p.Expect(err).NotTo(HaveOccurred())
			p.Expect(unix.Unmount(at, unix.MNT_DETACH)).To(Succeed())
			p.Must("mount", "-t", "tmpfs", "gone", at) // which is unmounted at the end
			p.T.Cleanup(func() { _ = file.Close() })
		}, "can't be opened exclusively"},
		"a program has it for itself": {func(p *pair) {
			file, err := os.OpenFile(p.disk.Loop, os.O_RDONLY|unix.O_EXCL, 0)
			p.Expect(err).NotTo(HaveOccurred())
			p.T.Cleanup(func() { _ = file.Close() })
		}, "can't be opened exclusively"},
		"the other machine has it mounted": {func(p *pair) {
			there := p.Must("losetup", "--find", "--show", p.disk.File)
			p.T.Cleanup(func() { p.Must("losetup", "--detach", there) })
			p.mounted(there)
		}, "has it mounted, as"},
		"its machine has lost its power with it": {func(p *pair) {
			p.powerCut()
		}, "or went down with it"},
		"only its journal shows that it was not unmounted": {func(p *pair) {
			p.powerCut()
			disk, err := os.ReadFile(p.disk.File)
			p.Expect(err).NotTo(HaveOccurred())
			number := binary.LittleEndian
			block := int64(number.Uint64(disk[1024+360:])) << (10 + number.Uint32(disk[1024+24:]))
			p.disk.WriteAt(block+4, number.AppendUint32(nil, 0xff4d4d50)) // no node has it mounted
		}, "its journal needs recovery"},
		"its disk holds another filesystem": {func(p *pair) {
			p.Must("tune2fs", "-U", "0a1b2c3d-0000-4000-8000-0000000000aa", p.disk.Loop)
		}, "does not hold the one filesystem of the target"},
		"its disk is another one": {func(p *pair) { p.target.Spec.Device.SizeBytes++ }, "shrunk disk"},
		"its disk is not there":   {func(p *pair) { p.disk.Detach() }, "is not there"},
		"its filesystem does not say who has it mounted": {func(p *pair) {
			p.Must("tune2fs", "-O", "^mmp", p.disk.Loop)
		}, "has no multi-mount protection"},
		"it is no target yet": {func(p *pair) { p.target.Status.Provisioned.Finished = nil }, "no target yet"},
	} {
		t.Run(name, func(t *testing.T) {
			p := newPair(t)
			c.use(p)
			p.Expect(p.stillMounted()).To(ContainSubstring(c.says))
		})
	}
}

func TestATargetOfAMachineThatIsOffIsTakenUpAlthoughItsDiskDoesNotShowThatItWasUnmounted(t *testing.T) {
	p := newPair(t)
	p.powerCut()
	p.target.Spec.SecondNode, p.target.Status.Holder = "oss2", &v1alpha1.TargetHolder{Node: "oss2", Number: 3, TakenOver: 2}
	p.Expect(p.takesUp()).To(ContainSubstring("or went down with it"), "it was taken over before, and given away since")
	p.target.Status.Holder.TakenOver = 3
	p.Expect(p.takesUp()).To(BeEmpty())
	p.Expect(p.stillMounted()).To(ContainSubstring("or went down with it"), "it is not given away before it was mounted and unmounted")

	_, unmount := p.mounted(p.disk.Loop)
	p.Expect(p.takesUp()).NotTo(BeEmpty(), "somebody has it mounted here")
	unmount()
	p.Expect(p.stillMounted()).To(BeEmpty())
	p.target.Status.Provisioned.UUID = "0a1b2c3d-0000-4000-8000-0000000000aa"
	p.Expect(p.takesUp()).To(ContainSubstring("does not hold the one filesystem of the target"))
}

// ended waits for a program that ends by itself, with whatever code: what it read has ended.
func ended(c *exec.Cmd) error {
	err := c.Wait()
	if _, is := errors.AsType[*exec.ExitError](err); is {
		return nil
	}
	return err
}
