package host_test

import (
	"os"
	"path/filepath"
	"testing"

	. "github.com/onsi/gomega"

	"parallelfs.dev/operator/internal/node/host"
)

// node is the root directory of a node with one program.
func node(t *testing.T) string {
	t.Helper()
	root := t.TempDir()
	NewWithT(t).Expect(os.MkdirAll(filepath.Join(root, "usr/sbin"), 0o755)).To(Succeed())
	// The link is dangling in this process, but leads to a file from the node's root directory.
	NewWithT(t).Expect(os.Symlink("/opt/lustre/mkfs.lustre", filepath.Join(root, "usr/sbin/mkfs.lustre"))).To(Succeed())
	return root
}

func TestAProgramOfTheNodeIsFoundAndRunInItsRootDirectory(t *testing.T) {
	g, root := NewWithT(t), node(t)
	command, err := host.Command(t.Context(), root, []string{"mkfs.lustre", "--dryrun"})
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(command.Path).To(Equal("/usr/sbin/mkfs.lustre"))
	g.Expect(command.Args).To(HaveExactElements("/usr/sbin/mkfs.lustre", "--dryrun"))
	g.Expect(command.SysProcAttr.Chroot).To(Equal(root))
	g.Expect(command.Env).To(ContainElement("LC_ALL=C"))
}

func TestAProgramThatTheNodeLacksIsNamed(t *testing.T) {
	g := NewWithT(t)
	_, err := host.Command(t.Context(), node(t), []string{"tunefs.lustre"})
	g.Expect(err).To(MatchError(And(ContainSubstring("the node has no tunefs.lustre"), ContainSubstring("status.software"))))
}
