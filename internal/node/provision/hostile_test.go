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
	"parallelfs.dev/operator/internal/node/provision/provisiontest"
	"parallelfs.dev/operator/internal/plan"
	"parallelfs.dev/operator/test/places"
)

// wrongApproval is the hash of a plan that does not exist.
var wrongApproval = "sha256:" + strings.Repeat("0123456789abcdef", 4)

// hostile is a disk that must stay as it is.
type hostile struct {
	// make prepares the disk; the result is undone before the test ends.
	make func(l *provisiontest.Lab, d *provisiontest.Disk)
	// target changes the StorageTarget.
	target func(t *v1alpha1.StorageTarget)
	// says is a part of the reason, for both policies.
	says string
	// approvable is true for a disk that could be formatted with the right approval.
	approvable bool
}

func keep(*provisiontest.Lab, *provisiontest.Disk) {}

// zfsLabel writes what makes a disk a member of a ZFS pool: uberblocks with their magic in all four labels
// (ZFS On-Disk Specification, chapter 1).
func zfsLabel(_ *provisiontest.Lab, d *provisiontest.Disk) {
	const label, first, uberblock, count, magic = 256 << 10, 128 << 10, 1 << 10, 128, 0x00bab10c
	for _, base := range []int64{0, label, d.Size - 2*label, d.Size - label} {
		block := make([]byte, count*uberblock)
		for i := range count {
			binary.LittleEndian.PutUint64(block[i*uberblock:], magic)
		}
		d.WriteAt(base+first, block)
	}
}

func otherTarget(l *provisiontest.Lab, d *provisiontest.Disk) {
	l.Must("mkfs.ext4", "-q", "-L", "pfs-0a1b2c3d", d.Loop)
}

var hostileDisks = map[string]hostile{
	"a mounted disk": {
		make: func(l *provisiontest.Lab, d *provisiontest.Disk) {
			l.Must("mkfs.ext4", "-q", d.Loop)
			at := filepath.Join(l.Root, "elsewhere")
			l.Expect(os.Mkdir(at, 0o755)).To(Succeed())
			// Read-only and without a replay, so that the mount itself writes nothing while the test compares.
			l.Expect(unix.Mount(d.Loop, at, "ext4", unix.MS_RDONLY, "noload")).To(Succeed())
			l.T.Cleanup(func() { l.Expect(unix.Unmount(at, 0)).To(Succeed()) })
		}, says: "mounted at",
	},
	"a disk that is mounted in a namespace of its own": {
		make: func(l *provisiontest.Lab, d *provisiontest.Disk) {
			l.Must("mkfs.ext4", "-q", d.Loop)
			inNamespace(l, d)
		}, says: "mounted at",
	},
	"a disk with a GPT": {
		make: func(l *provisiontest.Lab, d *provisiontest.Disk) {
			partition(l, d)
			d.Reattach("--partscan")
		}, says: "gpt", approvable: true,
	},
	"a disk with a partition that holds an ext4": {
		make: func(l *provisiontest.Lab, d *provisiontest.Disk) {
			partition(l, d)
			// partx adds what this kernel may not read itself.
			l.Must("partx", "--add", d.Loop)
			// The kernel would show it on whatever is attached to this loop device next.
			l.T.Cleanup(func() { l.Must("partx", "--delete", d.Loop) })
			l.Must("mkfs.ext4", "-q", d.Loop+"p1")
		}, says: "ext4", approvable: true,
	},
	"a disk with an MBR": {
		make: func(l *provisiontest.Lab, d *provisiontest.Disk) {
			table := make([]byte, 512)
			table[446+4] = 0x83
			binary.LittleEndian.PutUint32(table[446+8:], 2048)
			binary.LittleEndian.PutUint32(table[446+12:], 20480)
			table[510], table[511] = 0x55, 0xaa
			d.WriteAt(0, table)
			d.Reattach("--partscan")
		}, says: "dos", approvable: true,
	},
	"a physical volume of LVM": {
		make: func(l *provisiontest.Lab, d *provisiontest.Disk) {
			l.Must("pvcreate", "--quiet", "--yes", "--config", "devices/use_devicesfile=0 devices/filter=[\"a|"+d.Loop+"|\",\"r|.*|\"]", d.Loop)
		}, says: "LVM2_member", approvable: true,
	},
	"a member of a RAID": {
		make: func(l *provisiontest.Lab, d *provisiontest.Disk) { d.WriteAt(4096, raidSuperblock(l, d)) }, says: "linux_raid_member", approvable: true,
	},
	"a swap space": {
		make: func(l *provisiontest.Lab, d *provisiontest.Disk) { l.Must("mkswap", d.Loop) }, says: "swap", approvable: true,
	},
	"a swap space in use": {
		make: func(l *provisiontest.Lab, d *provisiontest.Disk) {
			d.Swap = 64 << 10
			l.Must("mkswap", d.Loop, strconv.FormatInt(d.Swap>>10, 10))
			l.Must("swapon", d.Loop)
			l.T.Cleanup(func() { l.Must("swapoff", d.Loop) })
		}, says: "swap",
	},
	"a LUKS device": {
		make: func(l *provisiontest.Lab, d *provisiontest.Disk) {
			key := filepath.Join(l.Root, "key")
			l.Expect(os.WriteFile(key, []byte("only a test"), 0o600)).To(Succeed())
			l.Must("cryptsetup", "luksFormat", "--batch-mode", "--type=luks2", "--pbkdf=pbkdf2", "--pbkdf-force-iterations=1000", d.Loop, key)
		}, says: "crypto_LUKS", approvable: true,
	},
	"an encrypted disk without a header": {
		make: func(_ *provisiontest.Lab, d *provisiontest.Disk) {
			noise := make([]byte, 8*provisiontest.Mebi)
			_, _ = rand.NewChaCha8([32]byte{1}).Read(noise)
			d.WriteAt(0, noise)
		}, says: "data that no probe knows", approvable: true,
	},
	"a disk with something unknown at its end": {
		make: func(_ *provisiontest.Lab, d *provisiontest.Disk) {
			d.WriteAt(d.Size-4096, []byte("the last words of another storage system"))
		},
		says: "data that no probe knows", approvable: true,
	},
	"the log of another XFS": {
		make: func(l *provisiontest.Lab, d *provisiontest.Disk) {
			data := l.Disk("other", 320*provisiontest.Mebi)
			l.Must("mkfs.xfs", "-q", "-l", "logdev="+d.Loop+",size=70m", data.Loop)
		}, says: "xfs_external_log", approvable: true,
	},
	"the log of another target's XFS": {
		make: func(l *provisiontest.Lab, d *provisiontest.Disk) {
			data := l.Disk("other", 320*provisiontest.Mebi)
			l.Must("mkfs.xfs", "-q", "-L", "pfs-0a1b2c3d", "-l", "logdev="+d.Loop+",size=70m", data.Loop)
		}, says: "is the log of the target with the label",
	},
	"a member of a ZFS pool": {make: zfsLabel, says: "zfs_member", approvable: true},
	"a target of another FileSystem": {
		make: otherTarget, says: "another target",
	},
	"a target of another FileSystem with its marker": {
		make: func(l *provisiontest.Lab, d *provisiontest.Disk) {
			other := l.Target(d, func(t *v1alpha1.StorageTarget) { t.Spec.FileSystem.Name = "other" })
			l.Expect(l.Pass(other)).To(Succeed())
			l.ExpectProven(other, d)
			l.Unmount(other)
		}, says: "carries the data of StorageTarget",
	},
	"this very target, formatted by an earlier FileSystem, without a marker": {
		make: func(l *provisiontest.Lab, d *provisiontest.Disk) {
			l.Must("mkfs.ext4", "-q", "-L", provisionLabel(l.Target(d)), d.Loop)
		},
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
		make: func(_ *provisiontest.Lab, d *provisiontest.Disk) { d.Reattach("--read-only") }, says: "read-only",
	},
	"a disk that two nodes have by its serial number": {
		make: keep, target: func(t *v1alpha1.StorageTarget) {
			t.Spec.Conflict = "the device is wanted twice: by StorageTarget a on node oss1 and by StorageTarget b on node oss2"
		}, says: "wanted twice",
	},
	"a disk that a program has opened with O_EXCL": {
		make: func(l *provisiontest.Lab, d *provisiontest.Disk) {
			fd, err := unix.Open(d.Loop, unix.O_RDONLY|unix.O_EXCL|unix.O_CLOEXEC, 0)
			l.Expect(err).NotTo(HaveOccurred())
			l.T.Cleanup(func() { l.Expect(unix.Close(fd)).To(Succeed()) })
		}, says: "in use",
	},
	"a disk that another loop device lies over": {
		make: func(l *provisiontest.Lab, d *provisiontest.Disk) {
			over := l.Must("losetup", "--find", "--show", d.Loop)
			l.T.Cleanup(func() { l.Must("losetup", "--detach", over) })
		}, says: "in use",
	},
	"a disk on which two things were found": {
		make: func(l *provisiontest.Lab, d *provisiontest.Disk) {
			l.Must("mkfs.ext4", "-q", d.Loop)
			zfsLabel(l, d)
		}, says: "zfs_member", approvable: true,
	},
}

// TestAHostileDiskStaysBitForBitAsItWas makes a pass over each hostile disk, as data disk, and as log device, with the
// policy that formats blank disks, and with an approval of another plan.
func TestAHostileDiskStaysBitForBitAsItWas(t *testing.T) {
	policies := map[string]func(t *v1alpha1.StorageTarget){
		"with IfBlank":          func(*v1alpha1.StorageTarget) {},
		"with a wrong approval": provisiontest.Approved(wrongApproval),
		"with Never":            func(t *v1alpha1.StorageTarget) { t.Spec.FormatPolicy = v1alpha1.FormatNever },
	}
	for sentence, h := range hostileDisks {
		t.Run(sentence, func(t *testing.T) {
			l := provisiontest.New(t)
			d := l.Disk("hostile", 320*provisiontest.Mebi)
			h.make(l, d)
			made := l.Made
			before := d.Content()
			for policy, set := range policies {
				target := l.Target(d, provisiontest.As(v1alpha1.Ext4), set)
				if h.target != nil {
					h.target(target)
				}
				l.Expect(l.Pass(target)).To(Succeed())
				l.Stays(target, d, before, made, policy)
				if policy == "with IfBlank" {
					l.Expect(provisiontest.Ready(target).Message).To(ContainSubstring(h.says))
				}
				if policy == "with a wrong approval" && h.approvable {
					l.Expect(provisiontest.Ready(target).Reason).To(Equal(v1alpha1.ReasonApprovalRefused), provisiontest.Ready(target).Message)
					l.Expect(strings.Join(target.Status.Plan.Destroys, "\n")).NotTo(BeEmpty(), "the plan names what would be lost")
				}
			}
			if h.target != nil {
				return
			}
			// The same disk as the external log of a blank one.
			data := l.Disk("data", 320*provisiontest.Mebi)
			blank := data.Content()
			for policy, set := range policies {
				target := l.Target(data, provisiontest.WithLog(d), set)
				l.Expect(l.Pass(target)).To(Succeed())
				l.Stays(target, d, before, made, policy+", as a log device")
				l.Expect(data.Content()).To(Equal(blank))
			}
		})
	}
	t.Logf("%d hostile disks", len(hostileDisks))
}

// TestRandomDisksStayAsTheyAre writes known signatures at their places, at random and several at once, and tables and noise
// around them. Each of 100 disks has a seed of its own; a run takes 20 of them, and DISKS=all takes all.
func TestRandomDisksStayAsTheyAre(t *testing.T) {
	l := provisiontest.New(t)
	refused := map[string]int{}
	disks := places.Disks.Some(t, 100, 20)
	for _, i := range disks {
		func() {
			random := rand.New(rand.NewPCG(20, uint64(i)))
			d := l.Disk(fmt.Sprintf("random-%d", i), 65*provisiontest.Mebi)
			defer d.Detach()
			var written []string
			for range 1 + random.IntN(3) {
				s := signatures[random.IntN(len(signatures))]
				s.write(random, d)
				written = append(written, s.name)
			}
			if random.IntN(3) == 0 {
				d.Reattach("--partscan")
			}
			before := d.Content()
			for _, set := range []func(t *v1alpha1.StorageTarget){func(*v1alpha1.StorageTarget) {}, provisiontest.Approved(wrongApproval)} {
				target := l.Target(d, set)
				l.Expect(l.Pass(target)).To(Succeed())
				l.Stays(target, d, before, 0, strings.Join(written, " and "))
				refused[provisiontest.Ready(target).Reason]++
			}
			l.Expect(os.Remove(d.File)).To(Succeed())
		}()
	}
	t.Logf("%d random disks: %v", len(disks), refused)
}

// TestTheFuzzerWritesWhatLibblkidRecognizes tests the fuzzer itself: a magic number that libblkid does not recognize would be no signature.
func TestTheFuzzerWritesWhatLibblkidRecognizes(t *testing.T) {
	for _, s := range signatures {
		t.Run(s.name, func(t *testing.T) {
			l := provisiontest.New(t)
			d := l.Disk("signature", 65*provisiontest.Mebi)
			s.write(rand.New(rand.NewPCG(1, 1)), d)
			l.Expect(l.Must("wipefs", "--no-act", "--parsable", d.Loop)).NotTo(BeEmpty())
		})
	}
}

// provisionLabel is the label of a target's filesystem.
func provisionLabel(t *v1alpha1.StorageTarget) string { return plan.Label(t) }
