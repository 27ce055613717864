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

// ReloadVerb is the word of the command line of this binary that calls Follow with the files behind it.
const ReloadVerb = "reload"

// LookAgain is how often Follow looks at its files. The kubelet brings a changed Secret to the node within about a minute.
const LookAgain = 5 * time.Second

// startFollowing starts this binary beside the daemon that this process becomes, as the daemon's own user, who may send signals to the
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

// Files are files that may change, with what was read of them last.
type Files struct {
	paths []string
	known map[string]string
}

// NewFiles reads them for the first time.
func NewFiles(paths ...string) *Files {
	f := &Files{paths: paths, known: map[string]string{}}
	f.Changed()
	return f
}

// Changed is true when a file has another content than before. A file that can't be read has the one that it had: the kubelet changes
// what is mounted in several steps.
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

// Follow calls tell after each look that finds another content in a file, until the context ends, or there is nobody to tell.
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
			return fmt.Errorf("tell the daemon to read its configuration anew: %w", err)
		}
		log.Info("told the daemon to read its configuration anew", "files", files.paths)
	}
}

// Hangup tells the parent of this process to read its configuration anew.
func Hangup() error { return syscall.Kill(os.Getppid(), syscall.SIGHUP) }
