package beegfs

import (
	"testing"

	. "github.com/onsi/gomega"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"

	"parallelfs.dev/operator/api/v1alpha1"
	"parallelfs.dev/operator/internal/backend"
	"parallelfs.dev/operator/internal/backend/beegfs/store"
	"parallelfs.dev/operator/internal/backend/shared/podspec"
	"parallelfs.dev/operator/internal/node/spec"
)

func backupOf(t *testing.T, version string, place backend.BackupPlace) (*batchv1.Job, spec.Backup, error) {
	t.Helper()
	in := recorded(t, cluster(version))
	in.FileSystem.Spec.Backups = &v1alpha1.BackupsSpec{Keep: v1alpha1.BackupsKeep{Count: 5}, ObjectStore: &v1alpha1.ObjectStore{
		Endpoint: "https://s3.example.org", Bucket: "vault", SecretName: "s3",
	}}
	return New().BackupJob(in, backend.BackupRequest{Job: "scratch-backup-1a2b3c4d", Backup: "20261123-030000", Place: place, Pieces: 1})
}

func TestTheJobOfABackupAsksTheProbeAndHasNoRightButToItsPlace(t *testing.T) {
	for name, c := range map[string]struct {
		place backend.BackupPlace
		user  int64
	}{
		"in a claim": {backend.BackupPlace{Claim: "vault"}, 65534},
		"in a store": {backend.BackupPlace{ObjectStore: "https://s3.example.org/vault"}, 65534},
		"on a node":  {backend.BackupPlace{Node: "oss2", Directory: "/srv/backups"}, 0},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			job, told, err := backupOf(t, "7.4.6", c.place)
			g.Expect(err).NotTo(HaveOccurred())
			pod := job.Spec.Template.Spec
			container := pod.Containers[0]
			g.Expect(container.SecurityContext.RunAsUser).To(HaveValue(Equal(c.user)))
			g.Expect(container.SecurityContext.Capabilities).To(Equal(&corev1.Capabilities{Drop: []corev1.Capability{"ALL"}}))
			g.Expect(pod.SecurityContext.FSGroup).To(HaveValue(Equal(int64(65534))), "who is not root can read the secret")
			g.Expect(container.Image).To(Equal(pod.InitContainers[0].Image), "it runs no program of BeeGFS")
			var paths []string
			for _, v := range pod.Volumes {
				if v.HostPath != nil {
					paths = append(paths, v.HostPath.Path)
				}
			}
			if c.place.Node == "" {
				g.Expect(paths).To(BeEmpty(), "it sees nothing of the node")
			} else {
				g.Expect(paths).To(Equal([]string{"/srv/backups"}))
			}
			g.Expect(container.VolumeMounts).To(ContainElement(And(HaveField("MountPath", "/etc/parallelfs-auth"), HaveField("ReadOnly", true))))
			g.Expect(told).To(And(HaveField("Backend", "BeeGFS"), HaveField("Version", "7.4.6"), HaveField("Copied", "10.0.0.1:8009"),
				HaveField("SecretFile", "/etc/parallelfs-auth/conn.auth"), HaveField("Asked", ""), HaveField("Keep", 5)))
			g.Expect(told.ObjectStore == nil).To(Equal(c.place.ObjectStore == ""))
		})
	}
}

func TestABeeGFS8IsBackedUpByTheSameJob(t *testing.T) {
	g := NewWithT(t)
	job, told, err := backupOf(t, "8.3.1", backend.BackupPlace{Claim: "vault"})
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(told).To(And(HaveField("Version", "8.3.1"), HaveField("Copied", "10.0.0.1:8009"), HaveField("SecretFile", "/etc/parallelfs-auth/conn.auth")))
	g.Expect(job.Spec.Template.Spec.Containers[0].SecurityContext.RunAsUser).To(HaveValue(Equal(int64(65534))))
}

func TestTheProbeSeesTheStoreAndCannotWriteIt(t *testing.T) {
	g := NewWithT(t)
	for _, version := range []string{"7.4.6", "8.3.1"} {
		pod := daemonSets(t, recorded(t, cluster(version)))["scratch-management"].Spec.Template.Spec
		var sees []string
		for _, m := range pod.Containers[1].VolumeMounts {
			if m.Name == "targets" || m.Name == "node" {
				sees = append(sees, m.Name)
				g.Expect(m.ReadOnly).To(BeTrue(), m.Name)
			}
			g.Expect(m.Name).NotTo(Equal(stateVolume))
		}
		g.Expect(sees).To(ConsistOf("targets", "node"), version)
		for _, m := range pod.Containers[0].VolumeMounts {
			g.Expect(m.ReadOnly).To(Equal(m.Name != "targets" && m.Name != stateVolume && m.Name != "run"), m.Name)
		}
	}
}

func TestTheStoreOfABeeGFS8HasOnlyFieldsThatAnOlderProbeReads(t *testing.T) {
	// A pod that is older than the operator reads the same file when its container starts again, and refuses unknown fields.
	g := NewWithT(t)
	g.Expect(New().StoreDatabase("7.4.6")).To(BeNil())
	g.Expect(New().StoreDatabase("8.3.1")).To(HaveField("File", "mgmtd.sqlite"))
	in := recorded(t, cluster("8.3.1"))
	g.Expect(storeOf(in.FileSystem)).To(Equal(&spec.Store{
		NodeFile: podspec.NodeFile(in.FileSystem), Member: "management", OnTargets: spec.OnTargets{Directory: "management", Data: "data"},
		SecretFile: "/etc/parallelfs-auth/conn.auth",
	}))
}

func TestABackupLacksWhatTheServiceHasNotWrittenYet(t *testing.T) {
	content := store.Content{
		Metadata: []int32{1, 2}, Storage: []int32{1}, Root: 1, RootMirrored: true, Targets: map[int32]int32{101: 1, 102: 1},
		Pools: map[int32][]int32{1: {101}, 2: {102}}, StorageMirrors: map[int32]store.Pair{3: {Primary: 101, Secondary: 102}},
		MetadataMirrors: map[int32]store.Pair{1: {Primary: 1, Secondary: 2}},
	}
	said := func() backend.State {
		return backend.State{
			Servers: []backend.Server{{Role: v1alpha1.RoleManagement, ID: 1}, {Role: v1alpha1.RoleMetadata, ID: 2}, {Role: v1alpha1.RoleStorage, ID: 1}},
			Targets: []backend.Target{{Role: v1alpha1.RoleMetadata, ID: 2, ServerID: 2}, {Role: v1alpha1.RoleStorage, ID: 101, ServerID: 1}},
			Pools:   []backend.Pool{{ID: 1, Name: "ssd", Targets: []int32{101}}},
			Mirrors: []backend.Mirror{
				{Role: v1alpha1.RoleStorage, ID: 3, Primary: 101, Secondary: 102}, {Role: v1alpha1.RoleMetadata, ID: 1, Primary: 1, Secondary: 2},
			},
			RootID: 1, MetadataMirrored: true,
		}
	}
	NewWithT(t).Expect(unwritten(content, said())).To(BeEmpty())
	for name, c := range map[string]struct {
		change func(s *backend.State)
		lacks  string
	}{
		"a metadata server":           {func(s *backend.State) { s.Servers[1].ID = 3 }, "metadata server 3"},
		"a storage server":            {func(s *backend.State) { s.Servers[2].ID = 2 }, "storage server 2"},
		"a target":                    {func(s *backend.State) { s.Targets[1].ID = 103 }, "storage target 103 of server 1"},
		"a target on another server":  {func(s *backend.State) { s.Targets[1].ServerID = 2 }, "storage target 101 of server 2"},
		"a pool":                      {func(s *backend.State) { s.Pools[0].ID = 3 }, "storage pool 3 (ssd) with its targets"},
		"a target of a pool":          {func(s *backend.State) { s.Pools[0].Targets = []int32{102} }, "storage pool 1 (ssd) with its targets"},
		"a group that switched over":  {func(s *backend.State) { s.Mirrors[0].Primary, s.Mirrors[0].Secondary = 102, 101 }, "buddy group 3 (Storage) with the primary 102"},
		"a group of metadata servers": {func(s *backend.State) { s.Mirrors[1].ID = 2 }, "buddy group 2 (Metadata) with the primary 1"},
		"who owns the root directory": {func(s *backend.State) { s.RootID = 2 }, "that 2 owns the root directory"},
		"that the root is mirrored":   {func(s *backend.State) { s.MetadataMirrored = false }, "that 1 owns the root directory"},
	} {
		t.Run(name, func(t *testing.T) {
			g, s := NewWithT(t), said()
			c.change(&s)
			g.Expect(unwritten(content, s)).To(HaveLen(1))
			g.Expect(unwritten(content, s)[0]).To(BeEquivalentTo(c.lacks))
		})
	}
}
