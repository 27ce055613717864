package daemon

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"slices"
	"syscall"
	"time"
)

// ReloadVerb is the subcommand of this binary that calls Follow with the files in its arguments.
const ReloadVerb = "reload"

// LookAgain is the interval at which Follow checks its files. The kubelet brings a changed Secret to the node within about a minute.
const LookAgain = 5 * time.Second

// startFollowing starts this binary beside the daemon that this process becomes. It runs as the daemon's user, who may send signals to the
// daemon. It ends with the daemon, because the daemon is the first process of its container.
func startFollowing(files []string, uid, gid int) error {
	own, err := os.Executable()
	if err != nil {
		return fmt.Errorf("can't find this binary: %w", err)
	}
	//nolint:gosec,noctx // the operator's own spec names the files, and the child outlives this program
	child := exec.Command(own, slices.Concat([]string{ReloadVerb}, files)...)
	child.Stdout, child.Stderr = os.Stdout, os.Stderr
	child.SysProcAttr = &syscall.SysProcAttr{
		Credential: &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}, //nolint:gosec // the system's own ids are no larger
	}
	if err := child.Start(); err != nil {
		return fmt.Errorf("can't start what watches the daemon's files: %w", err)
	}
	return nil
}

// Files holds files that may change, with their content at the last read.
type Files struct {
	paths []string
	known map[string]string
}

// NewFiles reads the files for the first time.
func NewFiles(paths ...string) *Files {
	f := &Files{paths: paths, known: map[string]string{}}
	f.Changed()
	return f
}

// Changed reports whether a file's content has changed since the last call. A file that can't be read counts as unchanged, because the
// kubelet updates mounted files in several steps.
func (f *Files) Changed() bool {
	changed := false
	for _, path := range f.paths {
		content, err := os.ReadFile(path)
		if err != nil {
			continue
		}
		before, seen := f.known[path]
		f.known[path] = string(content)
		changed = changed || seen && before != string(content)
	}
	return changed
}

// Follow calls tell after each check that finds a changed file. It returns when the context ends or the receiver is gone.
func Follow(ctx context.Context, files *Files, looks <-chan time.Time, tell func() error, log *slog.Logger) error {
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-looks:
		}
		if !files.Changed() {
			continue
		}
		if err := tell(); errors.Is(err, syscall.ESRCH) {
			return nil
		} else if err != nil {
			return fmt.Errorf("signal the daemon to read its configuration again: %w", err)
		}
		log.Info("signaled the daemon to read its configuration again", "files", files.paths)
	}
}

// Hangup sends SIGHUP to the parent of this process, which then reads its configuration again.
func Hangup() error { return syscall.Kill(os.Getppid(), syscall.SIGHUP) }
