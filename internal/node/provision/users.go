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
)

// mostUsers is how many users of a filesystem a sentence names.
const mostUsers = 3

// mountsAt lists what this process sees mounted at a path; later ones lie on top of earlier ones.
func mountsAt(path string) ([]*mountinfo.Info, error) {
	table, err := os.Open("/proc/self/mountinfo")
	if err != nil {
		return nil, fmt.Errorf("can't read the mounts of this process: %w", err)
	}
	defer table.Close()
	found, err := mountinfo.GetMountsFromReader(table, func(info *mountinfo.Info) (skip, stop bool) { return info.Mountpoint != path, false })
	if err != nil {
		return nil, fmt.Errorf("can't read the mounts of this process: %w", err)
	}
	return found, nil
}

// Users says which processes use a mounted filesystem: by an open file, a working or root directory, and behind those, by a mount of
// their own; of processes with the same mounts, the first. major and minor are those that proc_pid_mountinfo(5) shows for it; proc is /proc
// of the host. What can't be looked at, because the process ends meanwhile, is left out.
func Users(proc string, major, minor int) []string {
	device := unix.Mkdev(uint32(major), uint32(minor)) //nolint:gosec // the kernel's own numbers
	processes, err := os.ReadDir(proc)
	if err != nil {
		return []string{fmt.Sprintf("unknown: can't read %s: %s", proc, err)}
	}
	own := strconv.Itoa(os.Getpid())
	ownNamespace := namespaceOf(proc, "self")
	var users, holders []string
	namespaces := map[string]bool{ownNamespace: true}
	for _, entry := range processes {
		pid := entry.Name()
		if _, err := strconv.Atoi(pid); err != nil || pid == own {
			continue
		}
		if how := uses(filepath.Join(proc, pid), device); how != "" {
			users = append(users, fmt.Sprintf("%s (process %s: %s)", commandOf(proc, pid), pid, how))
			continue
		}
		if namespace := namespaceOf(proc, pid); namespace != "" && !namespaces[namespace] {
			namespaces[namespace] = true
			if mountIn(filepath.Join(proc, pid, "mountinfo"), major, minor) {
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

// uses says how a process uses the device: the first way that is found.
func uses(process string, device uint64) string {
	on := func(path string) bool {
		var stat unix.Stat_t
		return unix.Stat(path, &stat) == nil && stat.Dev == device
	}
	switch {
	case on(filepath.Join(process, "cwd")):
		return "its working directory"
	case on(filepath.Join(process, "root")):
		return "its root directory"
	case on(filepath.Join(process, "exe")):
		return "its program"
	}
	files, err := os.ReadDir(filepath.Join(process, "fd"))
	if err != nil {
		return ""
	}
	for _, file := range files {
		path := filepath.Join(process, "fd", file.Name())
		if !on(path) {
			continue
		}
		name, err := os.Readlink(path)
		if err != nil {
			name = "a file"
		}
		return "open " + name
	}
	return ""
}

func commandOf(proc, pid string) string {
	name, err := os.ReadFile(filepath.Join(proc, pid, "comm"))
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

// mountIn is true when a table of mounts has the filesystem.
func mountIn(path string, major, minor int) bool {
	table, err := os.Open(path)
	if err != nil {
		return false
	}
	defer table.Close()
	found, err := mountinfo.GetMountsFromReader(table, func(info *mountinfo.Info) (skip, stop bool) {
		return info.Major != major || info.Minor != minor, false
	})
	return err == nil && len(found) > 0
}
