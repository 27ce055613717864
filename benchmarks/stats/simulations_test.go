package stats_test

import (
	"crypto/sha256"
	"flag"
	"fmt"
	"go/scanner"
	"go/token"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	. "github.com/onsi/gomega"

	"parallelfs.dev/operator/api/v1alpha1"
	"parallelfs.dev/operator/benchmarks/results"
	"parallelfs.dev/operator/benchmarks/stats"
)

// page is the document with the results of all rounds of all simulations.
const page = "../../docs/simulations.md"

// allRounds requests all rounds of each simulation; `make simulations` sets it.
var allRounds = os.Getenv("SIMULATIONS") == "all"

// simulations is how many rounds a simulation has.
func simulations(few, all int) int {
	if allRounds {
		return all
	}
	return few
}

// chanceOf returns how far the share in a number of rounds may differ from the true share by chance: three standard deviations.
func chanceOf(share float64, rounds int) float64 {
	return 3 * math.Sqrt(share*(1-share)/float64(rounds))
}

// shown holds the rows of the page.
var shown struct {
	sync.Mutex
	rows []string
}

// found records the share that a simulation has found.
func found(t *testing.T, what, of string, rounds int, share float64, wanted string) {
	t.Helper()
	t.Logf("%s, %s: %.2f %% of %d rounds", what, of, 100*share, rounds)
	shown.Lock()
	defer shown.Unlock()
	shown.rows = append(shown.rows, fmt.Sprintf("| %s | %s | %d | %.2f %% | %s |", what, of, rounds, 100*share, wanted))
}

// hashOfCode returns a hash of the code that the simulations depend on, without its comments.
func hashOfCode() (string, error) {
	files, err := filepath.Glob("*.go")
	if err != nil {
		return "", err
	}
	sum := sha256.New()
	for _, file := range files {
		if strings.HasSuffix(file, "_test.go") && !slices.Contains([]string{"many_test.go", "printed_test.go", "simulations_test.go"}, file) {
			continue
		}
		content, err := os.ReadFile(file)
		if err != nil {
			return "", err
		}
		_, _ = fmt.Fprintf(sum, "%s\n%s", file, withoutComments(content))
	}
	return fmt.Sprintf("%x", sum.Sum(nil))[:16], nil
}

// withoutComments returns the tokens of a Go file, one on each line.
func withoutComments(source []byte) string {
	files := token.NewFileSet()
	var s scanner.Scanner
	s.Init(files.AddFile("", files.Base(), len(source)), source, nil, 0)
	var out strings.Builder
	for {
		_, tok, text := s.Scan()
		if tok == token.EOF {
			return out.String()
		}
		_, _ = fmt.Fprintln(&out, tok, text)
	}
}

// TestMain writes the page after all rounds of all simulations.
func TestMain(m *testing.M) {
	code := m.Run()
	if code == 0 && allRounds && flag.Lookup("test.run").Value.String() == "" {
		if err := writePage(); err != nil {
			fmt.Fprintln(os.Stderr, err)
			code = 1
		}
	}
	os.Exit(code)
}

func writePage() error {
	hash, err := hashOfCode()
	if err != nil {
		return err
	}
	slices.Sort(shown.rows)
	text := `# Simulations

` + "`make simulations`" + ` writes this page. Each row tests the [statistics of benchmarks](../benchmarks/README.md) on random samples with known properties.
The numbers of rounds are so large that chance hardly affects the shares. ` + "`make test`" + ` runs the same simulations with few rounds and wider bounds.
If the code of benchmarks/stats differs from that of this page, a test fails. Then run ` + "`make simulations`" + `, and commit the page
([duration](testing.md)).

Code of benchmarks/stats: ` + hash + `

| what | of | rounds | share | wanted |
|---|---|---|---|---|
` + strings.Join(shown.rows, "\n") + "\n"
	return os.WriteFile(page, []byte(text), 0o600)
}

func TestThePageOfSimulationsIsUpToDate(t *testing.T) {
	if allRounds {
		return // it is written at the end
	}
	g := NewWithT(t)
	hash, err := hashOfCode()
	g.Expect(err).NotTo(HaveOccurred())
	content, err := os.ReadFile(page)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(string(content)).To(ContainSubstring("Code of benchmarks/stats: "+hash+"\n"),
		"the code of benchmarks/stats has changed since docs/simulations.md was written: run `make simulations`, and commit the page")
}

// One metric of clean samples in a hundred has an outlier, for any number of samples. The seed is fixed.
func TestOutliersAreFlaggedInOneOfAHundredCleanMetrics(t *testing.T) {
	for _, n := range []int{3, 4, 5, 6, 8, 10, 15, 20, 50} {
		t.Run(fmt.Sprint(n), func(t *testing.T) {
			g, chance := NewWithT(t), rand.New(rand.NewPCG(29, uint64(n)))
			rounds := simulations(1000, 40_000)
			flagged := 0
			for range rounds {
				values := make([]float64, n)
				for i := range values {
					values[i] = 1000 + 50*chance.NormFloat64()
				}
				metrics, err := stats.Summarize(reads(values...), v1alpha1.StatisticMean, nil)
				g.Expect(err).NotTo(HaveOccurred())
				if len(metrics[0].Outliers) > 0 {
					flagged++
				}
			}
			share := float64(flagged) / float64(rounds)
			if n < 6 {
				found(t, "clean metrics that have an outlier", fmt.Sprintf("samples: %2d", n), rounds, share, "0 %")
				g.Expect(flagged).To(BeZero())
			} else {
				found(t, "clean metrics that have an outlier", fmt.Sprintf("samples: %2d", n), rounds, share, "0.4 to 1.6 %")
				g.Expect(share).To(BeNumerically("~", 0.01, 0.006+chanceOf(0.01, rounds)))
			}
		})
	}
}

// The interval contains the true mean in 95 % of cases. The seed is fixed, and so is the count.
func TestNinetyFivePercentOfConfidenceIntervalsContainTheMean(t *testing.T) {
	chance := rand.New(rand.NewPCG(11, 13))
	rounds := simulations(400, 40_000)
	held := 0
	for range rounds {
		values := make([]float64, 5)
		for i := range values {
			values[i] = 1000 + 50*chance.NormFloat64()
		}
		metrics, err := stats.Summarize(reads(values...), v1alpha1.StatisticMean, nil)
		NewWithT(t).Expect(err).NotTo(HaveOccurred())
		if math.Abs(metrics[0].Mean-1000) <= *metrics[0].Confidence {
			held++
		}
	}
	share := float64(held) / float64(rounds)
	found(t, "95 % intervals that contain the mean", "repetitions: 5", rounds, share, "94 to 96 %")
	NewWithT(t).Expect(share).To(BeNumerically("~", 0.95, 0.01+chanceOf(0.95, rounds)))
}

// A rule ends a point as soon as its interval is narrow enough. The interval still contains the true mean in 94 % of cases, for any
// deviation between repetitions. The seed is fixed.
func TestIntervalsOfPointsThatARuleHasEndedContainTheMean(t *testing.T) {
	for _, test := range []struct {
		deviation float64
		percent   v1alpha1.Percent
	}{{0.03, "1.5"}, {0.03, "2"}, {0.05, "3"}, {0.05, "5"}, {0.1, "5"}, {0.1, "10"}} {
		of := fmt.Sprintf("deviation: %2.0f %%, spec.until: %2s %%", 100*test.deviation, test.percent)
		t.Run(of, func(t *testing.T) {
			g, chance := NewWithT(t), rand.New(rand.NewPCG(53, 59))
			rule := &v1alpha1.StopRule{ConfidencePercent: test.percent, MaxRepetitions: 20}
			rounds := simulations(60, 10_000)
			held := 0
			for range rounds {
				var values []float64
				for len(values) == 0 || !stats.Enough(rule, reads(values...)) {
					values = append(values, 1000*(1+test.deviation*chance.NormFloat64()))
				}
				metrics, err := stats.Summarize(reads(values...), v1alpha1.StatisticMean, rule)
				g.Expect(err).NotTo(HaveOccurred())
				if math.Abs(metrics[0].Mean-1000) <= *metrics[0].Confidence {
					held++
				}
			}
			share := float64(held) / float64(rounds)
			found(t, "95 % intervals that contain the mean, of points that a rule has ended", of, rounds, share, "at least 94 %")
			g.Expect(share).To(BeNumerically(">=", 0.94-chanceOf(0.94, rounds)))
		})
	}
}

// At most one in twenty comparisons of two runs of the same system differs "beyond the noise", whichever side was repeated. The seed is
// fixed.
func TestTheSameSystemIsRarelyBetterOrWorse(t *testing.T) {
	for name, sizes := range map[string][2]int{"both repeated": {5, 4}, "only the run repeated": {3, 1}, "only the baseline repeated": {1, 5}} {
		t.Run(name, func(t *testing.T) {
			g, chance := NewWithT(t), rand.New(rand.NewPCG(17, 19))
			draw := func(n int) []results.Metric {
				values := make([]float64, n)
				for i := range values {
					values[i] = 1000 + 30*chance.NormFloat64()
				}
				metrics, err := stats.Summarize(reads(values...), v1alpha1.StatisticMean, nil)
				g.Expect(err).NotTo(HaveOccurred())
				return metrics
			}
			rounds := simulations(400, 40_000)
			wrong := 0
			for range rounds {
				points := []results.Point{point(0, nil, draw(sizes[0])...)}
				compare(points, []results.Point{point(0, nil, draw(sizes[1])...)}, 0)
				if points[0].Metrics[0].Baseline.Verdict != results.WithinNoise {
					wrong++
				}
			}
			share := float64(wrong) / float64(rounds)
			found(t, "runs of the same system that differ beyond the noise", name, rounds, share, "3.8 to 6.2 %")
			g.Expect(share).To(BeNumerically("~", 0.05, 0.012+chanceOf(0.05, rounds)))
		})
	}
}
