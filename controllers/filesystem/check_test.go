//go:build envtest

package filesystem_test

import (
	"testing"
	"time"

	. "github.com/onsi/gomega"
	. "github.com/onsi/gomega/gstruct"
	batchv1 "k8s.io/api/batch/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"parallelfs.dev/operator/api/v1alpha1"
)

// checkJobs returns the Jobs that check for damage.
func (v *vaults) checkJobs() []batchv1.Job {
	v.t.Helper()
	var jobs batchv1.JobList
	v.Expect(server.Client.List(v.ctx, &jobs, client.InNamespace(v.namespace), client.MatchingLabels{v1alpha1.LabelCheck: "scratch"})).To(Succeed())
	var out []batchv1.Job
	for i := range jobs.Items {
		if jobs.Items[i].DeletionTimestamp.IsZero() {
			out = append(out, jobs.Items[i])
		}
	}
	return out
}

func (v *vaults) asks(word string) {
	v.t.Helper()
	v.change(func(fs *v1alpha1.FileSystem) { fs.Annotations = map[string]string{v1alpha1.AnnotationCheck: word} })
	v.settle()
}

func TestACheckIsMadeOnRequestAndItsResultIsInTheStatus(t *testing.T) {
	t.Parallel()
	v := newVaults(t)
	v.change(func(fs *v1alpha1.FileSystem) { fs.Spec.Backups = nil })
	v.alive = true
	v.settle()
	v.Expect(v.checkJobs()).To(BeEmpty(), "nobody has asked")
	v.Expect(v.get().Status.Check).To(BeNil())

	v.asks("before the upgrade")
	jobs := v.checkJobs()
	v.Expect(jobs).To(HaveLen(1))
	v.Expect(v.get().Status.Check).To(PointTo(And(HaveField("Request", "before the upgrade"), HaveField("Result", v1alpha1.CheckRunning))))
	v.ends(&jobs[0], batchv1.JobComplete, `{"done":true,"findings":[{"what":"files with missing chunks","count":3}],"message":"bring back the disks"}`)
	v.settle()
	v.Expect(v.get().Status.Check).To(PointTo(And(HaveField("Result", v1alpha1.CheckDamaged), HaveField("Message", "bring back the disks"),
		HaveField("Ended", Not(BeNil())), HaveField("Findings", HaveExactElements(v1alpha1.CheckFinding{What: "files with missing chunks", Count: 3})))))
	v.Expect(v.checkJobs()).To(BeEmpty(), "it is on record, and has gone")

	v.clock.SetTime(v.clock.Now().Add(time.Hour))
	v.asks("after the repair")
	jobs = v.checkJobs()
	v.Expect(jobs).To(HaveLen(1), "another word asks for another check")
	v.ends(&jobs[0], batchv1.JobFailed, `{"done":false,"message":"the master has not gone through all files"}`)
	v.settle()
	v.Expect(v.get().Status.Check).To(PointTo(And(HaveField("Result", v1alpha1.CheckFailed), HaveField("Findings", BeEmpty()),
		HaveField("Message", "the master has not gone through all files"))))
	v.Expect(v.checkJobs()).To(BeEmpty())
}

func TestABackupIsMadeOnRequest(t *testing.T) {
	t.Parallel()
	v := newVaults(t)
	v.alive = true
	v.settle()
	for _, job := range v.backupJobs() {
		v.ends(job, batchv1.JobComplete, answers("20261123-030000", 7))
	}
	v.settle()
	v.Expect(v.backupJobs()).To(BeEmpty())

	v.change(func(fs *v1alpha1.FileSystem) {
		fs.Annotations = map[string]string{v1alpha1.AnnotationBackUp: "before the move"}
	})
	v.settle()
	jobs := v.backupJobs()
	v.Expect(jobs).To(HaveLen(2), "at each place")
	v.Expect(v.get().Status.BackupAsked).To(PointTo(And(HaveField("Request", "before the move"), HaveField("Since.Time", BeTemporally("==", v.clock.Now())))))
	for _, job := range jobs {
		v.Expect(job.Annotations).To(HaveKeyWithValue("parallelfs.dev/backup", "20261123-120000"))
		v.ends(job, batchv1.JobComplete, answers("20261123-120000", 9))
	}
	v.settle()
	v.Expect(v.backupJobs()).To(BeEmpty(), "once is enough")
	v.Expect(v.get().Status.Backups).To(ContainElement(And(HaveField("Name", "20261123-120000"), HaveField("Result", v1alpha1.BackupVerified))))
}
