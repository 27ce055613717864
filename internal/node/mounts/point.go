package mounts

import (
	"errors"
	"fmt"
	"io/fs"
	"os"

	"golang.org/x/sys/unix"
)

// Prepare makes the directory a mount point that can't be written to while nothing is mounted. It is empty, without permissions, and
// immutable (chattr(1) +i), which also stops root. Don't call it while something is mounted there. immutable is false if the disk's
// filesystem does not support the flag; root can then still write there.
func Prepare(path string) (immutable bool, err error) { return prepare(path, setImmutable) }

func prepare(path string, setImmutable func(path string, on bool) error) (immutable bool, err error) {
	info, err := os.Lstat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		if err := os.MkdirAll(path, 0o755); err != nil {
			return false, fmt.Errorf("can't make the mount point %s: %w", path, err)
		}
	case err != nil:
		return false, fmt.Errorf("can't look at the mount point %s: %w", path, err)
	case !info.IsDir():
		return false, fmt.Errorf("the mount point %s is not a directory (nor may it be a symbolic link to one); move it away, or choose another path", path)
	}
	entries, err := os.ReadDir(path)
	if err != nil {
		return false, fmt.Errorf("can't look into the mount point %s: %w", path, err)
	}
	if len(entries) > 0 {
		return false, fmt.Errorf("the mount point %s is not empty (%s, %d in all): it would be hidden by the mount; move it away",
			path, entries[0].Name(), len(entries))
	}
	if err := closeOff(path, setImmutable); err != nil {
		return false, err
	}
	switch err := setImmutable(path, true); {
	case err == nil:
		return true, nil
	case unsupported(err):
		return false, nil
	default:
		return false, fmt.Errorf("can't make the mount point %s immutable: %w", path, err)
	}
}

// closeOff removes all permissions. An immutable directory that has permissions, such as an administrator's own, can't be changed before
// the flag is cleared.
func closeOff(path string, setImmutable func(path string, on bool) error) error {
	info, err := os.Stat(path)
	if err != nil {
		return fmt.Errorf("can't look at the mount point %s: %w", path, err)
	}
	if info.Mode().Perm() == 0 {
		return nil
	}
	if err := setImmutable(path, false); err != nil && !unsupported(err) {
		return fmt.Errorf("can't change the mount point %s: %w", path, err)
	}
	if err := os.Chmod(path, 0); err != nil {
		return fmt.Errorf("can't change the mount point %s: %w", path, err)
	}
	return nil
}

// unsupported is true if the filesystem does not support flags (ENOTTY, EOPNOTSUPP, ENOSYS), or the process may not set them.
func unsupported(err error) bool {
	return errors.Is(err, unix.ENOTTY) || errors.Is(err, unix.EOPNOTSUPP) || errors.Is(err, unix.ENOSYS) || errors.Is(err, fs.ErrPermission)
}

// immutableFlag is FS_IMMUTABLE_FL of linux/fs.h.
const immutableFlag = 0x10

// setImmutable sets or clears the flag with ioctl_iflags(2).
func setImmutable(path string, on bool) (err error) {
	directory, err := os.Open(path)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, directory.Close()) }()
	fd := int(directory.Fd())
	flags, err := unix.IoctlGetInt(fd, unix.FS_IOC_GETFLAGS)
	if err != nil {
		return err
	}
	wanted := flags &^ immutableFlag
	if on {
		wanted |= immutableFlag
	}
	if wanted == flags {
		return nil
	}
	return unix.IoctlSetPointerInt(fd, unix.FS_IOC_SETFLAGS, wanted)
}
