package mounts

import (
	"bytes"
	"context"
	"log/slog"
	"os"
	"path/filepath"
	"testing"
	"time"

	. "github.com/onsi/gomega"

	"parallelfs.dev/operator/internal/node/spec"
	"parallelfs.dev/operator/test/patience"
)

// configure runs commands without a mount. The first argument of each script is a file that it can write to.
func configure(ctx context.Context, t *testing.T, commands ...spec.Command) (written, log string, err error) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "written")
	for i, c := range commands {
		commands[i].Argv = append([]string{"sh", "-c"}, append(c.Argv, "sh", path, "secret-argument")...)
	}
	var said bytes.Buffer
	err = Configure(ctx, spec.Configure{Commands: commands}, os.LookupEnv, &bytes.Buffer{}, slog.New(slog.NewTextHandler(&said, nil)))
	content, readErr := os.ReadFile(path)
	if readErr != nil {
		content = nil
	}
	return string(content), said.String(), err
}

func script(text string) spec.Command { return spec.Command{Argv: []string{text}} }

func TestCommandsWithoutAMount(t *testing.T) {
	const fails = `echo one; echo two; echo "the pool is not there" >&2; exit 7`
	for name, c := range map[string]struct {
		commands []spec.Command
		written  string
		fails    string
	}{
		"run in their order":                {commands: []spec.Command{script(`printf a >> "$1"`), script(`printf b >> "$1"`)}, written: "ab"},
		"end at the first one that fails":   {commands: []spec.Command{script(`printf a >> "$1"`), script(fails), script(`printf b >> "$1"`)}, written: "a", fails: "command 2, sh, failed with exit code 7: one\ntwo\nthe pool is not there"},
		"go on after one that may fail":     {commands: []spec.Command{{Argv: []string{fails}, MayFail: true}, script(`printf b >> "$1"`)}, written: "b"},
		"are ended when they take too long": {commands: []spec.Command{{Argv: []string{"echo moving; sleep 600"}, TimeoutSeconds: 1}, script(`printf b >> "$1"`)}, fails: "command 1, sh, was ended after 1s: moving"},
		"have succeeded with a proof, whatever their exit code is": {
			commands: []spec.Command{{Argv: []string{fails}, Proof: "(?m)^the pool is not"}, script(`printf b >> "$1"`)}, written: "b",
		},
		"have failed without their proof, whatever their exit code is": {
			commands: []spec.Command{{Argv: []string{"echo already running"}, Proof: "(?m)^order sent"}, script(`printf b >> "$1"`)},
			fails:    "command 1, sh, ended with exit code 0 and did not say that it was done: already running",
		},
		"may take as long as they need": {commands: []spec.Command{{Argv: []string{`printf a >> "$1"`}, TimeoutSeconds: -1}}, written: "a"},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			written, log, err := configure(t.Context(), t, c.commands...)
			g.Expect(written).To(Equal(c.written))
			g.Expect(log).NotTo(ContainSubstring("secret-argument"))
			if c.fails == "" {
				g.Expect(err).NotTo(HaveOccurred())
				return
			}
			g.Expect(err).To(MatchError(And(ContainSubstring(c.fails), Not(ContainSubstring("secret-argument")))))
		})
	}
}

func TestCommandsAreEndedWithThePodAndMayCleanUp(t *testing.T) {
	g, started := NewWithT(t), filepath.Join(t.TempDir(), "started")
	ctx, cancel := context.WithCancel(t.Context())
	go func() {
		defer cancel()
		g.Eventually(started).WithTimeout(patience.Bound(time.Minute)).Should(BeAnExistingFile())
	}()
	written, _, err := configure(ctx, t,
		spec.Command{Argv: []string{`trap 'printf cleaned >> "$1"; exit 0' TERM; : > ` + started + `; while :; do sleep 0.01; done`}, TimeoutSeconds: -1})
	g.Expect(err).To(MatchError(ContainSubstring("stopped while command 1, sh, was running")))
	g.Expect(written).To(Equal("cleaned"))
}
