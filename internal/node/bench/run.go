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
	// TimedOut is the exit code of a tool that was ended after its time, as that of timeout(1).
	TimedOut = 124
	// usualGrace is how long a tool may take to end after SIGTERM.
	usualGrace = 5 * time.Second
	mountLimit = 5 * time.Second
)

// ExitError carries the exit code that this process ends with.
type ExitError struct {
	Code int
	// Reason is set when the tool was not started; else the tool's output says why.
	Reason string
}

// Error says the reason, or the code.
func (e *ExitError) Error() string {
	if e.Reason != "" {
		return e.Reason
	}
	return fmt.Sprintf("the tool ended with exit code %d", e.Code)
}

// ExitCode is for package command: the tool's output has said why it ended, a Reason is not said yet.
func (e *ExitError) ExitCode() (code int, said bool) { return e.Code, e.Reason == "" }

// Host is what a benchmark needs from the machine.
type Host struct {
	// CheckMount returns nil when the filesystem is mounted and answers.
	CheckMount func(ctx context.Context, m spec.Mount) error
	// Stdout and Stderr are those of the tool. They must take writes at the same time, as files do.
	Stdout, Stderr io.Writer
	// Exec replaces this process.
	Exec func(program string, argv, environment []string) error
	// HostFile is where the first of the tool's files is written, unless it has a path. Others may lie beside it.
	HostFile string
	// Self is the path of this program, the same in the launcher and its workers.
	Self string
	// Environment of this process, NAME=value.
	Environment []string
	// Resolve returns an error while the name has no address.
	Resolve func(ctx context.Context, host string) error
	// Connect returns an error while the host does not accept connections to the port.
	Connect func(ctx context.Context, host string, port int) error
	// Address returns this machine's own address, which the others reach it by.
	Address func() (string, error)
	// OnNode is the node that this container runs on, for programs of its own.
	OnNode OnNode
	// Look reads this machine's clock and this container's throttling; now is the same moment with a monotonic reading. Without it, nothing
	// is said of this machine.
	Look func() (answer measured.Answer, now time.Time)
	// Ask opens a session with the program self on another host. Without it, nothing is said of the hosts.
	Ask func(ctx context.Context, self, host string, port int) (Session, error)
}

// OnNode is the node that a container runs on, which has the node's process ids and all rights.
type OnNode struct {
	// Has says whether the node has a program.
	Has func(program string) bool
	// Path is where the node's programs find a path of this container.
	Path func(path string) string
	// Command is the command line that runs a program of the node, with more in its environment (NAME=value).
	Command func(argv, environment []string) []string
}

// ThisHost is the container that this process runs in.
func ThisHost() Host {
	// Without it, only processes that need a wrapper can't be started, which they then say.
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
			// By the root directory of this process, which the node's process ids lead to.
			Path: func(path string) string { return fmt.Sprintf("/proc/%d/root%s", os.Getpid(), path) },
			// A program of the node gets nothing of this container's environment, so env(1) of the node sets it.
			Command: func(argv, environment []string) []string {
				return host.OnNode(slices.Concat([]string{"env"}, environment, argv))
			},
		},
	}
}

// say prints a line that a parser of the tool's output can tell from the tool's own.
func (h Host) say(format string, args ...any) {
	_, _ = fmt.Fprintf(h.Stderr, "parallelfs: "+format+"\n", args...) // there is nobody to tell that nobody listens
}

// Run runs the tool in its fresh directory and removes the directory afterwards, unless the next step needs it. It returns an
// *ExitError with the code of the tool when that is not 0, or with NoRoom, and other errors when the tool did not run.
func Run(ctx context.Context, b spec.Benchmark, h Host) error {
	if err := errors.Join(Place(b), limited(b)); err != nil {
		return err
	}
	v := values{directory: b.Directory, rank: "0", hostsFile: hostsFile(b, h)}
	placement, hosts := b.Placement, []string{"localhost"}
	if len(placement) != 1 {
		placement = []int{1}
	}
	// The room is asked for before anything is made, and after what a killed attempt left has gone.
	preparing := func(mount *os.Root) error {
		if b.KeepBefore {
			return errors.Join(findDirectory(mount, b, b.Directory), writeFiles(mount, b, placement, hosts, v, h))
		}
		if err := remove(mount, b, b.Directory); err != nil {
			return fmt.Errorf("can't remove what a killed attempt left in %s: %w", b.Directory, err)
		}
		if err := enough(mount, b); err != nil {
			return err
		}
		if err := makeDirectory(mount, b, b.Directory, false); err != nil {
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
		// Opened anew: the filesystem may have been mounted again meanwhile. A stopped pod still removes what it wrote.
		removing := func(mount *os.Root) error { return remove(mount, b, b.Directory) }
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

// tool is a program as it is started.
type tool struct {
	argv             []string
	directory, stdin string
	// env is put on top of that of this process.
	env []string
	// stdout and stderr get what it prints; nil leaves it to the host's.
	stdout, stderr io.Writer
	// grace is how long it may take to end after SIGTERM, instead of the usual.
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
	// What a tool leaves running would write into a directory that is being removed.
	defer child.Kill()
	grace := cmp.Or(t.grace, usualGrace)
	limit := time.Duration(b.TimeoutSeconds) * time.Second
	timeout := time.NewTimer(limit)
	defer timeout.Stop()
	select {
	case <-child.Done():
	case <-timeout.C:
		// Said first: a tool that waits for a filesystem that hangs can't be ended before the filesystem answers.
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
		// A tool that ends well on SIGTERM has still not measured all.
		return &ExitError{Code: 128 + int(syscall.SIGTERM)}
	}
	return nil
}

// Work prepares a worker of a distributed benchmark and becomes the command that the launcher reaches it by. It returns
// only with an error.
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
		// Every worker makes it, the same one, so none may remove it.
		return makeDirectory(mount, b, b.Directory, false)
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

// Clean removes all that a run wrote. What is not there is fine.
func Clean(ctx context.Context, b spec.Benchmark, h Host) error {
	if err := RootPlace(b); err != nil {
		return err
	}
	return removeInMount(ctx, b, b.Root, h)
}

// CleanRepetition removes what a killed or failed repetition wrote, and nothing else of the run. What is not there is fine.
func CleanRepetition(ctx context.Context, b spec.Benchmark, h Host) error {
	if err := Place(b); err != nil {
		return err
	}
	return removeInMount(ctx, b, b.Directory, h)
}

func removeInMount(ctx context.Context, b spec.Benchmark, path string, h Host) error {
	return inMount(ctx, b, h, func(mount *os.Root) error {
		if err := remove(mount, b, path); err != nil {
			return fmt.Errorf("can't remove %s: %w", path, err)
		}
		h.say("removed %s", path)
		return nil
	})
}
