package benchmarks_test

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"testing"

	. "github.com/onsi/gomega"

	"parallelfs.dev/operator/api/v1alpha1"
	"parallelfs.dev/operator/benchmarks"
)

func TestLongLinesAreCutInMessages(t *testing.T) {
	g := NewWithT(t)
	g.Expect(benchmarks.Short("short")).To(Equal("short"))
	g.Expect(benchmarks.Short(strings.Repeat("ä", 150))).To(Equal(strings.Repeat("ä", 98) + "…"))
	for _, c := range []string{"x", "ä", "\x00", "\xff", "\"", "😀", "\u2028"} {
		for _, length := range []int{40, 100, 200, 201, 1 << 20} {
			short := benchmarks.Short(strings.Repeat(c, length))
			g.Expect(len(fmt.Sprintf("%q", short))).To(BeNumerically("<=", 202), "%d of %q", length, c)
		}
	}
}

func TestLongErrorsOfLibrariesAreCut(t *testing.T) {
	g := NewWithT(t)
	g.Expect(benchmarks.ShortError(io.EOF)).To(BeIdenticalTo(io.EOF))
	var number int
	err := json.Unmarshal([]byte(strings.Repeat("9", 1<<20)), &number)
	g.Expect(err).To(HaveOccurred())
	g.Expect(len(benchmarks.ShortError(err).Error())).To(BeNumerically("<=", 500))
}

// longWinded is a tool whose parser quotes everything.
type longWinded struct{ benchmarks.Tool }

func (longWinded) Parse(_ *v1alpha1.BenchmarkRunSpec, _ benchmarks.Point, _ int, output []byte) (benchmarks.Report, error) {
	return benchmarks.Report{}, fmt.Errorf("line 1: %s", output)
}

func TestTheErrorOfAnyParserIsCut(t *testing.T) {
	_, err := benchmarks.Parse(longWinded{}, nil, benchmarks.Point{}, 0, []byte(strings.Repeat("é", 3<<10)))
	NewWithT(t).Expect(err).To(MatchError(HavePrefix("line 1: éé")))
	NewWithT(t).Expect(len(err.Error())).To(BeNumerically("<=", 500))
}
