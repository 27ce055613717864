// Package disktest compares the contents of the tests' disks.
package disktest

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"

	"golang.org/x/sys/unix"
)

// Content returns a hash of every byte of the file behind a loop device, and its size. Pages of zeros count only by position, so that holes
// are not read. If a swap space of this many bytes is in use at its start, only its header counts, because the kernel writes after it at
// any time. loop is the device, which is first written back to the file. It is empty if there is none.
func Content(file, loop string, swap int64) (string, error) {
	if loop != "" {
		if err := writeBack(loop); err != nil {
			return "", err
		}
	}
	f, err := os.Open(file)
	if err != nil {
		return "", err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return "", err
	}
	const page = 1 << 16
	hash, buffer, zeros := sha256.New(), make([]byte, page), make([]byte, page)
	for at := int64(0); at < info.Size(); at += page {
		data, err := unix.Seek(int(f.Fd()), at, unix.SEEK_DATA)
		if errors.Is(err, unix.ENXIO) {
			break
		} else if err != nil {
			return "", fmt.Errorf("find the next data of %s: %w", file, err)
		}
		at = data - data%page
		n, err := f.ReadAt(buffer, at)
		if err != nil && !errors.Is(err, io.EOF) {
			return "", err
		}
		if first := int64(os.Getpagesize()); at < swap {
			clear(buffer[max(first-at, 0):min(swap-at, int64(n))])
		}
		if bytes.Equal(buffer[:n], zeros[:n]) {
			continue
		}
		if err := binary.Write(hash, binary.LittleEndian, at); err != nil {
			return "", err
		}
		hash.Write(buffer[:n])
	}
	return fmt.Sprintf("%d bytes, %s", info.Size(), hex.EncodeToString(hash.Sum(nil))), nil
}

func writeBack(loop string) error {
	device, err := os.Open(loop)
	if err != nil {
		return err
	}
	return errors.Join(device.Sync(), device.Close())
}
