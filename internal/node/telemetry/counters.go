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
	// sectorBytes is the size of what the kernel counts as a sector, whatever the disk's own are (Documentation/admin-guide/iostats.rst).
	sectorBytes = 512
	// ticks of the CPU time in proc_pid_stat(5) in a second (USER_HZ), the same on every architecture that the agent is built for.
	ticks = 100
)

// number is what the kernel knows a block device by.
type number struct{ major, minor uint32 }

// behind finds the device on which the filesystem that is mounted at each path lies. A path at which nothing is mounted is left out.
// Of a filesystem that spans devices, such as btrfs, it is the one that it was mounted by.
func behind(table []byte, paths map[string]bool, device func(path string) (number, error)) (map[string]number, error) {
	others := func(i *mountinfo.Info) (skip, stop bool) { return !paths[i.Mountpoint], false }
	entries, err := mountinfo.GetMountsFromReader(bytes.NewReader(table), others)
	if err != nil {
		return nil, fmt.Errorf("can't read the mounts of this process: %w", err)
	}
	found := map[string]number{}
	for _, e := range entries {
		// Later entries lie on top of earlier ones. A device that belongs to no disk has the major number 0: that of a btrfs, or a tmpfs.
		at := number{uint32(e.Major), uint32(e.Minor)} //nolint:gosec // the kernel's own have 12 and 20 bits
		if at.major == 0 {
			if at, err = device(e.Source); err != nil {
				delete(found, e.Mountpoint)
				continue
			}
		}
		found[e.Mountpoint] = at
	}
	return found, nil
}

// deviceAt is the number of the block device that a path names.
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

// errShort is a line of the kernel that has fewer fields than it should.
var errShort = errors.New("it has too few fields")

// diskstats reads /proc/diskstats, calling each with the counters of each device, partitions included.
func diskstats(content []byte, each func(number, telemetry.Disk)) error {
	for line := range bytes.Lines(content) {
		// major, minor and name; reads, merged, sectors, ms; writes, merged, sectors, ms; under way, busy ms, weighted ms; more.
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

// process is what proc_pid_stat(5) says of one: its CPU time, and when it was started, in ticks since the start of the node. A process
// with the same id that was started at another time is another one.
type process struct{ cpu, started uint64 }

func readProcess(proc string, pid int) (process, error) {
	content, err := procfs.Read(filepath.Join(proc, strconv.Itoa(pid), "stat"))
	if err != nil {
		return process{}, err
	}
	return parseProcess(content)
}

func parseProcess(content []byte) (process, error) {
	// The name of the program stands in brackets, and may hold anything.
	end := bytes.LastIndexByte(content, ')')
	if end < 0 {
		return process{}, fmt.Errorf("can't understand %q: %w", content, errShort)
	}
	const state, utime, stime, starttime = 3, 14, 15, 22 // the numbers of proc_pid_stat(5)
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
