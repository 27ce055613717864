package provision

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"parallelfs.dev/operator/api/v1alpha1"
	"parallelfs.dev/operator/internal/node/procfs"
)

// setting is one file of a queue (kernel: Documentation/ABI/stable/sysfs-block).
type setting struct {
	file, value string
	// below is true for a setting of disks only. A device that is made of others passes requests on, and has neither a scheduler nor requests
	// of its own.
	below bool
}

// settingsOf returns the settings in the order in which they are written, because a changed scheduler resets nr_requests.
func settingsOf(q *v1alpha1.QueueSpec) []setting {
	var all []setting
	if q == nil {
		return nil
	}
	if q.Scheduler != "" {
		all = append(all, setting{"scheduler", q.Scheduler, true})
	}
	number := func(file string, value *int32, below bool) {
		if value != nil {
			all = append(all, setting{file, strconv.Itoa(int(*value)), below})
		}
	}
	number("nr_requests", q.Requests, true)
	number("max_sectors_kb", q.MaxSectorsKB, false)
	number("read_ahead_kb", q.ReadAheadKB, false)
	return all
}

// ApplyQueue writes the settings of a device and of the disks below it. It returns the queue as it was read back, and a sentence for each
// setting that the kernel did not accept. It skips values that are already set. sys is /sys.
func ApplyQueue(sys, kernelName string, wanted *v1alpha1.QueueSpec) (*v1alpha1.QueueStatus, []string) {
	disks, err := disksBelow(sys, kernelName)
	if err != nil {
		return nil, []string{fmt.Sprintf("can't find the disks below %s: %s", kernelName, err)}
	}
	var refused []string
	for _, s := range settingsOf(wanted) {
		on := disks
		if !s.below && !slices.Contains(disks, kernelName) {
			on = append(slices.Clone(disks), kernelName)
		}
		for _, name := range on {
			if err := s.apply(sys, name); err != nil {
				refused = append(refused, err.Error())
			}
		}
	}
	return readQueue(sys, kernelName, disks[0]), refused
}

func queueFile(sys, name, file string) string {
	return filepath.Join(sys, "class", "block", name, "queue", file)
}

func (s setting) apply(sys, name string) error {
	path := queueFile(sys, name, s.file)
	before, err := readSetting(path)
	if err != nil {
		return fmt.Errorf("%s of %s can't be set to %s: %w", s.file, name, s.value, err)
	}
	if before == s.value {
		return nil
	}
	//nolint:gosec // a file of sysfs, which exists
	if err := os.WriteFile(path, []byte(s.value), 0o644); err != nil {
		return fmt.Errorf("the kernel does not take %s=%s for %s: %w; it stays %s%s", s.file, s.value, name, bare(err), before, s.choices(sys, name))
	}
	after, err := readSetting(path)
	if err != nil {
		return fmt.Errorf("%s of %s can't be read back: %w", s.file, name, err)
	}
	if after != s.value {
		return fmt.Errorf("the kernel does not take %s=%s for %s: it made it %s%s", s.file, s.value, name, after, s.choices(sys, name))
	}
	return nil
}

// choices returns the values that the kernel would accept.
func (s setting) choices(sys, name string) string {
	switch s.file {
	case "scheduler":
		if content, err := procfs.Read(queueFile(sys, name, s.file)); err == nil {
			return "; it offers " + strings.NewReplacer("[", "", "]", "").Replace(strings.TrimSpace(string(content)))
		}
	case "max_sectors_kb":
		if most, err := readSetting(queueFile(sys, name, "max_hw_sectors_kb")); err == nil {
			return "; the device takes at most " + most
		}
	}
	return ""
}

// bare returns the system error without the path, which the sentence already has.
func bare(err error) error {
	if path, ok := errors.AsType[*fs.PathError](err); ok {
		return path.Err
	}
	return err
}

// readSetting reads a value. In a list such as "none [mq-deadline]" it is the one in brackets.
func readSetting(path string) (string, error) {
	content, err := procfs.Read(path)
	if err != nil {
		return "", bare(err)
	}
	text := strings.TrimSpace(string(content))
	if _, rest, ok := strings.Cut(text, "["); ok {
		if chosen, _, ok := strings.Cut(rest, "]"); ok {
			return chosen, nil
		}
	}
	return text, nil
}

// readQueue returns scheduler and requests of a disk, and the other values of the device itself. It leaves out values that can't be read.
func readQueue(sys, device, disk string) *v1alpha1.QueueStatus {
	number := func(name, file string) int32 {
		text, err := readSetting(queueFile(sys, name, file))
		if err != nil {
			return 0
		}
		n, err := strconv.ParseInt(text, 10, 32)
		if err != nil {
			return 0
		}
		return int32(n)
	}
	scheduler, err := readSetting(queueFile(sys, disk, "scheduler"))
	if err != nil {
		scheduler = ""
	}
	return &v1alpha1.QueueStatus{
		Scheduler: scheduler, ReadAheadKB: number(device, "read_ahead_kb"), MaxSectorsKB: number(device, "max_sectors_kb"),
		Requests: number(disk, "nr_requests"),
	}
}

// depthLimit is how many layers of devices are searched.
const depthLimit = 8

// disksBelow returns the disks that a device is made of, by kernel name. A disk is made of itself.
func disksBelow(sys, name string) ([]string, error) { return below(sys, name, depthLimit) }

func below(sys, name string, depth int) ([]string, error) {
	slaves, err := procfs.List(filepath.Join(sys, "class", "block", name, "slaves"))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	if len(slaves) == 0 || depth == 0 {
		disk, err := diskOf(sys, name)
		return []string{disk}, err
	}
	var disks []string
	for _, slave := range slaves {
		more, err := below(sys, slave.Name(), depth-1)
		if err != nil {
			return nil, err
		}
		disks = append(disks, more...)
	}
	slices.Sort(disks)
	return slices.Compact(disks), nil
}

// diskOf returns the disk that contains a partition and has the queue. A disk is its own.
func diskOf(sys, name string) (string, error) {
	entry := filepath.Join(sys, "class", "block", name)
	if _, err := os.Stat(filepath.Join(entry, "partition")); errors.Is(err, fs.ErrNotExist) {
		return name, nil
	}
	device, err := filepath.EvalSymlinks(entry)
	if err != nil {
		return "", err
	}
	return filepath.Base(filepath.Dir(device)), nil
}
