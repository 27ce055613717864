package mounts

import (
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"

	"parallelfs.dev/operator/internal/node/spec"
)

// viewOf returns the second mount of a filesystem as a separate mount. It is a bind mount: no program serves it, and its unmount writes
// nothing back.
func viewOf(m spec.Mount) spec.Mount {
	return spec.Mount{Path: m.View, FSType: m.FSType, Source: m.Source}
}

// show mounts the filesystem at its view unless it is already mounted there. A failure is retried at the next check: the filesystem is not
// given up because benchmark pods can't see it.
func (k kernel) show(m spec.Mount) error {
	if m.View == "" {
		return nil
	}
	entries, err := k.at(m.View)
	if err != nil {
		return err
	}
	switch state := Assess(entries, viewOf(m)); state {
	case Ours:
		return nil
	case Absent:
		return within(k.limits.answer, func() error { return k.bind(m.Path, m.View) })
	default:
		return errors.New(describe(state, entries, viewOf(m)))
	}
}

// clearView detaches leftover mounts at the view.
func (k kernel) clearView(m spec.Mount, log *slog.Logger) error {
	if m.View == "" {
		return nil
	}
	_, err := k.clear(viewOf(m), log)
	return err
}

// bind creates the view's directory, and calls bindMount in a process of its own. Mounts below path are not part of the view. Without a
// mount the view does not exist. No pod can write to its directory, so it needs no other protection.
func bind(path, view string) error {
	if err := os.MkdirAll(filepath.Dir(view), 0o755); err != nil {
		return err
	}
	if err := os.Mkdir(view, 0); err != nil && !errors.Is(err, os.ErrExist) {
		return err
	}
	c, err := startCall(callBind, path, view)
	if err != nil {
		return err
	}
	return c.result()
}

// removeView removes the directory of a view that is no longer mounted.
func removeView(view string) error {
	if err := os.Remove(view); err != nil && !errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("can't remove the directory of the second mount: %w; look what is in it, or mounted on it", err)
	}
	return nil
}
