package proof_test

import (
	"testing"

	. "github.com/onsi/gomega"

	"parallelfs.dev/operator/internal/node/proof"
	"parallelfs.dev/operator/internal/node/spec"
)

const uuid, otherUUID = "0a1b2c3d-0000-4000-8000-0000000000aa", "0a1b2c3d-0000-4000-8000-0000000000bb"

var owner = spec.Owner{Namespace: "storage", Name: "scratch", UID: "1"}

// right returns a target and the facts at its path if everything is correct.
func right() (spec.Target, proof.Facts) {
	return spec.Target{Name: "scratch-ssd-0a1b2c3d", Path: "/var/lib/parallelfs/targets/storage.scratch/scratch-ssd-0a1b2c3d", UUID: uuid},
		proof.Facts{
			Mounted: true, Root: "/", FSType: "xfs", UUID: uuid,
			Marker: &spec.TargetMarker{Owner: owner, Target: "scratch-ssd-0a1b2c3d", UUID: uuid},
		}
}

func TestATargetIsProvenWhen(t *testing.T) {
	for name, change := range map[string]func(*spec.Target, *proof.Facts){
		"mountpoint, UUID and marker agree":         func(*spec.Target, *proof.Facts) {},
		"the daemon is to empty it":                 func(t *spec.Target, _ *proof.Facts) { t.Remove = true },
		"one of the UUIDs is written in upper case": func(t *spec.Target, _ *proof.Facts) { t.UUID = "0A1B2C3D-0000-4000-8000-0000000000AA" },
	} {
		t.Run(name, func(t *testing.T) {
			of, facts := right()
			change(&of, &facts)
			NewWithT(t).Expect(proof.Decide(of, owner, facts)).To(Succeed())
		})
	}
}

func TestATargetIsNotProvenWhen(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*spec.Target, *proof.Facts)
		reason string
		todo   string
	}{
		"its UUID is not recorded yet": {func(t *spec.Target, _ *proof.Facts) { t.UUID = "" }, "is not provisioned yet", "kubectl describe storagetarget"},
		"its path can't be opened":     {func(_ *spec.Target, f *proof.Facts) { *f = proof.Facts{Fault: "input/output error"} }, "input/output error", ""},
		"nothing is mounted":           {func(_ *spec.Target, f *proof.Facts) { *f = proof.Facts{} }, "is not mounted", "kubectl describe storagetarget"},
		"a directory is mounted":       {func(_ *spec.Target, f *proof.Facts) { f.Root = "/data" }, "only the directory /data", "umount"},
		"the kernel says no UUID":      {func(_ *spec.Target, f *proof.Facts) { f.UUID, f.UUIDFault = "", "no such request" }, "no such request", ""},
		"the kernel says another UUID": {func(_ *spec.Target, f *proof.Facts) { f.UUID = otherUUID }, "its UUID is " + otherUUID + ", recorded is " + uuid, "umount"},
		"another disk is recorded":     {func(t *spec.Target, _ *proof.Facts) { t.UUID = otherUUID }, "its UUID is " + uuid + ", recorded is " + otherUUID, "umount"},
		"the marker can't be trusted":  {func(_ *spec.Target, f *proof.Facts) { f.Marker, f.MarkerFault = nil, "it belongs to the user 7" }, "it belongs to the user 7", ""},
		"the marker is empty":          {func(_ *spec.Target, f *proof.Facts) { f.Marker = &spec.TargetMarker{} }, "does not say whose it is", "restore"},
		"the marker is another FileSystem's": {func(_ *spec.Target, f *proof.Facts) { f.Marker.Owner.Name = "home" },
			"belongs to the FileSystem storage/home, not to storage/scratch", "bring the right disk back"},
		"the marker is another namespace's": {func(_ *spec.Target, f *proof.Facts) { f.Marker.Owner.Namespace = "lab" }, "belongs to the FileSystem lab/scratch", "bring the right disk back"},
		"the marker is another target's":    {func(_ *spec.Target, f *proof.Facts) { f.Marker.Target = "scratch-ssd-ffffffff" }, "is the disk of the target scratch-ssd-ffffffff", "umount"},
		"the marker was copied from another disk": {func(_ *spec.Target, f *proof.Facts) { f.Marker.UUID = otherUUID },
			"so the marker was copied here", "bring the right disk back"},
		"the marker is that of an earlier FileSystem": {func(_ *spec.Target, f *proof.Facts) { f.Marker.Owner.UID = "0" },
			"was used last by an earlier FileSystem storage/scratch (uid 0; this one has 1)", "kubectl describe storagetarget"},
		"nothing can be written": {func(_ *spec.Target, f *proof.Facts) { f.ReadOnly = true }, "is mounted read-only", "dmesg"},
	} {
		t.Run(name, func(t *testing.T) {
			of, facts := right()
			c.change(&of, &facts)
			NewWithT(t).Expect(proof.Decide(of, owner, facts)).To(MatchError(And(
				ContainSubstring(c.reason), ContainSubstring(c.todo), HavePrefix("target "+of.Name+" at "+of.Path+" "))))
		})
	}
}

func TestATargetThatCannotBeMeantSoIsRefused(t *testing.T) {
	g := NewWithT(t)
	for _, path := range []string{"", "/", "targets/a", "/targets/../a", "/targets/a/"} {
		g.Expect(proof.Prove(spec.Target{Name: "a", Path: path, UUID: uuid}, owner)).To(MatchError(ContainSubstring("not an absolute path")))
	}
	g.Expect(proof.Prove(spec.Target{Path: "/a", UUID: uuid}, owner)).To(MatchError(ContainSubstring("has no name")))
}

func TestADirectoryThatIsNotThereOrNotMountedIsNoTarget(t *testing.T) {
	g := NewWithT(t)
	of := spec.Target{Name: "a", Path: t.TempDir(), UUID: uuid}
	g.Expect(proof.Prove(of, owner)).To(MatchError(ContainSubstring("is not mounted")))
	of.Path += "/b"
	g.Expect(proof.Prove(of, owner)).To(MatchError(ContainSubstring("there is no such directory in this container")))
}

func TestADirectoryOfTheNodeNeedsNoMountpoint(t *testing.T) {
	g := NewWithT(t)
	of := spec.Target{Name: "a", Path: t.TempDir(), Directory: true}
	g.Expect(proof.Prove(of, owner)).To(Succeed())
	of.UUID = uuid
	g.Expect(proof.Prove(of, owner)).To(MatchError(ContainSubstring("called a directory of the node and a disk with the UUID " + uuid)))
	of.UUID, of.Path = "", "/srv/../etc"
	g.Expect(proof.Prove(of, owner)).To(MatchError(ContainSubstring("not an absolute path")))
}
