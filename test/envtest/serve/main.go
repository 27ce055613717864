//go:build envtest

// Command serve starts the one API server of a run of tests in several packages, and passes its location to a command in an environment
// variable. It stops the server when the command has ended or is interrupted.
//
//	go run -tags envtest ./test/envtest/serve DIRECTORY COMMAND...
//
// The kubeconfig and all temporary files, including those of servers that single packages start, are in DIRECTORY, which is emptied before
// and after. The directory is fixed because `go test` caches a package's result as long as the variables that its tests read are unchanged.
package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/go-logr/logr"
	"golang.org/x/sys/unix"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"parallelfs.dev/operator/test/envtest/apiserver"
)

func main() {
	log.SetLogger(logr.Discard())
	if len(os.Args) < 3 {
		fmt.Fprintln(os.Stderr, "usage: serve DIRECTORY COMMAND...")
		os.Exit(2)
	}
	err := serve(os.Args[1], os.Args[2:])
	var ended *exec.ExitError
	switch {
	case err == nil:
	case errors.As(err, &ended) && ended.Exited():
		os.Exit(ended.ExitCode()) // the command has printed why
	default:
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// serve runs a command while a server runs.
func serve(directory string, command []string) (err error) {
	interrupted, done := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	defer done()
	// Servers of a killed package become children of this process.
	if err := unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0); err != nil {
		return fmt.Errorf("can't look after what tests start: %w", err)
	}
	if err := empty(directory); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, endAll(), os.RemoveAll(directory)) }()

	kubeconfig := filepath.Join(directory, "kubeconfig")
	environment := map[string]string{"GOTMPDIR": os.TempDir(), "TMPDIR": directory, apiserver.Kubeconfig: kubeconfig}
	for name, value := range environment {
		if err := os.Setenv(name, value); err != nil {
			return fmt.Errorf("can't set %s: %w", name, err)
		}
	}
	server, err := apiserver.Start(apiserver.WithMPIJob())
	if err != nil {
		return err
	}
	if err := server.WriteKubeconfig(kubeconfig); err != nil {
		return err
	}
	run := exec.CommandContext(interrupted, command[0], command[1:]...)
	run.Stdin, run.Stdout, run.Stderr = os.Stdin, os.Stdout, os.Stderr
	// It has its own process group, so that an interrupt reaches all of it once, whether it comes from a terminal or from the program that
	// ends this process.
	run.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	run.Cancel = func() error { return syscall.Kill(-run.Process.Pid, syscall.SIGTERM) }
	return run.Run()
}

// empty creates a directory, or removes the leftovers of an earlier run from it.
func empty(directory string) error {
	if err := os.RemoveAll(directory); err != nil {
		return fmt.Errorf("can't remove what an earlier run has left: %w", err)
	}
	const private = 0o700
	if err := os.MkdirAll(directory, private); err != nil {
		return fmt.Errorf("can't make a directory for the API server: %w", err)
	}
	return nil
}

// endAll kills the remaining children of this process, including the servers, whose data is not needed.
func endAll() error {
	for {
		all, err := filepath.Glob("/proc/[0-9]*/stat")
		if err != nil {
			return err
		}
		for _, file := range all {
			var pid, parent int
			stat, _ := os.ReadFile(file) // it may have ended in the meantime
			// The format is "pid (name) state parent …", proc_pid_stat(5); a name may contain spaces and parentheses.
			_, rest, _ := strings.Cut(string(stat[bytes.LastIndexByte(stat, ')')+1:]), " ")
			_, err := fmt.Sscanf(rest, "%1s %d", new(string), &parent)
			if err != nil || parent != os.Getpid() {
				continue
			}
			if _, err := fmt.Sscan(string(stat), &pid); err == nil {
				_ = syscall.Kill(pid, syscall.SIGKILL)
			}
		}
		// The children of an ended process become children of this one.
		if _, err := syscall.Wait4(-1, nil, 0, nil); err != nil && !errors.Is(err, syscall.EINTR) {
			return nil // there is none left
		}
	}
}
