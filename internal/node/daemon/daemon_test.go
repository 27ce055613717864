package daemon_test

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"testing"
	"time"

	. "github.com/onsi/gomega"

	"parallelfs.dev/operator/internal/node/affinity"
	"parallelfs.dev/operator/internal/node/daemon"
	"parallelfs.dev/operator/internal/node/durable"
	"parallelfs.dev/operator/internal/node/spec"
)

// container is a place to start a daemon in. The disk is a temporary directory, and the start of the daemon is only recorded.
type container struct {
	root    string
	started []string
	// environment is the environment that the daemon was started with.
	environment []string
	log         bytes.Buffer
	// prove returns the fault of a target or nil; second is called for each second of waiting.
	prove  func(spec.Target) error
	second func()
	// pinned holds the CPUs of each pinning, and pinFault the error of Pin.
	pinned   []string
	pinFault error
	// named is the name of the node; empty means n1.
	named string
	// followed holds the files that may change while the daemon runs, and the user that signals it.
	followed string
	// rotation is the rotation of its logs.
	rotation daemon.Rotation
}

func (c *container) node() string { return cmp.Or(c.named, "n1") }

var errStarted = errors.New("this process is the daemon now")

func (c *container) host() daemon.Host {
	return daemon.Host{
		Environment: func(name string) (string, bool) {
			value, set := map[string]string{"NODE_IP": "10.0.0.1", "NODE_NAME": c.node()}[name]
			return value, set
		},
		Writer: durable.Writer{Chown: func(string, int, int) error { return nil }},
		LookupUser: func(name string) (int, int, error) {
			if name != "mfs" {
				return 0, 0, errors.New("the image has no user " + name)
			}
			return 9421, 9421, nil
		},
		Exec: func(_ string, argv, environment []string) error {
			c.started, c.environment = argv, environment
			return errStarted
		},
		Now: func() time.Time { return time.Date(2026, 11, 21, 7, 0, 0, 0, time.UTC) },
		Prove: func(t spec.Target, _ spec.Owner) error {
			if c.prove == nil {
				return nil
			}
			return c.prove(t)
		},
		ProveLimit: time.Minute, CommandLimit: time.Minute,
		Pin: func(p spec.Pinning) (affinity.Effective, error) {
			c.pinned = append(c.pinned, p.CPUs)
			return affinity.Effective{CPUs: p.CPUs}, c.pinFault
		},
		Follow: func(files []string, uid, gid int) error {
			c.followed = fmt.Sprint(files, uid, gid)
			return nil
		},
		After: func(time.Duration) <-chan time.Time {
			passed := make(chan time.Time, 1)
			passed <- time.Time{}
			if c.second != nil {
				c.second()
			}
			return passed
		},
	}
}

func (c *container) path(parts ...string) string {
	return filepath.Join(append([]string{c.root}, parts...)...)
}

func (c *container) master() spec.Run {
	return spec.Run{
		Owner: spec.Owner{Namespace: "storage", Name: "scratch", UID: "1"}, Component: "master", User: "mfs",
		Ledger: c.path("state", "ledger.json"),
		Directories: []spec.Directory{{Path: c.path("meta"), Data: "data", Initialize: &spec.Initialize{
			Granted: true, DataGlobs: []string{"metadata*"}, Files: []spec.InitialFile{{Name: "metadata.mfs", Content: "MFSM NEW"}},
		}}},
		Files: []spec.File{{Path: c.path("run", "mfsmaster.cfg"), Content: "HOST = $(NODE_IP)\nAUTH_CODE = s3cret\n", Mode: 0o640}},
		// Every machine has this program.
		Command: []string{"true", "-f", "start"},
		Recover: &spec.Recover{File: c.path("meta", "data", "metadata.mfs"), Arguments: []string{"-a"}},
	}
}

func (c *container) run(ctx context.Context, config spec.Run) error {
	return c.runOn(ctx, config, c.host())
}

func (c *container) runOn(ctx context.Context, config spec.Run, host daemon.Host) error {
	return daemon.Run(ctx, config, c.rotation, host, slog.New(slog.NewTextHandler(&c.log, nil)))
}

func TestADaemonStartsOnItsProvenDirectoryWithItsFiles(t *testing.T) {
	g, c := NewWithT(t), &container{root: t.TempDir()}
	g.Expect(c.run(t.Context(), c.master())).To(MatchError(errStarted))
	g.Expect(c.started).To(Equal([]string{"true", "-f", "start"}))
	g.Expect(os.ReadFile(c.path("run", "mfsmaster.cfg"))).To(BeEquivalentTo("HOST = 10.0.0.1\nAUTH_CODE = s3cret\n"))
	g.Expect(os.ReadFile(c.path("meta", "data", "metadata.mfs"))).To(BeEquivalentTo("MFSM NEW"))
	g.Expect(c.log.String()).NotTo(ContainSubstring("s3cret"))
	g.Expect(c.environment).To(ContainElement("PARALLELFS_DAEMON=storage/scratch/master"), "by which the agent finds it")
	g.Expect(c.pinned).To(BeEmpty())
}

func TestADaemonThatWasKilledStartsWithItsRecovery(t *testing.T) {
	g, c := NewWithT(t), &container{root: t.TempDir()}
	g.Expect(c.run(t.Context(), c.master())).To(MatchError(errStarted))
	// mfsmaster(8) renames the file while it runs, and renames it back at a clean stop.
	g.Expect(os.Rename(c.path("meta/data/metadata.mfs"), c.path("meta/data/metadata.mfs.back"))).To(Succeed())
	g.Expect(c.run(t.Context(), c.master())).To(MatchError(errStarted))
	g.Expect(c.started).To(Equal([]string{"true", "-a", "-f", "start"}))

	g.Expect(os.Rename(c.path("meta/data/metadata.mfs.back"), c.path("meta/data/metadata.mfs"))).To(Succeed())
	g.Expect(c.run(t.Context(), c.master())).To(MatchError(errStarted))
	g.Expect(c.started).To(Equal([]string{"true", "-f", "start"}), "and without it after a clean stop")
}

func TestNothingIsStartedWhen(t *testing.T) {
	for name, c := range map[string]struct {
		change func(c *container, config *spec.Run)
		reason string
	}{
		"the directory was removed": {
			change: func(c *container, config *spec.Run) {
				_ = c.run(context.Background(), *config)
				_ = os.RemoveAll(c.path("meta"))
			},
			reason: "its disk is not mounted or was replaced",
		},
		"the directory holds something else": {
			change: func(c *container, _ *spec.Run) { _ = os.MkdirAll(c.path("meta", "photos"), 0o755) },
			reason: "not empty (photos)",
		},
		"two directories are the same": {
			change: func(_ *container, config *spec.Run) {
				config.Directories = append(config.Directories, config.Directories[0])
			},
			reason: "lie in each other",
		},
		"one directory is in another": {
			change: func(c *container, config *spec.Run) {
				config.Directories = append(config.Directories, spec.Directory{Path: c.path("meta", "data"), Data: "data"})
			},
			reason: "lie in each other",
		},
		"a variable of a file is not set": {
			change: func(_ *container, config *spec.Run) { config.Files[0].Content = "s3cret $(POD_IP)" },
			reason: "mfsmaster.cfg: the variable POD_IP is not set",
		},
		"the user is not in the image": {
			change: func(_ *container, config *spec.Run) { config.User = "lizard" },
			reason: "no user lizard",
		},
		"the program is not in the image": {
			change: func(_ *container, config *spec.Run) { config.Command[0] = "no-such-daemon" },
			reason: `no program "no-such-daemon"`,
		},
		"the spec names no command": {
			change: func(_ *container, config *spec.Run) { config.Command = nil },
			reason: "names no command",
		},
	} {
		t.Run(name, func(t *testing.T) {
			g, at := NewWithT(t), &container{root: t.TempDir()}
			config := at.master()
			c.change(at, &config)
			at.started = nil
			err := at.run(t.Context(), config)
			g.Expect(err).To(MatchError(ContainSubstring(c.reason)))
			g.Expect(err.Error()).NotTo(ContainSubstring("s3cret"))
			g.Expect(at.started).To(BeNil())
		})
	}
}

func TestAStopThatComesBeforeTheStartIsObeyed(t *testing.T) {
	g, c := NewWithT(t), &container{root: t.TempDir()}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	g.Expect(c.run(ctx, c.master())).To(MatchError(ContainSubstring("stopped before true was started")))
	g.Expect(c.started).To(BeNil())
}
