// Package procfs reads files of procfs and sysfs. The content of many of them is under the control of a process on the node: its
// environment, its mounts and its open files. Each read has a limit in bytes, and none waits for the filesystem of an open file.
package procfs

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// Head returns at most the first most bytes of a file. A process can make its environment or its command line appear to have any length
// (prctl(2), PR_SET_MM_MAP).
func Head(path string, most int64) ([]byte, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	return io.ReadAll(io.LimitReader(file, most))
}

const (
	// mostBytes bounds a file that is read completely. A table of a hundred thousand mounts is about this long.
	mostBytes = 16 << 20
	// mostEntries bounds the entries of a directory. A process can have a million open files if its limit is raised.
	mostEntries = 1 << 18
)

// Read returns a complete file of procfs or sysfs. A file beyond the limit is an error, because a part of it would be misleading.
func Read(path string) ([]byte, error) {
	content, err := Head(path, mostBytes+1)
	if err == nil && len(content) > mostBytes {
		return nil, fmt.Errorf("%s has more than %d bytes", path, mostBytes)
	}
	return content, err
}

// List returns the entries of a directory of procfs or sysfs, sorted by name. A directory beyond the limit is an error.
func List(path string) ([]os.DirEntry, error) { return list(path, mostEntries) }

func list(path string, most int) ([]os.DirEntry, error) {
	directory, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer directory.Close()
	entries, err := directory.ReadDir(most + 1)
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, err
	}
	if len(entries) > most {
		return nil, fmt.Errorf("%s has more than %d entries", path, most)
	}
	slices.SortFunc(entries, func(a, b os.DirEntry) int { return strings.Compare(a.Name(), b.Name()) })
	return entries, nil
}

// smallFile bounds the files about one open file or one thread, which have a few hundred bytes.
const smallFile = 64 << 10

// OpenFile is an open file of a process in proc_pid_fdinfo(5). The kernel writes fdinfo without a request to the filesystem.
type OpenFile struct {
	// Mount is the ID of the mount that the file was opened on: the first field of a line of mountinfo.
	Mount int
	// Writes is true if the file is open for writing.
	Writes bool
}

// FileOf reads the fdinfo of an open file. process is the directory of the process in procfs, and descriptor the number of the open file.
func FileOf(process, descriptor string) (OpenFile, error) {
	return parseFile(filepath.Join(process, "fdinfo", descriptor))
}

func parseFile(path string) (OpenFile, error) {
	content, err := headOfSmall(path)
	if err != nil {
		return OpenFile{}, err
	}
	var file OpenFile
	var flags, mount bool
	for line := range bytes.Lines(content) {
		name, value, _ := bytes.Cut(line, []byte(":"))
		text := string(bytes.TrimSpace(value))
		switch string(name) {
		case "flags": // in octal
			n, err := strconv.ParseUint(text, 8, 64)
			flags = err == nil
			file.Writes = n&unix.O_ACCMODE != unix.O_RDONLY
		case "mnt_id":
			file.Mount, err = strconv.Atoi(text)
			mount = err == nil
		}
	}
	if !flags || !mount {
		return OpenFile{}, fmt.Errorf("%s has no flags or no mnt_id", path)
	}
	return file, nil
}

// headOfSmall is Head for one of very many small files: it takes half of the time.
func headOfSmall(path string) ([]byte, error) {
	descriptor, err := unix.Open(path, unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, &os.PathError{Op: "open", Path: path, Err: err}
	}
	defer unix.Close(descriptor)
	content := make([]byte, 0, 512)
	for len(content) < smallFile {
		n, err := unix.Read(descriptor, content[len(content):cap(content)])
		if err != nil {
			return nil, &os.PathError{Op: "read", Path: path, Err: err}
		}
		if n == 0 {
			break
		}
		content = slices.Grow(content[:len(content)+n], 512)
	}
	return content, nil
}

// MountOf returns the ID of the mount that a path leads to. The path may be a procfs link such as PROCESS/cwd. Opening a file with O_PATH
// sends no request to its filesystem (open(2)).
func MountOf(path string) (int, error) {
	descriptor, err := unix.Open(path, unix.O_PATH|unix.O_CLOEXEC, 0)
	if err != nil {
		return 0, &os.PathError{Op: "open", Path: path, Err: err}
	}
	defer unix.Close(descriptor)
	file, err := parseFile("/proc/self/fdinfo/" + strconv.Itoa(descriptor))
	return file.Mount, err
}

// errNotStatted means that the kernel did not return the type of the file.
var errNotStatted = errors.New("its type is not known without a question to its filesystem")

// Device returns the device number of the filesystem that contains the file at path. It also returns the device number that the file itself
// represents, or 0 if the file is not a block device. A filesystem on a network answers from its cache, not from its server (statx(2),
// AT_STATX_DONT_SYNC).
func Device(path string) (filesystem, itself uint64, err error) {
	var found unix.Statx_t
	const flags = unix.AT_STATX_DONT_SYNC | unix.AT_NO_AUTOMOUNT
	if err := unix.Statx(unix.AT_FDCWD, path, flags, unix.STATX_TYPE, &found); err != nil {
		return 0, 0, &os.PathError{Op: "statx", Path: path, Err: err}
	}
	if found.Mask&unix.STATX_TYPE == 0 {
		return 0, 0, &os.PathError{Op: "statx", Path: path, Err: errNotStatted}
	}
	if found.Mode&unix.S_IFMT == unix.S_IFBLK {
		itself = unix.Mkdev(found.Rdev_major, found.Rdev_minor)
	}
	return unix.Mkdev(found.Dev_major, found.Dev_minor), itself, nil
}
