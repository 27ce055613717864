// Package caches drops the caches of the node's kernel on request: the page cache, dentries and inodes. Unwritten data is written first, so
// nothing is lost. Later reads come from disks and servers.
package caches

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

const (
	// File is the kernel's file that drops the caches if "3" is written to it (Documentation/admin-guide/sysctl/vm.rst, drop_caches).
	File = "/proc/sys/vm/drop_caches"
	// everything means the page cache (1) and reclaimable slab objects such as dentries and inodes (2).
	everything = "3\n"
	// patience is the time that writing the unwritten data may take before it is reported.
	patience = 10 * time.Minute
	// longest is the length limit of a request, in bytes (DroppedCaches.request).
	longest = 128
)

// Due reports whether a request is to be carried out, which is so if it differs from the last one that was carried out. A request that is
// too long for an answer is never carried out.
func Due(request, last string) bool {
	return request != "" && len(request) <= longest && !strings.ContainsAny(request, "\x00\n") && request != last
}

// Dropper drops the caches of one node, one request at a time.
type Dropper struct {
	// File is written to, after Sync has returned.
	File string
	Sync func()
	// Patience is how long Sync may take.
	Patience time.Duration

	busy sync.Mutex
}

// ThisNode drops the caches of the kernel that this process runs on; the process must be root, and /proc/sys writable.
func ThisNode() *Dropper { return &Dropper{File: File, Sync: unix.Sync, Patience: patience} }

// Drop writes the unwritten data, then drops the caches. Repeating it is harmless. Sync can't be stopped. If a disk or server does not
// answer, Sync continues after Drop has returned an error, and Drop refuses until Sync has ended.
func (d *Dropper) Drop(ctx context.Context) error {
	if !d.busy.TryLock() {
		return errors.New("the kernel still writes, since an earlier request, what is not written yet (sync(2)); a disk or server does not answer")
	}
	done := make(chan error, 1)
	go func() {
		d.Sync()
		err := d.write()
		d.busy.Unlock()
		done <- err
	}()
	select {
	case err := <-done:
		return err
	case <-time.After(d.Patience):
		return fmt.Errorf("the kernel did not write within %s what is not written yet (sync(2)); a disk or server does not answer", d.Patience)
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (d *Dropper) write() error {
	file, err := os.OpenFile(d.File, os.O_WRONLY, 0)
	if err != nil {
		return fmt.Errorf("can't drop the caches: %w", err)
	}
	_, err = file.WriteString(everything)
	if err := errors.Join(err, file.Close()); err != nil {
		return fmt.Errorf("can't drop the caches: %w", err)
	}
	return nil
}
