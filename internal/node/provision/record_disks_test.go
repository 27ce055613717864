//go:build disks

package provision_test

import (
	"os"
	"path/filepath"
	"strconv"
	"testing"

	. "github.com/onsi/gomega"

	"parallelfs.dev/operator/api/v1alpha1"
	"parallelfs.dev/operator/internal/node/provision/provisiontest"
	"parallelfs.dev/operator/internal/node/record"
	"parallelfs.dev/operator/internal/node/spec"
)

const lostCluster, newCluster = "11-lost", "22-new"

// rebuilt returns the target of another cluster that has only the disk.
func rebuilt(l *provisiontest.Lab, d *provisiontest.Disk, takeOver string) *v1alpha1.StorageTarget {
	return l.Target(d, func(t *v1alpha1.StorageTarget) {
		t.Spec.Cluster, t.Spec.TakeOver, t.Spec.FileSystem.UID = newCluster, takeOver, "99999999-2222-3333-4444-555555555555"
	})
}

func TestADiskThatIsTakenOverShowsTheAssignmentOfItsServer(t *testing.T) {
	l := provisiontest.New(t)
	d := l.Disk("data", 64*provisiontest.Mebi)
	before := l.Target(d, func(t *v1alpha1.StorageTarget) { t.Spec.Cluster = lostCluster })
	l.Expect(l.Pass(before)).To(Succeed())
	l.Expect(before.Status.Record).To(BeNil(), "a disk that this cluster has made says nothing")
	n := &v1alpha1.FileSystemNode{Spec: v1alpha1.FileSystemNodeSpec{
		FileSystem: before.Spec.FileSystem, Node: before.Spec.Node, Facts: &v1alpha1.FileSystemFacts{Type: "AnyFS", MetadataNode: "mds1", BasePort: 8064},
	}}
	n.Namespace = before.Namespace
	wanted, _ := record.Of(n, &v1alpha1.NodeMember{Name: "storage-ssd", Role: v1alpha1.RoleStorage, StoragePool: "ssd", ID: 7},
		&v1alpha1.MemberTarget{Name: before.Name, ID: 12})
	onDisk := spec.Target{Name: before.Name, Path: l.Mountpoint(before), UUID: before.Status.Provisioned.UUID}
	l.Expect(record.Keep(onDisk, wanted)).To(Succeed())
	other := onDisk
	other.UUID = "0a1b2c3d-0000-4000-8000-0000000000aa"
	l.Expect(record.Keep(other, wanted)).To(MatchError(ContainSubstring("has another filesystem mounted on it")))
	l.Unmount(before)

	after := rebuilt(l, d, "")
	l.Expect(l.Pass(after)).To(Succeed())
	l.Expect(provisiontest.Ready(after).Reason).To(Equal(v1alpha1.ReasonOtherCluster))
	l.Expect(after.Status.Record).To(BeNil(), "nobody has approved that this cluster takes it over")

	after = rebuilt(l, d, lostCluster)
	l.Expect(l.Pass(after)).To(Succeed())
	l.ExpectProven(after, d)
	l.Expect(l.Made).To(Equal(1), "it was formatted once")
	l.Expect(after.Status.Record).To(Equal(&v1alpha1.TargetRecord{
		Facts:  &v1alpha1.FileSystemFacts{Type: "AnyFS", MetadataNode: "mds1", BasePort: 8064},
		Member: &v1alpha1.RecordedMember{Name: "storage-ssd", Role: v1alpha1.RoleStorage, StoragePool: "ssd", ID: 7, TargetID: 12},
	}))

	// Afterwards the record is this cluster's own: what was read when the disk came stays.
	changed := wanted
	changed.TargetID, changed.FileSystem.UID = 13, after.Spec.FileSystem.UID
	l.Expect(record.Keep(onDisk, changed)).To(Succeed())
	l.Expect(l.Pass(after)).To(Succeed())
	l.Expect(after.Status.Record.Member.TargetID).To(BeEquivalentTo(12))
}

func TestARecordThatCanNotBeUsedIsReadAgain(t *testing.T) {
	l := provisiontest.New(t)
	d := l.Disk("data", 64*provisiontest.Mebi)
	before := l.Target(d)
	l.Expect(l.Pass(before)).To(Succeed())
	path := filepath.Join(l.Mountpoint(before), spec.TargetRecordFile)
	l.Expect(os.WriteFile(path, []byte("{"), 0o600)).To(Succeed())
	l.Unmount(before)

	after := l.Target(d)
	l.Expect(l.Pass(after)).To(Succeed())
	l.ExpectProven(after, d)
	l.Expect(after.Status.Record.Message).To(ContainSubstring("can't be understood"))
	l.Expect(os.Remove(path)).To(Succeed())
	l.Expect(l.Pass(after)).To(Succeed())
	l.Expect(after.Status.Record).To(Equal(&v1alpha1.TargetRecord{}), "it says that there is none")
}

func TestAProvenTargetReportsHowManyOfItsInodesAreUsed(t *testing.T) {
	l := provisiontest.New(t)
	d := l.Disk("data", 64*provisiontest.Mebi)
	target := l.Target(d)
	l.Expect(l.Pass(target)).To(Succeed())
	l.ExpectProven(target, d)
	l.Expect(target.Status.UsedInodesPerMille).To(BeNumerically("<", 50))
	for i := range 2000 {
		l.Expect(os.WriteFile(filepath.Join(l.Mountpoint(target), strconv.Itoa(i)), nil, 0o600)).To(Succeed())
	}
	l.Expect(l.Pass(target)).To(Succeed())
	l.Expect(target.Status.UsedInodesPerMille).To(And(BeNumerically(">", 50), BeNumerically("<=", 1000)))
}
