package provision

import (
	"os"
	"path/filepath"
	"testing"

	. "github.com/onsi/gomega"

	"parallelfs.dev/operator/api/v1alpha1"
	"parallelfs.dev/operator/internal/node/spec"
	"parallelfs.dev/operator/internal/node/stored/storedtest"
	"parallelfs.dev/operator/internal/plan"
)

// frozenMarker is the marker in testdata/v1. A marker is readable forever: a change adds fields, in a new version.
func frozenMarker() spec.TargetMarker {
	return spec.TargetMarker{
		Version: 1,
		Owner:   spec.Owner{Namespace: "storage", Name: "scratch", UID: "3f2a7c1e-5b0d-4c59-9a83-6d1f0e7b2c44"},
		Cluster: "9b1c6a52-0f3e-4d77-8e21-5a4c3b2d1f60",
		Target:  "scratch-ssd-093b004a85476148", Role: "Metadata", StoragePool: "ssd", Slot: 3,
		UUID: "11111111-2222-4333-8444-555555555555", DeviceID: "wwn-0x5000c500a1b2c3d4", Serial: "ZA123456", WWN: "0x5000c500a1b2c3d4",
		Time: "2026-11-25T03:00:00Z",
	}
}

func TestTheMarkerOfATargetIsReadAndWrittenAsInVersion1(t *testing.T) {
	g := NewWithT(t)
	storedtest.ExpectWhole(t, frozenMarker())
	found, err := readMarker(filepath.Join("testdata", "v1"))
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(*found).To(Equal(frozenMarker()))

	top := t.TempDir()
	g.Expect(writeMarker(top, frozenMarker())).To(Succeed())
	g.Expect(os.ReadFile(filepath.Join(top, spec.TargetMarkerFile))).To(BeEquivalentTo(storedtest.Fixture(t, "v1", spec.TargetMarkerFile)))

	top = t.TempDir()
	g.Expect(os.Mkdir(filepath.Join(top, spec.TargetMarkerFile), 0o755)).To(Succeed())
	g.Expect(writeMarker(top, frozenMarker())).NotTo(Succeed(), "a directory is in its place")
}

func TestTheMarkOfATargetOfLustreIsReadAndWrittenAsInVersion1(t *testing.T) {
	g := NewWithT(t)
	text := string(storedtest.Fixture(t, "v1", "lustre-mark.json"))
	want := frozenMarker()
	// A mark has no room for these.
	want.Role, want.DeviceID, want.Serial, want.WWN, want.Time = "Storage", "", "", "", ""
	found, err := readMark(text)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(*found).To(Equal(want))

	target := &v1alpha1.StorageTarget{Spec: v1alpha1.StorageTargetSpec{
		FileSystem: v1alpha1.TargetOwner{Name: "scratch", UID: want.Owner.UID}, Cluster: want.Cluster, Role: v1alpha1.RoleStorage, StoragePool: "ssd", Slot: 3,
		Format: v1alpha1.FormatSpec{FSType: v1alpha1.Ldiskfs},
		Lustre: &v1alpha1.LustreTarget{Kind: v1alpha1.LustreOST, FSName: "work", Index: new(int32(3)), ManagementNIDs: []string{"10.0.0.1@tcp"}},
	}}
	target.Namespace, target.Name = "storage", want.Target
	g.Expect(plan.NewOf(target, plan.Look{}, want.UUID).Mark).To(Equal(text))
}

func TestAMarkerIsNeitherReadNorTakenForNoneWhen(t *testing.T) {
	for name, c := range map[string]struct{ content, says string }{
		"a newer operator wrote it": {`{"version": 2, "owner": "storage/scratch"}`, "has version 2 of its form, and this program reads versions up to 1: the program is older than the file"},
		"it has no version":         {`{"target": "scratch-ssd-093b004a85476148"}`, "has no version of its form"},
		"it is damaged":             {`{"version": 1, "ow`, "can't be understood"},
		"it is empty":               {``, "can't be understood"},
	} {
		t.Run(name, func(t *testing.T) {
			g, top := NewWithT(t), t.TempDir()
			g.Expect(os.WriteFile(filepath.Join(top, spec.TargetMarkerFile), []byte(c.content), 0o600)).To(Succeed())
			_, err := readMarker(top)
			g.Expect(err).To(And(MatchError(ContainSubstring(c.says)), Not(MatchError(ErrNoMarker))))
		})
	}
	_, err := readMarker(t.TempDir())
	NewWithT(t).Expect(err).To(MatchError(ErrNoMarker))
}

func TestAMarkOfLustreIsNotTakenForNoneWhen(t *testing.T) {
	g := NewWithT(t)
	_, err := readMark(`{"version": 2, "owner": "storage/scratch"}`)
	g.Expect(err).To(MatchError(ContainSubstring("the program is older than the file")))
	_, err = readMark(`{"target": "scratch-ssd-093b004a85476148"}`)
	g.Expect(err).To(MatchError(ContainSubstring("has no version of its form")))
	for _, others := range []string{"", "made by hand", `{"color": "red"}`} {
		found, err := readMark(others)
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(found).To(BeNil(), "it is somebody else's comment")
	}
}
