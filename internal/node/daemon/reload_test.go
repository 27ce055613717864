package daemon_test

import (
	"context"
	"log/slog"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	. "github.com/onsi/gomega"

	"parallelfs.dev/operator/internal/node/daemon"
)

func TestADaemonWithChangingFilesIsFollowedAsItsOwnUser(t *testing.T) {
	g, c := NewWithT(t), &container{root: t.TempDir()}
	config := c.master()
	g.Expect(c.run(t.Context(), config)).To(MatchError(errStarted))
	g.Expect(c.followed).To(BeEmpty(), "nothing changes")
	config.Reload = []string{"/etc/parallelfs/mfstopology.cfg"}
	g.Expect(c.run(t.Context(), config)).To(MatchError(errStarted))
	g.Expect(c.followed).To(Equal("[/etc/parallelfs/mfstopology.cfg] 9421 9421"))
}

func TestAFileHasChangedWhenItsContentDiffers(t *testing.T) {
	g := NewWithT(t)
	path := filepath.Join(t.TempDir(), "mfstopology.cfg")
	write := func(content string) { g.Expect(os.WriteFile(path, []byte(content), 0o600)).To(Succeed()) }
	write("10.0.0.1 r1\n")
	files := daemon.NewFiles(path)
	g.Expect(files.Changed()).To(BeFalse())
	write("10.0.0.1 r2\n")
	g.Expect(files.Changed()).To(BeTrue())
	g.Expect(files.Changed()).To(BeFalse(), "the daemon is told once")
	g.Expect(os.Remove(path)).To(Succeed())
	g.Expect(files.Changed()).To(BeFalse(), "the kubelet is at it")
	write("10.0.0.1 r2\n")
	g.Expect(files.Changed()).To(BeFalse())
	late := daemon.NewFiles(filepath.Join(t.TempDir(), "no-such"))
	g.Expect(late.Changed()).To(BeFalse())
}

func TestAFollowerSignalsItsDaemonAndEndsWithIt(t *testing.T) {
	g := NewWithT(t)
	path := filepath.Join(t.TempDir(), "mfstopology.cfg")
	files := daemon.NewFiles(path)
	g.Expect(os.WriteFile(path, nil, 0o600)).To(Succeed())
	g.Expect(files.Changed()).To(BeFalse(), "it was not there before")
	g.Expect(os.WriteFile(path, []byte("10.0.0.1 r2\n"), 0o600)).To(Succeed())
	for what, c := range map[string]struct {
		fault error
		ends  error
	}{"the daemon has ended": {syscall.ESRCH, nil}, "it may not be told": {syscall.EPERM, syscall.EPERM}} {
		looks, config := make(chan time.Time, 1), 0
		looks <- time.Time{}
		err := daemon.Follow(t.Context(), files, looks, func() error { config++; return c.fault }, slog.New(slog.DiscardHandler))
		if c.ends == nil {
			g.Expect(err).NotTo(HaveOccurred(), what)
		} else {
			g.Expect(err).To(MatchError(c.ends), what)
		}
		g.Expect(config).To(Equal(1), what)
		g.Expect(os.WriteFile(path, []byte(what), 0o600)).To(Succeed())
	}
	ctx, stop := context.WithCancel(t.Context())
	stop()
	g.Expect(daemon.Follow(ctx, files, nil, func() error { return nil }, slog.New(slog.DiscardHandler))).To(Succeed())
}
