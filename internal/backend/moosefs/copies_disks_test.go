//go:build disks

package moosefs

import (
	"bytes"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	. "github.com/onsi/gomega"

	"parallelfs.dev/operator/internal/node/recovery"
	"parallelfs.dev/operator/test/patience"
)

// writer returns the process with which a master saves its changes.
func (m *master) writer() int {
	m.t.Helper()
	pid := m.process.Process.Pid
	content, err := os.ReadFile(fmt.Sprintf("/proc/%d/task/%d/children", pid, pid))
	m.Expect(err).NotTo(HaveOccurred())
	for child := range strings.FieldsSeq(string(content)) {
		title, err := os.ReadFile(filepath.Join("/proc", child, "cmdline"))
		if err == nil && bytes.Contains(title, []byte("data writer")) {
			n, err := strconv.Atoi(child)
			m.Expect(err).NotTo(HaveOccurred())
			return n
		}
	}
	m.t.Fatal("the master has no data writer")
	return 0
}

// stopWriter stops the writer of a master until the returned function is called.
func (m *master) stopWriter() (goOn func()) {
	m.t.Helper()
	writer := m.writer()
	m.Expect(syscall.Kill(writer, syscall.SIGSTOP)).To(Succeed())
	return func() { _ = syscall.Kill(writer, syscall.SIGCONT) }
}

// gate is a proxy between a metalogger and its master that can be closed.
type gate struct {
	port int
	lock sync.Mutex
	// open reports whether connections pass. The others are the present connections.
	open        bool
	connections []net.Conn
	through     int
}

// newGate opens a gate to a port.
func newGate(t *testing.T, to int) *gate {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	NewWithT(t).Expect(err).NotTo(HaveOccurred())
	g := &gate{port: l.Addr().(*net.TCPAddr).Port, open: true}
	t.Cleanup(func() { _ = l.Close(); g.close() })
	go func() {
		for {
			from, err := l.Accept()
			if err != nil {
				return
			}
			g.pass(from, fmt.Sprintf("127.0.0.1:%d", to))
		}
	}()
	return g
}

func (g *gate) pass(from net.Conn, address string) {
	g.lock.Lock()
	defer g.lock.Unlock()
	to, err := net.Dial("tcp", address)
	if !g.open || err != nil {
		_ = from.Close()
		if err == nil {
			_ = to.Close()
		}
		return
	}
	g.through++
	g.connections = append(g.connections, from, to)
	for _, way := range [][2]net.Conn{{from, to}, {to, from}} {
		go func() {
			_, _ = io.Copy(way[0], way[1])
			_, _ = way[0].Close(), way[1].Close()
		}()
	}
}

// passed returns how many connections have passed.
func (g *gate) passed() int {
	g.lock.Lock()
	defer g.lock.Unlock()
	return g.through
}

func (g *gate) close() {
	g.lock.Lock()
	defer g.lock.Unlock()
	g.open = false
	for _, c := range g.connections {
		_ = c.Close()
	}
	g.connections = nil
}

func (g *gate) reopen() {
	g.lock.Lock()
	defer g.lock.Unlock()
	g.open = true
}

// program creates directories, one after the other, until it is ended. Those whose creation was acknowledged are named 0, 1 and so on.
type program struct {
	lock sync.Mutex
	made int
	end  chan struct{}
	done chan struct{}
}

func startProgram(path string) *program {
	p := &program{end: make(chan struct{}), done: make(chan struct{})}
	go func() {
		defer close(p.done)
		for {
			select {
			case <-p.end:
				return
			default:
			}
			if os.Mkdir(filepath.Join(path, strconv.Itoa(p.is())), 0o755) != nil {
				return
			}
			p.lock.Lock()
			p.made++
			p.lock.Unlock()
		}
	}()
	return p
}

func (p *program) is() int {
	p.lock.Lock()
	defer p.lock.Unlock()
	return p.made
}

// goesOn waits until the program has created some more.
func (p *program) goesOn(g *WithT) {
	is := p.is()
	g.Eventually(p.is).WithTimeout(patience.Bound(time.Minute)).WithPolling(time.Millisecond).Should(BeNumerically(">", is+20), "programs go on")
}

// event happens to a master and its metalogger while a program works and the writer of the master is stopped for a while. It returns the
// master that runs afterwards.
type event func(m *master, p *program, own string, g *gate, still time.Duration) *master

// events lists the events that a copy has to survive. The times are the subject of the table, so the tests sleep for them.
var events = map[string]event{
	"join": func(m *master, p *program, own string, g *gate, still time.Duration) *master {
		goOn := m.stopWriter()
		defer goOn()
		p.goesOn(m.WithT)
		m.followAt(own, g.port)
		m.Eventually(g.passed).WithTimeout(patience.Bound(20 * time.Second)).WithPolling(time.Millisecond).Should(Equal(1))
		time.Sleep(still) //nolint:forbidigo // the time itself is what the test changes
		return m
	},
	"reconnection": func(m *master, p *program, own string, g *gate, still time.Duration) *master {
		m.followAt(own, g.port)
		m.joined(own)
		g.close()
		p.goesOn(m.WithT)
		goOn := m.stopWriter()
		defer goOn()
		p.goesOn(m.WithT)
		g.reopen()
		m.Eventually(g.passed).WithTimeout(patience.Bound(20 * time.Second)).WithPolling(time.Millisecond).Should(Equal(2))
		time.Sleep(still) //nolint:forbidigo // the time itself is what the test changes
		return m
	},
	"restart": func(m *master, p *program, own string, g *gate, still time.Duration) *master {
		m.followAt(own, g.port)
		m.joined(own)
		goOn := m.stopWriter()
		p.goesOn(m.WithT)
		m.Expect(m.process.Process.Signal(syscall.SIGTERM)).To(Succeed())
		time.Sleep(still) //nolint:forbidigo // the time itself is what the test changes
		goOn()
		<-m.ended
		m.Expect(m.failed).NotTo(HaveOccurred(), m.says)
		return m.again()
	},
	"kill": func(m *master, p *program, own string, g *gate, still time.Duration) *master {
		m.followAt(own, g.port)
		m.joined(own)
		m.stopWriter()
		p.goesOn(m.WithT)
		time.Sleep(still) //nolint:forbidigo // the time itself is what the test changes
		m.kill()
		return m.again("-a")
	},
}

// again starts a master again with the same configuration.
func (m *master) again(arguments ...string) *master {
	m.t.Helper()
	return startMasterWith(m.t, m.more, m.data, m.port, arguments...)
}

// outcome is the state after an event: why the copy can't be read, and how many acknowledged directories are missing.
type outcome struct {
	unread  string
	missing int
}

// after causes an event for a master with this line of configuration, and returns the state of the metalogger's copy.
func after(t *testing.T, more string, happens event, still time.Duration) outcome {
	t.Helper()
	m := startMasterWith(t, more, fresh(t), freePorts(t))
	own, g := t.TempDir(), newGate(t, m.port)
	var out outcome
	m.mounted(func(path string) {
		p := startProgram(path)
		p.goesOn(m.WithT)
		m = happens(m, p, own, g, still)
		m.joined(own)
		p.goesOn(m.WithT)
		close(p.end)
		<-p.done
		if !m.follows(own) {
			out.unread = "the metalogger has not got the last change after 20 s"
		}
		for i := range p.is() {
			if _, err := os.Lstat(filepath.Join(path, strconv.Itoa(i))); err != nil {
				out.missing++
			}
		}
	})
	m.kill()
	if _, err := recovery.Run(t.Context(), lookingAt(t, ofMetalogger(own))); err != nil && out.unread == "" {
		out.unread = err.Error()
	}
	return out
}

func TestTheCopyOfAMetaloggerThatJoinsWhileTheWriterOfItsMasterIsStoppedCanBeRead(t *testing.T) {
	NewWithT(t).Expect(after(t, savingOption(t), events["join"], 200*time.Millisecond)).To(BeZero())
}
