package metadatajobs_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"parallelfs.dev/operator/api/v1alpha1"
	"parallelfs.dev/operator/internal/backend"
	"parallelfs.dev/operator/internal/backend/shared/metadatajobs"
	"parallelfs.dev/operator/internal/node/spec"
)

const metadataID = "6B046567398B0398"

// lost returns a filesystem whose master on n1 is gone. The new place of the metadata is n2, which has a follower's copy and backups. n2-b
// has the same.
func lost() metadatajobs.RecoveryView {
	fs := &v1alpha1.FileSystem{ObjectMeta: metav1.ObjectMeta{Namespace: "storage", Name: "scratch", UID: "1b4e28ba", Annotations: map[string]string{
		v1alpha1.AnnotationRecoverMetadata: v1alpha1.RecoverPlan,
	}}}
	fs.Spec.MetadataServers.NodeSelector = v1alpha1.NodeSelector{"metadata": ""}
	fs.Spec.MetadataServers.Targets.Directories = []v1alpha1.DirectoryPath{"/data/meta"}
	fs.Status.Metadata = &v1alpha1.MetadataRecord{Node: "n1", Directory: "/data/meta", Initialized: new(metav1.Now())}
	source := func(kind v1alpha1.RecoveryKind, name, node string) backend.RecoverySource {
		return backend.RecoverySource{Kind: kind, Name: name, Node: node, Directory: "/d"}
	}
	return metadatajobs.RecoveryView{
		Place: backend.MetadataPlace{
			Role: v1alpha1.RoleMetadata, NodeSelector: fs.Spec.MetadataServers.NodeSelector, Targets: fs.Spec.MetadataServers.Targets, Component: "master",
			Field: "spec.metadataServers", Noun: "the metadata",
		},
		FileSystem: fs, Now: time.Date(2026, 11, 23, 13, 0, 0, 0, time.UTC), Conflict: func(v1alpha1.MetadataRecord) string { return "" },
		Nodes: []backend.Node{{Name: "n1"}, {Name: "n2", IP: "10.0.0.2", Ready: true, Labels: map[string]string{"metadata": ""}}, {Name: "n2-b", IP: "10.0.0.3", Ready: true}},
		Sources: []backend.RecoverySource{
			source(v1alpha1.RecoveryServer, "master-n1", "n1"), source(v1alpha1.RecoveryFollower, "follower-n2", "n2"),
			source(v1alpha1.RecoveryFollower, "follower-n2-b", "n2-b"), source(v1alpha1.RecoveryBackup, "backup-at-n2", "n2"),
			source(v1alpha1.RecoveryBackup, "backup-at-n2-b", "n2-b"),
		},
	}
}

// found returns the answers of the places, by the name of the source.
func found() map[string][]spec.RecoveryFound {
	one := func(backup string, version int64) []spec.RecoveryFound {
		return []spec.RecoveryFound{{Backup: backup, Version: version, ID: metadataID, Time: "2026-11-23T12:00:00Z"}}
	}
	return map[string][]spec.RecoveryFound{
		"follower-n2": one("", 500), "follower-n2-b": one("", 512), "backup-at-n2": one("20261123-030000", 400), "backup-at-n2-b": one("20261123-040000", 450),
	}
}

// looked runs passes until all places have answered, and returns the view after that is recorded.
func looked(
	t *testing.T, v metadatajobs.RecoveryView, answers map[string][]spec.RecoveryFound,
) (metadatajobs.RecoveryView, metadatajobs.RecoveryDecision) {
	t.Helper()
	g := NewWithT(t)
	d := metadatajobs.DecideRecovery(v)
	g.Expect(d.Condition.Reason).To(Equal(v1alpha1.ReasonRecoveryLooking), d.Condition.Message)
	g.Expect(d.Start).To(BeEmpty(), "nothing is started before it is on record")
	v.Recorded = d.Recovery
	d = metadatajobs.DecideRecovery(v)
	for _, request := range d.Start {
		g.Expect(request.Restore).To(BeNil())
		v.Jobs = append(v.Jobs, metadatajobs.RecoveryJobFacts{Name: request.Job, Ended: true, Answer: &spec.RecoveryAnswer{Found: answers[request.Source.Name], Message: "there is nothing"}})
	}
	d = metadatajobs.DecideRecovery(v)
	v.Recorded, v.Jobs = d.Recovery, nil
	return v, d
}

// word returns the view after a person has annotated the FileSystem.
func word(v metadatajobs.RecoveryView, annotation, word string) metadatajobs.RecoveryView {
	v.FileSystem = v.FileSystem.DeepCopy()
	v.FileSystem.Annotations[annotation] = word
	return v
}

func TestAPlanNamesWhatWouldBeUsedAndWhatWouldBeLost(t *testing.T) {
	g := NewWithT(t)
	_, d := looked(t, lost(), found())
	g.Expect(d.Recovery.From).To(Equal("follower-n2"))
	g.Expect(d.Recovery.Candidates).To(HaveLen(5))
	g.Expect(d.Recovery.Candidates[0]).To(And(HaveField("Name", "follower-n2-b"), HaveField("Message", ContainSubstring("lies on another node"))))
	g.Expect(d.Recovery.Approved).To(BeEmpty())
	g.Expect(d.Condition).To(And(HaveField("Reason", v1alpha1.ReasonRecoveryApproval), HaveField("Message", And(
		ContainSubstring("from follower-n2 (version 500 of 2026-11-23T12:00:00Z), in /data/meta on node n2"),
		ContainSubstring("follower-n2-b (version 512 of 2026-11-23T12:00:00Z) has 12 changes more"),
		ContainSubstring("Node n1 is away: make sure that it is off"),
		ContainSubstring("recover-metadata="+d.Recovery.PlanHash)))))
	g.Expect(d.Metadata).To(BeNil())
}

func TestARecoveryIsRefusedWithASentence(t *testing.T) {
	for name, c := range map[string]struct {
		change  func(v *metadatajobs.RecoveryView)
		message string
	}{
		"it never ran": {func(v *metadatajobs.RecoveryView) { v.FileSystem.Status.Metadata.Initialized = nil }, "never ran"},
		"it is another one over disks of before": {func(v *metadatajobs.RecoveryView) {
			v.FileSystem.Status.Metadata.Initialized, v.Expected = nil, true
		}, "which name that one"},
		"it has no place at all": {func(v *metadatajobs.RecoveryView) { v.FileSystem.Status.Metadata = nil }, "never ran"},
		"its server answers":     {func(v *metadatajobs.RecoveryView) { v.Serves = "the master answers" }, "the master answers"},
		"no node is named":       {func(v *metadatajobs.RecoveryView) { v.Nodes[1].Labels = nil }, "matches no node"},
		"two nodes are named":    {func(v *metadatajobs.RecoveryView) { v.Nodes[2].Labels = map[string]string{"metadata": ""} }, "matches n2, n2-b"},
		"the new node is away":   {func(v *metadatajobs.RecoveryView) { v.Nodes[1].Ready = false }, "node n2, which spec.metadataServers.nodeSelector matches, is not Ready"},
		"another filesystem is there": {func(v *metadatajobs.RecoveryView) {
			v.Conflict = func(v1alpha1.MetadataRecord) string { return "FileSystem storage/home keeps data in /data/meta" }
		}, "storage/home"},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			v := lost()
			c.change(&v)
			v.Jobs = []metadatajobs.RecoveryJobFacts{{Name: "from before"}}
			d := metadatajobs.DecideRecovery(v)
			g.Expect(d.Condition).To(And(HaveField("Reason", v1alpha1.ReasonRecoveryRefused), HaveField("Message", ContainSubstring(c.message))))
			g.Expect(d.Recovery).To(BeNil())
			g.Expect(d.Remove).To(ConsistOf("from before"))
		})
	}
}

func TestNothingGoesOnWithoutAnApproval(t *testing.T) {
	g := NewWithT(t)
	v, d := looked(t, lost(), found())
	hash := d.Recovery.PlanHash
	g.Expect(metadatajobs.DecideRecovery(v).Recovery.Approved).To(BeEmpty())

	wrong := metadatajobs.DecideRecovery(word(v, v1alpha1.AnnotationRecoverMetadata, "0badc0de"))
	g.Expect(wrong.Condition).To(And(HaveField("Reason", v1alpha1.ReasonRecoveryRefused), HaveField("Message", ContainSubstring("0badc0de is not the hash"))))
	g.Expect(wrong.Recovery.Approved).To(BeEmpty())

	v = word(v, v1alpha1.AnnotationRecoverMetadata, hash)
	approved := metadatajobs.DecideRecovery(v)
	g.Expect(approved.Recovery.Approved).To(Equal(hash))
	g.Expect(approved.Start).To(BeEmpty(), "nothing is started before the approval is on record")
	v.Recorded = approved.Recovery
	starts := metadatajobs.DecideRecovery(v)
	g.Expect(starts.Start).To(ConsistOf(And(HaveField("Source.Name", "follower-n2"), HaveField("Restore", HaveValue(Equal(backend.RestoreRequest{
		Plan: hash, Version: 500, ID: metadataID, Node: "n2", Directory: "/data/meta"}))))))
	g.Expect(starts.Condition.Reason).To(Equal(v1alpha1.ReasonRestoring))

	took := v
	took.FileSystem = v.FileSystem.DeepCopy()
	delete(took.FileSystem.Annotations, v1alpha1.AnnotationRecoverMetadata)
	took.Jobs = []metadatajobs.RecoveryJobFacts{{Name: starts.Start[0].Job}}
	back := metadatajobs.DecideRecovery(took)
	g.Expect(back.Recovery).To(BeNil())
	g.Expect(back.Remove).To(ConsistOf(starts.Start[0].Job))
	g.Expect(back.Condition.Reason).To(BeEmpty())

	v.Jobs = []metadatajobs.RecoveryJobFacts{{Name: starts.Start[0].Job, Ended: true, Answer: &spec.RecoveryAnswer{Found: []spec.RecoveryFound{}, Message: "changes are missing"}}}
	failed := metadatajobs.DecideRecovery(v)
	g.Expect(failed.Condition).To(And(HaveField("Reason", v1alpha1.ReasonRecoveryFailed), HaveField("Message", ContainSubstring("changes are missing"))))
	g.Expect(failed.Metadata).To(BeNil())
	g.Expect(metadatajobs.DecideRecovery(word(v, v1alpha1.AnnotationRecoverMetadata, v1alpha1.RecoverPlan)).Condition.Reason).To(Equal(v1alpha1.ReasonRecoveryLooking))

	v.Jobs[0].Answer = &spec.RecoveryAnswer{Restored: true, Found: []spec.RecoveryFound{{Version: 501, ID: metadataID}}}
	served := v
	served.Serves = "the master answers"
	g.Expect(metadatajobs.DecideRecovery(served).Metadata).To(BeNil(), "the old one has come back meanwhile")
	over := metadatajobs.DecideRecovery(v)
	g.Expect(over.Recovery).To(BeNil())
	g.Expect(over.Metadata).To(HaveValue(And(HaveField("Node", "n2"), HaveField("Directory", "/data/meta"), HaveField("Initialized", Equal(v.FileSystem.Status.Metadata.Initialized)),
		HaveField("Recovered", HaveValue(And(HaveField("Version", int64(501)), HaveField("PreviousNode", "n1"), HaveField("PlanHash", hash)))))))
	v.FileSystem.Status.Metadata, v.Recorded = over.Metadata, nil
	v.Serves = "the master answers"
	g.Expect(metadatajobs.DecideRecovery(v)).To(And(HaveField("Condition.Reason", v1alpha1.ReasonMetadataRecovered), HaveField("Recovery", BeNil()), HaveField("Remove", HaveLen(1))))
}

func TestAPlanThatIsOldIsMadeAgainAndItsApprovalIsRefusedWhenThereIsSomethingElse(t *testing.T) {
	g := NewWithT(t)
	v, d := looked(t, lost(), found())
	hash := d.Recovery.PlanHash
	later := word(v, v1alpha1.AnnotationRecoverMetadata, hash)
	later.Now = v.Now.Add(16 * time.Minute)

	same, d := looked(t, later, found())
	g.Expect(d.Recovery.PlanHash).To(Equal(hash))
	g.Expect(d.Recovery.Approved).To(BeEmpty(), "it is on record first")
	g.Expect(metadatajobs.DecideRecovery(same).Recovery.Approved).To(Equal(hash))

	fewer := found()
	fewer["follower-n2"] = nil
	changed, d := looked(t, later, fewer)
	g.Expect(d.Recovery.From).To(Equal("backup-at-n2-20261123-030000"))
	refused := metadatajobs.DecideRecovery(changed)
	g.Expect(refused.Recovery.Approved).To(BeEmpty())
	g.Expect(refused.Condition).To(And(HaveField("Reason", v1alpha1.ReasonRecoveryRefused), HaveField("Message", ContainSubstring("what there is has changed"))))

	moved := later
	moved.Now = v.Now
	moved.Nodes[1].Labels, moved.Nodes[2].Labels = nil, map[string]string{"metadata": ""}
	_, d = looked(t, moved, found())
	g.Expect(d.Recovery).To(And(HaveField("Node", "n2-b"), HaveField("From", "follower-n2-b"), HaveField("Approved", "")))
}

func TestABackupIsFoundAtItsPlaceWhateverTheNameOfANodeIs(t *testing.T) {
	g := NewWithT(t)
	v := lost()
	v.Nodes[1].Labels, v.Nodes[2].Labels = nil, map[string]string{"metadata": ""}
	v, d := looked(t, word(v, v1alpha1.AnnotationRecoverFrom, "backup-at-n2-b-20261123-040000"), found())
	v = word(v, v1alpha1.AnnotationRecoverMetadata, d.Recovery.PlanHash)
	v.Recorded = metadatajobs.DecideRecovery(v).Recovery
	g.Expect(metadatajobs.DecideRecovery(v).Start).To(ConsistOf(And(HaveField("Source.Name", "backup-at-n2-b"), HaveField("Restore.Backup", "20261123-040000"))))
}

func TestTwoThatAreAlikeOrOfTwoFilesystemsNeedAChoiceThatThePlanIsOf(t *testing.T) {
	alike, others := found(), found()
	alike["backup-at-n2"][0].Version = 500
	others["backup-at-n2"][0].ID = "0000000000000001"
	for name, answers := range map[string]map[string][]spec.RecoveryFound{"alike": alike, "of two": others} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			v, d := looked(t, lost(), answers)
			g.Expect(d.Condition.Reason).To(Equal(v1alpha1.ReasonRecoveryChoice), d.Condition.Message)
			g.Expect(d.Recovery.PlanHash).To(BeEmpty())
			g.Expect(metadatajobs.DecideRecovery(word(v, v1alpha1.AnnotationRecoverMetadata, "")).Recovery.Approved).To(BeEmpty(), "no word is not the hash of no plan")
			one := metadatajobs.DecideRecovery(word(v, v1alpha1.AnnotationRecoverFrom, "follower-n2"))
			other := metadatajobs.DecideRecovery(word(v, v1alpha1.AnnotationRecoverFrom, "backup-at-n2-20261123-030000"))
			g.Expect(one.Condition.Reason).To(Equal(v1alpha1.ReasonRecoveryApproval))
			g.Expect(one.Recovery.PlanHash).NotTo(Or(BeEmpty(), Equal(other.Recovery.PlanHash)))
			g.Expect(metadatajobs.DecideRecovery(word(v, v1alpha1.AnnotationRecoverFrom, "follower-n2-b")).Condition).To(And(
				HaveField("Reason", v1alpha1.ReasonRecoveryRefused), HaveField("Message", ContainSubstring("which can't be used"))))
		})
	}
}

func TestWhereAFilesystemCountsNoChangesTheNewestByItsTimeIsUsedAndWhatJoinedSinceIsNamed(t *testing.T) {
	g := NewWithT(t)
	v := lost()
	v.Place.Field, v.Place.Noun = "spec.service", "the store"
	v.Sources = []backend.RecoverySource{{Kind: v1alpha1.RecoveryBackup, Name: "backup-in-vault", Claim: "vault", Directory: "d"}}
	answers := func(older, newer string) map[string][]spec.RecoveryFound {
		return map[string][]spec.RecoveryFound{"backup-in-vault": {
			{Backup: "20261122-030000", Time: older, Lacks: "target 3, target 4"}, {Backup: "20261123-030000", Time: newer, Lacks: "target 4"},
		}}
	}
	on, d := looked(t, v, answers("2026-11-22T03:00:05Z", "2026-11-23T03:00:05Z"))
	g.Expect(d.Recovery.From).To(Equal("backup-in-vault-20261123-030000"))
	g.Expect(d.Recovery.Candidates).To(HaveExactElements(HaveField("Lacks", "target 4"), HaveField("Lacks", "target 3, target 4")))
	g.Expect(d.Condition).To(And(HaveField("Reason", v1alpha1.ReasonRecoveryApproval), HaveField("Message", And(
		HavePrefix("The store would be made again from backup-in-vault-20261123-030000 (of 2026-11-23T03:00:05Z), in /data/meta on node n2."),
		ContainSubstring("On record and not in it is target 4.")))))
	on.Place.Beware = "Look at the groups."
	g.Expect(metadatajobs.DecideRecovery(on).Condition.Message).To(ContainSubstring("is target 4. Look at the groups. Node n1 is away"))
	older := metadatajobs.DecideRecovery(word(on, v1alpha1.AnnotationRecoverFrom, "backup-in-vault-20261122-030000"))
	g.Expect(older.Condition.Message).To(And(
		ContainSubstring("backup-in-vault-20261123-030000 (of 2026-11-23T03:00:05Z) is newer: it was not chosen"),
		ContainSubstring("On record and not in it is target 3, target 4.")))
	g.Expect(older.Recovery.PlanHash).NotTo(Equal(d.Recovery.PlanHash))

	_, d = looked(t, v, answers("2026-11-23T03:00:05Z", "2026-11-23T03:00:05Z"))
	g.Expect(d.Condition).To(And(HaveField("Reason", v1alpha1.ReasonRecoveryChoice),
		HaveField("Message", ContainSubstring("they are of the same time"))))
	one := spec.RecoveryFound{Backup: "20261123-030000", Time: "2026-11-23T03:00:05Z"}
	_, lacksLess := looked(t, v, map[string][]spec.RecoveryFound{"backup-in-vault": {one}})
	one.Lacks = "target 4"
	_, lacksMore := looked(t, v, map[string][]spec.RecoveryFound{"backup-in-vault": {one}})
	g.Expect(lacksMore.Recovery.PlanHash).NotTo(Equal(lacksLess.Recovery.PlanHash), "what is lost is a part of what is approved")

	_, d = looked(t, v, map[string][]spec.RecoveryFound{"backup-in-vault": {
		{Backup: "20261124-030000", Time: "2026-11-24T03:00:05Z", Message: "it is damaged"}, one,
	}})
	g.Expect(d.Recovery.From).To(Equal("backup-in-vault-20261123-030000"))
	g.Expect(d.Condition.Message).To(ContainSubstring("backup-in-vault-20261124-030000 (of 2026-11-24T03:00:05Z) is newer: it is damaged"))

	v.Nodes[1].Ready = false
	g.Expect(metadatajobs.DecideRecovery(v).Condition.Message).To(
		ContainSubstring("node n2, which spec.service.nodeSelector matches, is not Ready"))
}

func TestARecoveryWithoutAUsableCopyIsReported(t *testing.T) {
	g := NewWithT(t)
	_, d := looked(t, lost(), nil)
	g.Expect(d.Condition).To(And(HaveField("Reason", v1alpha1.ReasonRecoveryRefused), HaveField("Message", And(
		ContainSubstring("nothing that the metadata on node n2 could be made from"), ContainSubstring("follower-n2 (there is nothing)")))))
}

func TestMessagesOfPodsFitIntoTheStatus(t *testing.T) {
	g := NewWithT(t)
	long := strings.Repeat("ö", 1000)
	many := map[string][]spec.RecoveryFound{"follower-n2": {{Version: -1, ID: long, Time: long}}}
	for i := range 80 {
		many["backup-at-n2"] = append(many["backup-at-n2"], spec.RecoveryFound{Backup: fmt.Sprintf("20261123-0300%02d", i/2), Version: 3, ID: long})
	}
	many["backup-at-n2-b"] = []spec.RecoveryFound{{Backup: long}}
	_, d := looked(t, lost(), many)
	g.Expect(d.Recovery.Candidates).To(HaveLen(10))
	names := map[string]bool{}
	for _, c := range d.Recovery.Candidates {
		names[c.Name] = true
	}
	g.Expect(names).To(HaveLen(10), "the API server takes each name once")
	g.Expect(d.Recovery.Candidates).To(HaveEach(HaveField("ID", WithTransform(func(id string) int { return len(id) }, BeNumerically("<=", 32)))))
	g.Expect(d.Recovery.Candidates).To(HaveEach(HaveField("Version", BeNumerically(">=", 0))))
}

func TestABackupThatAPersonNamesIsACandidateHoweverManyAreNewer(t *testing.T) {
	g := NewWithT(t)
	many := map[string][]spec.RecoveryFound{}
	for i := range 30 {
		many["backup-at-n2"] = append(many["backup-at-n2"], spec.RecoveryFound{Backup: fmt.Sprintf("202611%02d-030000", i+1), Version: int64(i + 1)})
	}
	v := lost()
	_, d := looked(t, v, many)
	g.Expect(d.Recovery.Candidates).To(And(HaveLen(10), Not(ContainElement(HaveField("Name", "backup-at-n2-20261103-030000")))))

	v.FileSystem.Annotations[v1alpha1.AnnotationRecoverFrom] = "backup-at-n2-20261103-030000"
	_, d = looked(t, v, many)
	g.Expect(d.Recovery.Candidates).To(And(HaveLen(10), ContainElement(HaveField("Name", "backup-at-n2-20261130-030000"))))
	g.Expect(d.Recovery.From).To(Equal("backup-at-n2-20261103-030000"))
}

func TestThePlanNamesTheNewPlaceOfTheMetadata(t *testing.T) {
	g := NewWithT(t)
	hash := func(at int) string {
		v := lost()
		v.Nodes[1].Labels = nil
		v.Nodes[at].Labels = map[string]string{"metadata": ""}
		v.Sources = []backend.RecoverySource{{Kind: v1alpha1.RecoveryBackup, Name: "backup-in-vault", Claim: "vault", Directory: "d"}}
		_, d := looked(t, v, map[string][]spec.RecoveryFound{"backup-in-vault": {{Backup: "20261123-030000", Version: 400, ID: metadataID}}})
		g.Expect(d.Condition.Reason).To(Equal(v1alpha1.ReasonRecoveryApproval), d.Condition.Message)
		return d.Recovery.PlanHash
	}
	g.Expect(hash(1)).NotTo(Equal(hash(2)))
}

func TestMetadataOfADiskGetsAnotherDiskFirst(t *testing.T) {
	ready := metav1.Condition{Type: v1alpha1.ConditionReady, Status: metav1.ConditionTrue}
	target := func(name, node string, change ...func(t *v1alpha1.StorageTarget)) v1alpha1.StorageTarget {
		out := v1alpha1.StorageTarget{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "storage"}}
		out.Spec.Node, out.Spec.Role = node, v1alpha1.RoleMetadata
		out.Status.Conditions = []metav1.Condition{ready}
		out.Status.Provisioned = &v1alpha1.TargetProvisioned{Finished: new(metav1.Now())}
		for _, c := range change {
			c(&out)
		}
		return out
	}
	onDisk := func(targets ...v1alpha1.StorageTarget) metadatajobs.RecoveryView {
		v := lost()
		v.FileSystem.Spec.MetadataServers.Targets = v1alpha1.TargetsSpec{Select: &v1alpha1.DeviceSelector{CountPerNode: 1}}
		v.FileSystem.Status.Metadata.Target = "old"
		v.Targets, v.Place.Targets = targets, v.FileSystem.Spec.MetadataServers.Targets
		return v
	}
	for name, c := range map[string]struct {
		targets []v1alpha1.StorageTarget
		waits   string
	}{
		"there is only the lost one": {[]v1alpha1.StorageTarget{target("old", "n2")}, "chooses none on node n2"},
		"one of another node":        {[]v1alpha1.StorageTarget{target("other", "n2-b")}, "chooses none on node n2"},
		"one of a pool": {[]v1alpha1.StorageTarget{target("pool", "n2", func(t *v1alpha1.StorageTarget) { t.Spec.Role = v1alpha1.RoleStorage })},
			"chooses none on node n2"},
		"one that waits for its own approval": {[]v1alpha1.StorageTarget{target("new", "n2", func(t *v1alpha1.StorageTarget) {
			t.Status.Conditions[0].Status, t.Status.Conditions[0].Reason, t.Status.Provisioned = metav1.ConditionFalse, v1alpha1.ReasonAwaitingApproval, nil
		})}, "new on node n2 is not ready (AwaitingApproval"},
	} {
		t.Run(name, func(t *testing.T) {
			d := metadatajobs.DecideRecovery(onDisk(c.targets...))
			NewWithT(t).Expect(d.Condition).To(And(HaveField("Reason", v1alpha1.ReasonRecoveryLooking), HaveField("Message", ContainSubstring(c.waits))))
			NewWithT(t).Expect(d.Recovery).To(BeNil())
		})
	}
	g := NewWithT(t)
	v, d := looked(t, onDisk(target("old", "n1"), target("new", "n2")), found())
	g.Expect(d.Recovery).To(And(HaveField("Target", "new"), HaveField("Directory", "/var/lib/parallelfs/targets/storage.scratch/new/master")))
	v = word(v, v1alpha1.AnnotationRecoverMetadata, d.Recovery.PlanHash)
	v.Recorded = metadatajobs.DecideRecovery(v).Recovery
	start := metadatajobs.DecideRecovery(v).Start
	g.Expect(start).To(ConsistOf(HaveField("Restore.Target", "new")))
	v.Jobs = []metadatajobs.RecoveryJobFacts{{Name: start[0].Job, Ended: true, Answer: &spec.RecoveryAnswer{Restored: true, Found: []spec.RecoveryFound{{Version: 500, ID: metadataID}}}}}
	g.Expect(metadatajobs.DecideRecovery(v).Metadata).To(HaveValue(HaveField("Target", "new")))
}

func TestTheDirectoryOfTheServerIsACandidateForAnotherDiskOfItsNodeAlone(t *testing.T) {
	for name, c := range map[string]struct {
		node, directory string
		why             string
	}{
		"another disk":   {"n2", "/var/lib/parallelfs/targets/storage.scratch/old/master", ""},
		"the same place": {"n2", "/data/meta", "start the server there instead"},
		"another node":   {"n2-b", "/data/meta", "start the server there instead"},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			v := lost()
			v.Sources = []backend.RecoverySource{{Kind: v1alpha1.RecoveryServer, Name: "master-" + c.node, Node: c.node, Directory: c.directory}}
			_, d := looked(t, v, map[string][]spec.RecoveryFound{"master-" + c.node: {{Version: 500, ID: metadataID, Time: "2026-11-23T12:00:00Z"}}})
			g.Expect(d.Recovery.Candidates).To(HaveLen(1))
			if c.why == "" {
				g.Expect(d.Recovery.Candidates[0].Message).To(BeEmpty())
				g.Expect(d.Condition.Reason).To(Equal(v1alpha1.ReasonRecoveryApproval))
				return
			}
			g.Expect(d.Recovery.Candidates[0].Message).To(ContainSubstring(c.why))
			g.Expect(d.Condition.Reason).To(Equal(v1alpha1.ReasonRecoveryRefused))
		})
	}
}

func TestTheDiskOfLostMetadataIsNotCountedWhileAnotherDiskOfItsNodeTakesItsPlace(t *testing.T) {
	for name, c := range map[string]struct {
		change func(fs *v1alpha1.FileSystem)
		is     string
		lost   string
	}{
		"it is looked for copies":  {is: v1alpha1.ReasonRecoveryLooking, lost: "old"},
		"a person is to approve":   {is: v1alpha1.ReasonRecoveryApproval, lost: "old"},
		"a person is to choose":    {is: v1alpha1.ReasonRecoveryChoice, lost: "old"},
		"it is made again":         {is: v1alpha1.ReasonRestoring, lost: "old"},
		"it was made again":        {is: v1alpha1.ReasonMetadataRecovered},
		"it is not lost":           {is: v1alpha1.ReasonRecoveryRefused},
		"nothing was said of it":   {},
		"nobody has asked":         {is: v1alpha1.ReasonRecoveryLooking, change: func(fs *v1alpha1.FileSystem) { fs.Annotations = nil }},
		"it is in a directory":     {is: v1alpha1.ReasonRecoveryLooking, change: func(fs *v1alpha1.FileSystem) { fs.Status.Metadata.Target = "" }},
		"it comes to another node": {is: v1alpha1.ReasonRecoveryLooking, change: func(fs *v1alpha1.FileSystem) { fs.Status.Metadata.Node = "n1" }},
	} {
		t.Run(name, func(t *testing.T) {
			v := lost()
			v.FileSystem.Status.Metadata.Node, v.FileSystem.Status.Metadata.Target = "n2", "old"
			if c.is != "" {
				v.FileSystem.Status.Conditions = []metav1.Condition{{Type: v1alpha1.ConditionRecovering, Reason: c.is}}
			}
			if c.change != nil {
				c.change(v.FileSystem)
			}
			NewWithT(t).Expect(metadatajobs.LostMetadataTarget(v.FileSystem, v.Nodes, v.Place.NodeSelector)).To(Equal(c.lost))
		})
	}
}
