package format_test

import (
	"bytes"
	"encoding/binary"
	"testing"

	. "github.com/onsi/gomega"

	"parallelfs.dev/operator/internal/node/format"
	"parallelfs.dev/operator/internal/node/format/registry"
)

// guarded returns a disk with an ext4 that has a multi-mount protection: its superblock, and the block with this number.
func guarded(g *WithT, sequence uint32) (disk []byte, f format.Guarded) {
	disk = make([]byte, 64<<10)
	super, block := disk[1024:], disk[9*4096:]
	number := binary.LittleEndian
	number.PutUint32(super[24:], 2) // blocks of 4 KiB
	number.PutUint16(super[56:], 0xef53)
	number.PutUint32(super[92:], 0x4)
	number.PutUint32(super[96:], 0x100|0x2c2)
	number.PutUint64(super[360:], 9)
	number.PutUint32(block, mmp)
	number.PutUint32(block[4:], sequence)
	copy(block[16:], "oss2.example.com\x00")
	copy(block[80:], "nvme1n1\x00")
	found, _ := registry.BySignature("ext4")
	f, is := found.(format.Guarded)
	g.Expect(is).To(BeTrue())
	return disk, f
}

const mmp = 0x004d4d50

func TestADiskShowsWhichMachineHasItMounted(t *testing.T) {
	for name, c := range map[string]struct {
		sequence uint32
		says     string
	}{
		"while it is mounted there":          {0x1234, `the machine "oss2.example.com" has it mounted, as "nvme1n1", or went down with it; unmount it there.`},
		"while it is repaired there":         {0xe24d4d50, `e2fsck repairs it on the machine "oss2.example.com"`},
		"and nobody, when it was unmounted":  {0xff4d4d50, ""},
		"with the last number before repair": {0xe24d4d4f, `has it mounted`},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			disk, f := guarded(g, c.sequence)
			who, err := f.MountedBy(bytes.NewReader(disk))
			g.Expect(err).NotTo(HaveOccurred())
			if c.says == "" {
				g.Expect(who).To(BeEmpty())
				return
			}
			g.Expect(who).To(And(ContainSubstring(c.says), HaveSuffix("Only when that machine is off for good: tune2fs -f -E clear_mmp")))
		})
	}
}

func TestADiskWithoutTheProtectionShowsNoHolder(t *testing.T) {
	g := NewWithT(t)
	disk, f := guarded(g, 1)
	for name, change := range map[string]func(super []byte){
		"without the feature": func(super []byte) { super[97] = 2 },
		"of another kind":     func(super []byte) { super[56] = 0 },
	} {
		changed := bytes.Clone(disk)
		change(changed[1024:])
		g.Expect(f.MountedBy(bytes.NewReader(changed))).To(BeEmpty(), name)
	}
}

func TestAProtectionThatCantBeReadIsNotTakenForNone(t *testing.T) {
	for name, change := range map[string]func(disk []byte) []byte{
		"its block is another one":      func(disk []byte) []byte { disk[9*4096] = 0; return disk },
		"its block has no place":        func(disk []byte) []byte { disk[1024+360] = 0; return disk },
		"its block lies behind the end": func(disk []byte) []byte { disk[1024+361] = 1; return disk },
		"its blocks have no size":       func(disk []byte) []byte { disk[1024+24] = 7; return disk },
		"the disk is cut off":           func(disk []byte) []byte { return disk[:9*4096+64] },
		"there is no superblock":        func([]byte) []byte { return nil },
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			disk, f := guarded(g, 1)
			_, err := f.MountedBy(bytes.NewReader(change(disk)))
			g.Expect(err).To(HaveOccurred())
		})
	}
}

func TestADiskShowsThatItWasUnmounted(t *testing.T) {
	const clean = 0xff4d4d50
	for name, c := range map[string]struct {
		sequence uint32
		change   func(super []byte)
		says     string
	}{
		"where its journal needs no recovery and nobody has it":      {clean, func([]byte) {}, ""},
		"and not while a machine has it mounted":                     {0x1234, func([]byte) {}, `the machine "oss2.example.com" has it mounted`},
		"and not while it is repaired":                               {0xe24d4d50, func([]byte) {}, "e2fsck repairs it"},
		"and not where its journal needs recovery":                   {clean, func(super []byte) { super[96] |= 4 }, "its journal needs recovery"},
		"and not without a journal":                                  {clean, func(super []byte) { super[92] = 0 }, "has no journal"},
		"and not without the protection":                             {clean, func(super []byte) { super[97] = 2 }, "has no multi-mount protection"},
		"and not where it holds something else":                      {clean, func(super []byte) { super[56] = 0 }, "it holds no ext4"},
		"and not where its journal is clean and a machine writes on": {0x1235, func([]byte) {}, "has it mounted"},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			disk, f := guarded(g, c.sequence)
			c.change(disk[1024:])
			why, err := f.NotUnmounted(bytes.NewReader(disk))
			g.Expect(err).NotTo(HaveOccurred())
			if c.says == "" {
				g.Expect(why).To(BeEmpty())
				return
			}
			g.Expect(why).To(ContainSubstring(c.says))
		})
	}
}

func TestADiskThatCantBeReadDoesNotShowThatItWasUnmounted(t *testing.T) {
	for name, change := range map[string]func(disk []byte) []byte{
		"its block is another one": func(disk []byte) []byte { disk[9*4096] = 0; return disk },
		"the disk is cut off":      func(disk []byte) []byte { return disk[:9*4096+64] },
		"there is no superblock":   func([]byte) []byte { return nil },
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			disk, f := guarded(g, 0xff4d4d50)
			_, err := f.NotUnmounted(bytes.NewReader(change(disk)))
			g.Expect(err).To(HaveOccurred())
		})
	}
}
