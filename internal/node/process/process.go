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

// Options are the settings of a child's start.
type Options struct {
	// Directory is the working directory; empty means that of this process.
	Directory string
	// Environment replaces the environment of this process if it is not nil.
	Environment []string
	// Stdin is the child's input; nil means empty.
	Stdin          io.Reader
	Stdout, Stderr io.Writer
	// Files are inherited by the child: a lock on them lasts as long as the child (flock(2)).
	Files []*os.File
}

// Child is a running or ended process.
type Child struct {
	command *exec.Cmd
	done    chan struct{}
	err     error
	// left is closed when the child or one of its descendants is left behind, and gone when all of them have ended. patience is how long a
	// kill waits before it leaves them behind.
	left     chan struct{}
	gone     chan struct{}
	leave    sync.Once
	patience time.Duration
}

// ErrLeftBehind is the error of a child that survived a kill, or whose descendants did: mount(8) starts helpers.
var ErrLeftBehind = errors.New("it was killed, but did not end: it waits inside of the kernel for a disk or a server (state D in ps), and was left behind")

// patience is the time in which a killed child must end. A process that is blocked in the kernel (ps(1), state D) can't be ended, and
// waiting for it would mean waiting for its disk or server.
const patience = 5 * time.Second

// Start starts the command line without a shell; the program is searched for in PATH.
func Start(argv []string, o Options) (*Child, error) {
	if len(argv) == 0 {
		return nil, errors.New("there is no command to start")
	}
	// Stop and Kill end the whole group. A context would end only one of its processes.
	command := exec.Command(argv[0], argv[1:]...) //nolint:gosec,noctx // the operator's own spec says what to start
	command.Dir, command.Env, command.Stdout, command.Stderr = o.Directory, o.Environment, o.Stdout, o.Stderr
	command.Stdin, command.ExtraFiles = o.Stdin, o.Files
	command.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	// A grandchild that keeps the output open must not hide the child's end from Wait.
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

// Gone is closed when a child that was left behind has ended with all its descendants.
func (c *Child) Gone() <-chan struct{} { return c.gone }

// Err waits for the end. It is nil for exit code 0, and ErrLeftBehind if a kill did not end the child.
func (c *Child) Err() error {
	if !c.ended() {
		return ErrLeftBehind
	}
	return c.err
}

// ended waits for the end, and is false if the child was left behind.
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
	// It may have ended in the meantime.
	select {
	case <-c.gone:
		return true
	default:
		return false
	}
}

// Code waits for the end and returns the exit code, or 128 plus the signal's number, as a shell does. A child that was left behind has the
// code of a killed one.
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

// Stop sends SIGTERM to the group, kills the remaining processes after grace, and waits for the child like Kill.
func (c *Child) Stop(grace time.Duration) {
	c.signal(syscall.SIGTERM)
	select {
	case <-c.done:
	case <-time.After(grace):
	}
	c.Kill()
}

// Kill kills the remaining processes of the group and waits at most 5 s until all have ended. Processes that are blocked in the kernel are
// left behind.
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
		case <-time.After(10 * time.Millisecond): // no event reports the end of a grandchild
		}
	}
}

// awaitEnd closes gone when all processes of the group have ended. It polls often enough that the group's number is not reused in the
// meantime.
func (c *Child) awaitEnd() {
	for c.runs() {
		<-time.After(time.Second)
	}
	close(c.gone)
}

// runs is false if the child and all processes of its group have ended. Zombies count as ended.
func (c *Child) runs() bool {
	select {
	case <-c.done:
	default:
		return true
	}
	if syscall.Kill(-c.command.Process.Pid, 0) != nil {
		return false // the group does not exist
	}
	all, _ := filepath.Glob("/proc/[0-9]*/stat") // the pattern is valid
	for _, path := range all {
		content, err := procfs.Read(path)
		if err != nil {
			continue // it has ended
		}
		// The program name in parentheses may contain spaces. State, parent and group follow it (proc(5)).
		_, after, _ := strings.Cut(string(content[max(0, bytes.LastIndexByte(content, ')')):]), " ")
		fields := strings.Fields(after)
		if len(fields) > 2 && fields[2] == strconv.Itoa(c.command.Process.Pid) && fields[0] != "Z" && fields[0] != "X" {
			return true
		}
	}
	return false
}

// signal ignores an error, because the only possible one is that the group has ended.
func (c *Child) signal(s syscall.Signal) { _ = syscall.Kill(-c.command.Process.Pid, s) }
