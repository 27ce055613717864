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

// Rotation says which logs of a daemon move on by one before it starts after a clean stop, as the daemon itself moves them on while it
// runs. A daemon that does not do it as it stops would go on with a log that lacks what it had changed last. It stands in the command line,
// and not in spec.Run: an older node binary would refuse to start the daemon (ADR 0077).
type Rotation struct {
	// Pattern is the name of the logs, with * for the number, in the directory of Recover.File. The newest has the number 0.
	Pattern string
	// Keep is the highest number: the log that has it goes when all below it are there.
	Keep int
}

// rotate moves the logs on when there is a newest one. A kill between two steps leaves all of them, and the next call goes on.
func (r Rotation) rotate(told *spec.Recover, lookup environment.Lookup) (rotated bool, err error) {
	before, after, ok := strings.Cut(r.Pattern, "*")
	if !ok || r.Keep < 1 || told == nil {
		return false, fmt.Errorf("can't move the logs %q on, up to number %d: the pattern needs a *, the number has to be 1 at least, and there has to be "+
			"a file that tells a clean stop from a crash", r.Pattern, r.Keep)
	}
	path, err := environment.Expand(told.File, lookup)
	if err != nil {
		return false, fmt.Errorf("can't find the logs beside %s: %w", told.File, err)
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
