package mounts

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"sync"
	"syscall"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	"golang.org/x/sys/unix"

	"parallelfs.dev/operator/internal/node/spec"
	"parallelfs.dev/operator/test/patience"
)

// machine is a node with one mount point and the programs that were started on it.
type machine struct {
	mutex   sync.Mutex
	entries []Entry
	answer  error
	busy    bool
	silent  bool
	asked   int
	// takenBack counts the canceled queries.
	takenBack int
	prepared  int
	detached  int
	// hangs holds the flags of umount2(2) that never return, and flags all that were used.
	hangs    map[int]bool
	stopped  <-chan struct{}
	flags    []int
	programs []*program
	log      bytes.Buffer
}

// program is a mount program: it mounts at its start, and ends when its mount is removed.
type program struct {
	done chan struct{}
	once sync.Once
	err  error
}

func (p *program) Done() <-chan struct{} { return p.done }
func (p *program) Err() error            { <-p.done; return p.err }
func (p *program) Stop(time.Duration)    { p.end(nil) }
func (p *program) end(err error)         { p.once.Do(func() { p.err = err; close(p.done) }) }

func (m *machine) kernel() kernel {
	return kernel{
		at: func(string) ([]Entry, error) {
			m.mutex.Lock()
			defer m.mutex.Unlock()
			return append([]Entry(nil), m.entries...), nil
		},
		ask: func(string) (<-chan error, func()) {
			m.mutex.Lock()
			defer m.mutex.Unlock()
			m.asked++
			answer := make(chan error, 1)
			if !m.silent {
				answer <- m.answer
			}
			return answer, func() {
				m.mutex.Lock()
				defer m.mutex.Unlock()
				m.takenBack++
			}
		},
		unmount: m.unmount,
		prepare: func(string) (bool, error) {
			m.mutex.Lock()
			defer m.mutex.Unlock()
			if len(m.entries) > 0 {
				return false, errors.New("prepared a mount point that something is mounted on")
			}
			m.prepared++
			return true, nil
		},
		cannot: func(string) (string, bool) { return "", false },
		limits: limits{answer: time.Minute, unmount: time.Minute, busy: time.Minute, between: time.Millisecond},
	}
}

func (m *machine) unmount(_ string, flags int) error {
	m.mutex.Lock()
	defer m.mutex.Unlock()
	m.flags = append(m.flags, flags&^unix.UMOUNT_NOFOLLOW)
	switch {
	case m.hangs[flags&^unix.UMOUNT_NOFOLLOW]:
		m.mutex.Unlock()
		<-m.stopped
		m.mutex.Lock()
		return unix.EINTR
	case len(m.entries) == 0:
		return unix.EINVAL
	case flags&unix.MNT_DETACH != 0:
		m.detached++
	case m.busy:
		return unix.EBUSY
	}
	m.entries = m.entries[:len(m.entries)-1]
	if len(m.entries) == 0 && len(m.programs) > 0 {
		m.programs[len(m.programs)-1].end(nil)
	}
	return nil
}

func (m *machine) start() (child, error) {
	m.mutex.Lock()
	defer m.mutex.Unlock()
	p := &program{done: make(chan struct{})}
	m.programs = append(m.programs, p)
	m.entries, m.answer, m.asked = []Entry{{"fuse", scratch.Source}}, nil, 0
	return p, nil
}

func (m *machine) supervise(ctx context.Context) <-chan error {
	s := supervisor{
		kernel: m.kernel(), mount: scratch, log: slog.New(slog.NewTextHandler(&m.log, nil)),
		start: m.start, period: time.Millisecond, shortest: time.Millisecond, grace: time.Millisecond,
	}
	ended := make(chan error, 1)
	go func() { ended <- s.run(ctx) }()
	return ended
}

func (m *machine) do(change func()) {
	m.mutex.Lock()
	defer m.mutex.Unlock()
	change()
}

// mountedBy waits until the nth program has mounted and the supervision has seen it.
func (m *machine) mountedBy(g Gomega, n int) {
	g.Eventually(func() bool {
		m.mutex.Lock()
		defer m.mutex.Unlock()
		return len(m.programs) == n && m.asked > 0
	}).WithTimeout(patience.Bound(time.Minute)).Should(BeTrue())
	m.do(func() { m.asked = 0 })
}

func TestAFilesystemIsMountedAgainWhen(t *testing.T) {
	for name, c := range map[string]struct {
		happens func(m *machine)
		said    string
	}{
		"its program is killed, which leaves a dead mount": {
			happens: func(m *machine) { m.programs[0].end(errors.New("signal: killed")) },
			said:    "mfsmount ended: signal: killed",
		},
		"it is dead though its program runs": {
			happens: func(m *machine) { m.answer = syscall.ENOTCONN },
			said:    "the mount is dead",
		},
		"it is dead and in use": {
			happens: func(m *machine) { m.answer = syscall.ENOTCONN; m.busy = true },
			said:    "can't be unmounted cleanly, so it is detached",
		},
		"it is unmounted": {
			happens: func(m *machine) { m.entries = nil },
			said:    "somebody unmounted it",
		},
	} {
		t.Run(name, func(t *testing.T) {
			g, m := NewWithT(t), &machine{}
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			ended := m.supervise(ctx)
			m.mountedBy(g, 1)
			m.do(func() { c.happens(m) })
			m.mountedBy(g, 2)
			cancel()
			g.Eventually(ended).WithTimeout(patience.Bound(time.Minute)).Should(Receive(BeNil()))
			g.Expect(m.entries).To(BeEmpty(), "nothing stays mounted")
			g.Expect(m.prepared).To(Equal(2))
			g.Expect(m.log.String()).To(ContainSubstring(c.said))
			for _, p := range m.programs {
				g.Expect(p.done).To(BeClosed())
			}
		})
	}
}

func TestMountsAtTheStart(t *testing.T) {
	for name, c := range map[string]struct {
		entries []Entry
		answer  error
		busy    bool
		mounted bool
		reason  string
	}{
		"nothing":                                  {mounted: true},
		"a dead mount of the filesystem goes":      {entries: []Entry{{"fuse", scratch.Source}}, answer: syscall.ENOTCONN, busy: true, mounted: true},
		"mounts that lie on each other go":         {entries: []Entry{{"fuse", scratch.Source}, {"fuse", scratch.Source}}, mounted: true},
		"a dead mount of its former address goes":  {entries: []Entry{{"fuse", "mfs#10.0.0.9:9421"}}, answer: syscall.ENOTCONN, mounted: true},
		"a living filesystem of another stays":     {entries: []Entry{{"fuse", "mfs#10.0.0.9:9421"}}, reason: "has another filesystem mounted on it"},
		"a filesystem of another type stays":       {entries: []Entry{{"ext4", "/dev/sda1"}}, reason: `type ext4 from "/dev/sda1"`},
		"a dead filesystem of another type stays":  {entries: []Entry{{"nfs4", "server:/home"}}, answer: syscall.ESTALE, reason: "type nfs4"},
		"another's on top of the filesystem stays": {entries: []Entry{{"fuse", scratch.Source}, {"tmpfs", "tmpfs"}}, reason: "type tmpfs"},
	} {
		t.Run(name, func(t *testing.T) {
			g, m := NewWithT(t), &machine{entries: c.entries, answer: c.answer, busy: c.busy}
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			ended := m.supervise(ctx)
			if !c.mounted {
				var err error
				g.Eventually(ended).WithTimeout(patience.Bound(time.Minute)).Should(Receive(&err))
				g.Expect(err).To(MatchError(ContainSubstring(c.reason)))
				g.Expect(m.programs).To(BeEmpty())
				g.Expect(m.entries).To(Equal(c.entries))
				return
			}
			m.mountedBy(g, 1)
			m.do(func() { m.busy = false })
			cancel()
			g.Eventually(ended).WithTimeout(patience.Bound(time.Minute)).Should(Receive(BeNil()))
			g.Expect(m.entries).To(BeEmpty())
		})
	}
}

func TestAnotherFilesystemOverOursEndsTheSupervisionAndStays(t *testing.T) {
	g, m := NewWithT(t), &machine{}
	ended := m.supervise(t.Context())
	m.mountedBy(g, 1)
	m.do(func() { m.entries = append(m.entries, Entry{"ext4", "/dev/sda1"}) })
	var err error
	g.Eventually(ended).WithTimeout(patience.Bound(time.Minute)).Should(Receive(&err))
	g.Expect(err).To(MatchError(ContainSubstring("/dev/sda1")))
	g.Expect(m.entries).To(HaveLen(2))
	g.Expect(m.programs[0].done).To(BeClosed())
}

func TestAFilesystemInUseIsDetachedAtTheEnd(t *testing.T) {
	g, m := NewWithT(t), &machine{busy: true}
	ctx, cancel := context.WithCancel(t.Context())
	ended := m.supervise(ctx)
	m.mountedBy(g, 1)
	cancel()
	g.Eventually(ended).WithTimeout(patience.Bound(time.Minute)).Should(Receive(BeNil()))
	g.Expect(m.entries).To(BeEmpty())
	g.Expect(m.detached).To(Equal(1))
}

func TestAFilesystemThatAnswersWithErrorsStaysMounted(t *testing.T) {
	g, m := NewWithT(t), &machine{}
	ctx, cancel := context.WithCancel(t.Context())
	ended := m.supervise(ctx)
	m.mountedBy(g, 1)
	m.do(func() { m.answer = syscall.EIO })
	for range 3 {
		m.mountedBy(g, 1)
	}
	cancel()
	g.Eventually(ended).WithTimeout(patience.Bound(time.Minute)).Should(Receive(BeNil()))
	g.Expect(m.programs).To(HaveLen(1))
	g.Expect(bytes.Count(m.log.Bytes(), []byte("answers with an error"))).To(Equal(1), "it is said once")
}

func TestAMountThatCannotBeMeantSoIsRefused(t *testing.T) {
	environment := func(string) (string, bool) { return "", false }
	for name, c := range map[string]struct {
		change func(m *spec.Mount)
		reason string
	}{
		"a relative path":            {func(m *spec.Mount) { m.Path = "scratch" }, "not an absolute path"},
		"the root directory":         {func(m *spec.Mount) { m.Path = "/" }, "not an absolute path"},
		"no command":                 {func(m *spec.Mount) { m.Command = nil }, "no command"},
		"a variable that is not set": {func(m *spec.Mount) { m.Command = []string{"mfsmount", "$(NODE_IP)"} }, "NODE_IP is not set"},
	} {
		t.Run(name, func(t *testing.T) {
			g, m := NewWithT(t), scratch
			c.change(&m)
			log := slog.New(slog.DiscardHandler)
			g.Expect(Supervise(t.Context(), m, environment, nil, nil, log)).To(MatchError(ContainSubstring(c.reason)))
			g.Expect(Configure(t.Context(), spec.Configure{Mount: &m}, environment, &bytes.Buffer{}, log)).To(MatchError(ContainSubstring(c.reason)))
		})
	}
}
