package record_test

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"parallelfs.dev/operator/api/v1alpha1"
	"parallelfs.dev/operator/internal/node/record"
	"parallelfs.dev/operator/internal/node/spec"
)

const name = "scratch-ssd-0123456789abcdef"

var initialized = metav1.NewTime(time.Date(2026, 11, 23, 9, 0, 0, 0, time.UTC))

// told returns a FileSystemNode with a server that keeps data on one disk.
func told() *v1alpha1.FileSystemNode {
	n := &v1alpha1.FileSystemNode{ObjectMeta: metav1.ObjectMeta{Namespace: "storage"}, Spec: v1alpha1.FileSystemNodeSpec{
		FileSystem: v1alpha1.TargetOwner{Name: "scratch", UID: "1"}, Node: "oss1",
		Facts: &v1alpha1.FileSystemFacts{Type: "AnyFS", MetadataNode: "mds1", MetadataTarget: "scratch-management-1", BasePort: 8064},
		Members: []v1alpha1.NodeMember{{
			Name: "storage-ssd", Role: v1alpha1.RoleStorage, StoragePool: "ssd", Slot: 2, ID: 7,
			Targets: []v1alpha1.MemberTarget{{Name: name, ID: 12, Initialized: &initialized}},
		}},
	}}
	return n
}

func ofDisk(n *v1alpha1.FileSystemNode) spec.TargetRecord {
	r, _ := record.Of(n, &n.Spec.Members[0], &n.Spec.Members[0].Targets[0])
	return r
}

func disk() *v1alpha1.StorageTarget {
	return &v1alpha1.StorageTarget{ObjectMeta: metav1.ObjectMeta{Namespace: "storage", Name: name}, Spec: v1alpha1.StorageTargetSpec{
		FileSystem: v1alpha1.TargetOwner{Name: "scratch", UID: "2"}, Node: "oss1", Role: v1alpha1.RoleStorage, StoragePool: "ssd",
	}}
}

func TestARecordIsReadBackAsItWasWrittenWhateverTheUIDOfTheFileSystemIsNow(t *testing.T) {
	g, top := NewWithT(t), t.TempDir()
	g.Expect(record.Write(top, ofDisk(told()))).To(Succeed())
	found := record.Read(top, disk())
	g.Expect(found.Message).To(BeEmpty())
	g.Expect(found.Facts).To(Equal(told().Spec.Facts))
	g.Expect(found.Member.Initialized.Equal(&initialized)).To(BeTrue())
	found.Member.Initialized = nil
	g.Expect(found.Member).To(Equal(&v1alpha1.RecordedMember{
		Name: "storage-ssd", Role: v1alpha1.RoleStorage, StoragePool: "ssd", Slot: 2, ID: 7, TargetID: 12,
	}))
}

func TestAnUnchangedRecordIsNotWrittenAgain(t *testing.T) {
	g, top := NewWithT(t), t.TempDir()
	path := filepath.Join(top, spec.TargetRecordFile)
	g.Expect(record.Write(top, ofDisk(told()))).To(Succeed())
	before, err := os.Stat(path)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(record.Write(top, ofDisk(told()))).To(Succeed())
	after, err := os.Stat(path)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(os.SameFile(before, after)).To(BeTrue(), "a file that is written is a new one")

	changed := told()
	changed.Spec.Members[0].Targets[0].ID = 13
	g.Expect(record.Write(top, ofDisk(changed))).To(Succeed())
	g.Expect(record.Read(top, disk()).Member.TargetID).To(BeEquivalentTo(13))
}

func TestARecordOfANewerOperatorIsNotOverwritten(t *testing.T) {
	g, top := NewWithT(t), t.TempDir()
	path := filepath.Join(top, spec.TargetRecordFile)
	const newer = `{"version": 2, "what": "nobody knows yet"}`
	g.Expect(os.WriteFile(path, []byte(newer), 0o600)).To(Succeed())
	g.Expect(record.Write(top, ofDisk(told()))).To(MatchError(ContainSubstring("the program is older than the file")))
	g.Expect(os.ReadFile(path)).To(BeEquivalentTo(newer))
	g.Expect(record.Read(top, disk()).Message).To(ContainSubstring("the program is older than the file"))
}

func TestADamagedRecordIsWrittenAgain(t *testing.T) {
	g, top := NewWithT(t), t.TempDir()
	g.Expect(os.WriteFile(filepath.Join(top, spec.TargetRecordFile), []byte("{"), 0o600)).To(Succeed())
	g.Expect(record.Write(top, ofDisk(told()))).To(Succeed())
	g.Expect(record.Read(top, disk()).Message).To(BeEmpty())
}

func TestADiskThatWasListedOnceStaysSo(t *testing.T) {
	g, top := NewWithT(t), t.TempDir()
	g.Expect(record.Write(top, ofDisk(told()))).To(Succeed())
	takenOver := told()
	takenOver.Spec.FileSystem.UID, takenOver.Spec.Members[0].Targets[0].Initialized = "2", nil
	g.Expect(record.Write(top, ofDisk(takenOver))).To(Succeed())
	g.Expect(record.Read(top, disk()).Member.Initialized.Equal(&initialized)).To(BeTrue())
}

func TestADiskWithoutARecordAddsNoAssignments(t *testing.T) {
	NewWithT(t).Expect(record.Read(t.TempDir(), disk())).To(Equal(&v1alpha1.TargetRecord{}))
}

func TestARecordIsNotUsedWhen(t *testing.T) {
	for what, c := range map[string]struct {
		change func(r *spec.TargetRecord)
		says   string
	}{
		"a newer operator wrote it":    {func(r *spec.TargetRecord) { r.Version++ }, "has version 2 of its form, and this program reads versions up to 1"},
		"it was copied from a disk":    {func(r *spec.TargetRecord) { r.Target = "scratch-ssd-fedcba9876543210" }, "it was copied here"},
		"it was copied from a node":    {func(r *spec.TargetRecord) { r.Node = "oss2" }, "it was copied here"},
		"it is another FileSystem's":   {func(r *spec.TargetRecord) { r.FileSystem.Name = "home" }, "FileSystem storage/home"},
		"it is another namespace's":    {func(r *spec.TargetRecord) { r.FileSystem.Namespace = "lab" }, "FileSystem lab/scratch"},
		"the disk had another role":    {func(r *spec.TargetRecord) { r.Member.Role = "Metadata" }, "a server with the role Metadata"},
		"the disk was of another pool": {func(r *spec.TargetRecord) { r.Member.StoragePool = "hdd" }, `pool "hdd"`},
		"its time is no time":          {func(r *spec.TargetRecord) { r.Initialized = "yesterday" }, "can't be understood"},
	} {
		t.Run(what, func(t *testing.T) {
			g, top, r := NewWithT(t), t.TempDir(), ofDisk(told())
			c.change(&r)
			g.Expect(record.Write(top, r)).To(Succeed())
			found := record.Read(top, disk())
			g.Expect(found.Message).To(ContainSubstring(c.says))
			g.Expect(found.Member).To(BeNil())
			g.Expect(found.Facts).To(BeNil())
		})
	}
}

func TestAnInvalidRecordIsNotUsed(t *testing.T) {
	g, top := NewWithT(t), t.TempDir()
	path := filepath.Join(top, spec.TargetRecordFile)
	g.Expect(os.WriteFile(path, []byte("{"), 0o600)).To(Succeed())
	g.Expect(record.Read(top, disk()).Message).To(ContainSubstring("can't be understood"))
	g.Expect(os.WriteFile(path, make([]byte, 1<<17), 0o600)).To(Succeed())
	g.Expect(record.Read(top, disk()).Message).To(ContainSubstring("is larger than"))
	g.Expect(os.Remove(path)).To(Succeed())
	g.Expect(os.Symlink("/etc/hostname", path)).To(Succeed())
	g.Expect(record.Read(top, disk()).Message).To(ContainSubstring("can't be read"), "a link leads elsewhere")
}

func TestARecordIsWrittenToNoDiskThatIsNotProven(t *testing.T) {
	g, top := NewWithT(t), t.TempDir()
	err := record.Keep(spec.Target{Name: name, Path: top, UUID: "0a1b2c3d-0000-4000-8000-0000000000aa"}, ofDisk(told()))
	g.Expect(err).To(MatchError(ContainSubstring("is not mounted")))
	g.Expect(os.ReadDir(top)).To(BeEmpty())
}

func TestAFileSystemNodeWithoutFactsHasNoRecord(t *testing.T) {
	n := told()
	n.Spec.Facts = nil
	_, ok := record.Of(n, &n.Spec.Members[0], &n.Spec.Members[0].Targets[0])
	NewWithT(t).Expect(ok).To(BeFalse())
}
