package provision

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"golang.org/x/sys/unix"
)

const (
	// lockLimit is how long to wait for a lock: udevd holds one as long as it probes a device.
	lockLimit = 30 * time.Second
	lockPause = 100 * time.Millisecond
)

// lock takes the BSD lock of a block device, which also keeps udevd from probing it (systemd: Locking Block Device Access). It opens the
// device read-only, so that closing it causes no event. The lock ends with the file, or with the last program that got the file.
func lock(ctx context.Context, device string) (*os.File, error) {
	file, err := os.OpenFile(device, os.O_RDONLY|unix.O_NONBLOCK, 0)
	if err != nil {
		return nil, fmt.Errorf("can't open %s: %w", device, bare(err))
	}
	ctx, cancel := context.WithTimeout(ctx, lockLimit)
	defer cancel()
	pause := time.NewTicker(lockPause)
	defer pause.Stop()
	for {
		err := unix.Flock(int(file.Fd()), unix.LOCK_EX|unix.LOCK_NB)
		if err == nil {
			return file, nil
		}
		if !errors.Is(err, unix.EWOULDBLOCK) && !errors.Is(err, unix.EINTR) {
			return nil, errors.Join(fmt.Errorf("can't lock %s: %w", device, err), file.Close())
		}
		select {
		case <-ctx.Done():
			return nil, errors.Join(fmt.Errorf(
				"%s has been locked by another program for %s (flock(2)); look which one works on the disk: fuser -v %s", device, lockLimit, device),
				file.Close())
		case <-pause.C:
		}
	}
}
