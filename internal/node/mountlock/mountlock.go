// Package mountlock excludes a server's mount of a target and the agent's handover of that target to another node from running at once. The
// lock of a target is a lock on a file beside the node file (flock(2)). The server holds it from before it reads its configuration until
// its mount has ended. Its holder can therefore be sure that no mount is in progress that was decided earlier (docs/adr/0096).
package mountlock

import (
	"errors"
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

// HeldError means that another program of the node has the lock.
type HeldError struct{ Path string }

func (e *HeldError) Error() string {
	return fmt.Sprintf("another program of this node mounts it, or gives it to another node, at this moment (%s is locked); it is tried again", e.Path)
}

// Take takes the lock of an existing file or directory, and does not wait for it. The lock ends when the file is closed and the last
// program that inherited the file has ended. It is never unlocked explicitly.
func Take(path string) (*os.File, error) {
	file, err := os.OpenFile(path, os.O_RDONLY, 0)
	if err != nil {
		return nil, fmt.Errorf("can't take the lock of its mount: %w", err)
	}
	if err := take(file, path); err != nil {
		return nil, errors.Join(err, file.Close())
	}
	return file, nil
}

// Make creates the file of a lock if it is missing. The file stays forever, because two files of one name are two locks.
func Make(path string) error {
	file, err := os.OpenFile(path, os.O_RDONLY|os.O_CREATE, 0o600)
	if err != nil {
		return fmt.Errorf("can't make the lock of a mount: %w", err)
	}
	return file.Close()
}

func take(file *os.File, path string) error {
	for {
		err := unix.Flock(int(file.Fd()), unix.LOCK_EX|unix.LOCK_NB)
		if errors.Is(err, unix.EINTR) {
			continue
		}
		if errors.Is(err, unix.EWOULDBLOCK) {
			return &HeldError{path}
		}
		if err != nil {
			return fmt.Errorf("can't take the lock of its mount: flock %s: %w", path, err)
		}
		break
	}
	// If the file was removed and created again in the meantime, this lock is on the wrong file.
	locked, err := file.Stat()
	if err != nil {
		return fmt.Errorf("can't take the lock of its mount: %w", err)
	}
	there, err := os.Stat(path)
	if err != nil {
		return fmt.Errorf("can't take the lock of its mount: %w", err)
	}
	if !os.SameFile(locked, there) {
		return fmt.Errorf("can't take the lock of its mount: %s was exchanged for another file; it is tried again", path)
	}
	return nil
}
