// Package tool holds the doubles of the programs that use Lustre in the kernel: mount.lustre, lctl, lfs and lnetctl, based on the output of
// 2.17.57 and its man pages.
package tool

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"parallelfs.dev/operator/test/doubles/lustre/kernel"
	"parallelfs.dev/operator/test/doubles/lustre/wire"
)

// KernelName is the first argument of the process that runs the kernel's part.
const KernelName = "kernel"

// Call is one call of a program.
type Call struct {
	Name           string
	Arguments      []string
	Stdin          io.Reader
	Stdout, Stderr io.Writer
}

func (c *Call) say(format string, arguments ...any) { fmt.Fprintf(c.Stdout, format, arguments...) }

func (c *Call) complain(format string, arguments ...any) { fmt.Fprintf(c.Stderr, format, arguments...) }

// ask sends a request to the kernel's part of this node.
func ask(ctx context.Context, op string, question, result any, files ...*os.File) error {
	return wire.Ask(ctx, "unix", kernel.Socket(), op, question, result, files...)
}

// loaded reports whether the kernel's part of the node is running, which means that the modules are loaded.
func loaded(ctx context.Context) bool { return ask(ctx, "nets", kernel.Nothing{}, nil) == nil }

// load starts the kernel's part, as the kernel loads modules for a mount.
func load(ctx context.Context) error {
	if loaded(ctx) {
		return nil
	}
	self, err := os.Executable()
	if err != nil {
		return err
	}
	if err := os.MkdirAll(kernel.Directory(), 0o755); err != nil {
		return err
	}
	log, err := os.OpenFile(filepath.Join(kernel.Directory(), "log"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		return err
	}
	defer log.Close()
	process := exec.CommandContext(context.WithoutCancel(ctx), self, KernelName)
	process.Args[0] = "lustre-double"
	process.Stdout, process.Stderr, process.Dir = log, log, "/"
	process.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	// The kernel inherits no open files of a program, such as a lock that lasts as long as a mount is in progress.
	if err := unix.CloseRange(3, math.MaxUint32, unix.CLOSE_RANGE_CLOEXEC); err != nil {
		return err
	}
	if err := process.Start(); err != nil {
		return err
	}
	leave(process.Process.Pid)
	if err := process.Process.Release(); err != nil {
		return err
	}
	const patience = 10 * time.Second
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	for ticker := time.NewTicker(20 * time.Millisecond); ; {
		select {
		case <-ctx.Done():
			return errors.New("the double of the kernel's part did not start; see " + log.Name())
		case <-ticker.C:
			if loaded(ctx) {
				return nil
			}
		}
	}
}

// leave moves a process out of the control group of a pod if there is another one: the kernel's part outlives the pod that has loaded it.
func leave(process int) {
	if own, err := os.ReadFile("/proc/self/cgroup"); err != nil || !bytes.Contains(own, []byte("kubepods")) {
		return
	}
	const group = "/sys/fs/cgroup/lustre-double"
	if os.MkdirAll(group, 0o755) == nil {
		_ = os.WriteFile(filepath.Join(group, "cgroup.procs"), fmt.Append(nil, process), 0o600)
	}
}

// code returns the exit code for an error, which is its errno.
func code(err error) int {
	if number := wire.Errno(err); number != 0 {
		return int(number)
	}
	return 1
}

// pause waits a moment before a program checks again.
func pause(ctx context.Context) {
	timer := time.NewTimer(100 * time.Millisecond)
	defer timer.Stop()
	select {
	case <-ctx.Done():
	case <-timer.C:
	}
}
