// Package mountlock keeps a server, which mounts a target, and the agent of its node, which gives the target to another node, from doing so
// at once. The lock of a target is that of a file beside the file of the node (flock(2)). The server holds it from before it reads what it
// is told until its mount has ended; so who has it knows that no mount is under way that was decided on before (docs/adr/0096).
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

// Take takes the lock of a file that is there, or of a directory, and does not wait for it. It goes when the file is closed, and when the
// last program has ended that the file was given to: it is never unlocked.
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

// Make makes the file of a lock where there is none. It stays for ever: two files of one name are two locks.
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
	// Whoever has removed the file meanwhile, and made another one, would have another lock.
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
