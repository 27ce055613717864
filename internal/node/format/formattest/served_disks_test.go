//go:build disks

package formattest

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"parallelfs.dev/operator/api/v1alpha1"
	"parallelfs.dev/operator/internal/node/devices"
	"parallelfs.dev/operator/internal/node/provision"
	"parallelfs.dev/operator/internal/node/provision/provisiontest"
)

func TestMain(m *testing.M) { os.Exit(provisiontest.WithLustre(m)) }

// expectProvenWithoutAMount expects a target that the agent has made, and that its server may mount.
func expectProvenWithoutAMount(l *provisiontest.Lab, made *v1alpha1.StorageTarget, d *provisiontest.Disk) {
	l.T.Helper()
	c := provisiontest.Ready(made)
	l.Expect(string(c.Status)).To(Equal("True"), "%s: %s", c.Reason, c.Message)
	l.Expect(c.Reason).To(Equal(v1alpha1.ReasonProven))
	l.Expect(made.Status.Provisioned.Finished).NotTo(BeNil())
	l.Expect(made.Status.MountPath).To(BeEmpty())
	l.Expect(l.Must("blkid", "-p", "-o", "value", "-s", "UUID", d.Loop)).To(Equal(made.Status.Provisioned.UUID))
	seen, err := devices.ThisHost().ByID(l.T.Context(), d.ID())
	l.Expect(err).NotTo(HaveOccurred())
	l.Expect(seen.InUse()).To(BeFalse(), "nobody has mounted it")
	read := l.Must(filepath.Join(l.NodePrograms, "tunefs.lustre"), "--dryrun", d.Loop)
	l.Expect(read).To(And(ContainSubstring(made.Name), ContainSubstring(made.Spec.FileSystem.UID), ContainSubstring(made.Status.Provisioned.UUID)))
}

func TestATargetOfLustreIsMadeAndProvenAndWiped(t *testing.T) {
	l := provisiontest.New(t)
	d := l.Disk("data", size)
	made := l.Target(d, provisiontest.OfLustre(10), func(t *v1alpha1.StorageTarget) {
		t.Spec.Format.MkfsOptions = []v1alpha1.MkfsOption{"-i", "65536"}
	})
	l.Expect(l.Pass(made)).To(Succeed())
	expectProvenWithoutAMount(l, made, d)
	l.Expect(made.Status.Provisioned.Label).To(Equal("scratch:OST000a"))
	l.Expect(l.Must("dumpe2fs", "-h", d.Loop)).To(MatchRegexp(`Inode count:\s+10\d\d\d`))
	expectSettled(l, made)

	l.Must("e2label", d.Loop, "scratch-OST000a") // its first mount writes this label too
	l.Expect(l.Pass(made)).To(Succeed())
	expectProvenWithoutAMount(l, made, d)

	lost := made.DeepCopy() // without its status, as after a restore of etcd
	lost.Status = v1alpha1.StorageTargetStatus{}
	l.Expect(l.Pass(lost)).To(Succeed())
	expectProvenWithoutAMount(l, lost, d)
	l.Expect(l.Made).To(Equal(1), "it is found and not made again")

	expectWiped(l, made, d)
	l.Expect(meta.IsStatusConditionTrue(made.Status.Conditions, v1alpha1.ConditionDestroyed)).To(BeTrue())
}

// ofPair assigns a target to two nodes.
func ofPair(t *v1alpha1.StorageTarget) {
	t.Spec.SecondNode = "oss2"
	t.Spec.Lustre.ServiceNodes = []v1alpha1.LustreServiceNode{{NIDs: []string{"10.0.0.2@tcp"}}, {NIDs: []string{"10.0.0.3@tcp"}}}
}

func TestATargetOfTwoNodesIsMadeSoThatEachSeesOnTheDiskWhatTheOtherDoes(t *testing.T) {
	l := provisiontest.New(t)
	d := l.Disk("data", size)
	made := l.Target(d, provisiontest.OfLustre(10), ofPair)
	l.Expect(l.Pass(made)).To(Succeed())
	expectProvenWithoutAMount(l, made, d)
	l.Expect(made.Status.Plan).To(BeNil())
	l.Expect(l.Must("dumpe2fs", "-h", d.Loop)).To(MatchRegexp(`features:.* mmp`))
	l.Expect(l.Must(filepath.Join(l.NodePrograms, "tunefs.lustre"), "--dryrun", d.Loop)).To(ContainSubstring("failover.node=10.0.0.2@tcp:10.0.0.3@tcp"))

	before := d.Content()
	made.Status.Holder, made.Spec.ServeOn = &v1alpha1.TargetHolder{Node: "oss2", Number: 1}, "oss2"
	made.Spec.DestroyFor = made.Spec.FileSystem.UID
	deleted := metav1.Now()
	made.DeletionTimestamp = &deleted
	l.Expect(l.Pass(made)).To(Succeed())
	l.Expect(d.Content()).To(Equal(before), "the second node holds it, and it is not wiped")
	l.Expect(meta.IsStatusConditionTrue(made.Status.Conditions, v1alpha1.ConditionReleased)).To(BeFalse())
}

func TestATargetOfTwoNodesWithoutAMultiMountProtectionIsNone(t *testing.T) {
	l := provisiontest.New(t)
	d := l.Disk("data", size)
	run := l.Run
	l.Run = func(ctx context.Context, argv []string, keep ...*os.File) ([]byte, error) {
		out, err := run(ctx, argv, keep...)
		if strings.HasSuffix(argv[0], "mkfs.lustre") && !slices.Contains(argv, "--dryrun") && err == nil {
			l.Must("tune2fs", "-O", "^mmp", d.Loop) // as another release may leave it
		}
		return out, err
	}
	made := l.Target(d, provisiontest.OfLustre(10), ofPair)
	l.Expect(l.Pass(made)).NotTo(Succeed())
	l.Expect(provisiontest.Ready(made)).To(And(HaveField("Reason", v1alpha1.ReasonProvisioningFailed),
		HaveField("Message", ContainSubstring("has no multi-mount protection"))))
	l.Expect(made.Status.Provisioned.Finished).To(BeNil(), "no server is told of it")
}

func TestADiskThatWasChangedIsNoLongerALustreTarget(t *testing.T) {
	for name, change := range map[string][]string{
		"another mark": {"--comment=mine"}, "another MGS": {"--erase-params", "--mgsnode=10.0.0.9@tcp"}, "its configuration is to be written anew": {"--writeconf"},
	} {
		t.Run(name, func(t *testing.T) {
			l := provisiontest.New(t)
			d := l.Disk("data", size)
			made := l.Target(d, provisiontest.OfLustre(10))
			l.Expect(l.Pass(made)).To(Succeed())
			l.Must(append(append([]string{filepath.Join(l.NodePrograms, "tunefs.lustre")}, change...), d.Loop)...)
			before := d.Content()
			l.Expect(l.Pass(made)).To(Succeed())
			l.Expect(provisiontest.Ready(made).Reason).To(Equal(v1alpha1.ReasonTargetMissing))
			l.Expect(d.Content()).To(Equal(before))
		})
	}
}

func TestForeignDataIsNotMadeIntoATargetOfLustre(t *testing.T) {
	for name, theirs := range map[string][]string{"ext4": {"mkfs.ext4", "-q"}, "xfs": {"mkfs.xfs", "-q"}, "swap": {"mkswap"}} {
		t.Run(name, func(t *testing.T) {
			l := provisiontest.New(t)
			d := l.Disk("precious", size)
			l.Must(append(theirs, d.Loop)...)
			before := d.Content()
			wanted := l.Target(d, provisiontest.OfLustre(10))
			l.Expect(l.Pass(wanted)).To(Succeed())
			l.Stays(wanted, d, before, 0, "with IfBlank")
			wanted.Spec.FormatPolicy, wanted.Spec.ApprovedPlan = v1alpha1.FormatApproved, wanted.Status.Plan.Hash
			l.Expect(l.Pass(wanted)).To(Succeed())
			expectProvenWithoutAMount(l, wanted, d) // a person has approved the loss
		})
	}
}

// The mark identifies a target of Lustre, and no approval overrides it.
func TestATargetOfLustreIsNotMadeIntoAnother(t *testing.T) {
	for name, other := range map[string]func(t *v1alpha1.StorageTarget){"of Lustre": provisiontest.OfLustre(10), "of another format": provisiontest.As(v1alpha1.XFS)} {
		t.Run(name, func(t *testing.T) {
			l := provisiontest.New(t)
			d := l.Disk("data", size)
			l.Expect(l.Pass(l.Target(d, provisiontest.OfLustre(10)))).To(Succeed())
			before := d.Content()
			wanted := l.Target(d, other, func(t *v1alpha1.StorageTarget) {
				t.Name, t.Spec.FileSystem = "other", v1alpha1.TargetOwner{Name: "home", UID: "66666666-7777-8888-9999-000000000000"}
			})
			l.Expect(l.Pass(wanted)).To(Succeed())
			wanted.Spec.FormatPolicy, wanted.Spec.ApprovedPlan = v1alpha1.FormatApproved, wanted.Status.Plan.Hash
			l.Expect(l.Pass(wanted)).To(Succeed())
			l.Stays(wanted, d, before, 1, name)
			l.Expect(provisiontest.Ready(wanted).Message).To(ContainSubstring("of FileSystem storage/scratch"))
		})
	}
}

func TestATargetOfLustreIsNoLogDevice(t *testing.T) {
	l := provisiontest.New(t)
	d, blank := l.Disk("data", size), l.Disk("blank", size)
	l.Expect(l.Pass(l.Target(d, provisiontest.OfLustre(10)))).To(Succeed())
	before := d.Content()
	wanted := l.Target(blank, provisiontest.WithLog(d), provisiontest.Approved(""))
	l.Expect(l.Pass(wanted)).To(Succeed())
	wanted.Spec.ApprovedPlan = wanted.Status.Plan.Hash
	l.Expect(l.Pass(wanted)).To(Succeed())
	l.Stays(wanted, d, before, 1, "as the log of an approved target")
	l.Expect(provisiontest.Ready(wanted).Message).To(And(ContainSubstring("log device"), ContainSubstring("carries the data of StorageTarget")))
}

func TestANodeWithoutLustresProgramsTouchesNothing(t *testing.T) {
	l := provisiontest.New(t)
	d := l.Disk("data", size)
	programs := l.NodePrograms
	l.NodePrograms = t.TempDir()
	before := d.Content()
	wanted := l.Target(d, provisiontest.OfLustre(10))
	l.Expect(l.Pass(wanted)).To(Succeed())
	l.Stays(wanted, d, before, 0, "a blank disk")
	l.Expect(provisiontest.Ready(wanted).Message).To(ContainSubstring("the node has no mkfs.lustre"))

	l.NodePrograms = programs
	l.Expect(l.Pass(wanted)).To(Succeed())
	before, l.NodePrograms = d.Content(), t.TempDir()
	other := l.Target(d, provisiontest.As(v1alpha1.XFS), func(t *v1alpha1.StorageTarget) { t.Name = "other" })
	l.Expect(l.Pass(other)).To(Succeed())
	l.Stays(other, d, before, 1, "a target that nobody can read")
	l.Expect(provisiontest.Ready(other).Message).To(ContainSubstring("the node has no tunefs.lustre"))
}

func TestAMkfsOfLustreKilledInItsMiddleEndsTheSame(t *testing.T) {
	for _, seconds := range []string{"0.005", "0.02", "0.05", "0.1"} {
		t.Run("after "+seconds+" s", func(t *testing.T) {
			l := provisiontest.New(t)
			d := l.Disk("data", size/2)
			wanted := l.Target(d, provisiontest.OfLustre(10))
			killed := false
			l.Run = func(ctx context.Context, argv []string, keep ...*os.File) ([]byte, error) {
				if strings.HasSuffix(argv[0], "/mkfs.lustre") && argv[1] != "--dryrun" && !killed {
					killed = true
					argv = append([]string{"timeout", "--signal=KILL", seconds}, argv...)
				}
				return provision.Run(ctx, argv, keep...)
			}
			if err := l.Pass(wanted); err != nil { // it may have ended before the kill
				l.Expect(provisiontest.Ready(wanted).Reason).To(Equal(v1alpha1.ReasonProvisioningFailed), err.Error())
				l.Expect(l.Pass(wanted)).To(Succeed())
			}
			l.Expect(killed).To(BeTrue())
			expectProvenWithoutAMount(l, wanted, d)
		})
	}
}

// again returns a target of a FileSystem that was created again: with another uid and without a record, not even of its assignment in
// Lustre.
func again(old *v1alpha1.StorageTarget) *v1alpha1.StorageTarget {
	now := old.DeepCopy()
	now.Status = v1alpha1.StorageTargetStatus{}
	now.Spec.FileSystem.UID = "99999999-2222-3333-4444-555555555555"
	now.Spec.Lustre = nil
	return now
}

func TestTheDiskOfAnEarlierFileSystemIsTakenOverWithItsAssignments(t *testing.T) {
	l := provisiontest.New(t)
	d := l.Disk("data", size)
	old := l.Target(d, provisiontest.OfLustre(10))
	l.Expect(l.Pass(old)).To(Succeed())
	l.Must("e2label", d.Loop, "scratch-OST000a") // its first mount writes this label too

	now, before := again(old), d.Content()
	for range 2 {
		l.Expect(l.Pass(now)).To(Succeed())
		l.Expect(provisiontest.Ready(now).Message).To(ContainSubstring("has not said yet what the target is to Lustre"))
		l.Expect(now.Status.Provisioned).To(BeNil())
		l.Expect(now.Status.Record).NotTo(BeNil())
		l.Expect(now.Status.Record.Lustre).To(Equal(old.Spec.Lustre))
	}
	l.Expect(d.Content()).To(Equal(before), "nothing is written before the operator says the same")

	now.Spec.Lustre = now.Status.Record.Lustre.DeepCopy()
	l.Expect(l.Pass(now)).To(Succeed())
	expectProvenWithoutAMount(l, now, d)
	l.Expect(now.Status.Provisioned.PlanHash).To(BeEmpty(), "it was taken over")
	l.Expect(now.Status.Provisioned.UUID).To(Equal(old.Status.Provisioned.UUID))
	l.Expect(l.Made).To(Equal(1), "and not made again")
	l.Expect(l.Must("e2label", d.Loop)).To(Equal("scratch-OST000a"), "it is registered still")
	expectSettled(l, now)
	l.Expect(now.Status.Record.Lustre).To(Equal(old.Spec.Lustre), "what was read once stays")
	l.Expect(l.Must(filepath.Join(l.NodePrograms, "tunefs.lustre"), "--dryrun", d.Loop)).NotTo(ContainSubstring(old.Spec.FileSystem.UID))
}

func TestADiskOfAnotherClusterIsTakenOverAfterAPersonsApproval(t *testing.T) {
	l := provisiontest.New(t)
	d := l.Disk("data", size)
	old := l.Target(d, provisiontest.OfLustre(10), func(t *v1alpha1.StorageTarget) { t.Spec.Cluster = "there" })
	l.Expect(l.Pass(old)).To(Succeed())
	now, before := again(old), d.Content()
	now.Spec.Cluster = "here"
	l.Expect(l.Pass(now)).To(Succeed())
	l.Expect(provisiontest.Ready(now).Reason).To(Equal(v1alpha1.ReasonOtherCluster))
	l.Expect(now.Status.Record).To(BeNil())
	l.Expect(d.Content()).To(Equal(before))

	now.Spec.TakeOver = "there"
	l.Expect(l.Pass(now)).To(Succeed())
	l.Expect(now.Status.Record).NotTo(BeNil())
	now.Spec.Lustre = now.Status.Record.Lustre.DeepCopy()
	l.Expect(l.Pass(now)).To(Succeed())
	expectProvenWithoutAMount(l, now, d)
	l.Expect(now.Status.Provisioned.TakenFrom).To(BeEmpty())
	l.Expect(l.Pass(old)).To(Succeed())
	l.Expect(provisiontest.Ready(old).Reason).To(Equal(v1alpha1.ReasonOtherCluster), "that cluster has lost it")
}
