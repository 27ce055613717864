package bench

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
)

const (
	// mostOpen limits how many nested directories are open at once during a removal. Deeper directories are moved up, so that no depth exceeds
	// the limit of open files.
	mostOpen = 32
	// mostNames limits how many names of a directory are read at once.
	mostNames = 1024
)

// removal removes the content of a directory. It ends with its context, because a program could fill a directory while it is removed.
type removal struct {
	ctx context.Context //nolint:containedctx // it lives as long as one call of removeTree
	top *os.Root
}

// removeTree removes a name in a directory and everything below it, and follows no symbolic link. A missing name is no error.
func removeTree(ctx context.Context, in *os.Root, name string) error {
	seen, err := in.Lstat(name)
	if err != nil {
		return ignoreMissing(err)
	}
	if seen.IsDir() {
		top, err := step(in, name, false)
		if err != nil {
			return ignoreMissing(err)
		}
		if err := errors.Join((&removal{ctx, top}).empty(top, ".", 1), top.Close()); err != nil {
			return err
		}
	}
	return ignoreMissing(in.Remove(name))
}

// empty removes everything in a directory, whose path is relative to the top.
func (r *removal) empty(directory *os.Root, path string, depth int) error {
	for {
		if err := r.ctx.Err(); err != nil {
			return fmt.Errorf("files are left in %s; does a program still write there? %w", path, err)
		}
		some, err := someNames(directory)
		if err != nil || len(some) == 0 {
			return err
		}
		for _, name := range some {
			if err := r.drop(directory, path, name, depth); err != nil {
				return err
			}
		}
	}
}

// drop removes a name in a directory, or moves it to the top to be removed later.
func (r *removal) drop(directory *os.Root, path, name string, depth int) error {
	seen, err := directory.Lstat(name)
	if err != nil {
		return ignoreMissing(err)
	}
	if !seen.IsDir() {
		return ignoreMissing(directory.Remove(name))
	}
	if depth >= mostOpen {
		return ignoreMissing(r.top.Rename(filepath.Join(path, name), ".removing-"+unique()))
	}
	below, err := step(directory, name, false)
	if err != nil {
		return ignoreMissing(err)
	}
	if err := errors.Join(r.empty(below, filepath.Join(path, name), depth+1), below.Close()); err != nil {
		return err
	}
	return ignoreMissing(directory.Remove(name))
}

// someNames lists a part of a directory, or nothing if the directory is empty.
func someNames(directory *os.Root) (out []string, err error) {
	opened, err := directory.Open(".")
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, opened.Close()) }()
	out, err = opened.Readdirnames(mostNames)
	if errors.Is(err, io.EOF) {
		err = nil
	}
	return out, err
}

func ignoreMissing(err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}
