package mounts

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"math/rand/v2"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	. "github.com/onsi/gomega"
	"golang.org/x/sys/unix"

	"parallelfs.dev/operator/internal/node/spec"
	"parallelfs.dev/operator/test/patience"
)

// examplefs is a kernel filesystem.
var examplefs = spec.Mount{Path: "/mnt/scratch", FSType: "examplefs", Source: "examplefs_scratch", Kernel: true, Command: []string{"mount"}}

// superviseKernel supervises examplefs, which is mounted if try returns nil. tries returns the number of calls.
func (m *machine) superviseKernel(ctx context.Context, try func() error) (ended <-chan error, tries func() int) {
	count := 0
	s := supervisor{
		kernel: m.kernel(), mount: examplefs, log: slog.New(slog.NewTextHandler(&m.log, nil)), period: time.Millisecond, shortest: time.Millisecond,
		try: func(context.Context) error {
			m.mutex.Lock()
			defer m.mutex.Unlock()
			count++
			if err := try(); err != nil {
				return err
			}
			m.entries, m.answer, m.asked = append(m.entries, Entry{"examplefs", "examplefs_scratch"}), nil, 0
			return nil
		},
	}
	end := make(chan error, 1)
	go func() { end <- s.run(ctx) }()
	return end, func() int {
		m.mutex.Lock()
		defer m.mutex.Unlock()
		return count
	}
}

func works() error { return nil }

// answers waits until the filesystem is queried.
func (m *machine) answers(g Gomega) {
	m.do(func() { m.asked = 0 })
	g.Eventually(func() int {
		m.mutex.Lock()
		defer m.mutex.Unlock()
		return m.asked
	}).WithTimeout(patience.Bound(time.Minute)).Should(BeNumerically(">", 1))
}

func TestAFilesystemOfTheKernelIsMountedOnceAndUnmountedAtTheEnd(t *testing.T) {
	for name, c := range map[string]struct {
		before []Entry
		answer error
		tries  int
		said   string
	}{
		"when nothing is mounted":                              {tries: 1, said: "mounted, and the filesystem answers"},
		"when it is there after a restart: it is taken over":   {before: []Entry{{"examplefs", "examplefs_scratch"}}, tries: 0, said: "the mount is taken over"},
		"when it is there and answers with errors":             {before: []Entry{{"examplefs", "examplefs_scratch"}}, answer: syscall.EIO, tries: 0, said: "taken over"},
		"when it is there and dead: that one goes before":      {before: []Entry{{"examplefs", "examplefs_scratch"}}, answer: syscall.ESTALE, tries: 1, said: "left over"},
		"when a dead one of the same type is there":            {before: []Entry{{"examplefs", "examplefs_home"}}, answer: syscall.ESTALE, tries: 1, said: "left over"},
		"when it lies on another that stays below":             {before: []Entry{{"tmpfs", "tmpfs"}, {"examplefs", "examplefs_scratch"}}, tries: 0, said: "taken over"},
		"when two of it lie on each other: both go at the end": {before: []Entry{{"examplefs", "examplefs_scratch"}, {"examplefs", "examplefs_scratch"}}, tries: 0, said: "taken over"},
	} {
		t.Run(name, func(t *testing.T) {
			g, m := NewWithT(t), &machine{entries: c.before, answer: c.answer}
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			ended, tries := m.superviseKernel(ctx, works)
			g.Eventually(tries).WithTimeout(patience.Bound(time.Minute)).Should(Equal(c.tries))
			m.answers(g)
			cancel()
			g.Eventually(ended).WithTimeout(patience.Bound(time.Minute)).Should(Receive(BeNil()))
			g.Expect(tries()).To(Equal(c.tries))
			g.Expect(m.log.String()).To(ContainSubstring(c.said))
			for _, e := range m.entries {
				g.Expect(e.FSType).To(Equal("tmpfs"), "what is not ours stays")
			}
		})
	}
}

func TestAFilesystemOfTheKernelStaysMountedWhenItsServerHasEvictedTheClient(t *testing.T) {
	g, m := NewWithT(t), &machine{}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	ended, tries := m.superviseKernel(ctx, works)
	g.Eventually(tries).WithTimeout(patience.Bound(time.Minute)).Should(Equal(1))
	m.answers(g)
	m.do(func() { m.answer = syscall.ENOTCONN })
	m.answers(g)
	m.do(func() { m.answer = nil })
	m.answers(g)
	cancel()
	g.Eventually(ended).WithTimeout(patience.Bound(time.Minute)).Should(Receive(BeNil()))
	g.Expect(tries()).To(Equal(1))
	g.Expect(m.log.String()).To(ContainSubstring("the filesystem answers with an error"))
}

func TestAFilesystemOfTheKernelIsMountedAgainWhen(t *testing.T) {
	for name, happens := range map[string]func(m *machine){
		"it is unmounted": func(m *machine) { m.entries = nil },
		"it is dead":      func(m *machine) { m.answer = syscall.ESTALE },
	} {
		t.Run(name, func(t *testing.T) {
			g, m := NewWithT(t), &machine{}
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			ended, tries := m.superviseKernel(ctx, works)
			g.Eventually(tries).WithTimeout(patience.Bound(time.Minute)).Should(Equal(1))
			m.answers(g)
			m.do(func() { happens(m) })
			g.Eventually(tries).WithTimeout(patience.Bound(time.Minute)).Should(Equal(2))
			cancel()
			g.Eventually(ended).WithTimeout(patience.Bound(time.Minute)).Should(Receive(BeNil()))
			g.Expect(m.entries).To(BeEmpty())
		})
	}
}

func TestAMountThatFailsIsTriedAgain(t *testing.T) {
	g, m, failures := NewWithT(t), &machine{}, 3
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	ended, tries := m.superviseKernel(ctx, func() error {
		if failures--; failures >= 0 {
			return errors.New("the servers are not there yet")
		}
		return nil
	})
	g.Eventually(tries).WithTimeout(patience.Bound(time.Minute)).Should(Equal(4))
	m.answers(g)
	cancel()
	g.Eventually(ended).WithTimeout(patience.Bound(time.Minute)).Should(Receive(BeNil()))
	g.Expect(m.log.String()).To(ContainSubstring("the servers are not there yet"))
}

func TestAForeignMountEndsTheSupervisionOfAFilesystemOfTheKernelAndStays(t *testing.T) {
	for name, before := range map[string][]Entry{
		"a disk": {{"ext4", "/dev/sda1"}},
		"another filesystem of the kernel that works": {{"examplefs", "examplefs_home"}},
		"a disk on top of it":                         {{"examplefs", "examplefs_scratch"}, {"ext4", "/dev/sda1"}},
	} {
		t.Run(name, func(t *testing.T) {
			g, m := NewWithT(t), &machine{entries: before}
			ended, tries := m.superviseKernel(t.Context(), works)
			g.Eventually(ended).WithTimeout(patience.Bound(time.Minute)).Should(Receive(MatchError(ContainSubstring("has another filesystem mounted on it"))))
			g.Expect(tries()).To(BeZero())
			g.Expect(m.flags).To(BeEmpty(), "nothing is unmounted")
		})
	}
	t.Run("a disk that is mounted over it later", func(t *testing.T) {
		g, m := NewWithT(t), &machine{}
		ended, tries := m.superviseKernel(t.Context(), works)
		g.Eventually(tries).WithTimeout(patience.Bound(time.Minute)).Should(Equal(1))
		m.answers(g)
		m.do(func() { m.entries = append(m.entries, Entry{"ext4", "/dev/sda1"}) })
		g.Eventually(ended).WithTimeout(patience.Bound(time.Minute)).Should(Receive(MatchError(ContainSubstring("/dev/sda1"))))
		g.Expect(m.entries).To(HaveLen(2))
		g.Expect(m.flags).To(BeEmpty(), "nothing is unmounted")
	})
}

// Trap 12: a client mount remains after the servers are gone. Its processes can't be killed, the kubelet can't end the pod, and the node
// does not reboot.
func TestTrap12AMountWithoutItsServers(t *testing.T) {
	const plain, force, detach = 0, unix.MNT_FORCE, unix.MNT_DETACH
	ours, foreign := Entry{"examplefs", "examplefs_scratch"}, Entry{"ext4", "/dev/sda1"}
	for name, c := range map[string]struct {
		entries []Entry
		busy    bool
		hangs   []int
		flags   []int
		left    []Entry
		said    string
		fails   string
	}{
		"trap 12: it is unmounted, which filesystem of the kernel does without trying again": {entries: []Entry{ours}, flags: []int{plain}},
		"trap 12: when that hangs, open connections to the servers are abandoned": {
			entries: []Entry{ours}, hangs: []int{plain}, flags: []int{plain, force}, said: "aborted (MNT_FORCE)",
		},
		"trap 12: when that hangs too, it is taken out of the tree": {
			entries: []Entry{ours}, hangs: []int{plain, force}, flags: []int{plain, force, detach}, said: "detached (MNT_DETACH)",
		},
		"trap 12: a second mount does not wait for the same servers again": {
			entries: []Entry{ours, ours}, hangs: []int{plain, force}, flags: []int{plain, force, detach, force, detach},
		},
		"trap 12: when nothing helps, it is reported, and the pod ends nevertheless": {
			entries: []Entry{ours}, hangs: []int{plain, force, detach}, flags: []int{plain, force, detach}, left: []Entry{ours}, fails: "it stays mounted",
		},
		"trap 12: processes that use it get a moment, and keep it until they end": {
			entries: []Entry{ours}, busy: true, flags: []int{plain, plain, detach}, said: "when nothing uses it any longer",
		},
		"trap 12: what is mounted over it is not touched": {
			entries: []Entry{ours, foreign}, hangs: []int{plain}, left: []Entry{ours, foreign},
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				g, m := NewWithT(t), &machine{entries: c.entries, busy: c.busy, hangs: map[int]bool{}, stopped: t.Context().Done()}
				for _, flags := range c.hangs {
					m.hangs[flags] = true
				}
				k := m.kernel()
				k.limits.between = 2 * k.limits.busy
				err := k.unmountAll(examplefs, slog.New(slog.NewTextHandler(&m.log, nil)))
				if c.fails == "" {
					g.Expect(err).NotTo(HaveOccurred())
				} else {
					g.Expect(err).To(MatchError(ContainSubstring(c.fails)))
				}
				m.do(func() {
					if c.left == nil {
						c.left = []Entry{}
					}
					g.Expect(m.entries).To(Equal(c.left))
					g.Expect(m.flags).To(Equal(c.flags))
				})
				g.Expect(m.log.String()).To(ContainSubstring(c.said))
			})
		})
	}
	for last, flags := range map[int][]int{plain: {plain}, force: {plain, force}} {
		t.Run(fmt.Sprintf("trap 12: an unmount that is done but does not return is not waited for: flags %d", last), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				g, m := NewWithT(t), &machine{entries: []Entry{ours}}
				k := m.kernel()
				k.unmount = func(_ string, flag int) error {
					flag &^= unix.UMOUNT_NOFOLLOW
					m.do(func() {
						m.flags = append(m.flags, flag)
						if flag == last {
							m.entries = nil
						}
					})
					<-t.Context().Done()
					return nil
				}
				g.Expect(k.unmountAll(examplefs, slog.New(slog.NewTextHandler(&m.log, nil)))).To(Succeed())
				m.do(func() { g.Expect(m.flags).To(Equal(flags)) })
				g.Expect(m.log.String()).To(ContainSubstring("goes on in the background"))
			})
		})
	}
}

// mounting is a shell command on a machine whose mount table is a file.
func mounting(t *testing.T, script string) (r *resident, table string) {
	t.Helper()
	table = filepath.Join(t.TempDir(), "table")
	m := examplefs
	m.Command = []string{"sh", "-c", script, "sh", table}
	r = &resident{
		mount: m, lookup: os.LookupEnv, output: &bytes.Buffer{}, limit: time.Minute,
		kernel: kernel{
			cannot: func(string) (string, bool) { return "", false },
			at: func(string) ([]Entry, error) {
				if content, err := os.ReadFile(table); err == nil {
					return []Entry{{"examplefs", string(bytes.TrimSpace(content))}}, nil
				}
				return nil, nil
			},
		},
	}
	return r, table
}

func TestTheCommandThatMounts(t *testing.T) {
	for name, c := range map[string]struct {
		script string
		change func(r *resident)
		final  bool
		fails  string
	}{
		"mounts":          {script: `echo examplefs_scratch > "$1"`},
		"fails":           {script: "echo no route to the servers >&2; exit 32", fails: "could not mount the filesystem (exit code 32; the kernel's log, dmesg, may say more): no route"},
		"mounts nothing":  {script: "true", fails: "sh ended well, but /mnt/scratch is not mounted"},
		"mounts another":  {script: `echo examplefs_home > "$1"`, final: true, fails: `type examplefs from "examplefs_home"`},
		"takes too long":  {script: "echo waiting; sleep 600", change: func(r *resident) { r.limit = 100 * time.Millisecond }, fails: "did not mount the filesystem within 100ms and was ended"},
		"is not there":    {change: func(r *resident) { r.mount.Command = []string{"no-such-program"} }, final: true, fails: "can't start no-such-program"},
		"has no variable": {change: func(r *resident) { r.mount.Command = []string{"mount", "$(FREE_PORT)"} }, fails: "FREE_PORT is not set"},
		"has no filesystem in the kernel, and is not run": {
			script: `echo examplefs_scratch > "$1"`, final: true, fails: "this node's kernel has no filesystem examplefs",
			change: func(r *resident) {
				r.kernel.cannot = func(string) (string, bool) { return "this node's kernel has no filesystem examplefs", true }
			},
		},
		"finds that the kernel could not load the module": {
			script: "echo unknown filesystem type >&2; exit 32", final: true, fails: "load the module (sh ended with exit code 32: unknown filesystem type)",
			change: func(r *resident) { r.kernel.cannot = func(string) (string, bool) { return "load the module", false } },
		},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			r, _ := mounting(t, c.script)
			if c.change != nil {
				c.change(r)
			}
			err := r.try(t.Context())
			if c.fails == "" {
				g.Expect(err).NotTo(HaveOccurred())
				return
			}
			g.Expect(err).To(MatchError(ContainSubstring(c.fails)))
			_, final := errors.AsType[finalError](err)
			g.Expect(final).To(Equal(c.final))
		})
	}
	t.Run("is ended with the pod", func(t *testing.T) {
		g := NewWithT(t)
		r, _ := mounting(t, "sleep 600")
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		g.Expect(r.try(ctx)).To(MatchError(ContainSubstring("was ended before the filesystem was mounted")))
	})
}

func TestTheFilesOfAMountAreWrittenBeforeEveryTry(t *testing.T) {
	g := NewWithT(t)
	r, table := mounting(t, `grep -q "connClientPortUDP=$PORT" "$2" && echo examplefs_scratch > "$1"`)
	path := filepath.Join(t.TempDir(), "etc", "examplefs-client.conf")
	taken, port := aPort(t)
	r.mount.FreePort = port
	r.mount.Files = []spec.File{{Path: path, Content: "sysMgmtdHost=$(NODE_IP)\nconnClientPortUDP=$(FREE_PORT)\n", Mode: 0o640}}
	r.mount.Command = append(r.mount.Command, path)
	t.Setenv("NODE_IP", "10.0.0.5")
	for try := range 2 {
		if try == 1 {
			g.Expect(taken.Close()).To(Succeed())
			g.Expect(os.Remove(table)).To(Succeed())
		}
		g.Expect(r.try(t.Context())).To(Succeed())
		content, err := os.ReadFile(path)
		g.Expect(err).NotTo(HaveOccurred())
		if try == 0 {
			g.Expect(string(content)).To(And(HavePrefix("sysMgmtdHost=10.0.0.5\nconnClientPortUDP="), Not(ContainSubstring(strconv.Itoa(int(port))))))
		} else {
			g.Expect(string(content)).To(Equal("sysMgmtdHost=10.0.0.5\nconnClientPortUDP=" + strconv.Itoa(int(port)) + "\n"))
		}
	}
	info, err := os.Stat(path)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(info.Mode().Perm()).To(Equal(fs.FileMode(0o640)))
}

// aPort binds the first of 8 free UDP ports outside of the range of automatic ports (ip_local_port_range).
func aPort(t *testing.T) (net.PacketConn, int32) {
	t.Helper()
	for {
		port := 20000 + rand.Int32N(10000)
		free := true
		for i := range int32(freePorts) {
			one, err := isFree(port + i)
			free = free && one && err == nil
		}
		taken, err := (&net.ListenConfig{}).ListenPacket(t.Context(), "udp4", net.JoinHostPort("127.0.0.1", strconv.Itoa(int(port))))
		if err == nil {
			t.Cleanup(func() { taken.Close() })
			if free {
				return taken, port
			}
		}
	}
}

func TestTheFreePort(t *testing.T) {
	bind := func(t *testing.T, network, address string, port int32) {
		t.Helper()
		socket, err := (&net.ListenConfig{}).ListenPacket(t.Context(), network, net.JoinHostPort(address, strconv.Itoa(int(port))))
		NewWithT(t).Expect(err).NotTo(HaveOccurred())
		t.Cleanup(func() { socket.Close() })
	}
	t.Run("is the first when it is mounted nowhere", func(t *testing.T) {
		g := NewWithT(t)
		taken, port := aPort(t)
		g.Expect(taken.Close()).To(Succeed())
		g.Expect(freePort(port)).To(Equal(port))
	})
	t.Run("is not one that is bound to a single address", func(t *testing.T) {
		_, port := aPort(t)
		NewWithT(t).Expect(freePort(port)).To(BeNumerically(">", port))
	})
	t.Run("is not one that is bound for IPv6 only", func(t *testing.T) {
		taken, port := aPort(t)
		NewWithT(t).Expect(taken.Close()).To(Succeed())
		bind(t, "udp6", "::1", port)
		NewWithT(t).Expect(freePort(port)).To(BeNumerically(">", port))
	})
	t.Run("is none when all 4 are taken", func(t *testing.T) {
		_, port := aPort(t)
		for i := int32(1); i < freePorts; i++ {
			bind(t, "udp4", "127.0.0.1", port+i)
		}
		_, err := freePort(port)
		NewWithT(t).Expect(err).To(MatchError(ContainSubstring("none of the UDP ports " + strconv.Itoa(int(port)) + " to " + strconv.Itoa(int(port+freePorts-1)))))
	})
}

func TestTrap12AnOpenQuestionDoesNotKeepAFilesystemFromBeingUnmounted(t *testing.T) {
	g, m := NewWithT(t), &machine{silent: true, entries: []Entry{{"examplefs", "examplefs_scratch"}}}
	k := m.kernel()
	k.limits.answer = 10 * time.Millisecond
	unmount := k.unmount
	k.unmount = func(path string, flags int) error {
		m.mutex.Lock()
		open := m.asked - m.takenBack
		m.mutex.Unlock()
		if open > 0 {
			return unix.EBUSY // a process that waits for the filesystem uses it
		}
		return unmount(path, flags)
	}
	s := supervisor{
		kernel: k, mount: examplefs, log: slog.New(slog.NewTextHandler(&m.log, nil)), period: time.Millisecond, shortest: time.Millisecond,
		try: func(context.Context) error { return errors.New("it is mounted already") },
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- s.run(ctx) }()
	g.Eventually(func() int { // the first query checks whether the mount is dead, the second one is still unanswered
		m.mutex.Lock()
		defer m.mutex.Unlock()
		return m.asked
	}).WithTimeout(patience.Bound(time.Minute)).Should(Equal(2))
	cancel()
	g.Eventually(ended).WithTimeout(patience.Bound(time.Minute)).Should(Receive(BeNil()))
	g.Expect(m.entries).To(BeEmpty())
	g.Expect(m.flags).To(Equal([]int{0}), "the first try is enough")
	g.Expect(m.log.String()).To(ContainSubstring("the mount is taken over"), "one that does not answer stays until then")
}
