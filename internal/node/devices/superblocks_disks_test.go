//go:build disks

package devices

import (
	"encoding/binary"
)

// The tests can't create these without a kernel that supports them, so their superblocks are written by format.

// md12 returns a superblock of Linux RAID, version 1.2, which is at 4 KiB (linux/raid/md_p.h, mdp_superblock_1).
func md12(name string) (offset int64, content []byte) {
	b := make([]byte, 512)
	le := binary.LittleEndian
	le.PutUint32(b[0:], 0xa92b4efc)
	le.PutUint32(b[4:], 1)            // major version
	copy(b[16:], "0123456789abcdef")  // set_uuid
	copy(b[32:], name)                // set_name
	le.PutUint32(b[72:], 1)           // level
	le.PutUint64(b[80:], 8192)        // size in sectors
	le.PutUint32(b[92:], 2)           // raid_disks
	le.PutUint64(b[128:], 2048)       // data_offset
	le.PutUint64(b[136:], 8192)       // data_size
	le.PutUint64(b[144:], 8)          // super_offset in sectors
	copy(b[168:], "fedcba9876543210") // device_uuid
	le.PutUint32(b[220:], 2)          // max_dev
	le.PutUint32(b[216:], md12Sum(b[:256+2*2]))
	return 4096, b
}

// md12Sum is calc_sb_1_csum of the kernel (drivers/md/md.c).
func md12Sum(b []byte) uint32 {
	var sum uint64
	for i := 0; i+4 <= len(b); i += 4 {
		sum += uint64(binary.LittleEndian.Uint32(b[i:]))
	}
	return uint32(sum&0xffffffff) + uint32(sum>>32)
}

// md090 returns a superblock of Linux RAID, version 0.90, which is in the last whole 64 KiB (linux/raid/md_p.h, mdp_super_t).
func md090(size int64) (offset int64, content []byte) {
	b := make([]byte, 4096)
	le := binary.LittleEndian
	for word, value := range map[int]uint32{0: 0xa92b4efc, 1: 0, 2: 90, 5: 0x01234567, 7: 1, 8: 8192, 9: 2, 10: 2, 13: 1, 14: 2, 15: 3} {
		le.PutUint32(b[4*word:], value)
	}
	var sum uint64
	for i := 0; i < len(b); i += 4 {
		sum += uint64(le.Uint32(b[i:]))
	}
	le.PutUint32(b[4*38:], uint32(sum&0xffffffff)+uint32(sum>>32)) // sb_csum
	return size&^0xffff - 0x10000, b
}

// zfs returns the four labels of a ZFS vdev, 256 KiB each: two at the start and two at the end, each with an array of uberblocks in its
// second half (ZFS On-Disk Specification, chapter 1).
func zfs(size int64) map[int64][]byte {
	const label = 256 << 10
	array := make([]byte, label/2)
	for at := 0; at < len(array); at += 1 << 10 {
		le := binary.LittleEndian
		le.PutUint64(array[at:], 0x00bab10c)
		le.PutUint64(array[at+8:], 5000)                // version
		le.PutUint64(array[at+16:], uint64(at>>10)+1)   // txg
		le.PutUint64(array[at+24:], 0x0123456789abcdef) // guid_sum
		le.PutUint64(array[at+32:], 1700000000)         // timestamp
	}
	all := map[int64][]byte{}
	for _, start := range []int64{0, label, size - 2*label, size - label} {
		all[start+label/2] = array
	}
	return all
}
