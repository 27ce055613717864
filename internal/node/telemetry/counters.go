package telemetry

import (
	"bytes"
	"errors"
	"fmt"
	"path/filepath"
	"strconv"

	"github.com/moby/sys/mountinfo"
	"golang.org/x/sys/unix"

	"parallelfs.dev/operator/benchmarks/telemetry"
	"parallelfs.dev/operator/internal/node/procfs"
)

const (
	// sectorBytes is the size of a sector in the kernel's counters, whatever the disk's own sector size is
	// (Documentation/admin-guide/iostats.rst).
	sectorBytes = 512
	// ticks is the number of CPU time units per second in proc_pid_stat(5) (USER_HZ), which is the same on every architecture that the agent
	// is built for.
	ticks = 100
)

// number is the kernel's number of a block device.
type number struct{ major, minor uint32 }

// behind finds the device of the filesystem that is mounted at each path. A path without a mount is left out. For a filesystem that spans
// devices, such as btrfs, it is the device that was used for the mount.
func behind(table []byte, paths map[string]bool, device func(path string) (number, error)) (map[string]number, error) {
	found := map[string]number{}
	err := procfs.EachMountIn(bytes.NewReader(table), func(m *mountinfo.Info) {
		if !paths[m.Mountpoint] {
			return
		}
		// Later entries are mounted over earlier ones. A filesystem without a disk device of its own, such as btrfs or tmpfs, has the major
		// number 0.
		at := number{uint32(m.Major), uint32(m.Minor)} //nolint:gosec // the kernel's own have 12 and 20 bits
		if at.major == 0 {
			var err error
			if at, err = device(m.Source); err != nil {
				delete(found, m.Mountpoint)
				return
			}
		}
		found[m.Mountpoint] = at
	})
	if err != nil {
		return nil, fmt.Errorf("can't read the mounts of this process: %w", err)
	}
	return found, nil
}

// deviceAt returns the number of the block device at a path.
func deviceAt(path string) (number, error) {
	var stat unix.Stat_t
	if err := unix.Stat(path, &stat); err != nil {
		return number{}, fmt.Errorf("can't look at %s: %w", path, err)
	}
	if stat.Mode&unix.S_IFMT != unix.S_IFBLK {
		return number{}, fmt.Errorf("%s is no block device", path)
	}
	return number{unix.Major(stat.Rdev), unix.Minor(stat.Rdev)}, nil
}

// errShort means that a line of the kernel has too few fields.
var errShort = errors.New("it has too few fields")

// diskstats parses /proc/diskstats, and calls each with the counters of each device, including partitions.
func diskstats(content []byte, each func(number, telemetry.Disk)) error {
	for line := range bytes.Lines(content) {
		// The fields are major, minor and name; reads, merged, sectors, ms; writes, merged, sectors, ms; in flight, busy ms, weighted ms; more.
		const fields, firstCounter = 14, 3
		var values [fields]uint64
		i := 0
		for field := range bytes.FieldsSeq(line) {
			if i == fields {
				break
			}
			if i != firstCounter-1 {
				value, err := strconv.ParseUint(string(field), 10, 64)
				if err != nil {
					return fmt.Errorf("can't understand /proc/diskstats: %q: %w", line, err)
				}
				values[i] = value
			}
			i++
		}
		if i == 0 {
			continue
		}
		if i < fields {
			return fmt.Errorf("can't understand /proc/diskstats: %q: %w", line, errShort)
		}
		each(number{uint32(values[0]), uint32(values[1])}, telemetry.Disk{ //nolint:gosec // the kernel's own have 12 and 20 bits
			Reads: values[3], ReadBytes: values[5] * sectorBytes, Writes: values[7], WrittenBytes: values[9] * sectorBytes,
			BusyMilliseconds: values[12], QueueMilliseconds: values[13],
		})
	}
	return nil
}

// process holds the CPU time and the start time of a process from proc_pid_stat(5), in ticks since boot. A process with the same id and
// another start time is a different process.
type process struct{ cpu, started uint64 }

func readProcess(proc string, pid int) (process, error) {
	content, err := procfs.Read(filepath.Join(proc, strconv.Itoa(pid), "stat"))
	if err != nil {
		return process{}, err
	}
	return parseProcess(content)
}

func parseProcess(content []byte) (process, error) {
	// The program name is in parentheses and may contain anything.
	end := bytes.LastIndexByte(content, ')')
	if end < 0 {
		return process{}, fmt.Errorf("can't understand %q: %w", content, errShort)
	}
	const state, utime, stime, starttime = 3, 14, 15, 22 // the field numbers in proc_pid_stat(5)
	var found process
	field := state
	for text := range bytes.FieldsSeq(content[end+1:]) {
		if field == utime || field == stime || field == starttime {
			value, err := strconv.ParseUint(string(text), 10, 64)
			if err != nil {
				return process{}, fmt.Errorf("can't understand %q: %w", content, err)
			}
			if field == starttime {
				found.started = value
				return found, nil
			}
			found.cpu += value
		}
		field++
	}
	return process{}, fmt.Errorf("can't understand %q: %w", content, errShort)
}
