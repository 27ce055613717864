package stats_test

import (
	"math"
	"testing"

	. "github.com/onsi/gomega"

	"parallelfs.dev/operator/api/v1alpha1"
	"parallelfs.dev/operator/benchmarks"
	"parallelfs.dev/operator/benchmarks/stats"
)

// reads are repetitions that each measured one read.
func reads(values ...float64) [][]benchmarks.Sample {
	var out [][]benchmarks.Sample
	for _, v := range values {
		out = append(out, []benchmarks.Sample{{Name: "read", Unit: "kB/s", Value: v}})
	}
	return out
}

func TestSummarise(t *testing.T) {
	for name, test := range map[string]struct {
		repetitions [][]benchmarks.Sample
		statistic   v1alpha1.Statistic
		want        v1alpha1.MetricResult
	}{
		"the mean of all": {reads(2, 4, 4, 4, 5, 5, 7, 9), v1alpha1.StatisticMean,
			v1alpha1.MetricResult{Value: "5", Mean: "5", Min: "2", Max: "9", StdDev: "2.13809", Samples: 8}},
		"the median of an odd number is the middle, whatever the order": {reads(90, 1, 20), v1alpha1.StatisticMedian,
			v1alpha1.MetricResult{Value: "20", Mean: "37", Min: "1", Max: "90", StdDev: "46.8722", Samples: 3}},
		"the median of an even number is the mean of the two in the middle": {reads(90, 1, 20, 30), v1alpha1.StatisticMedian,
			v1alpha1.MetricResult{Value: "25", Mean: "35.25", Min: "1", Max: "90", StdDev: "38.4307", Samples: 4}},
		"the lowest": {reads(3, 1, 2), v1alpha1.StatisticMin,
			v1alpha1.MetricResult{Value: "1", Mean: "2", Min: "1", Max: "3", StdDev: "1", Samples: 3}},
		"the highest": {reads(3, 1, 2), v1alpha1.StatisticMax,
			v1alpha1.MetricResult{Value: "3", Mean: "2", Min: "1", Max: "3", StdDev: "1", Samples: 3}},
		"a trimmed mean drops the highest and the lowest, and mean, min and max keep them": {reads(100, 11, 12, 13, 1), v1alpha1.StatisticTrimmedMean,
			v1alpha1.MetricResult{Value: "12", Mean: "27.4", Min: "1", Max: "100", StdDev: "40.8693", Samples: 5}},
		"a trimmed mean of three is the middle": {reads(100, 12, 1), v1alpha1.StatisticTrimmedMean,
			v1alpha1.MetricResult{Value: "12", Mean: "37.6667", Min: "1", Max: "100", StdDev: "54.2617", Samples: 3}},
		"a trimmed mean drops only one of several lowest": {reads(1, 1, 4, 9), v1alpha1.StatisticTrimmedMean,
			v1alpha1.MetricResult{Value: "2.5", Mean: "3.75", Min: "1", Max: "9", StdDev: "3.77492", Samples: 4}},
		"one sample has no deviation": {reads(7), v1alpha1.StatisticMedian,
			v1alpha1.MetricResult{Value: "7", Mean: "7", Min: "7", Max: "7", Samples: 1}},
		"equal samples have a deviation of exactly 0": {reads(0.1, 0.1, 0.1), v1alpha1.StatisticMean,
			v1alpha1.MetricResult{Value: "0.1", Mean: "0.1", Min: "0.1", Max: "0.1", StdDev: "0", Samples: 3}},
		"large numbers are rounded to six digits and written without an exponent": {reads(14954547, 2), v1alpha1.StatisticMax,
			v1alpha1.MetricResult{Value: "14954500", Mean: "7477270", Min: "2", Max: "14954500", StdDev: "10574500", Samples: 2}},
		"small numbers too": {reads(0.000123456789, 0), v1alpha1.StatisticMax,
			v1alpha1.MetricResult{Value: "0.000123457", Mean: "0.0000617284", Min: "0", Max: "0.000123457", StdDev: "0.0000872971", Samples: 2}},
		"what is next to nothing is 0": {reads(1e-300), v1alpha1.StatisticMean,
			v1alpha1.MetricResult{Value: "0", Mean: "0", Min: "0", Max: "0", Samples: 1}},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			test.want.Name, test.want.Unit = "read", "kB/s"
			g.Expect(stats.Summarise(test.repetitions, test.statistic)).To(Equal([]v1alpha1.MetricResult{test.want}))
		})
	}
}

func TestMetricsComeInTheOrderOfTheFirstRepetition(t *testing.T) {
	g := NewWithT(t)
	got, err := stats.Summarise([][]benchmarks.Sample{
		{{Name: "write", Unit: "kB/s", Value: 1}, {Name: "read", Unit: "kB/s", Value: 2}, {Name: "read", Unit: "IOPS", Value: 3}},
		{{Name: "read", Unit: "IOPS", Value: 5}, {Name: "write", Unit: "kB/s", Value: 3}, {Name: "read", Unit: "kB/s", Value: 4}},
	}, v1alpha1.StatisticMean)
	g.Expect(err).NotTo(HaveOccurred())
	var seen []string
	for _, m := range got {
		seen = append(seen, m.Name+" "+m.Value+" "+m.Unit)
	}
	g.Expect(seen).To(Equal([]string{"write 2 kB/s", "read 3 kB/s", "read 4 IOPS"}), "a metric is a name with a unit")
}

func TestSummariseRefuses(t *testing.T) {
	read, write := benchmarks.Sample{Name: "read", Unit: "kB/s", Value: 1}, benchmarks.Sample{Name: "write", Unit: "kB/s", Value: 1}
	inIOPS := benchmarks.Sample{Name: "read", Unit: "IOPS", Value: 1}
	for name, test := range map[string]struct {
		repetitions [][]benchmarks.Sample
		statistic   v1alpha1.Statistic
		says        string
	}{
		"no repetition":                            {nil, v1alpha1.StatisticMean, "there is no repetition to summarise"},
		"repetitions that measured nothing":        {[][]benchmarks.Sample{{}, {}}, v1alpha1.StatisticMean, "the repetitions measured nothing"},
		"a repetition that measured less":          {[][]benchmarks.Sample{{read, write}, {write}}, v1alpha1.StatisticMean, "repetition 2 did not measure read in kB/s, which repetition 1 did"},
		"a repetition that measured more":          {[][]benchmarks.Sample{{read}, {read, write}}, v1alpha1.StatisticMean, "repetition 2 measured write in kB/s, which repetition 1 did not"},
		"a third repetition that measured more":    {[][]benchmarks.Sample{{read}, {read}, {read, write}}, v1alpha1.StatisticMean, "repetition 3 measured write in kB/s, which repetition 1 did not"},
		"a repetition in another unit":             {[][]benchmarks.Sample{{read}, {inIOPS}}, v1alpha1.StatisticMean, "repetition 2 measured read in IOPS, which repetition 1 did not"},
		"a first repetition that measured nothing": {[][]benchmarks.Sample{{}, {read}}, v1alpha1.StatisticMean, "repetition 2 measured read in kB/s, which repetition 1 did not"},
		"a metric that was measured twice":         {[][]benchmarks.Sample{{read, read}}, v1alpha1.StatisticMean, "repetition 1 measured read in kB/s twice"},
		"what is no number":                        {reads(1, math.NaN()), v1alpha1.StatisticMean, "repetition 2: read in kB/s is NaN, which is no measurement"},
		"infinity":                                 {reads(math.Inf(1)), v1alpha1.StatisticMean, "read in kB/s is +Inf, which is no measurement"},
		"a number that the API can't hold":         {reads(1e30), v1alpha1.StatisticMean, "read in kB/s is 1e+30, which is no measurement"},
		"a trimmed mean of two":                    {reads(1, 2), v1alpha1.StatisticTrimmedMean, "it needs at least 3; there are 2: set spec.repetitions to 3 or more"},
		"an unknown statistic":                     {reads(1), "Mode", `spec.statistic: "Mode" is none of Mean, Median, Min, Max, TrimmedMean`},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			got, err := stats.Summarise(test.repetitions, test.statistic)
			g.Expect(err).To(MatchError(ContainSubstring(test.says)))
			g.Expect(got).To(BeNil())
		})
	}
}

func FuzzSummariseNeverLeavesTheRange(f *testing.F) {
	f.Add(1.0, 2.0, 3.0)
	f.Add(0.1, 0.1, 0.1)
	f.Add(9.9e23, 1e-300, 5.0)
	f.Add(math.MaxFloat64, 1.0, 1.0)
	f.Fuzz(func(t *testing.T, a, b, c float64) {
		for _, statistic := range []v1alpha1.Statistic{"Mean", "Median", "Min", "Max", "TrimmedMean"} {
			got, err := stats.Summarise(reads(math.Abs(a), math.Abs(b), math.Abs(c)), statistic)
			if err != nil {
				continue
			}
			for _, number := range []string{got[0].Value, got[0].Mean, got[0].Min, got[0].Max, got[0].StdDev} {
				NewWithT(t).Expect(number).To(MatchRegexp(`^[0-9]+(\.[0-9]+)?$`))
				NewWithT(t).Expect(len(number)).To(BeNumerically("<=", 32), number)
			}
		}
	})
}
