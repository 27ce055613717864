package mounts

import (
	"errors"
	"fmt"
	"log/slog"
	"time"

	"golang.org/x/sys/unix"

	"parallelfs.dev/operator/internal/node/spec"
)

// kernel is what the supervision asks of the operating system.
type kernel struct {
	at func(path string) ([]Entry, error)
	// ask is the question for the filesystem's size; the answer may never come.
	ask func(path string) <-chan error
	// unmount is umount2(2).
	unmount func(path string, flags int) error
	// prepare is Prepare.
	prepare func(path string) (immutable bool, err error)
	// patience is how long a question to a mount that may be dead can take before it counts as alive and hung.
	patience time.Duration
}

const patience = 5 * time.Second

func thisKernel() kernel {
	return kernel{at: at, ask: ask, unmount: unix.Unmount, prepare: Prepare, patience: patience}
}

// clear detaches every mount of this filesystem from its path, working or not, because the program that served it is
// not ours to watch. It refuses to touch what another filesystem has mounted there, unless that is dead and of the same type.
func (k kernel) clear(m spec.Mount, log *slog.Logger) error {
	for {
		entries, err := k.at(m.Path)
		if err != nil {
			return err
		}
		switch state := Assess(entries, m); state {
		case Absent:
			return nil
		case Foreign:
			return errors.New(describe(state, entries, m))
		case Another:
			if !k.dead(m.Path) {
				return errors.New(describe(state, entries, m))
			}
		case Ours:
		}
		log.Info("detaching a mount that was left over", "path", m.Path, "source", entries[len(entries)-1].Source)
		if err := k.detach(m.Path); err != nil {
			return err
		}
	}
}

func (k kernel) dead(path string) bool {
	select {
	case err := <-k.ask(path):
		return Dead(err)
	case <-time.After(k.patience):
		return false
	}
}

// unmountAll unmounts this filesystem, and detaches it when it is in use, until it is not mounted any more.
func (k kernel) unmountAll(m spec.Mount, log *slog.Logger) error {
	for {
		entries, err := k.at(m.Path)
		if err != nil {
			return err
		}
		if Assess(entries, m) != Ours {
			return nil
		}
		// Unmounting may wait for the filesystem, which may hang.
		unmounted := make(chan error, 1)
		go func() { unmounted <- k.unmount(m.Path, unix.UMOUNT_NOFOLLOW) }()
		select {
		case err = <-unmounted:
		case <-time.After(k.patience):
			err = errors.New("it does not answer")
		}
		if err == nil {
			continue
		}
		log.Info("the filesystem can't be unmounted cleanly, so it is detached", "path", m.Path, "reason", err)
		if err := k.detach(m.Path); err != nil {
			return err
		}
	}
}

// detach takes the topmost mount out of the tree, whoever uses it (MNT_DETACH, umount2(2)).
func (k kernel) detach(path string) error {
	// EINVAL: it has gone meanwhile.
	if err := k.unmount(path, unix.MNT_DETACH|unix.UMOUNT_NOFOLLOW); err != nil && !errors.Is(err, unix.EINVAL) {
		return fmt.Errorf("can't unmount %s: %w", path, err)
	}
	return nil
}
