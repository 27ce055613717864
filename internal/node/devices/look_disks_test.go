//go:build disks

package devices

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	"github.com/onsi/gomega/types"
	"golang.org/x/sys/unix"

	"parallelfs.dev/operator/internal/plan"
	"parallelfs.dev/operator/test/patience"
)

// has matches a signature by the name of its device and its type.
func has(device, kind string) types.GomegaMatcher {
	return ContainElement(And(HaveField("Device", device), HaveField("Type", kind)))
}

// says matches a device that can't become a target for a reason that contains these words.
func says(words string) types.GomegaMatcher { return ContainElement(ContainSubstring(words)) }

func TestABlankDiskIsBlank(t *testing.T) {
	g := NewWithT(t)
	d := newLab(t).disk(16)
	f := d.look()
	g.Expect(f.Unusable).To(BeEmpty())
	g.Expect(f.Signatures).To(BeEmpty())
	g.Expect(f.Busy).To(BeEmpty())
	g.Expect(f.Type).To(Equal("loop"))
	g.Expect(f.SizeBytes).To(BeEquivalentTo(16 * mebibyte))
	g.Expect(f.IDs).To(ConsistOf(string(d.id())))
	g.Expect(f.ReadOnly).To(BeFalse())
}

// TestTheContentOfADiskIsDetected covers what people keep on disks.
func TestTheContentOfADiskIsDetected(t *testing.T) {
	quick := []string{"luksFormat", "--batch-mode", "--pbkdf", "pbkdf2", "--pbkdf-force-iterations", "1000", "--key-file"}
	for name, c := range map[string]struct {
		size  int64
		write func(l *lab, d *disk)
		kinds []string
	}{
		"an ext4":  {16, func(l *lab, d *disk) { l.run("mkfs.ext4", "-q", "-L", "precious", d.path) }, []string{"ext4"}},
		"an XFS":   {320, func(l *lab, d *disk) { l.run("mkfs.xfs", "-q", "-L", "precious", d.path) }, []string{"xfs"}},
		"a btrfs":  {128, func(l *lab, d *disk) { l.run("mkfs.btrfs", "-q", "-L", "precious", d.path) }, []string{"btrfs"}},
		"swap":     {16, func(l *lab, d *disk) { l.run("mkswap", "-L", "precious", d.path) }, []string{"swap"}},
		"LUKS":     {32, func(l *lab, d *disk) { l.run("cryptsetup", append(quick, l.key(), d.path)...) }, []string{"crypto_LUKS"}},
		"LVM":      {16, func(l *lab, d *disk) { l.run("pvcreate", "--config", lvmOnly(d.path), "-qq", d.path) }, []string{"LVM2_member"}},
		"RAID 1.2": {16, func(_ *lab, d *disk) { d.write(md12("precious")) }, []string{"linux_raid_member"}},
		"RAID 0.9": {16, func(_ *lab, d *disk) { d.write(md090(16 * mebibyte)) }, []string{"linux_raid_member"}},
		"ZFS": {64, func(_ *lab, d *disk) {
			for offset, label := range zfs(64 * mebibyte) {
				d.write(offset, label)
			}
		}, []string{"zfs_member"}},
		"a GPT":  {16, func(l *lab, d *disk) { l.table("gpt", d) }, []string{"gpt", "PMBR"}},
		"an MBR": {16, func(l *lab, d *disk) { l.table("dos", d) }, []string{"dos"}},
		"two things at once": {16, func(l *lab, d *disk) {
			l.run("mkfs.ext4", "-q", d.path)
			d.write(0, []byte("hsqs"))
			d.write(28, []byte{4, 0}) // the version of SquashFS
		}, []string{"ext4", "squashfs", Ambivalent}},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			l := newLab(t)
			d := l.disk(c.size)
			c.write(l, d)
			f := d.look()
			for _, kind := range c.kinds {
				g.Expect(f.Signatures).To(has(d.name, kind))
				g.Expect(f.Unusable).To(says(map[bool]string{true: "several things at once", false: d.name + ": " + kind}[kind == Ambivalent]))
			}
			if strings.HasPrefix(name, "an ext4") || strings.HasPrefix(name, "an XFS") || strings.HasPrefix(name, "a btrfs") || name == "swap" {
				g.Expect(f.Signatures[0].Label).To(Equal("precious"))
				g.Expect(f.Signatures[0].UUID).To(Equal(l.uuidOf(d.path)))
			}
			g.Expect(len(f.Signatures)).To(BeNumerically("<=", maxItems))
		})
	}
}

func (l *lab) key() string {
	l.Helper()
	path := filepath.Join(l.TempDir(), "key")
	NewWithT(l).Expect(os.WriteFile(path, []byte("not a secret"), 0o600)).To(Succeed())
	return path
}

// lvmOnly restricts LVM to one disk and keeps it from using udev.
func lvmOnly(path string) string {
	return `devices { use_devicesfile=0 filter=["a|^` + path + `$|","r|.*|"] } activation { udev_sync=0 udev_rules=0 }`
}

// table writes a partition table without a reread by the kernel.
func (l *lab) table(kind string, d *disk) {
	l.Helper()
	script := filepath.Join(l.TempDir(), "script")
	NewWithT(l).Expect(os.WriteFile(script, []byte("label: "+kind+"\nstart=2048,size=20480\n"), 0o600)).To(Succeed())
	l.run("sh", "-c", `sfdisk -q --no-reread --no-tell-kernel "$1" < "$2"`, "sh", d.path, script)
}

func TestAnExternalLogNamesItsOwner(t *testing.T) {
	g := NewWithT(t)
	l := newLab(t)
	data, log := l.disk(320), l.disk(80)
	l.run("mkfs.xfs", "-q", "-L", "precious", "-l", "logdev="+log.path, data.path)
	f := log.look()
	g.Expect(f.Signatures).To(has(log.name, "xfs_external_log"))
	g.Expect(f.Signatures[0].UUID).To(Equal(l.uuidOf(data.path)))
	g.Expect(f.Unusable).To(says("xfs_external_log"))
	g.Expect(f.LogOf).To(HaveValue(And(HaveField("Device", data.name), HaveField("Label", "precious"))))

	at := l.mount(data.path, ",logdev="+log.path)
	f = log.look()
	g.Expect(f.Mounts).To(ConsistOf(at + " (external log)"))
	g.Expect(f.Busy).To(ContainSubstring("O_EXCL"))
}

func TestAMountedDiskIsInUse(t *testing.T) {
	for name, mount := range map[string]func(l *lab, path string) string{
		"in this mount namespace":                   func(l *lab, path string) string { return l.mount(path, "") },
		"in the mount namespace of another process": func(l *lab, path string) string { return l.elsewhere(path) },
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			l := newLab(t)
			d := l.disk(16)
			l.run("mkfs.ext4", "-q", d.path)
			at := mount(l, d.path)
			f := d.look()
			g.Expect(f.Mounts).To(ConsistOf(at))
			g.Expect(f.Busy).To(ContainSubstring("O_EXCL"))
			g.Expect(f.Unusable).To(says("is mounted at " + at))
		})
	}
}

// Two loop devices over one file are one disk that two nodes reach: a mount by one node is visible to the other only through the data on
// the disk.
func TestAMountThatOnlyTheDiskShowsIsDetected(t *testing.T) {
	g := NewWithT(t)
	l := newLab(t)
	there := l.disk(32)
	l.run("mkfs.ext4", "-q", "-O", "mmp", there.path)
	here := &disk{lab: l, file: there.file}
	here.attach()
	// A mounted filesystem is written to now and then, so the content of the disk is not compared.
	look := func(d *disk) plan.Facts {
		f, err := l.looker.ByID(t.Context(), d.id())
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(f.Incomplete).To(BeEmpty())
		return f
	}
	// While a program has the device open, this node caches what was read from it.
	held, err := os.Open(here.path)
	g.Expect(err).NotTo(HaveOccurred())
	t.Cleanup(func() { _ = held.Close() })
	g.Expect(look(here).Elsewhere).To(BeEmpty(), "nobody has mounted it yet")

	at := t.TempDir()
	l.run("mount", there.path, at)
	mounted := true
	t.Cleanup(func() {
		if mounted {
			l.run("umount", at)
		}
	})
	name := strings.TrimSpace(l.run("uname", "-n"))
	g.Expect(look(there).Elsewhere).To(BeEmpty(), "it is mounted here, as everybody sees")
	f := look(here)
	g.Expect(f.Mounts).To(BeEmpty())
	g.Expect(f.Busy).To(BeEmpty())
	g.Expect(f.Elsewhere).To(And(ContainSubstring("the machine %q has it mounted, as %q", name, there.name), HaveSuffix("clear_mmp /dev/"+here.name)))
	g.Expect(f.Unusable).To(says("is in use: the machine " + strconv.Quote(name)))

	l.run("umount", at)
	mounted = false
	g.Expect(look(here).Elsewhere).To(BeEmpty(), "nothing of what was read before is believed")
}

func TestAMountThatNoProcessSeesIsDetected(t *testing.T) {
	g := NewWithT(t)
	l := newLab(t)
	d := l.disk(16)
	l.run("mkfs.ext4", "-q", d.path)
	at := t.TempDir()
	l.run("mount", "-o", "ro", d.path, at)
	held, err := os.Open(at)
	g.Expect(err).NotTo(HaveOccurred())
	l.run("umount", "--lazy", at)
	f := d.look()
	g.Expect(held.Close()).To(Succeed())
	g.Expect(f.Mounts).To(ConsistOf("a place that no process sees (ext4)"))
	g.Expect(f.Busy).To(ContainSubstring("O_EXCL"))
}

func TestTheSecondDiskOfAMountedBtrfsIsInUse(t *testing.T) {
	g := NewWithT(t)
	l := newLab(t)
	first, second := l.disk(128), l.disk(128)
	l.run("mkfs.btrfs", "-q", "-d", "single", "-m", "raid1", first.path, second.path)
	at := l.mount(first.path, ",device="+second.path)
	g.Expect(first.look().Mounts).To(ConsistOf(at))
	g.Expect(second.look().Mounts).To(ConsistOf(at))
}

func TestPartitionsAndTheirContentAreDetected(t *testing.T) {
	g := NewWithT(t)
	l := newLab(t)
	d := l.disk(64)
	l.table("gpt", d)
	path, name := d.partition(1)
	_, second := d.partition(2)
	l.run("mkfs.ext4", "-q", path)
	f := d.look()
	g.Expect(f.Partitions).To(Equal([]string{name, second}))
	g.Expect(f.Signatures).To(And(has(d.name, "gpt"), has(name, "ext4")))
	g.Expect(f.Signatures).NotTo(ContainElement(HaveField("Device", second)), "there is nothing on the second one")
	g.Expect(f.Unusable).To(says("has partitions: " + name + ", " + second))

	at := l.mount(path, "")
	f = d.look()
	g.Expect(f.Mounts).To(ConsistOf(at))
	g.Expect(f.Busy).To(ContainSubstring("O_EXCL"), "of the whole disk")
}

func TestPartitionsOfTheKernelWithoutATableAreDetected(t *testing.T) {
	g := NewWithT(t)
	d := newLab(t).disk(64)
	_, name := d.partition(1)
	f := d.look()
	g.Expect(f.Signatures).To(BeEmpty())
	g.Expect(f.Partitions).To(Equal([]string{name}))
	g.Expect(f.Unusable).To(says("has partitions: " + name))
}

func TestAPartitionIsFoundByItsLinkAndIsMarkedAsPartition(t *testing.T) {
	g := NewWithT(t)
	l := newLab(t)
	d := l.disk(64)
	l.table("gpt", d)
	_, name := d.partition(1)
	f, err := l.looker.ByID(t.Context(), d.id()+"-part1")
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(f.Incomplete).To(BeEmpty())
	g.Expect(f.KernelName).To(Equal(name))
	g.Expect(f.Type).To(Equal("part"))
	g.Expect(f.PartitionOf).To(Equal(d.name))
	g.Expect(f.SizeBytes).To(BeEquivalentTo(10 * mebibyte))
	g.Expect(f.Signatures).To(BeEmpty(), "it is blank; the table is not on it")

	l.run("wipefs", "--all", "--quiet", "--force", d.path)
	l.run("pvcreate", "--config", lvmOnly(d.path), "-qq", "-y", d.path)
	f, err = l.looker.ByID(t.Context(), d.id()+"-part1")
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(f.Signatures).To(has(d.name, "LVM2_member"), "who has the whole disk, has the partition")
}

func TestSwapInUseIsDetected(t *testing.T) {
	g := NewWithT(t)
	l := newLab(t)
	d := l.disk(16)
	l.run("mkswap", d.path)
	l.run("swapon", "--priority", "0", d.path)
	d.swap = 16 * mebibyte
	t.Cleanup(func() { l.run("swapoff", d.path) })
	f := d.look()
	g.Expect(f.Mounts).To(ConsistOf("[SWAP]"))
	g.Expect(f.Busy).To(ContainSubstring("O_EXCL"))
	g.Expect(f.Unusable).To(says("is swap space in use"))
}

func TestADiskThatAProgramHoldsIsBusy(t *testing.T) {
	for name, c := range map[string]struct {
		flags int
		words string
	}{
		"exclusively": {unix.O_RDONLY | unix.O_EXCL, "it can't be opened exclusively (O_EXCL)"},
		"for writing": {unix.O_RDWR, "process " + strconv.Itoa(os.Getpid()) + " (devices.test)"},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			l := newLab(t)
			d := l.disk(16)
			held, err := unix.Open(d.path, c.flags|unix.O_CLOEXEC, 0)
			g.Expect(err).NotTo(HaveOccurred())
			f := d.look()
			g.Expect(f.Busy).To(ContainSubstring(c.words))
			g.Expect(f.Unusable).To(says("is in use: "))
			g.Expect(unix.Close(held)).To(Succeed())
			g.Expect(d.look().Unusable).To(BeEmpty(), "it is free again")
		})
	}
}

func TestALoopDeviceOverADiskIsAHolder(t *testing.T) {
	g := NewWithT(t)
	l := newLab(t)
	d := l.disk(16)
	over := strings.TrimSpace(l.run("losetup", "--find", "--show", d.path))
	t.Cleanup(func() { l.run("losetup", "--detach", over) })
	f := d.look()
	g.Expect(f.Holders).To(ConsistOf(filepath.Base(over)))
	g.Expect(f.Unusable).To(says(filepath.Base(over) + " is made from it"))
}

func TestAReadOnlyDiskIsReadOnly(t *testing.T) {
	g := NewWithT(t)
	f := newLab(t).disk(16, "--read-only").look()
	g.Expect(f.ReadOnly).To(BeTrue())
	g.Expect(f.Unusable).To(says("is read-only"))
}

func TestADiskThatIsGoneIsNotFound(t *testing.T) {
	g := NewWithT(t)
	l := newLab(t)
	d := l.disk(16)
	g.Expect(os.Remove(filepath.Join(l.looker.Dev, "disk/by-id", string(d.id())))).To(Succeed())
	f, err := l.looker.ByID(t.Context(), d.id())
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(f.Found).To(BeFalse())
}

func TestANodeOfAnotherDeviceIsNoProofOfABlankDisk(t *testing.T) {
	g := NewWithT(t)
	l := newLab(t)
	d, other := l.disk(16), l.disk(16)
	l.run("mkfs.ext4", "-q", d.path)
	node := filepath.Join(l.looker.Dev, d.name)
	g.Expect(os.Remove(node)).To(Succeed())
	g.Expect(os.Rename(filepath.Join(l.looker.Dev, other.name), node)).To(Succeed())
	f, err := l.looker.ByID(t.Context(), d.id())
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(f.Incomplete).To(ContainSubstring("is not the node of device"))
	g.Expect(f.Unusable).NotTo(BeEmpty())
}

func TestAChangedDiskIsAnnounced(t *testing.T) {
	g := NewWithT(t)
	l := newLab(t)
	changes, err := ThisHost().Watch(t.Context(), time.Millisecond)
	g.Expect(err).NotTo(HaveOccurred())
	l.disk(16) // Attaching a file changes the loop device.
	g.Eventually(changes, patience.Bound(2*time.Minute)).Should(Receive())
}
