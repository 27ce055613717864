//go:build envtest

package filesystem_test

import (
	"slices"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	batchv1 "k8s.io/api/batch/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"parallelfs.dev/operator/api/v1alpha1"
	"parallelfs.dev/operator/internal/node/spec"
)

// lostMGT is a Lustre whose MGT had a disk of its own, which is dead. Backups are in a claim.
type lostMGT struct {
	*wreck
	kernels *kernels
	// node is that of the MGS, and old the dead disk.
	node string
	old  *fakeDisk
}

func newLostMGT(t *testing.T) *lostMGT {
	t.Helper()
	w := anotherWorld(t)
	k := w.lustreWorld()
	l := &lostMGT{kernels: k, node: w.nodes[2], wreck: &wreck{world: w, restores: map[string]string{}, used: map[string]string{}}}
	l.old = w.disk(l.node, "mgt")
	w.label(l.node, "mgs-of")
	k.lustre(func(fs *v1alpha1.FileSystem) { fs.Spec.Lustre.Management = managementOn(w, "*-mgt*") })
	w.settle()
	w.Expect(w.ready().Status).To(Equal(metav1.ConditionTrue), w.ready().Message)
	w.change(func(fs *v1alpha1.FileSystem) {
		fs.Spec.Backups = &v1alpha1.BackupsSpec{Schedule: "0 3 29 2 *", PersistentVolumeClaim: &v1alpha1.BackupsClaim{Name: "vault"}}
	})
	l.old.dead, l.old.mounted = true, false
	w.inventory(l.node)
	l.has = map[string]spec.RecoveryAnswer{
		"vault": {Found: []spec.RecoveryFound{
			{Backup: "20261123-030000", Time: "2026-11-23T03:00:00Z", Has: "4 logs with 61 records (params 1)", Lacks: "pfs-OST0005"},
			{Backup: "20261122-030000", Time: "2026-11-22T03:00:00Z", Has: "3 logs with 50 records (params 1)", Lacks: "pfs-OST0004, pfs-OST0005"},
		}},
		l.node: {},
	}
	l.compares = spec.RecoveryAnswer{Found: []spec.RecoveryFound{}, Compared: true}
	return l
}

// mgts returns the StorageTargets of the MGT.
func (l *lostMGT) mgts() (names []string) {
	for _, t := range l.targets() {
		if t.Spec.Role == v1alpha1.RoleManagement {
			names = append(names, t.Name)
		}
	}
	return names
}

// pools returns how often pools were created.
func (l *lostMGT) pools() (n int) {
	for _, line := range l.kernels.commands {
		if strings.HasPrefix(line, "lctl pool_add ") {
			n++
		}
	}
	return n
}

func TestALostMGTServesAgainOnAnotherDiskOfItsNodeWhenAPersonHasApprovedThePlan(t *testing.T) {
	t.Parallel()
	w := newLostMGT(t)
	before, pods := w.get().Status.Lustre.ManagementTarget, w.uids()
	w.goesOn(never)
	w.Expect(w.ready().Status).To(Equal(metav1.ConditionFalse))
	w.Expect(w.get().Status.Recovery).To(BeNil(), "nothing is recovered by itself")
	spare := w.disk(w.node, "mgt3")
	w.goesOn(never)
	w.Expect(w.mgts()).To(ConsistOf(before), "and no disk is taken by itself")
	spare.dead = true
	w.inventory(w.node)

	w.annotate(v1alpha1.AnnotationRecoverMetadata, "plan")
	w.goesOn(never)
	w.Expect(w.recovering().Message).To(ContainSubstring("the MGT gets another disk first: spec.lustre.management.targets chooses none on node %s, besides the one that is lost", w.node))
	another := w.disk(w.node, "mgt2")
	w.goesOn(never)
	plan := w.get().Status.Recovery
	w.Expect(plan).NotTo(BeNil(), w.recovering().Message)
	w.Expect(w.mgts()).To(ConsistOf(before, plan.Target))
	w.Expect(w.kernels.given[another]).To(HaveValue(Equal(v1alpha1.LustreTarget{Kind: v1alpha1.LustreMGT})), "its agent has made it an MGT")
	w.Expect(another.mounted).To(BeFalse(), "and nobody mounts it")
	w.Expect(w.get().Status.Lustre.ManagementTarget).To(Equal(before))
	w.Expect(plan.From).To(Equal("backup-in-vault-20261123-030000"), "the newest")
	w.Expect(w.recovering()).To(And(HaveField("Status", metav1.ConditionFalse), HaveField("Reason", v1alpha1.ReasonRecoveryApproval), HaveField("Message", And(
		ContainSubstring("The MGT would be made again from backup-in-vault-20261123-030000 (of 2026-11-23T03:00:00Z)"),
		ContainSubstring("Lost would be targets, pools and parameters that came after that; what the spec says of pools and parameters is set again"),
		ContainSubstring("On record and not in it is pfs-OST0005. It serves on, and a new mount does not find it"),
		ContainSubstring("In it are 4 logs with 61 records (params 1)."), ContainSubstring("=%s", plan.PlanHash)))))
	w.Expect(w.restores).To(BeEmpty())

	w.annotate(v1alpha1.AnnotationRecoverMetadata, "0badc0de")
	w.goesOn(never)
	w.Expect(w.recovering()).To(And(HaveField("Reason", v1alpha1.ReasonRecoveryRefused), HaveField("Message", ContainSubstring("0badc0de is not the hash of the plan"))))
	w.annotate(v1alpha1.AnnotationRecoverFrom, "backup-in-vault-20261122-030000")
	w.annotate(v1alpha1.AnnotationRecoverMetadata, plan.PlanHash)
	w.goesOn(never)
	w.Expect(w.recovering().Message).To(ContainSubstring("is not the hash of the plan"), "which is of the other backup")
	w.Expect(w.restores).To(BeEmpty())
	w.annotate(v1alpha1.AnnotationRecoverFrom, "")

	made := w.pools()
	w.annotate(v1alpha1.AnnotationRecoverMetadata, plan.PlanHash)
	w.goesOn(never)
	w.Expect(w.restores).To(Equal(map[string]string{w.node + ":" + plan.Directory: plan.PlanHash}))
	w.Expect(w.get().Status.Lustre).To(HaveValue(And(HaveField("ManagementNode", w.node), HaveField("ManagementTarget", plan.Target),
		HaveField("Recovered", HaveValue(And(HaveField("PlanHash", plan.PlanHash), HaveField("From", plan.From), HaveField("PreviousTarget", before),
			HaveField("Compared", Not(BeNil())), HaveField("Differs", "")))))))
	w.Expect(another.mounted).To(BeTrue())
	w.Expect(w.recovering()).To(And(HaveField("Reason", v1alpha1.ReasonMetadataRecovered),
		HaveField("Message", ContainSubstring("its MGS says of each record of its logs what the backup says"))))
	w.Expect(w.pools()).To(Equal(made+1), "what the spec says is set again, once")
	for name, uid := range pods {
		w.Expect(w.uids()).To(HaveKeyWithValue(name, uid), "no server and no mount is restarted")
	}
	w.Expect(w.ready().Status).To(Equal(metav1.ConditionTrue), w.ready().Message)

	// The lost disk is back, and stays as it is.
	w.old.dead = false
	w.inventory(w.node)
	w.annotate(v1alpha1.AnnotationRecoverMetadata, "")
	w.goesOn(never)
	w.Expect(w.recovering().Type).To(BeEmpty())
	w.Expect(w.get().Status.Lustre.ManagementTarget).To(Equal(plan.Target))
	w.Expect(w.mgts()).To(ConsistOf(before, plan.Target))
	w.Expect([]any{w.old.mounted, w.old.wipes, another.mounted}).To(Equal([]any{false, 0, true}))
	w.annotate(v1alpha1.AnnotationRecoverMetadata, "plan")
	w.goesOn(never)
	w.Expect(w.recovering()).To(And(HaveField("Reason", v1alpha1.ReasonRecoveryRefused), HaveField("Message", ContainSubstring("the MGS on node %s serves", w.node))))
	w.Expect(w.restores).To(HaveLen(1))
}

func TestAnMGSThatDiffersFromTheBackupIsReported(t *testing.T) {
	t.Parallel()
	w := newLostMGT(t)
	w.compares = spec.RecoveryAnswer{Found: []spec.RecoveryFound{}, Message: "record 16 of the log pfs-client is another one"}
	w.disk(w.node, "mgt2")
	w.annotate(v1alpha1.AnnotationRecoverMetadata, "plan")
	w.goesOn(never)
	w.annotate(v1alpha1.AnnotationRecoverMetadata, w.get().Status.Recovery.PlanHash)
	w.goesOn(never)
	w.Expect(w.get().Status.Lustre.Recovered.Differs).To(Equal("record 16 of the log pfs-client is another one"))
	w.Expect(w.recovering().Message).To(ContainSubstring("its MGS does not say what the backup says: record 16 of the log pfs-client is another one"))
}

func TestALustreWithoutABackupOrWithItsMGTOnMDT0000IsNotRecovered(t *testing.T) {
	t.Parallel()
	w := newLostMGT(t)
	w.change(func(fs *v1alpha1.FileSystem) { fs.Spec.Backups = nil })
	w.disk(w.node, "mgt2")
	w.annotate(v1alpha1.AnnotationRecoverMetadata, "plan")
	w.goesOn(never)
	w.Expect(w.recovering()).To(And(HaveField("Reason", v1alpha1.ReasonRecoveryRefused), HaveField("Message", And(
		ContainSubstring("there is nothing that the MGT on node %s could be made from", w.node), ContainSubstring("tunefs.lustre --writeconf")))))

	c := anotherWorld(t)
	k := c.lustreWorld()
	k.lustre(func(fs *v1alpha1.FileSystem) {
		fs.Annotations = map[string]string{v1alpha1.AnnotationRecoverMetadata: "plan"}
	})
	c.settle()
	c.Expect(c.condition(v1alpha1.ConditionRecovering)).To(And(HaveField("Reason", v1alpha1.ReasonRecoveryRefused),
		HaveField("Message", ContainSubstring("the MGT is on the disk of MDT0000"))))
	c.Expect(c.ready().Status).To(Equal(metav1.ConditionTrue), c.ready().Message)
}

func TestARecoveryOfAnMGTEndsInTheSameWhereverTheOperatorIsKilled(t *testing.T) {
	t.Parallel()
	killedInEach(t, [2]int{6, 6}, func(t *testing.T, each int) (writes [2]int) {
		t.Helper()
		w := newLostMGT(t)
		defer w.forget()
		another := w.disk(w.node, "mgt2")
		w.disk(w.node, "mgt3")
		before := w.get().Status.Lustre.ManagementTarget
		w.annotate(v1alpha1.AnnotationRecoverMetadata, "plan")
		writes[0] = w.goesOn(each)
		plan := w.get().Status.Recovery
		w.Expect(plan).NotTo(BeNil(), w.recovering().Message)
		w.annotate(v1alpha1.AnnotationRecoverMetadata, plan.PlanHash)
		writes[1] = w.goesOn(each)
		w.Expect(w.restores).To(Equal(map[string]string{w.node + ":" + plan.Directory: plan.PlanHash}))
		w.Expect(w.mgts()).To(ConsistOf(before, plan.Target), "one disk was taken")
		w.Expect(w.get().Status.Lustre).To(HaveValue(And(HaveField("ManagementTarget", plan.Target),
			HaveField("Recovered", HaveValue(And(HaveField("PlanHash", plan.PlanHash), HaveField("PreviousTarget", before), HaveField("Compared", Not(BeNil()))))))))
		w.Expect(another.mounted).To(BeTrue())
		w.Expect(w.ready().Status).To(Equal(metav1.ConditionTrue), w.ready().Message)
		var jobs batchv1.JobList
		w.Expect(server.Client.List(w.ctx, &jobs, client.InNamespace(w.namespace), client.MatchingLabels{v1alpha1.LabelRecovery: "scratch"})).To(Succeed())
		w.Expect(slices.DeleteFunc(jobs.Items, func(j batchv1.Job) bool { return !j.DeletionTimestamp.IsZero() })).To(BeEmpty())
		return writes
	})
}
