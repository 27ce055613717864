package moosefs

import (
	"testing"
	"time"

	. "github.com/onsi/gomega"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"parallelfs.dev/operator/api/v1alpha1"
	"parallelfs.dev/operator/internal/backend"
	"parallelfs.dev/operator/internal/backend/backendtest"
	"parallelfs.dev/operator/internal/backend/shared/assign"
	"parallelfs.dev/operator/internal/backend/shared/podspec"
	"parallelfs.dev/operator/internal/node/spec"
)

// lostMetadata returns a filesystem whose metadata was on n1.
func lostMetadata() backend.Input {
	in := everything("4.57.5")
	in.FileSystem.Status.Metadata = &v1alpha1.MetadataRecord{Node: "n1", Directory: "/data/meta"}
	in.FileSystem.Spec.Backups = &v1alpha1.BackupsSpec{
		PersistentVolumeClaim: &v1alpha1.BackupsClaim{Name: "vault", Path: "pfs"},
		ObjectStore:           &v1alpha1.ObjectStore{Endpoint: "https://s3.example.org", Bucket: "vault", Prefix: "pfs", SecretName: "s3"},
		Nodes:                 &v1alpha1.BackupsNodes{NodeSelector: in.FileSystem.Spec.StoragePools[0].NodeSelector, Count: 1, Directory: "/srv/backups"},
	}
	return in
}

// sourceNamed returns a source by its kind; for backups, the one in the claim or the one on nodes.
func sourceNamed(t *testing.T, in backend.Input, kind v1alpha1.RecoveryKind, claim string) backend.RecoverySource {
	t.Helper()
	for _, s := range New().RecoverySources(in) {
		if s.Kind == kind && s.Claim == claim && s.ObjectStore == "" {
			return s
		}
	}
	t.Fatalf("there is no source of kind %s in claim %q", kind, claim)
	return backend.RecoverySource{}
}

func recoveryOf(t *testing.T, in backend.Input, request backend.RecoveryRequest) (*batchv1.Job, spec.Recovery) {
	t.Helper()
	request.Job = "scratch-recover-1a2b3c4d"
	job, told, err := New().RecoveryJob(in, request)
	NewWithT(t).Expect(err).NotTo(HaveOccurred())
	return job, told
}

func TestALookAtACopyOfMetadataCanWriteNothing(t *testing.T) {
	in := lostMetadata()
	state := stateDirectory(in.FileSystem, componentMetalogger)
	backups := backend.BackupDirectory(in.FileSystem)
	for name, c := range map[string]struct {
		kind   v1alpha1.RecoveryKind
		claim  string
		source string
		told   spec.RecoverySource
		user   int64
		adds   []corev1.Capability
	}{
		"a metalogger's": {v1alpha1.RecoveryFollower, "", state, spec.RecoverySource{Directory: "/source", Component: "metalogger", Data: "data"},
			0, []corev1.Capability{"DAC_READ_SEARCH"}},
		"the master's": {v1alpha1.RecoveryServer, "", "/data/meta", spec.RecoverySource{Directory: "/source", Component: "master", Data: "data"},
			0, []corev1.Capability{"DAC_READ_SEARCH"}},
		"backups on a node": {v1alpha1.RecoveryBackup, "", "/srv/backups", spec.RecoverySource{Backups: "/source/" + backups},
			0, []corev1.Capability{"DAC_READ_SEARCH"}},
		"backups in a claim": {v1alpha1.RecoveryBackup, "vault", "vault:pfs", spec.RecoverySource{Backups: "/source/" + backups}, 9421, nil},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			job, told := recoveryOf(t, in, backend.RecoveryRequest{Source: sourceNamed(t, in, c.kind, c.claim)})
			g.Expect(told.Source).To(Equal(c.told))
			g.Expect(told.Restore).To(BeNil())
			g.Expect(backendtest.Mounts(job)).To(Equal(map[string]string{"/source": c.source + ", read only"}))
			pod := job.Spec.Template.Spec
			security := pod.Containers[0].SecurityContext
			g.Expect(security.RunAsUser).To(HaveValue(Equal(c.user)))
			g.Expect(security.Capabilities).To(Equal(&corev1.Capabilities{Drop: []corev1.Capability{"ALL"}, Add: c.adds}))
			g.Expect(security.Privileged).To(BeNil())
			g.Expect(security.ReadOnlyRootFilesystem).To(HaveValue(BeTrue()))
			g.Expect(pod.AutomountServiceAccountToken).To(HaveValue(BeFalse()))
			g.Expect(pod.HostNetwork).To(BeFalse())
			g.Expect(pod.Affinity == nil).To(Equal(c.claim != ""))
		})
	}
}

func TestBackupsInAnObjectStoreAreInspectedAndRestoredByAPodWithoutOtherCopies(t *testing.T) {
	g := NewWithT(t)
	in := lostMetadata()
	var source backend.RecoverySource
	for _, s := range New().RecoverySources(in) {
		if s.ObjectStore != "" {
			source = s
		}
	}
	g.Expect(source).To(Equal(backend.RecoverySource{
		Name: "backup-s3-vault", Kind: v1alpha1.RecoveryBackup, ObjectStore: "https://s3.example.org/vault", Directory: "pfs/storage.scratch-6f1c",
	}))
	at := spec.RecoverySource{Backups: "storage.scratch-6f1c", ObjectStore: &spec.ObjectStore{
		Endpoint: "https://s3.example.org", Bucket: "vault", Prefix: "pfs", Credentials: "/etc/parallelfs-object-store",
	}}
	job, told := recoveryOf(t, in, backend.RecoveryRequest{Source: source})
	g.Expect(told.Source).To(Equal(at))
	g.Expect(backendtest.Mounts(job)).To(BeEmpty(), "it sees nothing of a node")
	pod := job.Spec.Template.Spec
	g.Expect(pod.Affinity).To(BeNil(), "any node will do")
	g.Expect(pod.Containers[0].SecurityContext.RunAsNonRoot).To(HaveValue(BeTrue()))
	g.Expect(pod.HostNetwork).To(BeTrue(), "it asks the store by the way that the backup has gone")

	job, told = recoveryOf(t, in, backend.RecoveryRequest{Source: source, Restore: &backend.RestoreRequest{
		Plan: "0123abcd", Backup: "20261123-030000", Node: "n2", Directory: "/data/meta",
	}})
	g.Expect(told.Source).To(Equal(at))
	g.Expect(backendtest.Mounts(job)).To(Equal(map[string]string{"/data/meta": "/data/meta", backend.StateRoot(in.FileSystem): backend.StateRoot(in.FileSystem)}))
	g.Expect(job.Spec.Template.Spec.Affinity).To(Equal(podspec.OnNodes("n2")))
}

func TestARestoringReadsItsSourceAndWritesTheDirectoryOfTheMasterOnTheNewNode(t *testing.T) {
	g := NewWithT(t)
	in := lostMetadata()
	job, told := recoveryOf(t, in, backend.RecoveryRequest{Source: sourceNamed(t, in, v1alpha1.RecoveryBackup, "vault"), Restore: &backend.RestoreRequest{
		Plan: "0123abcd", Backup: "20261123-030000", Version: 7, ID: "6B046567398B0398", Node: "n2", Directory: "/data/meta",
	}})
	g.Expect(backendtest.Mounts(job)).To(Equal(map[string]string{
		"/source": "vault:pfs, read only", "/data/meta": "/data/meta", backend.StateRoot(in.FileSystem): backend.StateRoot(in.FileSystem),
	}))
	g.Expect(told.Restore).To(HaveValue(Equal(spec.Restore{
		Plan: "0123abcd", Backup: "20261123-030000", Version: 7, ID: "6B046567398B0398", Path: "/data/meta", Data: "data", Component: "master", User: "mfs",
		Ledger: backend.Ledger(in.FileSystem, "master"),
	})))
	g.Expect(job.Spec.Template.Spec.Affinity).To(Equal(podspec.OnNodes("n2")))
	g.Expect(job.Spec.Template.Spec.Containers[0].SecurityContext.Privileged).To(BeNil())
}

func TestTheDiskOfTheMasterIsReadWhereItIsMounted(t *testing.T) {
	g := NewWithT(t)
	in := lostMetadata()
	targets := spec.TargetsDirectory("storage", "scratch")
	in.FileSystem.Status.Metadata = &v1alpha1.MetadataRecord{Node: "n1", Target: "old", Directory: targets + "/old/master"}
	source := sourceNamed(t, in, v1alpha1.RecoveryServer, "")
	at := spec.RecoverySource{Directory: targets + "/old/master", Component: "master", Data: "data"}
	job, told := recoveryOf(t, in, backend.RecoveryRequest{Source: source})
	g.Expect(told.Source).To(Equal(at))
	g.Expect(backendtest.Mounts(job)).To(Equal(map[string]string{targets: targets + ", read only"}), "a disk that is not there keeps no pod from starting")
	g.Expect(job.Spec.Template.Spec.Containers[0].VolumeMounts).To(ContainElement(HaveField("MountPropagation", HaveValue(Equal(corev1.MountPropagationHostToContainer)))))

	in.Targets = []v1alpha1.StorageTarget{{ObjectMeta: metav1.ObjectMeta{Name: "new", Namespace: "storage"}}}
	job, told = recoveryOf(t, in, backend.RecoveryRequest{Source: source, Restore: &backend.RestoreRequest{
		Plan: "0123abcd", Version: 7, ID: "6B046567398B0398", Node: "n1", Directory: targets + "/new/master", Target: "new",
	}})
	g.Expect(told.Source).To(Equal(at))
	g.Expect(backendtest.Mounts(job)).To(Equal(map[string]string{targets: targets, backend.StateRoot(in.FileSystem): backend.StateRoot(in.FileSystem)}))
}

func TestMetadataIsMadeFromWhatWasSavedAndAllChangesSince(t *testing.T) {
	file := func(name string, content string) backend.CopiedFile {
		return backend.CopiedFile{Name: name, Size: int64(len(content)), Head: []byte(content)}
	}
	for name, c := range map[string]struct {
		found []backend.CopiedFile
		want  map[string]string
	}{
		"of a metalogger that has followed for days": {
			[]backend.CopiedFile{file("metadata_ml.mfs.back", "MFSM 2.0"), file("metadata_ml.mfs.back.1", "MFSM 2.0"), file("changelog_ml.0.mfs", "7"), file("changelog_ml.3.mfs", "5"),
				file("changelog_ml_back.0.mfs", "6"), file("sessions_ml.mfs", ""), file(".mfsmetalogger.lock", "1")},
			map[string]string{"metadata_ml.mfs.back": "metadata_ml.mfs.back", "metadata_ml.mfs.back.1": "metadata_ml.mfs.back.1", "changelog_ml.0.mfs": "changelog_ml.0.mfs",
				"changelog_ml.3.mfs": "changelog_ml.3.mfs", "changelog_ml_back.0.mfs": "changelog_ml_back.0.mfs"},
		},
		"of one in the first hour": {
			[]backend.CopiedFile{file("metadata_ml.tmp", "MFSM NEW"), file("changelog_ml.0.mfs", "7")},
			map[string]string{"metadata_ml.tmp": "metadata_ml.mfs.back", "changelog_ml.0.mfs": "changelog_ml.0.mfs"},
		},
		"of one that was cut off while it got the metadata": {
			[]backend.CopiedFile{file("metadata_ml.tmp", "MFSM 2.0"), file("changelog_ml.0.mfs", "7")}, map[string]string{"changelog_ml.0.mfs": "changelog_ml.0.mfs"},
		},
		"of one that never got anything": {[]backend.CopiedFile{file(".mfsmetalogger.lock", "1"), file("changelog_ml_back.1.mfs", "")}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			NewWithT(t).Expect(New().RecoveryMethod().Usable(c.found)).To(Equal(c.want))
		})
	}
}

func TestTheTimeOfACopyIsThatOfItsLastWholeChange(t *testing.T) {
	at := func(seconds int64) time.Time { return time.Unix(seconds, 0) }
	for name, c := range map[string]struct {
		file, end string
		want      time.Time
	}{
		"the last line":                    {"changelog_ml.0.mfs", "41: 1795400001|ACCESS(3)\n42: 1795400009|CREATE(1,a,f,420,18,0,0,0):7\n", at(1795400009)},
		"a line that was cut off":          {"changelog_ml.0.mfs", "41: 1795400001|ACCESS(3)\n42: 179540", at(1795400001)},
		"an end that begins in a line":     {"changelog_ml_back.0.mfs", "|ACCESS(3)\n42: 1795400009|LENGTH(7,1,0)\n", at(1795400009)},
		"a log without a change":           {"changelog_ml_back.1.mfs", "", time.Time{}},
		"a log of something else":          {"changelog_ml.0.mfs", "hello\nworld\n", time.Time{}},
		"metadata, which tells of no time": {"metadata_ml.mfs.back", "41: 1795400001|ACCESS(3)\n", time.Time{}},
	} {
		t.Run(name, func(t *testing.T) {
			NewWithT(t).Expect(New().RecoveryMethod().Changed(c.file, []byte(c.end))).To(Equal(c.want))
		})
	}
}

func TestThePodOfAMasterBeforeARecoveryIsOutdatedAfterIt(t *testing.T) {
	g := NewWithT(t)
	hash := func(recovered *v1alpha1.MetadataRecovered) string {
		in := everything("4.57.5")
		backendtest.Remember(t, New(), &in)
		in.FileSystem.Status.Metadata.Recovered = recovered
		sets, _, _ := objectsOf(t, in)
		return sets["scratch-master"].Spec.Template.Annotations[backend.TemplateHashAnnotation]
	}
	g.Expect(hash(&v1alpha1.MetadataRecovered{PlanHash: "0123abcd"})).NotTo(Equal(hash(nil)))
}

func TestARestoringOntoADiskProvesTheDiskAndSeesNoOtherDirectoryOfTheNode(t *testing.T) {
	g := NewWithT(t)
	in := onDisks("4.57.5")
	backendtest.Remember(t, New(), &in)
	disk := in.Targets[0]
	directory := assign.TargetPath(in.FileSystem, disk.Name) + "/master"
	job, told := recoveryOf(t, in, backend.RecoveryRequest{
		Source:  backend.RecoverySource{Kind: v1alpha1.RecoveryFollower, Node: "n1", Directory: stateDirectory(in.FileSystem, componentMetalogger)},
		Restore: &backend.RestoreRequest{Plan: "0123abcd", Node: "n1", Directory: directory, Target: disk.Name},
	})
	g.Expect(told.Restore.Path).To(Equal(directory))
	g.Expect(told.Restore.Target).To(HaveValue(Equal(spec.Target{
		Name: disk.Name, Path: assign.TargetPath(in.FileSystem, disk.Name), UUID: disk.Status.Provisioned.UUID})))
	g.Expect(told.Restore.Target.UUID).NotTo(BeEmpty())
	disks := spec.TargetsDirectory("storage", "scratch")
	g.Expect(backendtest.Mounts(job)).To(Equal(map[string]string{
		"/source": stateDirectory(in.FileSystem, componentMetalogger) + ", read only", disks: disks,
		backend.StateRoot(in.FileSystem): backend.StateRoot(in.FileSystem),
	}))
}

func TestTheNodeOfARecoveryGetsADiskForTheMetadata(t *testing.T) {
	g := NewWithT(t)
	nodes := func(word string, labeled ...int) []string {
		in := onDisks("4.57.5")
		backendtest.Remember(t, New(), &in)
		for i := range in.Nodes {
			delete(in.Nodes[i].Labels, masterLabel)
		}
		for _, i := range labeled {
			in.Nodes[i].Labels[masterLabel] = ""
		}
		if word != "" {
			in.FileSystem.Annotations = map[string]string{v1alpha1.AnnotationRecoverMetadata: word}
		}
		allocation, err := New().Allocate(in)
		g.Expect(err).NotTo(HaveOccurred())
		return allocation.TargetNodes.Metadata
	}
	g.Expect(nodes("", 1)).To(ConsistOf("n1"), "a label alone takes no disk")
	g.Expect(nodes("plan", 1)).To(ConsistOf("n1", "n2"))
	g.Expect(nodes("plan", 1, 2)).To(ConsistOf("n1"), "nobody knows which")
	g.Expect(nodes("plan", 0)).To(ConsistOf("n1"))
}
