package mounts

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
)

// Remove removes a mount point that Prepare made. A missing one is no error. One that contains anything, or has a mount on it, stays.
func Remove(path string) error {
	info, err := os.Lstat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("can't look at the mount point %s: %w", path, err)
	}
	if !info.IsDir() {
		return fmt.Errorf("the mount point %s is not a directory; move it away", path)
	}
	if err := setImmutable(path, false); err != nil && !unsupported(err) {
		return fmt.Errorf("can't make the mount point %s removable (chattr -i): %w", path, err)
	}
	if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("can't remove the mount point: %w; look what is in it, or mounted on it", err)
	}
	return nil
}
