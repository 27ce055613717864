//go:build disks

package provision_test

import (
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	"golang.org/x/sys/unix"

	"parallelfs.dev/operator/api/v1alpha1"
	"parallelfs.dev/operator/internal/plan"
)

// wrongApproval is the hash of a plan that nobody has made.
var wrongApproval = "sha256:" + strings.Repeat("0123456789abcdef", 4)

// hostile is a disk that must stay as it is.
type hostile struct {
	// make prepares the disk; the result is undone before the test ends.
	make func(l *lab, d *disk)
	// target changes the StorageTarget.
	target func(t *v1alpha1.StorageTarget)
	// says is a part of the reason, for both policies.
	says string
	// approvable is true for a disk that could be formatted with the right approval.
	approvable bool
}

func keep(*lab, *disk) {}

// zfsLabel writes what makes a disk a member of a ZFS pool: uberblocks with their magic in all four labels
// (ZFS On-Disk Specification, chapter 1).
func zfsLabel(_ *lab, d *disk) {
	const label, first, uberblock, count, magic = 256 << 10, 128 << 10, 1 << 10, 128, 0x00bab10c
	for _, base := range []int64{0, label, d.size - 2*label, d.size - label} {
		block := make([]byte, count*uberblock)
		for i := range count {
			binary.LittleEndian.PutUint64(block[i*uberblock:], magic)
		}
		d.writeAt(base+first, block)
	}
}

func otherTarget(l *lab, d *disk) {
	l.must("mkfs.ext4", "-q", "-L", "pfs-0a1b2c3d", d.loop)
}

var hostileDisks = map[string]hostile{
	"a mounted disk": {
		make: func(l *lab, d *disk) {
			l.must("mkfs.ext4", "-q", d.loop)
			at := filepath.Join(l.root, "elsewhere")
			l.Expect(os.Mkdir(at, 0o755)).To(Succeed())
			// Read-only and without a replay, so that the mount itself writes nothing while the test compares.
			l.Expect(unix.Mount(d.loop, at, "ext4", unix.MS_RDONLY, "noload")).To(Succeed())
			l.t.Cleanup(func() { l.Expect(unix.Unmount(at, 0)).To(Succeed()) })
		}, says: "mounted at",
	},
	"a disk that is mounted in a namespace of its own": {
		make: func(l *lab, d *disk) {
			l.must("mkfs.ext4", "-q", d.loop)
			inNamespace(l, d)
		}, says: "mounted at",
	},
	"a disk with a GPT": {
		make: func(l *lab, d *disk) {
			partition(l, d)
			d.reattach("--partscan")
		}, says: "gpt", approvable: true,
	},
	"a disk with a partition that holds an ext4": {
		make: func(l *lab, d *disk) {
			partition(l, d)
			// partx adds what this kernel may not read itself.
			l.must("partx", "--add", d.loop)
			// The kernel would show it on whatever is attached to this loop device next.
			l.t.Cleanup(func() { l.must("partx", "--delete", d.loop) })
			l.must("mkfs.ext4", "-q", d.loop+"p1")
		}, says: "ext4", approvable: true,
	},
	"a disk with an MBR": {
		make: func(l *lab, d *disk) {
			table := make([]byte, 512)
			table[446+4] = 0x83
			binary.LittleEndian.PutUint32(table[446+8:], 2048)
			binary.LittleEndian.PutUint32(table[446+12:], 20480)
			table[510], table[511] = 0x55, 0xaa
			d.writeAt(0, table)
			d.reattach("--partscan")
		}, says: "dos", approvable: true,
	},
	"a physical volume of LVM": {
		make: func(l *lab, d *disk) {
			l.must("pvcreate", "--quiet", "--yes", "--config", "devices/use_devicesfile=0 devices/filter=[\"a|"+d.loop+"|\",\"r|.*|\"]", d.loop)
		}, says: "LVM2_member", approvable: true,
	},
	"a member of a RAID": {
		make: func(l *lab, d *disk) { d.writeAt(4096, raidSuperblock(l, d)) }, says: "linux_raid_member", approvable: true,
	},
	"a swap space": {
		make: func(l *lab, d *disk) { l.must("mkswap", d.loop) }, says: "swap", approvable: true,
	},
	"a swap space in use": {
		make: func(l *lab, d *disk) {
			d.swap = 64 << 10
			l.must("mkswap", d.loop, strconv.FormatInt(d.swap>>10, 10))
			l.must("swapon", d.loop)
			l.t.Cleanup(func() { l.must("swapoff", d.loop) })
		}, says: "swap",
	},
	"a LUKS device": {
		make: func(l *lab, d *disk) {
			key := filepath.Join(l.root, "key")
			l.Expect(os.WriteFile(key, []byte("only a test"), 0o600)).To(Succeed())
			l.must("cryptsetup", "luksFormat", "--batch-mode", "--type=luks2", "--pbkdf=pbkdf2", "--pbkdf-force-iterations=1000", d.loop, key)
		}, says: "crypto_LUKS", approvable: true,
	},
	"an encrypted disk without a header": {
		make: func(_ *lab, d *disk) {
			noise := make([]byte, 8*mebi)
			_, _ = rand.NewChaCha8([32]byte{1}).Read(noise)
			d.writeAt(0, noise)
		}, says: "data that no probe knows", approvable: true,
	},
	"a disk with something unknown at its end": {
		make: func(_ *lab, d *disk) { d.writeAt(d.size-4096, []byte("the last words of another storage system")) },
		says: "data that no probe knows", approvable: true,
	},
	"an ext4": {
		make: func(l *lab, d *disk) { l.must("mkfs.ext4", "-q", d.loop) }, says: "ext4", approvable: true,
	},
	"an XFS": {
		make: func(l *lab, d *disk) { l.must("mkfs.xfs", "-q", d.loop) }, says: "xfs", approvable: true,
	},
	"a btrfs": {
		make: func(l *lab, d *disk) { l.must("mkfs.btrfs", "-q", d.loop) }, says: "btrfs", approvable: true,
	},
	"the log of another XFS": {
		make: func(l *lab, d *disk) {
			data := l.disk("other", 320*mebi)
			l.must("mkfs.xfs", "-q", "-l", "logdev="+d.loop+",size=70m", data.loop)
		}, says: "xfs_external_log", approvable: true,
	},
	"the log of another target's XFS": {
		make: func(l *lab, d *disk) {
			data := l.disk("other", 320*mebi)
			l.must("mkfs.xfs", "-q", "-L", "pfs-0a1b2c3d", "-l", "logdev="+d.loop+",size=70m", data.loop)
		}, says: "is the log of the target with the label",
	},
	"a member of a ZFS pool": {make: zfsLabel, says: "zfs_member", approvable: true},
	"a target of another FileSystem": {
		make: otherTarget, says: "another target",
	},
	"a target of another FileSystem with its marker": {
		make: func(l *lab, d *disk) {
			other := l.target(d, func(t *v1alpha1.StorageTarget) { t.Spec.FileSystem.Name = "other" })
			l.Expect(l.pass(other)).To(Succeed())
			l.expectProven(other, d)
			l.unmount(other)
		}, says: "carries the data of StorageTarget",
	},
	"this very target, formatted by an earlier FileSystem, without a marker": {
		make:       func(l *lab, d *disk) { l.must("mkfs.ext4", "-q", "-L", provisionLabel(l.target(d)), d.loop) },
		approvable: true, says: "earlier FileSystem",
	},
	"a shrunk disk": {
		make: keep, target: func(t *v1alpha1.StorageTarget) { t.Spec.Device.SizeBytes *= 2 }, says: "shrunk disk",
	},
	"a disk with a wrong serial number": {
		make: keep, target: func(t *v1alpha1.StorageTarget) { t.Spec.Device.Serial = "ZA12345" }, says: "wrong serial",
	},
	"a disk with a wrong WWN": {
		make: keep, target: func(t *v1alpha1.StorageTarget) { t.Spec.Device.WWN = "0x5000c500a1b2c3d4" }, says: "wrong WWN",
	},
	"a read-only disk": {
		make: func(_ *lab, d *disk) { d.reattach("--read-only") }, says: "read-only",
	},
	"a disk that two nodes have by its serial number": {
		make: keep, target: func(t *v1alpha1.StorageTarget) {
			t.Spec.Conflict = "the device is wanted twice: by StorageTarget a on node oss1 and by StorageTarget b on node oss2"
		}, says: "wanted twice",
	},
	"a disk that a program has opened with O_EXCL": {
		make: func(l *lab, d *disk) {
			fd, err := unix.Open(d.loop, unix.O_RDONLY|unix.O_EXCL|unix.O_CLOEXEC, 0)
			l.Expect(err).NotTo(HaveOccurred())
			l.t.Cleanup(func() { l.Expect(unix.Close(fd)).To(Succeed()) })
		}, says: "in use",
	},
	"a disk that another loop device lies over": {
		make: func(l *lab, d *disk) {
			over := l.must("losetup", "--find", "--show", d.loop)
			l.t.Cleanup(func() { l.must("losetup", "--detach", over) })
		}, says: "in use",
	},
	"a disk on which two things were found": {
		make: func(l *lab, d *disk) {
			l.must("mkfs.ext4", "-q", d.loop)
			zfsLabel(l, d)
		}, says: "zfs_member", approvable: true,
	},
}

// reattach attaches the disk anew, with other options of losetup(8).
func (d *disk) reattach(options ...string) {
	d.lab.t.Helper()
	d.detach()
	d.attach(options...)
}

// TestAHostileDiskStaysBitForBitAsItWas makes a pass over each hostile disk, as data disk, and as log device, with the
// policy that formats blank disks, and with an approval of another plan.
func TestAHostileDiskStaysBitForBitAsItWas(t *testing.T) {
	policies := map[string]func(t *v1alpha1.StorageTarget){
		"with IfBlank":          func(*v1alpha1.StorageTarget) {},
		"with a wrong approval": approved(wrongApproval),
		"with Never":            func(t *v1alpha1.StorageTarget) { t.Spec.FormatPolicy = v1alpha1.FormatNever },
	}
	for sentence, h := range hostileDisks {
		t.Run(sentence, func(t *testing.T) {
			l := newLab(t)
			d := l.disk("hostile", 320*mebi)
			h.make(l, d)
			made := l.made
			before := d.content()
			for policy, set := range policies {
				target := l.target(d, as(v1alpha1.Ext4), set)
				if h.target != nil {
					h.target(target)
				}
				l.Expect(l.pass(target)).To(Succeed())
				l.stays(target, d, before, made, policy)
				if policy == "with IfBlank" {
					l.Expect(ready(target).Message).To(ContainSubstring(h.says))
				}
				if policy == "with a wrong approval" && h.approvable {
					l.Expect(ready(target).Reason).To(Equal(v1alpha1.ReasonApprovalRefused), ready(target).Message)
					l.Expect(strings.Join(target.Status.Plan.Destroys, "\n")).NotTo(BeEmpty(), "the plan names what would be lost")
				}
			}
			if h.target != nil {
				return
			}
			// The same disk as the external log of a blank one.
			data := l.disk("data", 320*mebi)
			blank := data.content()
			for policy, set := range policies {
				target := l.target(data, withLog(d), set)
				l.Expect(l.pass(target)).To(Succeed())
				l.stays(target, d, before, made, policy+", as a log device")
				l.Expect(data.content()).To(Equal(blank))
			}
		})
	}
	t.Logf("%d hostile disks", len(hostileDisks))
}

// stays expects that nothing was done.
func (l *lab) stays(target *v1alpha1.StorageTarget, d *disk, before string, made int, how string) {
	l.t.Helper()
	l.Expect(d.content()).To(Equal(before), how)
	l.Expect(l.made).To(Equal(made), how)
	l.Expect(ready(target).Status).To(BeEquivalentTo("False"), how)
	l.Expect(ready(target).Message).NotTo(BeEmpty(), how)
	l.Expect(target.Status.Provisioned).To(BeNil(), how)
	there, err := filepath.Glob(l.mountpoint(target) + "/*")
	l.Expect(err).NotTo(HaveOccurred())
	l.Expect(there).To(BeEmpty(), how)
}

// TestRandomDisksStayAsTheyAre writes known signatures at their places, at random and several at once, and tables and noise
// around them. The seed is fixed.
func TestRandomDisksStayAsTheyAre(t *testing.T) {
	l := newLab(t)
	random := rand.New(rand.NewPCG(20, 26))
	refused := map[string]int{}
	const disks = 100
	for i := range disks {
		func() {
			d := l.disk(fmt.Sprintf("random-%d", i), 65*mebi)
			defer d.detach()
			var written []string
			for range 1 + random.IntN(3) {
				s := signatures[random.IntN(len(signatures))]
				s.write(random, d)
				written = append(written, s.name)
			}
			if random.IntN(3) == 0 {
				d.reattach("--partscan")
			}
			before := d.content()
			for _, set := range []func(t *v1alpha1.StorageTarget){func(*v1alpha1.StorageTarget) {}, approved(wrongApproval)} {
				target := l.target(d, set)
				l.Expect(l.pass(target)).To(Succeed())
				l.stays(target, d, before, 0, strings.Join(written, " and "))
				refused[ready(target).Reason]++
			}
			l.Expect(os.Remove(d.file)).To(Succeed())
		}()
	}
	t.Logf("%d random disks: %v", disks, refused)
}

// TestTheFuzzerWritesWhatLibblkidKnows proves the fuzzer itself: a magic that nobody knows would be no signature.
func TestTheFuzzerWritesWhatLibblkidKnows(t *testing.T) {
	for _, s := range signatures {
		t.Run(s.name, func(t *testing.T) {
			l := newLab(t)
			d := l.disk("signature", 65*mebi)
			s.write(rand.New(rand.NewPCG(1, 1)), d)
			l.Expect(l.must("wipefs", "--no-act", "--parsable", d.loop)).NotTo(BeEmpty())
		})
	}
}

// provisionLabel is the label of a target's filesystem.
func provisionLabel(t *v1alpha1.StorageTarget) string { return plan.Label(t) }
