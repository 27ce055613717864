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
	"parallelfs.dev/operator/internal/node/provision/provisiontest"
	"parallelfs.dev/operator/test/places"
)

func TestADeletedTargetIsUnmountedAndItsDataStays(t *testing.T) {
	l := provisiontest.New(t)
	d := l.Disk("data", 64*provisiontest.Mebi)
	target := l.Target(d)
	l.Expect(l.Pass(target)).To(Succeed())
	l.Expect(os.WriteFile(filepath.Join(l.Mountpoint(target), "chunk"), []byte("data"), 0o600)).To(Succeed())
	provisiontest.Deleted(target)
	l.Expect(l.Pass(target)).To(Succeed())
	l.Expect(meta.IsStatusConditionTrue(target.Status.Conditions, v1alpha1.ConditionReleased)).To(BeTrue())
	l.Expect(meta.FindStatusCondition(target.Status.Conditions, v1alpha1.ConditionDestroyed)).To(BeNil())
	l.Expect(l.Mountpoint(target)).NotTo(BeADirectory())
	l.Expect(target.Status.Provisioned.Finished).NotTo(BeNil())
	at := filepath.Join(l.Root, "look")
	l.Expect(os.Mkdir(at, 0o755)).To(Succeed())
	l.Expect(unix.Mount(d.Loop, at, "ext4", unix.MS_RDONLY, "")).To(Succeed())
	defer func() { l.Expect(unix.Unmount(at, 0)).To(Succeed()) }()
	l.Expect(os.ReadFile(filepath.Join(at, "chunk"))).To(BeEquivalentTo("data"))
}

func TestATargetInUseStaysMountedAndNamesItsUsers(t *testing.T) {
	l := provisiontest.New(t)
	d := l.Disk("data", 64*provisiontest.Mebi)
	target := l.Target(d)
	l.Expect(l.Pass(target)).To(Succeed())
	open, err := os.Create(filepath.Join(l.Mountpoint(target), "open"))
	l.Expect(err).NotTo(HaveOccurred())
	user := holdOpen(l, open)
	l.Expect(open.Close()).To(Succeed())
	provisiontest.Deleted(target)
	l.Expect(l.Pass(target)).NotTo(Succeed())
	c := meta.FindStatusCondition(target.Status.Conditions, v1alpha1.ConditionReleased)
	l.Expect(c).NotTo(BeNil())
	l.Expect(c.Reason).To(Equal(v1alpha1.ReasonUnmountFailed))
	l.Expect(c.Message).To(ContainSubstring("sleep (process "))
	l.Expect(c.Message).To(ContainSubstring("/open"))
	before := target.DeepCopy()
	l.Expect(l.Pass(target)).NotTo(Succeed())
	l.Expect(target.Status).To(Equal(before.Status), "the same failure is not written again")
	user()
	l.Expect(l.Pass(target)).To(Succeed())
	l.Expect(meta.IsStatusConditionTrue(target.Status.Conditions, v1alpha1.ConditionReleased)).To(BeTrue())
}

func TestAWipeThatWasCutOffGoesOn(t *testing.T) {
	first := provisiontest.New(t)
	wipe := func(l *provisiontest.Lab) (*v1alpha1.StorageTarget, *provisiontest.Disk, *provisiontest.Disk) {
		d, log := l.Disk("data", 320*provisiontest.Mebi), l.Disk("log", 80*provisiontest.Mebi)
		target := l.Target(d, provisiontest.WithLog(log))
		l.Expect(l.Pass(target)).To(Succeed())
		provisiontest.Deleted(target)
		target.Spec.DestroyFor = target.Spec.FileSystem.UID
		return target, d, log
	}
	target, _, _ := wipe(first)
	all := moments(first, target)
	t.Logf("%d moments: %s", len(all), strings.Join(all, ", "))
	for _, i := range places.Kills.Of(t, len(all)) {
		at := all[i]
		t.Run("killed "+at, func(t *testing.T) {
			l := provisiontest.New(t)
			target, d, log := wipe(l)
			calls := 0
			agent := l.Agent(func(string, bool) error {
				if calls++; calls > i {
					return errKilled
				}
				return nil
			})
			l.Expect(agent.Pass(t.Context(), target, l.Record)).To(MatchError(errKilled))
			l.Expect(l.Pass(target)).To(Succeed())
			c := meta.FindStatusCondition(target.Status.Conditions, v1alpha1.ConditionDestroyed)
			l.Expect(c).NotTo(BeNil())
			l.Expect(string(c.Status)).To(Equal("True"), c.Message)
			for _, device := range []*provisiontest.Disk{d, log} {
				l.Expect(l.Must("wipefs", "--no-act", "--parsable", device.Loop)).To(BeEmpty())
			}
		})
	}
}

func TestDestroyLeavesWhatIsNotProvenToBeTheTargets(t *testing.T) {
	cases := map[string]func(l *provisiontest.Lab, target *v1alpha1.StorageTarget, d *provisiontest.Disk){
		"the marker of another FileSystem's uid": func(_ *provisiontest.Lab, target *v1alpha1.StorageTarget, _ *provisiontest.Disk) {
			target.Spec.DestroyFor = "99999999-2222-3333-4444-555555555555"
		},
		"another filesystem on the disk": func(l *provisiontest.Lab, _ *v1alpha1.StorageTarget, d *provisiontest.Disk) {
			l.Must("mkfs.ext4", "-q", "-F", d.Loop)
		},
		"a disk of another size": func(_ *provisiontest.Lab, target *v1alpha1.StorageTarget, _ *provisiontest.Disk) {
			target.Spec.Device.SizeBytes /= 2
		},
		"a disk without the marker": func(l *provisiontest.Lab, _ *v1alpha1.StorageTarget, d *provisiontest.Disk) {
			at := filepath.Join(l.Root, "look")
			l.Expect(os.Mkdir(at, 0o755)).To(Succeed())
			l.Expect(unix.Mount(d.Loop, at, "ext4", 0, "")).To(Succeed())
			l.Expect(os.Remove(filepath.Join(at, ".parallelfs-target.json"))).To(Succeed())
			l.Expect(unix.Unmount(at, 0)).To(Succeed())
		},
	}
	for sentence, change := range cases {
		t.Run(sentence, func(t *testing.T) {
			l := provisiontest.New(t)
			d := l.Disk("data", 64*provisiontest.Mebi)
			target := l.Target(d)
			l.Expect(l.Pass(target)).To(Succeed())
			l.Unmount(target)
			provisiontest.Deleted(target)
			target.Spec.DestroyFor = target.Spec.FileSystem.UID
			change(l, target, d)
			before := d.Content()
			l.Expect(l.Pass(target)).To(Succeed())
			c := meta.FindStatusCondition(target.Status.Conditions, v1alpha1.ConditionDestroyed)
			l.Expect(c).NotTo(BeNil())
			l.Expect(string(c.Status)).To(Equal("False"), c.Message)
			l.Expect(c.Reason).To(Equal(v1alpha1.ReasonWipeFailed))
			l.Expect(d.Content()).To(Equal(before))
		})
	}
}

func TestATargetFilesystemWithoutAMarkerIsReported(t *testing.T) {
	l := provisiontest.New(t)
	d := l.Disk("data", 64*provisiontest.Mebi)
	l.Must("mkfs.ext4", "-q", d.Loop)
	before := d.Content()
	_, _, err := provision.ReadMarker(d.Loop, "", "ext4")
	l.Expect(err).To(MatchError(provision.ErrNoMarker))
	l.Expect(d.Content()).To(Equal(before))
}

func TestTheQueueIsSetAndReadBackAtEveryPass(t *testing.T) {
	l := provisiontest.New(t)
	d := l.Disk("data", 64*provisiontest.Mebi)
	number := func(n int32) *int32 { return &n }
	target := l.Target(d, func(s *v1alpha1.StorageTarget) {
		s.Spec.Queue = &v1alpha1.QueueSpec{Scheduler: "mq-deadline", ReadAheadKB: number(4096), MaxSectorsKB: number(256), Requests: number(64)}
	})
	queue := func(file string) string {
		return l.Must("cat", filepath.Join("/sys/class/block", d.KernelName(), "queue", file))
	}
	expect := func() {
		t.Helper()
		l.Expect(queue("read_ahead_kb")).To(Equal("4096"))
		l.Expect(queue("max_sectors_kb")).To(Equal("256"))
		l.Expect(queue("scheduler")).To(ContainSubstring("[mq-deadline]"))
		l.Expect(queue("nr_requests")).To(Equal("64"))
		l.Expect(*target.Status.Queue).To(Equal(v1alpha1.QueueStatus{Scheduler: "mq-deadline", ReadAheadKB: 4096, MaxSectorsKB: 256, Requests: 64}))
	}
	l.Expect(l.Pass(target)).To(Succeed())
	l.Expect(provisiontest.Ready(target).Reason).To(Equal(v1alpha1.ReasonProven), provisiontest.Ready(target).Message)
	expect()
	l.Expect(os.WriteFile(filepath.Join("/sys/class/block", d.KernelName(), "queue/read_ahead_kb"), []byte("128"), 0o600)).To(Succeed())
	l.Expect(l.Pass(target)).To(Succeed())
	expect()

	target.Spec.Queue.MaxSectorsKB = number(1 << 20)
	l.Expect(l.Pass(target)).To(Succeed())
	l.Expect(provisiontest.Ready(target).Status).To(BeEquivalentTo("True"), "the target is used all the same")
	l.Expect(provisiontest.Ready(target).Reason).To(Equal(v1alpha1.ReasonQueueRefused))
	l.Expect(provisiontest.Ready(target).Message).To(ContainSubstring("max_sectors_kb=1048576"))
}
