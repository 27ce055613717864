//go:build disks

package target

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	. "github.com/onsi/gomega"
	"golang.org/x/sys/unix"
)

// Every way of asking is tried, whichever of them this kernel would be asked by: older kernels have only the later ones.
func TestEachWayOfAskingForAUUIDFindsThatOf(t *testing.T) {
	const uuid, other = "0a1b2c3d-1122-4344-9566-778899aabbcc", "0a1b2c3d-1122-4344-9566-778899aabbcd"
	for fsType, mkfs := range map[string][]string{
		"ext4":  {"mkfs.ext4", "-q", "-U", uuid},
		"xfs":   {"mkfs.xfs", "-q", "-m", "uuid=" + uuid},
		"btrfs": {"mkfs.btrfs", "-q", "-U", uuid},
	} {
		t.Run(fsType, func(t *testing.T) {
			g := NewWithT(t)
			image, path := filepath.Join(t.TempDir(), "image"), t.TempDir()
			g.Expect(os.WriteFile(image, nil, 0o600)).To(Succeed())
			g.Expect(os.Truncate(image, 512<<20)).To(Succeed())
			g.Expect(exec.Command(mkfs[0], append(mkfs[1:], image)...).Run()).To(Succeed())
			g.Expect(exec.Command("mount", "-o", "loop", image, path).Run()).To(Succeed())
			t.Cleanup(func() { g.Expect(exec.Command("umount", path).Run()).To(Succeed()) })
			directory, err := os.Open(path)
			g.Expect(err).NotTo(HaveOccurred())
			t.Cleanup(func() { directory.Close() })
			var stat unix.Statfs_t
			g.Expect(unix.Statfs(path, &stat)).To(Succeed())
			kind := stat.Type

			g.Expect(ownUUID(int(directory.Fd()), kind)).To(Equal(uuid), "in its own way")
			g.Expect(uuidOf(int(directory.Fd()), kind)).To(Equal(uuid))
			if fsType == "ext4" {
				g.Expect(isFolded(uuid, stat.Fsid)).To(BeTrue(), "in the way of all kernels")
				g.Expect(isFolded(other, stat.Fsid)).To(BeFalse())
			}
			if general, err := generalUUID(int(directory.Fd())); err == nil && fsType != "btrfs" {
				g.Expect(general).To(Equal(uuid), "in the way of Linux 6.9")
			}
		})
	}
}
