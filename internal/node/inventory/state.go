package inventory

import (
	"errors"
	"io/fs"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// stateDirectory is the daemons' directory for everything besides targets.
const stateDirectory = "/var/lib/parallelfs"

// volatile lists the filesystems that a node creates at each boot, or usually does.
var volatile = map[int64]string{
	unix.TMPFS_MAGIC: "tmpfs", unix.RAMFS_MAGIC: "ramfs", unix.OVERLAYFS_SUPER_MAGIC: "overlay",
}

// volatileAt names the filesystem of a path, existing or not, if it does not survive a reboot. It is empty for other filesystems.
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
	return volatile[int64(stat.Type)] //nolint:unconvert // the type differs between processors
}
