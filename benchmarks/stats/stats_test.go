package stats_test

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	. "github.com/onsi/gomega"

	"parallelfs.dev/operator/api/v1alpha1"
	"parallelfs.dev/operator/benchmarks"
	"parallelfs.dev/operator/benchmarks/stats"
)

// reads returns repetitions that each measured one read.
func reads(values ...float64) [][]benchmarks.Sample {
	var out [][]benchmarks.Sample
	for _, v := range values {
		out = append(out, []benchmarks.Sample{{Name: "read", Unit: "kB/s", Value: v}})
	}
	return out
}

func TestSummarize(t *testing.T) {
	for name, test := range map[string]struct {
		repetitions [][]benchmarks.Sample
		statistic   v1alpha1.Statistic
		want        v1alpha1.MetricResult
	}{
		"the mean of all": {reads(2, 4, 4, 4, 5, 5, 7, 9), v1alpha1.StatisticMean,
			v1alpha1.MetricResult{Value: "5", Mean: "5", Min: "2", Max: "9", StdDev: "2.13809", Median: "4.5", Confidence: "1.78749", Samples: 8}},
		"the median of an odd number is the middle, whatever the order": {reads(90, 1, 20), v1alpha1.StatisticMedian,
			v1alpha1.MetricResult{Value: "20", Mean: "37", Min: "1", Max: "90", StdDev: "46.8722", Median: "20", Confidence: "116.437", Samples: 3}},
		"the median of an even number is the mean of the two in the middle": {reads(90, 1, 20, 30), v1alpha1.StatisticMedian,
			v1alpha1.MetricResult{Value: "25", Mean: "35.25", Min: "1", Max: "90", StdDev: "38.4307", Median: "25", Confidence: "61.1518", Samples: 4}},
		"the lowest": {reads(3, 1, 2), v1alpha1.StatisticMin,
			v1alpha1.MetricResult{Value: "1", Mean: "2", Min: "1", Max: "3", StdDev: "1", Median: "2", Confidence: "2.48414", Samples: 3}},
		"the highest": {reads(3, 1, 2), v1alpha1.StatisticMax,
			v1alpha1.MetricResult{Value: "3", Mean: "2", Min: "1", Max: "3", StdDev: "1", Median: "2", Confidence: "2.48414", Samples: 3}},
		"a trimmed mean drops the highest and the lowest, and mean, min and max keep them": {reads(100, 11, 12, 13, 1), v1alpha1.StatisticTrimmedMean,
			v1alpha1.MetricResult{Value: "12", Mean: "27.4", Min: "1", Max: "100", StdDev: "40.8693", Median: "12", Confidence: "50.7459", Samples: 5}},
		"a trimmed mean of three is the middle": {reads(100, 12, 1), v1alpha1.StatisticTrimmedMean,
			v1alpha1.MetricResult{Value: "12", Mean: "37.6667", Min: "1", Max: "100", StdDev: "54.2617", Median: "12", Confidence: "134.794", Samples: 3}},
		"a trimmed mean drops only one of several lowest": {reads(1, 1, 4, 9), v1alpha1.StatisticTrimmedMean,
			v1alpha1.MetricResult{Value: "2.5", Mean: "3.75", Min: "1", Max: "9", StdDev: "3.77492", Median: "2.5", Confidence: "6.00674", Samples: 4}},
		"one sample has no deviation": {reads(7), v1alpha1.StatisticMedian,
			v1alpha1.MetricResult{Value: "7", Mean: "7", Min: "7", Max: "7", Samples: 1}},
		"equal samples have a deviation of exactly 0": {reads(0.1, 0.1, 0.1), v1alpha1.StatisticMean,
			v1alpha1.MetricResult{Value: "0.1", Mean: "0.1", Min: "0.1", Max: "0.1", StdDev: "0", Median: "0.1", Confidence: "0", Samples: 3}},
		"whole numbers are counts and stay as they are, others are rounded to six digits, without an exponent": {reads(14954547, 2), v1alpha1.StatisticMax,
			v1alpha1.MetricResult{Value: "14954547", Mean: "7477270", Min: "2", Max: "14954547", StdDev: "10574500", Median: "7477270", Confidence: "95007800", Samples: 2}},
		"small numbers too": {reads(0.000123456789, 0), v1alpha1.StatisticMax,
			v1alpha1.MetricResult{Value: "0.000123457", Mean: "0.0000617284", Min: "0", Max: "0.000123457", StdDev: "0.0000872971", Median: "0.0000617284", Confidence: "0.000784334", Samples: 2}},
		"what is next to nothing is 0": {reads(1e-300), v1alpha1.StatisticMean,
			v1alpha1.MetricResult{Value: "0", Mean: "0", Min: "0", Max: "0", Samples: 1}},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			test.want.Name, test.want.Unit = "read", "kB/s"
			metrics, err := stats.Summarize(test.repetitions, test.statistic, nil)
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(stats.Statuses(metrics)).To(Equal([]v1alpha1.MetricResult{test.want}))
		})
	}
}

func TestMetricsComeInTheOrderOfTheFirstRepetition(t *testing.T) {
	g := NewWithT(t)
	got, err := stats.Summarize([][]benchmarks.Sample{
		{{Name: "write", Unit: "kB/s", Value: 1}, {Name: "read", Unit: "kB/s", Value: 2}, {Name: "read", Unit: "IOPS", Value: 3}},
		{{Name: "read", Unit: "IOPS", Value: 5}, {Name: "write", Unit: "kB/s", Value: 3}, {Name: "read", Unit: "kB/s", Value: 4}},
	}, v1alpha1.StatisticMean, nil)
	g.Expect(err).NotTo(HaveOccurred())
	var seen []string
	for _, m := range got {
		seen = append(seen, m.Name+" "+stats.Status(m).Value+" "+m.Unit)
	}
	g.Expect(seen).To(Equal([]string{"write 2 kB/s", "read 3 kB/s", "read 4 IOPS"}), "a metric is a name with a unit")
}

func TestSummarizeRefuses(t *testing.T) {
	read, write := benchmarks.Sample{Name: "read", Unit: "kB/s", Value: 1}, benchmarks.Sample{Name: "write", Unit: "kB/s", Value: 1}
	inIOPS := benchmarks.Sample{Name: "read", Unit: "IOPS", Value: 1}
	for name, test := range map[string]struct {
		repetitions [][]benchmarks.Sample
		statistic   v1alpha1.Statistic
		says        string
	}{
		"no repetition":                            {nil, v1alpha1.StatisticMean, "there is no repetition to summarize"},
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
		"an iteration that is no number": {[][]benchmarks.Sample{{{Name: "read", Unit: "kB/s", Within: &benchmarks.Within{Count: 2, Max: math.NaN()}}}}, v1alpha1.StatisticMean,
			"repetition 1: read in kB/s is NaN, which is no measurement"},
		"iterations that can't be": {[][]benchmarks.Sample{{{Name: "read", Unit: "kB/s", Within: &benchmarks.Within{Count: 2, Min: 3, Max: 1}}}}, v1alpha1.StatisticMean,
			"repetition 1: read in kB/s is of 2 iterations from 3 to 1"},
		"an unknown statistic": {reads(1), "Mode", `spec.statistic: "Mode" is none of Mean, Median, Min, Max, TrimmedMean, Worst`},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			got, err := stats.Summarize(test.repetitions, test.statistic, nil)
			g.Expect(err).To(MatchError(ContainSubstring(test.says)))
			g.Expect(got).To(BeNil())
		})
	}
}

func FuzzSummarizeNeverLeavesTheRange(f *testing.F) {
	f.Add(1.0, 2.0, 3.0)
	f.Add(0.1, 0.1, 0.1)
	f.Add(9.9e23, 1e-300, 5.0)
	f.Add(math.MaxFloat64, 1.0, 1.0)
	f.Fuzz(func(t *testing.T, a, b, c float64) {
		for _, statistic := range []v1alpha1.Statistic{"Mean", "Median", "Min", "Max", "TrimmedMean"} {
			got, err := stats.Summarize(reads(math.Abs(a), math.Abs(b), math.Abs(c)), statistic, nil)
			if err != nil {
				continue
			}
			m := stats.Status(got[0])
			for _, number := range []string{m.Value, m.Mean, m.Min, m.Max, m.Median, m.StdDev, m.Confidence} {
				NewWithT(t).Expect(number).To(MatchRegexp(`^[0-9]+(\.[0-9]+)?$`))
				NewWithT(t).Expect(len(number)).To(BeNumerically("<=", 32), number)
			}
		}
	})
}

// iterated returns a repetition in which the tool itself has iterated.
func iterated(mean float64, count int, low, high, deviation float64) []benchmarks.Sample {
	return []benchmarks.Sample{{Name: "read", Unit: "kB/s", Value: mean, Within: &benchmarks.Within{Count: count, Min: low, Max: high, StdDev: deviation}}}
}

func TestIterationsOfATool(t *testing.T) {
	for name, test := range map[string]struct {
		repetitions [][]benchmarks.Sample
		statistic   v1alpha1.Statistic
		want        v1alpha1.MetricResult
	}{
		// 4 degrees of freedom: 2.776445 × 10 / √5.
		"of one repetition, the tool's own figures stand": {[][]benchmarks.Sample{iterated(100, 5, 80, 120, 10)}, v1alpha1.StatisticMean,
			v1alpha1.MetricResult{Value: "100", Mean: "100", Min: "80", Max: "120", StdDev: "10", Confidence: "12.4166", Samples: 5}},
		"the lowest of one repetition is the tool's own": {[][]benchmarks.Sample{iterated(100, 5, 80, 120, 10)}, v1alpha1.StatisticMin,
			v1alpha1.MetricResult{Value: "80", Mean: "100", Min: "80", Max: "120", StdDev: "10", Confidence: "12.4166", Samples: 5}},
		"there is no median of what was not printed": {[][]benchmarks.Sample{iterated(100, 5, 80, 120, 10)}, v1alpha1.StatisticMedian,
			v1alpha1.MetricResult{Value: "100", Mean: "100", Min: "80", Max: "120", StdDev: "10", Confidence: "12.4166", Samples: 5}},
		"one iteration has no deviation": {[][]benchmarks.Sample{iterated(100, 1, 100, 100, 0)}, v1alpha1.StatisticMean,
			v1alpha1.MetricResult{Value: "100", Mean: "100", Min: "100", Max: "100", Samples: 1}},
		// 1 degree of freedom: 12.7062 × 14.14214 / √2.
		"of several repetitions the deviation is that between them, and the extremes are those of all iterations": {
			[][]benchmarks.Sample{iterated(100, 5, 80, 120, 10), iterated(120, 5, 115, 130, 4)}, v1alpha1.StatisticMax,
			v1alpha1.MetricResult{Value: "130", Mean: "110", Min: "80", Max: "130", Median: "110", StdDev: "14.1421", Confidence: "127.062", Samples: 2}},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			metrics, err := stats.Summarize(test.repetitions, test.statistic, nil)
			g.Expect(err).NotTo(HaveOccurred())
			test.want.Name, test.want.Unit = "read", "kB/s"
			g.Expect(stats.Statuses(metrics)).To(Equal([]v1alpha1.MetricResult{test.want}))
		})
	}
}

func TestOutliersAreFlaggedAndCountAllTheSame(t *testing.T) {
	for name, test := range map[string]struct {
		values []float64
		want   []int32
	}{
		// Grubbs's limit at 1 % is 2.139 deviations for 7: (500 - 79.4) / 185.5 = 2.267.
		"one of seven":                             {[]float64{500, 10, 11, 12, 10.5, 11.5, 9}, []int32{1}},
		"one of six, by its place":                 {[]float64{10, 11, 12, 10.5, 60, 11.5}, []int32{5}},
		"a lower one is as far as a higher one":    {[]float64{110, 111, 112, 60, 110.5, 111.5}, []int32{4}},
		"two of ten, of which one hides the other": {[]float64{10, 11, 12, 10.5, 11.5, 10.8, 11.2, 10.9, 300, 290}, []int32{9, 10}},
		"none among even ones":                     {[]float64{10, 11, 12, 13, 14, 15}, nil},
		"none that is only a little farther":       {[]float64{11, 12, 13, 15, 12, 11, 12.5}, nil},
		"none of five, whatever they are":          {[]float64{10, 10.1, 9.9, 10, 1000}, nil},
		"none of equal ones":                       {[]float64{5, 5, 5, 5, 5, 5}, nil},
		"one beside many equal":                    {[]float64{5, 5, 5, 5, 5, 5, 5, 5, 6}, []int32{9}},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			metrics, err := stats.Summarize(reads(test.values...), v1alpha1.StatisticMean, nil)
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(metrics[0].Outliers).To(Equal(test.want))
			g.Expect(metrics[0].Samples).To(Equal(len(test.values)))
		})
	}
}

// For any samples, their summary is between them, does not depend on their order, and scales with them.
func TestSummarizeByChance(t *testing.T) {
	chance := rand.New(rand.NewPCG(3, 5))
	for range 300 {
		g := NewWithT(t)
		values := make([]float64, 3+chance.IntN(10))
		for i := range values {
			values[i] = math.Exp(chance.NormFloat64() * 3)
		}
		for _, statistic := range []v1alpha1.Statistic{"Mean", "Median", "Min", "Max", "TrimmedMean"} {
			metrics, err := stats.Summarize(reads(values...), statistic, nil)
			g.Expect(err).NotTo(HaveOccurred())
			m := metrics[0]
			for _, number := range []float64{m.Value, m.Mean, *m.Median} {
				g.Expect(number).To(And(BeNumerically(">=", m.Min), BeNumerically("<=", m.Max)))
			}
			g.Expect(*m.StdDev).To(BeNumerically("<=", m.Max-m.Min))
			turned := slices.Clone(values)
			slices.Reverse(turned)
			other, err := stats.Summarize(reads(turned...), statistic, nil)
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(stats.Status(other[0]).Value).To(Equal(stats.Status(m).Value))
			for i := range turned {
				turned[i] *= 1024
			}
			other, err = stats.Summarize(reads(turned...), statistic, nil)
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(other[0].Value).To(BeNumerically("~", 1024*m.Value, 1e-9*other[0].Value))
			g.Expect(*other[0].Confidence).To(BeNumerically("~", 1024**m.Confidence, 1e-6**other[0].Confidence))
		}
	}
}

func TestEnough(t *testing.T) {
	rule := func(percent v1alpha1.Percent, most int32, metrics ...string) *v1alpha1.StopRule {
		return &v1alpha1.StopRule{ConfidencePercent: percent, MaxRepetitions: most, Metrics: metrics}
	}
	// A deviation of √2.5, a standard error of 0.7071, and 2.776 of it for four degrees of freedom: 1.963 %.
	five := reads(98, 99, 100, 101, 102)
	both := [][]benchmarks.Sample{}
	for _, write := range []float64{50, 100, 50, 100, 50} {
		both = append(both, []benchmarks.Sample{{Name: "read", Unit: "kB/s", Value: 100}, {Name: "write", Unit: "kB/s", Value: write}})
	}
	for name, test := range map[string]struct {
		rule        *v1alpha1.StopRule
		repetitions [][]benchmarks.Sample
		enough      bool
		says        string
	}{
		"without a rule, always":                    {nil, nil, true, ""},
		"at the limit":                              {rule("1.97", 20), five, true, ""},
		"above the limit":                           {rule("1.96", 20), five, false, "the mean of read in kB/s is known to ± 1.96 %; spec.until asks for 1.96 %"},
		"above the limit, but as many as there may": {rule("1", 5), five, true, "spec.until asks for 1 %"},
		"four repetitions are never certain":        {rule("99", 20), reads(1, 1, 1, 1), false, "spec.until needs at least 5 repetitions; there are 4"},
		"equal ones are certain, of 0 too":          {rule("0.1", 20), reads(0, 0, 0, 0, 0), true, ""},
		"around 0 nothing is":                       {rule("99", 20), reads(-1, 1, 0, -1, 1), false, "is known to ± +Inf %"},
		"all metrics must be":                       {rule("10", 20), both, false, "the mean of write in kB/s is known to ± 48.6 %"},
		"or those that the rule names":              {rule("10", 20, "read"), both, true, ""},
		"what was not measured is not":              {rule("10", 20, "raed"), both, false, "spec.until.metrics: raed is none of what was measured"},
		"20 repetitions are enough by default":      {rule("0.1", 0), reads(1, 9, 1, 9, 1, 9, 1, 9, 1, 9, 1, 9, 1, 9, 1, 9, 1, 9, 1, 9), true, "spec.until asks for 0.1 %"},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			g.Expect(stats.Enough(test.rule, test.repetitions)).To(Equal(test.enough))
			g.Expect(stats.Uncertain(test.rule, test.repetitions)).To(ContainSubstring(test.says))
			if test.says == "" {
				g.Expect(stats.Uncertain(test.rule, test.repetitions)).To(BeEmpty())
			}
		})
	}
}

func TestEveryMetricHasADirection(t *testing.T) {
	type row struct {
		name, unit string
		want       v1alpha1.Better
	}
	for _, test := range []row{
		{"File creation", "ops/s", "Higher"}, {"read", "MiB/s", "Higher"}, {"read", "kB/s", "Higher"}, {"read", "IOPS", "Higher"}, {"create", "files/s", "Higher"},
		{"write", "OPs", "Higher"}, {"read", "MB/sec", "Higher"}, {"efficiency", "MB/s/W", "Higher"}, {"jobs", "jobs per second", "Higher"}, {"net", "Gbps", "Higher"},
		{"File creation", "s", "Lower"}, {"read clat p99", "ns", "Lower"}, {"create", "ms", "Lower"}, {"run", "Seconds", "Lower"}, {"op", "ms/op", "Lower"}, {"x", "usec", "Lower"},
		{"latency p99", "ticks", "Lower"}, {"response time", "x", "Lower"},
		{"errors", "1/s", "Lower"}, {"error rate", "%", "Lower"}, {"failed requests", "ops/s", "Lower"}, {"nfs", "retries/s", "Lower"}, {"packet loss", "%", "Lower"},
		{"package power", "W", "Lower"}, {"cpu", "watts", "Lower"}, {"run", "kJ", "Lower"}, {"run", "J/op", "Lower"},
		{"items", "items", "Neither"}, {"total files", "files", "Neither"}, {"n", "count", "Neither"}, {"cpu", "%", "Neither"}, {"data", "MiB", "Neither"}, {"x", "", "Neither"},
		{"throughput", "x", "Higher"},
	} {
		NewWithT(t).Expect(stats.Direction(test.unit, test.name)).To(Equal(test.want), test.name+" in "+test.unit)
	}
}

func TestADirectionThatTheUserSetsCounts(t *testing.T) {
	g := NewWithT(t)
	var repetitions [][]benchmarks.Sample
	for _, v := range []float64{3, 1, 2} {
		repetitions = append(repetitions, []benchmarks.Sample{{Name: "score", Unit: "points/s", Value: v, Better: v1alpha1.BetterLower}})
	}
	metrics, err := stats.Summarize(repetitions, v1alpha1.StatisticWorst, nil)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(metrics[0].Better).To(Equal(v1alpha1.BetterLower))
	g.Expect(metrics[0].Value).To(Equal(3.0))
}

func TestTheWorstIsTheLowestRateTheHighestTimeAndOfACountTheMean(t *testing.T) {
	g := NewWithT(t)
	var repetitions [][]benchmarks.Sample
	for _, v := range []float64{3, 1, 2} {
		repetitions = append(repetitions, []benchmarks.Sample{
			{Name: "create", Unit: "files/s", Value: v}, {Name: "create", Unit: "ms", Value: v}, {Name: "items", Unit: "items", Value: v},
		})
	}
	metrics, err := stats.Summarize(repetitions, v1alpha1.StatisticWorst, nil)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect([]float64{metrics[0].Value, metrics[1].Value, metrics[2].Value}).To(Equal([]float64{1, 3, 2}))
}
