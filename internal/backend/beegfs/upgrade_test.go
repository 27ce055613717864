package beegfs

import (
	"testing"

	. "github.com/onsi/gomega"
)

func TestBeeGFSIsUpgradedWithinItsMajorVersion(t *testing.T) {
	for name, c := range map[string]struct{ from, to, refused string }{
		"a release of 7.4 to a later one":           {"7.4.5", "7.4.6", ""},
		"a release of 7.4 to a much later one":      {"7.4.6", "7.4.10", ""},
		"between releases before the incompatible":  {"7.4.0", "7.4.2", ""},
		"across the incompatible release":           {"7.4.2", "7.4.6", "metadata servers before 7.4.3 don't understand those since"},
		"to the incompatible release":               {"7.4.2", "7.4.3", "all must change at once"},
		"a release of 8 to a later one":             {"8.3.0", "8.3.1", ""},
		"a line of 8 to a later one":                {"8.0.1", "8.3.1", ""},
		"7.4 to 8":                                  {"7.4.6", "8.3.1", "its upgrade guide stops the whole filesystem, imports the store of the management service"},
		"a step back":                               {"7.4.6", "7.4.5", "BeeGFS documents no way back from 7.4.6 to 7.4.5"},
		"a step back from 8 to 7":                   {"8.3.1", "7.4.6", "set spec.version to 8.3.1 or a newer one"},
		"to a version that nobody knows an upgrade": {"8.3.1", "9.0.0", "set spec.version to a newer 8.x"},
	} {
		t.Run(name, func(t *testing.T) {
			g, why := NewWithT(t), New().UpgradePath(c.from, c.to)
			if c.refused == "" {
				g.Expect(why).To(BeEmpty())
			} else {
				g.Expect(why).To(ContainSubstring(c.refused))
			}
		})
	}
}
