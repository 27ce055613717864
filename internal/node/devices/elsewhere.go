package devices

import (
	"context"
	"fmt"
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
		who, err := within(ctx, v.Limit, func() (string, error) { return v.Elsewhere(v.node(name), guarded) })
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
	fd, err := open(path, unix.O_DIRECT)
	if err != nil {
		return "", fmt.Errorf("can't open %s to see whether another node has it mounted: %w", path, err)
	}
	file := os.NewFile(uintptr(fd), path)
	defer file.Close()
	who, err := f.MountedBy(direct{file})
	if err != nil {
		return "", fmt.Errorf("can't see whether another node has %s mounted: %w", path, err)
	}
	return who, nil
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
