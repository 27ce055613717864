//go:build disks

package inventory

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	. "github.com/onsi/gomega"
)

// TestAProgramOfTheNodeRunsInTheNodesRoot needs permission to change the root directory.
func TestAProgramOfTheNodeRunsInTheNodesRoot(t *testing.T) {
	g := NewWithT(t)
	root := t.TempDir()
	g.Expect(os.MkdirAll(filepath.Join(root, "usr/sbin"), 0o755)).To(Succeed())
	source := filepath.Join(t.TempDir(), "main.go")
	g.Expect(os.WriteFile(source, []byte(`package main

import "os"

func main() {
	content, _ := os.ReadFile("/says")
	os.Stdout.Write(content)
	os.Exit(3)
}
`), 0o600)).To(Succeed())
	said, err := exec.CommandContext(t.Context(), "go", "build", "-o", filepath.Join(root, "usr/sbin/kctl"), source).CombinedOutput()
	g.Expect(err).NotTo(HaveOccurred(), string(said))
	g.Expect(os.WriteFile(filepath.Join(root, "says"), []byte("2.17.57"), 0o600)).To(Succeed())
	out, err := onNode(root)(t.Context(), "/usr/sbin/kctl")
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(fmt.Sprintf("%s, exit code %d", out.Stdout, out.Code)).To(Equal("2.17.57, exit code 3"), "it reads the file of that root, and its exit code is kept")
	_, err = onNode(root)(t.Context(), "/usr/sbin/other")
	g.Expect(err).To(MatchError(ContainSubstring("can't run /usr/sbin/other")))
}
