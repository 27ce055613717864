//go:build disks

package devices

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"testing"

	. "github.com/onsi/gomega"
)

// formatAt makes a filesystem that fills the disk from an offset to the end, as if a partition started there. It is made in a file, because
// another program could scan a separate device and keep it busy.
func (d *disk) formatAt(offset int64, command ...string) {
	d.lab.Helper()
	g := NewWithT(d.lab)
	whole, err := os.Stat(d.file)
	g.Expect(err).NotTo(HaveOccurred())
	path := filepath.Join(d.lab.TempDir(), "partition")
	file, err := os.Create(path)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(file.Truncate(whole.Size() - offset)).To(Succeed())
	g.Expect(file.Close()).To(Succeed())
	d.lab.run(command[0], append(command[1:], path)...)
	d.lab.run("dd", "if="+path, "of="+d.path, "bs=1M", "conv=sparse,notrunc,fsync", "oflag=seek_bytes", "seek="+strconv.FormatInt(offset, 10), "status=none")
}

// TestADiskThatLostOnlyItsPartitionTableIsNotBlank has disks with partitions at the usual starts but without the partition table: sgdisk
// --zap-all zeroes only the table.
func TestADiskThatLostOnlyItsPartitionTableIsNotBlank(t *testing.T) {
	starts := map[string]int64{"63 sectors": 63 * 512, "1 MiB": mebibyte, "17 MiB": 17 * mebibyte, "129 MiB": 129 * mebibyte}
	for kind, command := range map[string][]string{
		"ext4": {"mkfs.ext4", "-q", "-L", "precious"}, "xfs": {"mkfs.xfs", "-q", "-L", "precious"}, "btrfs": {"mkfs.btrfs", "-q", "-L", "precious"},
		"swap": {"mkswap", "-L", "precious"},
	} {
		for at, offset := range starts {
			t.Run(fmt.Sprintf("%s at %s", kind, at), func(t *testing.T) {
				g, l := NewWithT(t), newLab(t)
				d := l.disk(448)
				d.formatAt(offset, command...)
				f := d.look()
				t.Logf("%v", f.Unusable)
				g.Expect(f.Unusable).To(says("is not blank"))
				g.Expect(f.Signatures).To(ContainElement(And(HaveField("Device", d.name), HaveField("Type", kind),
					HaveField("Offset", fmt.Sprintf("%#x", offset)), HaveField("Label", "precious"))))
			})
		}
	}
	t.Run("LVM, RAID and ZFS at 1 MiB", func(t *testing.T) {
		for kind, write := range map[string]func(d *disk){
			"LVM2_member": func(d *disk) { d.write(mebibyte+512, []byte("LABELONE")) },
			"linux_raid_member": func(d *disk) {
				offset, content := md12("precious")
				d.write(mebibyte+offset, content)
			},
			"zfs_member": func(d *disk) {
				for offset, label := range zfs(62 * mebibyte) {
					d.write(mebibyte+offset, label)
				}
			},
		} {
			d := newLab(t).disk(64)
			write(d)
			f := d.look()
			t.Logf("%v", f.Unusable)
			NewWithT(t).Expect(f.Unusable).To(says("is not blank"), kind)
		}
	})
}

func TestDataInTheMiddleOfADiskIsDetected(t *testing.T) {
	g := NewWithT(t)
	d := newLab(t).disk(256)
	noise := make([]byte, 8*mebibyte)
	for i := range noise {
		noise[i] = byte(i)
	}
	d.write(150*mebibyte, noise)
	g.Expect(d.look().Unusable).To(says("data that no probe knows"))
}
