package metadatajobs_test

import (
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"parallelfs.dev/operator/api/v1alpha1"
	"parallelfs.dev/operator/internal/backend"
	"parallelfs.dev/operator/internal/backend/shared/metadatajobs"
	"parallelfs.dev/operator/internal/node/spec"
)

// lostStore returns a filesystem whose store on a disk of n2 is lost, and whose new place is another disk there. Its backups are in a claim
// and on n3.
func lostStore() metadatajobs.RecoveryView {
	v := lost()
	selector := v1alpha1.NodeSelector{"store": ""}
	v.Nodes[1].Labels = selector
	v.Place = backend.MetadataPlace{
		Role: v1alpha1.RoleManagement, NodeSelector: selector, Targets: v1alpha1.TargetsSpec{Select: &v1alpha1.DeviceSelector{CountPerNode: 1}},
		Field: "spec.store", Noun: "the store", Stays: true, Loses: "what was set later", Lacking: " It is found by nobody.", Otherwise: ". Without one, ask the vendor",
	}
	v.FileSystem = metadatajobs.AsMetadata(v.FileSystem, &v1alpha1.MetadataRecord{Node: "n2", Target: "old-n2", Directory: "/targets/old-n2", Initialized: new(metav1.Now())})
	another := v1alpha1.StorageTarget{ObjectMeta: metav1.ObjectMeta{Name: "new-n2"}, Spec: v1alpha1.StorageTargetSpec{Node: "n2", Role: v1alpha1.RoleManagement}}
	another.Status.Provisioned = &v1alpha1.TargetProvisioned{Finished: new(metav1.Now())}
	another.Status.Conditions = []metav1.Condition{{Type: v1alpha1.ConditionReady, Status: metav1.ConditionTrue}}
	v.Targets = []v1alpha1.StorageTarget{another}
	v.Sources = []backend.RecoverySource{
		{Name: "backup-in-vault", Kind: v1alpha1.RecoveryBackup, Claim: "vault", Directory: "/d"},
		{Name: "backup-at-n3", Kind: v1alpha1.RecoveryBackup, Node: "n2-b", Directory: "/srv/backups"},
	}
	return v
}

func ofStore(backup, at, has, lacks string) spec.RecoveryFound {
	return spec.RecoveryFound{Backup: backup, Time: at, Has: has, Lacks: lacks}
}

func TestAPlanForAStoreListsWhatTheBackupHasAndLacks(t *testing.T) {
	g := NewWithT(t)
	answers := map[string][]spec.RecoveryFound{
		"backup-in-vault": {ofStore("20261123-030000", "2026-11-23T03:00:00Z", "4 logs", "target 7")},
		"backup-at-n3":    {ofStore("20261123-040000", "2026-11-23T04:00:00Z", "5 logs", "")},
	}
	v, d := looked(t, lostStore(), answers)
	g.Expect(d.Recovery).To(HaveValue(And(HaveField("From", "backup-in-vault-20261123-030000"), HaveField("Target", "new-n2"), HaveField("Node", "n2"))))
	g.Expect(d.Recovery.Candidates).To(ConsistOf(
		And(HaveField("Name", "backup-in-vault-20261123-030000"), HaveField("Has", "4 logs"), HaveField("Lacks", "target 7"), HaveField("Message", "")),
		And(HaveField("Name", "backup-at-n3-20261123-040000"), HaveField("Has", "5 logs"), HaveField("Message", Equal(
			"it lies on another node, and the store can come to no other one: copy it to the same directory on node n2 (/srv/backups), where root owns it")))))
	g.Expect(d.Condition.Message).To(And(ContainSubstring("Lost would be what was set later; backup-at-n3-20261123-040000 (of 2026-11-23T04:00:00Z) is newer"),
		ContainSubstring("On record and not in it is target 7. It is found by nobody. In it are 4 logs."), Not(ContainSubstring("spec.metadataServers"))))

	// A person approves the content of the backup, and the restore Job gets it.
	approved := word(v, v1alpha1.AnnotationRecoverMetadata, d.Recovery.PlanHash)
	answers["backup-in-vault"][0].Has = "3 logs"
	_, other := looked(t, lostStore(), answers)
	g.Expect(other.Recovery.PlanHash).NotTo(Equal(d.Recovery.PlanHash))
	d = metadatajobs.DecideRecovery(approved)
	approved.Recorded = d.Recovery
	d = metadatajobs.DecideRecovery(approved)
	g.Expect(d.Start).To(ConsistOf(HaveField("Restore", HaveValue(And(HaveField("Has", "4 logs"), HaveField("Backup", "20261123-030000"), HaveField("Target", "new-n2"))))))
}

func TestWithoutABackupOfAStoreTheMessageNamesTheAlternatives(t *testing.T) {
	g := NewWithT(t)
	_, d := looked(t, lostStore(), nil)
	g.Expect(d.Condition.Reason).To(Equal(v1alpha1.ReasonRecoveryRefused))
	g.Expect(d.Condition.Message).To(HaveSuffix(". Without one, ask the vendor"))
}

func TestTheContentOfABackupFitsIntoTheStatus(t *testing.T) {
	g := NewWithT(t)
	_, d := looked(t, lostStore(), map[string][]spec.RecoveryFound{
		"backup-in-vault": {ofStore("20261123-030000", "2026-11-23T03:00:00Z", strings.Repeat("x", 900), strings.Repeat("y", 900))},
	})
	g.Expect(d.Recovery.Candidates).To(ContainElement(And(HaveField("Has", HaveLen(256)), HaveField("Lacks", HaveLen(256)))))
}

func TestThePlaceOfABackupIsFoundByTheNameOfItsCandidate(t *testing.T) {
	g, sources := NewWithT(t), lostStore().Sources
	source, backup, there := metadatajobs.BackupSource(sources, "backup-at-n3-20261123-040000")
	g.Expect([]any{source.Directory, backup, there}).To(Equal([]any{"/srv/backups", "20261123-040000", true}))
	for _, name := range []string{"", "20261123-040000", "backup-at-n4-20261123-040000", "backup-at-n3"} {
		_, _, there := metadatajobs.BackupSource(sources, name)
		g.Expect(there).To(BeFalse(), name)
	}
}
