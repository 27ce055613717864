package bench

import (
	"errors"
	"fmt"
	"os"

	"golang.org/x/sys/unix"

	"parallelfs.dev/operator/internal/node/spec"
)

// NoRoom is the exit code when the filesystem has less room than the repetition needs: the number of ENOSPC.
const NoRoom = int(unix.ENOSPC)

// room is the free space that a filesystem reports. inodes is -1 if the filesystem does not count them.
type room struct{ bytes, inodes int64 }

// askRoom reads the free space through the opened directory (fstatfs(2)), whatever has become of its mount point.
func askRoom(mount *os.Root) (free room, err error) {
	directory, err := mount.Open(".")
	if err != nil {
		return room{}, fmt.Errorf("can't open %s: %w", mount.Name(), err)
	}
	defer func() { err = errors.Join(err, directory.Close()) }()
	var stat unix.Statfs_t
	if err := unix.Fstatfs(int(directory.Fd()), &stat); err != nil {
		return room{}, fmt.Errorf("can't ask %s for its free space: %w", mount.Name(), err)
	}
	return roomOf(stat), nil
}

func roomOf(stat unix.Statfs_t) room {
	unit := stat.Frsize // statfs(2): the unit of block counts if it is set
	if unit == 0 {
		unit = stat.Bsize
	}
	free := room{bytes: int64(stat.Bavail) * unit, inodes: int64(stat.Ffree)} //nolint:gosec // less than 2^63 bytes and files
	if stat.Files == 0 {
		free.inodes = -1
	}
	return free
}

// enough returns an error with the exit code NoRoom if the filesystem has less free space than the repetition needs. Later steps are not
// checked, because part of the repetition's data already exists.
func enough(mount *os.Root, b spec.Benchmark) error {
	if b.KeepBefore || b.NeedBytes == 0 && b.NeedInodes == 0 {
		return nil
	}
	free, err := askRoom(mount)
	if err != nil {
		return err
	}
	switch {
	case free.bytes < b.NeedBytes:
		return &ExitError{Code: NoRoom, Reason: fmt.Sprintf("the repetition needs %d bytes, and %s has %d free; "+
			"make room, or make the benchmark smaller", b.NeedBytes, b.Mount.Path, free.bytes)}
	case free.inodes >= 0 && free.inodes < b.NeedInodes:
		return &ExitError{Code: NoRoom, Reason: fmt.Sprintf("the repetition needs %d inodes, and %s has %d free; "+
			"make room, or make the benchmark smaller", b.NeedInodes, b.Mount.Path, free.inodes)}
	}
	return nil
}
