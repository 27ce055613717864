package drained

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"

	"parallelfs.dev/operator/internal/node/proof"
	"parallelfs.dev/operator/internal/node/spec"
	"parallelfs.dev/operator/internal/node/stored"
)

// most is the limit of the count.
const most = 10_000

// look counts the files in the directories, up to one more than most.
func look(ctx context.Context, config spec.AwaitEmpty) (int, error) {
	if err := proof.Prove(config.Target, config.Owner); err != nil {
		return 0, err
	}
	top, err := open(unix.AT_FDCWD, config.Target.Path)
	if err != nil {
		return 0, fmt.Errorf("target %s: can't open %s: %w", config.Target.Name, config.Target.Path, err)
	}
	defer top.Close()
	if config.Target.Directory {
		if err := proveDirectory(top, config); err != nil {
			return 0, err
		}
	}
	c := counter{ctx: ctx}
	if c.device, err = deviceOf(top); err != nil {
		return 0, err
	}
	for _, path := range config.Directories {
		if err := c.below(top, strings.Split(strings.TrimPrefix(path, config.Target.Path+"/"), "/")); err != nil {
			return 0, fmt.Errorf("target %s: %w", config.Target.Name, err)
		}
	}
	return c.files, nil
}

// proveDirectory checks the marker of a directory on the node: its owner, and that it is initialized.
func proveDirectory(top *os.File, config spec.AwaitEmpty) error {
	refuse := func(format string, arguments ...any) error {
		return fmt.Errorf("target %s at %s %s", config.Target.Name, config.Target.Path, fmt.Sprintf(format, arguments...))
	}
	// A pipe in its place must not block the open.
	fd, err := unix.Openat(int(top.Fd()), spec.MarkerFile, unix.O_RDONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK|unix.O_CLOEXEC, 0)
	if err != nil {
		return refuse("has no marker %s that can be read (%v), so it may be another directory; bring the right one back", spec.MarkerFile, err)
	}
	file := os.NewFile(uintptr(fd), spec.MarkerFile)
	defer file.Close()
	if info, err := file.Stat(); err != nil || !info.Mode().IsRegular() {
		return refuse("has a marker %s that is not a plain file; restore it", spec.MarkerFile)
	}
	content, err := io.ReadAll(io.LimitReader(file, 64<<10))
	if err != nil {
		return refuse("has a marker %s that can't be read: %v; look into the kernel's log (dmesg) for the disk", spec.MarkerFile, err)
	}
	if err := stored.Check(content, spec.MarkerVersion); err != nil {
		return refuse("has a marker %s that can't be used: it %v", spec.MarkerFile, err)
	}
	var marker spec.Marker
	if err := json.Unmarshal(content, &marker); err != nil {
		return refuse("has a damaged marker %s (%v); restore it", spec.MarkerFile, err)
	}
	switch {
	case marker.Owner != config.Owner:
		return refuse("belongs to the FileSystem %s/%s (uid %s), not to %s/%s (uid %s): %s says so; bring the right directory back", marker.Owner.Namespace,
			marker.Owner.Name, marker.Owner.UID, config.Owner.Namespace, config.Owner.Name, config.Owner.UID, spec.MarkerFile)
	case marker.State != spec.MarkerInitialized:
		return refuse("was never initialized to its end (%s says %q), so it says nothing of the target's data", spec.MarkerFile, marker.State)
	}
	return nil
}

// counter counts the files in one filesystem. It follows no symbolic link and enters no other filesystem.
type counter struct {
	ctx    context.Context
	device uint64
	files  int
}

// errElsewhere is the error for a mount below the target, because the count would be incomplete.
var errElsewhere = errors.New("is another filesystem than the target, which hides what lies below it; unmount it")

// below counts the files in a directory below another, which it enters step by step.
func (c *counter) below(at *os.File, steps []string) error {
	if len(steps) == 0 {
		return c.in(at)
	}
	next, err := c.enter(at, steps[0])
	if err != nil {
		return fmt.Errorf("can't look into %s: %w; whether it is empty can't be said", filepath.Join(at.Name(), steps[0]), err)
	}
	defer next.Close()
	return c.below(next, steps[1:])
}

func (c *counter) enter(parent *os.File, name string) (*os.File, error) {
	directory, err := open(int(parent.Fd()), name)
	if err != nil {
		return nil, err
	}
	device, err := deviceOf(directory)
	if err == nil && device != c.device {
		err = errElsewhere
	}
	if err != nil {
		return nil, errors.Join(err, directory.Close())
	}
	return directory, nil
}

// in counts the files in the directory at any depth.
func (c *counter) in(directory *os.File) error {
	for {
		entries, err := directory.ReadDir(1000)
		for _, entry := range entries {
			if err := errors.Join(c.ctx.Err(), c.entry(directory, entry)); err != nil {
				return err
			}
			if c.files > most {
				return nil
			}
		}
		switch {
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return fmt.Errorf("can't list %s: %w", directory.Name(), err)
		}
	}
}

func (c *counter) entry(parent *os.File, entry fs.DirEntry) error {
	if !entry.IsDir() {
		c.files++
		return nil
	}
	directory, err := c.enter(parent, entry.Name())
	switch {
	case errors.Is(err, fs.ErrNotExist): // the daemon has removed it in the meantime
		return nil
	case errors.Is(err, unix.ENOTDIR), errors.Is(err, unix.ELOOP): // it has become a file
		c.files++
		return nil
	case err != nil:
		return fmt.Errorf("%s: %w", filepath.Join(parent.Name(), entry.Name()), err)
	}
	defer directory.Close()
	return c.in(directory)
}

// open opens a directory and nothing else.
func open(parent int, name string) (*os.File, error) {
	fd, err := unix.Openat(parent, name, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, err
	}
	path := name
	if parent != unix.AT_FDCWD {
		// The path as the kernel reports it, for messages.
		if known, err := os.Readlink(fmt.Sprintf("/proc/self/fd/%d", fd)); err == nil {
			path = known
		}
	}
	return os.NewFile(uintptr(fd), path), nil
}

func deviceOf(directory *os.File) (uint64, error) {
	var stat unix.Stat_t
	if err := unix.Fstat(int(directory.Fd()), &stat); err != nil {
		return 0, fmt.Errorf("can't look at %s: %w", directory.Name(), err)
	}
	return stat.Dev, nil
}
