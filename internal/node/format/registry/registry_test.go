package registry_test

import (
	"testing"

	. "github.com/onsi/gomega"

	"parallelfs.dev/operator/api/v1alpha1"
	"parallelfs.dev/operator/internal/node/format"
	"parallelfs.dev/operator/internal/node/format/registry"
)

func TestEveryFormatIsFoundByWhatNamesIt(t *testing.T) {
	for _, f := range registry.All() {
		t.Run(string(f.Name()), func(t *testing.T) {
			g := NewWithT(t)
			g.Expect(registry.Of(v1alpha1.FormatSpec{FSType: f.Name()})).To(BeIdenticalTo(f))
			if served, is := f.(format.Served); is {
				index := int32(0)
				of := v1alpha1.LustreTarget{Kind: v1alpha1.LustreOST, FSName: "scratch", Index: &index}
				for _, label := range served.Labels(of) {
					found, known := registry.ByLabel(f.Signature(), label)
					g.Expect(known).To(BeTrue(), label)
					g.Expect(found).To(BeIdenticalTo(f), label)
				}
				g.Expect(served.Labels(of)).To(ContainElement(served.Label(of)))
				return
			}
			found, known := registry.BySignature(f.Signature())
			g.Expect(known).To(BeTrue())
			g.Expect(found).To(BeIdenticalTo(f), "no other one has its signature")
			found, known = registry.ByMagic(f.Proof().Magic)
			g.Expect(known).To(BeTrue())
			g.Expect(found).To(BeIdenticalTo(f), "no other one has its magic")
			if log := f.Log(); log != nil {
				found, known = registry.ByLog(log.Signature)
				g.Expect(known).To(BeTrue())
				g.Expect(found).To(BeIdenticalTo(f), "no other one has its log")
				_, known = registry.BySignature(log.Signature)
				g.Expect(known).To(BeFalse(), "a log is no filesystem")
			}
		})
	}
}

func TestAFormatThatIsNotSetIsTheDefault(t *testing.T) {
	g := NewWithT(t)
	f, err := registry.Of(v1alpha1.FormatSpec{})
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(f.Name()).To(Equal(registry.Default))
}

func TestOtherFilesystemsAreNoFormatsOfTargets(t *testing.T) {
	g := NewWithT(t)
	_, err := registry.Of(v1alpha1.FormatSpec{FSType: "zfs"})
	g.Expect(err).To(MatchError(`format.fsType "zfs" is not one of ext4, xfs, btrfs and ldiskfs`))
	for _, kind := range []string{"", "unknown", "zfs_member", "LVM2_member"} {
		_, known := registry.BySignature(kind)
		g.Expect(known).To(BeFalse(), kind)
		_, known = registry.ByLog(kind)
		g.Expect(known).To(BeFalse(), kind)
	}
	_, known := registry.ByMagic(0x01021994) // tmpfs
	g.Expect(known).To(BeFalse())
}

// Any program may have written a label. Those of the operator's other targets must not count as labels of Lustre.
func TestOnlyTheLabelsOfLustreNameATargetOfIt(t *testing.T) {
	for label, is := range map[string]bool{
		"scratch:OST0000": true, "scratch-MDT00ff": true, "pfs=OST0001": true, "pfs+OST0001": true, "MGS": true,
		"pfs-0a1b2c3d": false, "": false, "precious": false, "OST0000": false, "scratch-OST000": false, "scratch-ost0000": false,
	} {
		_, found := registry.ByLabel("ext4", label)
		NewWithT(t).Expect(found).To(Equal(is), label)
		_, found = registry.ByLabel("xfs", label)
		NewWithT(t).Expect(found).To(BeFalse(), label)
	}
}
