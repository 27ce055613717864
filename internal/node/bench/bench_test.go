package bench_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	. "github.com/onsi/gomega"

	"parallelfs.dev/operator/internal/node/bench"
	"parallelfs.dev/operator/internal/node/measured"
	"parallelfs.dev/operator/internal/node/printed"
	"parallelfs.dev/operator/internal/node/spec"
	"parallelfs.dev/operator/test/patience"
)

// client is a node with a filesystem, which is a temporary directory that also holds a user's data.
type client struct {
	mount, outside string
	// temporary is the directory for temporary files of a container.
	temporary    string
	mounted      error
	output, said locked
	execed       []string
	connected    []string
	// lacks lists the programs that the node does not have.
	lacks []string
}

// locked is a buffer that the tool and its runner can write to concurrently, as to a file.
type locked struct {
	mutex  sync.Mutex
	buffer bytes.Buffer
}

func (l *locked) Write(p []byte) (int, error) {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	return l.buffer.Write(p)
}

func (l *locked) String() string {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	return l.buffer.String()
}

func newClient(t *testing.T) *client {
	t.Helper()
	g := NewWithT(t)
	c := &client{mount: filepath.Join(t.TempDir(), "scratch"), outside: t.TempDir(), temporary: t.TempDir()}
	for _, directory := range []string{"home/anna", "ssd"} {
		g.Expect(os.MkdirAll(filepath.Join(c.mount, directory), 0o755)).To(Succeed())
	}
	for _, file := range []string{filepath.Join(c.mount, "home", "anna", "thesis.tex"), filepath.Join(c.outside, "passwd")} {
		g.Expect(os.WriteFile(file, []byte("precious"), 0o600)).To(Succeed())
	}
	t.Cleanup(func() {
		for _, file := range []string{filepath.Join(c.mount, "home", "anna", "thesis.tex"), filepath.Join(c.outside, "passwd")} {
			g.Expect(os.ReadFile(file)).To(BeEquivalentTo("precious"), "a benchmark touched %s", file)
		}
	})
	return c
}

func (c *client) host() bench.Host {
	return bench.Host{
		CheckMount: func(context.Context, spec.Mount) error { return c.mounted },
		Stdout:     &c.output, Stderr: &c.said,
		Exec:        func(_ string, argv, _ []string) error { c.execed = argv; return errors.New("became the command") },
		HostFile:    filepath.Join(c.temporary, "hosts"),
		Environment: os.Environ(),
		Resolve:     func(context.Context, string) error { return nil },
		Connect: func(_ context.Context, host string, port int) error {
			c.connected = append(c.connected, fmt.Sprintf("%s:%d", host, port))
			return nil
		},
		Address: func() (string, error) { return "10.1.0.9", nil },
		OnNode: bench.OnNode{
			Has:  func(program string) bool { return !slices.Contains(c.lacks, program) },
			Path: func(path string) string { return path },
			Command: func(argv, environment []string) []string {
				return slices.Concat([]string{"env"}, environment, argv)
			},
		},
	}
}

func (c *client) path(parts ...string) string {
	return filepath.Join(append([]string{c.mount}, parts...)...)
}

// script is a benchmark whose tool is a shell script.
func (c *client) script(script string) spec.Benchmark {
	root := c.path("ssd", bench.Home, "run-1")
	return spec.Benchmark{
		Mount: spec.Mount{Path: c.mount, FSType: "fuse"}, Root: root, Directory: filepath.Join(root, "p0-r1"),
		Argv: []string{"sh", "-c", script}, TimeoutSeconds: 600,
	}
}

func code(err error) int {
	if tool, ended := errors.AsType[*bench.ExitError](err); ended {
		return tool.Code
	}
	return -1
}

func TestAToolRunsInAFreshDirectoryThatIsRemoved(t *testing.T) {
	g, c := NewWithT(t), newClient(t)
	b := c.script(`pwd; ls; echo $COLOR; echo data > file; echo warning >&2`)
	b.Env = []string{"COLOR=red"}
	// This is a leftover of a killed attempt.
	g.Expect(os.MkdirAll(filepath.Join(b.Directory, "old"), 0o755)).To(Succeed())
	g.Expect(bench.Run(t.Context(), b, c.host())).To(Succeed())
	g.Expect(c.output.String()).To(Equal(b.Directory + "\nred\n"))
	g.Expect(c.said.String()).To(Equal("warning\n"))
	g.Expect(b.Directory).NotTo(BeADirectory())
}

func TestBothOutputsOfAToolAreCountedInTheirOrder(t *testing.T) {
	g, c := NewWithT(t), newClient(t)
	h := c.host()
	out := printed.New(&c.output)
	h.Stdout, h.Stderr = out, out
	g.Expect(bench.Run(t.Context(), c.script(`echo 1; echo warning >&2; echo 2; printf 3`), h)).To(Succeed())
	g.Expect(out.Close()).To(Succeed())
	output, err := printed.Check([]byte(c.output.String()))
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(string(output)).To(Equal("1\nwarning\n2\n3\n"))
}

func TestAToolsExitCodeIsReturned(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		script string
		code   int
	}{
		"its own":           {"exit 7", 7},
		"that of a signal":  {"kill -SEGV $$", 139},
		"one with children": {"sleep 600 & exit 3", 3},
	} {
		t.Run(name, func(t *testing.T) {
			g, at := NewWithT(t), newClient(t)
			b := at.script(c.script)
			g.Expect(code(bench.Run(t.Context(), b, at.host()))).To(Equal(c.code))
			g.Expect(b.Directory).NotTo(BeADirectory())
		})
	}
}

func TestAToolThatTakesTooLongIsEndedWithItsChildren(t *testing.T) {
	t.Parallel()
	g, c := NewWithT(t), newClient(t)
	pids := filepath.Join(c.outside, "pids")
	b := c.script(`sleep 600 & echo $! > ` + pids + `; echo half a table; sleep 600`)
	limit := int64(patience.Bound(2 * time.Second).Seconds())
	b.TimeoutSeconds = limit
	g.Expect(code(bench.Run(t.Context(), b, c.host()))).To(Equal(bench.TimedOut))
	g.Expect(c.output.String()).To(Equal("half a table\n"), "what it printed until then is kept")
	g.Expect(c.said.String()).To(ContainSubstring(fmt.Sprintf("parallelfs: the tool is ended after %s (pointTimeout)", time.Duration(limit)*time.Second)))
	g.Expect(b.Directory).NotTo(BeADirectory())
	content, err := os.ReadFile(pids)
	g.Expect(err).NotTo(HaveOccurred())
	pid, err := strconv.Atoi(strings.TrimSpace(string(content)))
	g.Expect(err).NotTo(HaveOccurred())
	g.Eventually(running).WithArguments(pid).WithTimeout(patience.Bound(time.Minute)).Should(BeFalse())
}

// running is false for a process that has ended, even if its parent has not waited for it yet.
func running(pid int) bool {
	content, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return false
	}
	_, state, _ := strings.Cut(string(content), ") ")
	return !strings.HasPrefix(state, "Z")
}

func TestAToolInAStoppedPodHasFailedAndLeavesNothing(t *testing.T) {
	g, c := NewWithT(t), newClient(t)
	begun := filepath.Join(c.outside, "begun")
	// A tool that exits with 0 on SIGTERM has still not measured everything.
	b := c.script(`trap "exit 0" TERM; touch ` + begun + `; while :; do sleep 0.01; done`)
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- bench.Run(ctx, b, c.host()) }()
	g.Eventually(begun).WithTimeout(patience.Bound(time.Minute)).Should(BeAnExistingFile())
	cancel()
	var err error
	g.Eventually(ended).WithTimeout(patience.Bound(time.Minute)).Should(Receive(&err))
	g.Expect(code(err)).To(Equal(143))
	g.Expect(b.Directory).NotTo(BeADirectory())
}

func TestNothingIsWrittenOrRemovedWhen(t *testing.T) {
	for name, c := range map[string]struct {
		change func(g Gomega, c *client, b *spec.Benchmark)
		reason string
		// notCleaned is true for cases that concern Run only.
		notCleaned bool
	}{
		"the filesystem is not mounted": {
			change: func(_ Gomega, c *client, _ *spec.Benchmark) { c.mounted = errors.New("/mnt/scratch is not mounted") },
			reason: "is not mounted", notCleaned: true,
		},
		"the mount point is not there": {
			change: func(_ Gomega, _ *client, b *spec.Benchmark) {
				b.Mount.Path, b.Root, b.Directory = "/no-such", "/no-such/"+bench.Home+"/1", "/no-such/"+bench.Home+"/1/a"
			},
			reason: "can't open /no-such", notCleaned: true,
		},
		"the run's directory is outside of the mount": {
			change: func(_ Gomega, c *client, b *spec.Benchmark) { b.Root = filepath.Join(c.outside, bench.Home, "run-1") },
			reason: "is not below the mount", notCleaned: true,
		},
		"the run's directory is the mount": {
			change: func(_ Gomega, c *client, b *spec.Benchmark) { b.Root = c.mount },
			reason: "is not below the mount", notCleaned: true,
		},
		"the run's directory leads out by ..": {
			change: func(_ Gomega, c *client, b *spec.Benchmark) { b.Root = c.mount + "/ssd/" + bench.Home + "/../../home" },
			reason: "is not below the mount", notCleaned: true,
		},
		"the run's directory is a user's": {
			change: func(_ Gomega, c *client, b *spec.Benchmark) { b.Root = c.path("home", "anna") },
			reason: "is not in a directory .parallelfs-benchmarks", notCleaned: true,
		},
		"the run's directory is that of all runs": {
			change: func(_ Gomega, c *client, b *spec.Benchmark) { b.Root = c.path("ssd", bench.Home) },
			reason: "is not in a directory .parallelfs-benchmarks", notCleaned: true,
		},
		"the run's directory is too deep to be one": {
			change: func(_ Gomega, c *client, b *spec.Benchmark) { b.Root = c.path("ssd", bench.Home, "run-1", "p0-r1") },
			reason: "is not in a directory .parallelfs-benchmarks", notCleaned: true,
		},
		"the directory of all runs is a link to a user's data": {
			change: func(g Gomega, c *client, b *spec.Benchmark) {
				g.Expect(os.Symlink("../home", c.path("ssd", bench.Home))).To(Succeed())
				b.Root = c.path("ssd", bench.Home, "anna")
				b.Directory = filepath.Join(b.Root, "p0-r1")
			},
			reason: "a symbolic link is not followed", notCleaned: true,
		},
		"the pool's directory is a link out of the filesystem": {
			change: func(g Gomega, c *client, _ *spec.Benchmark) {
				g.Expect(os.Remove(c.path("ssd"))).To(Succeed())
				g.Expect(os.Symlink(c.outside, c.path("ssd"))).To(Succeed())
			},
			reason: "a symbolic link is not followed", notCleaned: true,
		},
		"the repetition's directory is the run's": {
			change: func(_ Gomega, _ *client, b *spec.Benchmark) { b.Directory = b.Root },
			reason: "is not below the run's own",
		},
		"a directory inside of the run's is a link to a user's data": {
			change: func(g Gomega, c *client, b *spec.Benchmark) {
				g.Expect(os.MkdirAll(b.Root, 0o755)).To(Succeed())
				g.Expect(os.Symlink(c.path("home"), filepath.Join(b.Root, "link"))).To(Succeed())
				b.Directory = filepath.Join(b.Root, "link", "anna")
			},
			reason: "a symbolic link is not followed",
		},
		"there is no time": {
			change: func(_ Gomega, _ *client, b *spec.Benchmark) { b.TimeoutSeconds = 0 },
			reason: "timeoutSeconds is 0",
		},
	} {
		t.Run(name, func(t *testing.T) {
			g, at := NewWithT(t), newClient(t)
			b := at.script("echo the tool ran")
			c.change(g, at, &b)
			before := tree(t, at.mount)
			g.Expect(bench.Run(t.Context(), b, at.host())).To(MatchError(ContainSubstring(c.reason)))
			g.Expect(at.output.String()).To(BeEmpty())
			g.Expect(tree(t, at.mount)).To(Equal(before))
			if !c.notCleaned {
				return
			}
			g.Expect(bench.Work(t.Context(), b, []string{"true"}, at.host())).To(MatchError(ContainSubstring(c.reason)))
			g.Expect(at.execed).To(BeNil())
			g.Expect(bench.Clean(t.Context(), b, at.host())).To(MatchError(ContainSubstring(c.reason)))
			g.Expect(tree(t, at.mount)).To(Equal(before))
		})
	}
}

// tree lists all names below a directory.
func tree(t *testing.T, root string) []string {
	t.Helper()
	var names []string
	err := filepath.WalkDir(root, func(path string, _ os.DirEntry, err error) error { names = append(names, path); return err })
	NewWithT(t).Expect(err).NotTo(HaveOccurred())
	return names
}

func TestCleanRemovesTheRunAndNothingElse(t *testing.T) {
	g, c := NewWithT(t), newClient(t)
	b := c.script("")
	other := c.path("ssd", bench.Home, "run-2", "p0-r1")
	for _, directory := range []string{filepath.Join(b.Directory, "deep", "deeper"), other} {
		g.Expect(os.MkdirAll(directory, 0o755)).To(Succeed())
	}
	// A tool may leave links. The links are removed, but the files that they lead to stay (the client's cleanup checks it).
	g.Expect(os.Symlink(c.path("home"), filepath.Join(b.Directory, "inside"))).To(Succeed())
	g.Expect(os.Symlink(c.outside, filepath.Join(b.Root, "outside"))).To(Succeed())

	g.Expect(bench.Clean(t.Context(), b, c.host())).To(Succeed())
	g.Expect(b.Root).NotTo(BeADirectory())
	g.Expect(other).To(BeADirectory())

	g.Expect(bench.Clean(t.Context(), b, c.host())).To(Succeed(), "it can be run again")
	g.Expect(os.RemoveAll(c.path("ssd", bench.Home))).To(Succeed())
	g.Expect(bench.Clean(t.Context(), b, c.host())).To(Succeed(), "and even when there is nothing at all")
	g.Expect(c.path("ssd")).To(BeADirectory())
}

func TestARunThatIsALinkIsRemovedAndNotFollowed(t *testing.T) {
	g, c := NewWithT(t), newClient(t)
	b := c.script("")
	g.Expect(os.MkdirAll(filepath.Dir(b.Root), 0o755)).To(Succeed())
	g.Expect(os.Symlink(c.path("home", "anna"), b.Root)).To(Succeed())
	g.Expect(bench.Clean(t.Context(), b, c.host())).To(Succeed())
	_, err := os.Lstat(b.Root)
	g.Expect(err).To(MatchError(os.ErrNotExist))
}

func TestAWorkerMakesTheDirectoryAndBecomesTheCommand(t *testing.T) {
	g, c := NewWithT(t), newClient(t)
	b := c.script("")
	for range 2 { // the second worker finds the directories of the first
		g.Expect(bench.Work(t.Context(), b, []string{"sh", "-e"}, c.host())).To(MatchError(ContainSubstring("became the command")))
		g.Expect(c.execed).To(Equal([]string{"sh", "-e"}))
		g.Expect(b.Directory).To(BeADirectory())
	}
	g.Expect(bench.Work(t.Context(), b, nil, c.host())).To(MatchError(ContainSubstring("give it behind --")))
	g.Expect(bench.Work(t.Context(), b, []string{"no-such-program"}, c.host())).To(MatchError(ContainSubstring(`no program "no-such-program"`)))
}

func TestALauncherWritesTheHostFileAndRunsTheTool(t *testing.T) {
	g, c := NewWithT(t), newClient(t)
	mpi := filepath.Join(c.outside, "hostfile")
	g.Expect(os.WriteFile(mpi, []byte("w-0.run slots=2\nw-1.run:2 # the second\n\n"), 0o600)).To(Succeed())
	b := c.script("")
	b.Argv = []string{"sh", "-c", "echo $0; cat $1", "$(LAUNCHER_IP)", "$(HOSTS_FILE)"}
	b.Placement = []int{2, 1}
	b.Files = []spec.BenchmarkFile{{PerProcess: "$(HOST) $(DIRECTORY) /usr/bin/iozone\n"}}
	// The launcher has no mount.
	c.mounted = errors.New("is not mounted")
	g.Expect(bench.Launch(t.Context(), b, bench.Launcher{HostFile: mpi, SSHPort: 2222}, c.host())).To(Succeed())
	g.Expect(c.output.String()).To(Equal(strings.ReplaceAll("10.1.0.9\nw-0.run D /usr/bin/iozone\nw-1.run D /usr/bin/iozone\nw-0.run D /usr/bin/iozone\n", "D", b.Directory)))
	g.Expect(c.connected).To(Equal([]string{"w-0.run:2222", "w-1.run:2222"}))
	g.Expect(b.Directory).NotTo(BeADirectory())
}

func TestALauncherStartsNothingWhen(t *testing.T) {
	for name, c := range map[string]struct {
		hosts  string
		change func(h *bench.Host, b *spec.Benchmark)
		reason string
	}{
		"the host file names nobody": {hosts: "# nobody\n", reason: "names no host"},
		"a worker has no address": {
			hosts: "w-0", reason: "the worker w-0 has no address after 1s",
			change: func(h *bench.Host, b *spec.Benchmark) {
				b.TimeoutSeconds = 1
				h.Resolve = func(context.Context, string) error { return errors.New("no such host") }
			},
		},
		"a worker does not accept ssh": {
			hosts: "w-0", reason: "the worker w-0 does not accept ssh after 1s",
			change: func(h *bench.Host, b *spec.Benchmark) {
				b.TimeoutSeconds = 1
				h.Connect = func(context.Context, string, int) error { return errors.New("connection refused") }
			},
		},
		"there are more workers than places": {
			hosts: "w-0\nw-1", reason: "processes are placed on 1 workers, and the MPI operator's host file names 2",
		},
		"no process is placed": {
			hosts: "w-0", reason: "no process is placed on any worker",
			change: func(_ *bench.Host, b *spec.Benchmark) { b.Placement = []int{0} },
		},
		"a number of processes is less than none": {
			hosts: "w-0\nw-1", reason: "-1 processes can't be placed",
			change: func(_ *bench.Host, b *spec.Benchmark) { b.Placement = []int{2, -1} },
		},
		"a file would lie outside of the directory for temporary files": {
			hosts: "w-0", reason: "can't write the tool's file /etc/hosts: it would lie neither",
			change: func(_ *bench.Host, b *spec.Benchmark) {
				b.Files = []spec.BenchmarkFile{{Path: "/etc/hosts", Text: "x"}}
			},
		},
		"a second file has no path": {
			hosts: "w-0", reason: "file 2 has no path",
			change: func(_ *bench.Host, b *spec.Benchmark) { b.Files = []spec.BenchmarkFile{{Text: "x"}, {Text: "y"}} },
		},
		"the image has no mpirun": {
			hosts: "w-0", reason: "needs Open MPI 4 or 5",
			change: func(_ *bench.Host, b *spec.Benchmark) { b.Ranks = &spec.Ranks{} },
		},
		"the directory is outside of the mount": {
			hosts: "w-0", reason: "is not below",
			change: func(_ *bench.Host, b *spec.Benchmark) { b.Directory = "/etc" },
		},
	} {
		t.Run(name, func(t *testing.T) {
			g, at := NewWithT(t), newClient(t)
			mpi := filepath.Join(at.outside, "hostfile")
			g.Expect(os.WriteFile(mpi, []byte(c.hosts), 0o600)).To(Succeed())
			b, h := at.script("echo the tool ran"), at.host()
			b.Placement = []int{1}
			if c.change != nil {
				c.change(&h, &b)
			}
			if b.Ranks != nil {
				t.Setenv("PATH", at.temporary)
			}
			g.Expect(bench.Launch(t.Context(), b, bench.Launcher{HostFile: mpi, SSHPort: 22}, h)).To(MatchError(ContainSubstring(c.reason)))
			g.Expect(at.output.String()).To(BeEmpty())
		})
	}
	t.Run("there is no host file", func(t *testing.T) {
		c := newClient(t)
		NewWithT(t).Expect(bench.Launch(t.Context(), c.script(""), bench.Launcher{HostFile: "/no-such"}, c.host())).To(MatchError(ContainSubstring("MPI operator's host file")))
	})
}

func TestTheClocksOfWorkersAreReadBeforeAndAfterTheTool(t *testing.T) {
	g, c := NewWithT(t), newClient(t)
	hostFile := filepath.Join(c.outside, "hostfile")
	g.Expect(os.WriteFile(hostFile, []byte("w-0.run.svc\nw-1.run.svc\nw-2.run.svc\n"), 0o600)).To(Succeed())
	ahead := map[string]time.Duration{"w-0.run.svc": 0, "w-1.run.svc": time.Hour}
	h := c.host()
	h.Ask = func(_ context.Context, _, host string, _ int) (bench.Session, error) {
		questions, send := io.Pipe()
		answer, answers := io.Pipe()
		go func() {
			for scanner := bufio.NewScanner(questions); scanner.Scan(); {
				_, _ = fmt.Fprintf(answers, `{"now":%d,"stat":{"periods":7,"throttled":3,"time":9}}`+"\n", time.Now().Add(ahead[host]).UnixNano())
			}
		}()
		return bench.Session{Send: send, Answer: bufio.NewReader(answer), Close: send.Close}, nil
	}
	b := c.script("true")
	b.Placement = []int{1, 1, 0}
	g.Expect(bench.Launch(t.Context(), b, bench.Launcher{HostFile: hostFile, SSHPort: 22}, h)).To(Succeed())
	report := measured.Read([]byte(c.said.String()))
	g.Expect(report).To(HaveLen(2), "the worker without a process does not count")
	g.Expect([]string{report[0].Name, report[1].Name}).To(Equal([]string{"w-0", "w-1"}))
	g.Expect(report.ClockTrouble()).To(MatchRegexp(`before it the clocks of w-1 and w-0 differ by at least (1h0m0s|59m59\.\d+s)`))
	g.Expect(report[0].Throttled).To(HaveValue(Equal(measured.Throttling{})), "it was throttled before")

	t.Run("and one that does not answer costs no repetition", func(t *testing.T) {
		g := NewWithT(t)
		h.Ask = func(context.Context, string, string, int) (bench.Session, error) {
			return bench.Session{}, errors.New("connection refused")
		}
		g.Expect(bench.Launch(t.Context(), b, bench.Launcher{HostFile: hostFile, SSHPort: 22}, h)).To(Succeed())
		report := measured.Read([]byte(c.said.String()))[2:]
		g.Expect(report.Clocks()).To(Equal("of 2 clients the clock is not known, such as w-0 (connection refused)"))
		g.Expect(report.ClockTrouble()).To(BeEmpty())
	})
}

func TestTheClockOfASingleClientIsReadBeforeAndAfterTheTool(t *testing.T) {
	g, c := NewWithT(t), newClient(t)
	h := c.host()
	looks := 0
	h.Look = func() (measured.Answer, time.Time) {
		looks++
		now := time.Now()
		return measured.Answer{Now: now.Add(time.Duration(looks) * time.Minute).UnixNano(), Stat: &measured.Throttling{Throttled: int64(looks)}}, now
	}
	g.Expect(bench.Run(t.Context(), c.script("true"), h)).To(Succeed())
	report := measured.Read([]byte(c.said.String()))
	g.Expect(report).To(HaveLen(1))
	g.Expect(report.ClockTrouble()).To(ContainSubstring("was set by 1m0s while it ran"))
	g.Expect(report[0].Throttled).To(HaveValue(Equal(measured.Throttling{Throttled: 1})))
	said := c.said.String()
	g.Expect(code(bench.Run(t.Context(), c.script("exit 3"), h))).To(Equal(3))
	g.Expect(c.said.String()).To(Equal(said), "nothing is said of a repetition that has failed")
}

func TestEachQuestionIsAnsweredWithTheClock(t *testing.T) {
	g := NewWithT(t)
	var out bytes.Buffer
	before := time.Now().UnixNano()
	g.Expect(bench.Clock(strings.NewReader("\n\n"), &out)).To(Succeed())
	lines := strings.Split(strings.TrimSpace(out.String()), "\n")
	g.Expect(lines).To(HaveLen(2))
	for _, line := range lines {
		var answer measured.Answer
		g.Expect(json.Unmarshal([]byte(line), &answer)).To(Succeed())
		g.Expect(answer.Now).To(BeNumerically(">=", before))
	}
}
