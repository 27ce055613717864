package devices

import (
	"fmt"
	"regexp"
	"strconv"

	"parallelfs.dev/operator/api/v1alpha1"
)

var inUse = regexp.MustCompile(`\[([^\]]+)\]`)

// Queue reads the block queue of a device (kernel Documentation/ABI/stable/sysfs-block). A partition has the queue of its disk.
func (l Looker) Queue(name string) (v1alpha1.QueueStatus, error) {
	if parent := l.parent(name); parent != "" {
		name = parent
	}
	var q v1alpha1.QueueStatus
	// A device-mapper device has no scheduler on some kernels, and "none" on others.
	q.Scheduler = "none"
	if offered := l.attribute(name, "queue/scheduler"); offered != "" {
		q.Scheduler = text(offered, 32)
		if match := inUse.FindStringSubmatch(offered); match != nil {
			q.Scheduler = text(match[1], 32)
		}
	}
	for file, field := range map[string]*int32{
		"read_ahead_kb": &q.ReadAheadKB, "max_sectors_kb": &q.MaxSectorsKB, "nr_requests": &q.Requests,
	} {
		n, err := strconv.ParseInt(l.attribute(name, "queue", file), 10, 32)
		if err != nil {
			return v1alpha1.QueueStatus{}, fmt.Errorf("can't read %s: %w", l.class(name, "queue", file), err)
		}
		*field = int32(n)
	}
	return q, nil
}
