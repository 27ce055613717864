//go:build envtest

package filesystem_test

import (
	"slices"
	"testing"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"parallelfs.dev/operator/api/v1alpha1"
	"parallelfs.dev/operator/internal/backend"
	"parallelfs.dev/operator/internal/node/spec"
)

// newHive creates a BeeGFS whose management service has a node of its own, and two backups in a claim. The newest one is from before the
// last storage target joined.
func newHive(t *testing.T) *wreck {
	t.Helper()
	w := &wreck{world: anotherWorld(t), restores: map[string]string{}, used: map[string]string{}}
	w.beeGFS(nil)
	for i, name := range w.nodes {
		var node corev1.Node
		w.Expect(server.Client.Get(w.ctx, client.ObjectKey{Name: name}, &node)).To(Succeed())
		delete(node.Labels, "bee-of")
		if i > 0 {
			node.Labels["bee-of"] = w.namespace
		}
		w.Expect(server.Client.Update(w.ctx, &node)).To(Succeed())
	}
	w.settle()
	w.Expect(w.ready().Status).To(Equal(metav1.ConditionTrue), w.ready().Message)
	w.change(func(fs *v1alpha1.FileSystem) {
		fs.Spec.Backups = &v1alpha1.BackupsSpec{Schedule: "0 3 29 2 *", PersistentVolumeClaim: &v1alpha1.BackupsClaim{Name: "vault"}}
	})
	w.has = map[string]spec.RecoveryAnswer{w.nodes[0]: {}, w.nodes[1]: {}, w.nodes[2]: {}, "vault": {Found: []spec.RecoveryFound{
		{Backup: "20261123-030000", Time: "2026-11-23T03:00:00Z", Lacks: "storage target 2"},
		{Backup: "20261122-030000", Time: "2026-11-22T03:00:00Z", Lacks: "metadata server 4, storage target 2"},
	}}}
	return w
}

// newHiveWreck creates one whose management service has permanently lost its node.
func newHiveWreck(t *testing.T) *wreck {
	t.Helper()
	w := newHive(t)
	w.dead[w.nodes[0]] = true
	w.nodeIs(w.nodes[0], corev1.ConditionFalse)
	for _, pod := range w.pods() { // the node controller
		if pod.Spec.NodeName == w.nodes[0] {
			pod.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionFalse, Reason: "NodeLost"}}
			w.Expect(server.Client.Status().Update(w.ctx, &pod)).To(Succeed())
		}
	}
	return w
}

// putBack simulates the restored content of the management service's directory, and what the service then lists: everything but the last
// storage target, which joined later.
func (w *wreck) putBack(place string) {
	w.hive.numbers[place], w.hive.owners[place] = "management 0/0", string(w.get().UID)
	w.hive.targets = slices.DeleteFunc(w.hive.targets, func(t backend.Target) bool { return t.ID == 2 })
}

func TestALostManagementServiceServesAgainOnAnotherNodeAsABackupHasItWhenAPersonHasApprovedThePlan(t *testing.T) {
	t.Parallel()
	w := newHiveWreck(t)
	given := w.numbersGiven()
	w.goesOn(never)
	w.Expect(w.get().Status.Recovery).To(BeNil(), "nothing is recovered by itself")
	w.Expect(w.ready().Status).NotTo(Equal(metav1.ConditionTrue))

	w.annotate(v1alpha1.AnnotationRecoverMetadata, "plan")
	w.goesOn(never)
	w.Expect(w.recovering().Message).To(And(ContainSubstring("which spec.beegfs.management.nodeSelector matches"),
		ContainSubstring("is not Ready")))
	w.label(w.nodes[2])
	w.goesOn(never)
	plan := w.get().Status.Recovery
	w.Expect(plan).NotTo(BeNil())
	w.Expect(plan.From).To(Equal("backup-in-vault-20261123-030000"))
	w.Expect(plan.Candidates).To(HaveExactElements(
		And(HaveField("Name", "backup-in-vault-20261123-030000"), HaveField("Lacks", "storage target 2"), HaveField("Message", "")),
		And(HaveField("Name", "backup-in-vault-20261122-030000"), HaveField("Lacks", "metadata server 4, storage target 2"))))
	w.Expect(w.recovering()).To(And(HaveField("Status", metav1.ConditionFalse), HaveField("Reason", v1alpha1.ReasonRecoveryApproval),
		HaveField("Message", And(
			HavePrefix("The store of the management service would be made again from "+plan.From+" (of 2026-11-23T03:00:00Z)"),
			ContainSubstring("On record and not in it is storage target 2."), ContainSubstring("=%s", plan.PlanHash)))))
	w.Expect(w.restores).To(BeEmpty())

	w.annotate(v1alpha1.AnnotationRecoverMetadata, "0badc0de")
	w.goesOn(never)
	w.Expect(w.recovering()).To(And(HaveField("Reason", v1alpha1.ReasonRecoveryRefused),
		HaveField("Message", ContainSubstring("0badc0de is not the hash of the plan"))))
	w.Expect(w.restores).To(BeEmpty())
	w.Expect(w.hive.numbers).NotTo(HaveKey(w.nodes[2]+":/data/mgmtd"), "an empty store is never made anew")

	w.annotate(v1alpha1.AnnotationRecoverMetadata, plan.PlanHash)
	w.goesOn(never)
	w.Expect(w.restores).To(Equal(map[string]string{w.nodes[2] + ":/data/mgmtd": plan.PlanHash}))
	m := w.get().Status.Metadata
	w.Expect(m).To(And(HaveField("Node", w.nodes[2]), HaveField("Directory", "/data/mgmtd"), HaveField("Initialized", Not(BeNil())),
		HaveField("Recovered", And(HaveField("PlanHash", plan.PlanHash), HaveField("PreviousNode", w.nodes[0])))))
	w.Expect(w.hive.prepared).NotTo(HaveKey(w.nodes[2]+":/data/mgmtd"), "it finds its store, or refuses to start")
	w.Expect(w.numbersGiven()).To(Equal(given), "all numbers are what they were")
	w.Expect(w.ready().Status).To(Equal(metav1.ConditionTrue), w.ready().Message)
	w.Expect(w.recovering().Reason).To(Equal(v1alpha1.ReasonMetadataRecovered))
	w.Expect(w.hive.targets).To(ContainElement(And(HaveField("ID", int32(2)), HaveField("Online", true))),
		"what joined later has told of itself")
	w.dead[w.nodes[0]] = false
	w.nodeIs(w.nodes[0], corev1.ConditionTrue)
	w.label(w.nodes[0])
	w.annotate(v1alpha1.AnnotationRecoverMetadata, "")
	w.goesOn(never)
	w.Expect(w.get().Status.Metadata).To(Equal(m), "the old one is back, with its label, and is not started")
	for _, pod := range w.pods() {
		w.Expect(component(&pod) == "management" && pod.Spec.NodeName == w.nodes[0]).To(BeFalse())
	}
	w.annotate(v1alpha1.AnnotationRecoverMetadata, "plan")
	w.goesOn(never)
	w.Expect(w.recovering().Message).To(ContainSubstring("the management answers"))
	w.Expect(w.restores).To(HaveLen(1))
}

func TestAPersonChoosesBetweenBackupsOfTheSameTimeAndAPlanForAnotherNodeIsStale(t *testing.T) {
	t.Parallel()
	w := newHiveWreck(t)
	const older = "backup-in-vault-20261122-030000"
	w.has["vault"].Found[1].Time = w.has["vault"].Found[0].Time
	w.label(w.nodes[2])
	w.annotate(v1alpha1.AnnotationRecoverMetadata, "plan")
	w.goesOn(never)
	w.Expect(w.recovering()).To(And(HaveField("Reason", v1alpha1.ReasonRecoveryChoice),
		HaveField("Message", ContainSubstring("they are of the same time"))))
	w.Expect(w.get().Status.Recovery.PlanHash).To(BeEmpty())
	w.annotate(v1alpha1.AnnotationRecoverFrom, older)
	w.goesOn(never)
	stale := w.get().Status.Recovery.PlanHash
	w.Expect(stale).NotTo(BeEmpty())

	w.label(w.nodes[1])
	w.annotate(v1alpha1.AnnotationRecoverMetadata, stale)
	w.goesOn(never)
	w.Expect(w.recovering()).To(And(HaveField("Reason", v1alpha1.ReasonRecoveryRefused),
		HaveField("Message", ContainSubstring("is not the hash of the plan"))))
	w.Expect(w.restores).To(BeEmpty())
	plan := w.get().Status.Recovery
	w.Expect(plan).To(And(HaveField("Node", w.nodes[1]), HaveField("From", older)))
	w.annotate(v1alpha1.AnnotationRecoverMetadata, plan.PlanHash)
	w.goesOn(never)
	w.Expect(w.restores).To(Equal(map[string]string{w.nodes[1] + ":/data/mgmtd": plan.PlanHash}))
	w.Expect(w.get().Status.Metadata.Recovered).To(HaveField("From", older))
	w.Expect(w.ready().Status).To(Equal(metav1.ConditionTrue), w.ready().Message)
}

func TestAManagementServiceThatHasLostItsDirectoryServesAgainThereAndOnlyWhatJoinedLaterIsRestarted(t *testing.T) {
	t.Parallel()
	w := newHive(t)
	uids := func() map[string]string {
		out := map[string]string{}
		for _, pod := range w.pods() {
			out[component(&pod)+" at "+pod.Spec.NodeName+pod.Labels[v1alpha1.LabelSlot]] = string(pod.UID)
		}
		return out
	}
	before := uids()
	delete(w.hive.numbers, w.nodes[0]+":/data/mgmtd")
	for _, pod := range w.pods() {
		if component(&pod) == "management" {
			w.Expect(server.Client.Delete(w.ctx, &pod, client.GracePeriodSeconds(0))).To(Succeed())
		}
	}
	w.annotate(v1alpha1.AnnotationRecoverMetadata, "plan")
	w.goesOn(never)
	w.Expect(w.hive.refused).To(ContainElement(ContainSubstring("management at "+w.nodes[0])), "an empty place is not initialized")
	plan := w.get().Status.Recovery
	w.Expect(plan).To(HaveValue(And(HaveField("Node", w.nodes[0]), HaveField("Directory", "/data/mgmtd"))))
	w.annotate(v1alpha1.AnnotationRecoverMetadata, plan.PlanHash)
	w.goesOn(never)
	w.Expect(w.restores).To(Equal(map[string]string{w.nodes[0] + ":/data/mgmtd": plan.PlanHash}))
	w.Expect(w.ready().Status).To(Equal(metav1.ConditionTrue), w.ready().Message)
	w.Expect(w.hive.targets).To(ContainElement(And(HaveField("ID", int32(2)), HaveField("Online", true))),
		"what joined later has told of itself")
	var restarted []string
	for name, uid := range uids() {
		if before[name] != uid {
			restarted = append(restarted, name)
		}
	}
	w.Expect(restarted).To(ConsistOf("management at "+w.nodes[0], "storage at "+w.nodes[2]))
}

func TestARecoveryOfAManagementServiceEndsInTheSameWhateverWriteTheOperatorIsKilledAfter(t *testing.T) {
	t.Parallel()
	killedInEach(t, [2]int{3, 8}, func(t *testing.T, each int) [2]int {
		t.Helper()
		w := newHiveWreck(t)
		defer w.forget()
		writes := w.recovers(w.nodes[2], "/data/mgmtd", 2, each)
		w.Expect(w.hive.prepared).NotTo(HaveKey(w.nodes[2] + ":/data/mgmtd"))
		w.Expect(w.ready().Status).To(Equal(metav1.ConditionTrue), w.ready().Message)
		return writes
	})
}
