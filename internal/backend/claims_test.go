package backend

import (
	"testing"

	. "github.com/onsi/gomega"
)

func TestRangesOverlapWhenAPortIsInBoth(t *testing.T) {
	g := NewWithT(t)
	g.Expect(PortRange{8000, 64}.Overlap(PortRange{8063, 32})).To(BeTrue())
	g.Expect(PortRange{8063, 32}.Overlap(PortRange{8000, 64})).To(BeTrue())
	g.Expect(PortRange{8000, 64}.Overlap(PortRange{8064, 32})).To(BeFalse())
	g.Expect(PortRange{8000, 64}.Overlap(PortRange{})).To(BeFalse(), "a filesystem without ports is in nobody's way")
}
