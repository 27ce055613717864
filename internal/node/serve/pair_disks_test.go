//go:build disks

package serve_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	. "github.com/onsi/gomega"

	"parallelfs.dev/operator/api/v1alpha1"
	"parallelfs.dev/operator/internal/node/mountlock"
	"parallelfs.dev/operator/internal/node/spec"
)

// bootID returns the boot id of this machine.
func (m *machine) bootID() string {
	m.Helper()
	content, err := os.ReadFile(spec.BootIDFile)
	m.Expect(err).NotTo(HaveOccurred())
	return strings.TrimSpace(string(content))
}

// shares makes the second target one of a pair, as the agent writes it for a boot of the node.
func (m *machine) shares(bootID string) (lock string) {
	m.Helper()
	lock = spec.MountLock(filepath.Join(m.directory, "node.json"), "ost0")
	m.Expect(mountlock.Make(lock)).To(Succeed())
	m.file.Members[1].Targets[0].Served.BootID = bootID
	m.tell()
	return lock
}

// isLocked is true while a program holds a lock.
func (m *machine) isLocked(path string) bool {
	m.Helper()
	lock, err := mountlock.Take(path)
	if err == nil {
		m.Expect(lock.Close()).To(Succeed())
		return false
	}
	_, held := errors.AsType[*mountlock.HeldError](err)
	m.Expect(held).To(BeTrue(), err.Error())
	return true
}

func TestATargetOfTwoNodesIsMountedUnderItsLockAndInTheConfiguredBoot(t *testing.T) {
	m := newMachine(t)
	m.filesystem()
	lock := m.shares("9f2c1a40-0f6b-4d0e-a0a5-6f3f5b8c2d11")
	agent, err := mountlock.Take(lock)
	m.Expect(err).NotTo(HaveOccurred())
	mdt, ost := m.start("serve", m.serves("mdt/0")), m.start("serve", m.serves("ost/ssd"))
	m.Eventually(ost.Said).WithTimeout(long).Should(ContainSubstring("gives it to another node, at this moment"))
	m.eventuallyMounted("/mnt/targets/mdt0", mdt, ost)
	m.Expect(agent.Close()).To(Succeed())
	m.Eventually(ost.Said).WithTimeout(long).Should(ContainSubstring("is of an earlier start of the node"))
	m.Expect(mounted()).To(Equal("/mnt/targets/mdt0"))
	m.shares(m.bootID())
	m.eventuallyMounted("/mnt/targets/mdt0 /mnt/targets/ost0", mdt, ost)
	m.Eventually(func() bool { return m.isLocked(lock) }).WithTimeout(long).Should(BeFalse(), "a mount that has ended needs no lock")
	for _, p := range []*pod{ost, mdt} {
		m.Expect(p.command.Process.Signal(syscall.SIGTERM)).To(Succeed())
		m.Expect(<-p.ended).To(Succeed(), p.Said())
	}
}

// The kernel may complete at any time what a killed server has begun.
func TestAMountThatIsUnderWayKeepsItsLockWhenItsServerIsKilled(t *testing.T) {
	if genuine {
		t.Skip("the program of the node that mounts is exchanged for one that waits")
	}
	m := newMachine(t)
	m.filesystem()
	lock := m.shares(m.bootID())
	mdt := m.start("serve", m.serves("mdt/0"))
	m.eventuallyMounted("/mnt/targets/mdt0", mdt)

	const program = "/usr/sbin/mount.lustre_tgt"
	link, err := os.Readlink(program)
	m.Expect(err).NotTo(HaveOccurred())
	m.Cleanup(func() { m.must("ln", "-sfn", link, program) })
	begun, wait, late := filepath.Join(m.directory, "begun"), filepath.Join(m.directory, "wait"), filepath.Join(m.directory, "late")
	m.must("mkfifo", wait)
	m.must("mkdir", late)
	m.must("ln", "-s", link, filepath.Join(late, "mount.lustre_tgt"))
	m.Expect(os.Remove(program)).To(Succeed())
	script := "#!/bin/sh\necho > " + begun + "\ncat " + wait + "\nexec " + filepath.Join(late, "mount.lustre_tgt") + " \"$@\"\n"
	m.Expect(os.WriteFile(program, []byte(script), 0o700)).To(Succeed())

	ost := m.start("serve", m.serves("ost/ssd"))
	m.Eventually(begun).WithTimeout(long).Should(BeAnExistingFile(), ost.Said)
	m.Expect(ost.command.Process.Kill()).To(Succeed())
	m.Expect(<-ost.ended).NotTo(Succeed())
	m.Expect(m.isLocked(lock)).To(BeTrue(), "its agent can't give it away")
	m.Expect(os.WriteFile(wait, nil, 0o600)).To(Succeed())
	m.eventuallyMounted("/mnt/targets/mdt0 /mnt/targets/ost0", mdt)
	m.Eventually(func() bool { return m.isLocked(lock) }).WithTimeout(long).Should(BeFalse())
	m.Expect(mdt.command.Process.Signal(syscall.SIGTERM)).To(Succeed())
	m.Expect(<-mdt.ended).To(Succeed(), mdt.Said())
}

func TestTheAgentReleasesATargetThatAKilledServerHasLeftMounted(t *testing.T) {
	m := newMachine(t)
	nids := []string{"192.168.77.1@tcp"}
	m.target("mdt-0", "mdt0", mdt0UUID, v1alpha1.LustreTarget{Kind: v1alpha1.LustreMDT, FSName: "pfs", Index: new(int32(0)), WithMGT: true})
	target := m.target("ost-ssd", "ost0", ost0UUID, v1alpha1.LustreTarget{
		Kind: v1alpha1.LustreOST, FSName: "pfs", Index: new(int32(0)), ManagementNIDs: nids,
		ServiceNodes: []v1alpha1.LustreServiceNode{{NIDs: nids}, {NIDs: []string{"192.168.77.2@tcp"}}},
	})
	m.Expect(m.shares(m.bootID())).To(BeARegularFile())
	mdt, ost := m.start("serve", m.serves("mdt/0")), m.start("serve", m.serves("ost/ssd"))
	m.eventuallyMounted("/mnt/targets/mdt0 /mnt/targets/ost0", mdt, ost)
	m.Expect(ost.command.Process.Kill()).To(Succeed())
	m.Expect(<-ost.ended).NotTo(Succeed())

	// The double of the kernel keeps the disk busy a moment longer than the mount exists.
	m.Eventually(func() (string, error) {
		held, why, err := m.agent().ProveUnmounted(m.Context(), target)
		if held != nil {
			m.Expect(mounted()).To(Equal("/mnt/targets/mdt0"))
			err = errors.Join(err, held.Close())
		}
		return why, err
	}).WithTimeout(long).Should(BeEmpty())
	m.Expect(m.agent().TakeUp(m.Context(), target)).To(BeEmpty())
	m.Expect(mdt.command.Process.Signal(syscall.SIGTERM)).To(Succeed())
	m.Expect(<-mdt.ended).To(Succeed(), mdt.Said())
}
