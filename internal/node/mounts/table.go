// Package mounts proves that a filesystem is mounted, and keeps it mounted. It prepares a write-protected mount point, clears the leftovers
// of a dead mount, and restarts the mount program when it ends.
package mounts

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/moby/sys/mountinfo"
	"golang.org/x/sys/unix"

	"parallelfs.dev/operator/internal/node/procfs"
	"parallelfs.dev/operator/internal/node/spec"
)

// Entry is one mount at a path. Later entries of a list are mounted over earlier ones.
type Entry struct {
	FSType, Source string
}

// State is the state of a mount point.
type State string

// The states of a mount point.
const (
	// Absent means that nothing is mounted.
	Absent State = "Absent"
	// Ours means that the filesystem is mounted there.
	Ours State = "Ours"
	// Another means that another filesystem of the same type is mounted there.
	Another State = "Another"
	// Foreign means that a filesystem of another type is mounted there.
	Foreign State = "Foreign"
)

// Assess returns the state of the topmost mount.
func Assess(entries []Entry, m spec.Mount) State {
	if len(entries) == 0 {
		return Absent
	}
	top := entries[len(entries)-1]
	switch {
	case m.Volume:
		return Ours
	case !sameType(top.FSType, m.FSType):
		return Foreign
	case !sameSource(top.Source, m.Source):
		return Another
	default:
		return Ours
	}
}

// sameType compares the type in mountinfo with the wanted one. "fuse" also matches "fuse.mfs", but not "fuseblk". A kernel type such as
// "example" also matches "fuse.example", which a program serves (mount(8), FILESYSTEM SUBTYPES).
func sameType(shown, wanted string) bool {
	general, special, _ := strings.Cut(shown, ".")
	return shown == wanted || general == wanted || general == "fuse" && special == wanted
}

// sameSource compares the source in mountinfo with the wanted prefix. If the prefix ends in a port, it must match the whole port: host:942
// does not match host:9421.
func sameSource(shown, wanted string) bool {
	rest, begins := strings.CutPrefix(shown, wanted)
	if !begins {
		return false
	}
	digit := func(s string, i int) bool { return i >= 0 && i < len(s) && s[i] >= '0' && s[i] <= '9' }
	return !digit(wanted, len(wanted)-1) || !digit(rest, 0)
}

// understand refuses an invalid spec. The path must be exact, as it is in the mount table.
func understand(m spec.Mount) error {
	switch {
	case !filepath.IsAbs(m.Path), filepath.Clean(m.Path) != m.Path, m.Path == "/":
		return fmt.Errorf("the mount point %q is not an absolute path without . and .. below /", m.Path)
	case m.View != "" && (!filepath.IsAbs(m.View) || filepath.Clean(m.View) != m.View || m.View == m.Path):
		return fmt.Errorf("the second mount point %q is not an absolute path without . and .. other than %s", m.View, m.Path)
	case m.FSType == "" && !m.Volume:
		return fmt.Errorf("the spec does not say the type of the filesystem at %s, so it can't be told from another", m.Path)
	}
	if m.Network != nil && (!m.Host || !m.Kernel) {
		return errors.New("only a filesystem of the kernel that a program of the node mounts has a network of the kernel; " +
			"the operator and its node image must be of the same version")
	}
	for _, file := range m.Files {
		if !filepath.IsAbs(file.Path) || file.Line != "" || file.RemoveLine != "" {
			return fmt.Errorf("the file %q can't be written for a mount: its path must be absolute, and it can't have lines for targets; "+
				"the operator and its node image must be of the same version", file.Path)
		}
	}
	return nil
}

// Dead is true for the errors of a mount whose server is gone forever, see fuse(4) and nfs(5). shown is its type in the mount table: only a
// program that served it loses its connection for good. A kernel client reconnects. After an eviction it answers ENOTCONN once and works a
// moment later, and programs keep their open files.
func Dead(shown string, err error) bool {
	program, _, _ := strings.Cut(shown, ".")
	return errors.Is(err, syscall.ESTALE) || program == "fuse" && (errors.Is(err, syscall.ENOTCONN) || errors.Is(err, syscall.ECONNABORTED))
}

// at lists the mounts at path from /proc/self/mountinfo, which can be read even if a mounted filesystem hangs.
func at(path string) ([]Entry, error) {
	table, err := os.Open("/proc/self/mountinfo")
	if err != nil {
		return nil, fmt.Errorf("can't read the mounts of this process: %w", err)
	}
	defer table.Close()
	return entriesAt(table, path)
}

// Describe names the type and the options of what is mounted at a path, such as "ext4 (rw,relatime)"; empty when nothing is.
func Describe(path string) (string, error) {
	found, err := procfs.MountsAt("/proc/self/mountinfo", path)
	if err != nil {
		return "", fmt.Errorf("can't read the mounts of this process: %w", err)
	}
	if len(found) == 0 {
		return "", nil
	}
	top := found[len(found)-1]
	return fmt.Sprintf("%s (%s,%s)", top.FSType, top.Options, top.VFSOptions), nil
}

// entriesAt reads a table in the form of proc_pid_mountinfo(5).
func entriesAt(table io.Reader, path string) ([]Entry, error) {
	entries := []Entry{}
	err := procfs.EachMountIn(table, func(m *mountinfo.Info) {
		if m.Mountpoint == path {
			entries = append(entries, Entry{FSType: m.FSType, Source: m.Source})
		}
	})
	if err != nil {
		return nil, fmt.Errorf("can't read the mounts of this process: %w", err)
	}
	return entries, nil
}

// ask queries the size of the filesystem at path in the background, because the call hangs as long as the filesystem does.
func ask(path string) <-chan error {
	answer := make(chan error, 1)
	go func() {
		var stat unix.Statfs_t
		answer <- unix.Statfs(path, &stat)
	}()
	return answer
}

// Check returns nil if the filesystem is mounted and answers within the limit. Otherwise the error is a sentence that describes the fault.
func Check(ctx context.Context, m spec.Mount, limit time.Duration) error {
	if err := understand(m); err != nil {
		return err
	}
	entries, err := at(m.Path)
	if err != nil {
		return err
	}
	if state := Assess(entries, m); state != Ours {
		sentence := describe(state, entries, m)
		if why, _ := cannot(m.FSType, m.Modules, m.Host); state == Absent && m.Kernel && why != "" {
			sentence += ": " + why
		}
		return errors.New(sentence)
	}
	select {
	case err := <-ask(m.Path):
		if err != nil {
			return fmt.Errorf("%s is mounted, but does not work: %w", m.Path, err)
		}
		return checkView(m)
	case <-time.After(limit):
		return fmt.Errorf("%s is mounted, but did not answer within %s; look whether the filesystem's servers run", m.Path, limit)
	case <-ctx.Done():
		return ctx.Err()
	}
}

// checkView returns nil if the filesystem is also mounted at its view.
func checkView(m spec.Mount) error {
	if m.View == "" {
		return nil
	}
	entries, err := at(m.View)
	if err != nil {
		return err
	}
	if state := Assess(entries, viewOf(m)); state != Ours {
		return errors.New(describe(state, entries, viewOf(m)) + "; it is for the pods of benchmarks, and the client tries to mount it")
	}
	return nil
}

func describe(state State, entries []Entry, m spec.Mount) string {
	if state == Absent {
		return fmt.Sprintf("%s is not mounted", m.Path)
	}
	top := entries[len(entries)-1]
	return fmt.Sprintf("%s has another filesystem mounted on it (type %s from %q, wanted type %s from %q); unmount it or choose another path",
		m.Path, top.FSType, top.Source, m.FSType, m.Source)
}
