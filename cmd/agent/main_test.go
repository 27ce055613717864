package main

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"

	. "github.com/onsi/gomega"

	"parallelfs.dev/operator/internal/node/command"
)

// said is the output of a run of the binary.
type said struct {
	code                    int
	stdout, stderr, message string
}

// run runs the binary with a termination log of its own.
func run(t *testing.T, args ...string) said {
	t.Helper()
	g := NewWithT(t)
	log := filepath.Join(t.TempDir(), "termination-log")
	g.Expect(os.WriteFile(log, nil, 0o600)).To(Succeed())
	t.Setenv("TERMINATION_LOG", log)
	var stdout, stderr bytes.Buffer
	code := command.Run(t.Context(), root(), args, &stdout, &stderr)
	message, err := os.ReadFile(log)
	g.Expect(err).NotTo(HaveOccurred())
	return said{code, stdout.String(), stderr.String(), string(message)}
}

func TestTheAgentTeaches(t *testing.T) {
	g := NewWithT(t)
	help := run(t, "--help")
	g.Expect(help.code).To(BeZero())
	g.Expect(help.stdout).To(And(ContainSubstring("Usage:"), ContainSubstring("agent inventory"), ContainSubstring("\n  placement"), ContainSubstring("--node-name")))
}

func TestTheAgentRefusesWhatItCannotDo(t *testing.T) {
	for name, c := range map[string]struct {
		args []string
		says string
	}{
		"no node":               {nil, "--node-name is required"},
		"looks without a pause": {[]string{"--node-name=n1", "--resync=1s"}, "--resync 1s is too short"},
		"samples without a pause": {
			[]string{"--node-name=n1", "--telemetry-interval=1ms", "--telemetry-address=10.0.0.1"}, "--telemetry-interval 1ms is too short",
		},
		"telemetry for nobody": {[]string{"--node-name=n1", "--telemetry-interval=1s"}, "--telemetry-address is required"},
		"an unknown verb":      {[]string{"destroy"}, `unknown command "destroy"`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Setenv("NODE_NAME", "")
			t.Setenv("POD_IP", "")
			g, got := NewWithT(t), run(t, c.args...)
			g.Expect(got.code).To(Equal(1))
			g.Expect(got.stderr).To(And(HavePrefix("agent: "), ContainSubstring(c.says)))
			g.Expect(got.stderr).To(ContainSubstring(got.message))
		})
	}
}
