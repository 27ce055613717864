package devices

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"

	"golang.org/x/sys/unix"

	"parallelfs.dev/operator/internal/node/process"
)

// Output holds the output and the exit code of a program.
type Output struct {
	Stdout, Stderr []byte
	Code           int
}

// Runner runs a program to its end. It is an error if the program could not be started or was killed. An exit code is not an error.
type Runner func(ctx context.Context, argv ...string) (Output, error)

// Execute runs a program from PATH in the C locale and without a terminal.
func Execute(ctx context.Context, argv ...string) (Output, error) {
	var stdout, stderr process.Output
	command := exec.CommandContext(ctx, argv[0], argv[1:]...) //nolint:gosec // no shell, and the callers in this package name the programs
	command.Env = append(os.Environ(), "LC_ALL=C")
	command.Stdout, command.Stderr = &stdout, &stderr
	err := command.Start()
	if err == nil {
		started(ctx, command.Process.Pid)
		err = command.Wait()
	}
	out := Output{Stdout: stdout.Bytes(), Stderr: stderr.Bytes()}
	var exit *exec.ExitError
	switch {
	case errors.Join(stdout.Err(), stderr.Err()) != nil:
		return Output{}, fmt.Errorf("%s: %w", argv[0], errors.Join(stdout.Err(), stderr.Err()))
	case errors.As(err, &exit) && exit.Exited():
		out.Code = exit.ExitCode()
	case err != nil:
		return out, fmt.Errorf("can't run %s: %w", argv[0], err)
	}
	return out, nil
}

// run runs a program that queries a disk, for at most the limit.
func (l Looker) run(ctx context.Context, disk string, argv ...string) (Output, error) {
	return ask(ctx, l, disk, argv[0], func(ctx context.Context) (Output, error) {
		limited, stop := context.WithTimeout(ctx, l.Limit)
		defer stop()
		return l.Run(limited, argv...)
	})
}

// allDisks is the key of queries that concern all disks of the node.
const allDisks = "the node's disks"

// said returns the reason that a program printed to stderr.
func (o Output) said() string {
	return fmt.Sprintf("exit code %d: %s", o.Code, text(strings.ReplaceAll(string(bytes.TrimSpace(o.Stderr)), "\n", ", "), 256))
}

// listed holds the fields of a device in the output of lsblk(8). lsblk reads udev's database, or sysfs without it.
type listed struct {
	Name        string    `json:"kname"`
	Type        string    `json:"type"`
	Serial      string    `json:"serial"`
	WWN         string    `json:"wwn"`
	Model       string    `json:"model"`
	Transport   string    `json:"tran"`
	MountPoints []*string `json:"mountpoints"`
}

// Unlisted is the prefix of the problem of a scan that could not list the devices.
const Unlisted = "can't list the block devices"

// list lists all devices with lsblk(8). Their content is not requested, because lsblk would read it from udev's database.
func (l Looker) list(ctx context.Context) (map[string]listed, error) {
	out, err := l.run(ctx, allDisks, "lsblk", "--json", "--list", "--output", "KNAME,TYPE,SERIAL,WWN,MODEL,TRAN,MOUNTPOINTS")
	if err != nil {
		return nil, fmt.Errorf(Unlisted+": %w", err)
	}
	// Exit code 32 means "nothing found", 64 means "some found".
	if out.Code != 0 && out.Code != 32 {
		return nil, fmt.Errorf(Unlisted+": lsblk ended with %s", out.said())
	}
	all := map[string]listed{}
	if len(bytes.TrimSpace(out.Stdout)) == 0 {
		return all, nil
	}
	var answer struct {
		BlockDevices []listed `json:"blockdevices"`
	}
	if err := json.Unmarshal(out.Stdout, &answer); err != nil {
		return nil, fmt.Errorf(Unlisted+": lsblk (util-linux 2.37 or later is needed) wrote what is no JSON: %w", err)
	}
	for _, d := range answer.BlockDevices {
		all[d.Name] = d
	}
	return all, nil
}

// ClaimDevice opens the device node for reading with O_EXCL and closes it at once. The kernel refuses this while a filesystem, swap space,
// the device-mapper, md, ZFS or a careful program uses the device or one of its partitions, in any namespace (open(2)). busy is set if the
// kernel refused. The number is "major:minor" as in sysfs. A node of another device is an error, and so is a device whose ends can't be
// read.
func ClaimDevice(path, number string) (busy string, err error) {
	var at unix.Stat_t
	if err := unix.Stat(path, &at); err != nil {
		return "", fmt.Errorf("there is no device node %s (%w); the container needs the /dev of its node", path, err)
	}
	is := fmt.Sprintf("%d:%d", unix.Major(at.Rdev), unix.Minor(at.Rdev))
	if at.Mode&unix.S_IFMT != unix.S_IFBLK || is != number {
		return "", fmt.Errorf("%s is not the node of device %s, but of %s; udev has not made it yet, or somebody has put something else there", path, number, is)
	}
	fd, err := open(path, unix.O_EXCL)
	if errors.Is(err, unix.EBUSY) {
		busy = "it can't be opened exclusively (O_EXCL), because a filesystem, a volume or a program uses it"
		fd, err = open(path, 0)
	}
	if err != nil {
		return busy, fmt.Errorf("can't open %s: %w", path, err)
	}
	device := os.NewFile(uintptr(fd), path)
	defer device.Close()
	return busy, readEnds(device, 4096)
}

// readEnds reads this many bytes at each end, where most signatures are. It is needed because blkid(8) reports an unreadable disk like a
// blank one.
func readEnds(device io.ReadSeeker, most int64) error {
	size, err := device.Seek(0, io.SeekEnd)
	most = min(most, size)
	buffer := make([]byte, most)
	for _, offset := range []int64{0, size - most} {
		if err == nil {
			_, err = device.Seek(offset, io.SeekStart)
		}
		if err == nil {
			_, err = io.ReadFull(device, buffer)
		}
		if err != nil {
			return unreadable(offset, len(buffer), err)
		}
	}
	return nil
}

// open never waits for a medium and never opens for writing.
func open(path string, flags int) (int, error) {
	for {
		fd, err := unix.Open(path, unix.O_RDONLY|unix.O_CLOEXEC|unix.O_NONBLOCK|flags, 0)
		if !errors.Is(err, unix.EINTR) {
			return fd, err
		}
	}
}
