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
	"parallelfs.dev/operator/internal/node/directory"
	"parallelfs.dev/operator/internal/node/durable"
	"parallelfs.dev/operator/internal/node/provision/provisiontest"
	"parallelfs.dev/operator/internal/node/spec"
	"parallelfs.dev/operator/internal/plan"
	"parallelfs.dev/operator/test/places"
)

func TestAnOptionThatTheKernelRefusesIsFoundBeforeTheFirstMkfs(t *testing.T) {
	l := provisiontest.New(t)
	d := l.Disk("data", 320*provisiontest.Mebi)
	before := d.Content()
	target := l.Target(d, provisiontest.As(v1alpha1.XFS), func(s *v1alpha1.StorageTarget) {
		s.Spec.Format.MountOptions = []v1alpha1.LocalMountOption{"noatime", "nobarrier"}
	})
	l.Expect(l.Pass(target)).To(Succeed())
	l.Expect(provisiontest.Ready(target).Reason).To(Equal(v1alpha1.ReasonDeviceRefused))
	l.Expect(provisiontest.Ready(target).Message).To(ContainSubstring(`"nobarrier"`))
	l.Expect(provisiontest.Ready(target).Message).To(ContainSubstring("Unknown parameter 'nobarrier'"))
	l.Expect(provisiontest.Ready(target).Message).NotTo(ContainSubstring("noatime"))
	l.Expect(l.Made).To(BeZero())
	l.Expect(d.Content()).To(Equal(before))
}

var errKilled = errors.New("the agent was killed")

// moments are all moments of a pass at which an agent can be killed.
func moments(l *provisiontest.Lab, target *v1alpha1.StorageTarget) []string {
	l.T.Helper()
	var all []string
	agent := l.Agent(func(step string, done bool) error {
		all = append(all, moment(step, done))
		return nil
	})
	l.Expect(agent.Pass(l.T.Context(), target, l.Record)).To(Succeed())
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

// TestAnAgentKilledAtAnyMomentEndsTheSame kills the agent at moments of provisioning, and starts a new one that has only the recorded
// status and the disk.
func TestAnAgentKilledAtAnyMomentEndsTheSame(t *testing.T) {
	kinds := map[string]func(l *provisiontest.Lab) (*v1alpha1.StorageTarget, *provisiontest.Disk){
		"a blank disk becomes an ext4": func(l *provisiontest.Lab) (*v1alpha1.StorageTarget, *provisiontest.Disk) {
			d := l.Disk("data", 64*provisiontest.Mebi)
			return l.Target(d), d
		},
		"a blank disk becomes an XFS with an external log": func(l *provisiontest.Lab) (*v1alpha1.StorageTarget, *provisiontest.Disk) {
			d := l.Disk("data", 320*provisiontest.Mebi)
			return l.Target(d, provisiontest.WithLog(l.Disk("log", 80*provisiontest.Mebi))), d
		},
		"a disk that held an XFS becomes a btrfs by an approval": func(l *provisiontest.Lab) (*v1alpha1.StorageTarget, *provisiontest.Disk) {
			d := l.Disk("data", 320*provisiontest.Mebi)
			l.Must("mkfs.xfs", "-q", d.Loop)
			target := l.Target(d, provisiontest.As(v1alpha1.Btrfs), provisiontest.Approved(""))
			l.Expect(l.Pass(target)).To(Succeed())
			l.Expect(provisiontest.Ready(target).Reason).To(Equal(v1alpha1.ReasonAwaitingApproval), provisiontest.Ready(target).Message)
			target.Spec.ApprovedPlan = target.Status.Plan.Hash
			return target, d
		},
	}
	for kind, prepare := range kinds {
		t.Run(kind, func(t *testing.T) {
			l := provisiontest.New(t)
			target, _ := prepare(l)
			all := moments(l, target)
			t.Logf("%d moments: %s", len(all), strings.Join(all, ", "))
			for _, i := range places.Kills.Of(t, len(all)) {
				at := all[i]
				t.Run("killed "+at, func(t *testing.T) {
					l := provisiontest.New(t)
					target, d := prepare(l)
					calls := 0
					agent := l.Agent(func(step string, done bool) error {
						if calls++; calls == i+1 {
							l.Expect(moment(step, done)).To(Equal(at))
						}
						if calls > i {
							return errKilled // it does nothing more, not even clean up
						}
						return nil
					})
					// Nothing is recorded of a failure: the agent is gone.
					err := agent.Pass(t.Context(), target, l.Record)
					l.Expect(err).To(MatchError(errKilled))
					if l.Made > 0 {
						l.Expect(target.Status.Provisioned).NotTo(BeNil(), "the intent was recorded before the first byte")
					}
					before := l.Made
					l.Expect(l.Pass(target)).To(Succeed())
					if at == "after Wipe" || at == "before Zero" {
						// After wipefs, the disk has no signature: nothing proves that it is the disk whose data may be destroyed.
						l.Expect(provisiontest.Ready(target).Reason).To(Equal(v1alpha1.ReasonApprovalRefused), provisiontest.Ready(target).Message)
						l.Expect(l.Made).To(Equal(before))
						target.Spec.ApprovedPlan = target.Status.Plan.Hash
						l.Expect(l.Pass(target)).To(Succeed())
					}
					l.ExpectProven(target, d)
					l.Expect(l.Made-before).To(BeNumerically("<=", 1), "one mkfs for each success")
					l.Expect(l.Made).To(BeNumerically(">=", 1))
					if strings.Contains(at, "Mark") || strings.Contains(at, "Adopt") || at == "after Mount" || strings.Contains(at, "VerifyMount") {
						l.Expect(l.Made).To(Equal(1), "what was mounted is not formatted again")
					}
				})
			}
		})
	}
}

// TestADiskThatWasWrittenMeanwhileIsNotFormatted simulates a mkfs that fails, a program that uses the disk meanwhile, and corrected
// options. It also simulates an old record, as after a restore of etcd, of a disk whose marker can no longer be read.
func TestADiskThatWasWrittenMeanwhileIsNotFormatted(t *testing.T) {
	t.Run("raw data on a disk whose mkfs has failed", func(t *testing.T) {
		l := provisiontest.New(t)
		d := l.Disk("data", 64*provisiontest.Mebi)
		target := l.Target(d, func(t *v1alpha1.StorageTarget) { t.Spec.Format.MkfsOptions = []v1alpha1.MkfsOption{"-b", "77"} })
		l.Expect(l.Pass(target)).NotTo(Succeed())
		l.Expect(provisiontest.Ready(target).Reason).To(Equal(v1alpha1.ReasonProvisioningFailed), provisiontest.Ready(target).Message)
		d.WriteAt(0, []byte("the rows of a raw database"))
		before := d.Content()
		target.Spec.Format.MkfsOptions = nil
		l.Expect(l.Pass(target)).To(Succeed())
		t.Log(provisiontest.Ready(target).Message)
		l.Expect(provisiontest.Ready(target).Reason).To(Equal(v1alpha1.ReasonDeviceRefused))
		l.Expect(d.Content()).To(Equal(before))
		l.Expect(l.Made).To(BeZero())
	})
	t.Run("data of a target whose record is older than its marker, which is damaged", func(t *testing.T) {
		l := provisiontest.New(t)
		d := l.Disk("data", 64*provisiontest.Mebi)
		target := l.Target(d)
		l.Expect(l.Pass(target)).To(Succeed())
		l.Expect(os.WriteFile(filepath.Join(l.Mountpoint(target), "chunk"), []byte("data"), 0o600)).To(Succeed())
		l.Expect(os.WriteFile(filepath.Join(l.Mountpoint(target), ".parallelfs-target.json"), []byte("{"), 0o600)).To(Succeed())
		l.Unmount(target)
		target.Status.Provisioned.Finished = nil
		_ = l.Pass(target)
		t.Log(provisiontest.Ready(target).Reason, provisiontest.Ready(target).Message)
		l.Expect(l.Made).To(Equal(1))
		at := filepath.Join(l.Root, "look")
		l.Expect(os.Mkdir(at, 0o755)).To(Succeed())
		for unix.Unmount(l.Mountpoint(target), 0) == nil {
		}
		l.Expect(unix.Mount(d.Loop, at, "ext4", unix.MS_RDONLY, "")).To(Succeed())
		defer func() { l.Expect(unix.Unmount(at, 0)).To(Succeed()) }()
		l.Expect(os.ReadFile(filepath.Join(at, "chunk"))).To(BeEquivalentTo("data"))
	})
}

// TestAFullDiskIsTakenUpAgain has a FileSystem that was deleted and made again over a disk without a free block.
func TestAFullDiskIsTakenUpAgain(t *testing.T) {
	for _, fsType := range []v1alpha1.FSType{v1alpha1.Ext4, v1alpha1.XFS} {
		t.Run(string(fsType), func(t *testing.T) {
			l := provisiontest.New(t)
			d := l.Disk("data", 320*provisiontest.Mebi)
			target := l.Target(d, provisiontest.As(fsType))
			l.Expect(l.Pass(target)).To(Succeed())
			// The server's own directory on it, as `node run` proves it.
			chunks := spec.Directory{Path: filepath.Join(l.Mountpoint(target), "chunkserver"), Data: "data"}
			unset := func(string) (string, bool) { return "", false }
			l.Expect(server(l, target).Prove(t.Context(), chunks, unset)).To(Equal(directory.Initialize))
			fill(l, filepath.Join(chunks.Path, chunks.Data, "chunk"))
			full := filepath.Join(chunks.Path, "more")
			l.Expect(os.WriteFile(full, make([]byte, 512), 0o600)).To(MatchError(unix.ENOSPC), "there is no room for a second file")
			_ = os.Remove(full) // its name may be there
			again := l.Target(d, provisiontest.As(fsType), func(t *v1alpha1.StorageTarget) { t.Spec.FileSystem.UID = "99999999-2222-3333-4444-555555555555" })
			again.Status = target.Status
			l.Expect(l.Pass(again)).To(Succeed())
			l.ExpectProven(again, d)
			l.Expect(l.Made).To(Equal(1))
			l.Expect(server(l, again).Prove(t.Context(), chunks, unset)).To(Equal(directory.Adopt))
			l.Expect(os.ReadFile(filepath.Join(chunks.Path, spec.MarkerFile))).To(ContainSubstring(`"uid": "` + again.Spec.FileSystem.UID + `"`))
			l.Expect(server(l, again).Prove(t.Context(), chunks, unset)).To(Equal(directory.Use))
		})
	}
}

// server proves directories as the chunkserver of a target's FileSystem.
func server(l *provisiontest.Lab, t *v1alpha1.StorageTarget) directory.Prover {
	return directory.Prover{
		Owner: spec.Owner{Namespace: t.Namespace, Name: t.Spec.FileSystem.Name, UID: t.Spec.FileSystem.UID}, Component: "chunkserver-ssd",
		Ledger: filepath.Join(l.Root, "ledger-chunkserver-ssd.json"), Writer: durable.Writer{Chown: os.Chown}, Now: time.Now,
	}
}

// fill leaves a filesystem without a free block: it fills it with a file, and what is left with directories, each of which takes a block.
func fill(l *provisiontest.Lab, path string) {
	l.T.Helper()
	for size := 16 * provisiontest.Mebi; size >= 512; size /= 2 {
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
	l := provisiontest.New(t)
	first, second := l.Disk("first", 64*provisiontest.Mebi), l.Disk("second", 64*provisiontest.Mebi)
	a, b := l.Target(first), l.Target(second)
	l.Expect(l.Pass(a)).To(Succeed())
	l.Expect(l.Pass(b)).To(Succeed())
	wasFirst, wasSecond := first.Loop, second.Loop
	l.Unmount(a)
	l.Unmount(b)
	first.Detach()
	second.Detach()
	l.Must("losetup", wasFirst, second.File)
	l.Must("losetup", wasSecond, first.File)
	first.Loop, second.Loop = wasSecond, wasFirst
	for _, d := range []*provisiontest.Disk{first, second} {
		l.Expect(os.Symlink("../../"+d.KernelName(), d.Link)).To(Succeed())
	}
	l.Expect(l.Pass(a)).To(Succeed())
	l.Expect(l.Pass(b)).To(Succeed())
	l.ExpectProven(a, first)
	l.ExpectProven(b, second)
	l.Expect(l.Made).To(Equal(2))
}

// TestADiskThatIsOpenWhileItsMarkerIsReadIsNotOfferedForFormatting has a disk whose FileSystem was deleted and made again, and a program
// that opens it exclusively just after the agent has looked whether it is free.
func TestADiskThatIsOpenWhileItsMarkerIsReadIsNotOfferedForFormatting(t *testing.T) {
	for sentence, c := range map[string]struct {
		open   time.Duration
		expect func(l *provisiontest.Lab, target *v1alpha1.StorageTarget, d *provisiontest.Disk)
	}{
		"for a moment: it is adopted": {100 * time.Millisecond, func(l *provisiontest.Lab, target *v1alpha1.StorageTarget, d *provisiontest.Disk) {
			l.ExpectProven(target, d)
		}},
		"for long: it is refused, and adopted when it is free": {time.Hour, func(l *provisiontest.Lab, target *v1alpha1.StorageTarget, d *provisiontest.Disk) {
			l.Expect(provisiontest.Ready(target).Reason).To(Equal(v1alpha1.ReasonDeviceRefused), provisiontest.Ready(target).Message)
			l.Expect(provisiontest.Ready(target).Message).To(And(ContainSubstring("is in use"), ContainSubstring("its marker could not be read"), Not(ContainSubstring("approve"))))
			l.Expect(l.Pass(target)).To(Succeed())
			l.ExpectProven(target, d)
		}},
	} {
		t.Run(sentence, func(t *testing.T) {
			l := provisiontest.New(t)
			d := l.Disk("data", 64*provisiontest.Mebi)
			earlier := l.Target(d)
			l.Expect(l.Pass(earlier)).To(Succeed())
			l.Unmount(earlier)
			agent := l.Agent(nil)
			find := agent.Look
			var closed chan struct{}
			agent.Look = func(ctx context.Context, id v1alpha1.DeviceIdentity) (plan.Facts, error) {
				facts, err := find(ctx, id)
				if closed == nil {
					closed = make(chan struct{})
					device, err := os.OpenFile(d.Loop, os.O_RDONLY|unix.O_EXCL, 0)
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
			again := l.Target(d, provisiontest.Approved(""))
			ctx, cancel := context.WithCancel(t.Context())
			// The program ends with the pass.
			err := agent.Pass(ctx, again, l.Record)
			cancel()
			<-closed
			l.Expect(err).NotTo(HaveOccurred())
			c.expect(l, again, d)
			l.Expect(l.Made).To(Equal(1))
		})
	}
}

func TestAnotherDiskIsNeverFormattedForATarget(t *testing.T) {
	cases := map[string]struct {
		exchange func(l *provisiontest.Lab, d *provisiontest.Disk)
		reason   string
	}{
		"a blank disk in its place": {
			exchange: func(l *provisiontest.Lab, d *provisiontest.Disk) {
				d.Detach()
				l.Expect(os.Remove(d.File)).To(Succeed())
				l.Expect(os.WriteFile(d.File, nil, 0o600)).To(Succeed())
				l.Expect(os.Truncate(d.File, d.Size)).To(Succeed())
				d.Attach()
			}, reason: v1alpha1.ReasonTargetMissing,
		},
		"a foreign filesystem in its place": {
			exchange: func(l *provisiontest.Lab, d *provisiontest.Disk) { l.Must("mkfs.ext4", "-q", "-F", d.Loop) }, reason: v1alpha1.ReasonTargetMissing,
		},
		"no disk at all": {
			exchange: func(_ *provisiontest.Lab, d *provisiontest.Disk) { d.Detach() }, reason: v1alpha1.ReasonTargetMissing,
		},
		"its own disk with a corrupt superblock": {
			// The magic, UUID and label stay; the number of blocks is nonsense.
			exchange: func(_ *provisiontest.Lab, d *provisiontest.Disk) { d.WriteAt(1024+24, []byte{0xff, 0xff, 0xff, 0x7f}) }, reason: v1alpha1.ReasonMountFailed,
		},
	}
	for sentence, c := range cases {
		t.Run(sentence, func(t *testing.T) {
			l := provisiontest.New(t)
			d := l.Disk("data", 64*provisiontest.Mebi)
			target := l.Target(d)
			l.Expect(l.Pass(target)).To(Succeed())
			l.Unmount(target)
			c.exchange(l, d)
			before := d.Content()
			for range 2 {
				_ = l.Pass(target) // a mount that fails is an error of the pass as well
				l.Expect(provisiontest.Ready(target).Status).To(BeEquivalentTo("False"))
				l.Expect(provisiontest.Ready(target).Reason).To(Equal(c.reason), provisiontest.Ready(target).Message)
			}
			l.Expect(l.Made).To(Equal(1))
			l.Expect(d.Content()).To(Equal(before))
			entries, err := os.ReadDir(l.Mountpoint(target))
			l.Expect(err).NotTo(HaveOccurred())
			l.Expect(entries).To(BeEmpty())
			l.Expect(os.WriteFile(filepath.Join(l.Mountpoint(target), "x"), nil, 0o600)).NotTo(Succeed(), "the mountpoint is immutable")
		})
	}
}
