package bench

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"parallelfs.dev/operator/internal/node/host"
	"parallelfs.dev/operator/internal/node/measured"
	"parallelfs.dev/operator/internal/node/mounts"
	"parallelfs.dev/operator/internal/node/process"
	"parallelfs.dev/operator/internal/node/spec"
)

const (
	// TimedOut is the exit code of a tool that was ended after its time limit, as with timeout(1).
	TimedOut = 124
	// usualGrace is the time that a tool may take to end after SIGTERM.
	usualGrace = 5 * time.Second
	mountLimit = 5 * time.Second
)

// ExitError carries the exit code of this process.
type ExitError struct {
	Code int
	// Reason is set if the tool was not started. Otherwise the tool's output contains the reason.
	Reason string
}

// Error returns the reason, or the exit code.
func (e *ExitError) Error() string {
	if e.Reason != "" {
		return e.Reason
	}
	return fmt.Sprintf("the tool ended with exit code %d", e.Code)
}

// ExitCode implements command.Exit: the tool's output already explains its end, but a Reason is not printed yet.
func (e *ExitError) ExitCode() (code int, said bool) { return e.Code, e.Reason == "" }

// Host holds a benchmark's access to the machine.
type Host struct {
	// CheckMount returns nil if the filesystem is mounted and answers.
	CheckMount func(ctx context.Context, m spec.Mount) error
	// Stdout and Stderr receive the output of the tool. They must accept concurrent writes, as files do.
	Stdout, Stderr io.Writer
	// Exec replaces this process.
	Exec func(program string, argv, environment []string) error
	// HostFile is the path of the tool's first file, unless that file has a path of its own. Other files may be in the same directory.
	HostFile string
	// Self is the path of this program, which is the same in the launcher and its workers.
	Self string
	// Environment is the environment of this process in the form NAME=value.
	Environment []string
	// Resolve returns an error while the name has no address.
	Resolve func(ctx context.Context, host string) error
	// Connect returns an error while the host does not accept connections to the port.
	Connect func(ctx context.Context, host string, port int) error
	// Address returns the address by which other machines reach this one.
	Address func() (string, error)
	// OnNode is the node of this container, for programs of the node.
	OnNode OnNode
	// Look reads this machine's clock and this container's throttling; now is the same moment with a monotonic reading. If it is nil, nothing
	// is reported about this machine.
	Look func() (answer measured.Answer, now time.Time)
	// Ask opens a session with the program self on another host. If it is nil, nothing is reported about the hosts.
	Ask func(ctx context.Context, self, host string, port int) (Session, error)
}

// OnNode is the node of a container that shares the node's process ids and has all rights.
type OnNode struct {
	// Has reports whether the node has a program.
	Has func(program string) bool
	// Path returns the path by which programs of the node reach a path of this container.
	Path func(path string) string
	// Command returns the command line that runs a program of the node with additional environment variables (NAME=value).
	Command func(argv, environment []string) []string
}

// ThisHost is the container that this process runs in.
func ThisHost() Host {
	// Without the path, only processes that need a wrapper can't be started, and they report it.
	self, _ := os.Executable()
	return Host{
		Self: self, Environment: os.Environ(),
		CheckMount: func(ctx context.Context, m spec.Mount) error { return mounts.Check(ctx, m, mountLimit) },
		Stdout:     os.Stdout, Stderr: os.Stderr,
		Exec:     syscall.Exec,
		HostFile: filepath.Join(os.TempDir(), "parallelfs-hosts"),
		Resolve:  resolve,
		Connect:  connect,
		Address:  address,
		Look:     look,
		Ask:      bySSH,
		OnNode: OnNode{
			Has: func(program string) bool { return host.Program(host.Root, program) != "" },
			// The path leads through the root directory of this process, which is visible in the node's process ids.
			Path: func(path string) string { return fmt.Sprintf("/proc/%d/root%s", os.Getpid(), path) },
			// A program of the node does not inherit this container's environment, so the node's env(1) sets it.
			Command: func(argv, environment []string) []string {
				return host.OnNode(slices.Concat([]string{"env"}, environment, argv))
			},
		},
	}
}

// say prints a line that a parser can distinguish from the tool's own output.
func (h Host) say(format string, args ...any) {
	_, _ = fmt.Fprintf(h.Stderr, "parallelfs: "+format+"\n", args...) // an error of stderr can't be reported anywhere
}

// Run runs the tool in its fresh directory and removes the directory afterwards, unless the next step needs it. It returns an *ExitError
// with the tool's exit code if that is not 0, or with NoRoom. If the tool did not run, it returns another error.
func Run(ctx context.Context, b spec.Benchmark, h Host) error {
	if err := errors.Join(Place(b), limited(b)); err != nil {
		return err
	}
	v := values{directory: b.Directory, rank: "0", hostsFile: hostsFile(b, h)}
	placement, hosts := b.Placement, []string{"localhost"}
	if len(placement) != 1 {
		placement = []int{1}
	}
	// Free space is checked after the leftovers of a killed attempt were removed, and before anything is written.
	preparing := func(mount *os.Root) error {
		if b.KeepBefore {
			return errors.Join(findDirectory(mount, b, b.Directory), writeFiles(mount, b, placement, hosts, v, h))
		}
		if err := remove(ctx, mount, b, b.Directory); err != nil {
			return fmt.Errorf("can't remove what a killed attempt left in %s: %w", b.Directory, err)
		}
		if err := enough(mount, b); err != nil {
			return err
		}
		if err := makeDirectory(ctx, mount, b, b.Directory, false); err != nil {
			return err
		}
		return writeFiles(mount, b, placement, hosts, v, h)
	}
	if err := inMount(ctx, b, h, preparing); err != nil {
		return err
	}
	keep := false
	defer func() {
		if keep {
			return
		}
		// The mount is opened again, because the filesystem may have been mounted again in the meantime. A pod that is being stopped still
		// removes its files.
		removing := func(mount *os.Root) error { return remove(context.WithoutCancel(ctx), mount, b, b.Directory) }
		if removeErr := inMount(context.WithoutCancel(ctx), b, h, removing); removeErr != nil {
			h.say("can't remove %s: %s", b.Directory, removeErr)
		}
	}()
	err := aroundHere(ctx, h, func() error {
		return runTool(ctx, b, tool{argv: v.arguments(b.Argv), directory: b.Directory, stdin: v.replacer().Replace(b.Stdin), env: b.Env}, h)
	})
	// A repetition that failed has no next step.
	keep = b.KeepAfter && err == nil
	return err
}

func limited(b spec.Benchmark) error {
	if b.TimeoutSeconds < 1 {
		return fmt.Errorf("timeoutSeconds is %d; it must be at least 1", b.TimeoutSeconds)
	}
	return nil
}

// tool is a program with the settings of its start.
type tool struct {
	argv             []string
	directory, stdin string
	// env is added to the environment of this process.
	env []string
	// stdout and stderr receive its output; nil means the host's.
	stdout, stderr io.Writer
	// grace is the time to end after SIGTERM; 0 means usualGrace.
	grace time.Duration
}

func runTool(ctx context.Context, b spec.Benchmark, t tool, h Host) error {
	o := process.Options{
		Directory: t.directory, Environment: slices.Concat(h.Environment, t.env),
		Stdin: strings.NewReader(t.stdin), Stdout: h.Stdout, Stderr: h.Stderr,
	}
	if t.stdout != nil {
		o.Stdout, o.Stderr = t.stdout, t.stderr
	}
	child, err := process.Start(t.argv, o)
	if err != nil {
		return err
	}
	// Processes left by the tool would write into a directory that is being removed.
	defer child.Kill()
	grace := cmp.Or(t.grace, usualGrace)
	limit := time.Duration(b.TimeoutSeconds) * time.Second
	timeout := time.NewTimer(limit)
	defer timeout.Stop()
	select {
	case <-child.Done():
	case <-timeout.C:
		// Print this first: a tool that waits for a hanging filesystem can't be ended before the filesystem answers.
		h.say("the tool is ended after %s (pointTimeout)", limit)
		child.Stop(grace)
		return &ExitError{Code: TimedOut}
	case <-ctx.Done():
		h.say("the tool is ended because its pod is being stopped")
		child.Stop(grace)
	}
	if code := child.Code(); code != 0 {
		return &ExitError{Code: code}
	}
	if ctx.Err() != nil {
		// A tool that exits with 0 on SIGTERM has still not measured everything.
		return &ExitError{Code: 128 + int(syscall.SIGTERM)}
	}
	return nil
}

// Work prepares a worker of a distributed benchmark, and then becomes the command by which the launcher reaches it. It returns only on an
// error.
func Work(ctx context.Context, b spec.Benchmark, argv []string, h Host) error {
	if err := Place(b); err != nil {
		return err
	}
	if len(argv) == 0 {
		return errors.New("there is no command to become; give it behind --, such as: bench work --spec FILE -- /usr/sbin/sshd -De")
	}
	preparing := func(mount *os.Root) error {
		if b.KeepBefore {
			return findDirectory(mount, b, b.Directory)
		}
		if err := enough(mount, b); err != nil {
			return err
		}
		// All workers create the same directory, so none may remove it.
		return makeDirectory(ctx, mount, b, b.Directory, false)
	}
	if err := inMount(ctx, b, h, preparing); err != nil {
		return err
	}
	program, err := lookPath(argv[0])
	if err != nil {
		return err
	}
	if err := h.Exec(program, argv, h.Environment); err != nil {
		return fmt.Errorf("can't start %s: %w", program, err)
	}
	return nil
}

// Clean removes everything that a run wrote. Missing files are no error.
func Clean(ctx context.Context, b spec.Benchmark, h Host) error {
	if err := RootPlace(b); err != nil {
		return err
	}
	return removeInMount(ctx, b, b.Root, h)
}

// CleanRepetition removes everything that a killed or failed repetition wrote, and nothing else of the run. Missing files are no error.
func CleanRepetition(ctx context.Context, b spec.Benchmark, h Host) error {
	if err := Place(b); err != nil {
		return err
	}
	return removeInMount(ctx, b, b.Directory, h)
}

func removeInMount(ctx context.Context, b spec.Benchmark, path string, h Host) error {
	return inMount(ctx, b, h, func(mount *os.Root) error {
		if err := remove(ctx, mount, b, path); err != nil {
			return fmt.Errorf("can't remove %s: %w", path, err)
		}
		h.say("removed %s", path)
		return nil
	})
}
