package backup

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	. "github.com/onsi/gomega"

	"parallelfs.dev/operator/internal/node/spec"
	"parallelfs.dev/operator/internal/node/stored/storedtest"
)

func TestTheManifestOfABackupIsReadAndWrittenAsInFormat1(t *testing.T) {
	g := NewWithT(t)
	want := spec.BackupManifest{
		Format: 1, Owner: spec.Owner{Namespace: "storage", Name: "scratch", UID: "3f2a7c1e-5b0d-4c59-9a83-6d1f0e7b2c44"},
		Backend: "MooseFS", SoftwareVersion: "3.0.117", Name: "20261125-030000", Copied: "2026-11-25T03:00:01Z", AtLeast: 4711,
		Files: []spec.BackupFile{
			{Name: "metadata.mfs", Size: 4096, SHA256: "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08"},
			{Name: "record.json.gz", Size: 1234, SHA256: "60303ae22b998861bce3b28f33eec1be758a213c86c93c076dbe9f558c11c752"},
		},
		Verified: "2026-11-25T03:00:09Z", Checked: "2026-12-25T03:00:10Z", Version: 4712, ID: "5E7A11C0FFEE0001", Refused: "it was read back by nobody",
	}
	storedtest.ExpectWhole(t, want)
	g.Expect(readManifest(filepath.Join("testdata", "v1"))).To(Equal(want))
	top := t.TempDir()
	g.Expect(writeManifest(top, want)).To(Succeed())
	g.Expect(os.ReadFile(filepath.Join(top, spec.BackupManifestFile))).To(BeEquivalentTo(storedtest.Fixture(t, "v1", spec.BackupManifestFile)))
}

func TestABackupOfANewerOperatorIsNotUsedAndStaysWhateverItsAge(t *testing.T) {
	s := newScene(t)
	old := filepath.Join(s.home(), "20200101-000000")
	s.Expect(os.MkdirAll(old, 0o700)).To(Succeed())
	const newer = `{"format": 2, "files": {"metadata.mfs": 4096}}`
	s.Expect(os.WriteFile(filepath.Join(old, spec.BackupManifestFile), []byte(newer), 0o600)).To(Succeed())
	s.o.Config.Keep, s.o.Config.MaxAgeDays = 1, 1
	answer, err := s.run()
	s.Expect(err).NotTo(HaveOccurred())
	s.Expect(answer.Backups).To(ContainElement(And(HaveField("Name", "20200101-000000"), HaveField("Verified", false),
		HaveField("Message", ContainSubstring("the program is older than the file")))))
	s.Expect(os.ReadFile(filepath.Join(old, spec.BackupManifestFile))).To(BeEquivalentTo(newer))
	_, err = readManifest(old)
	s.Expect(err).To(MatchError(ContainSubstring("manifest.json of the backup 20200101-000000 has version 2 of its form")))
	s.Expect(outdated([]spec.BackupManifest{{Name: "newest", Verified: "2026-11-25T03:00:00Z"}, {Name: "newer", Format: 2}}, 1, 1, time.Now())).To(BeEmpty())
}
