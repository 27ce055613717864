// Package tool has the doubles of the programs that speak to Lustre in the kernel: mount.lustre, lctl, lfs and lnetctl, by what 2.17.57
// prints and what its man pages say.
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

// KernelName is the first argument of the process that is the kernel's part.
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

// ask asks the kernel's part of this node.
func ask(ctx context.Context, op string, question, result any, files ...*os.File) error {
	return wire.Ask(ctx, "unix", kernel.Socket(), op, question, result, files...)
}

// loaded says whether the node has its kernel's part running: the modules are loaded.
func loaded(ctx context.Context) bool { return ask(ctx, "nets", kernel.Nothing{}, nil) == nil }

// load starts it, as the kernel loads modules when something is mounted.
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
	// The kernel has none of the files that a program of it was given, such as a lock that lasts as long as a mount is under way.
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

// leave takes a process out of the control group of a pod, where there is another one to go to: the kernel's part outlives the pod that
// has loaded it.
func leave(process int) {
	if own, err := os.ReadFile("/proc/self/cgroup"); err != nil || !bytes.Contains(own, []byte("kubepods")) {
		return
	}
	const group = "/sys/fs/cgroup/lustre-double"
	if os.MkdirAll(group, 0o755) == nil {
		_ = os.WriteFile(filepath.Join(group, "cgroup.procs"), fmt.Append(nil, process), 0o600)
	}
}

// code is the exit code for an error: its number.
func code(err error) int {
	if number := wire.Errno(err); number != 0 {
		return int(number)
	}
	return 1
}

// pause waits a moment before a program looks again.
func pause(ctx context.Context) {
	timer := time.NewTimer(100 * time.Millisecond)
	defer timer.Stop()
	select {
	case <-ctx.Done():
	case <-timer.C:
	}
}
