package backend_test

import (
	"testing"

	. "github.com/onsi/gomega"

	"parallelfs.dev/operator/api/v1alpha1"
	"parallelfs.dev/operator/internal/backend"
)

func TestVersionsAreOrderedByTheirNumbers(t *testing.T) {
	g := NewWithT(t)
	g.Expect(backend.CompareVersions("4.57.5", "4.57.10")).To(BeNumerically("<", 0))
	g.Expect(backend.CompareVersions("4.57.5", "3.0.117")).To(BeNumerically(">", 0))
	g.Expect(backend.CompareVersions("3.0.118", "3.0.117")).To(BeNumerically(">", 0))
	g.Expect(backend.CompareVersions("8.3.1", "8.3.1")).To(BeZero())
	g.Expect(backend.CompareVersions("", "3.0.117")).To(BeNumerically("<", 0), "who says nothing is not newer")
}

func TestDaemonsAreStartedWithTheVersionThatIsOnRecord(t *testing.T) {
	g := NewWithT(t)
	fs := &v1alpha1.FileSystem{Spec: v1alpha1.FileSystemSpec{Version: "2.0"}}
	g.Expect(backend.VersionOf(fs, "master")).To(Equal("2.0"), "nothing is on record")
	fs.Status.Version = "1.0"
	g.Expect(backend.VersionOf(fs, "master")).To(Equal("1.0"), "the spec alone changes nothing")
	fs.Status.Upgrade = &v1alpha1.UpgradeStatus{Version: "2.0", Components: []string{"master"}}
	g.Expect(backend.VersionOf(fs, "master")).To(Equal("2.0"))
	g.Expect(backend.VersionOf(fs, "chunkserver")).To(Equal("1.0"), "its turn has not come")
	g.Expect(backend.Version(fs)).To(Equal("1.0"))
}
