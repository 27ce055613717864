package daemon

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"parallelfs.dev/operator/internal/node/environment"
	"parallelfs.dev/operator/internal/node/spec"
)

// Rotation names the logs of a daemon that are rotated before its start after a clean stop, in the same way as the running daemon rotates
// them. Without it, a daemon that does not rotate at its stop would append to a log that lacks its last changes. It is passed on the
// command line and not in spec.Run, because an older node binary would refuse to start the daemon (ADR 0077).
type Rotation struct {
	// Pattern is the name of the logs, with * for the number, in the directory of Recover.File. The newest log has the number 0.
	Pattern string
	// Keep is the highest number. The log with this number is removed if all lower numbers exist.
	Keep int
}

// rotate renames the logs to the next numbers if the newest one exists. After a kill between two steps no log is lost, and the next call
// continues.
func (r Rotation) rotate(config *spec.Recover, lookup environment.Lookup) (rotated bool, err error) {
	before, after, ok := strings.Cut(r.Pattern, "*")
	if !ok || r.Keep < 1 || config == nil {
		return false, fmt.Errorf("can't move the logs %q on, up to number %d: the pattern needs a *, the number has to be 1 at least, and there has to be "+
			"a file that tells a clean stop from a crash", r.Pattern, r.Keep)
	}
	path, err := environment.Expand(config.File, lookup)
	if err != nil {
		return false, fmt.Errorf("can't find the logs beside %s: %w", config.File, err)
	}
	log := func(number int) string { return filepath.Join(filepath.Dir(path), before+strconv.Itoa(number)+after) }
	free := 0
	for ; free < r.Keep; free++ {
		_, err := os.Lstat(log(free))
		if errors.Is(err, fs.ErrNotExist) {
			break
		}
		if err != nil {
			return false, fmt.Errorf("can't look for logs: %w", err)
		}
	}
	if free == 0 {
		return false, nil
	}
	for i := free; i > 0; i-- {
		if err := os.Rename(log(i-1), log(i)); err != nil {
			return false, fmt.Errorf("can't move a log on: %w", err)
		}
	}
	return true, nil
}
