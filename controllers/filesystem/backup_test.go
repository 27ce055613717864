//go:build envtest

package filesystem_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"parallelfs.dev/operator/api/v1alpha1"
	"parallelfs.dev/operator/controllers/filesystem"
	"parallelfs.dev/operator/internal/backend/shared/metadatajobs"
	"parallelfs.dev/operator/internal/node/spec"
	"parallelfs.dev/operator/test/envtest/apiserver"
)

// vaults is a world whose filesystem is backed up each night, to a claim and to its second node. The test controls its clock.
type vaults struct {
	*world
	clock *clocktesting.FakePassiveClock
}

func newVaults(t *testing.T) *vaults {
	t.Helper()
	v := &vaults{world: anotherWorld(t), clock: clocktesting.NewFakePassiveClock(time.Date(2026, 11, 23, 12, 0, 0, 0, time.UTC))}
	v.alter = func(operator *filesystem.Reconciler) { operator.Clock = v.clock }
	v.fileSystem(func(fs *v1alpha1.FileSystem) {
		fs.Spec.Backups = &v1alpha1.BackupsSpec{
			Schedule: "0 3 * * *", PersistentVolumeClaim: &v1alpha1.BackupsClaim{Name: "vault"},
			Nodes: &v1alpha1.BackupsNodes{NodeSelector: v1alpha1.NodeSelector{"storage-of": v.namespace}},
		}
	})
	return v
}

func (v *vaults) ofBackups() []client.ListOption {
	return []client.ListOption{client.InNamespace(v.namespace), client.MatchingLabels{v1alpha1.LabelBackup: "scratch"}}
}

// backupJobs returns the Jobs that make backups, by place.
func (v *vaults) backupJobs() map[string]*batchv1.Job {
	v.t.Helper()
	var jobs batchv1.JobList
	v.Expect(server.Client.List(v.ctx, &jobs, v.ofBackups()...)).To(Succeed())
	out := map[string]*batchv1.Job{}
	for i := range jobs.Items {
		j := &jobs.Items[i]
		if j.DeletionTimestamp.IsZero() {
			out[j.Annotations["parallelfs.dev/backup-claim"]+j.Annotations["parallelfs.dev/backup-object-store"]+j.Annotations["parallelfs.dev/backup-node"]] = j
		}
	}
	return out
}

func (v *vaults) backupMaps() []corev1.ConfigMap {
	v.t.Helper()
	var maps corev1.ConfigMapList
	v.Expect(server.Client.List(v.ctx, &maps, v.ofBackups()...)).To(Succeed())
	return maps.Items
}

// ends simulates the pod of a Job that has printed an answer, and the Job controller.
func (v *vaults) ends(job *batchv1.Job, how batchv1.JobConditionType, message string) {
	v.t.Helper()
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Name: job.Name + ".pod", Namespace: v.namespace, Labels: job.Spec.Template.Labels,
			OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(job, batchv1.SchemeGroupVersion.WithKind("Job"))},
		},
		Spec: corev1.PodSpec{NodeName: v.nodes[1], Containers: []corev1.Container{{Name: "backup", Image: "none"}}},
	}
	v.Expect(server.Client.Create(v.ctx, pod)).To(Succeed())
	code := int32(0)
	if how != batchv1.JobComplete {
		code = 1
	}
	pod.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: "backup", State: corev1.ContainerState{
		Terminated: &corev1.ContainerStateTerminated{ExitCode: code, Reason: "Completed", Message: message, FinishedAt: metav1.Now()}}}}
	v.Expect(server.Client.Status().Update(v.ctx, pod)).To(Succeed())
	v.ended(job, how, time.Now())
}

// answers returns an answer with one verified backup.
func answers(name string, version int64) string {
	line, err := json.Marshal(spec.BackupAnswer{Name: name, Backups: []spec.BackupSeen{{
		Name: name, Verified: true, Time: "2026-11-23T12:00:05Z", Version: version, ID: "6B046567398B0398", SizeBytes: 4096}}})
	if err != nil {
		panic(err)
	}
	return string(line) + "\n"
}

func TestBackupsAreMadeAtTheirPlacesAndStandInTheStatus(t *testing.T) {
	t.Parallel()
	v := newVaults(t)
	v.settle()
	v.Expect(v.backupJobs()).To(BeEmpty(), "a filesystem that never ran has nothing to back up")
	v.Expect(v.condition(v1alpha1.ConditionBackedUp)).To(And(HaveField("Status", metav1.ConditionUnknown), HaveField("Reason", v1alpha1.ReasonBackupPending)))

	v.alive = true
	v.settle()
	jobs := v.backupJobs()
	v.Expect(jobs).To(And(HaveLen(2), HaveKey("vault"), HaveKey(v.nodes[1])), "at each place, and never on the node of the metadata")
	v.Expect(v.ready().Status).To(Equal(metav1.ConditionTrue), "a backup is nothing that programs wait for")
	for _, job := range jobs {
		v.Expect(metav1.IsControlledBy(job, v.get())).To(BeTrue())
		config := spec.Backup{}
		for _, m := range v.backupMaps() {
			if m.Name == job.Name+"-0" {
				v.Expect(json.Unmarshal([]byte(m.Data[metadatajobs.BackupToldKey]), &config)).To(Succeed())
				v.Expect(m.BinaryData[metadatajobs.BackupRecordKey]).NotTo(BeEmpty())
			}
		}
		v.Expect(config.Name).To(Equal("20261123-030000"))
	}
	v.ends(jobs["vault"], batchv1.JobComplete, answers("20261123-030000", 1135))
	v.ends(jobs[v.nodes[1]], batchv1.JobFailed, "can't write to the directory of the backups")
	v.settle()
	v.Expect(v.backupJobs()).To(BeEmpty(), "they are on record, and have gone")
	v.Expect(v.backupMaps()).To(BeEmpty())
	v.Expect(v.get().Status.Backups).To(ConsistOf(
		And(HaveField("PersistentVolumeClaim", "vault"), HaveField("Result", v1alpha1.BackupVerified), HaveField("Version", int64(1135))),
		And(HaveField("Node", v.nodes[1]), HaveField("Result", v1alpha1.BackupFailed), HaveField("Message", ContainSubstring("can't write")))))
	v.Expect(v.condition(v1alpha1.ConditionBackedUp)).To(And(HaveField("Status", metav1.ConditionFalse), HaveField("Reason", v1alpha1.ReasonBackupFailed)))
	v.Expect(v.ready().Status).To(Equal(metav1.ConditionTrue))

	v.clock.SetTime(time.Date(2026, 11, 24, 3, 0, 20, 0, time.UTC))
	v.settle()
	jobs = v.backupJobs()
	v.Expect(jobs).To(HaveLen(2), "the schedule has named another time")
	v.ends(jobs["vault"], batchv1.JobComplete, answers("20261124-030000", 1200))
	v.ends(jobs[v.nodes[1]], batchv1.JobComplete, answers("20261124-030000", 1200))
	v.settle()
	v.Expect(v.condition(v1alpha1.ConditionBackedUp)).To(And(HaveField("Status", metav1.ConditionTrue), HaveField("Reason", v1alpha1.ReasonVerified)))

	v.clock.SetTime(time.Date(2026, 11, 24, 20, 0, 0, 0, time.UTC))
	v.settle()
	v.Expect(v.backupJobs()).To(BeEmpty(), "nothing is due")
	v.alive = false
	v.clock.SetTime(time.Date(2026, 11, 27, 3, 0, 0, 0, time.UTC))
	v.settle()
	v.Expect(v.backupJobs()).To(BeEmpty(), "a master that does not answer hands nothing out")
	v.Expect(v.condition(v1alpha1.ConditionBackedUp).Reason).To(Equal(v1alpha1.ReasonBackupTooOld))

	v.change(func(fs *v1alpha1.FileSystem) { fs.Spec.Backups = nil })
	v.settle()
	v.Expect(v.get().Status.Backups).To(BeEmpty())
	v.Expect(v.condition(v1alpha1.ConditionBackedUp).Reason).To(Equal(v1alpha1.ReasonBackupsNotConfigured))
}

func TestABackupIsMadeOnceWhateverWriteTheOperatorIsKilledAfter(t *testing.T) {
	t.Parallel()
	prepared := func(t *testing.T) *vaults {
		v := newVaults(t)
		v.alive = true
		backups := v.get().Spec.Backups
		v.change(func(fs *v1alpha1.FileSystem) { fs.Spec.Backups = nil })
		v.settle()
		v.change(func(fs *v1alpha1.FileSystem) { fs.Spec.Backups = backups })
		return v
	}
	for _, each := range inEach {
		t.Run(fmt.Sprintf("after each %d", each), func(t *testing.T) {
			t.Parallel()
			v := prepared(t)
			started := map[string]bool{}
			var written []string
			// This is the life of one backup: its Job starts, ends, is recorded in the status, and is removed.
			c := server.Killable(t, each)
			for range 40 {
				if err := v.reconcile(c); err != nil {
					v.Expect(err).To(MatchError(apiserver.ErrKilled))
					written = append(written, c.Writes()...)
					c = server.Killable(t, each) // the next operator
				}
				for _, job := range v.backupJobs() {
					if len(job.Status.Conditions) == 0 && len(v.backupJobs()) == 2 {
						v.Expect(started).NotTo(HaveKey(job.Name), "it is made once")
						started[job.Name] = true
						v.ends(job, batchv1.JobComplete, answers("20261123-030000", 7))
					}
				}
			}
			written = append(written, c.Writes()...)
			v.Expect(len(written)).To(BeNumerically(">=", 9), "two ConfigMaps, two Jobs, the status, and their removal")
			v.Expect(started).To(HaveLen(2), "at each place: %s", strings.Join(written, ", "))
			v.Expect(v.backupJobs()).To(BeEmpty())
			v.Expect(v.backupMaps()).To(BeEmpty(), "what a killed operator has left is removed")
			v.Expect(v.get().Status.Backups).To(HaveLen(2))
			v.Expect(v.get().Status.Backups).To(HaveEach(HaveField("Result", v1alpha1.BackupVerified)))
			v.forget()
		})
	}
}

func TestABackupReportsWhatItWaitsFor(t *testing.T) {
	t.Parallel()
	v := newVaults(t)
	v.alive = true
	v.settle()
	job := v.backupJobs()["vault"]
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Name: job.Name + ".pod", Namespace: v.namespace, Labels: job.Spec.Template.Labels,
			OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(job, batchv1.SchemeGroupVersion.WithKind("Job"))},
		},
		Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "backup", Image: "none"}}},
	}
	v.Expect(server.Client.Create(v.ctx, pod)).To(Succeed())
	pod.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Reason: "Unschedulable",
		Message: "persistentvolumeclaim \"vault\" not found"}}
	v.Expect(server.Client.Status().Update(v.ctx, pod)).To(Succeed())
	v.settle()
	v.Expect(v.condition(v1alpha1.ConditionBackedUp).Message).To(ContainSubstring("persistentvolumeclaim \"vault\" not found"))

	answer, err := json.Marshal(spec.BackupAnswer{Name: "20261123-030000", Message: "nobody answers"})
	v.Expect(err).NotTo(HaveOccurred())
	pod.Status = corev1.PodStatus{ContainerStatuses: []corev1.ContainerStatus{{Name: "backup", State: corev1.ContainerState{
		Terminated: &corev1.ContainerStateTerminated{ExitCode: 1, Reason: "Error", Message: string(answer), FinishedAt: metav1.Now()}}}}}
	v.Expect(server.Client.Status().Update(v.ctx, pod)).To(Succeed())
	v.settle()
	v.Expect(v.condition(v1alpha1.ConditionBackedUp).Message).To(And(ContainSubstring("(nobody answers)"), Not(ContainSubstring("{"))),
		"an attempt that is made again is said in words")
}

func TestAFileSystemWithoutBackupsReportsIt(t *testing.T) {
	w := newWorld(t)
	w.fileSystem(nil)
	w.alive = true
	w.settle()
	w.Expect(w.condition(v1alpha1.ConditionBackedUp)).To(And(HaveField("Status", metav1.ConditionFalse), HaveField("Reason", v1alpha1.ReasonBackupsNotConfigured)))
	w.Expect(w.ready().Status).To(Equal(metav1.ConditionTrue))
	w.Expect(strings.Contains(w.children(), "backup")).To(BeFalse())
}

func TestABackupInAnObjectStoreIsMadeOnceAndTheStatusHasItWithoutTheSecret(t *testing.T) {
	t.Parallel()
	v := newVaults(t)
	v.change(func(fs *v1alpha1.FileSystem) {
		fs.Spec.Backups.PersistentVolumeClaim, fs.Spec.Backups.Nodes = nil, nil
		fs.Spec.Backups.ObjectStore = &v1alpha1.ObjectStore{Endpoint: "https://s3.example.org", Bucket: "vault", SecretName: "s3"}
	})
	v.settle()
	v.alive = true
	v.settle()
	const place = "https://s3.example.org/vault"
	job := v.backupJobs()[place]
	v.Expect(job).NotTo(BeNil())
	v.Expect(v.backupJobs()).To(HaveLen(1), "one that runs is not begun again")
	v.ends(job, batchv1.JobFailed, "can't put s3://vault/x at https://s3.example.org: the bucket does not exist (NoSuchBucket); make the bucket, or name another")
	v.settle()
	v.Expect(v.backupJobs()).To(BeEmpty())
	v.Expect(v.get().Status.Backups).To(ConsistOf(And(HaveField("ObjectStore", place), HaveField("Result", v1alpha1.BackupFailed),
		HaveField("Message", ContainSubstring("make the bucket")))))

	v.clock.SetTime(time.Date(2026, 11, 24, 3, 0, 20, 0, time.UTC))
	v.settle()
	v.ends(v.backupJobs()[place], batchv1.JobComplete, answers("20261124-030000", 1200))
	v.settle()
	v.Expect(v.backupJobs()).To(BeEmpty())
	v.Expect(v.get().Status.Backups).To(ConsistOf(And(HaveField("ObjectStore", place), HaveField("Result", v1alpha1.BackupVerified),
		HaveField("SizeBytes", int64(4096)), HaveField("Directory", HaveSuffix("/20261124-030000")))))
	v.Expect(v.condition(v1alpha1.ConditionBackedUp)).To(And(HaveField("Status", metav1.ConditionTrue), HaveField("Message", ContainSubstring(place))))
}
