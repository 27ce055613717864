package benchmarks_test

import (
	"strings"
	"testing"

	. "github.com/onsi/gomega"

	"parallelfs.dev/operator/benchmarks"
)

func TestLongLinesAreCutInMessages(t *testing.T) {
	g := NewWithT(t)
	g.Expect(benchmarks.Short("short")).To(Equal("short"))
	g.Expect(benchmarks.Short(strings.Repeat("ä", 150))).To(Equal(strings.Repeat("ä", 100) + "…"))
}
