package beegfs

import (
	"testing"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"parallelfs.dev/operator/api/v1alpha1"
	"parallelfs.dev/operator/internal/backend"
	"parallelfs.dev/operator/internal/backend/backendtest"
	"parallelfs.dev/operator/internal/backend/shared/exchange"
	"parallelfs.dev/operator/internal/backend/shared/podspec"
	"parallelfs.dev/operator/internal/node/spec"
)

// lostStore is a filesystem that was healthy and has lost the store of its management service. It has backups in a claim and on a node.
func lostStore(t *testing.T, version string) backend.Input {
	t.Helper()
	in := healthy(t, version)
	in.State = nil
	for i := range in.FileSystemNodes {
		for _, m := range in.FileSystemNodes[i].Spec.Members {
			for j := range m.Targets {
				m.Targets[j].Initialized = new(metav1.NewTime(noon.Add(-time.Hour)))
			}
		}
	}
	in.FileSystem.Spec.Backups = &v1alpha1.BackupsSpec{
		PersistentVolumeClaim: &v1alpha1.BackupsClaim{Name: "vault", Path: "pfs"},
		Nodes:                 &v1alpha1.BackupsNodes{NodeSelector: labels(clientLabel), Count: 1, Directory: "/srv/backups"},
	}
	return in
}

func TestAStoreIsPutBackFromABackupAndItsPlaceIsThatOfTheManagementService(t *testing.T) {
	for _, version := range versions {
		t.Run(version, func(t *testing.T) {
			g, in := NewWithT(t), lostStore(t, version)
			backups := backend.BackupDirectory(in.FileSystem)
			sources := New().RecoverySources(in)
			g.Expect(sources).To(ConsistOf(
				backend.RecoverySource{Name: "backup-in-vault", Kind: v1alpha1.RecoveryBackup, Claim: "vault", Directory: "pfs/" + backups},
				backend.RecoverySource{Name: "backup-at-c1", Kind: v1alpha1.RecoveryBackup, Node: "c1", Directory: "/srv/backups/" + backups}))
			g.Expect(New().MetadataPlace(in.FileSystem)).To(And(
				HaveField("Role", v1alpha1.RoleManagement), HaveField("Field", "spec.beegfs.management"),
				HaveField("NodeSelector", in.FileSystem.Spec.BeeGFS.Management.NodeSelector), HaveField("Component", "management")))
			for _, source := range sources {
				job, told, err := New().RecoveryJob(in, backend.RecoveryRequest{Job: "scratch-recover-1a2b3c4d", Source: source})
				g.Expect(err).NotTo(HaveOccurred())
				g.Expect(told).To(And(HaveField("Backend", "BeeGFS"), HaveField("Version", version), HaveField("Restore", BeNil()),
					HaveField("Source", spec.RecoverySource{Backups: "/source/" + backups}),
					HaveField("Known", HaveValue(Equal(spec.Known{
						Servers: map[string]string{"Metadata": "1-8", "Storage": "1-4"}, Targets: map[string]string{"Storage": "1-6"},
					})))))
				container := job.Spec.Template.Spec.Containers[0]
				g.Expect(container.Image).To(Equal("node:1"), "it runs no program of BeeGFS")
				if source.Claim != "" {
					g.Expect(backendtest.Mounts(job)).To(Equal(map[string]string{"/source": "vault:pfs, read only"}))
					g.Expect(container.SecurityContext.RunAsUser).To(HaveValue(Equal(int64(65534))))
					g.Expect(container.SecurityContext.Capabilities).To(Equal(&corev1.Capabilities{Drop: []corev1.Capability{"ALL"}}))
				} else {
					g.Expect(backendtest.Mounts(job)).To(Equal(map[string]string{"/source": "/srv/backups, read only"}))
					g.Expect(container.SecurityContext.Capabilities.Add).To(Equal([]corev1.Capability{"DAC_READ_SEARCH"}))
				}
			}

			restore := &backend.RestoreRequest{
				Plan: "0123abcd", Backup: "20261123-030000", ID: "8f0c9e1a", Node: "oss2", Directory: "/data/mgmtd",
			}
			job, told, err := New().RecoveryJob(in, backend.RecoveryRequest{
				Job: "scratch-recover-1a2b3c4d", Source: sources[0], Restore: restore,
			})
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(told.Restore).To(HaveValue(Equal(spec.Restore{
				Plan: "0123abcd", Backup: "20261123-030000", ID: "8f0c9e1a", Path: "/data/mgmtd", Data: "data", Component: "management", User: "root",
				Ledger: backend.Ledger(in.FileSystem, "management"),
			})))
			g.Expect(backendtest.Mounts(job)).To(HaveKeyWithValue("/data/mgmtd", "/data/mgmtd"))
			g.Expect(job.Spec.Template.Spec.Affinity).To(Equal(podspec.OnNodes("oss2")))
		})
	}
}

func TestThePlanForAStoreWarnsThatBuddyGroupsAreRestoredToo(t *testing.T) {
	g, in := NewWithT(t), lostStore(t, "8.3.1")
	warns := func(copies int32, mirrored bool) string {
		fs := in.FileSystem.DeepCopy()
		for i := range fs.Spec.StoragePools {
			fs.Spec.StoragePools[i].Copies = copies
		}
		fs.Spec.BeeGFS.MirrorMetadata = mirrored
		return New().MetadataPlace(fs).Beware
	}
	g.Expect(warns(1, false)).To(BeEmpty())
	g.Expect(warns(2, false)).To(ContainSubstring("a side that has got out of step since would be taken for whole"))
	g.Expect(warns(1, true)).To(Equal(warns(2, false)))
}

func TestDrainedAndUnusedTargetsAreNotMissingInAStore(t *testing.T) {
	g, in := NewWithT(t), lostStore(t, "7.4.6")
	for i := range in.FileSystemNodes {
		for j := range in.FileSystemNodes[i].Spec.Members {
			m := &in.FileSystemNodes[i].Spec.Members[j]
			for k := range m.Targets {
				switch m.Targets[k].Name {
				case hdd0:
					m.Targets[k].Drained = new(metav1.NewTime(noon))
				case ssd1:
					m.Targets[k].Initialized = nil
				}
			}
		}
	}
	known := known(in.Indexed())
	said, err := exchange.Said(known)
	g.Expect(err).NotTo(HaveOccurred())
	var targets []int32
	for _, t := range said.Targets {
		targets = append(targets, t.ID)
	}
	g.Expect(targets).To(ConsistOf(idOf(in, ssd0), idOf(in, ssd2), idOf(in, "scratch-oss2-ssd-s1"), idOf(in, hdd1)))
	g.Expect(said.Servers).NotTo(ContainElement(backend.Server{Role: v1alpha1.RoleStorage, ID: recordOf(in, "storage-bulk.oss1").ID}),
		"a server all of whose disks were emptied is missed by nobody")
}

func TestTheNodeOfARecoveryGetsADiskForTheStore(t *testing.T) {
	g, in := NewWithT(t), lostStore(t, "7.4.6")
	on := func() []string {
		a, err := New().Allocate(in)
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(a.Status.Metadata.Node).To(Equal("oss1"), "nothing moves by a label")
		return a.TargetNodes.Management
	}
	in.Nodes[1].Labels, in.Nodes[2].Labels = labels(metadataLabel, storageLabel), labels(managementLabel, metadataLabel, storageLabel)
	g.Expect(on()).To(Equal([]string{"oss1"}))
	in.FileSystem.Annotations = map[string]string{v1alpha1.AnnotationRecoverMetadata: v1alpha1.RecoverPlan}
	g.Expect(on()).To(Equal([]string{"oss1", "oss2"}))
}

func TestTargetsThatJoinedAfterTheBackupRegisterWhenTheyRestart(t *testing.T) {
	for _, version := range versions {
		t.Run(version, func(t *testing.T) {
			g := NewWithT(t)
			in := healthy(t, version)
			for i := range in.FileSystemNodes {
				for _, m := range in.FileSystemNodes[i].Spec.Members {
					for j := range m.Targets {
						m.Targets[j].Initialized = new(metav1.NewTime(noon.Add(-time.Hour)))
					}
				}
			}
			forget := func() {
				meta, target := recordOf(in, "meta-0.oss2").ID, idOf(in, ssd0)
				state := *in.State
				state.Servers, state.Targets = nil, nil
				for _, s := range in.State.Servers {
					if s.Role != v1alpha1.RoleMetadata || s.ID != meta {
						state.Servers = append(state.Servers, s)
					}
				}
				for _, t := range in.State.Targets {
					lost := t.Role == v1alpha1.RoleMetadata && t.ID == meta || t.Role == v1alpha1.RoleStorage && t.ID == target
					if !lost {
						state.Targets = append(state.Targets, t)
					}
				}
				in.State = &state
			}
			forget()
			g.Expect(New().Observe(in).Restarts).To(BeEmpty(), "who has forgotten something by himself is not helped by a restart")
			in.FileSystem.Status.Metadata.Recovered = &v1alpha1.MetadataRecovered{
				PlanHash: "0123abcd", From: "backup", Time: metav1.NewTime(noon.Add(-time.Minute)),
			}
			g.Expect(New().Observe(in).Restarts).To(ConsistOf(
				And(HaveField("Pod.Name", "meta--0-oss2"), HaveField("Safe", true), HaveField("Why", ContainSubstring("metadata server"))),
				And(HaveField("Pod.Name", "storage-ssd--oss1"), HaveField("Safe", true), HaveField("Why", And(
					ContainSubstring("storage target"), ContainSubstring("joined after the backup"))))))
			for i := range in.Pods {
				in.Pods[i].Started = noon.Add(-time.Second)
			}
			g.Expect(New().Observe(in).Restarts).To(BeEmpty(), "it has told what it has")
		})
	}
}

func TestThePodOfAManagementServiceBeforeARecoveryIsOutdatedAfterIt(t *testing.T) {
	g := NewWithT(t)
	in := recorded(t, cluster("8.3.1"))
	hash := func() string {
		return daemonSets(t, in)["scratch-management"].Spec.Template.Annotations["parallelfs.dev/template-hash"]
	}
	before := hash()
	g.Expect(before).NotTo(BeEmpty())
	in.FileSystem.Status.Metadata.Recovered = &v1alpha1.MetadataRecovered{PlanHash: "0123abcd"}
	g.Expect(hash()).NotTo(Equal(before), "it may still see what was mounted then")
}
