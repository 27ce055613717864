// Package process runs a child process in a process group of its own, and ends the whole group.
package process

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"parallelfs.dev/operator/internal/node/procfs"
)

// Options say how a child runs.
type Options struct {
	// Directory is the working directory, empty for that of this process.
	Directory string
	// Environment replaces that of this process when it is not nil.
	Environment []string
	// Stdin is read by the child; nil is empty.
	Stdin          io.Reader
	Stdout, Stderr io.Writer
	// Files stay open in the child: a lock on them lasts as long as it does (flock(2)).
	Files []*os.File
}

// Child is a running or ended process.
type Child struct {
	command *exec.Cmd
	done    chan struct{}
	err     error
	// left is closed when the child, or something that it has started, was left behind, and gone when that has ended after all; patience is
	// how long a kill waits before that.
	left     chan struct{}
	gone     chan struct{}
	leave    sync.Once
	patience time.Duration
}

// ErrLeftBehind is the error of a child that a kill did not end, or that has started what it did not end: mount(8) has others do the work.
var ErrLeftBehind = errors.New("it was killed, but did not end: it waits inside of the kernel for a disk or a server (state D in ps), and was left behind")

// patience is how long a killed child may take to end. Nothing ends one that waits inside of the kernel (ps(1), state D), and whoever
// waits for it would wait for that disk or server too.
const patience = 5 * time.Second

// Start starts the command line, without a shell; the program is found in PATH.
func Start(argv []string, o Options) (*Child, error) {
	if len(argv) == 0 {
		return nil, errors.New("there is no command to start")
	}
	// Stop and Kill end it: a context would end one process of the group.
	command := exec.Command(argv[0], argv[1:]...) //nolint:gosec,noctx // the operator's own spec says what to start
	command.Dir, command.Env, command.Stdout, command.Stderr = o.Directory, o.Environment, o.Stdout, o.Stderr
	command.Stdin, command.ExtraFiles = o.Stdin, o.Files
	command.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	// A grandchild that keeps the output open must not keep Wait from seeing that the child has ended.
	command.WaitDelay = 2 * time.Second
	if err := command.Start(); err != nil {
		return nil, fmt.Errorf("can't start %s: %w", argv[0], err)
	}
	child := &Child{command: command, done: make(chan struct{}), left: make(chan struct{}), gone: make(chan struct{}), patience: patience}
	go func() {
		child.err = command.Wait()
		close(child.done)
	}()
	return child, nil
}

// Done is closed when the child has ended.
func (c *Child) Done() <-chan struct{} { return c.done }

// Gone is closed when a child that was left behind has ended, with all that it has started.
func (c *Child) Gone() <-chan struct{} { return c.gone }

// Err waits for the end; it is nil when the exit code was 0, and ErrLeftBehind when a kill did not end it.
func (c *Child) Err() error {
	if !c.ended() {
		return ErrLeftBehind
	}
	return c.err
}

// ended waits for the end, and is false when the child was left behind.
func (c *Child) ended() bool {
	select {
	case <-c.done:
	case <-c.left:
	}
	select {
	case <-c.left:
	default:
		return true
	}
	// It may have ended meanwhile.
	select {
	case <-c.gone:
		return true
	default:
		return false
	}
}

// Code waits for the end and returns the exit code, or 128 and the signal's number, as a shell does. That of a child that was left
// behind is that of one that was killed.
func (c *Child) Code() int {
	if !c.ended() {
		return 128 + int(syscall.SIGKILL)
	}
	status, ok := c.command.ProcessState.Sys().(syscall.WaitStatus)
	if ok && status.Signaled() {
		return 128 + int(status.Signal())
	}
	return c.command.ProcessState.ExitCode()
}

// Stop asks the group to end with SIGTERM, kills what is left of it after grace, and waits for the child as Kill does.
func (c *Child) Stop(grace time.Duration) {
	c.signal(syscall.SIGTERM)
	select {
	case <-c.done:
	case <-time.After(grace):
	}
	c.Kill()
}

// Kill kills what is left of the group and waits until nothing of it runs, at most 5 s: what does not end then, because it waits inside of
// the kernel, is left behind.
func (c *Child) Kill() {
	c.signal(syscall.SIGKILL)
	limit := time.NewTimer(c.patience)
	defer limit.Stop()
	for c.runs() {
		select {
		case <-c.left:
			return
		case <-limit.C:
			c.leave.Do(func() {
				close(c.left)
				go c.awaitEnd()
			})
			return
		case <-time.After(10 * time.Millisecond): // nothing tells when a grandchild ends
		}
	}
}

// awaitEnd closes gone when nothing of the group runs any more. It looks often enough that the group's number is nobody else's meanwhile.
func (c *Child) awaitEnd() {
	for c.runs() {
		<-time.After(time.Second)
	}
	close(c.gone)
}

// runs is false when the child has ended and nothing of its group runs. What has ended and is waited for by nobody does not run.
func (c *Child) runs() bool {
	select {
	case <-c.done:
	default:
		return true
	}
	if syscall.Kill(-c.command.Process.Pid, 0) != nil {
		return false // there is no such group
	}
	all, _ := filepath.Glob("/proc/[0-9]*/stat") // the pattern is a good one
	for _, path := range all {
		content, err := procfs.Read(path)
		if err != nil {
			continue // it has ended
		}
		// The name of the program, in parentheses, may have spaces; after it come state, parent and group (proc(5)).
		_, after, _ := strings.Cut(string(content[max(0, bytes.LastIndexByte(content, ')')):]), " ")
		fields := strings.Fields(after)
		if len(fields) > 2 && fields[2] == strconv.Itoa(c.command.Process.Pid) && fields[0] != "Z" && fields[0] != "X" {
			return true
		}
	}
	return false
}

// signal ignores an error: the only one left is that the group is gone.
func (c *Child) signal(s syscall.Signal) { _ = syscall.Kill(-c.command.Process.Pid, s) }
