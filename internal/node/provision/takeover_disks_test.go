//go:build disks

package provision_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	. "github.com/onsi/gomega"

	"parallelfs.dev/operator/api/v1alpha1"
	"parallelfs.dev/operator/internal/node/provision/provisiontest"
	"parallelfs.dev/operator/internal/node/record"
	"parallelfs.dev/operator/internal/node/spec"
	"parallelfs.dev/operator/test/places"
)

// directoryOf is the directory of a server on a disk, and its marker.
func directoryOf(l *provisiontest.Lab, t *v1alpha1.StorageTarget) string {
	return filepath.Join(l.Mountpoint(t), "chunkserver")
}

// ofAnother makes a disk that of another FileSystem on another node, with a server's directory and a record, and returns the target that is
// to take it over when its plan is approved.
func ofAnother(l *provisiontest.Lab) (*v1alpha1.StorageTarget, *provisiontest.Disk) {
	l.T.Helper()
	d := l.Disk("data", 64*provisiontest.Mebi)
	before := l.Target(d, func(t *v1alpha1.StorageTarget) {
		t.Namespace, t.Name, t.Spec.FileSystem.Name, t.Spec.Node, t.Spec.Cluster = "lab", "old-"+t.Name, "old", "oss9", lostCluster
	})
	l.Expect(l.Pass(before)).To(Succeed())
	l.ExpectProven(before, d)
	owner := spec.Owner{Namespace: "lab", Name: "old", UID: before.Spec.FileSystem.UID}
	directory := directoryOf(l, before)
	l.Expect(os.MkdirAll(filepath.Join(directory, "data"), 0o755)).To(Succeed())
	l.Expect(os.WriteFile(filepath.Join(directory, "data", "chunk"), []byte("data"), 0o600)).To(Succeed())
	marker, err := json.Marshal(spec.Marker{Version: 1, Owner: owner, Component: "chunkserver", State: spec.MarkerInitialized, Time: "2026-11-23T09:00:00Z"})
	l.Expect(err).NotTo(HaveOccurred())
	l.Expect(os.WriteFile(filepath.Join(directory, spec.MarkerFile), marker, 0o600)).To(Succeed())
	l.Expect(record.Write(l.Mountpoint(before), spec.TargetRecord{
		Version: 1, FileSystem: owner, Node: "oss9", Type: "AnyFS", MetadataNode: "mds1",
		Member: spec.RecordedMember{Name: "chunkserver-ssd", Role: "Storage", StoragePool: "ssd"}, Target: before.Name,
	})).To(Succeed())
	l.Unmount(before)

	after := l.Target(d, func(t *v1alpha1.StorageTarget) {
		t.Spec.Cluster, t.Spec.FileSystem.UID = newCluster, "99999999-2222-3333-4444-555555555555"
	})
	whole := d.Content()
	l.Expect(l.Pass(after)).To(Succeed())
	l.Expect(provisiontest.Ready(after).Reason).To(Equal(v1alpha1.ReasonDeviceRefused), provisiontest.Ready(after).Message)
	l.Expect(after.Status.FormerOwner).NotTo(BeNil(), provisiontest.Ready(after).Message)
	after.Spec.TakeOverFrom = after.Status.FormerOwner.DeepCopy()
	l.Expect(l.Pass(after)).To(Succeed())
	l.Expect(provisiontest.Ready(after).Reason).To(Equal(v1alpha1.ReasonAwaitingApproval), provisiontest.Ready(after).Message)
	l.Expect(d.Content()).To(Equal(whole), "nothing is written before the approval")
	after.Spec.ApprovedPlan = after.Status.Plan.Hash
	return after, d
}

// expectTakenOver expects that the disk is the target's, with the data of its former owner.
func expectTakenOver(l *provisiontest.Lab, t *v1alpha1.StorageTarget, d *provisiontest.Disk) {
	l.T.Helper()
	l.ExpectProven(t, d)
	l.Expect(l.Made).To(Equal(1), "it was formatted once, by its former owner")
	l.Expect(t.Status.Provisioned.FormerOwner).To(BeNil())
	l.Expect(t.Status.FormerOwner.Owner.FileSystem).To(Equal("old"), "other disks call it by its former name")
	l.Expect(t.Status.Record.Message).To(BeEmpty())
	l.Expect(t.Status.Record.Member).To(HaveField("Name", "chunkserver-ssd"))
	directory := directoryOf(l, t)
	l.Expect(os.ReadFile(filepath.Join(directory, "data", "chunk"))).To(BeEquivalentTo("data"))
	content, err := os.ReadFile(filepath.Join(directory, spec.MarkerFile))
	l.Expect(err).NotTo(HaveOccurred())
	var marker spec.Marker
	l.Expect(json.Unmarshal(content, &marker)).To(Succeed())
	l.Expect(marker).To(Equal(spec.Marker{
		Version: 1, Component: "chunkserver", State: spec.MarkerInitialized, Time: "2026-11-23T09:00:00Z",
		Owner: spec.Owner{Namespace: "storage", Name: "scratch", UID: "11111111-2222-3333-4444-555555555555"},
	}), "its server compares the uid, and decides")
}

func TestADiskOfAnotherFileSystemIsTakenOverWithItsData(t *testing.T) {
	l := provisiontest.New(t)
	target, d := ofAnother(l)
	l.Expect(l.Pass(target)).To(Succeed())
	expectTakenOver(l, target, d)

	// The FileSystem is deleted and made again: its own marker says whose the disk is, and the label is still the former one.
	l.Unmount(target)
	again := l.Target(d, func(t *v1alpha1.StorageTarget) { t.Spec.Cluster = newCluster })
	l.Expect(l.Pass(again)).To(Succeed())
	l.ExpectProven(again, d)
	l.Expect(l.Made).To(Equal(1))
}

func TestATakeOverThatIsKilledAtAnyMomentEndsTheSame(t *testing.T) {
	l := provisiontest.New(t)
	target, _ := ofAnother(l)
	all := moments(l, target)
	NewWithT(t).Expect(all).To(ContainElements("after RenameOwner", "after Mark"))
	for _, i := range places.Kills.Of(t, len(all)) {
		t.Run("killed "+all[i], func(t *testing.T) {
			l := provisiontest.New(t)
			target, d := ofAnother(l)
			calls := 0
			agent := l.Agent(func(string, bool) error {
				if calls++; calls > i {
					return errKilled
				}
				return nil
			})
			l.Expect(agent.Pass(t.Context(), target, l.Record)).To(MatchError(errKilled))
			l.Expect(l.Pass(target)).To(Succeed())
			expectTakenOver(l, target, d)
		})
	}
}

func TestADiskWhoseServersNameAnotherOwnerIsNotTakenOver(t *testing.T) {
	l := provisiontest.New(t)
	target, d := ofAnother(l)
	l.Must("mount", d.Loop, t.TempDir())
	strange := filepath.Join(l.Must("findmnt", "--noheadings", "--output", "TARGET", d.Loop), "chunkserver", spec.MarkerFile)
	l.Expect(os.WriteFile(strange, []byte(`{"version":1,"owner":{"namespace":"x","name":"y","uid":"z"},"component":"chunkserver","state":"Initialized"}`), 0o600)).To(Succeed())
	l.Must("umount", d.Loop)
	l.Expect(l.Pass(target)).NotTo(Succeed())
	l.Expect(provisiontest.Ready(target).Message).To(ContainSubstring("names the FileSystem x/y, and the disk was that of lab/old"))
	l.Expect(os.ReadFile(filepath.Join(l.Mountpoint(target), spec.TargetMarkerFile))).To(ContainSubstring(`"name": "old"`), "it is still the former owner's")
}
