package bench

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"parallelfs.dev/operator/internal/node/mounts"
	"parallelfs.dev/operator/internal/node/process"
	"parallelfs.dev/operator/internal/node/spec"
)

const (
	// TimedOut is the exit code of a tool that was ended after its time, as that of timeout(1).
	TimedOut = 124
	// grace is how long a tool may take to end after SIGTERM.
	grace      = 5 * time.Second
	mountLimit = 5 * time.Second
)

// ExitError carries the exit code of a tool. The tool's output says why.
type ExitError struct{ Code int }

// Error says the code.
func (e *ExitError) Error() string { return fmt.Sprintf("the tool ended with exit code %d", e.Code) }

// Host is what a benchmark needs from the machine.
type Host struct {
	// CheckMount returns nil when the filesystem is mounted and answers.
	CheckMount func(ctx context.Context, m spec.Mount) error
	// Stdout and Stderr are those of the tool. They must take writes at the same time, as files do.
	Stdout, Stderr io.Writer
	// Exec replaces this process.
	Exec func(program string, argv, environment []string) error
	// HostFile is where Launch writes the tool's host file.
	HostFile string
	// Resolve returns an error while the name has no address.
	Resolve func(ctx context.Context, host string) error
	// Connect returns an error while the host does not accept connections to the port.
	Connect func(ctx context.Context, host string, port int) error
	// Address returns this machine's own address, which the others reach it by.
	Address func() (string, error)
}

// ThisHost is the container that this process runs in.
func ThisHost() Host {
	return Host{
		CheckMount: func(ctx context.Context, m spec.Mount) error { return mounts.Check(ctx, m, mountLimit) },
		Stdout:     os.Stdout, Stderr: os.Stderr,
		Exec:     syscall.Exec,
		HostFile: filepath.Join(os.TempDir(), "parallelfs-hosts"),
		Resolve:  resolve,
		Connect:  connect,
		Address:  address,
	}
}

// say prints a line that a parser of the tool's output can tell from the tool's own.
func (h Host) say(format string, args ...any) {
	_, _ = fmt.Fprintf(h.Stderr, "parallelfs: "+format+"\n", args...) // there is nobody to tell that nobody listens
}

// Run runs the tool in its fresh directory and removes the directory afterwards. It returns an *ExitError with the code
// of the tool when that is not 0, and other errors when the tool did not run.
func Run(ctx context.Context, b spec.Benchmark, h Host) error {
	if err := errors.Join(Place(b), limited(b)); err != nil {
		return err
	}
	if err := inMount(ctx, b, h, func(mount *os.Root) error { return makeDirectory(mount, b, true) }); err != nil {
		return err
	}
	defer func() {
		// Opened anew: the filesystem may have been mounted again meanwhile. A stopped pod still removes what it wrote.
		removing := func(mount *os.Root) error { return remove(mount, b, b.Directory) }
		if removeErr := inMount(context.WithoutCancel(ctx), b, h, removing); removeErr != nil {
			h.say("can't remove %s: %s", b.Directory, removeErr)
		}
	}()
	return runTool(ctx, b, b.Argv, b.Directory, h)
}

func limited(b spec.Benchmark) error {
	if b.TimeoutSeconds < 1 {
		return fmt.Errorf("timeoutSeconds is %d; it must be at least 1", b.TimeoutSeconds)
	}
	return nil
}

func runTool(ctx context.Context, b spec.Benchmark, argv []string, directory string, h Host) error {
	tool, err := process.Start(argv, process.Options{
		Directory: directory, Environment: append(os.Environ(), b.Env...), Stdout: h.Stdout, Stderr: h.Stderr,
	})
	if err != nil {
		return err
	}
	// What a tool leaves running would write into a directory that is being removed.
	defer tool.Kill()
	limit := time.Duration(b.TimeoutSeconds) * time.Second
	timeout := time.NewTimer(limit)
	defer timeout.Stop()
	select {
	case <-tool.Done():
	case <-timeout.C:
		// Said first: a tool that waits for a filesystem that hangs can't be ended before the filesystem answers.
		h.say("the tool is ended after %s (pointTimeout)", limit)
		tool.Stop(grace)
		return &ExitError{Code: TimedOut}
	case <-ctx.Done():
		h.say("the tool is ended because its pod is being stopped")
		tool.Stop(grace)
	}
	if code := tool.Code(); code != 0 {
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
	// Every worker makes it, the same one, so none may remove it.
	if err := inMount(ctx, b, h, func(mount *os.Root) error { return makeDirectory(mount, b, false) }); err != nil {
		return err
	}
	program, err := lookPath(argv[0])
	if err != nil {
		return err
	}
	if err := h.Exec(program, argv, os.Environ()); err != nil {
		return fmt.Errorf("can't start %s: %w", program, err)
	}
	return nil
}

// Clean removes all that a run wrote. What is not there is fine.
func Clean(ctx context.Context, b spec.Benchmark, h Host) error {
	if err := RootPlace(b); err != nil {
		return err
	}
	return inMount(ctx, b, h, func(mount *os.Root) error {
		if err := remove(mount, b, b.Root); err != nil {
			return fmt.Errorf("can't remove %s: %w", b.Root, err)
		}
		h.say("removed %s", b.Root)
		return nil
	})
}
