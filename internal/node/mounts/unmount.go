package mounts

import (
	"errors"
	"fmt"
	"log/slog"
	"time"

	"golang.org/x/sys/unix"

	"parallelfs.dev/operator/internal/node/spec"
)

// errHangs is the result of an unmount that did not return in time. The unmount continues in the background.
var errHangs = errors.New("it does not answer")

// unmountAll unmounts this filesystem completely, whatever its servers and users do. A filesystem that is in use or hangs is detached from
// the tree, so that no path leads to it, and the kernel ends it after its last user. The view is unmounted first, because only the last
// unmount of a filesystem ends it.
func (k kernel) unmountAll(m spec.Mount, log *slog.Logger) error {
	began := time.Now()
	if m.View != "" {
		view := viewOf(m)
		view.Kernel = m.Kernel
		err := k.unmountEach(view, began, log)
		if err == nil {
			err = k.hide(m.View)
		}
		if err != nil {
			log.Warn("the filesystem's second mount, for benchmarks, stays behind", "path", m.View, "reason", err)
		}
	}
	return k.unmountEach(m, began, log)
}

// unmountEach unmounts one path. Its users have had time to end since began.
func (k kernel) unmountEach(m spec.Mount, began time.Time, log *slog.Logger) error {
	hangs := false
	for {
		entries, err := k.at(m.Path)
		if err != nil {
			return err
		}
		if Assess(entries, m) != Ours {
			return nil
		}
		if hangs {
			err = errHangs
		} else {
			err = k.politely(m, began)
		}
		if err == nil {
			continue
		}
		// The servers don't answer for a second mount either.
		hangs = errors.Is(err, errHangs)
		if err := k.roughly(m, len(entries), err, log); err != nil {
			return err
		}
	}
}

// politely calls umount(2) without flags. It comes first because a kernel client then discards what it can't send, instead of retrying for
// connCommRetrySecs (FhgfsOps_killSB, 7.4.6). Users of a kernel filesystem get some time to end, counted from began.
func (k kernel) politely(m spec.Mount, began time.Time) error {
	if !m.Kernel {
		return k.unmountWithin(k.limits.answer, m.Path, 0)
	}
	for {
		err := k.unmountWithin(k.limits.unmount, m.Path, 0)
		if !errors.Is(err, unix.EBUSY) || time.Since(began) > k.limits.busy {
			return err
		}
		<-time.After(k.limits.between)
	}
}

// roughly handles a mount that could not be unmounted because of reason. count is the number of mounts on the path.
func (k kernel) roughly(m spec.Mount, count int, reason error, log *slog.Logger) error {
	if m.Kernel && errors.Is(reason, errHangs) {
		if k.ends(m.Path, count, log) {
			return nil
		}
		log.Info("the filesystem can't be unmounted in time, so open connections to its servers are aborted (MNT_FORCE)", "path", m.Path, "reason", reason)
		if k.unmountWithin(k.limits.answer, m.Path, unix.MNT_FORCE) == nil || k.ends(m.Path, count, log) {
			return nil
		}
	}
	log.Info("the filesystem can't be unmounted cleanly, so it is detached (MNT_DETACH): the kernel ends it when nothing uses it any longer",
		"path", m.Path, "reason", reason)
	return k.detach(m.Path, count)
}

// detach removes the topmost of count mounts from the tree, even if it is in use.
func (k kernel) detach(path string, count int) error {
	err := k.unmountWithin(k.limits.answer, path, unix.MNT_DETACH)
	if err == nil || k.gone(path, count) {
		return nil
	}
	return fmt.Errorf("can't unmount %s: %w; it stays mounted, look who uses it (fuser -vm %s), and into the kernel's log (dmesg)", path, err, path)
}

// ends returns true, and logs it, if an unmount that did not return has removed the filesystem from the tree.
func (k kernel) ends(path string, count int, log *slog.Logger) bool {
	if !k.gone(path, count) {
		return false
	}
	log.Info("the filesystem is unmounted, but the kernel has not ended it: its servers don't answer; this goes on in the background, and is not waited for",
		"path", path)
	return true
}

// gone is true if fewer than count mounts are on the path.
func (k kernel) gone(path string, count int) bool {
	entries, err := k.at(path)
	return err == nil && len(entries) < count
}

// unmountWithin stops waiting for umount2(2) after the limit.
func (k kernel) unmountWithin(limit time.Duration, path string, flags int) error {
	return within(limit, func() error { return k.unmount(path, flags|unix.UMOUNT_NOFOLLOW) })
}

// within stops waiting for a system call after the limit.
func within(limit time.Duration, call func() error) error {
	returned := make(chan error, 1)
	go func() { returned <- call() }()
	select {
	case err := <-returned:
		return err
	case <-time.After(limit):
		return errHangs
	}
}
