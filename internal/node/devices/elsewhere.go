package devices

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"

	"golang.org/x/sys/unix"

	"parallelfs.dev/operator/api/v1alpha1"
	"parallelfs.dev/operator/internal/node/format"
	"parallelfs.dev/operator/internal/node/format/registry"
)

// elsewhere names another node that has a device mounted. It is empty for a device that this node uses, because then the mark on the disk
// is this node's own.
func (v *view) elsewhere(ctx context.Context, name string, on []v1alpha1.Signature) (string, error) {
	if len(v.uses[name]) > 0 || len(v.holders(name)) > 0 {
		return "", nil
	}
	for _, s := range on {
		f, _ := registry.BySignature(s.Type)
		guarded, is := f.(format.Guarded)
		if !is || s.Device != name {
			continue
		}
		who, err := ask(ctx, v.Looker, name, "a read of who has it mounted", func(context.Context) (string, error) {
			return v.Elsewhere(v.node(name), guarded)
		})
		if who != "" {
			who += " /dev/" + name
		}
		return who, err
	}
	return "", nil
}

// ReadElsewhere reads from the device itself which node has it mounted (format.Guarded). It bypasses the page cache, which does not see the
// writes of other nodes.
func ReadElsewhere(path string, f format.Guarded) (string, error) {
	return asked(path, f.MountedBy, "whether another node has it mounted")
}

// Hold opens a device exclusively and only for reading. While it is open, no process on this node can mount it. why explains why the device
// does not show a clean unmount by its last user; held is nil in that case.
func Hold(path string, f format.Guarded) (held *os.File, why string, err error) {
	return hold(path, func() (string, error) { return ReadNotUnmounted(path, f) })
}

// HoldTakenOver is Hold for a device that was mounted by another machine which is now off. The device does not show a clean unmount, and
// its next mount waits until no machine writes to it. The name of the mounting node is still read.
func HoldTakenOver(path string, f format.Guarded) (held *os.File, why string, err error) {
	return hold(path, func() (string, error) {
		_, err := ReadElsewhere(path, f)
		return "", err
	})
}

func hold(path string, ask func() (string, error)) (held *os.File, why string, err error) {
	fd, err := open(path, unix.O_EXCL)
	switch {
	case errors.Is(err, unix.EBUSY):
		return nil, path + " can't be opened exclusively (O_EXCL), because a filesystem, a volume or a program uses it", nil
	case err != nil:
		return nil, "", fmt.Errorf("can't open %s exclusively: %w", path, err)
	}
	held = os.NewFile(uintptr(fd), path)
	if why, err = ask(); err != nil || why != "" {
		return nil, why, errors.Join(err, held.Close())
	}
	return held, "", nil
}

// ReadNotUnmounted reads from the device itself why it does not show a clean unmount by its last user. It is empty if the device does show
// it.
func ReadNotUnmounted(path string, f format.Guarded) (why string, err error) {
	return asked(path, f.NotUnmounted, "whether it was unmounted")
}

// asked reads from a device past the page cache of this node.
func asked(path string, ask func(io.ReaderAt) (string, error), what string) (string, error) {
	fd, err := open(path, unix.O_DIRECT)
	if err != nil {
		return "", fmt.Errorf("can't open %s to see %s: %w", path, what, err)
	}
	file := os.NewFile(uintptr(fd), path)
	defer file.Close()
	says, err := ask(direct{file})
	if err != nil {
		return "", fmt.Errorf("can't see of %s %s: %w", path, what, err)
	}
	return says, nil
}

// direct reads a file that was opened with O_DIRECT: whole pages, into page-aligned memory.
type direct struct{ file *os.File }

// page is a multiple of every disk's sector size.
const page = 4096

// ReadAt implements io.ReaderAt.
func (d direct) ReadAt(into []byte, at int64) (int, error) {
	first := at / page * page
	length := (at + int64(len(into)) - first + page - 1) / page * page
	memory, err := unix.Mmap(-1, 0, int(length), unix.PROT_READ|unix.PROT_WRITE, unix.MAP_ANON|unix.MAP_PRIVATE)
	if err != nil {
		return 0, fmt.Errorf("get memory: %w", err)
	}
	defer unix.Munmap(memory) //nolint:errcheck // it was mapped
	n, err := d.file.ReadAt(memory, first)
	if n -= int(at - first); n < 0 {
		return 0, err
	}
	if n = copy(into, memory[at-first:][:n]); n == len(into) {
		return n, nil
	}
	return n, err
}
