package btrfs

import "parallelfs.dev/operator/internal/node/format"

const (
	// magic is BTRFS_SUPER_MAGIC of include/uapi/linux/magic.h.
	magic = 0x9123683e
	// info is BTRFS_IOC_FS_INFO of include/uapi/linux/btrfs.h, _IOR(0x94, 31, struct btrfs_ioctl_fs_info_args): two fields of 8 bytes,
	// then the UUID. The number is that of amd64 and arm64.
	info     = 0x8400941f
	infoSize = 1024
	infoUUID = 16
)

// Proof uses btrfs's own request only, because besides the UUID in its superblock btrfs has one in its metadata.
func (Format) Proof() format.Proof { return format.Proof{Magic: magic, OwnOnly: true, UUID: uuid} }

func uuid(ask format.Ask) ([]byte, error) {
	var answer [infoSize]byte
	if err := ask(info, answer[:]); err != nil {
		return nil, err
	}
	return answer[infoUUID:], nil
}
