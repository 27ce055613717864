package devices

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"

	"golang.org/x/sys/unix"
)

const (
	kibi = int64(1) << 10
	mebi = int64(1) << 20
)

const (
	// headSize is the size of the part that is read at the start of a device. It contains partition tables, superblocks on the whole device,
	// and superblocks of partitions that start at 34, 40, 63 or 64 sectors, 1 MiB or 2 MiB.
	headSize = 4 * mebi
	// tailSize is the size of the part that is read at the end. It contains backups of partition tables, RAID metadata of version 0.90 and
	// 1.0, and the labels of ZFS, which leaves 8 MiB free after its partition.
	tailSize = 12 * mebi
	// startSize is the size of the part that is read at each possible start of a partition. A partition starts there, or 1 MiB later if the
	// first one started at 1 MiB. The deepest superblock is that of btrfs, which ends 68 KiB after the start.
	startSize = 2 * mebi
	// blocks is the number of blocks of blockSize that are read, evenly spread over the device.
	blocks    = 64
	blockSize = 64 * kibi
	// chunk is the size of one read or write.
	chunk = mebi
)

// usualStarts lists possible starts of a partition after smaller ones: after a protective area of 16 or 128 MiB (Microsoft reserved), or
// after an EFI or boot partition of 100 to 1024 MiB. Backups of superblocks are at 64 MiB (btrfs), and at 128 and 384 MiB (ext4, groups 1
// and 3).
var usualStarts = []int64{
	16 * mebi, 64 * mebi, 100 * mebi, 128 * mebi, 200 * mebi, 256 * mebi, 260 * mebi, 300 * mebi,
	384 * mebi, 500 * mebi, 512 * mebi, 1024 * mebi,
}

// partitionStarts returns the usual starts of the first or second partition of a device, in bytes.
func partitionStarts() []int64 {
	const sector = 512
	out := []int64{34 * sector, 40 * sector, 63 * sector, 64 * sector, mebi, 2 * mebi}
	for _, start := range usualStarts {
		out = append(out, start, start+mebi)
	}
	return out
}

// Place is a part of a device, in bytes.
type Place struct{ Offset, Size int64 }

// Sample returns the places of a device of this size that are read to detect data, in ascending order and without overlap. They depend only
// on the size. Data in other places is not detected, because reading a whole device takes days.
func Sample(size int64) []Place {
	all := []Place{{0, headSize}, {size - tailSize, tailSize}}
	for _, start := range usualStarts {
		all = append(all, Place{start, startSize})
	}
	// XFS has its allocation groups at the quarters of its device, and a partition table shifts them by less than 1 MiB.
	for quarter := range int64(3) {
		all = append(all, Place{size/4*(quarter+1) - startSize/2, startSize})
	}
	for block := range int64(blocks) {
		all = append(all, Place{size / blocks * block / blockSize * blockSize, blockSize})
	}
	slices.SortFunc(all, func(a, b Place) int { return cmp.Or(cmp.Compare(a.Offset, b.Offset), cmp.Compare(a.Size, b.Size)) })
	var out []Place
	for _, p := range all {
		start, end := max(p.Offset, 0), min(p.Offset+p.Size, size)
		if last := len(out) - 1; last >= 0 && start <= out[last].Offset+out[last].Size {
			out[last].Size = max(out[last].Size, end-out[last].Offset)
		} else if start < end {
			out = append(out, Place{start, end - start})
		}
	}
	return out
}

// ReadSample reads the Sample of a device, and stops at the first data. It returns the offset of the data with a
// checksum, such as "0x200 (checksum 5feceb66ffc86f38)", or "" if there is none. An error means that a part could not be read.
func ReadSample(path string) (unknown string, err error) {
	fd, err := open(path, 0)
	if err != nil {
		return "", fmt.Errorf("can't open %s: %w", path, err)
	}
	device := os.NewFile(uintptr(fd), path)
	defer device.Close()
	size, err := device.Seek(0, io.SeekEnd)
	if err != nil {
		return "", unreadable(0, 0, err)
	}
	return firstData(device, Sample(size))
}

// firstData returns the offset of the first byte in the places that is not zero, with the first half of the SHA-256 of the chunk around it.
// The checksum distinguishes other data in the same place.
func firstData(device io.ReaderAt, places []Place) (string, error) {
	buffer, zeros := make([]byte, chunk), make([]byte, chunk)
	for _, p := range places {
		for at := p.Offset; at < p.Offset+p.Size; at += chunk {
			part := buffer[:min(chunk, p.Offset+p.Size-at)]
			if n, err := device.ReadAt(part, at); n < len(part) {
				return "", unreadable(at, len(part), err)
			}
			if !bytes.Equal(part, zeros[:len(part)]) {
				first := slices.IndexFunc(part, func(b byte) bool { return b != 0 })
				sum := sha256.Sum256(part)
				return fmt.Sprintf("%#x (checksum %x)", at+int64(first), sum[:8]), nil
			}
		}
	}
	return "", nil
}

func unreadable(at int64, length int, err error) error {
	return fmt.Errorf("can't read %d bytes at %d: %w; look for errors of the disk in the kernel's log (dmesg)", length, at, err)
}

// ZeroSample zeroes the Sample of a device, so that a scan finds it blank. It opens the device exclusively (O_EXCL): the kernel refuses a
// device that is in use. It proceeds from the end, so that a scan finds the same first byte until everything is zeroed.
func ZeroSample(path string) (err error) {
	device, err := os.OpenFile(path, os.O_RDWR|unix.O_EXCL|unix.O_NONBLOCK, 0)
	if err != nil {
		return fmt.Errorf("can't open %s to zero it: %w", path, err)
	}
	defer func() { err = errors.Join(err, device.Close()) }()
	size, err := device.Seek(0, io.SeekEnd)
	if err != nil {
		return fmt.Errorf("can't find the size of %s: %w", path, err)
	}
	zeros, places := make([]byte, chunk), Sample(size)
	slices.Reverse(places)
	for _, p := range places {
		for end := p.Offset + p.Size; end > p.Offset; {
			part := min(chunk, end-p.Offset)
			end -= part
			if _, err := device.WriteAt(zeros[:part], end); err != nil {
				return fmt.Errorf("can't zero %d bytes of %s at %d: %w", part, path, end, err)
			}
		}
	}
	if err := device.Sync(); err != nil {
		return fmt.Errorf("can't write the zeros to %s: %w", path, err)
	}
	return nil
}
