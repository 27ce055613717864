package record_test

import (
	"os"
	"path/filepath"
	"testing"

	. "github.com/onsi/gomega"

	"parallelfs.dev/operator/api/v1alpha1"
	"parallelfs.dev/operator/internal/node/record"
	"parallelfs.dev/operator/internal/node/spec"
	"parallelfs.dev/operator/internal/node/stored/storedtest"
)

func TestTheRecordBesideTheDataIsReadAndWrittenAsInVersion1(t *testing.T) {
	g := NewWithT(t)
	want := spec.TargetRecord{
		Version: 1, FileSystem: spec.Owner{Namespace: "storage", Name: "scratch", UID: "3f2a7c1e-5b0d-4c59-9a83-6d1f0e7b2c44"}, Node: "oss1",
		Type: "BeeGFS", MetadataNode: "mds1", MetadataTarget: "scratch-management-0123456789abcdef", BasePort: 8064,
		Member: spec.RecordedMember{Name: "storage-ssd", Role: "Storage", StoragePool: "ssd", Slot: 2, ID: 7},
		Target: name, TargetID: 12, Initialized: "2026-11-23T09:00:00Z",
	}
	storedtest.ExpectWhole(t, want)
	found := record.Read(filepath.Join("testdata", "v1"), disk())
	g.Expect(found.Message).To(BeEmpty())
	g.Expect(found.Facts).To(Equal(&v1alpha1.FileSystemFacts{
		Type: "BeeGFS", MetadataNode: "mds1", MetadataTarget: "scratch-management-0123456789abcdef", BasePort: 8064,
	}))
	g.Expect(found.Member.Initialized.Equal(&initialized)).To(BeTrue())
	found.Member.Initialized = nil
	g.Expect(found.Member).To(Equal(&v1alpha1.RecordedMember{
		Name: "storage-ssd", Role: v1alpha1.RoleStorage, StoragePool: "ssd", Slot: 2, ID: 7, TargetID: 12,
	}))

	top := t.TempDir()
	g.Expect(record.Write(top, want)).To(Succeed())
	g.Expect(os.ReadFile(filepath.Join(top, spec.TargetRecordFile))).To(BeEquivalentTo(storedtest.Fixture(t, "v1", spec.TargetRecordFile)))
}
