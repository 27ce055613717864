// Package nodelock lets one agent work on a node. The agent that works holds a lock on a file of the node (flock(2)), and the file names
// it. An agent of another installation waits for the lock and looks at no disk meanwhile. The kernel ends the lock with the process, so
// that a killed agent holds nothing back.
package nodelock

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// longest bounds what is read of the name of a holder: a namespace, a slash and the name of a pod.
const longest = 512

// Unnamed is the holder of a lock whose file has no name in it yet, or none that can be read.
const Unnamed = "of an unknown pod"

// Wait takes the lock on the file at path, which it creates if it is missing, and writes self into it. While another process has the lock,
// it reports the name of the holder, and tries again after each pause. It returns an error if the lock can't be taken at all, and the cause
// if ctx ends. The lock ends when the returned file is closed or the process ends. The file stays: two files of one name are two locks.
func Wait(ctx context.Context, path, self string, pause time.Duration, report func(holder string)) (io.Closer, error) {
	file, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, fmt.Errorf("can't open the lock of the agent: %w", err)
	}
	again := time.NewTicker(pause)
	defer again.Stop()
	for {
		switch err := unix.Flock(int(file.Fd()), unix.LOCK_EX|unix.LOCK_NB); {
		case err == nil:
			_ = write(file, self) // the name is for the message of another agent alone; on a full disk, this one works all the same
			return file, nil
		case errors.Is(err, unix.EINTR):
			continue
		case !errors.Is(err, unix.EWOULDBLOCK):
			return nil, errors.Join(fmt.Errorf("can't take the lock of the agent: flock %s: %w", path, err), file.Close())
		}
		report(holder(file))
		select {
		case <-ctx.Done():
			return nil, errors.Join(context.Cause(ctx), file.Close())
		case <-again.C:
		}
	}
}

func write(file *os.File, self string) error {
	if err := file.Truncate(0); err != nil {
		return err
	}
	_, err := file.WriteAt([]byte(self+"\n"), 0)
	return err
}

// holder is the name in the file of a lock.
func holder(file *os.File) string {
	text, err := io.ReadAll(io.NewSectionReader(file, 0, longest))
	name, _, _ := strings.Cut(string(text), "\n")
	if name = strings.TrimSpace(strings.ToValidUTF8(name, "?")); err != nil || name == "" {
		return Unnamed
	}
	return name
}
