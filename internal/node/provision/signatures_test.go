//go:build disks

package provision_test

import (
	"encoding/binary"
	"hash/crc32"
	"math/rand/v2"
	"os"
	"os/exec"
	"strings"

	. "github.com/onsi/gomega"
	"golang.org/x/sys/unix"

	"parallelfs.dev/operator/internal/node/provision/provisiontest"
)

// signature is one thing that libblkid knows, written without the tool that makes it.
type signature struct {
	name  string
	write func(random *rand.Rand, d *provisiontest.Disk)
}

// at writes a magic at its place.
func at(name string, offset int64, magic string) signature {
	return signature{name, func(_ *rand.Rand, d *provisiontest.Disk) { d.WriteAt(offset, []byte(magic)) }}
}

// tool makes the thing with its own tool.
func tool(name string, argv ...string) signature {
	return signature{name, func(_ *rand.Rand, d *provisiontest.Disk) {
		_ = exec.Command(argv[0], append(argv[1:], d.Loop)...).Run() // it may refuse to overwrite another signature, which then stays
	}}
}

// signatures with the offsets of their magics, from libblkid/src (util-linux).
var signatures = []signature{
	at("LUKS 1", 0, "LUKS\xba\xbe\x00\x01"),
	at("squashfs", 0, "hsqs\x01\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x04\x00"),
	at("a bad ext superblock", 1024+0x38, "\x53\xef"),
	at("iso9660", 32768, "\x01CD001\x01"),
	at("f2fs", 1024, "\x10\x20\xf5\xf2"),
	at("ocfs2", 8192, "OCFSV2"),
	at("ubifs", 0, "\x31\x18\x10\x06"),
	at("vmfs", 0x100000, "\x0d\xd0\x01\xc0"),
	at("drbd", 65*provisiontest.Mebi-4096+0x3c, "\x83\x74\x02\x6b"),
	at("LVM1 member", 0, "HM\x01\x00"),
	at("LVM snapshot", 0, "SnAp"),
	at("BitLocker", 0, "\xebR\x90-FVE-FS-"),
	at("Ceph BlueStore", 0, "bluestore block device"),
	at("VDO", 0, "dmvdo001"),
	tool("ext2", "mkfs.ext2", "-q", "-F"),
	tool("ext4", "mkfs.ext4", "-q", "-F"),
	tool("swap", "mkswap", "--force"),
	{"GPT", func(_ *rand.Rand, d *provisiontest.Disk) { partition(d.Lab, d) }},
	{"MBR", func(random *rand.Rand, d *provisiontest.Disk) {
		table := make([]byte, 512)
		for i := range 1 + random.IntN(4) {
			entry := table[446+16*i:]
			entry[4] = []byte{0x83, 0x07, 0x82, 0xfd, 0x8e}[random.IntN(5)]
			binary.LittleEndian.PutUint32(entry[8:], uint32(2048+20480*i))
			binary.LittleEndian.PutUint32(entry[12:], 20480)
		}
		table[510], table[511] = 0x55, 0xaa
		d.WriteAt(0, table)
	}},
	{"ZFS", func(_ *rand.Rand, d *provisiontest.Disk) { zfsLabel(d.Lab, d) }},
	{"LVM2", func(_ *rand.Rand, d *provisiontest.Disk) { d.WriteAt(512, lvmLabel()) }},
	{"RAID", func(_ *rand.Rand, d *provisiontest.Disk) { d.WriteAt(4096, raidSuperblock(d.Lab, d)) }},
	{"another target", func(_ *rand.Rand, d *provisiontest.Disk) { otherTarget(d.Lab, d) }},
}

// partition makes a GPT with one partition of 20 MiB.
func partition(l *provisiontest.Lab, d *provisiontest.Disk) {
	l.T.Helper()
	command := exec.Command("sfdisk", "--quiet", "--wipe=never", "--no-reread", "--no-tell-kernel", d.Loop)
	command.Stdin = strings.NewReader("label: gpt\nstart=2048, size=40960\n")
	out, err := command.CombinedOutput()
	l.Expect(err).NotTo(HaveOccurred(), string(out))
}

// raidSuperblock is a superblock of md, version 1.2, which lies at 4 KiB (include/uapi/linux/raid/md_p.h).
func raidSuperblock(_ *provisiontest.Lab, d *provisiontest.Disk) []byte {
	b := make([]byte, 4096)
	le := binary.LittleEndian
	le.PutUint32(b[0:], 0xa92b4efc) // magic
	le.PutUint32(b[4:], 1)          // major version
	for i := range 16 {
		b[16+i] = byte(0x40 + i) // uuid of the set
	}
	copy(b[32:], "lab:0")
	le.PutUint32(b[72:], 1)                       // RAID1
	le.PutUint64(b[80:], uint64(d.Size/512-4096)) // size
	le.PutUint32(b[92:], 2)                       // raid disks
	le.PutUint64(b[128:], 2048)                   // data offset
	le.PutUint64(b[136:], uint64(d.Size/512-2048))
	le.PutUint64(b[144:], 8)   // super offset: 4 KiB
	le.PutUint32(b[220:], 128) // max_dev
	for i := range 128 {
		le.PutUint16(b[256+2*i:], 0xffff)
	}
	// calc_sb_1_csum: the sum of the words, with the carry added.
	var sum uint64
	for i := 0; i < 256+2*128; i += 4 {
		sum += uint64(le.Uint32(b[i:]))
	}
	le.PutUint32(b[216:], uint32(sum)+uint32(sum>>32))
	return b
}

// lvmLabel is the label of a physical volume in the second sector (lib/format_text/layout.h of LVM2).
func lvmLabel() []byte {
	b := make([]byte, 512)
	copy(b, "LABELONE")
	binary.LittleEndian.PutUint64(b[8:], 1)
	binary.LittleEndian.PutUint32(b[20:], 32)
	copy(b[24:], "LVM2 001")
	copy(b[32:], "abcdefghijklmnopqrstuvwxyz012345")
	// LVM's CRC begins with 0xf597a6cf and is not inverted at the end.
	crc := ^crc32.Update(^uint32(0xf597a6cf), crc32.IEEETable, b[20:])
	binary.LittleEndian.PutUint32(b[16:], crc)
	return b
}

// inNamespace mounts the disk where only a process of its own sees it, until the test ends.
func inNamespace(l *provisiontest.Lab, d *provisiontest.Disk) {
	holder := exec.Command("unshare", "--mount", "--propagation=private", "sh", "-c",
		`mount -t ext4 -o ro,noload "$1" /mnt && echo mounted && exec sleep 600`, "sh", d.Loop)
	out, err := holder.StdoutPipe()
	l.Expect(err).NotTo(HaveOccurred())
	l.Expect(holder.Start()).To(Succeed())
	l.T.Cleanup(func() {
		l.Expect(unix.Kill(holder.Process.Pid, unix.SIGKILL)).To(Succeed())
		_ = holder.Wait() // it was killed
	})
	line := make([]byte, len("mounted\n"))
	_, err = out.Read(line)
	l.Expect(err).NotTo(HaveOccurred())
	l.Expect(string(line)).To(Equal("mounted\n"))
}

// holdOpen starts a process that keeps a file open until end is called.
func holdOpen(l *provisiontest.Lab, file *os.File) (end func()) {
	holder := exec.Command("sleep", "600")
	holder.ExtraFiles = []*os.File{file}
	l.Expect(holder.Start()).To(Succeed())
	ended := false
	end = func() {
		if ended {
			return
		}
		ended = true
		l.Expect(holder.Process.Kill()).To(Succeed())
		_ = holder.Wait() // it was killed
	}
	l.T.Cleanup(end)
	return end
}
