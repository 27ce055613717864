package provision

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"time"

	"parallelfs.dev/operator/internal/node/host"
	"parallelfs.dev/operator/internal/node/process"
)

// Runner runs a program without a shell and waits for its end. The error quotes the program's output. The files in keep stay open in the
// program, so a lock on them (flock(2)) lasts as long as the program, even if this process is killed.
type Runner func(ctx context.Context, argv []string, keep ...*os.File) (stdout []byte, err error)

// endGrace is how long a program may take to end after SIGTERM.
const endGrace = 10 * time.Second

// Run is a Runner for programs of the image.
func Run(ctx context.Context, argv []string, keep ...*os.File) ([]byte, error) {
	if len(argv) == 0 {
		return nil, errors.New("there is no program to run")
	}
	command := exec.CommandContext(ctx, argv[0], argv[1:]...) //nolint:gosec // from the plan, which tests every argument; no shell reads it
	command.Env = append(os.Environ(), "LC_ALL=C")
	return run(command, argv, keep)
}

// RunOnNode is a Runner for programs of the node, in the node's root directory.
func RunOnNode(ctx context.Context, argv []string, keep ...*os.File) ([]byte, error) {
	command, err := host.Command(ctx, host.Root, argv)
	if err != nil {
		return nil, err
	}
	return run(command, argv, keep)
}

func run(command *exec.Cmd, argv []string, keep []*os.File) ([]byte, error) {
	var stdout, stderr process.Output
	command.Stdout, command.Stderr, command.ExtraFiles = &stdout, &stderr, keep
	command.Cancel, command.WaitDelay = func() error { return command.Process.Signal(syscall.SIGTERM) }, endGrace
	if err := cmp.Or(command.Run(), stdout.Err()); err != nil {
		return stdout.Bytes(), &RunError{Argv: argv, Said: said(stderr.String(), stdout.String()), Err: err}
	}
	return stdout.Bytes(), nil
}

// RunError is the failure of a program.
type RunError struct {
	Argv []string
	// Said is the program's output, shortened.
	Said string
	Err  error
}

func (e *RunError) Error() string {
	if e.Said == "" {
		return fmt.Sprintf("%s: %s", strings.Join(e.Argv, " "), e.Err)
	}
	return fmt.Sprintf("%s: %s: %s", strings.Join(e.Argv, " "), e.Err, e.Said)
}

func (e *RunError) Unwrap() error { return e.Err }

// quoted is how many bytes of a program's output an error quotes: the beginning, where most programs print the error, and the end.
const quoted = 600

// said returns the program's error output or, if that is empty, its output, in one line.
func said(stderr, stdout string) string {
	text := strings.TrimSpace(stderr)
	if text == "" {
		text = strings.TrimSpace(stdout)
	}
	text = strings.Join(strings.Fields(text), " ")
	if len(text) > 2*quoted {
		text = text[:quoted] + " … " + text[len(text)-quoted:]
	}
	return strings.ToValidUTF8(text, "?")
}
