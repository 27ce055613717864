package xfs

import "parallelfs.dev/operator/internal/node/format"

const (
	// magic is XFS_SUPER_MAGIC of include/uapi/linux/magic.h.
	magic = 0x58465342
	// geometry is XFS_IOC_FSGEOMETRY_V4 of fs/xfs/libxfs/xfs_fs.h, _IOR('X', 124, struct xfs_fsop_geom_v4), which was
	// XFS_IOC_FSGEOMETRY before Linux 5.2 (ioctl_xfs_fsgeometry(2)): eight fields of 4 bytes, four of 8, then the UUID. The number is
	// that of amd64 and arm64.
	geometry     = 0x8070587c
	geometrySize = 112
	geometryUUID = 64
)

// Proof requests the geometry, which every kernel returns.
func (Format) Proof() format.Proof { return format.Proof{Magic: magic, UUID: uuid} }

func uuid(ask format.Ask) ([]byte, error) {
	var answer [geometrySize]byte
	if err := ask(geometry, answer[:]); err != nil {
		return nil, err
	}
	return answer[geometryUUID:], nil
}
