package target

import (
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"strings"
	"unsafe"

	"golang.org/x/sys/unix"
)

// The requests of ioctl(2) that ask a mounted filesystem for its UUID, and need no right but to open its directory. Each
// number is direction, size, letter and number of the kernel's macro _IOR, as amd64 and arm64 have them.
const (
	// fsGetUUID is FS_IOC_GETFSUUID of include/uapi/linux/fs.h, _IOR(0x15, 0, struct fsuuid2), since Linux 6.9: a byte of
	// length, then the UUID.
	fsGetUUID     = 0x80111500
	fsGetUUIDSize = 17
	// ext4GetUUID is EXT4_IOC_GETFSUUID of include/uapi/linux/ext4.h, _IOR('f', 44, struct fsuuid), since Linux 6.0: length
	// and flags of 4 bytes, then the UUID.
	ext4GetUUID     = 0x8008662c
	ext4GetUUIDSize = 8 + 16
	// xfsGeometry is XFS_IOC_FSGEOMETRY_V4 of fs/xfs/libxfs/xfs_fs.h, _IOR('X', 124, struct xfs_fsop_geom_v4), which was
	// XFS_IOC_FSGEOMETRY before Linux 5.2 (ioctl_xfs_fsgeometry(2)): eight fields of 4 bytes, four of 8, then the UUID.
	xfsGeometry     = 0x8070587c
	xfsGeometrySize = 112
	xfsGeometryUUID = 64
	// btrfsInfo is BTRFS_IOC_FS_INFO of include/uapi/linux/btrfs.h, _IOR(0x94, 31, struct btrfs_ioctl_fs_info_args): two
	// fields of 8 bytes, then the UUID.
	btrfsInfo     = 0x8400941f
	btrfsInfoSize = 1024
	btrfsInfoUUID = 16
)

// uuidOf asks the kernel for the UUID of the filesystem that the open directory lies on. kind is the type that statfs(2) says.
// Btrfs is always asked its own way: it has a second UUID, which the general question may mean.
func uuidOf(fd int, kind int64) (string, error) {
	if kind != unix.BTRFS_SUPER_MAGIC {
		uuid, err := generalUUID(fd)
		if err == nil {
			return uuid, nil
		}
	}
	return ownUUID(fd, kind)
}

// generalUUID works for every type, on new kernels.
func generalUUID(fd int) (string, error) {
	var answer [fsGetUUIDSize]byte
	if err := ask(fd, fsGetUUID, answer[:]); err != nil {
		return "", err
	}
	if answer[0] != 16 {
		return "", fmt.Errorf("it is %d bytes long, not 16", answer[0])
	}
	return format(answer[1:])
}

// ownUUID asks each type in its own way.
func ownUUID(fd int, kind int64) (string, error) {
	switch kind {
	case unix.XFS_SUPER_MAGIC:
		var answer [xfsGeometrySize]byte
		if err := ask(fd, xfsGeometry, answer[:]); err != nil {
			return "", err
		}
		return format(answer[xfsGeometryUUID:])
	case unix.EXT4_SUPER_MAGIC:
		var answer [ext4GetUUIDSize]byte
		binary.NativeEndian.PutUint32(answer[:], 16) // the room for the UUID
		if err := ask(fd, ext4GetUUID, answer[:]); err != nil {
			if errors.Is(err, unix.ENOTTY) {
				return "", errOldKernel
			}
			return "", err
		}
		return format(answer[8:])
	case unix.BTRFS_SUPER_MAGIC:
		var answer [btrfsInfoSize]byte
		if err := ask(fd, btrfsInfo, answer[:]); err != nil {
			return "", err
		}
		return format(answer[btrfsInfoUUID:])
	default:
		return "", errors.New("its type is none of ext4, xfs and btrfs; unmount it, the node's agent then mounts the disk")
	}
}

// errOldKernel means that only the folded UUID can be known.
var errOldKernel = errors.New("this kernel (older than Linux 6.0) tells only a part of that of ext4, and it is not that of the UUID in the marker, " +
	"which is missing or was copied here; bring the right disk back")

// isFolded is true when the kernel's statfs(2) shows the UUID of an ext4: both its halves, each a number of 8 bytes, combined by
// exclusive or (ext4_statfs of the kernel's fs/ext4/super.c). It is shown by every kernel, and proves 64 of the 128 bits.
func isFolded(uuid string, shown unix.Fsid) bool {
	bytes, err := hex.DecodeString(strings.ReplaceAll(uuid, "-", ""))
	if err != nil || len(bytes) != 16 {
		return false
	}
	folded := binary.LittleEndian.Uint64(bytes[:8]) ^ binary.LittleEndian.Uint64(bytes[8:])
	low, high := uint32(shown.Val[0]), uint32(shown.Val[1]) //nolint:gosec // the kernel has no sign here
	return folded == uint64(high)<<32|uint64(low)
}

func ask(fd int, request uintptr, answer []byte) error {
	_, _, errno := unix.Syscall(unix.SYS_IOCTL, uintptr(fd), request,
		uintptr(unsafe.Pointer(&answer[0]))) //nolint:gosec // the buffer is as large as the request says
	if errno != 0 {
		return fmt.Errorf("ioctl %#x: %w", request, errno)
	}
	return nil
}

// format writes the first 16 bytes as blkid(8) does.
func format(bytes []byte) (string, error) {
	u := [16]byte(bytes)
	if u == [16]byte{} {
		return "", errors.New("it is all zeros, which names no filesystem")
	}
	return fmt.Sprintf("%x-%x-%x-%x-%x", u[:4], u[4:6], u[6:8], u[8:10], u[10:]), nil
}
