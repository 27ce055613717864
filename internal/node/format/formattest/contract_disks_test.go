//go:build disks

// Package formattest tests the contract of every format of targets, on real disks and with the agent that makes them.
package formattest

import (
	"context"
	"encoding/hex"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"unsafe"

	. "github.com/onsi/gomega"
	"golang.org/x/sys/unix"
	"k8s.io/apimachinery/pkg/api/meta"

	"parallelfs.dev/operator/api/v1alpha1"
	"parallelfs.dev/operator/internal/node/devices"
	"parallelfs.dev/operator/internal/node/format"
	"parallelfs.dev/operator/internal/node/format/registry"
	"parallelfs.dev/operator/internal/node/proof"
	"parallelfs.dev/operator/internal/node/provision"
	"parallelfs.dev/operator/internal/node/provision/provisiontest"
	"parallelfs.dev/operator/internal/node/spec"
	"parallelfs.dev/operator/test/places"
)

// size is enough to make every format, and logSize enough for every log.
const (
	size    = 640 * provisiontest.Mebi
	logSize = 80 * provisiontest.Mebi
)

// sample describes a test of a format: options, and what its own tool and the kernel show of them.
type sample struct {
	mkfs        []v1alpha1.MkfsOption
	mount       []v1alpha1.LocalMountOption
	tool, shows []string
	// withLog and says are the same for a filesystem with an external log.
	withLog, says []string
}

var samples = map[v1alpha1.FSType]sample{
	"ext4": {
		mkfs: []v1alpha1.MkfsOption{"-i", "2048", "-I", "512"}, mount: []v1alpha1.LocalMountOption{"noatime", "nodiratime", "nobarrier", "commit=30"},
		tool: []string{"dumpe2fs", "-h"}, shows: []string{`Inode size:\s+512`, `Inode count:\s+32\d\d\d\d`},
	},
	"xfs": {
		mkfs:  []v1alpha1.MkfsOption{"-d", "su=128k,sw=8", "-i", "size=1024"},
		mount: []v1alpha1.LocalMountOption{"noatime", "inode64", "logbufs=8", "logbsize=256k", "largeio", "swalloc", "allocsize=131072k"},
		tool:  []string{"xfs_info"}, shows: []string{`isize=1024`, `sunit=32\s+swidth=256`},
		withLog: []string{"xfs_db", "-r", "-c", "sb 0", "-c", "print logstart"}, says: []string{`logstart = 0`},
	},
	"btrfs": {
		mkfs: []v1alpha1.MkfsOption{"--metadata", "single", "--nodesize", "32k"}, mount: []v1alpha1.LocalMountOption{"noatime", "compress=zstd:3"},
		tool: []string{"btrfs", "inspect-internal", "dump-super"}, shows: []string{`nodesize\s+32768`},
	},
}

// mountedByTheAgent returns the formats whose targets have a marker in a file. The others have tests of their own.
func mountedByTheAgent() []format.Format {
	return slices.DeleteFunc(registry.All(), func(f format.Format) bool { _, is := f.(format.Served); return is })
}

// TestADiskIsMadeAndReadBackAndProvenAndWipedAs follows one disk of each format through its life, and another one with an external log if
// the format supports one.
func TestADiskIsMadeAndReadBackAndProvenAndWipedAs(t *testing.T) {
	for _, f := range mountedByTheAgent() {
		t.Run(string(f.Name()), func(t *testing.T) {
			l := provisiontest.New(t)
			s, known := samples[f.Name()]
			l.Expect(known).To(BeTrue(), "every format has a sample")
			d := l.Disk("data", size)
			made := l.Target(d, provisiontest.As(f.Name()), func(t *v1alpha1.StorageTarget) {
				t.Spec.Format.MkfsOptions, t.Spec.Format.MountOptions = s.mkfs, s.mount
			})
			l.Expect(l.Pass(made)).To(Succeed())
			l.ExpectProven(made, d)
			shown := l.Must(append(s.tool, d.Loop)...)
			for _, pattern := range s.shows {
				l.Expect(shown).To(MatchRegexp(pattern))
			}
			for _, option := range s.mount {
				l.Expect(mountOptions(l, made)).To(ContainSubstring(string(option)))
			}
			expectSettled(l, made)
			expectSeen(l, f, made, d)
			expectAsked(l, f, made)
			expectOnlyItsOwnUUID(l, made)
			expectMarkerReadWithoutAWrite(l, f, made, d)
			expectWiped(l, made, d)
		})
		if f.Log() == nil {
			continue
		}
		t.Run(string(f.Name())+" with a log on a device of its own", func(t *testing.T) {
			l := provisiontest.New(t)
			d, log := l.Disk("data", size), l.Disk("log", logSize)
			made := l.Target(d, provisiontest.WithLog(log), provisiontest.As(f.Name()))
			l.Expect(l.Pass(made)).To(Succeed())
			l.ExpectProven(made, d)
			shown := l.Must(append(samples[f.Name()].withLog, d.Loop)...)
			for _, pattern := range samples[f.Name()].says {
				l.Expect(shown).To(MatchRegexp(pattern))
			}
			l.Expect(mountOptions(l, made)).To(ContainSubstring(f.Log().MountOption + "=" + log.Loop))
			l.Expect(l.Must("blkid", "-p", "-o", "value", "-s", "LOGUUID", log.Loop)).To(Equal(made.Status.Provisioned.UUID))
			expectSettled(l, made)
			expectSeen(l, f, made, d)
			seen, err := devices.ThisHost().ByID(t.Context(), log.ID())
			l.Expect(err).NotTo(HaveOccurred())
			l.Expect(seen.Signatures).To(HaveExactElements(And(HaveField("Type", f.Log().Signature), HaveField("UUID", made.Status.Provisioned.UUID))))
			l.Expect(seen.Mounts).To(ContainElement(l.Mountpoint(made)+" (external log)"), "whose log it is")
			l.Expect(seen.LogOf).To(HaveValue(HaveField("Device", d.KernelName())))
			expectWiped(l, made, d, log)
		})
	}
}

func mountOptions(l *provisiontest.Lab, made *v1alpha1.StorageTarget) string {
	l.T.Helper()
	return l.Must("findmnt", "--noheadings", "--output", "OPTIONS", "--mountpoint", l.Mountpoint(made))
}

// expectSettled expects that a second pass changes nothing.
func expectSettled(l *provisiontest.Lab, made *v1alpha1.StorageTarget) {
	l.T.Helper()
	before := made.DeepCopy()
	l.Expect(l.Pass(made)).To(Succeed())
	l.Expect(made.Status).To(Equal(before.Status), "a second pass changes nothing")
	l.Expect(l.Made).To(Equal(1))
}

// expectSeen expects that a look finds the format's signature, its UUID and label, and where it is mounted.
func expectSeen(l *provisiontest.Lab, f format.Format, made *v1alpha1.StorageTarget, d *provisiontest.Disk) {
	l.T.Helper()
	seen, err := devices.ThisHost().ByID(l.T.Context(), d.ID())
	l.Expect(err).NotTo(HaveOccurred())
	l.Expect(seen.Signatures).NotTo(BeEmpty())
	for _, s := range seen.Signatures {
		l.Expect(s.Type).To(Equal(f.Signature()))
		l.Expect(s.UUID).To(Equal(made.Status.Provisioned.UUID))
		l.Expect(s.Label).To(Equal(made.Status.Provisioned.Label))
	}
	l.Expect(seen.Mounts).To(ConsistOf(l.Mountpoint(made)))
	l.Expect(seen.Busy).NotTo(BeEmpty())
	// The same is visible for a mount that no process can see.
	shown := filepath.Join("/sys/fs", string(f.Name()), d.KernelName())
	if f.SpansDevices() {
		shown = filepath.Join("/sys/fs", string(f.Name()), made.Status.Provisioned.UUID, "devices", d.KernelName())
	}
	_, err = os.Lstat(shown)
	l.Expect(err).NotTo(HaveOccurred())
}

// expectAsked expects each request to return the UUID, whichever of them the code would choose on this kernel. Older kernels support only
// the later ones.
func expectAsked(l *provisiontest.Lab, f format.Format, made *v1alpha1.StorageTarget) {
	l.T.Helper()
	const general, generalSize = 0x80111500, 17 // FS_IOC_GETFSUUID
	uuid := strings.ReplaceAll(made.Status.Provisioned.UUID, "-", "")
	directory, err := os.Open(l.Mountpoint(made))
	l.Expect(err).NotTo(HaveOccurred())
	defer directory.Close()
	ask := func(request uintptr, answer []byte) error {
		if _, _, errno := unix.Syscall(unix.SYS_IOCTL, directory.Fd(), request, uintptr(unsafe.Pointer(&answer[0]))); errno != 0 {
			return errno
		}
		return nil
	}
	var stat unix.Statfs_t
	l.Expect(unix.Fstatfs(int(directory.Fd()), &stat)).To(Succeed())
	way := f.Proof()
	l.Expect(int64(stat.Type)).To(Equal(way.Magic)) //nolint:unconvert // its size differs between processors
	l.Expect(proof.UUID(directory)).To(Equal(made.Status.Provisioned.UUID))
	own, err := way.UUID(ask)
	l.Expect(err).NotTo(HaveOccurred())
	l.Expect(hex.EncodeToString(own[:16])).To(Equal(uuid), "in its own way")
	answer := make([]byte, generalSize)
	if err := ask(general, answer); err == nil && !way.OwnOnly {
		l.Expect(hex.EncodeToString(answer[1:])).To(Equal(uuid), "in the way of Linux 6.9")
	}
	if way.Folded != nil {
		shown := uint64(uint32(stat.Fsid.Val[1]))<<32 | uint64(uint32(stat.Fsid.Val[0]))
		l.Expect(way.Folded.Fold([16]byte(own))).To(Equal(shown), "in the way of all kernels")
		own[15]++
		l.Expect(way.Folded.Fold([16]byte(own))).NotTo(Equal(shown))
	}
}

// expectOnlyItsOwnUUID expects a daemon to prove the target by its own UUID, and to refuse every other UUID.
func expectOnlyItsOwnUUID(l *provisiontest.Lab, made *v1alpha1.StorageTarget) {
	l.T.Helper()
	owner := spec.Owner{Namespace: made.Namespace, Name: made.Spec.FileSystem.Name, UID: made.Spec.FileSystem.UID}
	of := spec.Target{Name: made.Name, Path: l.Mountpoint(made), UUID: made.Status.Provisioned.UUID}
	l.Expect(proof.Prove(of, owner)).To(Succeed())
	facts, err := proof.Look(of.Path)
	l.Expect(err).NotTo(HaveOccurred())
	l.Expect(facts.FSType).To(BeEquivalentTo(made.Spec.Format.FSType))
	of.UUID = "0a1b2c3d-0000-4000-8000-0000000000bb"
	l.Expect(proof.Prove(of, owner)).To(MatchError(ContainSubstring("another filesystem mounted on it: its UUID is " + made.Status.Provisioned.UUID)))
}

// expectMarkerReadWithoutAWrite reads the marker of a filesystem after a power failure: it was copied while it was mounted and written to,
// with a journal that waits for its replay.
func expectMarkerReadWithoutAWrite(l *provisiontest.Lab, f format.Format, made *v1alpha1.StorageTarget, d *provisiontest.Disk) {
	l.T.Helper()
	for i := range 200 {
		l.Expect(os.WriteFile(filepath.Join(l.Mountpoint(made), "f"+strings.Repeat("x", i)), []byte("dirty"), 0o600)).To(Succeed())
	}
	top, err := os.Open(l.Mountpoint(made))
	l.Expect(err).NotTo(HaveOccurred())
	l.Expect(errors.Join(top.Sync(), top.Close())).To(Succeed())
	crashed := l.Disk("crashed", d.Size)
	l.Must("cp", "--sparse=always", d.File, crashed.File)
	l.Unmount(made) // one filesystem can't be mounted twice
	before := crashed.Content()
	marker, _, err := provision.ReadMarker(crashed.Loop, "", f.Signature())
	l.Expect(err).NotTo(HaveOccurred())
	l.Expect(marker.Target).To(Equal(made.Name))
	l.Expect(marker.UUID).To(Equal(made.Status.Provisioned.UUID))
	l.Expect(crashed.Content()).To(Equal(before))
	crashed.Detach()
}

// expectWiped deletes the target permanently, and expects nothing on its devices.
func expectWiped(l *provisiontest.Lab, made *v1alpha1.StorageTarget, of ...*provisiontest.Disk) {
	l.T.Helper()
	provisiontest.Deleted(made)
	made.Spec.DestroyFor = made.Spec.FileSystem.UID
	l.Expect(l.Pass(made)).To(Succeed())
	c := meta.FindStatusCondition(made.Status.Conditions, v1alpha1.ConditionDestroyed)
	l.Expect(c).NotTo(BeNil())
	l.Expect(string(c.Status)).To(Equal("True"), c.Message)
	for _, d := range of {
		l.Expect(l.Must("wipefs", "--no-act", "--parsable", d.Loop)).To(BeEmpty())
		seen, err := devices.ThisHost().ByID(l.T.Context(), d.ID())
		l.Expect(err).NotTo(HaveOccurred())
		l.Expect(seen.Unusable).To(BeEmpty(), "it is a blank disk")
		l.Expect(seen.Unknown).To(BeEmpty())
	}
}

// TestSomebodysDataIsNotMadeInto has a disk with a foreign filesystem of each format, which a target of each format claims.
func TestSomebodysDataIsNotMadeInto(t *testing.T) {
	const uuid = "0a1b2c3d-1122-4344-9566-778899aabbcc"
	policies := map[string]func(*v1alpha1.StorageTarget){
		"with IfBlank":          func(*v1alpha1.StorageTarget) {},
		"with a wrong approval": provisiontest.Approved("sha256:" + strings.Repeat("0123456789abcdef", 4)),
		"with Never":            func(s *v1alpha1.StorageTarget) { s.Spec.FormatPolicy = v1alpha1.FormatNever },
	}
	for _, theirs := range mountedByTheAgent() {
		t.Run("a target from a disk with "+string(theirs.Name()), func(t *testing.T) {
			l := provisiontest.New(t)
			d := l.Disk("precious", size)
			l.Must(theirs.Make(format.New{Label: "precious", UUID: uuid, Device: d.Loop})...)
			before := d.Content()
			for _, f := range mountedByTheAgent() {
				for policy, set := range policies {
					if f.Name() != theirs.Name() && policy != "with IfBlank" {
						continue
					}
					wanted := l.Target(d, provisiontest.As(f.Name()), set)
					l.Expect(l.Pass(wanted)).To(Succeed())
					l.Stays(wanted, d, before, 0, policy+", for "+string(f.Name()))
					if policy == "with IfBlank" {
						l.Expect(provisiontest.Ready(wanted).Message).To(And(ContainSubstring(theirs.Signature()), ContainSubstring(uuid)))
					}
					if policy == "with a wrong approval" {
						l.Expect(provisiontest.Ready(wanted).Reason).To(Equal(v1alpha1.ReasonApprovalRefused))
						l.Expect(wanted.Status.Plan.Destroys).To(ContainElement(ContainSubstring(uuid)), "the plan names what would be lost")
					}
				}
				if f.Log() != nil {
					blank := l.Disk("data", size)
					asLog := l.Target(blank, provisiontest.WithLog(d), provisiontest.As(f.Name()))
					l.Expect(l.Pass(asLog)).To(Succeed())
					l.Stays(asLog, d, before, 0, "as a log device")
				}
			}
		})
	}
}

// TestAMkfsKilledInItsMiddleEndsTheSame kills only mkfs: the agent clears the disk, and makes the filesystem.
func TestAMkfsKilledInItsMiddleEndsTheSame(t *testing.T) {
	all := mountedByTheAgent()
	moments := []string{"0.002", "0.005", "0.010", "0.020", "0.040"}
	for _, i := range places.Kills.Of(t, len(all)*len(moments)) {
		f, seconds := all[i/len(moments)], moments[i%len(moments)]
		t.Run(string(f.Name())+" after "+seconds+" s", func(t *testing.T) {
			l := provisiontest.New(t)
			d := l.Disk("data", size/2)
			wanted := l.Target(d, provisiontest.As(f.Name()))
			killed := false
			l.Run = func(ctx context.Context, argv []string, keep ...*os.File) ([]byte, error) {
				if strings.HasPrefix(argv[0], "mkfs.") && !killed {
					killed = true
					argv = append([]string{"timeout", "--signal=KILL", seconds}, argv...)
				}
				return provision.Run(ctx, argv, keep...)
			}
			// It may have ended before it was killed.
			if err := l.Pass(wanted); err != nil {
				l.Expect(provisiontest.Ready(wanted).Reason).To(Equal(v1alpha1.ReasonProvisioningFailed), err.Error())
				l.Expect(l.Pass(wanted)).To(Succeed())
			}
			l.Expect(killed).To(BeTrue())
			l.ExpectProven(wanted, d)
		})
	}
}

var errKilled = errors.New("the agent was killed")

// TestTheLeftoversOfAKilledMkfsAreUnfinishedAndNotATarget has a node that loses power when everything of a filesystem is on the disk except
// its superblock, which mkfs completes last. Nothing proves then that the data came from mkfs.
func TestTheLeftoversOfAKilledMkfsAreUnfinishedAndNotATarget(t *testing.T) {
	for _, f := range mountedByTheAgent() {
		t.Run(string(f.Name()), func(t *testing.T) {
			l := provisiontest.New(t)
			d := l.Disk("data", size)
			wanted := l.Target(d, provisiontest.As(f.Name()))
			dead := false // and does nothing more, not even clear the disk
			agent := l.Agent(func(step string, done bool) error {
				if step == "MakeFileSystem" && done {
					d.WriteAt(0, make([]byte, 128<<10)) // the superblock of btrfs has the highest offset, 64 KiB
					dead = true
				}
				if dead {
					return errKilled
				}
				return nil
			})
			l.Expect(agent.Pass(t.Context(), wanted, l.Record)).To(MatchError(errKilled))
			l.Expect(l.Made).To(Equal(1))
			begun := wanted.Status.Provisioned.DeepCopy()
			l.Expect(begun.Finished).To(BeNil())
			before := d.Content()
			l.Expect(l.Pass(wanted)).To(Succeed())
			l.Expect(provisiontest.Ready(wanted).Reason).To(Equal(v1alpha1.ReasonDeviceRefused))
			l.Expect(provisiontest.Ready(wanted).Message).To(And(ContainSubstring("was begun"), ContainSubstring("mkfs was interrupted")))
			l.Expect(wanted.Status.Provisioned).To(Equal(begun))
			l.Expect(d.Content()).To(Equal(before))
			l.Expect(filepath.Glob(l.Mountpoint(wanted) + "/*")).To(BeEmpty())
			l.Expect(l.Made).To(Equal(1))

			wanted.Spec.FormatPolicy, wanted.Spec.ApprovedPlan = v1alpha1.FormatApproved, wanted.Status.Plan.Hash
			l.Expect(l.Pass(wanted)).To(Succeed())
			l.ExpectProven(wanted, d)
			l.Expect(l.Made).To(Equal(2), "a person has approved that it is lost")
		})
	}
}
