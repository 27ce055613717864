package experiments_test

import (
	"fmt"
	"os"
	"strings"
	"testing"

	. "github.com/onsi/gomega"

	"parallelfs.dev/operator/api/v1alpha1"
	"parallelfs.dev/operator/benchmarks"
	"parallelfs.dev/operator/benchmarks/reference"
	"parallelfs.dev/operator/benchmarks/registry"
	"parallelfs.dev/operator/benchmarks/results"
	"parallelfs.dev/operator/benchmarks/stats"
	"parallelfs.dev/operator/benchmarks/tooltest"
)

// saved holds outputs of the tools, which show the names of metrics and units.
var saved = map[v1alpha1.BenchmarkTool]string{
	v1alpha1.ToolMdtest: "../mdtest/testdata/4.0.0-low-load.txt", v1alpha1.ToolIOR: "../ior/testdata/4.0.0-fpp.txt",
	v1alpha1.ToolIOzone: "../iozone/testdata/single-4-processes.txt", v1alpha1.ToolVdbench: "../vdbench/testdata/documented-three-operations.txt",
	v1alpha1.ToolPostmark: "../postmark/testdata/two-processes.txt", v1alpha1.ToolNetmist: "../netmist/testdata/documented-hpc-posix.txt",
}

// surveyed returns the output of mds-survey for a survey, in the form of ../mdssurvey/testdata/2.17.57-one-mdt.txt. Its metrics are for the
// run's own thread counts.
func surveyed(spec *v1alpha1.MDSSurveySpec) []byte {
	var out strings.Builder
	for threads := spec.ThreadsLow; threads <= spec.ThreadsHigh; threads *= 2 {
		fmt.Fprintf(&out, "[rank 0] [target x-MDT0000] mdt 1 file %7d dir %4d thr %4d ", spec.FileCount, spec.DirCount, threads)
		for _, test := range []string{"create", "lookup", "md_getattr", "setxattr", "destroy"} {
			fmt.Fprintf(&out, "%s    1.00 [    1.00,    1.00] ", test)
		}
		out.WriteString("\n")
	}
	out.WriteString("[rank 0] [target x-MDT0000] done!\n[rank 0 ended with exit code 0]\n")
	return []byte(out.String())
}

// printed returns the metrics that a tool prints, each with the same value.
func printed(t *testing.T, of *v1alpha1.BenchmarkRunSpec) []results.Metric {
	t.Helper()
	g, tool := NewWithT(t), of.ToolName()
	var text []byte
	spec, point := &v1alpha1.BenchmarkRunSpec{Tool: tool}, benchmarks.Point{}
	if tool == v1alpha1.ToolMDSSurvey {
		text = surveyed(of.MDSSurvey)
	} else {
		read, err := os.ReadFile(saved[tool])
		g.Expect(err).NotTo(HaveOccurred())
		text = read
	}
	switch tool {
	case v1alpha1.ToolIOzone:
		spec.Processes, spec.IOzone = 4, &v1alpha1.IOzoneSpec{RecordSize: "64", FileSize: "8192"}
	case v1alpha1.ToolPostmark:
		spec.Processes, spec.Postmark = 2, &v1alpha1.PostmarkSpec{Files: 20000, Transactions: 40000, Subdirectories: 10}
	case v1alpha1.ToolMDSSurvey:
		spec = of
	default:
	}
	if tool == v1alpha1.ToolIOzone || tool == v1alpha1.ToolPostmark || tool == v1alpha1.ToolMDSSurvey {
		point = tooltest.Point(t, registry.Tools()[tool], spec)
	}
	report, err := registry.Tools()[tool].Parse(spec, point, 0, text)
	g.Expect(err).NotTo(HaveOccurred())
	metrics, err := stats.Summarize([][]benchmarks.Sample{report.Samples}, v1alpha1.StatisticMean, nil)
	g.Expect(err).NotTo(HaveOccurred())
	for i := range metrics {
		metrics[i].Value, metrics[i].Mean, metrics[i].Min, metrics[i].Max, metrics[i].StdDev = 1, 1, 1, 1, nil
	}
	return metrics
}

// measured returns a document's run with all points of a spec.
func measured(t *testing.T, run *v1alpha1.BenchmarkRun) results.Run {
	t.Helper()
	points, _ := plans(NewWithT(t), run)
	out := results.Run{Name: run.Name, Spec: run.Spec}
	for _, p := range points {
		out.Points = append(out.Points, results.Point{
			Index: p.Index, State: v1alpha1.PointSucceeded, Metrics: printed(t, &run.Spec),
			Parameters: results.Values(p, registry.Tools()[run.Spec.ToolName()].Parameters(&run.Spec)),
		})
	}
	return out
}

// compared counts the figures of a table that match a metric of the run.
func compared(run, table results.Run) int {
	stats.Compare([]stats.Pair{{Run: run, Baseline: table, Of: table.Name}}, stats.Terms{})
	count := 0
	for _, p := range run.Points {
		for _, m := range p.Metrics {
			if m.Baseline != nil {
				count++
			}
		}
	}
	return count
}

func TestEveryFigureOfATableHasAPointInItsExperiment(t *testing.T) {
	used := map[string]bool{}
	for _, name := range everyExperiment(t) {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			experiment := load(t, name)
			variants, err := experiment.Variants()
			g.Expect(err).NotTo(HaveOccurred())
			found, tables := 0, map[string]bool{}
			for _, v := range variants {
				for i := range v.Runs {
					run := &v.Runs[i]
					table := ""
					switch {
					case run.Spec.Baseline != nil:
						table = run.Spec.Baseline.Published
					case experiment.Suite != nil && experiment.Suite.Spec.Baseline != nil:
						table = experiment.Suite.Spec.Baseline.Published
					}
					g.Expect(table).NotTo(BeEmpty(), "the experiment names no table")
					tables[table], used[table] = true, true
					figures, err := reference.Baseline(table, v.Name)
					if err != nil {
						continue // a table may lack variants
					}
					found += compared(measured(t, run), figures)
				}
			}
			published := 0
			for table := range tables {
				points, err := reference.Published(table)
				g.Expect(err).NotTo(HaveOccurred())
				for _, p := range points {
					published += len(p.Metrics)
				}
			}
			t.Logf("%s: %d of %d published figures stand beside a result", name, found, published)
			g.Expect(found).To(Equal(published))
		})
	}
	for _, table := range reference.Names() {
		NewWithT(t).Expect(used).To(HaveKey(table), "no experiment names this table")
	}
}

// Lustre has no experiment yet, so this is a run of mdtest with the paper's 32 processes.
func TestTheTablesOfLustreStandBesideARunThatNamesAVariant(t *testing.T) {
	for _, table := range []string{"lustre-2014-mdtest-low", "lustre-2014-mdtest-high"} {
		for _, variant := range []string{"lustre1", "lustre2"} {
			t.Run(table+", "+variant, func(t *testing.T) {
				g := NewWithT(t)
				figures, err := reference.Baseline(table, variant)
				g.Expect(err).NotTo(HaveOccurred())
				g.Expect(figures.Points).To(HaveLen(1))
				run := results.Run{Points: []results.Point{{
					State: v1alpha1.PointSucceeded, Metrics: printed(t, &v1alpha1.BenchmarkRunSpec{Tool: v1alpha1.ToolMdtest}),
					Parameters: []results.Value{{Name: "processes", Value: "32"}, {Name: "mdtest.items", Value: "5"}},
				}}}
				g.Expect(compared(run, figures)).To(Equal(9), "all nine operations")
				_, err = reference.Baseline(table, "")
				g.Expect(err).To(MatchError(ContainSubstring("has the variants lustre1, lustre2; name one of them")))
			})
		}
	}
}
