package metadatajobs_test

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"parallelfs.dev/operator/api/v1alpha1"
	"parallelfs.dev/operator/internal/backend"
	"parallelfs.dev/operator/internal/backend/shared/metadatajobs"
	"parallelfs.dev/operator/internal/node/spec"
)

// backups returns a filesystem that is backed up each night to a claim and to the first of the nodes b1, b2 and b3.
func backups(change ...func(*v1alpha1.BackupsSpec)) metadatajobs.BackupView {
	asked := &v1alpha1.BackupsSpec{
		Schedule: "0 3 * * *", TimeZone: "UTC", Keep: v1alpha1.BackupsKeep{Count: 7},
		PersistentVolumeClaim: &v1alpha1.BackupsClaim{Name: "vault", Path: "pfs"},
		Nodes:                 &v1alpha1.BackupsNodes{NodeSelector: v1alpha1.NodeSelector{"backups": "yes"}, Count: 1, Directory: "/srv/backups"},
	}
	for _, c := range change {
		c(asked)
	}
	fs := &v1alpha1.FileSystem{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "scratch", UID: "1b4e28ba-2fa1-11d2-883f-0016d3cca427"}}
	fs.Spec.Backups = asked
	fs.Status.Metadata = &v1alpha1.MetadataRecord{Node: "a0"}
	v := metadatajobs.BackupView{FileSystem: fs, Serves: true, Now: at("2026-11-23T12:00:00Z")}
	for _, name := range []string{"a0", "b1", "b2", "b3"} {
		v.Nodes = append(v.Nodes, backend.Node{Name: name, Labels: map[string]string{"backups": "yes"}, Ready: true})
	}
	return v
}

func at(text string) time.Time {
	t, err := time.Parse(time.RFC3339, text)
	if err != nil {
		panic(err)
	}
	return t
}

var (
	vault = backend.BackupPlace{Claim: "vault", Directory: "pfs"}
	b1    = backend.BackupPlace{Node: "b1", Directory: "/srv/backups"}
)

// backupOf returns a backup as an entry of the status.
func backupOf(p backend.BackupPlace, name string, result v1alpha1.BackupResult) v1alpha1.BackupStatus {
	s := v1alpha1.BackupStatus{Name: name, PersistentVolumeClaim: p.Claim, ObjectStore: p.ObjectStore, Node: p.Node, Result: result}
	if result != v1alpha1.BackupVerified {
		s.Message = "because"
	}
	return s
}

// places returns the places that get a backup.
func places(d metadatajobs.BackupDecision) map[string]string {
	out := map[string]string{}
	for _, r := range d.Start {
		out[r.Place.String()] = r.Backup
	}
	return out
}

func TestABackupStartsAtOnceIfThereIsNone(t *testing.T) {
	g := NewWithT(t)
	v := backups()
	d := metadatajobs.DecideBackups(v)
	g.Expect(places(d)).To(Equal(map[string]string{"claim vault": "20261123-030000", "node b1": "20261123-030000"}))
	g.Expect(d.Condition.Reason).To(Equal(v1alpha1.ReasonBackupPending))
	v.Now = at("2026-11-23T19:00:00Z")
	g.Expect(metadatajobs.DecideBackups(v).Start).To(Equal(d.Start), "an operator that was killed makes the same ones again")
	g.Expect(d.Start[0].Job).NotTo(Equal(d.Start[1].Job))
}

func TestABackupStartsWhenAScheduledTimeHasPassedSinceTheLastAttempt(t *testing.T) {
	for name, c := range map[string]struct {
		change   func(v *metadatajobs.BackupView)
		schedule string
		zone     string
		now      string
		last     v1alpha1.BackupStatus
		due      string
	}{
		"not before":                       {now: "2026-11-24T02:59:59Z", last: backupOf(vault, "20261123-030000", v1alpha1.BackupVerified)},
		"at that time":                     {now: "2026-11-24T03:00:00Z", last: backupOf(vault, "20261123-030000", v1alpha1.BackupVerified), due: "20261124-030000"},
		"once, however many were missed":   {now: "2026-12-24T04:00:00Z", last: backupOf(vault, "20261123-030000", v1alpha1.BackupVerified), due: "20261224-030000"},
		"not again after a failure":        {now: "2026-11-23T12:00:00Z", last: backupOf(vault, "20261123-030000", v1alpha1.BackupFailed)},
		"at the next time after a failure": {now: "2026-11-24T12:00:00Z", last: backupOf(vault, "20261123-030000", v1alpha1.BackupFailed), due: "20261124-030000"},
		"in its time zone": {zone: "America/New_York", now: "2026-11-24T08:00:00Z", last: backupOf(vault, "20261123-080000", v1alpha1.BackupVerified),
			due: "20261124-080000"},
		"each minute": {schedule: "* * * * *", now: "2026-11-24T08:00:30Z", last: backupOf(vault, "20261124-075900", v1alpha1.BackupVerified),
			due: "20261124-080000"},
		"each month": {schedule: "@monthly", now: "2026-11-24T08:00:00Z", last: backupOf(vault, "20261001-000000", v1alpha1.BackupVerified),
			due: "20261101-000000"},
		"each leap day": {schedule: "0 0 29 2 *", now: "2026-11-24T08:00:00Z", last: backupOf(vault, "20200229-000000", v1alpha1.BackupVerified),
			due: "20240229-000000"},
		"not while the filesystem does not answer": {now: "2026-11-24T03:00:00Z", last: backupOf(vault, "20261123-030000", v1alpha1.BackupVerified),
			change: func(v *metadatajobs.BackupView) { v.Serves = false }},
		"not while a Job is at it": {now: "2026-11-24T03:00:00Z", last: backupOf(vault, "20261123-030000", v1alpha1.BackupVerified),
			change: func(v *metadatajobs.BackupView) {
				v.Jobs = []metadatajobs.BackupJobFacts{{Name: "scratch-backup-1", Backup: "20261123-150000", Place: vault}}
			}},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			v := backups(func(b *v1alpha1.BackupsSpec) {
				b.Nodes = nil
				if c.schedule != "" {
					b.Schedule = c.schedule
				}
				if c.zone != "" {
					b.TimeZone = c.zone
				}
			})
			v.Now, v.Recorded = at(c.now), []v1alpha1.BackupStatus{c.last}
			if c.change != nil {
				c.change(&v)
			}
			want := map[string]string{}
			if c.due != "" {
				want["claim vault"] = c.due
			}
			g.Expect(places(metadatajobs.DecideBackups(v))).To(Equal(want))
		})
	}
}

func TestABackupStartsWhenAnUpgradeIsRequested(t *testing.T) {
	g := NewWithT(t)
	v := backups()
	v.Recorded = []v1alpha1.BackupStatus{backupOf(vault, "20261123-030000", v1alpha1.BackupVerified), backupOf(b1, "20261123-030000", v1alpha1.BackupVerified)}
	v.Asked = &v1alpha1.UpgradeAsked{Version: "4.57.5", Since: metav1.NewTime(at("2026-11-23T11:30:15Z"))}
	d := metadatajobs.DecideBackups(v)
	g.Expect(places(d)).To(Equal(map[string]string{"claim vault": "20261123-113015", "node b1": "20261123-113015"}))
	g.Expect(d.Condition.Reason).To(Equal(v1alpha1.ReasonVerified), "no schedule asks for it")
	v.Now = at("2026-11-23T13:00:00Z")
	g.Expect(metadatajobs.DecideBackups(v).Start).To(Equal(d.Start), "it is the same one for an operator that was killed")

	v.FileSystem.Status.Backups = v.Recorded
	g.Expect(metadatajobs.NotBackedUpSince(v.FileSystem, v.Nodes, v.Asked.Since.Time)).To(Equal([]string{"claim vault", "node b1"}))
	v.Recorded = append([]v1alpha1.BackupStatus{
		backupOf(vault, "20261123-113015", v1alpha1.BackupVerified), backupOf(b1, "20261123-113015", v1alpha1.BackupFailed)}, v.Recorded...)
	v.FileSystem.Status.Backups = v.Recorded
	g.Expect(metadatajobs.NotBackedUpSince(v.FileSystem, v.Nodes, v.Asked.Since.Time)).To(Equal([]string{"node b1"}), "what failed is no backup")
	g.Expect(metadatajobs.DecideBackups(v).Start).To(BeEmpty(), "the next one is that of the schedule")
	v.Now = at("2026-11-24T03:00:00Z")
	g.Expect(places(metadatajobs.DecideBackups(v))).To(Equal(map[string]string{"claim vault": "20261124-030000", "node b1": "20261124-030000"}))
}

func TestABackupStartsWhenAPersonRequestsIt(t *testing.T) {
	g := NewWithT(t)
	v := backups()
	v.Recorded = []v1alpha1.BackupStatus{backupOf(vault, "20261123-030000", v1alpha1.BackupVerified), backupOf(b1, "20261123-030000", v1alpha1.BackupVerified)}
	g.Expect(metadatajobs.RequestedBackup(v.FileSystem, v.Now)).To(BeNil(), "nobody asks")
	v.FileSystem.Annotations = map[string]string{v1alpha1.AnnotationBackUp: " before the move "}
	asked := metadatajobs.RequestedBackup(v.FileSystem, at("2026-11-23T11:30:15Z"))
	g.Expect(*asked).To(Equal(v1alpha1.BackupAsked{Request: "before the move", Since: metav1.NewTime(at("2026-11-23T11:30:15Z"))}))

	v.FileSystem.Status.BackupAsked, v.Requested = asked, asked
	g.Expect(metadatajobs.RequestedBackup(v.FileSystem, at("2026-11-23T12:30:15Z"))).To(Equal(asked), "it is the same one for an operator that was killed")
	d := metadatajobs.DecideBackups(v)
	g.Expect(places(d)).To(Equal(map[string]string{"claim vault": "20261123-113015", "node b1": "20261123-113015"}))

	v.Recorded = append([]v1alpha1.BackupStatus{
		backupOf(vault, "20261123-113015", v1alpha1.BackupVerified), backupOf(b1, "20261123-113015", v1alpha1.BackupFailed)}, v.Recorded...)
	g.Expect(metadatajobs.DecideBackups(v).Start).To(BeEmpty(), "once is enough")
	v.FileSystem.Annotations[v1alpha1.AnnotationBackUp] = "after the move"
	g.Expect(metadatajobs.RequestedBackup(v.FileSystem, v.Now)).To(And(HaveField("Request", "after the move"), HaveField("Since.Time", v.Now)), "another word asks again")
}

func TestBackupsLieOnTheFirstSelectedNodesAndNeverOnThatOfTheMetadata(t *testing.T) {
	g := NewWithT(t)
	v := backups(func(b *v1alpha1.BackupsSpec) { b.PersistentVolumeClaim, b.Nodes.Count = nil, 2 })
	g.Expect(metadatajobs.BackupPlaces(v.FileSystem, v.Nodes)).To(HaveExactElements(HaveField("Node", "b1"), HaveField("Node", "b2")))
	v.Nodes = v.Nodes[:1]
	d := metadatajobs.DecideBackups(v)
	g.Expect(d.Start).To(BeEmpty())
	g.Expect(d.Condition).To(And(HaveField("Reason", v1alpha1.ReasonBackupsInvalid), HaveField("Message", ContainSubstring("no node but that of the metadata"))))
}

// inStore adds backups in a bucket.
func inStore(b *v1alpha1.BackupsSpec) {
	b.ObjectStore = &v1alpha1.ObjectStore{Endpoint: "https://s3.example.org", Bucket: "vault", Prefix: "pfs", SecretName: "s3"}
}

func TestAnObjectStoreIsAPlaceOfItsOwnBesideAClaimOfTheSameName(t *testing.T) {
	g := NewWithT(t)
	v := backups(inStore, func(b *v1alpha1.BackupsSpec) { b.Nodes = nil })
	v.Recorded = []v1alpha1.BackupStatus{backupOf(vault, "20261123-030000", v1alpha1.BackupVerified)}
	d := metadatajobs.DecideBackups(v)
	store := backend.BackupPlace{ObjectStore: "https://s3.example.org/vault", Directory: "pfs"}
	g.Expect(d.Start).To(ConsistOf(And(HaveField("Place", store), HaveField("Backup", "20261123-030000"))))
	g.Expect(d.Condition).To(Equal(backend.Problem{Reason: v1alpha1.ReasonBackupPending,
		Message: "the first backup is not made yet: object store https://s3.example.org/vault"}))
	g.Expect(metadatajobs.NotBackedUpSince(v.FileSystem, v.Nodes, v.Now)).To(ConsistOf("claim vault", "object store https://s3.example.org/vault"))

	v.Jobs = []metadatajobs.BackupJobFacts{job(store, "", spec.BackupSeen{Name: "20261123-030000", Verified: true, Time: "2026-11-23T03:00:07Z", SizeBytes: 99})}
	d = metadatajobs.DecideBackups(v)
	g.Expect(d.Start).To(BeEmpty())
	g.Expect(d.Backups).To(ConsistOf(HaveField("PersistentVolumeClaim", "vault"), Equal(v1alpha1.BackupStatus{
		Name: "20261123-030000", ObjectStore: "https://s3.example.org/vault", Directory: "pfs/default.scratch-1b4e28ba/20261123-030000",
		Result: v1alpha1.BackupVerified, Time: new(metav1.NewTime(at("2026-11-23T03:00:07Z"))), SizeBytes: 99,
	})))
	g.Expect(d.Condition.Reason).To(Equal(v1alpha1.ReasonVerified))
}

// job returns the Job of last night, which has ended with an answer.
func job(p backend.BackupPlace, message string, there ...spec.BackupSeen) metadatajobs.BackupJobFacts {
	const name = "20261123-030000"
	return metadatajobs.BackupJobFacts{
		Name: "scratch-backup-" + name, Backup: name, Place: p, Ended: true, Answer: &spec.BackupAnswer{Name: name, Message: message, Backups: there},
	}
}

func TestTheResultOfAJobIsInTheStatusBeforeTheJobIsRemoved(t *testing.T) {
	g := NewWithT(t)
	v := backups(func(b *v1alpha1.BackupsSpec) { b.Nodes = nil })
	v.Recorded = []v1alpha1.BackupStatus{backupOf(vault, "20261122-030000", v1alpha1.BackupVerified), backupOf(vault, "20261101-030000", v1alpha1.BackupVerified)}
	v.Jobs = []metadatajobs.BackupJobFacts{job(vault, "",
		spec.BackupSeen{Name: "20261123-030000", Verified: true, Time: "2026-11-23T03:00:07Z", Version: 1135, ID: "6B046567398B0398", SizeBytes: 99},
		spec.BackupSeen{Name: "20261122-030000", Verified: true, Time: "2026-11-22T03:00:07Z", Version: 1000, ID: "6B046567398B0398", SizeBytes: 90})}
	d := metadatajobs.DecideBackups(v)
	g.Expect(d.Remove).To(BeEmpty(), "its answer is not on record yet")
	g.Expect(d.Start).To(BeEmpty())
	g.Expect(d.Backups).To(HaveLen(2), "what the answer does not name was removed")
	g.Expect(d.Backups[0]).To(Equal(v1alpha1.BackupStatus{
		Name: "20261123-030000", PersistentVolumeClaim: "vault", Directory: "pfs/default.scratch-1b4e28ba/20261123-030000",
		Result: v1alpha1.BackupVerified, Time: new(metav1.NewTime(at("2026-11-23T03:00:07Z"))), Version: 1135, ID: "6B046567398B0398", SizeBytes: 99,
	}))
	g.Expect(d.Condition).To(Equal(backend.Problem{Reason: v1alpha1.ReasonVerified, Message: "the newest backups are verified: 20261123-030000 at claim vault"}))

	v.Recorded = d.Backups
	again := metadatajobs.DecideBackups(v)
	g.Expect(again.Remove).To(Equal([]string{"scratch-backup-20261123-030000"}))
	g.Expect(again.Backups).To(Equal(d.Backups))
	g.Expect(again.Start).To(BeEmpty())
}

func TestAnAttemptThatLeavesNothingIsOnRecord(t *testing.T) {
	for name, c := range map[string]struct {
		job     metadatajobs.BackupJobFacts
		message string
		left    int
	}{
		"with an answer": {job(vault, "can't copy the metadata: nobody answers",
			spec.BackupSeen{Name: "20261122-030000", Verified: true, Time: "2026-11-22T03:00:07Z"}), "nobody answers", 2},
		"without one": {metadatajobs.BackupJobFacts{Name: "j", Backup: "20261123-030000", Place: vault, Ended: true, Message: "Job was active longer than specified deadline"},
			"deadline", 2},
		"without a word": {metadatajobs.BackupJobFacts{Name: "j", Backup: "20261123-030000", Place: vault, Ended: true}, "left no answer", 2},
		"with a backup that is not verified": {job(vault, "the disk has changed it",
			spec.BackupSeen{Name: "20261123-030000", Message: "the disk has changed it"}), "the disk has changed it", 1},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			v := backups(func(b *v1alpha1.BackupsSpec) { b.Nodes = nil })
			v.Recorded = []v1alpha1.BackupStatus{backupOf(vault, "20261122-030000", v1alpha1.BackupVerified)}
			v.Jobs = []metadatajobs.BackupJobFacts{c.job}
			d := metadatajobs.DecideBackups(v)
			g.Expect(d.Backups).To(HaveLen(c.left))
			g.Expect(d.Backups[0].Name).To(Equal("20261123-030000"))
			g.Expect(d.Backups[0].Result).NotTo(Equal(v1alpha1.BackupVerified))
			g.Expect(d.Backups[0].Message).To(ContainSubstring(c.message))
			g.Expect(d.Condition.Reason).To(Equal(v1alpha1.ReasonBackupFailed))
			g.Expect(d.Condition.Message).To(And(ContainSubstring(c.message), ContainSubstring("claim vault")))
		})
	}
}

func TestAnAttemptThatWasNotVerifiedIsMadeAgainSoonAndThenLessAndLessOften(t *testing.T) {
	g := NewWithT(t)
	v := backups(func(b *v1alpha1.BackupsSpec) { b.Nodes = nil })
	v.Recorded = []v1alpha1.BackupStatus{backupOf(vault, "20261122-030000", v1alpha1.BackupVerified)}
	v.Now = at("2026-11-23T03:00:00Z")
	// ends ends the current Job after five minutes, and returns the next time at which a Job starts.
	ends := func(verified bool) time.Time {
		started := metadatajobs.DecideBackups(v).Start
		g.Expect(started).To(HaveLen(1), "at %s", v.Now)
		g.Expect(started[0].Backup).To(Equal(v.Now.Format(spec.BackupNameLayout)))
		v.Now = v.Now.Add(5 * time.Minute)
		of := metadatajobs.BackupJobFacts{Name: "j", Backup: started[0].Backup, Place: vault, Ended: true, Answer: &spec.BackupAnswer{Name: started[0].Backup}}
		of.Answer.Backups = append(of.Answer.Backups, spec.BackupSeen{Name: started[0].Backup, Verified: verified, Message: "it has a hole"},
			spec.BackupSeen{Name: "20261122-030000", Verified: true})
		v.Jobs = []metadatajobs.BackupJobFacts{of}
		v.Recorded = metadatajobs.DecideBackups(v).Backups
		v.Jobs = nil
		d := metadatajobs.DecideBackups(v)
		g.Expect(d.Start).To(BeEmpty())
		if verified {
			g.Expect(d.Backups[0]).To(And(HaveField("Failures", int32(0)), HaveField("Retry", BeNil())))
			g.Expect(d.Condition.Message).NotTo(ContainSubstring("the next attempt"))
			return time.Time{}
		}
		again := d.Backups[0].Retry.Time
		g.Expect(d.Condition.Message).To(ContainSubstring("it has a hole; the newest verified one is 20261122-030000; the next attempt is made at " +
			again.Format(time.RFC3339) + " at the latest"))
		return again
	}
	var waited []time.Duration
	for next := at("2026-11-24T03:00:00Z"); ; {
		again := ends(false)
		waited = append(waited, again.Sub(v.Now))
		if again.After(next) {
			v.Now = next
			break
		}
		v.Now = again.Add(-time.Second)
		g.Expect(metadatajobs.DecideBackups(v).Start).To(BeEmpty(), "not before")
		v.Now = again
	}
	minutes := time.Minute
	g.Expect(waited).To(Equal([]time.Duration{15 * minutes, 30 * minutes, 60 * minutes, 120 * minutes, 240 * minutes, 360 * minutes, 360 * minutes, 360 * minutes}))
	g.Expect(v.Recorded[0].Failures).To(BeEquivalentTo(8))
	ends(true) // the next scheduled time, which is before the next attempt

	v.Now = at("2026-11-25T03:00:00Z")
	g.Expect(ends(false).Sub(v.Now)).To(Equal(15*minutes), "a verified one is the end of a series")
	v.Serves = false
	v.Now = v.Now.Add(time.Hour)
	g.Expect(metadatajobs.DecideBackups(v).Start).To(BeEmpty(), "the filesystem does not answer")
}

func TestTheConditionIsThatOfThePlaceThatIsWorstOff(t *testing.T) {
	for name, c := range map[string]struct {
		recorded []v1alpha1.BackupStatus
		reason   string
	}{
		"all are of the last time": {[]v1alpha1.BackupStatus{backupOf(vault, "20261123-030000", v1alpha1.BackupVerified), backupOf(b1, "20261123-030000", v1alpha1.BackupVerified)},
			v1alpha1.ReasonVerified},
		"one is of the time before, and its backup is under way": {
			[]v1alpha1.BackupStatus{backupOf(vault, "20261123-030000", v1alpha1.BackupVerified), backupOf(b1, "20261122-030000", v1alpha1.BackupVerified)}, v1alpha1.ReasonVerified},
		"one is older": {[]v1alpha1.BackupStatus{backupOf(vault, "20261123-030000", v1alpha1.BackupVerified), backupOf(b1, "20261121-030000", v1alpha1.BackupVerified)},
			v1alpha1.ReasonBackupTooOld},
		"one was never tried": {[]v1alpha1.BackupStatus{backupOf(vault, "20261123-030000", v1alpha1.BackupVerified)}, v1alpha1.ReasonBackupPending},
		"the newest of one failed": {[]v1alpha1.BackupStatus{
			backupOf(vault, "20261123-030000", v1alpha1.BackupVerified), backupOf(b1, "20261123-030000", v1alpha1.BackupUnverified),
			backupOf(b1, "20261122-030000", v1alpha1.BackupVerified)}, v1alpha1.ReasonBackupFailed},
	} {
		t.Run(name, func(t *testing.T) {
			v := backups()
			v.Recorded = c.recorded
			NewWithT(t).Expect(metadatajobs.DecideBackups(v).Condition.Reason).To(Equal(c.reason))
		})
	}
}

func TestTheStatusKeepsTheNewestAttemptAndTheNewestVerifiedBackupOfEachPlace(t *testing.T) {
	g := NewWithT(t)
	v := backups(func(b *v1alpha1.BackupsSpec) { b.Nodes.Count = 3 }, inStore)
	for _, p := range metadatajobs.BackupPlaces(v.FileSystem, v.Nodes) {
		for day := 23; day > 13; day-- {
			v.Recorded = append(v.Recorded, backupOf(p, fmt.Sprintf("202611%d-030000", day), v1alpha1.BackupFailed))
		}
		v.Recorded = append(v.Recorded, backupOf(p, "20261101-030000", v1alpha1.BackupVerified))
	}
	d := metadatajobs.DecideBackups(v)
	g.Expect(d.Backups).To(HaveLen(v1alpha1.MaxBackups))
	for _, p := range metadatajobs.BackupPlaces(v.FileSystem, v.Nodes) {
		g.Expect(d.Backups).To(ContainElement(backupOf(p, "20261123-030000", v1alpha1.BackupFailed)))
		g.Expect(d.Backups).To(ContainElement(backupOf(p, "20261101-030000", v1alpha1.BackupVerified)))
	}
}

func TestJobsOfPlacesThatAreNotAskedForGo(t *testing.T) {
	g := NewWithT(t)
	v := backups(func(b *v1alpha1.BackupsSpec) { b.Nodes = nil })
	v.Jobs = []metadatajobs.BackupJobFacts{{Name: "one", Backup: "20261123-030000", Place: b1}, {Name: "two", Backup: "20261123-030000", Place: vault}}
	g.Expect(metadatajobs.DecideBackups(v).Remove).To(Equal([]string{"one"}))
	v.FileSystem.Spec.Backups = nil
	v.Recorded = []v1alpha1.BackupStatus{backupOf(vault, "20261122-030000", v1alpha1.BackupVerified)}
	d := metadatajobs.DecideBackups(v)
	g.Expect(d.Remove).To(Equal([]string{"one", "two"}))
	g.Expect(d.Backups).To(BeEmpty())
	g.Expect(d.Condition.Reason).To(Equal(v1alpha1.ReasonBackupsNotConfigured))
}

func TestAnImpossibleScheduleIsReported(t *testing.T) {
	for name, change := range map[string]func(*v1alpha1.BackupsSpec){
		"a time zone that there is not": func(b *v1alpha1.BackupsSpec) { b.TimeZone = "Mars/Olympus" },
		"the time zone of the manager":  func(b *v1alpha1.BackupsSpec) { b.TimeZone = "Local" },
		"a minute that there is not":    func(b *v1alpha1.BackupsSpec) { b.Schedule = "61 * * * *" },
		"a day that never comes":        func(b *v1alpha1.BackupsSpec) { b.Schedule = "0 0 31 2 *" },
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			v := backups(change)
			v.Recorded = []v1alpha1.BackupStatus{backupOf(vault, "20261122-030000", v1alpha1.BackupVerified)}
			d := metadatajobs.DecideBackups(v)
			g.Expect(d.Start).To(BeEmpty())
			g.Expect(d.Condition).To(And(HaveField("Reason", v1alpha1.ReasonBackupsInvalid), HaveField("Message", HavePrefix("spec.backups."))))
			g.Expect(d.Backups).To(Equal(v.Recorded), "what there is stays known")
		})
	}
}

func TestAnAnswerIsTheLastLineThatIsOne(t *testing.T) {
	g := NewWithT(t)
	g.Expect(metadatajobs.ReadBackupAnswer("some log\n{\"name\": \"20261123-030000\", \"backups\": []}\n")).To(HaveField("Name", "20261123-030000"))
	for _, none := range []string{"", "some log", "{}", `{"name": `} {
		g.Expect(metadatajobs.ReadBackupAnswer(none)).To(BeNil())
	}
}

func TestAnAnswerCanNotMakeTheStatusTooLong(t *testing.T) {
	g := NewWithT(t)
	v := backups(func(b *v1alpha1.BackupsSpec) { b.Nodes = nil })
	long := strings.Repeat("long ", 500)
	v.Jobs = []metadatajobs.BackupJobFacts{job(vault, long, spec.BackupSeen{Name: long, Verified: true},
		spec.BackupSeen{Name: "20261123-030000", ID: long, Message: long, Version: -1})}
	d := metadatajobs.DecideBackups(v)
	g.Expect(d.Backups).To(HaveLen(1))
	g.Expect(len(d.Backups[0].Message)).To(BeNumerically("<=", 512))
	g.Expect(len(d.Backups[0].ID)).To(BeNumerically("<=", 32))
	g.Expect(d.Backups[0].Version).To(BeZero())
}

func TestTheRecordIsReadFromItsPiecesAndFitsIntoConfigMaps(t *testing.T) {
	g := NewWithT(t)
	fs := backups().FileSystem
	var nodes []v1alpha1.FileSystemNode
	var targets []v1alpha1.StorageTarget
	for i := range 1000 {
		n := v1alpha1.FileSystemNode{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("scratch-node-%04d", i), Namespace: "default", ResourceVersion: "17"}}
		m := v1alpha1.NodeMember{Name: "chunkserver-ssd", Role: v1alpha1.RoleStorage}
		for disk := range 24 {
			uuid := types.UID(backend.Hash(i, disk, 1) + "-" + backend.Hash(i, disk, 2) + "-" + backend.Hash(i, disk, 3))
			m.Targets = append(m.Targets, v1alpha1.MemberTarget{Name: "scratch-ssd-" + backend.Hash(i, disk), UUID: string(uuid), ID: int32(disk)})
			targets = append(targets, v1alpha1.StorageTarget{
				ObjectMeta: metav1.ObjectMeta{Name: "scratch-ssd-" + backend.Hash(i, disk), Namespace: "default", ResourceVersion: "17", UID: uuid},
				Spec: v1alpha1.StorageTargetSpec{
					FileSystem: v1alpha1.TargetOwner{Name: "scratch", UID: string(fs.UID)}, Cluster: "c1c1c1c1-0000-0000-0000-000000000001",
					Node: fmt.Sprintf("node-%04d", i), Role: v1alpha1.RoleStorage, StoragePool: "ssd",
					Device: v1alpha1.DeviceIdentity{ID: v1alpha1.DeviceID("nvme-eui." + backend.Hash(i, disk, 4)), Serial: backend.Hash(i, disk, 5), SizeBytes: 1 << 42},
				},
				Status: v1alpha1.StorageTargetStatus{
					Provisioned: &v1alpha1.TargetProvisioned{UUID: string(uuid)}, KernelName: "nvme0n1", Service: &v1alpha1.TargetService{},
				},
			})
		}
		n.Spec.Members = []v1alpha1.NodeMember{m}
		nodes = append(nodes, n)
	}
	pieces, err := metadatajobs.BackupRecord(fs, nodes, targets)
	g.Expect(err).NotTo(HaveOccurred())
	t.Logf("%d pieces, the first of %d bytes", len(pieces), len(pieces[0]))
	g.Expect(len(pieces)).To(BeNumerically("<=", 6))
	again, err := metadatajobs.BackupRecord(fs, nodes, targets)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(again).To(Equal(pieces))
	unpacked, err := gzip.NewReader(bytes.NewReader(bytes.Join(pieces, nil)))
	g.Expect(err).NotTo(HaveOccurred())
	content, err := io.ReadAll(unpacked)
	g.Expect(err).NotTo(HaveOccurred())
	var list struct {
		Kind  string `json:"kind"`
		Items []struct {
			Kind     string            `json:"kind"`
			Metadata metav1.ObjectMeta `json:"metadata"`
			Spec     json.RawMessage   `json:"spec"`
			Status   json.RawMessage   `json:"status"`
		} `json:"items"`
	}
	g.Expect(json.Unmarshal(content, &list)).To(Succeed())
	g.Expect(list.Kind).To(Equal("List"))
	g.Expect(list.Items).To(HaveLen(1 + 1000 + 24000))
	last := list.Items[1000+24000]
	g.Expect(last.Kind).To(Equal("StorageTarget"))
	g.Expect(string(last.Spec)).To(And(ContainSubstring(`"node":"node-0999"`), ContainSubstring(`"nvme-eui.`), ContainSubstring("c1c1c1c1")))
	g.Expect(string(last.Status)).To(MatchJSON(`{"provisioned": {"uuid": "`+string(targets[23999].UID)+`"}}`), "what its agent and the filesystem say changes all the time")
	g.Expect(last.Metadata.ResourceVersion).To(BeEmpty())
	g.Expect(list.Items[0].Kind).To(Equal("FileSystem"))
	g.Expect(list.Items[1].Metadata.ResourceVersion).To(BeEmpty(), "it means nothing elsewhere")

	maps := metadatajobs.BackupConfigMaps(fs, "scratch-backup-1", spec.Backup{Name: "20261123-030000"}, pieces)
	g.Expect(maps).To(HaveLen(len(pieces)))
	for i := range maps {
		raw, err := json.Marshal(maps[i])
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(len(raw)).To(BeNumerically("<", 3<<19), "what etcd takes")
		g.Expect(len(maps[i].BinaryData[metadatajobs.BackupRecordKey])).To(BeNumerically("<", 1<<20), "what the API server takes")
	}
}

func TestABackupFromTheFutureProvesNothingAndHoldsUpNoOther(t *testing.T) {
	g := NewWithT(t)
	v := backups(func(s *v1alpha1.BackupsSpec) { s.Nodes = nil })
	decide := func() metadatajobs.BackupDecision {
		d := metadatajobs.DecideBackups(v)
		v.Recorded, v.FileSystem.Status.Backups = d.Backups, d.Backups
		return d
	}
	v.Recorded = []v1alpha1.BackupStatus{backupOf(vault, "20261123-120400", v1alpha1.BackupVerified), backupOf(vault, "20261123-030000", v1alpha1.BackupVerified)}
	g.Expect(decide().Backups).To(HaveLen(2), "the clocks of two managers differ a little")

	v.Recorded = append([]v1alpha1.BackupStatus{backupOf(vault, "20261124-030000", v1alpha1.BackupVerified)}, v.Recorded[1])
	v.Asked = &v1alpha1.UpgradeAsked{Version: "4.57.5", Since: metav1.NewTime(at("2026-11-23T11:30:15Z"))}
	d := decide()
	g.Expect(places(d)).To(Equal(map[string]string{"claim vault": "20261123-113015"}))
	g.Expect(metadatajobs.NotBackedUpSince(v.FileSystem, v.Nodes, v.Asked.Since.Time)).To(HaveLen(1), "it was made before the request")

	v.Jobs = []metadatajobs.BackupJobFacts{{Name: "this", Backup: "20261123-113015", Place: vault, Ended: true, Answer: &spec.BackupAnswer{
		Name: "20261123-113015", Backups: []spec.BackupSeen{{Name: "20261124-030000", Verified: true}, {Name: "20261123-113015", Verified: true}},
	}}, {Name: "from-tomorrow", Backup: "20261124-030000", Place: vault, Ended: true}}
	v.Recorded = append(v.Recorded, backupOf(vault, "20261124-030000", v1alpha1.BackupVerified)) // the clock was set back meanwhile
	d = decide()
	g.Expect(d.Remove).To(ConsistOf("from-tomorrow"))
	g.Expect(d.Backups).To(HaveExactElements(And(HaveField("Name", "20261123-113015"), HaveField("Result", v1alpha1.BackupVerified))))
	g.Expect(metadatajobs.NotBackedUpSince(v.FileSystem, v.Nodes, v.Asked.Since.Time)).To(BeEmpty())
}
