//go:build vm

package vm_test

import (
	"strings"
	"testing"

	. "github.com/onsi/gomega"

	"parallelfs.dev/operator/internal/node/spec"
)

const (
	mountPath = "/var/lib/parallelfs/mnt/scratch"
	mountSpec = "/run/mount.json"
	// The test mounts a filesystem from a file in another one: while the outer one is frozen, the inner one waits as for lost servers.
	mountDisks = "modprobe loop; mkdir -p /run/outer; truncate -s 128M /var/lib/parallelfs/outer; mkfs.ext4 -q /var/lib/parallelfs/outer; " +
		"mount -o loop /var/lib/parallelfs/outer /run/outer; truncate -s 32M /run/outer/inner; mkfs.ext4 -q /run/outer/inner"
	mountAway = "until umount /run/outer; do sleep 0.1; done; rm /var/lib/parallelfs/outer; chattr -i " + mountPath + "; rmdir " + mountPath
	// startMount starts the supervision, whose process is $pid, and waits until the filesystem answers.
	startMount = "node mount --spec " + mountSpec + " > /run/mount.log 2>&1 & pid=$!; " +
		"until node check-mount --spec " + mountSpec + " 2>/dev/null; do sleep 0.1; done; "
)

func testMounts(t *testing.T, m *machine) {
	m.sh(t, mountDisks)
	m.write(t, mountSpec, spec.Mount{
		Path: mountPath, FSType: "ext4", Kernel: true, Command: []string{"mount", "-o", "loop", "/run/outer/inner", mountPath},
	})
	t.Run("a filesystem of the kernel that was mounted before a crash is taken over, and unmounted at the end", func(t *testing.T) {
		g := NewWithT(t)
		m.sh(t, startMount+"kill -KILL $pid; wait $pid || true; touch "+mountPath+"/kept")
		m.sh(t, startMount+"until grep -q 'taken over' /run/mount.log; do sleep 0.1; done; test -e "+mountPath+"/kept; "+
			"test $(grep -c ' "+mountPath+" ' /proc/self/mountinfo) = 1; kill -TERM $pid; wait $pid")
		g.Expect(m.sh(t, "grep ' "+mountPath+" ' /proc/self/mountinfo || true")).To(BeEmpty())
		code, _, _ := m.try(t, "", "touch", mountPath+"/lost")
		g.Expect(code).NotTo(BeZero(), "nothing can be written below while it is not mounted")
	})
	t.Run("trap 12: a mount of a disk that does not answer keeps no pod from ending", func(t *testing.T) {
		g := NewWithT(t)
		log := m.sh(t, startMount+"dd if=/dev/urandom of="+mountPath+"/data bs=1M count=4 2>/dev/null; fsfreeze -f /run/outer; "+
			"kill -TERM $pid; wait $pid; cat /run/mount.log; ps -o stat,args | grep '[c]all umount2'; "+
			"grep ' "+mountPath+" ' /proc/self/mountinfo && exit 1; fsfreeze -u /run/outer")
		// On a slow machine, the unmounting process may not have reached the mount in time; then the mount is detached.
		g.Expect(log).To(Or(ContainSubstring("the kernel has not ended it"), ContainSubstring("it is detached (MNT_DETACH)")))
		g.Expect(log).To(ContainSubstring("call umount2"), "what waits is left behind")
	})
	m.sh(t, mountAway)
	t.Run("a kernel without the module of BeeGFS names what is missing", func(t *testing.T) {
		g, release := NewWithT(t), strings.TrimSpace(m.run(t, "uname", "-r"))
		m.write(t, mountSpec, spec.Mount{
			Path: mountPath, FSType: "beegfs", Kernel: true, Command: []string{"mount", "-t", "beegfs", "beegfs_nodev", mountPath},
		})
		code, _, stderr := m.try(t, "", "node", "mount", "--spec", mountSpec)
		g.Expect(code).To(Equal(1))
		g.Expect(stderr).To(ContainSubstring("this node's kernel has no filesystem beegfs: /lib/modules/" + release +
			" has no module beegfs: install beegfs-client-dkms and the headers of kernel " + release))
		m.sh(t, "chattr -i "+mountPath+"; rmdir "+mountPath)
	})
}
