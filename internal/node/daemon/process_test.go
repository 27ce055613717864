package daemon_test

import (
	"bytes"
	"context"
	"encoding/json"
	"log/slog"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	. "github.com/onsi/gomega"

	"parallelfs.dev/operator/internal/node/daemon"
	"parallelfs.dev/operator/internal/node/spec"
	"parallelfs.dev/operator/test/patience"
)

// envSpec makes the test's own program act as `node run` with the spec in this variable.
const envSpec = "DAEMON_TEST_SPEC"

func TestMain(m *testing.M) {
	config, isNode := os.LookupEnv(envSpec)
	if !isNode {
		os.Exit(m.Run())
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, syscall.SIGINT)
	defer stop()
	var run spec.Run
	err := json.Unmarshal([]byte(config), &run)
	if err == nil {
		err = daemon.Run(ctx, run, daemon.Rotation{}, daemon.ThisHost(), slog.New(slog.NewTextHandler(os.Stdout, nil)))
	}
	_, _ = os.Stderr.WriteString(err.Error())
	os.Exit(1) //nolint:gocritic // the process ends
}

// nodeRun is a process that runs a spec.
type nodeRun struct {
	*exec.Cmd
	reason bytes.Buffer
	log    string
}

func startNode(t *testing.T, config spec.Run) *nodeRun {
	t.Helper()
	g := NewWithT(t)
	content, err := json.Marshal(config)
	g.Expect(err).NotTo(HaveOccurred())
	n := &nodeRun{Cmd: exec.Command(os.Args[0]), log: filepath.Join(t.TempDir(), "log")}
	n.Env = append(os.Environ(), envSpec+"="+string(content), "NODE_NAME=n1")
	log, err := os.Create(n.log)
	g.Expect(err).NotTo(HaveOccurred())
	n.Stdout, n.Stderr = log, &n.reason
	g.Expect(n.Start()).To(Succeed())
	g.Expect(log.Close()).To(Succeed())
	t.Cleanup(func() {
		if n.ProcessState == nil {
			_ = n.Process.Kill()
			_ = n.Wait()
		}
	})
	return n
}

// says waits for a line in the log.
func (n *nodeRun) says(t *testing.T, text string) {
	t.Helper()
	NewWithT(t).Eventually(func() (string, error) {
		content, err := os.ReadFile(n.log)
		return string(content), err
	}).WithTimeout(patience.Bound(time.Minute)).Should(ContainSubstring(text))
}

// real returns a spec that this machine can run unchanged.
func (c *container) real(t *testing.T) spec.Run {
	t.Helper()
	sleep, err := exec.LookPath("sleep")
	NewWithT(t).Expect(err).NotTo(HaveOccurred())
	config := c.chunkserver()
	config.User, config.NodeFile, config.Command = "root", c.path("nodes", spec.NodeFileName), []string{sleep, "600"}
	config.Files[0].Content = ""
	return config
}

func TestASignalEndsAProcessThatWaits(t *testing.T) {
	g, c := NewWithT(t), &container{root: t.TempDir()}
	n := startNode(t, c.real(t))
	n.says(t, "msg=waiting")
	g.Expect(n.Process.Signal(syscall.SIGTERM)).To(Succeed())
	g.Expect(n.Wait()).To(MatchError("exit status 1"))
	g.Expect(n.reason.String()).To(And(HavePrefix("stopped before the daemon was started; it was waiting: "), ContainSubstring(c.path("nodes", spec.NodeFileName))))
}
