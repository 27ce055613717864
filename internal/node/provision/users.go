package provision

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/moby/sys/mountinfo"
	"golang.org/x/sys/unix"

	"parallelfs.dev/operator/internal/node/procfs"
)

// longestComm is the length of a name in comm, including its newline (proc_pid_comm(5)).
const longestComm = 64

// mostUsers is how many users of a filesystem a sentence names.
const mostUsers = 3

// mountsAt lists the mounts at a path in this process's namespace. Later ones are on top of earlier ones.
func mountsAt(path string) ([]*mountinfo.Info, error) {
	found, err := procfs.MountsAt("/proc/self/mountinfo", path)
	if err != nil {
		return nil, fmt.Errorf("can't read the mounts of this process: %w", err)
	}
	return found, nil
}

// Users lists the processes that use a mounted filesystem: first those with an open file, a working directory or a root directory on it,
// then those with a mount of it. Of processes with the same mounts, it lists the first. major and minor are the numbers in
// proc_pid_mountinfo(5); proc is /proc of the host. It leaves out processes that end meanwhile. It accesses no other filesystem, because
// one whose server is away would not respond.
func Users(proc string, major, minor int) []string {
	entries, err := procfs.List(proc)
	if err != nil {
		return []string{fmt.Sprintf("unknown: can't read %s: %s", proc, err)}
	}
	var processes []string
	for _, entry := range entries {
		if _, err := strconv.Atoi(entry.Name()); err == nil {
			processes = append(processes, entry.Name())
		}
	}
	wanted := filesystem{device: unix.Mkdev(uint32(major), uint32(minor)), mounts: map[int]bool{}} //nolint:gosec // the kernel's own numbers
	ownNamespace := namespaceOf(proc, "self")
	holds := map[string]bool{} // by namespace, whether the filesystem is mounted there
	for _, pid := range processes {
		namespace := namespaceOf(proc, pid)
		if _, read := holds[namespace]; read && namespace != "" {
			continue
		}
		held := wanted.add(filepath.Join(proc, pid, "mountinfo"), major, minor)
		if namespace != "" {
			holds[namespace] = held
		}
	}
	own := strconv.Itoa(os.Getpid())
	var users, holders []string
	named := map[string]bool{ownNamespace: true}
	for _, pid := range processes {
		if pid == own {
			continue
		}
		if how := wanted.usedBy(filepath.Join(proc, pid)); how != "" {
			users = append(users, fmt.Sprintf("%s (process %s: %s)", commandOf(proc, pid), pid, how))
			continue
		}
		if namespace := namespaceOf(proc, pid); namespace != "" && !named[namespace] {
			named[namespace] = true
			if holds[namespace] {
				holders = append(holders, fmt.Sprintf("%s (process %s: a copy of the mount)", commandOf(proc, pid), pid))
			}
		}
	}
	slices.Sort(users)
	slices.Sort(holders)
	users = append(users, holders...)
	if len(users) > mostUsers {
		users = append(users[:mostUsers:mostUsers], fmt.Sprintf("and %d more", len(users)-mostUsers))
	}
	return users
}

// filesystem is a mounted filesystem whose users are searched.
type filesystem struct {
	device uint64
	// mounts has the ID of every mount in all namespaces, and true for those of this filesystem. IDs are unique on a node.
	mounts map[int]bool
}

// add reads a mount table, and returns whether the filesystem is in it.
func (f filesystem) add(table string, major, minor int) (held bool) {
	// A table that can't be read belongs to a process that has ended.
	_ = procfs.EachMount(table, func(m *mountinfo.Info) {
		own := m.Major == major && m.Minor == minor
		f.mounts[m.ID] = own
		held = held || own
	})
	return held
}

// has reports whether a file that was opened on a mount is on the filesystem. path leads to the file.
func (f filesystem) has(mount int, path string) bool {
	if own, known := f.mounts[mount]; known {
		return own
	}
	// The mount was detached (umount2(2), MNT_DETACH), so no table has it.
	device, _, err := procfs.Device(path)
	return err == nil && device == f.device
}

// usedBy returns the first way found in which a process uses the filesystem, empty for none.
func (f filesystem) usedBy(process string) string {
	for _, link := range []string{"cwd", "root", "exe"} {
		path := filepath.Join(process, link)
		if mount, err := procfs.MountOf(path); err == nil && f.has(mount, path) {
			return map[string]string{"cwd": "its working directory", "root": "its root directory", "exe": "its program"}[link]
		}
	}
	files, err := procfs.List(filepath.Join(process, "fd"))
	if err != nil {
		return ""
	}
	for _, file := range files {
		path := filepath.Join(process, "fd", file.Name())
		name, err := os.Readlink(path)
		if err != nil || !strings.HasPrefix(name, "/") {
			continue // a socket, a pipe or another file that exists only in the kernel
		}
		if opened, err := procfs.FileOf(process, file.Name()); err == nil && f.has(opened.Mount, path) {
			return "open " + name
		}
	}
	return ""
}

func commandOf(proc, pid string) string {
	name, err := procfs.Head(filepath.Join(proc, pid, "comm"), longestComm)
	if err != nil {
		return "a process"
	}
	return strings.TrimSpace(string(name))
}

func namespaceOf(proc, pid string) string {
	namespace, err := os.Readlink(filepath.Join(proc, pid, "ns", "mnt"))
	if err != nil {
		return ""
	}
	return namespace
}
