//go:build disks

package devices

import (
	"fmt"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"
)

// partitionAt gives what lies behind an offset of the disk a device of its own, as a partition table would, and takes it away again.
func (d *disk) partitionAt(offset int64, use func(path string)) {
	d.lab.Helper()
	path := strings.TrimSpace(d.lab.run("losetup", "--offset", strconv.FormatInt(offset, 10), "--find", "--show", d.path))
	use(path)
	d.lab.run("losetup", "--detach", path)
	// While somebody looks at it, the kernel only promises to detach it.
	NewWithT(d.lab).Eventually("/sys/block/" + filepath.Base(path) + "/loop").WithTimeout(time.Minute).ShouldNot(BeADirectory())
}

// TestADiskThatLostOnlyItsPartitionTableIsNotBlank has disks on which partitions began where partitions usually begin, without the table
// that said so: sgdisk --zap-all zeroes nothing else.
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
				d.partitionAt(offset, func(path string) { l.run(command[0], append(command[1:], path)...) })
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

func TestDataInTheMiddleOfADiskIsSeen(t *testing.T) {
	g := NewWithT(t)
	d := newLab(t).disk(256)
	noise := make([]byte, 8*mebibyte)
	for i := range noise {
		noise[i] = byte(i)
	}
	d.write(150*mebibyte, noise)
	g.Expect(d.look().Unusable).To(says("data that no probe knows"))
}
