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

// elsewhere says who else has mounted what is on a device that nobody uses here: else it would be this node itself.
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

// ReadElsewhere asks a device itself who has it mounted (format.Guarded), and not the memory of this node, which does not hear of what
// another one writes.
func ReadElsewhere(path string, f format.Guarded) (string, error) {
	return asked(path, f.MountedBy, "whether another node has it mounted")
}

// Hold opens a device exclusively, for reading only. While it is open, nobody on this node mounts it. It says why the device itself does
// not show that whoever had it mounted has unmounted it; held is nil then.
func Hold(path string, f format.Guarded) (held *os.File, why string, err error) {
	return hold(path, func() (string, error) { return ReadNotLetGo(path, f) })
}

// HoldTakenOver is Hold of a device that another machine had mounted which is off: it does not show that it was unmounted, and who mounts
// it waits until nobody writes there. That it shows who has it mounted is asked all the same.
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

// ReadNotLetGo asks a device itself why it does not show that whoever had it mounted has unmounted it, empty when it does.
func ReadNotLetGo(path string, f format.Guarded) (why string, err error) {
	return asked(path, f.NotLetGo, "whether it was unmounted")
}

// asked reads something of a device past the memory of this node.
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

// direct reads a file that was opened with O_DIRECT: only whole pages, into memory that begins with one.
type direct struct{ file *os.File }

// page is a multiple of what every disk reads at once.
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
