package inventory

import (
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"

	"github.com/moby/sys/mountinfo"

	"parallelfs.dev/operator/internal/node/procfs"
)

// unshared returns the mount point that the state directory is on if this mount is not shared. The pods of servers then do not get a disk
// that the agent mounts below it. It is empty if the mount is shared, or if there is no table of mounts.
func (c Collector) unshared() (string, error) {
	var above []mountinfo.Info
	err := procfs.EachMount(filepath.Join(c.Proc, "1", "mountinfo"), func(m *mountinfo.Info) {
		if holds(m.Mountpoint, stateDirectory) {
			above = append(above, *m)
		}
	})
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return "", nil
	case err != nil:
		return "", fmt.Errorf("can't find out whether %s is on a shared mount: %w", stateDirectory, err)
	}
	on, found := visible(above)
	shared := slices.ContainsFunc(strings.Fields(on.Optional), func(field string) bool { return strings.HasPrefix(field, "shared:") })
	switch {
	case !found:
		return "", fmt.Errorf("can't find out whether %s is on a shared mount: the node's table of mounts has no root", stateDirectory)
	case shared:
		return "", nil
	}
	return on.Mountpoint, nil
}

// visible follows the mounts that contain one path, from the root on, as the kernel does when it resolves the path. A mount inside a
// directory that another mount covers is not on that way.
func visible(above []mountinfo.Info) (on mountinfo.Info, found bool) {
	for _, m := range above {
		known := slices.ContainsFunc(above, func(o mountinfo.Info) bool { return o.ID == m.Parent && o.ID != m.ID })
		if m.Mountpoint == "/" && !known {
			on, found = m, true
		}
	}
	for range above { // each step is one mount deeper
		next := -1
		for i, m := range above {
			if m.Parent == on.ID && m.ID != on.ID && (next < 0 || len(m.Mountpoint) < len(above[next].Mountpoint)) {
				next = i
			}
		}
		if next < 0 {
			break
		}
		on = above[next]
	}
	return on, found
}

// holds is true if path is directory or is below it.
func holds(directory, path string) bool {
	return directory == "/" || path == directory || strings.HasPrefix(path, directory+"/")
}
