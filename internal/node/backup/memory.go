package backup

import (
	"errors"
	"strconv"
	"strings"

	"parallelfs.dev/operator/internal/node/procfs"
)

// FreeMemory returns the available memory of this node (MemAvailable of proc_meminfo(5)).
func FreeMemory() (int64, error) {
	content, err := procfs.Read("/proc/meminfo")
	if err != nil {
		return 0, err
	}
	for line := range strings.Lines(string(content)) {
		if rest, ok := strings.CutPrefix(line, "MemAvailable:"); ok {
			kib, err := strconv.ParseInt(strings.TrimSuffix(strings.TrimSpace(rest), " kB"), 10, 53)
			return kib << 10, err
		}
	}
	return 0, errors.New("/proc/meminfo does not say how much memory is available")
}
