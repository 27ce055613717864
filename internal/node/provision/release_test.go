//go:build disks

package provision_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	"golang.org/x/sys/unix"
	"k8s.io/apimachinery/pkg/api/meta"

	"parallelfs.dev/operator/api/v1alpha1"
	"parallelfs.dev/operator/internal/node/provision"
)

func TestADeletedTargetIsUnmountedAndItsDataStays(t *testing.T) {
	l := newLab(t)
	d := l.disk("data", 64*mebi)
	target := l.target(d)
	l.Expect(l.pass(target)).To(Succeed())
	l.Expect(os.WriteFile(filepath.Join(l.mountpoint(target), "chunk"), []byte("data"), 0o600)).To(Succeed())
	deleted(target)
	l.Expect(l.pass(target)).To(Succeed())
	l.Expect(meta.IsStatusConditionTrue(target.Status.Conditions, v1alpha1.ConditionReleased)).To(BeTrue())
	l.Expect(meta.FindStatusCondition(target.Status.Conditions, v1alpha1.ConditionDestroyed)).To(BeNil())
	l.Expect(l.mountpoint(target)).NotTo(BeADirectory())
	l.Expect(target.Status.Provisioned.Finished).NotTo(BeNil())
	at := filepath.Join(l.root, "look")
	l.Expect(os.Mkdir(at, 0o755)).To(Succeed())
	l.Expect(unix.Mount(d.loop, at, "ext4", unix.MS_RDONLY, "")).To(Succeed())
	defer func() { l.Expect(unix.Unmount(at, 0)).To(Succeed()) }()
	l.Expect(os.ReadFile(filepath.Join(at, "chunk"))).To(BeEquivalentTo("data"))
}

func TestATargetInUseStaysMountedAndSaysByWhom(t *testing.T) {
	l := newLab(t)
	d := l.disk("data", 64*mebi)
	target := l.target(d)
	l.Expect(l.pass(target)).To(Succeed())
	open, err := os.Create(filepath.Join(l.mountpoint(target), "open"))
	l.Expect(err).NotTo(HaveOccurred())
	user := holdOpen(l, open)
	l.Expect(open.Close()).To(Succeed())
	deleted(target)
	l.Expect(l.pass(target)).NotTo(Succeed())
	c := meta.FindStatusCondition(target.Status.Conditions, v1alpha1.ConditionReleased)
	l.Expect(c).NotTo(BeNil())
	l.Expect(c.Reason).To(Equal(v1alpha1.ReasonUnmountFailed))
	l.Expect(c.Message).To(ContainSubstring("sleep (process "))
	l.Expect(c.Message).To(ContainSubstring("/open"))
	before := target.DeepCopy()
	l.Expect(l.pass(target)).NotTo(Succeed())
	l.Expect(target.Status).To(Equal(before.Status), "the same failure is not written again")
	user()
	l.Expect(l.pass(target)).To(Succeed())
	l.Expect(meta.IsStatusConditionTrue(target.Status.Conditions, v1alpha1.ConditionReleased)).To(BeTrue())
}

func TestDestroyWipesTheTargetsDiskAndItsLog(t *testing.T) {
	l := newLab(t)
	d, log := l.disk("data", 320*mebi), l.disk("log", 80*mebi)
	target := l.target(d, withLog(log))
	l.Expect(l.pass(target)).To(Succeed())
	deleted(target)
	target.Spec.DestroyFor = target.Spec.FileSystem.UID
	l.Expect(l.pass(target)).To(Succeed())
	c := meta.FindStatusCondition(target.Status.Conditions, v1alpha1.ConditionDestroyed)
	l.Expect(c).NotTo(BeNil())
	l.Expect(string(c.Status)).To(Equal("True"), c.Message)
	for _, device := range []*disk{d, log} {
		l.Expect(l.must("wipefs", "--no-act", "--parsable", device.loop)).To(BeEmpty())
	}
}

func TestAWipeThatWasCutOffGoesOn(t *testing.T) {
	first := newLab(t)
	wipe := func(l *lab) (*v1alpha1.StorageTarget, *disk, *disk) {
		d, log := l.disk("data", 320*mebi), l.disk("log", 80*mebi)
		target := l.target(d, withLog(log))
		l.Expect(l.pass(target)).To(Succeed())
		deleted(target)
		target.Spec.DestroyFor = target.Spec.FileSystem.UID
		return target, d, log
	}
	target, _, _ := wipe(first)
	all := moments(first, target)
	t.Logf("%d moments: %s", len(all), strings.Join(all, ", "))
	for i, at := range all {
		t.Run("killed "+at, func(t *testing.T) {
			l := newLab(t)
			target, d, log := wipe(l)
			calls := 0
			agent := l.agent(func(string, bool) error {
				if calls++; calls == i+1 {
					return errKilled
				}
				return nil
			})
			l.Expect(agent.Pass(t.Context(), target, l.record)).To(MatchError(errKilled))
			l.Expect(l.pass(target)).To(Succeed())
			c := meta.FindStatusCondition(target.Status.Conditions, v1alpha1.ConditionDestroyed)
			l.Expect(c).NotTo(BeNil())
			l.Expect(string(c.Status)).To(Equal("True"), c.Message)
			for _, device := range []*disk{d, log} {
				l.Expect(l.must("wipefs", "--no-act", "--parsable", device.loop)).To(BeEmpty())
			}
		})
	}
}

func TestDestroyLeavesWhatIsNotProvenToBeTheTargets(t *testing.T) {
	cases := map[string]func(l *lab, target *v1alpha1.StorageTarget, d *disk){
		"the marker of another FileSystem's uid": func(_ *lab, target *v1alpha1.StorageTarget, _ *disk) {
			target.Spec.DestroyFor = "99999999-2222-3333-4444-555555555555"
		},
		"another filesystem on the disk": func(l *lab, _ *v1alpha1.StorageTarget, d *disk) { l.must("mkfs.ext4", "-q", "-F", d.loop) },
		"a disk of another size": func(_ *lab, target *v1alpha1.StorageTarget, _ *disk) {
			target.Spec.Device.SizeBytes /= 2
		},
		"a disk without the marker": func(l *lab, _ *v1alpha1.StorageTarget, d *disk) {
			at := filepath.Join(l.root, "look")
			l.Expect(os.Mkdir(at, 0o755)).To(Succeed())
			l.Expect(unix.Mount(d.loop, at, "ext4", 0, "")).To(Succeed())
			l.Expect(os.Remove(filepath.Join(at, ".parallelfs-target.json"))).To(Succeed())
			l.Expect(unix.Unmount(at, 0)).To(Succeed())
		},
	}
	for sentence, change := range cases {
		t.Run(sentence, func(t *testing.T) {
			l := newLab(t)
			d := l.disk("data", 64*mebi)
			target := l.target(d)
			l.Expect(l.pass(target)).To(Succeed())
			l.unmount(target)
			deleted(target)
			target.Spec.DestroyFor = target.Spec.FileSystem.UID
			change(l, target, d)
			before := d.content()
			l.Expect(l.pass(target)).To(Succeed())
			c := meta.FindStatusCondition(target.Status.Conditions, v1alpha1.ConditionDestroyed)
			l.Expect(c).NotTo(BeNil())
			l.Expect(string(c.Status)).To(Equal("False"), c.Message)
			l.Expect(c.Reason).To(Equal(v1alpha1.ReasonWipeFailed))
			l.Expect(d.content()).To(Equal(before))
		})
	}
}

// TestReadingAMarkerChangesNoBit reads the marker of filesystems as a power failure leaves them: copied while they are mounted
// and written to, with a journal that waits for its replay.
func TestReadingAMarkerChangesNoBit(t *testing.T) {
	for _, fsType := range []v1alpha1.FSType{v1alpha1.Ext4, v1alpha1.XFS, v1alpha1.Btrfs} {
		t.Run(string(fsType), func(t *testing.T) {
			l := newLab(t)
			d := l.disk("data", 320*mebi)
			target := l.target(d, as(fsType))
			l.Expect(l.pass(target)).To(Succeed())
			for i := range 200 {
				l.Expect(os.WriteFile(filepath.Join(l.mountpoint(target), "f"+strings.Repeat("x", i)), []byte("dirty"), 0o600)).To(Succeed())
			}
			top, err := os.Open(l.mountpoint(target))
			l.Expect(err).NotTo(HaveOccurred())
			l.Expect(top.Sync()).To(Succeed())
			l.Expect(top.Close()).To(Succeed())
			crashed := l.disk("crashed", d.size)
			l.must("cp", "--sparse=always", d.file, crashed.file)
			l.unmount(target)
			before := crashed.content()
			marker, err := provision.ReadMarker(crashed.loop, "", fsType)
			l.Expect(err).NotTo(HaveOccurred())
			l.Expect(marker.Target).To(Equal(target.Name))
			l.Expect(marker.UUID).To(Equal(target.Status.Provisioned.UUID))
			l.Expect(crashed.content()).To(Equal(before))
		})
	}
}

func TestAFilesystemOfTargetsWithoutAMarkerIsSaidToHaveNone(t *testing.T) {
	l := newLab(t)
	d := l.disk("data", 64*mebi)
	l.must("mkfs.ext4", "-q", d.loop)
	before := d.content()
	_, err := provision.ReadMarker(d.loop, "", v1alpha1.Ext4)
	l.Expect(err).To(MatchError(provision.ErrNoMarker))
	l.Expect(d.content()).To(Equal(before))
}

func TestTheQueueIsSetAndReadBackAtEveryPass(t *testing.T) {
	l := newLab(t)
	d := l.disk("data", 64*mebi)
	number := func(n int32) *int32 { return &n }
	target := l.target(d, func(s *v1alpha1.StorageTarget) {
		s.Spec.Queue = &v1alpha1.QueueSpec{Scheduler: "mq-deadline", ReadAheadKB: number(4096), MaxSectorsKB: number(256), Requests: number(64)}
	})
	queue := func(file string) string {
		return l.must("cat", filepath.Join("/sys/class/block", d.kernelName(), "queue", file))
	}
	expect := func() {
		t.Helper()
		l.Expect(queue("read_ahead_kb")).To(Equal("4096"))
		l.Expect(queue("max_sectors_kb")).To(Equal("256"))
		l.Expect(queue("scheduler")).To(ContainSubstring("[mq-deadline]"))
		l.Expect(queue("nr_requests")).To(Equal("64"))
		l.Expect(*target.Status.Queue).To(Equal(v1alpha1.QueueStatus{Scheduler: "mq-deadline", ReadAheadKB: 4096, MaxSectorsKB: 256, Requests: 64}))
	}
	l.Expect(l.pass(target)).To(Succeed())
	l.Expect(ready(target).Reason).To(Equal(v1alpha1.ReasonProven), ready(target).Message)
	expect()
	l.Expect(os.WriteFile(filepath.Join("/sys/class/block", d.kernelName(), "queue/read_ahead_kb"), []byte("128"), 0o600)).To(Succeed())
	l.Expect(l.pass(target)).To(Succeed())
	expect()

	target.Spec.Queue.MaxSectorsKB = number(1 << 20)
	l.Expect(l.pass(target)).To(Succeed())
	l.Expect(ready(target).Status).To(BeEquivalentTo("True"), "the target is used all the same")
	l.Expect(ready(target).Reason).To(Equal(v1alpha1.ReasonQueueRefused))
	l.Expect(ready(target).Message).To(ContainSubstring("max_sectors_kb=1048576"))
}
