package inventory

import (
	"errors"
	"io/fs"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// stateDirectory is where daemons keep what they need besides targets.
const stateDirectory = "/var/lib/parallelfs"

// volatile are the filesystems that are created at each start of a node, or mostly are.
var volatile = map[int64]string{
	unix.TMPFS_MAGIC: "tmpfs", unix.RAMFS_MAGIC: "ramfs", unix.OVERLAYFS_SUPER_MAGIC: "overlay",
}

// volatileAt names the filesystem that a path is on, or will be on, when it is one that does not outlive a restart; empty for all others.
func volatileAt(path string) string {
	var stat unix.Statfs_t
	err := unix.Statfs(path, &stat)
	for errors.Is(err, fs.ErrNotExist) && path != filepath.Dir(path) {
		path = filepath.Dir(path)
		err = unix.Statfs(path, &stat)
	}
	if err != nil {
		return ""
	}
	return volatile[int64(stat.Type)] //nolint:unconvert // the type is another one on other processors
}
