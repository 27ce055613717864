package filesystem

import (
	"testing"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/events"

	"parallelfs.dev/operator/api/v1alpha1"
)

func TestOneNewsOfAFileSystemIsOneEvent(t *testing.T) {
	condition := func(kind string, status metav1.ConditionStatus, reason string) metav1.Condition {
		return metav1.Condition{Type: kind, Status: status, Reason: reason, Message: "because"}
	}
	ready := func(status metav1.ConditionStatus, reason string) metav1.Condition {
		return condition(v1alpha1.ConditionReady, status, reason)
	}
	degraded := func(reason string) metav1.Condition {
		return condition(v1alpha1.ConditionDegraded, metav1.ConditionTrue, reason)
	}
	copies := func(status metav1.ConditionStatus, reason string) metav1.Condition {
		return condition(v1alpha1.ConditionMetadataCopies, status, reason)
	}
	whole, less := ready(metav1.ConditionTrue, v1alpha1.ReasonHealthy), ready(metav1.ConditionTrue, v1alpha1.ReasonDegradedService)
	down := ready(metav1.ConditionFalse, v1alpha1.ReasonTargetsMissing)
	for name, c := range map[string]struct {
		before, after []metav1.Condition
		published     []string
	}{
		"a disk dies, and programs go on": {
			[]metav1.Condition{whole}, []metav1.Condition{less, degraded(v1alpha1.ReasonTargetsMissing)}, []string{"Warning TargetsMissing because"},
		},
		"then a server ends": {
			[]metav1.Condition{less, degraded(v1alpha1.ReasonTargetsMissing)}, []metav1.Condition{less, degraded(v1alpha1.ReasonServersMissing)},
			[]string{"Warning ServersMissing because"},
		},
		"programs stop as something goes": {
			[]metav1.Condition{whole}, []metav1.Condition{down, degraded(v1alpha1.ReasonTargetsMissing)}, []string{"Warning TargetsMissing because"},
		},
		"programs go on again, and not everything is there": {
			[]metav1.Condition{down, degraded(v1alpha1.ReasonTargetsMissing)}, []metav1.Condition{less, degraded(v1alpha1.ReasonTargetsMissing)},
			[]string{"Normal DegradedService because"},
		},
		"everything is there again": {
			[]metav1.Condition{less, degraded(v1alpha1.ReasonTargetsMissing)}, []metav1.Condition{whole}, []string{"Normal Healthy because"},
		},
		"a copy of the metadata can't be read": {
			[]metav1.Condition{whole, copies(metav1.ConditionUnknown, v1alpha1.ReasonCopiesUnread)},
			[]metav1.Condition{whole, degraded(v1alpha1.ReasonCopiesUnproven), copies(metav1.ConditionFalse, v1alpha1.ReasonCopiesUnproven)},
			[]string{"Warning CopiesUnproven because"},
		},
		"it is proven again": {
			[]metav1.Condition{whole, degraded(v1alpha1.ReasonCopiesUnproven), copies(metav1.ConditionFalse, v1alpha1.ReasonCopiesUnproven)},
			[]metav1.Condition{whole, copies(metav1.ConditionTrue, v1alpha1.ReasonCopiesProven)}, []string{"Normal CopiesProven because"},
		},
		"a copy is read back": {
			[]metav1.Condition{whole, copies(metav1.ConditionUnknown, v1alpha1.ReasonCopiesUnread)},
			[]metav1.Condition{whole, copies(metav1.ConditionTrue, v1alpha1.ReasonCopiesProven)}, nil,
		},
		"nothing is new": {[]metav1.Condition{less, degraded(v1alpha1.ReasonTargetsMissing)}, []metav1.Condition{less, degraded(v1alpha1.ReasonTargetsMissing)}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			recorder := events.NewFakeRecorder(8)
			before, after := &v1alpha1.FileSystem{}, &v1alpha1.FileSystem{}
			before.Status.Conditions, after.Status.Conditions = c.before, c.after
			(&Reconciler{Recorder: recorder}).announce(before, after)
			close(recorder.Events)
			var published []string
			for text := range recorder.Events {
				published = append(published, text)
			}
			NewWithT(t).Expect(published).To(Equal(c.published))
		})
	}
}

func TestABackupThatIsFoundToBeDamagedIsAnEvent(t *testing.T) {
	g := NewWithT(t)
	recorder := events.NewFakeRecorder(8)
	backups := func(result v1alpha1.BackupResult) *v1alpha1.FileSystem {
		fs := &v1alpha1.FileSystem{}
		fs.Status.Backups = []v1alpha1.BackupStatus{
			{Name: "20261123-030000", PersistentVolumeClaim: "vault", Result: result, Message: "it was verified and is damaged"},
			{Name: "20261122-030000", PersistentVolumeClaim: "vault", Result: v1alpha1.BackupUnverified},
		}
		return fs
	}
	r := &Reconciler{Recorder: recorder}
	r.announce(backups(v1alpha1.BackupVerified), backups(v1alpha1.BackupUnverified))
	r.announce(backups(v1alpha1.BackupUnverified), backups(v1alpha1.BackupUnverified))
	close(recorder.Events)
	g.Expect(<-recorder.Events).To(Equal("Warning BackupDamaged The backup 20261123-030000 in vault: it was verified and is damaged"))
	g.Expect(recorder.Events).To(BeEmpty())
}
