package moosefs

import (
	"encoding/binary"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"parallelfs.dev/operator/api/v1alpha1"
	"parallelfs.dev/operator/internal/backend"
	"parallelfs.dev/operator/internal/backend/shared/metadatajobs"
	"parallelfs.dev/operator/internal/backend/shared/podspec"
	"parallelfs.dev/operator/internal/node/backup"
	"parallelfs.dev/operator/internal/node/spec"
)

// backupOf returns the Job of a backup at a place.
func backupOf(t *testing.T, place backend.BackupPlace) (*batchv1.Job, spec.Backup) {
	t.Helper()
	in := everything("4.57.5")
	in.FileSystem.Status.Metadata = &v1alpha1.MetadataRecord{Node: "n1", Directory: "/data/meta"}
	in.FileSystem.Spec.Backups = &v1alpha1.BackupsSpec{Keep: v1alpha1.BackupsKeep{Count: 5, MaxAgeDays: 30}, ObjectStore: &v1alpha1.ObjectStore{
		Endpoint: "https://s3.example.org", Bucket: "vault", Prefix: "pfs", Region: "eu", SecretName: "s3",
	}}
	in.FileSystem.Spec.Pods.ImagePullSecrets = []v1alpha1.SecretReference{{Name: "registry"}}
	job, told, err := New().BackupJob(in, backend.BackupRequest{Job: "scratch-backup-1a2b3c4d", Backup: "20261123-030000", Place: place, Pieces: 2})
	NewWithT(t).Expect(err).NotTo(HaveOccurred())
	return job, told
}

func TestTheJobOfABackupHasNoRightButToItsPlace(t *testing.T) {
	for name, c := range map[string]struct {
		place  backend.BackupPlace
		user   int64
		volume corev1.VolumeSource
		nodes  []string
	}{
		"in a claim": {
			place: backend.BackupPlace{Claim: "vault", Directory: "pfs"}, user: 9421,
			volume: corev1.VolumeSource{PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: "vault"}},
		},
		"in an object store": {
			place: backend.BackupPlace{ObjectStore: "https://s3.example.org/vault", Directory: "pfs"}, user: 9421,
			volume: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{SizeLimit: new(resource.MustParse("128Gi"))}},
		},
		"on a node": {
			place: backend.BackupPlace{Node: "n2", Directory: "/srv/backups"}, user: 0, nodes: []string{"n2"},
			volume: corev1.VolumeSource{HostPath: &corev1.HostPathVolumeSource{Path: "/srv/backups", Type: new(corev1.HostPathDirectoryOrCreate)}},
		},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			job, told := backupOf(t, c.place)
			pod := job.Spec.Template.Spec
			g.Expect(pod.Containers).To(HaveLen(1))
			container := pod.Containers[0]
			security := container.SecurityContext
			g.Expect(security.RunAsUser).To(HaveValue(Equal(c.user)))
			g.Expect(security.Capabilities).To(Equal(&corev1.Capabilities{Drop: []corev1.Capability{"ALL"}}))
			g.Expect(security.Privileged).To(BeNil())
			g.Expect(security.AllowPrivilegeEscalation).To(HaveValue(BeFalse()))
			g.Expect(security.ReadOnlyRootFilesystem).To(HaveValue(BeTrue()))
			g.Expect(pod.AutomountServiceAccountToken).To(HaveValue(BeFalse()))
			g.Expect(pod.ImagePullSecrets).To(HaveLen(1))
			g.Expect(pod.PriorityClassName).To(BeEmpty(), "no daemon is to give way to a backup")

			var places, secrets, paths int
			for _, v := range pod.Volumes {
				if v.Name == "backups" {
					places++
					g.Expect(v.VolumeSource).To(Equal(c.volume))
				} else if v.HostPath != nil {
					paths++
				}
				if v.Secret != nil {
					secrets++
				}
			}
			g.Expect([]int{places, secrets, paths}).To(Equal([]int{1, 0, 0}), "places, secrets and other directories of the node")
			if c.nodes == nil {
				g.Expect(pod.Affinity).To(BeNil(), "the volume says where it runs")
				g.Expect(pod.Tolerations).To(BeEmpty())
			} else {
				g.Expect(pod.Affinity).To(Equal(podspec.OnNodes(c.nodes...)))
			}
			g.Expect(container.Command).To(Equal([]string{"/parallelfs/node", "backup", "--spec", "/etc/parallelfs/backup.json"}))
			g.Expect(strings.Join(container.Command, " ")).NotTo(ContainSubstring("sh "))
			g.Expect(job.Spec.ActiveDeadlineSeconds).NotTo(BeNil(), "one that can't start ends")
			g.Expect(job.Labels).To(BeEmpty(), "it is no child of the filesystem")
			g.Expect(job.Spec.Template.Labels).To(BeEmpty())
			g.Expect(container.Resources.Limits).To(BeEmpty())
			g.Expect(container.Resources.Requests).To(HaveKeyWithValue(corev1.ResourceMemory, resource.MustParse("64Mi")))

			want := spec.Backup{
				Owner: spec.Owner{Namespace: "storage", Name: "scratch", UID: "6f1c"}, Backend: "MooseFS", Version: "4.57.5",
				Asked: "10.0.0.1:9421", Copied: "10.0.0.1:9419", Name: "20261123-030000", Place: "/backups", Directory: "storage.scratch-6f1c",
				Keep: 5, MaxAgeDays: 30, Record: "/etc/parallelfs-record", CopySeconds: 7200,
			}
			if c.place.Claim != "" {
				want.Directory = "pfs/storage.scratch-6f1c"
			}
			var keys []string
			for _, v := range pod.Volumes {
				if v.Name == "object-store" {
					for _, s := range v.Projected.Sources {
						keys = append(keys, s.Secret.Name+":"+s.Secret.Items[0].Key)
					}
				}
			}
			if c.place.ObjectStore == "" {
				g.Expect(keys).To(BeEmpty(), "others see no credentials")
			} else {
				want.ObjectStore = &spec.ObjectStore{
					Endpoint: "https://s3.example.org", Bucket: "vault", Prefix: "pfs", Region: "eu", Credentials: "/etc/parallelfs-object-store",
				}
				g.Expect(keys).To(Equal([]string{"s3:accessKey", "s3:ca.crt"}))
				g.Expect(container.VolumeMounts).To(ContainElement(corev1.VolumeMount{Name: "object-store", MountPath: "/etc/parallelfs-object-store", ReadOnly: true}))
			}
			g.Expect(told).To(Equal(want))
		})
	}
}

func TestTheRecordOfABackupIsPutTogetherInOrder(t *testing.T) {
	g := NewWithT(t)
	job, _ := backupOf(t, backend.BackupPlace{Claim: "vault"})
	var sources []corev1.VolumeProjection
	for _, v := range job.Spec.Template.Spec.Volumes {
		if v.Projected != nil {
			sources = v.Projected.Sources
		}
	}
	g.Expect(sources).To(HaveLen(2))
	for i, name := range metadatajobs.BackupConfigMapNames(job.Name, 2) {
		g.Expect(sources[i].ConfigMap.Name).To(Equal(name))
		g.Expect(sources[i].ConfigMap.Items).To(HaveExactElements(HaveField("Path", []string{"record-000", "record-001"}[i])))
	}
}

func TestACopyIsCompleteWhenTheLastFileOfAMetaloggerHasCome(t *testing.T) {
	file := func(name string) backend.CopiedFile {
		return backend.CopiedFile{Name: name, Size: 45, Head: []byte("1: 1795450174|SETMETAID(7711)")}
	}
	fresh := backend.CopiedFile{Name: "metadata_ml.tmp", Size: 8, Head: []byte("MFSM NEW")}
	lock := backend.CopiedFile{Name: ".mfsmetalogger.lock"}
	all := []string{"metadata_ml.mfs.back", "changelog_ml_back.0.mfs", "changelog_ml_back.1.mfs"}
	for name, c := range map[string]struct {
		found []backend.CopiedFile
		kept  map[string]string
	}{
		"nothing":                {},
		"a half of the metadata": {found: []backend.CopiedFile{{Name: "metadata_ml.tmp", Size: 1 << 20, Head: []byte("MFSM 2.0")}}},
		"the metadata":           {found: []backend.CopiedFile{file(all[0])}},
		"the first change log":   {found: []backend.CopiedFile{file(all[0]), file(all[1]), {Name: "changelog_ml.tmp"}}},
		"logs, and metadata that a metalogger has refused": {found: []backend.CopiedFile{
			{Name: "metadata_ml.tmp", Size: 1 << 20, Head: []byte("MFSM 2.0")}, file(all[1]), file(all[2])}},
		"logs, and eight bytes that mean nothing": {found: []backend.CopiedFile{
			{Name: "metadata_ml.tmp", Size: 8, Head: []byte("MFSM 2.0")}, file(all[1]), file(all[2])}},
		"all": {found: []backend.CopiedFile{lock, file(all[0]), file(all[1]), file(all[2])},
			kept: map[string]string{all[0]: all[0], all[1]: all[1], all[2]: all[2]}},
		"all, and what was changed since": {found: []backend.CopiedFile{file(all[0]), file(all[1]), file(all[2]), file("changelog_ml.0.mfs")},
			kept: map[string]string{all[0]: all[0], all[1]: all[1], all[2]: all[2], "changelog_ml.0.mfs": "changelog_ml.0.mfs"}},
		"a filesystem that was never saved": {found: []backend.CopiedFile{fresh, file(all[1]), file(all[2])},
			kept: map[string]string{"metadata_ml.tmp": all[0], all[1]: all[1], all[2]: all[2]}},
		"the logs of it are not there yet": {found: []backend.CopiedFile{fresh, file(all[1])}},
	} {
		t.Run(name, func(t *testing.T) {
			NewWithT(t).Expect(backupMethod{}.Copied(c.found)).To(Equal(c.kept))
		})
	}
}

func TestTheBeginningOfMetadataHasItsVersion(t *testing.T) {
	g := NewWithT(t)
	head := binary.BigEndian.AppendUint64(binary.BigEndian.AppendUint64([]byte("MFSM 2.0"), 1135), 0x6B046567398B0398)
	g.Expect(backupMethod{}.Made(head)).To(Equal(backend.BackupVersion{Version: 1135, ID: "6B046567398B0398"}))
	for _, bad := range [][]byte{nil, []byte("MFSM NEW"), head[:23], append([]byte("XXXX 2.0"), head[8:]...), append([]byte("MFSM 2.0\xff"), head[9:]...)} {
		_, err := backupMethod{}.Made(bad)
		g.Expect(err).To(HaveOccurred())
	}
}

func TestTheProgramsOfABackupKeepToTheirDirectories(t *testing.T) {
	g := NewWithT(t)
	_, told := backupOf(t, backend.BackupPlace{Claim: "vault"})
	m := New().BackupMethod(told)
	copying := m.Copy("/backups/x/copy", "/run/parallelfs")
	g.Expect(copying.Argv).To(Equal([]string{"mfsmetalogger", "-f", "-c", "/run/parallelfs/mfsmetalogger.cfg", "start"}))
	g.Expect(copying.Files["/run/parallelfs/mfsmetalogger.cfg"]).To(And(ContainSubstring("DATA_PATH = /backups/x/copy\n"),
		ContainSubstring("MASTER_HOST = 10.0.0.1\nMASTER_PORT = 9419\n")))
	check := m.Check("/backups/x/.checking", "/run/parallelfs")
	g.Expect(check.Argv).To(Equal([]string{"mfsmaster", "-c", "/run/parallelfs/mfsmaster.cfg", "-a", "restore"}), "it listens on no port and serves nobody")
	for _, program := range []backend.BackupProgram{copying, check} {
		for _, content := range program.Files {
			g.Expect(content).To(ContainSubstring("DISABLE_OOM_KILLER = 0\n"), "where memory is short, it goes and no daemon")
		}
	}
}

// metadataFile returns a file of metadata with this version, as a copy contains it.
func metadataFile(name string, version uint64, end string) backend.CopiedFile {
	head := binary.BigEndian.AppendUint64(binary.BigEndian.AppendUint64([]byte("MFSM 2.0"), version), 0x6B046567398B0398)
	return backend.CopiedFile{Name: name, Size: 4096, Head: head, End: []byte(end)}
}

func TestOnlyChangesThatTheNewestCompleteMetadataLacksAreNeeded(t *testing.T) {
	const whole = "....[MFS EOF MARKER]"
	logs := []backend.CopiedFile{{Name: "changelog.0.mfs"}, {Name: "changelog_ml.12.mfs"}, {Name: "changelog_ml_back.1.mfs"}, {Name: "changelog_ml.tmp"}}
	for name, c := range map[string]struct {
		metadata []backend.CopiedFile
		first    int
	}{
		"one":                      {[]backend.CopiedFile{metadataFile("metadata_ml.mfs.back", 573, whole)}, 573},
		"two":                      {[]backend.CopiedFile{metadataFile("metadata.mfs.back", 573, whole), metadataFile("metadata.mfs.back.1", 41, whole)}, 573},
		"the newer one is cut off": {[]backend.CopiedFile{metadataFile("metadata.mfs.back.tmp", 573, "...."), metadataFile("metadata.mfs.back", 41, whole)}, 41},
		"the older one is cut off": {[]backend.CopiedFile{metadataFile("metadata_ml.mfs.back", 573, whole), metadataFile("metadata_ml.mfs.back.1", 41, "....")}, 573},
		"both are cut off":         {[]backend.CopiedFile{metadataFile("metadata_ml.mfs.back", 573, "...."), metadataFile("metadata_ml.mfs.back.1", 41, "....")}, 0},
		"never saved":              {[]backend.CopiedFile{{Name: "metadata_ml.mfs.back", Size: 8, Head: []byte("MFSM NEW"), End: []byte("MFSM NEW")}}, 0},
		"of another form":          {[]backend.CopiedFile{{Name: "metadata.mfs.back", Size: 4096, Head: []byte("MFSM 1.7........"), End: []byte(whole)}}, 0},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			changes := backupMethod{}.Changes(append(c.metadata, logs...))
			g.Expect(changes.Names).To(Equal([]string{"changelog.0.mfs", "changelog_ml.12.mfs", "changelog_ml_back.1.mfs"}))
			if c.first == 0 {
				g.Expect(changes.Needed).To(BeNil(), "all changes are of use")
				return
			}
			g.Expect(changes.Needed(fmt.Appendf(nil, "%d: 1795621887|ACCESS(1)\n", c.first-1))).To(BeFalse())
			g.Expect(changes.Needed(fmt.Appendf(nil, "%d: 1795621887|ACCESS(1)\n", c.first))).To(BeTrue())
			g.Expect(changes.Needed([]byte("5"))).To(BeTrue(), "what is cut off is for mfsmaster to judge")
			g.Expect(changes.Needed([]byte("this is no change\n"))).To(BeTrue())
		})
	}
}

// The files come from a real 3.0.117 that was stopped while a program changed the mode of a directory, and started again. The changes 570
// to 572 are in its metadata, and in no change log.
func TestTheHoleThatAStoppingMasterLeavesIsInNoCopy(t *testing.T) {
	g := NewWithT(t)
	directory := t.TempDir()
	g.Expect(os.CopyFS(directory, os.DirFS(filepath.Join("testdata", "hole")))).To(Succeed())
	log, err := os.ReadFile(filepath.Join(directory, "changelog.0.mfs"))
	g.Expect(err).NotTo(HaveOccurred())
	_, after, found := strings.Cut(string(log), "\n569: 1795621887|ATTR(2,448,0,0,1795621885,1795621885,0,0)\n")
	g.Expect(found).To(BeTrue())
	g.Expect(after).To(HavePrefix("573: 1795621890|CREATE(1,after,2,511,18,0,0,0):3\n"))

	g.Expect(backup.Shorten(directory, backupMethod{}.Changes)).To(Succeed())
	g.Expect(os.ReadFile(filepath.Join(directory, "changelog.0.mfs"))).To(BeEquivalentTo(after))
}

func TestAMasterMovesAsManyChangeLogsOnAsItKeeps(t *testing.T) {
	for name, c := range map[string]struct {
		asked v1alpha1.Options
		keeps int
	}{
		"as usual":         {nil, 50},
		"as the user asks": {v1alpha1.Options{"BACK_LOGS": "200"}, 200},
		"none":             {v1alpha1.Options{"BACK_LOGS": "0"}, 1},
		"too many":         {v1alpha1.Options{"BACK_LOGS": "5000"}, 1000},
		"nonsense":         {v1alpha1.Options{"BACK_LOGS": "many"}, 50},
	} {
		t.Run(name, func(t *testing.T) { NewWithT(t).Expect(backLogs(c.asked)).To(Equal(c.keeps)) })
	}
}
