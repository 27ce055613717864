package stats_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	. "github.com/onsi/gomega"

	"parallelfs.dev/operator/api/v1alpha1"
	"parallelfs.dev/operator/benchmarks"
	"parallelfs.dev/operator/benchmarks/ior"
	"parallelfs.dev/operator/benchmarks/mdtest"
	"parallelfs.dev/operator/benchmarks/stats"
)

// printed is how a tool summarizes its own iterations. by is the divisor of its sum of squares.
func printed(values []float64, by int) (most, least, mean, deviation float64) {
	for _, v := range values {
		mean += v / float64(len(values))
	}
	for _, v := range values {
		deviation += (v - mean) * (v - mean) / float64(by)
	}
	return slices.Max(values), slices.Min(values), mean, math.Sqrt(deviation)
}

// iorReport returns IOR 4.0.0's report about writes (ior-output.c divides by the number of iterations).
func iorReport(values []float64) string {
	out := `IOR-4.0.0: MPI Coordinated Test of Parallel I/O

Results: 

access    bw(MiB/s)  IOPS       Latency(s)  block(KiB) xfer(KiB)  open(s)    wr/rd(s)   close(s)   total(s)   iter
------    ---------  ----       ----------  ---------- ---------  --------   --------   --------   --------   ----
`
	for i, v := range values {
		out += fmt.Sprintf("write     %.2f    %.2f    0.001183    8192       1024.00    0.000000   0.010544   0.000000   0.010544   %d   \n", v, v, i)
	}
	most, least, mean, deviation := printed(values, len(values))
	numbers := fmt.Sprintf("%.2f %.2f %.2f %.2f", most, least, mean, deviation)
	return out + `
Summary of all tests:
Operation   Max(MiB)   Min(MiB)  Mean(MiB)     StdDev   Max(OPs)   Min(OPs)  Mean(OPs)     StdDev    Mean(s) Stonewall(s) Stonewall(MiB) Test# #Tasks tPN reps fPP reord reordoff reordrand seed segcnt   blksiz    xsize aggs(MiB)   API RefNum
write ` + numbers + " " + numbers + fmt.Sprintf(" 0.01073 NA NA 0 2 2 %d 1 0 1 0 0 1 8388608 1048576 16.0 POSIX 0\n", len(values)) +
		"Finished            : Sat Nov 21 03:22:53 2026\n"
}

// mdtestReport returns mdtest's report about file creations: 1.9 and 3.x divide by the number of iterations, 4.0 by one less (mdtest.c).
func mdtestReport(version string, by func(n int) int) func([]float64) string {
	return func(values []float64) string {
		most, least, mean, deviation := printed(values, by(len(values)))
		return fmt.Sprintf(`-- started at 11/21/2026 18:41:36 --

mdtest-%s was launched with 4 total task(s) on 1 node(s)
Command line used: mdtest -i %d

4 tasks, 1680 files

SUMMARY: (of %[2]d iterations)
   Operation                      Max            Min           Mean        Std Dev
   ---------                      ---            ---           ----        -------
   File creation     :      %.3f       %.3f       %.3f       %.3f

-- finished at 11/21/2026 18:41:37 --
`, version, len(values), most, least, mean, deviation)
	}
}

// The interval is computed from the tools' output, and they print two kinds of deviation. The seed is fixed.
func TestIntervalsOfIteratedResultsContainTheMean(t *testing.T) {
	all, less := func(n int) int { return n }, func(n int) int { return n - 1 }
	for name, test := range map[string]struct {
		tool   benchmarks.Tool
		metric string
		report func([]float64) string
	}{
		"IOR 4.0.0":    {ior.Tool{}, "write", iorReport},
		"mdtest 1.9.3": {mdtest.Tool{}, "File creation", mdtestReport("1.9.3", all)},
		"mdtest 3.3.0": {mdtest.Tool{}, "File creation", mdtestReport("3.3.0", all)},
		"mdtest 4.0.0": {mdtest.Tool{}, "File creation", mdtestReport("4.0.0", less)},
	} {
		for _, n := range []int{2, 3, 5} {
			t.Run(fmt.Sprintf("%s, %d iterations", name, n), func(t *testing.T) {
				g, chance := NewWithT(t), rand.New(rand.NewPCG(23, uint64(n)))
				const truth = 1000.0
				rounds := simulations(250, 25_000)
				held := 0
				for range rounds {
					values := make([]float64, n)
					for i := range values {
						values[i] = truth + 50*chance.NormFloat64()
					}
					report, err := test.tool.Parse(&v1alpha1.BenchmarkRunSpec{}, benchmarks.Point{}, 0, []byte(test.report(values)))
					g.Expect(err).NotTo(HaveOccurred())
					metrics, err := stats.Summarize([][]benchmarks.Sample{report.Samples}, v1alpha1.StatisticMean, nil)
					g.Expect(err).NotTo(HaveOccurred())
					for _, m := range metrics {
						if m.Name == test.metric && !strings.HasPrefix(m.Unit, "OPs") && math.Abs(m.Mean-truth) <= *m.Confidence {
							held++
						}
					}
				}
				share := float64(held) / float64(rounds)
				found(t, "95 % intervals that contain the mean", fmt.Sprintf("iterations of %s: %d", name, n), rounds, share, "93.8 to 96.2 %")
				g.Expect(share).To(BeNumerically("~", 0.95, 0.012+chanceOf(0.95, rounds)))
			})
		}
	}
}
