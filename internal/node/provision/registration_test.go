package provision

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	"golang.org/x/sys/unix"

	"parallelfs.dev/operator/test/patience"
)

func TestTheRegistrationOfATargetIsReadFromItsDisk(t *testing.T) {
	for name, c := range map[string]struct{ content, read string }{
		"as a server writes it":              {"1F-6553F100-2\n", "1F-6553F100-2"},
		"with a remark that was added":       {"1F-6553F100-2\n# a remark\n", "1F-6553F100-2"},
		"nothing":                            {"", ""},
		"not of a file of something else":    {"<html>\n", ""},
		"of the longest file":                {strings.Repeat("1", 128), strings.Repeat("1", 128)},
		"not of a file that is far too long": {strings.Repeat("1", 129), ""},
	} {
		t.Run(name, func(t *testing.T) {
			g, mount := NewWithT(t), t.TempDir()
			path := filepath.Join(mount, registrationFile)
			g.Expect(os.MkdirAll(filepath.Dir(path), 0o755)).To(Succeed())
			g.Expect(registration(mount)).To(BeEmpty(), "it has not registered yet")
			g.Expect(os.WriteFile(path, []byte(c.content), 0o600)).To(Succeed())
			g.Expect(registration(mount)).To(Equal(c.read))
		})
	}
	t.Run("not of a pipe", func(t *testing.T) {
		g, mount := NewWithT(t), t.TempDir()
		path := filepath.Join(mount, registrationFile)
		g.Expect(os.MkdirAll(filepath.Dir(path), 0o755)).To(Succeed())
		g.Expect(unix.Mkfifo(path, 0o600)).To(Succeed())
		writer, err := os.OpenFile(path, os.O_RDWR, 0)
		g.Expect(err).NotTo(HaveOccurred())
		defer writer.Close()
		_, err = writer.WriteString("1-2-3\n" + strings.Repeat("x", 122))
		g.Expect(err).NotTo(HaveOccurred())
		read := make(chan string, 1)
		go func() { read <- registration(mount) }()
		g.Eventually(read).WithTimeout(patience.Bound(time.Minute)).Should(Receive(BeEmpty()))
	})
	t.Run("not through a link", func(t *testing.T) {
		g, mount := NewWithT(t), t.TempDir()
		path := filepath.Join(mount, registrationFile)
		g.Expect(os.MkdirAll(filepath.Dir(path), 0o755)).To(Succeed())
		g.Expect(os.WriteFile(filepath.Join(mount, "other"), []byte("1-2-3\n"), 0o600)).To(Succeed())
		g.Expect(os.Symlink(filepath.Join(mount, "other"), path)).To(Succeed())
		g.Expect(registration(mount)).To(BeEmpty())
	})
}
