//go:build disks

package inventory

import (
	"path/filepath"
	"testing"

	. "github.com/onsi/gomega"
	"golang.org/x/sys/unix"
)

func TestADirectoryThatDoesNotOutliveARestartIsFound(t *testing.T) {
	g := NewWithT(t)
	root := t.TempDir()
	g.Expect(unix.Mount("parallelfs-test", root, "tmpfs", 0, "")).To(Succeed())
	t.Cleanup(func() { g.Expect(unix.Unmount(root, 0)).To(Succeed()) })
	g.Expect(volatileAt(root)).To(Equal("tmpfs"))
	g.Expect(volatileAt(filepath.Join(root, "var/lib/parallelfs"))).To(Equal("tmpfs"), "it will be made there")
	g.Expect(volatileAt("/proc")).To(BeEmpty())
}
