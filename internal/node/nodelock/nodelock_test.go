package nodelock_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	. "github.com/onsi/gomega"

	"parallelfs.dev/operator/internal/node/nodelock"
)

// lockEnvironment has the test binary hold a lock as an agent does.
const lockEnvironment = "NODELOCK_TEST_PATH"

func TestMain(m *testing.M) {
	path := os.Getenv(lockEnvironment)
	if path == "" {
		os.Exit(m.Run())
	}
	lock, err := nodelock.Wait(context.Background(), path, os.Getenv("NODELOCK_TEST_NAME"), time.Millisecond, func(holder string) {
		_, _ = fmt.Fprintln(os.Stdout, "waits for "+holder)
	})
	if err != nil {
		_, _ = fmt.Fprintln(os.Stdout, err)
		os.Exit(1)
	}
	_, _ = fmt.Fprintln(os.Stdout, "works")
	_, _ = io.Copy(io.Discard, os.Stdin)
	_ = lock.Close()
}

// agent is another process that works on the node, or waits.
type agent struct {
	*exec.Cmd
	in  io.Closer
	out *bufio.Scanner
}

func starts(t *testing.T, path, name string) agent {
	t.Helper()
	g := NewWithT(t)
	self, err := os.Executable()
	g.Expect(err).NotTo(HaveOccurred())
	c := exec.CommandContext(t.Context(), self)
	c.Env = append(os.Environ(), lockEnvironment+"="+path, "NODELOCK_TEST_NAME="+name)
	in, err := c.StdinPipe()
	g.Expect(err).NotTo(HaveOccurred())
	out, err := c.StdoutPipe()
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(c.Start()).To(Succeed())
	return agent{c, in, bufio.NewScanner(out)}
}

func (a agent) says(g *WithT) string {
	g.Expect(a.out.Scan()).To(BeTrue())
	return a.out.Text()
}

func TestASecondAgentOfANodeWaitsAndNamesTheFirst(t *testing.T) {
	g, path := NewWithT(t), filepath.Join(t.TempDir(), "agent.lock")
	first := starts(t, path, "parallelfs-a/agent-1")
	g.Expect(first.says(g)).To(Equal("works"))
	second := starts(t, path, "parallelfs-b/agent-2")
	g.Expect(second.says(g)).To(Equal("waits for parallelfs-a/agent-1"))

	g.Expect(first.in.Close()).To(Succeed())
	g.Expect(first.Wait()).To(Succeed())
	for second.says(g) != "works" {
		g.Expect(second.out.Text()).To(HavePrefix("waits for "))
	}
	third := starts(t, path, "c/a")
	g.Expect(third.says(g)).To(Equal("waits for parallelfs-b/agent-2"), "the name of the earlier holder is gone, also where it was longer")
	g.Expect(second.in.Close()).To(Succeed())
	g.Expect(second.Wait()).To(Succeed())
}

func TestAKilledAgentBlocksNothing(t *testing.T) {
	g, path := NewWithT(t), filepath.Join(t.TempDir(), "agent.lock")
	killed := starts(t, path, "parallelfs-a/agent-1")
	g.Expect(killed.says(g)).To(Equal("works"))
	g.Expect(killed.Process.Kill()).To(Succeed())
	_ = killed.Wait()
	g.Expect(starts(t, path, "parallelfs-a/agent-2").says(g)).To(Equal("works"))
}

func TestAnAgentThatIsStoppedWhileItWaitsEnds(t *testing.T) {
	g, path := NewWithT(t), filepath.Join(t.TempDir(), "agent.lock")
	first, err := nodelock.Wait(t.Context(), path, "", time.Hour, nil)
	g.Expect(err).NotTo(HaveOccurred())
	defer func() { g.Expect(first.Close()).To(Succeed()) }()
	ctx, end := context.WithCancelCause(t.Context())
	told := errors.New("told to end")
	var holder string
	_, err = nodelock.Wait(ctx, path, "parallelfs-b/agent-2", time.Hour, func(name string) { holder = name; end(told) })
	g.Expect(err).To(MatchError(told))
	g.Expect(holder).To(Equal(nodelock.Unnamed))
}

func TestAnAgentWithoutItsLockDoesNotWork(t *testing.T) {
	_, err := nodelock.Wait(t.Context(), filepath.Join(t.TempDir(), "missing", "agent.lock"), "parallelfs-a/agent-1", time.Hour, nil)
	NewWithT(t).Expect(err).To(MatchError(ContainSubstring("can't open the lock of the agent")))
}
