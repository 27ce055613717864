package bench_test

import (
	"context"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	. "github.com/onsi/gomega"

	"parallelfs.dev/operator/internal/node/bench"
)

// deep makes nested directories, with a file and a symbolic link in each.
func deep(g *WithT, path string, depth int) {
	at, err := os.OpenRoot(path)
	g.Expect(err).NotTo(HaveOccurred())
	for range depth {
		g.Expect(at.Mkdir("d", 0o755)).To(Succeed())
		g.Expect(at.Symlink("d", "link")).To(Succeed())
		g.Expect(at.WriteFile("file", []byte("data"), 0o600)).To(Succeed())
		next, err := at.OpenRoot("d")
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(at.Close()).To(Succeed())
		at = next
	}
	g.Expect(at.Close()).To(Succeed())
}

func TestADirectoryIsRemovedHoweverDeepItIs(t *testing.T) {
	g, c := NewWithT(t), newClient(t)
	b := c.script("true")
	other := filepath.Join(filepath.Dir(b.Root), "run-2")
	for _, path := range []string{b.Directory, filepath.Join(b.Directory, "second"), other} {
		g.Expect(os.MkdirAll(path, 0o755)).To(Succeed())
	}
	deep(g, b.Directory, 1500)
	deep(g, filepath.Join(b.Directory, "second"), 700)
	g.Expect(os.Symlink(other, filepath.Join(b.Directory, "outside"))).To(Succeed())
	var before syscall.Rlimit
	g.Expect(syscall.Getrlimit(syscall.RLIMIT_NOFILE, &before)).To(Succeed())
	few := before
	few.Cur = 128
	g.Expect(syscall.Setrlimit(syscall.RLIMIT_NOFILE, &few)).To(Succeed())
	t.Cleanup(func() { NewWithT(t).Expect(syscall.Setrlimit(syscall.RLIMIT_NOFILE, &before)).To(Succeed()) })
	g.Expect(bench.Clean(t.Context(), b, c.host())).To(Succeed())
	g.Expect(b.Root).NotTo(BeADirectory())
	g.Expect(other).To(BeADirectory())
}

// A program that fills the directory again and again could keep a removal busy without end.
func TestARemovalEndsWithItsContext(t *testing.T) {
	g, c := NewWithT(t), newClient(t)
	b := c.script("true")
	g.Expect(os.MkdirAll(filepath.Join(b.Directory, "full"), 0o755)).To(Succeed())
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	g.Expect(bench.Clean(ctx, b, c.host())).To(MatchError(And(ContainSubstring("files are left"), ContainSubstring(context.Canceled.Error()))))
	g.Expect(b.Directory).To(BeADirectory())
}
