//go:build disks

package database_test

import (
	"path/filepath"
	"testing"

	. "github.com/onsi/gomega"
	"golang.org/x/sys/unix"

	"parallelfs.dev/operator/internal/node/database"
)

// The probe sees the directory of the database as a read-only mount.
func TestADatabaseIsCopiedFromAMountThatIsReadOnlyWhileItIsWritten(t *testing.T) {
	g, path := NewWithT(t), make5(t)
	written(t, path)
	seen := t.TempDir()
	g.Expect(unix.Mount(filepath.Dir(path), seen, "", unix.MS_BIND, "")).To(Succeed())
	t.Cleanup(func() { g.Expect(unix.Unmount(seen, unix.MNT_DETACH)).To(Succeed()) })
	g.Expect(unix.Mount("", seen, "", unix.MS_REMOUNT|unix.MS_BIND|unix.MS_RDONLY, "")).To(Succeed())
	for range 20 {
		content, err := database.Copy(t.Context(), filepath.Join(seen, filepath.Base(path)), t.TempDir(), 1<<20)
		g.Expect(err).NotTo(HaveOccurred())
		said, err := database.Ask(t.Context(), content, t.TempDir(), map[string]string{"together": together})
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(said["together"]).To(Equal([][]string{{"1"}}), "no transaction is there by half")
	}
}
