package ext4

import (
	"encoding/binary"

	"parallelfs.dev/operator/internal/node/format"
)

const (
	// magic is EXT4_SUPER_MAGIC of include/uapi/linux/magic.h.
	magic = 0xef53
	// getUUID is EXT4_IOC_GETFSUUID of include/uapi/linux/ext4.h, _IOR('f', 44, struct fsuuid), since Linux 6.0: length and flags of 4 bytes,
	// then the UUID. The number is that of amd64 and arm64.
	getUUID     = 0x8008662c
	getUUIDHead = 8
)

// Proof requests the UUID from kernels since 6.0. Every kernel shows both halves of the UUID, each a number of 8 bytes, combined by
// exclusive or (ext4_statfs of the kernel's fs/ext4/super.c).
func (Format) Proof() format.Proof {
	return format.Proof{Magic: magic, UUID: uuid, Folded: &format.Folded{Since: "6.0", Fold: fold}}
}

func uuid(ask format.Ask) ([]byte, error) {
	var answer [getUUIDHead + 16]byte
	binary.NativeEndian.PutUint32(answer[:], 16) // the space for the UUID
	if err := ask(getUUID, answer[:]); err != nil {
		return nil, err
	}
	return answer[getUUIDHead:], nil
}

func fold(uuid [16]byte) uint64 {
	return binary.LittleEndian.Uint64(uuid[:8]) ^ binary.LittleEndian.Uint64(uuid[8:])
}
