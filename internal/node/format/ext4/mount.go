package ext4

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"

	"parallelfs.dev/operator/internal/node/format"
)

var _ format.Guarded = Format{}

// WithoutReplay leaves the journal as it is (ext4(5), noload).
func (Format) WithoutReplay() []string { return []string{"ro", "noload"} }

// SpansDevices is false.
func (Format) SpansDevices() bool { return false }

// The multi-mount protection (MMP): a machine that mounts the filesystem for writing puts a number into one block of it, and a new one
// every few seconds. The unmount writes the value for "clean" (Documentation/filesystems/ext4/mmp.rst and super.rst of the kernel).
const (
	superblock = 1024
	// multiMount is INCOMPAT_MMP among the features, hasJournal is COMPAT_HAS_JOURNAL, and needsRecovery is INCOMPAT_RECOVER, which is set
	// from a mount for writing until the unmount.
	multiMount    = 0x100
	hasJournal    = 0x4
	needsRecovery = 0x4
	mmpMagic      = 0x004d4d50
	// mmpClean is the value while it is not mounted, and mmpRepair while e2fsck works on it.
	mmpClean  = 0xff4d4d50
	mmpRepair = 0xe24d4d50
)

// whenOff is what to do if the other machine can't unmount it. The device follows the text.
const whenOff = "Only when that machine is off for good: tune2fs -f -E clear_mmp"

// errNoMMP means that the block has no valid content. The kernel does not mount such a filesystem.
var errNoMMP = errors.New("the block in which its ext4 shows who has it mounted (MMP) is damaged; repair it with e2fsck")

// number is the byte order of all numbers in ext4.
var number = binary.LittleEndian

// superOf reads the superblock.
func superOf(disk io.ReaderAt) ([]byte, error) {
	super := make([]byte, 1024)
	if n, err := disk.ReadAt(super, superblock); n < len(super) {
		return nil, fmt.Errorf("read the superblock: %w", err)
	}
	return super, nil
}

// isProtected reports whether a superblock is that of an ext4 with the multi-mount protection.
func isProtected(super []byte) bool {
	return number.Uint16(super[56:]) == magic && number.Uint32(super[96:])&multiMount != 0
}

// NotUnmounted reads both places that an unmount writes: the superblock, whose journal then needs no recovery, and then the block of the
// multi-mount protection.
func (f Format) NotUnmounted(disk io.ReaderAt) (string, error) {
	super, err := superOf(disk)
	if err != nil {
		return "", err
	}
	who, err := f.MountedBy(disk)
	switch {
	case err != nil:
		return "", err
	case number.Uint16(super[56:]) != magic:
		return "it holds no ext4", nil
	case !isProtected(super):
		return "its ext4 has no multi-mount protection (feature mmp), without which nothing keeps two nodes from mounting it", nil
	case who != "":
		return who, nil
	case number.Uint32(super[92:])&hasJournal == 0:
		return "its ext4 has no journal, which shows whether it was unmounted", nil
	case number.Uint32(super[96:])&needsRecovery != 0:
		return "its journal needs recovery, so whoever had it mounted has not unmounted it", nil
	}
	return "", nil
}

// MountedBy reads the block of the multi-mount protection. Most filesystems have none.
func (Format) MountedBy(disk io.ReaderAt) (string, error) {
	super, err := superOf(disk)
	if err != nil || !isProtected(super) {
		return "", err
	}
	size, at := number.Uint32(super[24:]), number.Uint64(super[360:])
	if size > 6 || at == 0 || at > 1<<40 { // a block has at most 64 KiB
		return "", errNoMMP
	}
	block := make([]byte, 128)
	if n, err := disk.ReadAt(block, int64(at)<<(10+size)); n < len(block) { // #nosec G115 -- as above
		return "", fmt.Errorf("read the block of the multi-mount protection: %w", err)
	}
	if number.Uint32(block) != mmpMagic {
		return "", errNoMMP
	}
	node, _, _ := bytes.Cut(block[16:80], []byte{0})
	device, _, _ := bytes.Cut(block[80:112], []byte{0})
	switch number.Uint32(block[4:]) {
	case mmpClean:
		return "", nil
	case mmpRepair:
		return fmt.Sprintf("e2fsck repairs it on the machine %q, or was cut off there; wait for it. %s", node, whenOff), nil
	}
	return fmt.Sprintf("the machine %q has it mounted, as %q, or went down with it; unmount it there. %s", node, device, whenOff), nil
}
