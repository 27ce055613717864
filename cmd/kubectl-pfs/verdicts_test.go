package main

import (
	"fmt"
	"os"
	"strings"
	"testing"

	. "github.com/onsi/gomega"

	"parallelfs.dev/operator/api/v1alpha1"
	"parallelfs.dev/operator/benchmarks/guess"
	"parallelfs.dev/operator/benchmarks/registry"
)

// verdicts has a row for each file of test data: the result of parse, and the reason. VERDICTS=write writes it again, so that the diff can
// be reviewed.
const verdicts = "testdata/verdicts.txt"

func TestEachFileOfTestDataHasItsVerdict(t *testing.T) {
	g := NewWithT(t)
	var rows strings.Builder
	for _, file := range outputs(t) {
		output, err := os.ReadFile(file)
		g.Expect(err).NotTo(HaveOccurred())
		_, _ = fmt.Fprintf(&rows, "%s: %s\n", strings.TrimPrefix(file, "../../benchmarks/"), verdict(output)) // a Builder never fails
	}
	if os.Getenv("VERDICTS") == "write" {
		g.Expect(os.WriteFile(verdicts, []byte(rows.String()), 0o600)).To(Succeed())
	}
	want, err := os.ReadFile(verdicts)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(strings.Split(rows.String(), "\n")).To(Equal(strings.Split(string(want), "\n")), "VERDICTS=write writes %s again", verdicts)
}

// verdict describes the result of parse for an output.
func verdict(output []byte) string {
	name, err := guess.Tool(output)
	if err != nil {
		return "refused: " + err.Error()
	}
	all, err := readFile(registry.Tools()[name], v1alpha1.BenchmarkRunSpec{}, nil, output)
	if err != nil {
		return "refused: " + err.Error()
	}
	numbers := 0
	for _, one := range all {
		numbers += len(one.samples)
	}
	why := "all of its options are known"
	if len(all[0].notes) > 0 {
		why = strings.Join(all[0].notes, "; ")
	}
	return fmt.Sprintf("read, points: %d, numbers: %d: %s", len(all), numbers, why)
}
