//go:build envtest

package filesystem_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	batchv1 "k8s.io/api/batch/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clocktesting "k8s.io/utils/clock/testing"
	ctrl "sigs.k8s.io/controller-runtime"

	"parallelfs.dev/operator/api/v1alpha1"
	"parallelfs.dev/operator/controllers/filesystem"
	"parallelfs.dev/operator/internal/backend/shared/metadatajobs"
	"parallelfs.dev/operator/internal/node/spec"
)

func TestALustreIsMadeAndGrows(t *testing.T) {
	w := newWorld(t)
	k := w.lustreWorld()
	k.lustre(nil)

	// It is created: each disk gets its index before it is formatted, and is mounted after it is proven.
	w.settle()
	w.Expect(w.ready()).To(And(HaveField("Status", metav1.ConditionTrue), HaveField("Reason", v1alpha1.ReasonHealthy),
		HaveField("Message", "7/7 servers and 6/6 targets are online, 3/3 clients have mounted")))
	w.Expect(w.formats()).To(Equal(10))
	fs := w.get()
	root := w.target(k.diskOf(fs.Status.Metadata.Target))
	w.Expect(root.Spec.Lustre).To(HaveValue(And(HaveField("Kind", v1alpha1.LustreMDT), HaveField("Index", HaveValue(BeZero())), HaveField("WithMGT", true))))
	w.Expect(fs.Status.Lustre).To(HaveValue(Equal(v1alpha1.LustreStatus{
		ManagementNode: root.Spec.Node, ManagementTarget: root.Name, ManagementNIDs: []string{"10.9.0.1@tcp"},
	})))
	w.Expect(fs.Status.Management).To(HaveValue(HaveField("Address", "10.9.0.1@tcp:/pfs")))
	w.Expect(fs.Status.Metadata.Initialized).NotTo(BeNil())
	names := k.names()
	w.Expect(slices.Sorted(maps.Values(names))).To(Equal([]string{
		"pfs-MDT0000 with MGT", "pfs-MDT0001", "pfs-MDT0002", "pfs-MDT0003",
		"pfs-OST0000", "pfs-OST0001", "pfs-OST0002", "pfs-OST0003", "pfs-OST0004", "pfs-OST0005",
	}))
	for _, d := range w.disks {
		w.Expect(w.target(d).Spec.Lustre).To(Equal(k.given[d]), d.id)
		w.Expect(d.mounted).To(BeTrue(), d.id)
		w.Expect(of(w.target(d), v1alpha1.ConditionOnline)).To(HaveField("Reason", v1alpha1.ReasonServing), d.id)
	}
	w.Expect(k.commands).To(ContainElement("lctl pool_add pfs.ssd pfs-OST[0000-0005/1]"))
	w.Expect(w.jobs()).To(HaveLen(1), "the pools were made once, and not once for each OST")
	c := server.Killable(t, -1)
	w.Expect(w.reconcile(c)).To(Succeed())
	w.Expect(c.Writes()).To(BeEmpty(), "and nothing is left to do")

	// It grows: disks of two more OSTs, and a third node with MDTs. The existing ones stay mounted and are not formatted again.
	pods := w.uids()
	w.disk(w.nodes[1], "ost2")
	w.disk(w.nodes[2], "ost2")
	w.disk(w.nodes[2], "mdt0")
	w.disk(w.nodes[2], "mdt1")
	w.label(w.nodes[2], "mds-of")
	w.change(func(fs *v1alpha1.FileSystem) { fs.Spec.StoragePools[0].Targets.Select.CountPerNode = 3 })
	w.settle()
	w.Expect(w.formats()).To(Equal(14))
	grown := k.names()
	for disk, name := range names {
		w.Expect(grown).To(HaveKeyWithValue(disk, name))
	}
	w.Expect(slices.Sorted(maps.Values(grown))).To(And(ContainElements("pfs-MDT0004", "pfs-MDT0005", "pfs-OST0006", "pfs-OST0007"), HaveLen(14)))
	for name, uid := range pods {
		w.Expect(w.uids()).To(HaveKeyWithValue(name, uid), "no server is restarted for a disk")
	}
	w.Expect(k.commands).To(ContainElement("lctl pool_add pfs.ssd pfs-OST[0000-0007/1]"))
	w.Expect(w.get().Status.Summary).To(HaveValue(And(HaveField("Servers", "9/9"), HaveField("Targets", "8/8"))))
	w.Expect(w.ready().Status).To(Equal(metav1.ConditionTrue), "all that has an index serves")
	w.Expect(w.condition(v1alpha1.ConditionStalled)).To(HaveField("Reason", v1alpha1.ReasonNoDevices), "one node has no third disk")
}

func TestADeletedLustreReleasesItsDisksAndIsCreatedAgainOverThem(t *testing.T) {
	w := newWorld(t)
	k := w.lustreWorld()
	k.lustre(nil)
	w.settle()
	names, devices := k.names(), func(kind string) (out []*fakeDisk) {
		for _, d := range w.disks {
			if string(k.given[d].Kind) == kind {
				out = append(out, d)
			}
		}
		return out
	}
	w.Expect(server.Client.Delete(w.ctx, w.get())).To(Succeed())
	var order []string
	for range 30 {
		before := w.components()
		w.Expect(w.reconcile(server.Client)).To(Succeed())
		for _, gone := range before {
			if !slices.Contains(w.components(), gone) {
				order = append(order, gone)
			}
		}
		if apierrors.IsNotFound(server.Client.Get(w.ctx, w.key(), &v1alpha1.FileSystem{})) {
			break
		}
		w.runPods()
		w.agents()
		w.Expect(w.reconcileTargets(server.Client)).To(Succeed())
	}
	w.Expect(apierrors.IsNotFound(server.Client.Get(w.ctx, w.key(), &v1alpha1.FileSystem{}))).To(BeTrue())
	w.Expect(order).To(Equal([]string{"client", "mdt", "ost"}))
	w.Expect(w.targets()).To(BeEmpty())
	for _, d := range w.disks {
		w.Expect([]any{d.mounted, d.wipes}).To(Equal([]any{false, 0}), d.id)
	}

	// It is created again, and the disks are named: they hold their assignments.
	w.loseObjects() // what the garbage collector removes
	k.lustre(func(fs *v1alpha1.FileSystem) {
		format := &v1alpha1.FormatSpec{FSType: v1alpha1.Ldiskfs}
		fs.Spec.MetadataServers.Targets = v1alpha1.TargetsSpec{Devices: references(devices("MDT")...), Format: format}
		fs.Spec.StoragePools[0].Targets = v1alpha1.TargetsSpec{Devices: references(devices("OST")...), Format: format}
		fs.Spec.Provisioning.FormatPolicy = v1alpha1.FormatNever
	})
	w.settle()
	w.Expect(w.ready().Status).To(Equal(metav1.ConditionTrue), w.ready().Message)
	w.Expect(k.names()).To(Equal(names))
	w.Expect(w.formats()).To(Equal(10), "nothing is formatted again")
	for _, d := range w.disks {
		w.Expect(w.target(d).Spec.Lustre).To(Equal(k.given[d]), d.id)
		w.Expect(d.mounted).To(BeTrue(), d.id)
	}
}

// components returns those that have a DaemonSet.
func (w *world) components() []string {
	var out []string
	for _, s := range w.sets() {
		out = append(out, s.Labels[v1alpha1.LabelComponent])
	}
	slices.Sort(out)
	return slices.Compact(out)
}

func TestANodeOfALustreThatDoesNotAnswerIsUnknownAndTheOthersAreNot(t *testing.T) {
	w := newWorld(t)
	k := w.lustreWorld()
	k.lustre(nil)
	w.settle()
	k.silent[w.nodes[2]] = true
	lasting := w.operator(server.Client)
	for range 2 {
		w.Expect(lasting.Reconcile(w.ctx, ctrl.Request{NamespacedName: w.key()})).Error().NotTo(HaveOccurred())
	}
	w.Expect(w.reconcileTargets(server.Client)).To(Succeed())
	w.Expect(w.ready()).To(And(HaveField("Status", metav1.ConditionUnknown), HaveField("Reason", v1alpha1.ReasonTargetsMissing),
		HaveField("Message", ContainSubstring("unknown: nobody listens"))))
	for _, d := range w.disks {
		want := metav1.ConditionTrue
		if d.node == w.nodes[2] {
			want = metav1.ConditionUnknown
		}
		w.Expect(of(w.target(d), v1alpha1.ConditionOnline).Status).To(Equal(want), d.id)
	}
	k.silent[w.nodes[2]] = false
	w.settle()
	w.Expect(w.ready().Status).To(Equal(metav1.ConditionTrue))
}

func TestAnOperatorOfALustreThatIsKilledAfterAnyWriteAssignsNoIndexTwice(t *testing.T) {
	w := newWorld(t)
	k := w.lustreWorld()
	k.lustre(nil)
	w.Expect(w.settleByDying(3, nil)).To(BeNumerically(">", 9))
	w.Expect(w.ready().Status).To(Equal(metav1.ConditionTrue), w.ready().Message)
	w.Expect(slices.Compact(slices.Sorted(maps.Values(k.names())))).To(HaveLen(10))
	w.Expect(w.formats()).To(Equal(10))
}

func TestALustreWithAnMGTOfItsOwnIsMadeWithItsDisk(t *testing.T) {
	w := newWorld(t)
	k := w.lustreWorld()
	w.disk(w.nodes[2], "mgt")
	w.label(w.nodes[2], "mgs-of")
	k.lustre(func(fs *v1alpha1.FileSystem) {
		fs.Spec.Lustre.Management = managementOn(w, "*-mgt")
	})
	w.settle()
	w.Expect(w.ready().Status).To(Equal(metav1.ConditionTrue), w.ready().Message)
	w.Expect(w.get().Status.Lustre).To(HaveValue(And(HaveField("ManagementNode", w.nodes[2]), HaveField("ManagementNIDs", []string{"10.9.0.3@tcp"}))))
	w.Expect(slices.Sorted(maps.Values(k.names()))[:2]).To(Equal([]string{"MGT", "pfs-MDT0000"}))
	w.Expect(w.get().Status.Summary.Servers).To(Equal("8/8"))
}

func TestTheLogsOfALustreAreBackedUpToPlacesThatAreNotTheNodesOfTheMGSAndMDT0000(t *testing.T) {
	w := newWorld(t)
	k := w.lustreWorld()
	v := &vaults{world: w, clock: clocktesting.NewFakePassiveClock(time.Now())}
	lustre := w.alter
	w.alter = func(operator *filesystem.Reconciler) {
		lustre(operator)
		operator.Clock = v.clock
	}
	w.disk(w.nodes[2], "mgt")
	w.label(w.nodes[2], "mgs-of")
	k.lustre(func(fs *v1alpha1.FileSystem) {
		fs.Spec.Lustre.Management = managementOn(w, "*-mgt")
		fs.Spec.Backups = &v1alpha1.BackupsSpec{
			Schedule: "0 3 * * *", PersistentVolumeClaim: &v1alpha1.BackupsClaim{Name: "vault"},
			Nodes: &v1alpha1.BackupsNodes{NodeSelector: v1alpha1.NodeSelector{"storage-of": w.namespace}, Count: 3},
		}
	})
	w.settle()
	w.Expect(w.ready().Status).To(Equal(metav1.ConditionTrue), w.ready().Message)
	jobs := v.backupJobs()
	w.Expect(jobs).To(And(HaveLen(2), HaveKey("vault"), HaveKey(w.nodes[1])))
	name := jobs["vault"].Annotations["parallelfs.dev/backup"]
	for _, job := range jobs {
		for _, m := range v.backupMaps() {
			if m.Name == job.Name+"-0" {
				var config spec.Backup
				w.Expect(json.Unmarshal([]byte(m.Data[metadatajobs.BackupToldKey]), &config)).To(Succeed())
				w.Expect(config.Copied).To(Equal(w.ip(w.nodes[2])+":9700"), "the node of the MGS has its logs")
			}
		}
		v.ends(job, batchv1.JobComplete, answers(name, 0))
	}
	w.settle()
	w.Expect(v.backupJobs()).To(BeEmpty())
	w.Expect(w.get().Status.Backups).To(And(HaveLen(2), HaveEach(HaveField("Result", v1alpha1.BackupVerified))))
	w.Expect(w.condition(v1alpha1.ConditionBackedUp)).To(And(HaveField("Status", metav1.ConditionTrue), HaveField("Reason", v1alpha1.ReasonVerified)))
}

// managementOn returns an MGT of its own, on the one disk of the labeled node that a glob matches.
func managementOn(w *world, glob v1alpha1.Glob) *v1alpha1.LustreManagement {
	return &v1alpha1.LustreManagement{
		NodeSelector: v1alpha1.NodeSelector{"mgs-of": w.namespace},
		Targets: v1alpha1.TargetsSpec{
			Select: &v1alpha1.DeviceSelector{IDGlobs: []v1alpha1.Glob{glob}, CountPerNode: 1}, Format: &v1alpha1.FormatSpec{FSType: v1alpha1.Ldiskfs},
		},
	}
}

func TestAnOSTIsEmptiedProvenEmptyTakenOutAndForgotten(t *testing.T) {
	w := newWorld(t)
	k := w.lustreWorld()
	var data []*fakeDisk
	for _, d := range w.disks {
		if strings.Contains(d.id, "-ost") {
			data = append(data, d)
		}
	}
	leaves, stay := data[5], data[:5]
	k.lustre(func(fs *v1alpha1.FileSystem) {
		fs.Spec.StoragePools[0].Targets = v1alpha1.TargetsSpec{Devices: references(data...), Format: &v1alpha1.FormatSpec{FSType: v1alpha1.Ldiskfs}}
	})
	w.settle()
	ost := *k.given[leaves].Index
	name := fmt.Sprintf("pfs-OST%04x", ost)
	safe := func() metav1.Condition { return of(w.target(leaves), v1alpha1.ConditionSafeToRemove) }
	metadata := w.target(k.diskOf(w.get().Status.Metadata.Target))

	k.files[ost] = 412
	w.person(metadata, func(t *v1alpha1.StorageTarget) { t.Spec.Remove = true })
	w.person(w.target(leaves), func(t *v1alpha1.StorageTarget) { t.Spec.Remove = true })
	w.settle()
	w.Expect(of(w.target(k.diskOf(metadata.Name)), v1alpha1.ConditionSafeToRemove).Reason).To(Equal(v1alpha1.ReasonNotRemovable))
	w.Expect(k.stopped).To(HaveLen(4), "no MDT makes objects on it")
	w.Expect(k.commands).To(ContainElement("lctl pool_add pfs.ssd pfs-OST[0000-0005/1]"))
	w.Expect(k.closed).To(BeEmpty(), "files lie on it still")
	w.Expect(safe()).To(And(HaveField("Status", metav1.ConditionFalse), HaveField("Reason", v1alpha1.ReasonMovingData),
		HaveField("Message", ContainSubstring("-drain-move-"))))
	w.Expect(w.ready().Status).To(Equal(metav1.ConditionTrue), w.ready().Message)

	k.files[ost] = 0
	w.settle()
	w.Expect(k.closed).To(Equal(map[int32]bool{ost: true}))
	w.Expect(safe()).To(And(HaveField("Status", metav1.ConditionTrue), HaveField("Reason", v1alpha1.ReasonDataMoved)))
	w.Expect(leaves.mounted).To(BeTrue())

	// A person takes it out, and its node leaves it alone.
	w.change(func(fs *v1alpha1.FileSystem) { fs.Spec.StoragePools[0].Targets.Devices = references(stay...) })
	w.settle()
	w.Expect(w.targets()).To(HaveLen(9))
	w.Expect(leaves.mounted).To(BeFalse())
	w.Expect(leaves.wipes).To(BeZero())
	w.Expect(k.commands[len(k.commands)-1]).To(Equal("lctl --device MGS del_ost --target " + name))
	w.Expect(w.ready().Status).To(Equal(metav1.ConditionTrue), w.ready().Message)
	w.Expect(w.get().Status.Summary.Targets).To(Equal("5/5"))

	// A disk that is added later gets an index of its own.
	stay = append(slices.Clone(stay), w.disk(w.nodes[2], "ost2"))
	w.change(func(fs *v1alpha1.FileSystem) { fs.Spec.StoragePools[0].Targets.Devices = references(stay...) })
	w.settle()
	w.Expect(slices.Collect(maps.Values(k.names()))).To(ContainElement("pfs-OST0006"))
	w.Expect(w.ready().Status).To(Equal(metav1.ConditionTrue), w.ready().Message)
}

func TestALustreGoesOnWithoutANodeWithLostOSTsWhenAPersonAcceptsTheLoss(t *testing.T) {
	w := newWorld(t)
	k := w.lustreWorld()
	k.lustre(nil)
	w.settle()
	w.Expect(w.ready().Status).To(Equal(metav1.ConditionTrue), w.ready().Message)
	lost := w.nodes[2]
	var osts []int32
	for d, is := range k.given {
		if d.node == lost {
			osts = append(osts, *is.Index)
		}
	}
	w.Expect(osts).To(HaveLen(2), "it has OSTs alone")
	w.loses(lost)
	k.silent[lost] = true
	w.looks()
	w.Expect(w.ready().Status).To(Equal(metav1.ConditionFalse))
	w.annotate(lost, v1alpha1.AnnotationGiveUp, lost)
	w.looks()
	asks := w.givingUp(lost)
	w.Expect(asks).To(And(HaveField("Reason", v1alpha1.ReasonLossNotAccepted), HaveField("Message", ContainSubstring(fmt.Sprintf("all that is on pfs-OST%04x", osts[0])))))
	w.Expect(k.closed).To(BeEmpty())

	_, word, _ := strings.Cut(asks.Message, v1alpha1.AnnotationAcceptLoss+"=")
	w.annotate(lost, v1alpha1.AnnotationAcceptLoss, word)
	w.looks()
	w.settle()
	w.looks()
	w.Expect(k.closed).To(Equal(map[int32]bool{osts[0]: true, osts[1]: true}), "nobody uses them any more")
	w.Expect(w.ready()).To(And(HaveField("Status", metav1.ConditionTrue), HaveField("Reason", v1alpha1.ReasonHealthy)), w.ready().Message)
	w.Expect(w.get().Status.Summary).To(HaveValue(HaveField("Targets", "4/4")))

	// A disk that is added later gets an index of its own.
	w.disk(w.nodes[1], "ost2")
	w.change(func(fs *v1alpha1.FileSystem) { fs.Spec.StoragePools[0].Targets.Select.CountPerNode = 3 })
	w.settle()
	w.Expect(slices.Collect(maps.Values(k.names()))).To(ContainElement("pfs-OST0006"))

	// The MDTs can't be decommissioned.
	w.loses(w.nodes[1])
	k.silent[w.nodes[1]] = true
	w.annotate(w.nodes[1], v1alpha1.AnnotationGiveUp, w.nodes[1])
	w.looks()
	w.Expect(w.givingUp(w.nodes[1])).To(And(HaveField("Reason", v1alpha1.ReasonGiveUpRefused), HaveField("Message", ContainSubstring("Lustre can't go on without an MDT"))))
}
