package bench

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"parallelfs.dev/operator/internal/node/spec"
)

// open opens the mount and proves that the opened directory is in the mounted filesystem. All operations through the result stay in that
// filesystem, even if it is unmounted a moment later.
func open(ctx context.Context, b spec.Benchmark, h Host) (*os.Root, error) {
	mount, err := os.OpenRoot(b.Mount.Path)
	if err != nil {
		// A mount point without a mount has no permissions: the check has the better message.
		if why := h.CheckMount(ctx, b.Mount); why != nil {
			return nil, why
		}
		return nil, fmt.Errorf("can't open %s: %w", b.Mount.Path, err)
	}
	if err := errors.Join(h.CheckMount(ctx, b.Mount), same(mount, b.Mount.Path)); err != nil {
		return nil, errors.Join(err, mount.Close())
	}
	return mount, nil
}

func same(mount *os.Root, path string) error {
	opened, err := mount.Stat(".")
	if err != nil {
		return fmt.Errorf("can't look at %s: %w", path, err)
	}
	shown, err := os.Lstat(path)
	if err != nil {
		return fmt.Errorf("can't look at %s: %w", path, err)
	}
	if !os.SameFile(opened, shown) {
		return fmt.Errorf("%s was mounted or replaced at this moment; nothing is written or removed, try again", path)
	}
	return nil
}

// inMount calls do with the opened mount.
func inMount(ctx context.Context, b spec.Benchmark, h Host, do func(mount *os.Root) error) error {
	mount, err := open(ctx, b, h)
	if err != nil {
		return err
	}
	return errors.Join(do(mount), mount.Close())
}

// enter opens a directory by its relative path, name by name. It follows no symbolic link, not even one that stays inside, because the link
// could lead to a user's data. With create it makes missing directories; otherwise a missing one is fs.ErrNotExist.
func enter(from *os.Root, path string, create bool) (*os.Root, error) {
	at, err := from.OpenRoot(".")
	if err != nil {
		return nil, err
	}
	for name := range strings.SplitSeq(filepath.Clean(path), "/") {
		next, err := step(at, name, create)
		if err = errors.Join(err, at.Close()); err != nil {
			if next != nil {
				err = errors.Join(err, next.Close())
			}
			return nil, err
		}
		at = next
	}
	return at, nil
}

func step(at *os.Root, name string, create bool) (*os.Root, error) {
	if create {
		if err := at.Mkdir(name, 0o755); err != nil && !errors.Is(err, fs.ErrExist) {
			return nil, err
		}
	}
	seen, err := at.Lstat(name)
	if err != nil {
		return nil, err
	}
	if !seen.IsDir() {
		return nil, fmt.Errorf("%s is not a directory (a symbolic link is not followed); nothing is written or removed through it",
			filepath.Join(at.Name(), name))
	}
	next, err := at.OpenRoot(name)
	if err != nil {
		return nil, err
	}
	opened, err := next.Stat(".")
	if err == nil && !os.SameFile(seen, opened) {
		err = fmt.Errorf("%s was replaced at this moment; nothing is written or removed through it", filepath.Join(at.Name(), name))
	}
	if err != nil {
		return nil, errors.Join(err, next.Close())
	}
	return next, nil
}

// inside returns path relative to the mount. Place has proven that path is below the mount.
func inside(b spec.Benchmark, path string) string {
	return strings.TrimPrefix(path, strings.TrimSuffix(b.Mount.Path, "/")+"/")
}

// makeDirectory makes path. Place has proven that path is below the run's own directory. With fresh, leftovers of a killed attempt are
// removed first.
func makeDirectory(ctx context.Context, mount *os.Root, b spec.Benchmark, path string, fresh bool) (err error) {
	if fresh {
		if err := remove(ctx, mount, b, path); err != nil {
			return fmt.Errorf("can't remove what a killed attempt left in %s: %w", path, err)
		}
	}
	directory, err := enter(mount, inside(b, path), true)
	if err != nil {
		return fmt.Errorf("can't make %s: %w", path, err)
	}
	return directory.Close()
}

// findDirectory returns an error unless path exists: an earlier step has made it.
func findDirectory(mount *os.Root, b spec.Benchmark, path string) error {
	directory, err := enter(mount, inside(b, path), false)
	if errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("%s is not there, though an earlier step of this repetition should have left it; run the repetition again from its first step", path)
	}
	if err != nil {
		return fmt.Errorf("can't enter %s: %w", path, err)
	}
	return directory.Close()
}

// remove removes a directory and everything in it. A missing directory is no error.
func remove(ctx context.Context, mount *os.Root, b spec.Benchmark, path string) error {
	parent, err := enter(mount, inside(b, filepath.Dir(path)), false)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	return errors.Join(removeTree(ctx, parent, filepath.Base(path)), parent.Close())
}
