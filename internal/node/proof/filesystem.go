package proof

import (
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

// UUID returns the UUID of the filesystem that contains an open directory. It also works for a filesystem that no path leads to
// (fsmount(2)).
func UUID(directory *os.File) (string, error) {
	var stat unix.Statfs_t
	if err := unix.Fstatfs(int(directory.Fd()), &stat); err != nil {
		return "", fmt.Errorf("can't ask for the type of the filesystem: %w", err)
	}
	return uuidOf(int(directory.Fd()), int64(stat.Type)) //nolint:unconvert // its size differs between processors
}
