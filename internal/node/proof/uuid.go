package proof

import (
	"encoding/hex"
	"errors"
	"fmt"
	"strings"
	"unsafe"

	"golang.org/x/sys/unix"

	"parallelfs.dev/operator/internal/node/format"
	"parallelfs.dev/operator/internal/node/format/registry"
)

// ioctl(2) request for the UUID of a mounted filesystem of any type. It needs only permission to open the filesystem's directory. The
// number consists of direction, size, letter and number as in the kernel's macro _IOR on amd64 and arm64.
const (
	// fsGetUUID is FS_IOC_GETFSUUID of include/uapi/linux/fs.h, _IOR(0x15, 0, struct fsuuid2), since Linux 6.9. The answer is a length byte,
	// then the UUID.
	fsGetUUID     = 0x80111500
	fsGetUUIDSize = 17
)

// uuidOf returns the UUID of the filesystem that contains the open directory. kind is the type from statfs(2). A filesystem with a second
// UUID always gets its own request, because the general one may return that UUID.
func uuidOf(fd int, kind int64) (string, error) {
	f, known := registry.ByMagic(kind)
	if !known || !f.Proof().OwnOnly {
		uuid, err := generalUUID(fd)
		if err == nil {
			return uuid, nil
		}
	}
	if !known {
		return "", fmt.Errorf("its type is none of %s; unmount it, the node's agent then mounts the disk", registry.Names())
	}
	return ownUUID(fd, f)
}

// generalUUID works for every filesystem type on new kernels.
func generalUUID(fd int) (string, error) {
	var answer [fsGetUUIDSize]byte
	if err := ask(fd, fsGetUUID, answer[:]); err != nil {
		return "", err
	}
	if answer[0] != 16 {
		return "", fmt.Errorf("it is %d bytes long, not 16", answer[0])
	}
	return written(answer[1:])
}

// ownUUID uses the format's own request.
func ownUUID(fd int, f format.Format) (string, error) {
	proof := f.Proof()
	answer, err := proof.UUID(func(request uintptr, answer []byte) error { return ask(fd, request, answer) })
	switch {
	case err == nil:
		return written(answer)
	case proof.Folded != nil && errors.Is(err, unix.ENOTTY):
		return "", &oldKernelError{string(f.Name()), *proof.Folded}
	default:
		return "", err
	}
}

// oldKernelError means that the kernel reports only the folded UUID.
type oldKernelError struct {
	format string
	folded format.Folded
}

func (e *oldKernelError) Error() string {
	return fmt.Sprintf("this kernel (older than Linux %s) tells only a part of that of %s, and it is not that of the UUID in the marker, "+
		"which is missing or was copied here; bring the right disk back", e.folded.Since, e.format)
}

// isFolded is true if statfs(2) shows this UUID, folded.
func isFolded(uuid string, folded format.Folded, shown unix.Fsid) bool {
	bytes, err := hex.DecodeString(strings.ReplaceAll(uuid, "-", ""))
	if err != nil || len(bytes) != 16 {
		return false
	}
	low, high := uint32(shown.Val[0]), uint32(shown.Val[1]) //nolint:gosec // the kernel has no sign here
	return folded.Fold([16]byte(bytes)) == uint64(high)<<32|uint64(low)
}

func ask(fd int, request uintptr, answer []byte) error {
	_, _, errno := unix.Syscall(unix.SYS_IOCTL, uintptr(fd), request,
		uintptr(unsafe.Pointer(&answer[0]))) //nolint:gosec // the buffer is as large as the request says
	if errno != 0 {
		return fmt.Errorf("ioctl %#x: %w", request, errno)
	}
	return nil
}

// written formats the first 16 bytes as blkid(8) does.
func written(bytes []byte) (string, error) {
	u := [16]byte(bytes)
	if u == [16]byte{} {
		return "", errors.New("it is all zeros, which names no filesystem")
	}
	return fmt.Sprintf("%x-%x-%x-%x-%x", u[:4], u[4:6], u[6:8], u[8:10], u[10:]), nil
}
