//go:build envtest

package filesystem_test

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"parallelfs.dev/operator/api/v1alpha1"
	"parallelfs.dev/operator/internal/backend/shared/podspec"
	"parallelfs.dev/operator/internal/node/spec"
	"parallelfs.dev/operator/test/envtest/apiserver"
)

// wreck is a world whose master's node died permanently. It has metaloggers on the other two nodes, backups in a claim, and the answers of
// `node recover` there.
type wreck struct {
	*world
	// has holds the answer for each source, by the path or claim that a Job mounts.
	has map[string]spec.RecoveryAnswer
	// restores holds the directories that were filled, "node:directory", with the plan, and used the source of each of them.
	restores, used map[string]string
	// compares is the result of the comparison with a server.
	compares spec.RecoveryAnswer
}

func newWreck(t *testing.T, changes ...func(w *world) func(fs *v1alpha1.FileSystem)) *wreck {
	t.Helper()
	w := &wreck{world: anotherWorld(t), restores: map[string]string{}, used: map[string]string{}}
	w.alive = true
	w.fileSystem(func(fs *v1alpha1.FileSystem) {
		for _, change := range changes {
			change(w.world)(fs)
		}
		fs.Spec.MooseFS.Metaloggers = &v1alpha1.MetaloggersSpec{NodeSelector: v1alpha1.NodeSelector{"storage-of": w.namespace}}
	})
	w.settle()
	w.Expect(w.ready().Status).To(Equal(metav1.ConditionTrue), w.ready().Message)
	w.change(func(fs *v1alpha1.FileSystem) {
		fs.Spec.Backups = &v1alpha1.BackupsSpec{Schedule: "0 3 29 2 *", PersistentVolumeClaim: &v1alpha1.BackupsClaim{Name: "vault"}}
	})
	w.dead[w.nodes[0]] = true
	w.nodeIs(w.nodes[0], corev1.ConditionFalse)
	for _, pod := range w.pods() { // the node controller
		if pod.Spec.NodeName == w.nodes[0] {
			pod.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionFalse, Reason: "NodeLost"}}
			w.Expect(server.Client.Status().Update(w.ctx, &pod)).To(Succeed())
		}
	}
	w.has = map[string]spec.RecoveryAnswer{
		w.nodes[1]: {Found: []spec.RecoveryFound{{Version: 500, ID: "6B046567398B0398", Time: "2026-11-23T12:00:00Z"}}},
		w.nodes[2]: {Found: []spec.RecoveryFound{{Version: 500, ID: "6B046567398B0398", Time: "2026-11-23T12:00:00Z"}}},
		"vault": {Found: []spec.RecoveryFound{
			{Backup: "20261123-030000", Version: 400, ID: "6B046567398B0398", Time: "2026-11-23T03:00:00Z"},
			{Backup: "20261122-030000", Version: 300, ID: "6B046567398B0398", Time: "2026-11-22T03:00:00Z"},
		}},
	}
	return w
}

// label sets the label of the metadata on the given nodes, and removes it from all others.
func (w *wreck) label(nodes ...string) {
	w.t.Helper()
	const key = "master-of"
	for _, name := range w.nodes {
		var node corev1.Node
		w.Expect(server.Client.Get(w.ctx, client.ObjectKey{Name: name}, &node)).To(Succeed())
		delete(node.Labels, key)
		if slices.Contains(nodes, name) {
			node.Labels[key] = w.namespace
		}
		w.Expect(server.Client.Update(w.ctx, &node)).To(Succeed())
	}
}

// annotate writes a person's value into the annotation of the FileSystem; an empty value removes it.
func (w *wreck) annotate(annotation, word string) {
	w.t.Helper()
	w.change(func(fs *v1alpha1.FileSystem) {
		if fs.Annotations == nil {
			fs.Annotations = map[string]string{}
		}
		if fs.Annotations[annotation] = word; word == "" {
			delete(fs.Annotations, annotation)
		}
	})
}

// recoveryJobs simulates the Jobs of a recovery, and returns how many have ended now.
func (w *wreck) recoveryJobs() (ended int) {
	w.t.Helper()
	var jobs batchv1.JobList
	w.Expect(server.Client.List(w.ctx, &jobs, client.InNamespace(w.namespace), client.MatchingLabels{v1alpha1.LabelRecovery: "scratch"})).To(Succeed())
	for i := range jobs.Items {
		job := &jobs.Items[i]
		if len(job.Status.Conditions) > 0 || !job.DeletionTimestamp.IsZero() {
			continue
		}
		var config spec.Recovery
		w.Expect(json.Unmarshal([]byte(job.Spec.Template.Annotations[podspec.RecoveryToldAnnotation]), &config)).To(Succeed())
		at, how := "vault", batchv1.JobComplete
		if a := job.Spec.Template.Spec.Affinity; a != nil {
			at = a.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution.NodeSelectorTerms[0].MatchFields[0].Values[0]
		}
		answer, there := w.has[at]
		w.Expect(there).To(BeTrue(), "a job comes to %s", at)
		if r := config.Restore; r != nil {
			answer = spec.RecoveryAnswer{Found: []spec.RecoveryFound{{Backup: r.Backup, Version: r.Version, ID: r.ID}}, Restored: true}
			place := at + ":" + r.Path
			if plan, filled := w.restores[place]; filled && plan != r.Plan {
				answer, how = spec.RecoveryAnswer{Found: []spec.RecoveryFound{}, Message: r.Path + " has the metadata of this FileSystem already"}, batchv1.JobFailed
			} else {
				w.restores[place] = r.Plan
				w.used[place] = fmt.Sprintf("version %d of %s%s", r.Version, config.Source.Component, r.Backup)
				if w.hive != nil {
					w.putBack(place)
				}
			}
		}
		if config.Compare != nil {
			answer = w.compares
		}
		line, err := json.Marshal(answer)
		w.Expect(err).NotTo(HaveOccurred())
		pod := &corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{
				Name: job.Name + ".pod", Namespace: w.namespace, Labels: job.Spec.Template.Labels,
				OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(job, batchv1.SchemeGroupVersion.WithKind("Job"))},
			},
			Spec: corev1.PodSpec{NodeName: w.nodes[1], Containers: []corev1.Container{{Name: "recovery", Image: "none"}}},
		}
		w.Expect(client.IgnoreAlreadyExists(server.Client.Create(w.ctx, pod))).To(Succeed())
		pod.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: "recovery", State: corev1.ContainerState{
			Terminated: &corev1.ContainerStateTerminated{Reason: "Completed", Message: string(line) + "\n", FinishedAt: metav1.Now()}}}}
		w.Expect(server.Client.Status().Update(w.ctx, pod)).To(Succeed())
		w.ended(job, how, time.Now())
		ended++
	}
	return ended
}

// never is the number of writes for an operator that is not killed.
const never = -1

// goesOn runs operators, each of which is killed after the given number of writes, until nothing more happens. It returns the number of
// writes.
func (w *wreck) goesOn(each int) (writes int) {
	w.t.Helper()
	for range 200 {
		c := server.Killable(w.t, each)
		err := w.settleWith(c)
		writes += len(c.Writes())
		if err != nil {
			w.Expect(err).To(MatchError(apiserver.ErrKilled))
			continue
		}
		if w.recoveryJobs() == 0 && len(c.Writes()) == 0 {
			return writes
		}
	}
	w.t.Fatal("it goes on for ever")
	return 0
}

func (w *wreck) recovering() metav1.Condition { return w.condition(v1alpha1.ConditionRecovering) }

func TestALostMasterServesAgainOnAnotherNodeWhenAPersonHasApprovedThePlan(t *testing.T) {
	t.Parallel()
	w := newWreck(t)
	w.goesOn(never)
	w.Expect(w.get().Status.Recovery).To(BeNil(), "nothing is recovered by itself")
	w.Expect(w.ready().Status).NotTo(Equal(metav1.ConditionTrue))

	w.annotate(v1alpha1.AnnotationRecoverMetadata, "plan")
	w.goesOn(never)
	w.Expect(w.recovering().Message).To(And(ContainSubstring(w.nodes[0]), ContainSubstring("is not Ready")), "the label is that of the dead node")
	w.label(w.nodes[1], w.nodes[2])
	w.goesOn(never)
	w.Expect(w.recovering()).To(And(HaveField("Reason", v1alpha1.ReasonRecoveryRefused), HaveField("Message", ContainSubstring("give that label to the one node"))))
	w.label(w.nodes[1])
	w.goesOn(never)
	plan := w.get().Status.Recovery
	w.Expect(plan).NotTo(BeNil())
	w.Expect(plan.From).To(Equal("metalogger-" + w.nodes[1]))
	w.Expect(plan.Candidates).To(ConsistOf(
		And(HaveField("Name", "metalogger-"+w.nodes[1]), HaveField("Version", int64(500)), HaveField("Message", "")),
		And(HaveField("Name", "metalogger-"+w.nodes[2]), HaveField("Message", ContainSubstring("lies on another node"))),
		And(HaveField("Name", "metalogger-"+w.nodes[0]), HaveField("Message", ContainSubstring("not Ready"))),
		And(HaveField("Name", "master-"+w.nodes[0]), HaveField("Message", ContainSubstring("not Ready"))),
		And(HaveField("Name", "backup-in-vault-20261123-030000"), HaveField("Message", "")),
		And(HaveField("Name", "backup-in-vault-20261122-030000"), HaveField("Message", "")),
	))
	w.Expect(w.recovering()).To(And(HaveField("Status", metav1.ConditionFalse), HaveField("Reason", v1alpha1.ReasonRecoveryApproval),
		HaveField("Message", And(ContainSubstring("changed after that"), ContainSubstring("=%s", plan.PlanHash)))))
	w.Expect(w.restores).To(BeEmpty())
	w.Expect(w.get().Status.Metadata.Node).To(Equal(w.nodes[0]))

	w.annotate(v1alpha1.AnnotationRecoverMetadata, "0badc0de")
	w.goesOn(never)
	w.Expect(w.recovering()).To(And(HaveField("Reason", v1alpha1.ReasonRecoveryRefused), HaveField("Message", ContainSubstring("0badc0de is not the hash of the plan"))))
	w.Expect(w.restores).To(BeEmpty())

	w.annotate(v1alpha1.AnnotationRecoverMetadata, plan.PlanHash)
	w.goesOn(never)
	w.Expect(w.restores).To(Equal(map[string]string{w.nodes[1] + ":/data/meta": plan.PlanHash}))
	m := w.get().Status.Metadata
	w.Expect(m).To(And(HaveField("Node", w.nodes[1]), HaveField("Directory", "/data/meta"), HaveField("Initialized", Not(BeNil())),
		HaveField("Recovered", And(HaveField("PlanHash", plan.PlanHash), HaveField("Version", int64(500)), HaveField("PreviousNode", w.nodes[0])))))
	w.Expect(w.masterMayInitialize()).To(BeFalse(), "it finds its metadata, or refuses to start")
	for _, set := range w.sets() {
		if set.Labels[v1alpha1.LabelComponent] == "master" {
			w.Expect(w.nodesOf(set)).To(ConsistOf(w.nodes[1]))
		}
	}
	for _, pod := range w.pods() {
		if pod.Spec.NodeName != w.nodes[0] {
			w.Expect(w.finds(&pod)).To(BeTrue(), "%s was told of the new master", pod.Name)
		}
	}
	w.Expect(w.condition(v1alpha1.ConditionReady).Reason).To(Or(Equal(v1alpha1.ReasonDegradedService), Equal(v1alpha1.ReasonHealthy)), w.ready().Message)
	w.Expect(w.recovering().Reason).To(Equal(v1alpha1.ReasonMetadataRecovered))

	w.dead[w.nodes[0]] = false
	w.nodeIs(w.nodes[0], corev1.ConditionTrue)
	w.label(w.nodes[0])
	w.annotate(v1alpha1.AnnotationRecoverMetadata, "")
	w.goesOn(never)
	w.Expect(w.get().Status.Metadata).To(Equal(m), "the old master is back, with its label, and is not started")
	for _, pod := range w.pods() {
		w.Expect(component(&pod) == "master" && pod.Spec.NodeName == w.nodes[0]).To(BeFalse())
	}
	w.Expect(w.ready().Status).To(Equal(metav1.ConditionTrue), w.ready().Message)
	w.Expect(w.recovering().Type).To(BeEmpty())
	w.annotate(v1alpha1.AnnotationRecoverMetadata, "plan")
	w.goesOn(never)
	w.Expect(w.recovering().Message).To(ContainSubstring("the master answers"))
	w.Expect(w.restores).To(HaveLen(1))
}

func TestAPersonChoosesBetweenTwoEqualCandidatesForThePlan(t *testing.T) {
	t.Parallel()
	w := newWreck(t)
	w.has["vault"].Found[0].Version = 500
	w.label(w.nodes[1])
	w.annotate(v1alpha1.AnnotationRecoverMetadata, "plan")
	w.goesOn(never)
	w.Expect(w.recovering()).To(And(HaveField("Reason", v1alpha1.ReasonRecoveryChoice),
		HaveField("Message", And(ContainSubstring("metalogger-"+w.nodes[1]), ContainSubstring("backup-in-vault-20261123-030000")))))
	w.Expect(w.get().Status.Recovery.PlanHash).To(BeEmpty())

	w.annotate(v1alpha1.AnnotationRecoverFrom, "metalogger-"+w.nodes[2])
	w.goesOn(never)
	w.Expect(w.recovering().Message).To(ContainSubstring("which can't be used"))
	w.annotate(v1alpha1.AnnotationRecoverFrom, "metalogger-"+w.nodes[1])
	w.goesOn(never)
	one := w.get().Status.Recovery.PlanHash
	w.annotate(v1alpha1.AnnotationRecoverFrom, "backup-in-vault-20261123-030000")
	w.goesOn(never)
	other := w.get().Status.Recovery.PlanHash
	w.Expect(other).NotTo(Or(BeEmpty(), Equal(one)))
	w.annotate(v1alpha1.AnnotationRecoverMetadata, one)
	w.goesOn(never)
	w.Expect(w.recovering()).To(And(HaveField("Reason", v1alpha1.ReasonRecoveryRefused), HaveField("Message", ContainSubstring("is not the hash of the plan"))))
	w.annotate(v1alpha1.AnnotationRecoverMetadata, other)
	w.goesOn(never)
	w.Expect(w.get().Status.Metadata.Recovered).To(HaveField("From", "backup-in-vault-20261123-030000"))
}

func TestALostMasterServesAgainFromABackupThatAPersonHasChosen(t *testing.T) {
	t.Parallel()
	w := newWreck(t)
	const older = "backup-in-vault-20261122-030000"
	w.label(w.nodes[1])
	w.annotate(v1alpha1.AnnotationRecoverMetadata, "plan")
	w.annotate(v1alpha1.AnnotationRecoverFrom, older)
	w.goesOn(never)
	plan := w.get().Status.Recovery
	w.Expect(plan.Candidates).To(ContainElements(
		And(HaveField("Name", "metalogger-"+w.nodes[1]), HaveField("Version", int64(500))),
		And(HaveField("Name", older), HaveField("Version", int64(300)), HaveField("PersistentVolumeClaim", "vault"))))
	w.Expect(plan.From).To(Equal(older))
	w.Expect(w.recovering().Message).To(And(ContainSubstring("made again from "+older+" (version 300 of 2026-11-22T03:00:00Z)"),
		ContainSubstring("metalogger-"+w.nodes[1]+" (version 500 of 2026-11-23T12:00:00Z) has 200 changes more: it was not chosen")))
	w.Expect(w.restores).To(BeEmpty())

	w.annotate(v1alpha1.AnnotationRecoverMetadata, plan.PlanHash)
	w.goesOn(never)
	w.Expect(w.used).To(Equal(map[string]string{w.nodes[1] + ":/data/meta": "version 300 of 20261122-030000"}))
	w.Expect(w.get().Status.Metadata).To(And(HaveField("Node", w.nodes[1]), HaveField("Recovered", HaveValue(And(HaveField("From", older),
		HaveField("Version", int64(300)), HaveField("PlanHash", plan.PlanHash), HaveField("DataTime.Time", BeTemporally("==", time.Date(2026, 11, 22, 3, 0, 0, 0, time.UTC))))))))
	w.Expect(w.masterMayInitialize()).To(BeFalse())
	w.Expect(w.ready().Reason).To(Equal(v1alpha1.ReasonDegradedService), w.ready().Message)
}

// recovers runs a recovery to a node with operators that are killed, both before there is a plan and after its approval. It returns the
// number of writes in both phases.
func (w *wreck) recovers(node, directory string, candidates, each int) (writes [2]int) {
	w.t.Helper()
	w.label(node)
	w.settle()
	w.annotate(v1alpha1.AnnotationRecoverMetadata, "plan")
	writes[0] = w.goesOn(each)
	plan := w.get().Status.Recovery
	w.Expect(plan).NotTo(BeNil())
	w.Expect(plan.Candidates).To(HaveLen(candidates))
	w.annotate(v1alpha1.AnnotationRecoverMetadata, plan.PlanHash)
	writes[1] = w.goesOn(each)
	w.Expect(w.restores).To(Equal(map[string]string{node + ":" + directory: plan.PlanHash}))
	m := w.get().Status.Metadata
	w.Expect(m.Node).To(Equal(node))
	w.Expect(m.Recovered.PlanHash).To(Equal(plan.PlanHash))
	var jobs batchv1.JobList
	w.Expect(server.Client.List(w.ctx, &jobs, client.InNamespace(w.namespace), client.MatchingLabels{v1alpha1.LabelRecovery: "scratch"})).
		To(Succeed())
	w.Expect(slices.DeleteFunc(jobs.Items, func(j batchv1.Job) bool { return !j.DeletionTimestamp.IsZero() })).To(BeEmpty())
	return writes
}

// killedInEach runs a recovery whose operators are killed after each write, and checks the least number of writes in both phases.
func killedInEach(t *testing.T, least [2]int, through func(t *testing.T, each int) [2]int) {
	t.Helper()
	for _, each := range inEach {
		t.Run(fmt.Sprintf("after each %d", each), func(t *testing.T) {
			t.Parallel()
			for phase, count := range through(t, each) {
				NewWithT(t).Expect(count).To(BeNumerically(">=", least[phase]))
			}
		})
	}
}

func TestARecoveryEndsInTheSameWhateverWriteTheOperatorIsKilledAfter(t *testing.T) {
	t.Parallel()
	for from, used := range map[string]string{
		"":                                "version 500 of metalogger",
		"backup-in-vault-20261122-030000": "version 300 of 20261122-030000",
	} {
		t.Run(cmp.Or(from, "metalogger"), func(t *testing.T) {
			t.Parallel()
			killedInEach(t, [2]int{5, 8}, func(t *testing.T, each int) [2]int {
				t.Helper()
				w := newWreck(t)
				defer w.forget()
				if from != "" {
					w.annotate(v1alpha1.AnnotationRecoverFrom, from)
				}
				writes := w.recovers(w.nodes[1], "/data/meta", 6, each)
				w.Expect(w.used).To(Equal(map[string]string{w.nodes[1] + ":/data/meta": used}))
				w.Expect(w.ready().Reason).To(Equal(v1alpha1.ReasonDegradedService), w.ready().Message)
				return writes
			})
		})
	}
}

func TestALostMasterOnADiskGetsADiskOfTheNewNodeFirst(t *testing.T) {
	t.Parallel()
	w := newWreck(t, func(w *world) func(fs *v1alpha1.FileSystem) {
		for _, node := range w.nodes {
			w.disk(node, "meta")
		}
		return func(fs *v1alpha1.FileSystem) {
			fs.Spec.MetadataServers.Targets = v1alpha1.TargetsSpec{Select: &v1alpha1.DeviceSelector{IDGlobs: []v1alpha1.Glob{"*-meta"}, CountPerNode: 1}}
			fs.Spec.Provisioning.FormatPolicy = v1alpha1.FormatIfBlank
		}
	})
	targets := func() (names []string) {
		var list v1alpha1.StorageTargetList
		w.Expect(server.Client.List(w.ctx, &list, client.InNamespace(w.namespace))).To(Succeed())
		for _, t := range list.Items {
			names = append(names, t.Name)
		}
		return names
	}
	old := w.get().Status.Metadata
	w.Expect(targets()).To(ConsistOf(old.Target))
	w.label(w.nodes[1])
	w.goesOn(never)
	w.Expect(targets()).To(ConsistOf(old.Target), "a label alone takes no disk")

	w.annotate(v1alpha1.AnnotationRecoverMetadata, "plan")
	w.goesOn(never)
	w.Expect(targets()).To(And(HaveLen(2), ContainElement(old.Target)))
	plan := w.get().Status.Recovery
	w.Expect(plan).NotTo(BeNil(), w.recovering().Message)
	w.Expect(plan.Target).To(And(Not(Equal(old.Target)), BeElementOf(targets())))
	w.Expect(plan.Directory).To(Equal(spec.TargetPath(w.namespace, "scratch", plan.Target) + "/master"))
	w.annotate(v1alpha1.AnnotationRecoverMetadata, plan.PlanHash)
	w.goesOn(never)
	w.Expect(w.restores).To(Equal(map[string]string{w.nodes[1] + ":" + plan.Directory: plan.PlanHash}))
	w.Expect(w.get().Status.Metadata).To(And(HaveField("Node", w.nodes[1]), HaveField("Target", plan.Target), HaveField("Directory", plan.Directory)))
	w.Expect(w.masterMayInitialize()).To(BeFalse())
	w.Expect(w.get().Status.Summary.Servers).NotTo(BeEmpty())
	w.Expect(w.ready().Status).To(Equal(metav1.ConditionTrue), w.ready().Message)
	for node, n := range w.fileSystemNodes() {
		w.Expect(n.Spec.Facts).To(And(HaveField("MetadataNode", w.nodes[1]), HaveField("MetadataTarget", plan.Target)), node)
		has := slices.ContainsFunc(n.Spec.Members, func(m v1alpha1.NodeMember) bool { return m.Role == v1alpha1.RoleMetadata })
		w.Expect(has).To(Equal(node == w.nodes[1]), "node %s is told of a master", node)
	}

	w.dead[w.nodes[0]] = false
	w.nodeIs(w.nodes[0], corev1.ConditionTrue)
	w.label(w.nodes[0])
	w.goesOn(never)
	w.Expect(w.get().Status.Metadata.Target).To(Equal(plan.Target), "the old disk is back, and nothing runs on it")
	w.Expect(targets()).To(ContainElement(old.Target), "it is left alone")
	w.Expect(w.ready().Status).To(Equal(metav1.ConditionTrue), w.ready().Message)
}

func TestALostMasterOnADiskGetsAnotherDiskOfTheSameNodeAndNoThirdOne(t *testing.T) {
	t.Parallel()
	w := newWreck(t, func(w *world) func(fs *v1alpha1.FileSystem) {
		for _, node := range w.nodes {
			w.disk(node, "meta")
		}
		return func(fs *v1alpha1.FileSystem) {
			fs.Spec.MetadataServers.Targets = v1alpha1.TargetsSpec{Select: &v1alpha1.DeviceSelector{IDGlobs: []v1alpha1.Glob{"*-meta*"}, CountPerNode: 1}}
			fs.Spec.Provisioning.FormatPolicy = v1alpha1.FormatIfBlank
		}
	})
	node, old := w.nodes[0], w.get().Status.Metadata
	// The node is up, and its disk is gone.
	w.dead[node], w.alive = false, false
	w.nodeIs(node, corev1.ConditionTrue)
	w.disks[0].dead, w.disks[0].mounted = true, false
	w.inventory(node)
	for _, pod := range w.pods() {
		if component(&pod) == "master" {
			w.Expect(server.Client.Delete(w.ctx, &pod, client.GracePeriodSeconds(0))).To(Succeed())
		}
	}
	w.has[node] = spec.RecoveryAnswer{Found: []spec.RecoveryFound{}, Message: "there is nothing"}
	names := func() (names []string) {
		for _, target := range w.targets() {
			names = append(names, target.Name)
		}
		return names
	}
	w.annotate(v1alpha1.AnnotationRecoverMetadata, "plan")
	w.goesOn(never)
	w.Expect(w.recovering().Message).To(ContainSubstring("chooses none on node %s, besides the one that is lost", node))
	w.Expect(names()).To(ConsistOf(old.Target))

	w.disk(node, "meta-new")
	w.disk(node, "meta-spare")
	w.goesOn(never)
	plan := w.get().Status.Recovery
	w.Expect(plan).NotTo(BeNil(), w.recovering().Message)
	w.Expect(names()).To(ConsistOf(old.Target, plan.Target))
	w.Expect(plan.From).To(Equal("backup-in-vault-20261123-030000"))
	w.annotate(v1alpha1.AnnotationRecoverMetadata, plan.PlanHash)
	w.goesOn(never)
	w.Expect(w.restores).To(Equal(map[string]string{node + ":" + plan.Directory: plan.PlanHash}))
	w.Expect(w.get().Status.Metadata).To(And(HaveField("Node", node), HaveField("Target", plan.Target), HaveField("Directory", plan.Directory),
		HaveField("Recovered.PreviousNode", node)))

	w.alive = true
	w.goesOn(never)
	w.annotate(v1alpha1.AnnotationRecoverMetadata, "")
	w.goesOn(never)
	w.Expect(names()).To(ConsistOf(old.Target, plan.Target), "the lost one is left alone, and no other takes its place")
	w.Expect(w.condition(v1alpha1.ConditionReady).Reason).To(Or(Equal(v1alpha1.ReasonDegradedService), Equal(v1alpha1.ReasonHealthy)), w.ready().Message)
	w.Expect(w.masterMayInitialize()).To(BeFalse())
	for _, m := range w.fileSystemNodes()[node].Spec.Members {
		if m.Role == v1alpha1.RoleMetadata {
			w.Expect(m.Targets).To(ConsistOf(HaveField("Name", plan.Target)))
		}
	}
}
