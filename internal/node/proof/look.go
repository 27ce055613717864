package proof

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/moby/sys/mountinfo"
	"golang.org/x/sys/unix"

	"parallelfs.dev/operator/internal/node/procfs"
	"parallelfs.dev/operator/internal/node/spec"
	"parallelfs.dev/operator/internal/node/stored"
)

// Look collects all facts at path through one open directory. They therefore describe one filesystem, whatever is mounted or unmounted in
// the meantime. It follows no symbolic link at the path itself or at the marker. An error means that this process can't read its own
// mounts.
func Look(path string) (Facts, error) {
	fd, err := unix.Open(path, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	if err != nil {
		return Facts{Fault: faultOf(path, err)}, nil
	}
	top := os.NewFile(uintptr(fd), path)
	defer top.Close()
	mount, err := mountOf(fd)
	if err != nil {
		return Facts{}, err
	}
	if mount == nil || mount.Mountpoint != path {
		return Facts{}, nil
	}
	facts := Facts{Mounted: true, Root: mount.Root, FSType: mount.FSType}
	var stat unix.Statfs_t
	if err := unix.Fstatfs(fd, &stat); err != nil {
		return Facts{Fault: fmt.Sprintf("it is mounted, but does not work: %v; look into the kernel's log (dmesg) for the disk", err)}, nil
	}
	facts.ReadOnly = stat.Flags&unix.ST_RDONLY != 0
	facts.Marker, facts.MarkerFault, facts.MarkerGone = markerOf(fd, path)
	facts.UUID, err = uuidOf(fd, int64(stat.Type)) //nolint:unconvert // its size differs between processors
	old, isOld := errors.AsType[*oldKernelError](err)
	switch {
	case err == nil:
	case isOld && facts.Marker != nil && isFolded(facts.Marker.UUID, old.folded, stat.Fsid):
		facts.UUID = facts.Marker.UUID
	default:
		facts.UUIDFault = err.Error()
	}
	return facts, nil
}

func faultOf(path string, err error) string {
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return "there is no such directory in this container; the node's agent makes it, look whether it runs on this node (label parallelfs.dev/agent)"
	case errors.Is(err, unix.ELOOP), errors.Is(err, unix.ENOTDIR):
		return "it is not a directory, or a symbolic link, which is not followed; move it away (first: chattr -i " + path + ")"
	default:
		return fmt.Sprintf("it can't be opened: %v; look into the kernel's log (dmesg) for the disk", err)
	}
}

// mountOf returns the mount of an open file by the kernel's mount id (proc_pid_fdinfo(5)). If several are mounted over each other, it is
// the topmost. It is nil if the mount has disappeared from this container.
func mountOf(fd int) (*mountinfo.Info, error) {
	content, err := procfs.Read("/proc/self/fdinfo/" + strconv.Itoa(fd))
	if err != nil {
		return nil, fmt.Errorf("can't read the mounts of this process: %w", err)
	}
	id := -1
	for line := range strings.Lines(string(content)) {
		if value, found := strings.CutPrefix(line, "mnt_id:"); found {
			if id, err = strconv.Atoi(strings.TrimSpace(value)); err != nil {
				return nil, fmt.Errorf("can't understand /proc/self/fdinfo: %w", err)
			}
		}
	}
	var found *mountinfo.Info
	err = procfs.EachMount("/proc/self/mountinfo", func(m *mountinfo.Info) {
		if m.ID == id {
			found = m
		}
	})
	if err != nil {
		return nil, fmt.Errorf("can't read the mounts of this process: %w", err)
	}
	return found, nil
}

// markerLimit bounds the size of a marker in bytes; real ones are far smaller.
const markerLimit = 64 << 10

// markerOf reads the marker in the open directory. It accepts only a file that root alone could have written: a regular file owned by root
// with no permissions for others, on the same filesystem as the directory.
func markerOf(directory int, path string) (marker *spec.TargetMarker, fault string, gone bool) {
	name := filepath.Join(path, spec.TargetMarkerFile)
	// A pipe in its place must not block the open.
	fd, err := unix.Openat(directory, spec.TargetMarkerFile, unix.O_RDONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK|unix.O_CLOEXEC, 0)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, name + " is not there, so the disk was not provisioned by this operator or the file was removed; restore it from a backup of the disk", true
	case errors.Is(err, unix.ELOOP):
		return nil, name + " is a symbolic link, which is not followed; restore the file itself", false
	case err != nil:
		return nil, fmt.Sprintf("%s can't be opened (%v); look into the kernel's log (dmesg) for the disk", name, err), false
	}
	file := os.NewFile(uintptr(fd), name)
	defer file.Close()
	var own, parent unix.Stat_t
	if err := errors.Join(unix.Fstat(fd, &own), unix.Fstat(directory, &parent)); err != nil {
		return nil, fmt.Sprintf("%s can't be looked at (%v); look into the kernel's log (dmesg) for the disk", name, err), false
	}
	switch {
	case own.Mode&unix.S_IFMT != unix.S_IFREG:
		return nil, name + " is not a plain file; restore the file itself", false
	case own.Dev != parent.Dev:
		return nil, name + " lies on another filesystem than the directory; unmount what is mounted on it", false
	case own.Uid != 0:
		return nil, fmt.Sprintf("%s belongs to the user %d, not to root, so anybody could have written it; when its content is right, run: chown root %s",
			name, own.Uid, name), false
	case own.Mode&0o7777 != 0o600:
		return nil, fmt.Sprintf("%s has the mode %04o instead of 0600; when its content is right, run: chmod 0600 %s", name, own.Mode&0o7777, name), false
	}
	content, err := io.ReadAll(io.LimitReader(file, markerLimit))
	if err != nil {
		return nil, fmt.Sprintf("%s can't be read (%v); look into the kernel's log (dmesg) for the disk", name, err), false
	}
	marker, fault = understood(name, content)
	return marker, fault, false
}

// understood returns the parsed marker, or what is wrong with it.
func understood(name string, content []byte) (*spec.TargetMarker, string) {
	if err := stored.Check(content, spec.TargetMarkerVersion); err != nil {
		return nil, name + " " + err.Error()
	}
	var marker spec.TargetMarker
	if err := json.Unmarshal(content, &marker); err != nil {
		return nil, fmt.Sprintf("%s is damaged (%v); restore it from a backup of the disk", name, err)
	}
	return &marker, ""
}
