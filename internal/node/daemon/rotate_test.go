package daemon_test

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	. "github.com/onsi/gomega"

	"parallelfs.dev/operator/internal/node/daemon"
)

// logs returns the change logs of the master by name.
func (c *container) logs(g *WithT) map[string]string {
	paths, err := filepath.Glob(c.path("meta", "data", "changelog.*"))
	g.Expect(err).NotTo(HaveOccurred())
	out := map[string]string{}
	for _, path := range paths {
		content, err := os.ReadFile(path)
		g.Expect(err).NotTo(HaveOccurred())
		out[filepath.Base(path)] = string(content)
	}
	return out
}

func TestTheLogsOfADaemonMoveOnBeforeItStartsAfterACleanStop(t *testing.T) {
	for name, c := range map[string]struct {
		before  string
		crashed bool
		after   map[string]string
	}{
		"one log":                {before: "0", after: map[string]string{"changelog.1.mfs": "0"}},
		"several logs":           {before: "012", after: map[string]string{"changelog.1.mfs": "0", "changelog.2.mfs": "1", "changelog.3.mfs": "2"}},
		"all logs that are kept": {before: "0123", after: map[string]string{"changelog.1.mfs": "0", "changelog.2.mfs": "1", "changelog.3.mfs": "2"}},
		// A kill leaves these states.
		"a number is free":       {before: "013", after: map[string]string{"changelog.1.mfs": "0", "changelog.2.mfs": "1", "changelog.3.mfs": "3"}},
		"the daemon has done it": {before: "12", after: map[string]string{"changelog.1.mfs": "1", "changelog.2.mfs": "2"}},
		"there is none":          {after: map[string]string{}},
		"the stop was not a clean one": {before: "01", crashed: true, after: map[string]string{
			"changelog.0.mfs": "0", "changelog.1.mfs": "1"}},
	} {
		t.Run(name, func(t *testing.T) {
			g, d := NewWithT(t), &container{root: t.TempDir(), rotation: daemon.Rotation{Pattern: "changelog.*.mfs", Keep: 3}}
			g.Expect(d.run(t.Context(), d.master())).To(MatchError(errStarted))
			for _, number := range c.before {
				g.Expect(os.WriteFile(d.path("meta", "data", fmt.Sprintf("changelog.%c.mfs", number)), []byte(string(number)), 0o600)).To(Succeed())
			}
			if c.crashed {
				g.Expect(os.Rename(d.path("meta", "data", "metadata.mfs"), d.path("meta", "data", "metadata.mfs.back"))).To(Succeed())
			}
			for range 2 {
				g.Expect(d.run(t.Context(), d.master())).To(MatchError(errStarted))
				g.Expect(d.logs(g)).To(Equal(c.after), "to start again changes nothing more")
			}
		})
	}
}

func TestLogsThatCanNotMoveOnKeepADaemonFromStarting(t *testing.T) {
	g := NewWithT(t)
	for _, wrong := range []daemon.Rotation{{Pattern: "changelog.0.mfs", Keep: 3}, {Pattern: "changelog.*.mfs"}} {
		d := &container{root: t.TempDir(), rotation: wrong}
		g.Expect(d.run(t.Context(), d.master())).To(MatchError(ContainSubstring("can't move the logs")))
	}
	d := &container{root: t.TempDir(), rotation: daemon.Rotation{Pattern: "changelog.*.mfs", Keep: 3}}
	config := d.master()
	config.Recover = nil
	g.Expect(d.run(t.Context(), config)).To(MatchError(ContainSubstring("tells a clean stop from a crash")))
}
