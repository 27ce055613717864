//go:build disks

package mounts

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	. "github.com/onsi/gomega"

	"parallelfs.dev/operator/internal/node/environment"
	"parallelfs.dev/operator/internal/node/process"
	"parallelfs.dev/operator/internal/node/spec"
	"parallelfs.dev/operator/test/patience"
)

// TestMain implements the verb of the node binary: the test itself is the program that is started for a system call.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == CallVerb {
		if err := Call(os.Args[2:], os.Stdout); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	if len(os.Args) > 1 && os.Args[1] == serveVerb {
		if err := serveFUSE(os.Args[2]); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	if len(os.Args) > 1 && os.Args[1] == spec.OnNode {
		command := exec.Command(os.Args[2], os.Args[3:]...)
		command.Env = append(os.Environ(), "ON_NODE=yes")
		command.Stdout, command.Stderr = os.Stdout, os.Stderr
		_ = command.Run() // its exit code is passed on
		os.Exit(command.ProcessState.ExitCode())
	}
	os.Exit(m.Run())
}

func command(t *testing.T, argv ...string) {
	t.Helper()
	output, err := exec.Command(argv[0], argv[1:]...).CombinedOutput()
	NewWithT(t).Expect(err).NotTo(HaveOccurred(), "%s: %s", strings.Join(argv, " "), output)
}

// image makes a file that contains a filesystem.
func image(t *testing.T, directory, fsType string) string {
	t.Helper()
	path := filepath.Join(directory, "image."+fsType)
	g := NewWithT(t)
	g.Expect(os.WriteFile(path, nil, 0o600)).To(Succeed())
	g.Expect(os.Truncate(path, 256<<20)).To(Succeed())
	command(t, "mkfs."+fsType, "-q", path)
	return path
}

// mountPoint returns a path for Prepare, which is made removable and unmounted at the end.
func mountPoint(t *testing.T) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "scratch")
	t.Cleanup(func() {
		for exec.Command("umount", "-l", path).Run() == nil {
		}
		NewWithT(t).Expect(Remove(path)).To(Succeed())
	})
	return path
}

// record is a log that can be read while it is written.
type record struct {
	mutex sync.Mutex
	text  bytes.Buffer
}

func (r *record) Write(p []byte) (int, error) {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	return r.text.Write(p)
}

func (r *record) String() string {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	return r.text.String()
}

// supervised is a running supervision of a real mount.
type supervised struct {
	*record
	cancel context.CancelFunc
	ended  chan error
	// program is the last mount program that was started, or nil for a kernel filesystem.
	program atomic.Pointer[process.Child]
}

func supervise(t *testing.T, m spec.Mount, hurry limits) *supervised {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	s := &supervised{record: &record{}, cancel: cancel, ended: make(chan error, 1)}
	k := thisKernel(m)
	k.limits = hurry
	log := slog.New(slog.NewTextHandler(s.record, nil))
	r := resident{kernel: k, mount: m, lookup: os.LookupEnv, output: io.Discard, limit: time.Minute}
	supervisor := supervisor{
		kernel: k, mount: m, log: log, period: 10 * time.Millisecond, shortest: 10 * time.Millisecond, try: r.try, grace: hurried.answer,
		start: func() (child, error) {
			program, err := process.Start(m.Command, process.Options{Stdout: io.Discard, Stderr: s.record})
			s.program.Store(program)
			return program, err
		},
	}
	go func() { s.ended <- supervisor.run(ctx) }()
	t.Cleanup(cancel)
	return s
}

func (s *supervised) says(g Gomega, what string) {
	g.Eventually(s.String).WithTimeout(patience.Bound(time.Minute)).Should(ContainSubstring(what))
}

// hurried has short limits for operations that never end, and sufficient ones for a busy machine.
var hurried = limits{answer: 20 * time.Second, unmount: 10 * time.Second, busy: 100 * time.Millisecond, between: 10 * time.Millisecond}

func TestARealFilesystemOfTheKernelIsSupervised(t *testing.T) {
	for fsType, argv := range map[string]func(t *testing.T) []string{
		"tmpfs": func(*testing.T) []string { return []string{"mount", "-t", "tmpfs", "scratch"} },
		"ext4":  func(t *testing.T) []string { return []string{"mount", "-o", "loop", image(t, t.TempDir(), "ext4")} },
		"btrfs": func(t *testing.T) []string { return []string{"mount", "-o", "loop", image(t, t.TempDir(), "btrfs")} },
	} {
		t.Run(fsType, func(t *testing.T) {
			g, path := NewWithT(t), mountPoint(t)
			m := spec.Mount{Path: path, FSType: fsType, Kernel: true, Command: append(argv(t), path)}
			first := supervise(t, m, hurried)
			first.says(g, "mounted, and the filesystem answers")
			g.Expect(Check(t.Context(), m, time.Minute)).To(Succeed())
			g.Expect(os.WriteFile(filepath.Join(path, "data"), []byte("kept"), 0o600)).To(Succeed())

			// A second supervision finds the mount of the first, as after a restart of the pod.
			second := supervise(t, m, hurried)
			second.says(g, "the mount is taken over")
			second.says(g, "mounted, and the filesystem answers")
			g.Expect(at(path)).To(HaveLen(1), "it is not mounted twice")
			second.cancel()
			g.Eventually(second.ended).WithTimeout(patience.Bound(time.Minute)).Should(Receive(BeNil()))
			first.says(g, "somebody unmounted it")
			g.Eventually(func() error { return Check(t.Context(), m, time.Minute) }).WithTimeout(patience.Bound(time.Minute)).Should(Succeed(), "the first mounts it again")
			if fsType != "tmpfs" {
				g.Expect(os.ReadFile(filepath.Join(path, "data"))).To(BeEquivalentTo("kept"))
			}
			first.cancel()
			g.Eventually(first.ended).WithTimeout(patience.Bound(time.Minute)).Should(Receive(BeNil()))
			g.Expect(at(path)).To(BeEmpty())
			g.Expect(os.WriteFile(filepath.Join(path, "data"), nil, 0o600)).NotTo(Succeed(), "the mount point is closed while nothing is mounted")
		})
	}
}

func TestARealFilesystemInUseIsDetached(t *testing.T) {
	g, path := NewWithT(t), mountPoint(t)
	s := supervise(t, spec.Mount{Path: path, FSType: "tmpfs", Kernel: true, Command: []string{"mount", "-t", "tmpfs", "scratch", path}}, hurried)
	s.says(g, "mounted, and the filesystem answers")
	user, err := os.Create(filepath.Join(path, "data"))
	g.Expect(err).NotTo(HaveOccurred())
	defer user.Close()
	s.cancel()
	g.Eventually(s.ended).WithTimeout(patience.Bound(time.Minute)).Should(Receive(BeNil()))
	g.Expect(at(path)).To(BeEmpty())
	g.Expect(s.String()).To(ContainSubstring("MNT_DETACH"))
	g.Expect(user.WriteString("still written")).To(Equal(13), "who uses it keeps it")
}

func TestARealFilesystemOfAnotherIsNotTouched(t *testing.T) {
	g, path := NewWithT(t), mountPoint(t)
	g.Expect(os.Mkdir(path, 0o700)).To(Succeed())
	command(t, "mount", "-t", "tmpfs", "somebody-else", path)
	s := supervise(t, spec.Mount{
		Path: path, FSType: "tmpfs", Source: "scratch", Kernel: true, Command: []string{"mount", "-t", "tmpfs", "scratch", path},
	}, hurried)
	g.Eventually(s.ended).WithTimeout(patience.Bound(time.Minute)).Should(Receive(MatchError(ContainSubstring(`type tmpfs from "somebody-else"`))))
	g.Expect(at(path)).To(Equal([]Entry{{"tmpfs", "somebody-else"}}))
}

func TestAFilesystemThatTheKernelLacksIsReported(t *testing.T) {
	g, path := NewWithT(t), mountPoint(t)
	s := supervise(t, spec.Mount{Path: path, FSType: "examplefs", Kernel: true, Command: []string{"mount", "-t", "examplefs", "examplefs_nodev", path}}, hurried)
	g.Eventually(s.ended).WithTimeout(patience.Bound(time.Minute)).Should(Receive(MatchError(ContainSubstring("this node's kernel has no filesystem examplefs: "))))
	g.Expect(Check(t.Context(), spec.Mount{Path: path, FSType: "examplefs", Kernel: true}, time.Minute)).To(MatchError(And(
		ContainSubstring("is not mounted: this node's kernel has no filesystem examplefs"))))
}

// The inner filesystem is in a file on the outer one. While the outer one is frozen, a write of the inner one blocks in the kernel and its
// process can't be killed, as with unreachable servers.
func TestTrap12ARealMountOfADiskThatDoesNotAnswer(t *testing.T) {
	g, directory := NewWithT(t), t.TempDir()
	outer, path := filepath.Join(directory, "outer"), mountPoint(t)
	g.Expect(os.Mkdir(outer, 0o700)).To(Succeed())
	command(t, "mount", "-o", "loop", image(t, directory, "ext4"), outer)
	t.Cleanup(func() {
		g.Eventually(func() error { return exec.Command("umount", outer).Run() }).WithTimeout(patience.Bound(time.Minute)).Should(Succeed(), "the inner one has ended")
	})
	inner := filepath.Join(outer, "inner")
	g.Expect(os.WriteFile(inner, nil, 0o600)).To(Succeed())
	g.Expect(os.Truncate(inner, 64<<20)).To(Succeed())
	command(t, "mkfs.ext4", "-q", inner)

	m := spec.Mount{Path: path, FSType: "ext4", Kernel: true, Command: []string{"mount", "-o", "loop", inner, path}}
	s := supervise(t, m, hurried)
	s.says(g, "mounted, and the filesystem answers")
	g.Expect(os.WriteFile(filepath.Join(path, "data"), bytes.Repeat([]byte("not written back yet"), 100_000), 0o600)).To(Succeed())
	command(t, "fsfreeze", "-f", outer)
	t.Cleanup(func() { command(t, "fsfreeze", "-u", outer) })
	s.cancel()
	g.Eventually(s.ended).WithTimeout(patience.Bound(time.Minute)).Should(Receive(BeNil()), "the supervision ends though the disk does not answer")
	g.Expect(s.String()).To(ContainSubstring("the kernel has not ended it"))
	g.Expect(at(path)).To(BeEmpty(), "nobody comes to it any more")
}

func TestCommandsInARealFilesystemOfTheKernel(t *testing.T) {
	for name, c := range map[string]struct {
		left  bool
		argv  []string
		fails string
	}{
		"find it mounted":                       {argv: []string{"sh", "-c", `echo made > "$1/made"`, "sh"}},
		"find the mount that a killed job left": {left: true, argv: []string{"sh", "-c", `grep -q left "$1/left"`, "sh"}},
		"fail, and it is unmounted":             {argv: []string{"sh", "-c", "echo no >&2; exit 3"}, fails: "command 1, sh, failed with exit code 3: no"},
	} {
		t.Run(name, func(t *testing.T) {
			g, path := NewWithT(t), filepath.Join(t.TempDir(), "scratch")
			m := spec.Mount{Path: path, FSType: "tmpfs", Source: "scratch", Kernel: true, Command: []string{"mount", "-t", "tmpfs", "scratch", path}}
			if c.left {
				g.Expect(os.Mkdir(path, 0o700)).To(Succeed())
				command(t, m.Command...)
				g.Expect(os.WriteFile(filepath.Join(path, "left"), []byte("left"), 0o600)).To(Succeed())
			}
			err := Configure(t.Context(), spec.Configure{Mount: &m, Commands: []spec.Command{{Argv: append(c.argv, path)}}}, os.LookupEnv,
				&bytes.Buffer{}, slog.New(slog.DiscardHandler))
			if c.fails == "" {
				g.Expect(err).NotTo(HaveOccurred())
			} else {
				g.Expect(err).To(MatchError(ContainSubstring(c.fails)))
			}
			g.Expect(at(path)).To(BeEmpty())
			g.Expect(filepath.Join(path, "made")).NotTo(BeAnExistingFile(), "it was written to the filesystem, not below it")
		})
	}
}

func TestAProgramOfTheNodeMountsAfterTheNetworkIsUp(t *testing.T) {
	g, table := NewWithT(t), filepath.Join(t.TempDir(), "table")
	m := spec.Mount{
		Path: "/mnt/scratch", FSType: "examplefs", Source: "examplefs_scratch", Kernel: true, Host: true, Network: &spec.KernelNetwork{Name: "tcp"},
		Command: []string{"sh", "-c", `test "$ON_NODE" = yes && test -e "$1.net" && echo mounted > "$1"`, "sh", table},
	}
	g.Expect(understand(m)).To(Succeed())
	r := &resident{mount: m, lookup: os.LookupEnv, output: io.Discard, limit: time.Minute, kernel: kernel{
		cannot: func(string) (string, bool) { return "", false },
		up: func(context.Context, spec.KernelNetwork, environment.Lookup) error {
			return os.WriteFile(table+".net", nil, 0o600)
		},
		at: func(string) ([]Entry, error) {
			if _, err := os.Stat(table); err == nil {
				return []Entry{{"examplefs", "examplefs_scratch"}}, nil
			}
			return nil, nil
		},
	}}
	g.Expect(r.try(t.Context())).To(Succeed())
	r.kernel.up = func(context.Context, spec.KernelNetwork, environment.Lookup) error { return errors.New("no interface") }
	g.Expect(r.try(t.Context())).To(MatchError("no interface"))
	m.Host = false
	g.Expect(understand(m)).To(MatchError(ContainSubstring("a program of the node")))
}

func TestCommandsAreRunOnTheNode(t *testing.T) {
	g := NewWithT(t)
	var output bytes.Buffer
	config := spec.Configure{Host: true, Commands: []spec.Command{{Argv: []string{"sh", "-c", "echo on the node: $ON_NODE"}}}}
	g.Expect(Configure(t.Context(), config, os.LookupEnv, &output, slog.New(slog.DiscardHandler))).To(Succeed())
	g.Expect(output.String()).To(Equal("on the node: yes\n"))
}
