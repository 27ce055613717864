// Package process runs a child process in a process group of its own, and ends the whole group.
package process

import (
	"errors"
	"fmt"
	"io"
	"os/exec"
	"syscall"
	"time"
)

// Options say how a child runs.
type Options struct {
	// Directory is the working directory, empty for that of this process.
	Directory string
	// Environment replaces that of this process when it is not nil.
	Environment    []string
	Stdout, Stderr io.Writer
}

// Child is a running or ended process.
type Child struct {
	command *exec.Cmd
	done    chan struct{}
	err     error
}

// Start starts the command line, without a shell; the program is found in PATH.
func Start(argv []string, o Options) (*Child, error) {
	if len(argv) == 0 {
		return nil, errors.New("there is no command to start")
	}
	// Stop and Kill end it: a context would end one process of the group.
	command := exec.Command(argv[0], argv[1:]...) //nolint:gosec,noctx // the operator's own spec says what to start
	command.Dir, command.Env, command.Stdout, command.Stderr = o.Directory, o.Environment, o.Stdout, o.Stderr
	command.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	// A grandchild that keeps the output open must not keep Wait from seeing that the child has ended.
	command.WaitDelay = 2 * time.Second
	if err := command.Start(); err != nil {
		return nil, fmt.Errorf("can't start %s: %w", argv[0], err)
	}
	child := &Child{command: command, done: make(chan struct{})}
	go func() {
		child.err = command.Wait()
		close(child.done)
	}()
	return child, nil
}

// Done is closed when the child has ended.
func (c *Child) Done() <-chan struct{} { return c.done }

// Err waits for the end; it is nil when the exit code was 0.
func (c *Child) Err() error {
	<-c.done
	return c.err
}

// Code waits for the end and returns the exit code, or 128 and the signal's number, as a shell does.
func (c *Child) Code() int {
	<-c.done
	status, ok := c.command.ProcessState.Sys().(syscall.WaitStatus)
	if ok && status.Signaled() {
		return 128 + int(status.Signal())
	}
	return c.command.ProcessState.ExitCode()
}

// Stop asks the group to end with SIGTERM, kills what is left of it after grace, and waits for the child.
func (c *Child) Stop(grace time.Duration) {
	c.signal(syscall.SIGTERM)
	select {
	case <-c.done:
	case <-time.After(grace):
	}
	c.Kill()
}

// Kill kills what is left of the group and waits for the child.
func (c *Child) Kill() {
	c.signal(syscall.SIGKILL)
	<-c.done
}

// signal ignores an error: the only one left is that the group is gone.
func (c *Child) signal(s syscall.Signal) { _ = syscall.Kill(-c.command.Process.Pid, s) }
