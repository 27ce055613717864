//go:build disks

package provision_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	"golang.org/x/sys/unix"

	"parallelfs.dev/operator/api/v1alpha1"
	"parallelfs.dev/operator/internal/node/provision"
	"parallelfs.dev/operator/internal/plan"
)

func TestABlankDiskBecomesATarget(t *testing.T) {
	cases := map[string]struct {
		format v1alpha1.FormatSpec
		log    bool
		// tool shows the parameters of the filesystem, and the patterns are those that were asked for.
		tool, patterns, mount []string
	}{
		"ext4 with options of mkfs and mount": {
			format: v1alpha1.FormatSpec{FSType: v1alpha1.Ext4, MkfsOptions: []v1alpha1.MkfsOption{"-i", "2048", "-I", "512"},
				MountOptions: []v1alpha1.LocalMountOption{"noatime", "nodiratime", "nobarrier", "commit=30"}},
			tool: []string{"dumpe2fs", "-h"}, patterns: []string{`Inode size:\s+512`, `Inode count:\s+32\d\d\d\d`},
			mount: []string{"noatime", "nodiratime", "nobarrier", "commit=30"},
		},
		"xfs with options of mkfs and mount": {
			format: v1alpha1.FormatSpec{FSType: v1alpha1.XFS, MkfsOptions: []v1alpha1.MkfsOption{"-d", "su=128k,sw=8", "-i", "size=1024"},
				MountOptions: []v1alpha1.LocalMountOption{"noatime", "inode64", "logbufs=8", "logbsize=256k", "largeio", "swalloc", "allocsize=131072k"}},
			tool: []string{"xfs_info"}, patterns: []string{`isize=1024`, `sunit=32\s+swidth=256`},
			mount: []string{"noatime", "inode64", "logbufs=8", "logbsize=256k", "largeio", "swalloc", "allocsize=131072k"},
		},
		"btrfs with options of mkfs and mount": {
			format: v1alpha1.FormatSpec{FSType: v1alpha1.Btrfs, MkfsOptions: []v1alpha1.MkfsOption{"--metadata", "single", "--nodesize", "32k"},
				MountOptions: []v1alpha1.LocalMountOption{"noatime", "compress=zstd:3"}},
			tool: []string{"btrfs", "inspect-internal", "dump-super"}, patterns: []string{`nodesize\s+32768`},
			mount: []string{"noatime", "compress=zstd:3"},
		},
		"xfs with an external log": {
			format: v1alpha1.FormatSpec{FSType: v1alpha1.XFS, MountOptions: []v1alpha1.LocalMountOption{"noatime"}}, log: true,
			tool: []string{"xfs_db", "-r", "-c", "sb 0", "-c", "print logstart"}, patterns: []string{`logstart = 0`}, mount: []string{"noatime", "logdev=/dev/loop"},
		},
		"xfs without any option": {
			format: v1alpha1.FormatSpec{FSType: v1alpha1.XFS}, tool: []string{"xfs_info"}, patterns: []string{`isize=512`}, mount: []string{"rw"},
		},
	}
	for sentence, c := range cases {
		t.Run(sentence, func(t *testing.T) {
			l := newLab(t)
			d := l.disk("data", 640*mebi)
			target := l.target(d, func(s *v1alpha1.StorageTarget) { s.Spec.Format = c.format })
			var log *disk
			if c.log {
				log = l.disk("log", 80*mebi)
				withLog(log)(target)
			}
			l.Expect(l.pass(target)).To(Succeed())
			l.expectProven(target, d)
			l.Expect(l.made).To(Equal(1))
			shown := l.must(append(c.tool, d.loop)...)
			for _, pattern := range c.patterns {
				l.Expect(shown).To(MatchRegexp(pattern))
			}
			options := l.must("findmnt", "--noheadings", "--output", "OPTIONS", "--mountpoint", l.mountpoint(target))
			for _, option := range c.mount {
				l.Expect(options).To(ContainSubstring(option))
			}
			if log != nil {
				l.Expect(l.must("blkid", "-p", "-o", "value", "-s", "LOGUUID", log.loop)).To(Equal(target.Status.Provisioned.UUID))
			}
			before := target.DeepCopy()
			l.Expect(l.pass(target)).To(Succeed())
			l.Expect(target.Status).To(Equal(before.Status), "a second pass changes nothing")
			l.Expect(l.made).To(Equal(1))
		})
	}
}

func TestAnOptionThatTheKernelRefusesIsFoundBeforeTheFirstMkfs(t *testing.T) {
	l := newLab(t)
	d := l.disk("data", 320*mebi)
	before := d.content()
	target := l.target(d, as(v1alpha1.XFS), func(s *v1alpha1.StorageTarget) {
		s.Spec.Format.MountOptions = []v1alpha1.LocalMountOption{"noatime", "nobarrier"}
	})
	l.Expect(l.pass(target)).To(Succeed())
	l.Expect(ready(target).Reason).To(Equal(v1alpha1.ReasonDeviceRefused))
	l.Expect(ready(target).Message).To(ContainSubstring(`"nobarrier"`))
	l.Expect(ready(target).Message).To(ContainSubstring("Unknown parameter 'nobarrier'"))
	l.Expect(ready(target).Message).NotTo(ContainSubstring("noatime"))
	l.Expect(l.made).To(BeZero())
	l.Expect(d.content()).To(Equal(before))
}

var errKilled = errors.New("the agent was killed")

// moments are all moments of a pass at which an agent can be killed.
func moments(l *lab, target *v1alpha1.StorageTarget) []string {
	l.t.Helper()
	var all []string
	agent := l.agent(func(step string, done bool) error {
		all = append(all, moment(step, done))
		return nil
	})
	l.Expect(agent.Pass(l.t.Context(), target, l.record)).To(Succeed())
	return all
}

func moment(step string, done bool) string {
	// The same disk has another kernel name each time.
	if kind, _, ok := strings.Cut(step, " "); ok {
		step = kind
	}
	if done {
		return "after " + step
	}
	return "before " + step
}

// TestAnAgentKilledAtAnyMomentEndsTheSame kills the agent at each of the moments of provisioning, and starts a new one that
// knows nothing but the recorded status and the disk.
func TestAnAgentKilledAtAnyMomentEndsTheSame(t *testing.T) {
	kinds := map[string]func(l *lab) (*v1alpha1.StorageTarget, *disk){
		"a blank disk becomes an ext4": func(l *lab) (*v1alpha1.StorageTarget, *disk) {
			d := l.disk("data", 64*mebi)
			return l.target(d), d
		},
		"a blank disk becomes an XFS with an external log": func(l *lab) (*v1alpha1.StorageTarget, *disk) {
			d := l.disk("data", 320*mebi)
			return l.target(d, withLog(l.disk("log", 80*mebi))), d
		},
		"a disk that held an XFS becomes a btrfs by an approval": func(l *lab) (*v1alpha1.StorageTarget, *disk) {
			d := l.disk("data", 320*mebi)
			l.must("mkfs.xfs", "-q", d.loop)
			target := l.target(d, as(v1alpha1.Btrfs), approved(""))
			l.Expect(l.pass(target)).To(Succeed())
			l.Expect(ready(target).Reason).To(Equal(v1alpha1.ReasonAwaitingApproval), ready(target).Message)
			target.Spec.ApprovedPlan = target.Status.Plan.Hash
			return target, d
		},
	}
	for kind, prepare := range kinds {
		t.Run(kind, func(t *testing.T) {
			l := newLab(t)
			target, _ := prepare(l)
			all := moments(l, target)
			t.Logf("%d moments: %s", len(all), strings.Join(all, ", "))
			for i, at := range all {
				t.Run("killed "+at, func(t *testing.T) {
					l := newLab(t)
					target, d := prepare(l)
					calls := 0
					agent := l.agent(func(step string, done bool) error {
						if calls++; calls == i+1 {
							l.Expect(moment(step, done)).To(Equal(at))
							return errKilled
						}
						return nil
					})
					// Nothing is recorded of a failure: the agent is gone.
					err := agent.Pass(t.Context(), target, l.record)
					l.Expect(err).To(MatchError(errKilled))
					if l.made > 0 {
						l.Expect(target.Status.Provisioned).NotTo(BeNil(), "the intent was recorded before the first byte")
					}
					before := l.made
					l.Expect(l.pass(target)).To(Succeed())
					if at == "after Wipe" || at == "before Zero" {
						// What wipefs has left has no signature any more: nothing proves that it is what was given up.
						l.Expect(ready(target).Reason).To(Equal(v1alpha1.ReasonApprovalRefused), ready(target).Message)
						l.Expect(l.made).To(Equal(before))
						target.Spec.ApprovedPlan = target.Status.Plan.Hash
						l.Expect(l.pass(target)).To(Succeed())
					}
					l.expectProven(target, d)
					l.Expect(l.made-before).To(BeNumerically("<=", 1), "one mkfs for each success")
					l.Expect(l.made).To(BeNumerically(">=", 1))
					if strings.Contains(at, "Mark") || strings.Contains(at, "Adopt") || at == "after Mount" || strings.Contains(at, "VerifyMount") {
						l.Expect(l.made).To(Equal(1), "what was mounted is not formatted again")
					}
				})
			}
		})
	}
}

func TestAnAgentKilledInTheMiddleOfMkfsEndsTheSame(t *testing.T) {
	for _, fsType := range []v1alpha1.FSType{v1alpha1.Ext4, v1alpha1.XFS, v1alpha1.Btrfs} {
		for _, signal := range []string{"2", "5", "10", "20", "40"} {
			t.Run(string(fsType)+" after "+signal+" ms", func(t *testing.T) {
				l := newLab(t)
				d := l.disk("data", 320*mebi)
				target := l.target(d, as(fsType))
				killed := false
				l.run = func(ctx context.Context, argv []string, keep ...*os.File) ([]byte, error) {
					if strings.HasPrefix(argv[0], "mkfs.") && !killed {
						killed = true
						argv = append([]string{"timeout", "--signal=KILL", "0.0" + strings.Repeat("0", 2-len(signal)) + signal}, argv...)
					}
					return provision.Run(ctx, argv, keep...)
				}
				// It may have ended before it was killed.
				if err := l.pass(target); err != nil {
					l.Expect(ready(target).Reason).To(Equal(v1alpha1.ReasonProvisioningFailed), err.Error())
					l.Expect(l.pass(target)).To(Succeed())
				}
				l.Expect(killed).To(BeTrue())
				l.expectProven(target, d)
			})
		}
	}
}

// TestWhatSomebodyElseHasWrittenSinceIsNotFormatted has a mkfs that fails, somebody who uses the disk meanwhile, and options that are
// corrected; and a record of before the end, as after etcd was restored, of a disk whose marker can't be read any more.
func TestWhatSomebodyElseHasWrittenSinceIsNotFormatted(t *testing.T) {
	t.Run("raw data on a disk whose mkfs has failed", func(t *testing.T) {
		l := newLab(t)
		d := l.disk("data", 64*mebi)
		target := l.target(d, func(t *v1alpha1.StorageTarget) { t.Spec.Format.MkfsOptions = []v1alpha1.MkfsOption{"-b", "77"} })
		l.Expect(l.pass(target)).NotTo(Succeed())
		l.Expect(ready(target).Reason).To(Equal(v1alpha1.ReasonProvisioningFailed), ready(target).Message)
		d.writeAt(0, []byte("the rows of a raw database"))
		before := d.content()
		target.Spec.Format.MkfsOptions = nil
		l.Expect(l.pass(target)).To(Succeed())
		t.Log(ready(target).Message)
		l.Expect(ready(target).Reason).To(Equal(v1alpha1.ReasonDeviceRefused))
		l.Expect(d.content()).To(Equal(before))
		l.Expect(l.made).To(BeZero())
	})
	t.Run("data of a target whose record is older than its marker, which is damaged", func(t *testing.T) {
		l := newLab(t)
		d := l.disk("data", 64*mebi)
		target := l.target(d)
		l.Expect(l.pass(target)).To(Succeed())
		l.Expect(os.WriteFile(filepath.Join(l.mountpoint(target), "chunk"), []byte("data"), 0o600)).To(Succeed())
		l.Expect(os.WriteFile(filepath.Join(l.mountpoint(target), ".parallelfs-target.json"), []byte("{"), 0o600)).To(Succeed())
		l.unmount(target)
		target.Status.Provisioned.Finished = nil
		_ = l.pass(target)
		t.Log(ready(target).Reason, ready(target).Message)
		l.Expect(l.made).To(Equal(1))
		at := filepath.Join(l.root, "look")
		l.Expect(os.Mkdir(at, 0o755)).To(Succeed())
		for unix.Unmount(l.mountpoint(target), 0) == nil {
		}
		l.Expect(unix.Mount(d.loop, at, "ext4", unix.MS_RDONLY, "")).To(Succeed())
		defer func() { l.Expect(unix.Unmount(at, 0)).To(Succeed()) }()
		l.Expect(os.ReadFile(filepath.Join(at, "chunk"))).To(BeEquivalentTo("data"))
	})
}

// TestAFullDiskIsTakenUpAgain has a FileSystem that was deleted and made again over a disk without a free block.
func TestAFullDiskIsTakenUpAgain(t *testing.T) {
	for _, fsType := range []v1alpha1.FSType{v1alpha1.Ext4, v1alpha1.XFS} {
		t.Run(string(fsType), func(t *testing.T) {
			l := newLab(t)
			d := l.disk("data", 320*mebi)
			target := l.target(d, as(fsType))
			l.Expect(l.pass(target)).To(Succeed())
			l.fill(filepath.Join(l.mountpoint(target), "chunk"))
			again := l.target(d, as(fsType), func(t *v1alpha1.StorageTarget) { t.Spec.FileSystem.UID = "99999999-2222-3333-4444-555555555555" })
			again.Status = target.Status
			l.Expect(l.pass(again)).To(Succeed())
			l.expectProven(again, d)
			l.Expect(l.made).To(Equal(1))
		})
	}
}

// fill leaves a filesystem without a free block: it fills it with a file, and what is left with directories, each of which takes a block.
func (l *lab) fill(path string) {
	l.t.Helper()
	for size := 16 * mebi; size >= 512; size /= 2 {
		file, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o600)
		l.Expect(err).NotTo(HaveOccurred())
		for {
			if _, err := file.Write(make([]byte, size)); err != nil {
				break
			}
		}
		_ = file.Sync() // the space is used up
		l.Expect(file.Close()).To(Succeed())
	}
	for i := 0; ; i++ {
		small := fmt.Sprintf("%s-%d", path, i)
		if err := os.WriteFile(small, make([]byte, 512), 0o600); err != nil {
			return
		}
	}
}

func TestAfterARestartOfTheNodeTargetsAreMountedUnderWhateverNameTheyHave(t *testing.T) {
	l := newLab(t)
	first, second := l.disk("first", 64*mebi), l.disk("second", 64*mebi)
	a, b := l.target(first), l.target(second)
	l.Expect(l.pass(a)).To(Succeed())
	l.Expect(l.pass(b)).To(Succeed())
	wasFirst, wasSecond := first.loop, second.loop
	l.unmount(a)
	l.unmount(b)
	first.detach()
	second.detach()
	l.must("losetup", wasFirst, second.file)
	l.must("losetup", wasSecond, first.file)
	first.loop, second.loop = wasSecond, wasFirst
	for _, d := range []*disk{first, second} {
		l.Expect(os.Symlink("../../"+d.kernelName(), d.link)).To(Succeed())
	}
	l.Expect(l.pass(a)).To(Succeed())
	l.Expect(l.pass(b)).To(Succeed())
	l.expectProven(a, first)
	l.expectProven(b, second)
	l.Expect(l.made).To(Equal(2))
}

// TestADiskThatIsOpenWhileItsMarkerIsReadIsNotOfferedForFormatting has a disk whose FileSystem was deleted and made again, and a program
// that opens it exclusively just after the agent has looked whether it is free.
func TestADiskThatIsOpenWhileItsMarkerIsReadIsNotOfferedForFormatting(t *testing.T) {
	for sentence, c := range map[string]struct {
		open   time.Duration
		expect func(l *lab, target *v1alpha1.StorageTarget, d *disk)
	}{
		"for a moment: it is adopted": {100 * time.Millisecond, func(l *lab, target *v1alpha1.StorageTarget, d *disk) { l.expectProven(target, d) }},
		"for long: it is refused, and adopted when it is free": {time.Hour, func(l *lab, target *v1alpha1.StorageTarget, d *disk) {
			l.Expect(ready(target).Reason).To(Equal(v1alpha1.ReasonDeviceRefused), ready(target).Message)
			l.Expect(ready(target).Message).To(And(ContainSubstring("is in use"), ContainSubstring("its marker could not be read"), Not(ContainSubstring("approve"))))
			l.Expect(l.pass(target)).To(Succeed())
			l.expectProven(target, d)
		}},
	} {
		t.Run(sentence, func(t *testing.T) {
			l := newLab(t)
			d := l.disk("data", 64*mebi)
			earlier := l.target(d)
			l.Expect(l.pass(earlier)).To(Succeed())
			l.unmount(earlier)
			agent := l.agent(nil)
			find := agent.Look
			var closed chan struct{}
			agent.Look = func(ctx context.Context, id v1alpha1.DeviceID) (plan.Facts, error) {
				facts, err := find(ctx, id)
				if closed == nil {
					closed = make(chan struct{})
					device, err := os.OpenFile(d.loop, os.O_RDONLY|unix.O_EXCL, 0)
					l.Expect(err).NotTo(HaveOccurred())
					go func() {
						defer close(closed)
						defer device.Close()
						select {
						case <-time.After(c.open):
						case <-ctx.Done():
						}
					}()
				}
				return facts, err
			}
			again := l.target(d, approved(""))
			ctx, cancel := context.WithCancel(t.Context())
			// The program ends with the pass.
			err := agent.Pass(ctx, again, l.record)
			cancel()
			<-closed
			l.Expect(err).NotTo(HaveOccurred())
			c.expect(l, again, d)
			l.Expect(l.made).To(Equal(1))
		})
	}
}

func TestWhatIsNotTheTargetsDiskIsNeverFormattedForIt(t *testing.T) {
	cases := map[string]struct {
		exchange func(l *lab, d *disk)
		reason   string
	}{
		"a blank disk in its place": {
			exchange: func(l *lab, d *disk) {
				d.detach()
				l.Expect(os.Remove(d.file)).To(Succeed())
				l.Expect(os.WriteFile(d.file, nil, 0o600)).To(Succeed())
				l.Expect(os.Truncate(d.file, d.size)).To(Succeed())
				d.attach()
			}, reason: v1alpha1.ReasonTargetMissing,
		},
		"a foreign filesystem in its place": {
			exchange: func(l *lab, d *disk) { l.must("mkfs.ext4", "-q", "-F", d.loop) }, reason: v1alpha1.ReasonTargetMissing,
		},
		"no disk at all": {
			exchange: func(_ *lab, d *disk) { d.detach() }, reason: v1alpha1.ReasonTargetMissing,
		},
		"its own disk with a corrupt superblock": {
			// The magic, UUID and label stay; the number of blocks is nonsense.
			exchange: func(_ *lab, d *disk) { d.writeAt(1024+24, []byte{0xff, 0xff, 0xff, 0x7f}) }, reason: v1alpha1.ReasonMountFailed,
		},
	}
	for sentence, c := range cases {
		t.Run(sentence, func(t *testing.T) {
			l := newLab(t)
			d := l.disk("data", 64*mebi)
			target := l.target(d)
			l.Expect(l.pass(target)).To(Succeed())
			l.unmount(target)
			c.exchange(l, d)
			before := d.content()
			for range 2 {
				_ = l.pass(target) // a mount that fails is an error of the pass as well
				l.Expect(ready(target).Status).To(BeEquivalentTo("False"))
				l.Expect(ready(target).Reason).To(Equal(c.reason), ready(target).Message)
			}
			l.Expect(l.made).To(Equal(1))
			l.Expect(d.content()).To(Equal(before))
			entries, err := os.ReadDir(l.mountpoint(target))
			l.Expect(err).NotTo(HaveOccurred())
			l.Expect(entries).To(BeEmpty())
			l.Expect(os.WriteFile(filepath.Join(l.mountpoint(target), "x"), nil, 0o600)).NotTo(Succeed(), "the mountpoint is immutable")
		})
	}
}
