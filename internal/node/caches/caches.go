// Package caches drops the caches of the node's kernel when somebody asks for it: the page cache, dentries and inodes. What is not
// written yet is written first, and nothing is lost; what is read next comes from disks and servers.
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
	// File drops the caches when "3" is written to it (Documentation/admin-guide/sysctl/vm.rst, drop_caches).
	File = "/proc/sys/vm/drop_caches"
	// everything is the page cache (1) and what can be given back of the slab, such as dentries and inodes (2).
	everything = "3\n"
	// patience is how long writing what is not written yet may take, before somebody is told.
	patience = 10 * time.Minute
	// longest is the limit of a request, in bytes (DroppedCaches.request).
	longest = 128
)

// Due says whether a request is to be carried out: it is another one than was carried out last. A request that is too long to be
// answered is never due.
func Due(request, last string) bool {
	return request != "" && len(request) <= longest && !strings.ContainsAny(request, "\x00\n") && request != last
}

// Dropper drops the caches of one node, once at a time.
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

// Drop writes what is not written yet, then drops the caches. It is harmless to do it twice. Sync can't be stopped: with a disk or server
// that does not answer it goes on after Drop has given up, and until it has ended, Drop refuses.
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
