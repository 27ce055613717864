//go:build disks

package host_test

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	. "github.com/onsi/gomega"

	"parallelfs.dev/operator/internal/node/host"
	"parallelfs.dev/operator/internal/node/spec"
)

// TestMain implements the verb of the node binary.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == spec.OnNode {
		_, _ = os.Stderr.WriteString(host.Become(os.Args[2:]).Error())
		os.Exit(1)
	}
	os.Exit(m.Run())
}

// container runs a shell command in a mount namespace of its own, which is invisible to the node. The node's first process is one that
// waits for it.
func container(t *testing.T, script string) (stdout, stderr string, err error) {
	t.Helper()
	command := exec.Command("unshare", "--mount", "--pid", "--fork", "--mount-proc", "sh", "-uc", `unshare --mount sh -euc "$1"; exit $?`, "node", script)
	var out, said strings.Builder
	command.Stdout, command.Stderr = &out, &said
	err = command.Run()
	return out.String(), said.String(), err
}

// on returns the command line of a program of the node for a shell. The test's binary replaces /proc/self/exe.
func on(t *testing.T, argv ...string) string {
	t.Helper()
	self, err := os.Executable()
	NewWithT(t).Expect(err).NotTo(HaveOccurred())
	return strings.Join(append([]string{self}, host.OnNode(argv)[1:]...), " ")
}

func TestAProgramOfTheNodeSeesTheMountsOfTheNode(t *testing.T) {
	g, directory := NewWithT(t), t.TempDir()
	g.Expect(os.WriteFile(filepath.Join(directory, "here"), []byte("of the node"), 0o600)).To(Succeed())
	hide := "mount -t tmpfs container " + directory + "; "
	_, said, err := container(t, hide+"cat "+directory+"/here")
	g.Expect(err).To(HaveOccurred(), "it is hidden in the container: %s", said)
	// The test's binary may be below the hidden directory, so the program is started first.
	for _, program := range []string{"cat", "/bin/cat"} {
		stdout, said, err := container(t, hide+on(t, program, directory+"/here"))
		g.Expect(err).NotTo(HaveOccurred(), said)
		g.Expect(stdout).To(Equal("of the node"))
	}
}

func TestTheExitCodeIsThatOfTheProgramAndOneThatIsMissingIsNamed(t *testing.T) {
	g := NewWithT(t)
	_, _, err := container(t, on(t, "ls", "/no-such-file"))
	var failed *exec.ExitError
	g.Expect(errors.As(err, &failed)).To(BeTrue())
	g.Expect(failed.ExitCode()).To(Equal(2))
	_, said, err := container(t, on(t, "no-such-program"))
	g.Expect(errors.As(err, &failed)).To(BeTrue())
	g.Expect(failed.ExitCode()).To(Equal(1))
	g.Expect(said).To(ContainSubstring("the node has no no-such-program"))
}
