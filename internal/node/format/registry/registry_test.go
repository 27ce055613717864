package registry_test

import (
	"testing"

	. "github.com/onsi/gomega"

	"parallelfs.dev/operator/api/v1alpha1"
	"parallelfs.dev/operator/internal/node/format/registry"
)

func TestEveryFormatIsFoundByWhatNamesIt(t *testing.T) {
	for _, f := range registry.All() {
		t.Run(string(f.Name()), func(t *testing.T) {
			g := NewWithT(t)
			g.Expect(registry.Of(v1alpha1.FormatSpec{FSType: f.Name()})).To(BeIdenticalTo(f))
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

func TestAFormatThatIsNotGivenIsTheDefault(t *testing.T) {
	g := NewWithT(t)
	f, err := registry.Of(v1alpha1.FormatSpec{})
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(f.Name()).To(Equal(registry.Default))
}

func TestWhatIsNoFormatOfTargetsIsNone(t *testing.T) {
	g := NewWithT(t)
	_, err := registry.Of(v1alpha1.FormatSpec{FSType: "zfs"})
	g.Expect(err).To(MatchError(`format.fsType "zfs" is not one of ext4, xfs and btrfs`))
	for _, kind := range []string{"", "unknown", "zfs_member", "LVM2_member"} {
		_, known := registry.BySignature(kind)
		g.Expect(known).To(BeFalse(), kind)
		_, known = registry.ByLog(kind)
		g.Expect(known).To(BeFalse(), kind)
	}
	_, known := registry.ByMagic(0x01021994) // tmpfs
	g.Expect(known).To(BeFalse())
}
