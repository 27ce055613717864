package stats_test

import (
	"fmt"
	"testing"

	. "github.com/onsi/gomega"

	"parallelfs.dev/operator/api/v1alpha1"
	"parallelfs.dev/operator/benchmarks/results"
	"parallelfs.dev/operator/benchmarks/stats"
)

// point returns a point with parameters in the form name, value, name, value.
func point(index int, parameters []string, metrics ...results.Metric) results.Point {
	p := results.Point{Index: index, State: v1alpha1.PointSucceeded, Metrics: metrics}
	for i := 0; i < len(parameters); i += 2 {
		p.Parameters = append(p.Parameters, results.Value{Name: v1alpha1.SweepName(parameters[i]), Value: parameters[i+1]})
	}
	return p
}

// single returns a metric with one sample.
func single(name, unit string, value float64) results.Metric {
	return results.Metric{Name: name, Unit: unit, Value: value, Mean: value, Min: value, Max: value, Samples: 1}
}

// repeated returns a metric with this number of samples.
func repeated(name, unit string, value, deviation float64, samples int) results.Metric {
	m := single(name, unit, value)
	m.StdDev, m.Samples = new(deviation), samples
	return m
}

// The paper prints 78.5 %; 1 720 799 ÷ 110 000 = 15.64, which at 20 times the servers is 78.2 %. For stats, 6 419 445 ÷ 395 000 is 16.25.
func TestTheSpeedUpOf2015(t *testing.T) {
	g := NewWithT(t)
	spec := &v1alpha1.BenchmarkRunSpec{Along: "clients", Sweep: []v1alpha1.SweepDimension{{Name: "clients"}}}
	points := []results.Point{
		point(0, []string{"clients", "1"}, single("File creation", "ops/s", 110_000), single("File stat", "ops/s", 395_000)),
		point(1, []string{"clients", "20"}, single("File creation", "ops/s", 1_720_799), single("File stat", "ops/s", 6_419_445)),
	}
	stats.Scaling(points, spec)
	var got []string
	for _, p := range points {
		for _, m := range p.Metrics {
			s := stats.Status(m)
			got = append(got, s.Speedup+" "+s.Efficiency)
		}
	}
	g.Expect(got).To(Equal([]string{"1.00 100.0", "1.00 100.0", "15.64 78.2", "16.25 81.3"}))

	suite := results.Suite{Variants: []results.Variant{
		{Name: "nodes-1", Scale: 1, Runs: []results.SuiteRun{{Name: "creates", Run: results.Run{Points: points[:1]}}}},
		{Name: "nodes-20", Scale: 20, Runs: []results.SuiteRun{{Name: "creates", Run: results.Run{Points: points[1:]}}}},
	}}
	table := stats.Table(suite)
	g.Expect(table).To(HaveLen(4))
	g.Expect(table[1].Status()).To(Equal(v1alpha1.SuiteFigure{
		Variant: "nodes-20", Run: "creates", Metric: "File creation", Unit: "ops/s", Value: "1720799", Speedup: "15.64", Efficiency: "78.2"}))
}

func TestScaling(t *testing.T) {
	sweep := func(names ...v1alpha1.SweepName) []v1alpha1.SweepDimension {
		var out []v1alpha1.SweepDimension
		for _, name := range names {
			out = append(out, v1alpha1.SweepDimension{Name: name})
		}
		return out
	}
	rate := func(v float64) results.Metric { return single("read", "MiB/s", v) }
	for name, test := range map[string]struct {
		spec   v1alpha1.BenchmarkRunSpec
		points []results.Point
		want   []string
	}{
		"the smallest counts as 1, wherever it stands": {
			v1alpha1.BenchmarkRunSpec{Along: "processes", Sweep: sweep("processes")},
			[]results.Point{point(0, []string{"processes", "4"}, rate(300)), point(1, []string{"processes", "2"}, rate(200))},
			[]string{"1.50 75.0", "1.00 100.0"}},
		"each combination of the others has its own": {
			v1alpha1.BenchmarkRunSpec{Along: "processes", Sweep: sweep("storagePool", "processes")},
			[]results.Point{
				point(0, []string{"storagePool", "ssd", "processes", "1"}, rate(100)), point(1, []string{"storagePool", "ssd", "processes", "4"}, rate(400)),
				point(2, []string{"storagePool", "hdd", "processes", "1"}, rate(10)), point(3, []string{"storagePool", "hdd", "processes", "4"}, rate(10)),
			},
			[]string{"1.00 100.0", "4.00 100.0", "1.00 100.0", "1.00 25.0"}},
		"what is derived does not tell points apart": {
			v1alpha1.BenchmarkRunSpec{Along: "processes", Sweep: sweep("processes"), Derive: []v1alpha1.DerivedParameter{{Name: "mdtest.items"}}},
			[]results.Point{point(0, []string{"processes", "1", "mdtest.items", "8"}, rate(1)), point(1, []string{"processes", "8", "mdtest.items", "1"}, rate(6))},
			[]string{"1.00 100.0", "6.00 75.0"}},
		"a zipped sweep has one": {
			v1alpha1.BenchmarkRunSpec{Along: "clients", SweepMode: v1alpha1.SweepZipped, Sweep: sweep("clients", "processes")},
			[]results.Point{point(0, []string{"clients", "1", "processes", "16"}, rate(10)), point(1, []string{"clients", "2", "processes", "32"}, rate(15))},
			[]string{"1.00 100.0", "1.50 75.0"}},
		"a time has none": {
			v1alpha1.BenchmarkRunSpec{Along: "processes", Sweep: sweep("processes")},
			[]results.Point{point(0, []string{"processes", "1"}, single("latency", "ms", 6)), point(1, []string{"processes", "4"}, single("latency", "ms", 2))},
			[]string{" ", " "}},
		"a rate of errors has none": {
			v1alpha1.BenchmarkRunSpec{Along: "processes", Sweep: sweep("processes")},
			[]results.Point{point(0, []string{"processes", "1"}, single("errors", "1/s", 6)), point(1, []string{"processes", "4"}, single("errors", "1/s", 2))},
			[]string{" ", " "}},
		"a count has none": {
			v1alpha1.BenchmarkRunSpec{Along: "processes", Sweep: sweep("processes")},
			[]results.Point{point(0, []string{"processes", "1"}, single("items", "items", 60)), point(1, []string{"processes", "4"}, single("items", "items", 240))},
			[]string{" ", " "}},
		"sizes are numbers too": {
			v1alpha1.BenchmarkRunSpec{Along: "ior.transferSize", Sweep: sweep("ior.transferSize")},
			[]results.Point{point(0, []string{"ior.transferSize", "512k"}, rate(100)), point(1, []string{"ior.transferSize", "1m"}, rate(150))},
			[]string{"1.00 100.0", "1.50 75.0"}},
		"where the smallest has no result, nothing counts as 1": {
			v1alpha1.BenchmarkRunSpec{Along: "processes", Sweep: sweep("processes")},
			[]results.Point{point(0, []string{"processes", "1"}), point(1, []string{"processes", "2"}, rate(150)), point(2, []string{"processes", "4"}, rate(150))},
			[]string{" ", " "}},
		"where the smallest is 0, nothing is": {
			v1alpha1.BenchmarkRunSpec{Along: "processes", Sweep: sweep("processes")},
			[]results.Point{point(0, []string{"processes", "1"}, rate(0)), point(1, []string{"processes", "2"}, rate(150))},
			[]string{" ", " "}},
		"without spec.along there is none": {
			v1alpha1.BenchmarkRunSpec{Sweep: sweep("processes")}, []results.Point{point(0, []string{"processes", "1"}, rate(3))}, []string{" "}},
	} {
		t.Run(name, func(t *testing.T) {
			stats.Scaling(test.points, &test.spec)
			var got []string
			for _, p := range test.points {
				for _, m := range stats.Statuses(p.Metrics) {
					got = append(got, m.Speedup+" "+m.Efficiency)
				}
			}
			NewWithT(t).Expect(got).To(Equal(test.want))
		})
	}
}

func TestTheBestPointsAreTheHighestAndOfATimeTheLowest(t *testing.T) {
	g := NewWithT(t)
	failed := point(3, nil, single("read", "MiB/s", 999))
	failed.State = v1alpha1.PointFailed
	best := stats.BestPoints([]results.Point{
		point(0, nil, single("read", "MiB/s", 5), single("run", "s", 9), single("items", "items", 8)),
		point(1, nil, single("read", "MiB/s", 7), single("run", "s", 4), single("items", "items", 9)),
		point(2, nil, single("read", "MiB/s", 7), single("run", "s", 5)), failed,
	})
	g.Expect(best).To(HaveExactElements(
		And(HaveField("Name", "read"), HaveField("Value", 7.0), HaveField("Point", 1)),
		And(HaveField("Name", "run"), HaveField("Value", 4.0), HaveField("Point", 1))))
	g.Expect(best[0].Status()).To(Equal(v1alpha1.BestPoint{Name: "read", Unit: "MiB/s", Value: "7", Index: 1}))
}

// compare compares points with those of a published table, which has no other content.
func compare(points, baseline []results.Point, tolerance float64) results.Comparison {
	pair := stats.Pair{Run: results.Run{Points: points}, Baseline: results.Run{Points: baseline}, Of: "before"}
	return stats.Compare([]stats.Pair{pair}, stats.Terms{Tolerance: tolerance})[0]
}

func TestVerdicts(t *testing.T) {
	for name, test := range map[string]struct {
		here, there results.Metric
		want        string
	}{
		// Welch: 8/√(2²/5 + 3²/4) = 4.58, 5.05 degrees of freedom, limit 2.56.
		"beyond the noise of both": {repeated("r", "MiB/s", 108, 2, 5), repeated("r", "MiB/s", 100, 3, 4), "+8.0 % (100 before, better beyond the noise)"},
		// 4/1.746 = 2.29, which is less than 2.56.
		"within the noise of both":       {repeated("r", "MiB/s", 104, 2, 5), repeated("r", "MiB/s", 100, 3, 4), "+4.0 % (100 before, within the noise)"},
		"worse":                          {repeated("r", "MiB/s", 92, 2, 5), repeated("r", "MiB/s", 100, 3, 4), "-8.0 % (100 before, worse beyond the noise)"},
		"more of a time is worse":        {repeated("r", "s", 108, 2, 5), repeated("r", "s", 100, 3, 4), "+8.0 % (100 before, worse beyond the noise)"},
		"less of a time is better":       {repeated("r", "s", 92, 2, 5), repeated("r", "s", 100, 3, 4), "-8.0 % (100 before, better beyond the noise)"},
		"a count is neither":             {repeated("r", "items", 92, 2, 5), repeated("r", "items", 100, 3, 4), "-8.0 % (100 before, neither good nor bad)"},
		"no repetitions on either side":  {single("r", "MiB/s", 200), single("r", "MiB/s", 100), "+100.0 % (100 before, no repetitions to tell)"},
		"equal without any deviation":    {repeated("r", "MiB/s", 100, 0, 3), repeated("r", "MiB/s", 100, 0, 3), "+0.0 % (100 before, within the noise)"},
		"another without any deviation":  {repeated("r", "MiB/s", 103, 0, 3), repeated("r", "MiB/s", 100, 0, 3), "+3.0 % (100 before, better beyond the noise)"},
		"less than the tolerance":        {repeated("r", "MiB/s", 102, 0.1, 3), repeated("r", "MiB/s", 100, 0.1, 3), "+2.0 % (100 before, beyond the noise, but below the tolerance)"},
		"a baseline of 0 has no percent": {single("r", "MiB/s", 1), single("r", "MiB/s", 0), ""},
		// Four degrees of freedom, one more repetition: 2.776445 × 2 × √1.2 = 6.083.
		"beyond what one more repetition could be":       {repeated("r", "MiB/s", 106.1, 2, 5), single("r", "MiB/s", 100), "+6.1 % (100 before, better beyond the noise)"},
		"what one more repetition could be":              {repeated("r", "MiB/s", 106, 2, 5), single("r", "MiB/s", 100), "+6.0 % (100 before, within the noise)"},
		"the other way round":                            {single("r", "MiB/s", 93), repeated("r", "MiB/s", 100, 2, 5), "-7.0 % (100 before, worse beyond the noise)"},
		"a published deviation of nobody knows how many": {single("r", "MiB/s", 130), repeated("r", "MiB/s", 100, 2, 0), "+30.0 % (100 before, no repetitions to tell)"},
		// Two degrees of freedom: 4.302653 × 2 × √(4/3) = 9.936.
		"a published mean of nobody knows how many is one value": {repeated("r", "MiB/s", 110, 2, 3), repeated("r", "MiB/s", 100, 0.1, 0), "+10.0 % (100 before, better beyond the noise)"},
		"a published mean within what one more could be":         {repeated("r", "MiB/s", 109.9, 2, 3), repeated("r", "MiB/s", 100, 0.1, 0), "+9.9 % (100 before, within the noise)"},
	} {
		t.Run(name, func(t *testing.T) {
			points := []results.Point{point(0, nil, test.here)}
			compare(points, []results.Point{point(0, nil, test.there)}, 0.03)
			NewWithT(t).Expect(stats.Status(points[0].Metrics[0]).Baseline).To(Equal(test.want))
		})
	}
}

func TestACompareFindsThePointWithTheSameParameters(t *testing.T) {
	rate := func(v float64) results.Metric { return repeated("read", "kB/s", v, 1, 5) }
	for name, test := range map[string]struct {
		points, baseline []results.Point
		want             []string
		says             string
	}{
		"in another order and writing": {
			[]results.Point{point(0, []string{"iozone.recordSize", "1m"}, rate(110)), point(1, []string{"iozone.recordSize", "64k"}, rate(50))},
			[]results.Point{point(0, []string{"iozone.recordSize", "64"}, rate(50.1)), point(1, []string{"iozone.recordSize", "1024k"}, rate(100))},
			[]string{"100 better", "50.1 within the noise"},
			"2 results of 2 points compared with before: 1 better, 0 worse, 1 within the noise"},
		"what is derived here only does not matter": {
			[]results.Point{point(0, []string{"processes", "1", "mdtest.items", "8"}, rate(80)), point(1, []string{"processes", "2", "mdtest.items", "4"}, rate(100))},
			[]results.Point{point(0, []string{"processes", "1"}, rate(100)), point(1, []string{"processes", "2"}, rate(100))},
			[]string{"100 worse", "100 within the noise"},
			"2 results of 2 points compared with before: 0 better, 1 worse, 1 within the noise; the largest loss is read -20.0 % at point 0"},
		"a constant here may be one of many there": {
			[]results.Point{point(0, []string{"processes", "2"}, rate(100))},
			[]results.Point{point(0, []string{"processes", "1"}, rate(50)), point(1, []string{"processes", "2"}, rate(70))},
			[]string{"70 better"}, "1 result of 1 point compared with before: 1 better, 0 worse, 0 within the noise"},
		"constants that differ are reported": {
			[]results.Point{point(0, []string{"storagePool", "ssd", "processes", "2"}, rate(100))},
			[]results.Point{point(0, []string{"storagePool", "bulk", "processes", "2"}, rate(100))},
			[]string{"100 within the noise"}, "0 worse, 1 within the noise; storagePool is ssd here and bulk there"},
		"points that are not there are counted": {
			[]results.Point{point(0, []string{"processes", "2"}, rate(100)), point(1, []string{"processes", "3"}, rate(100))},
			[]results.Point{point(0, []string{"processes", "2"}, rate(100))},
			[]string{"100 within the noise", ""}, "1 within the noise; 1 point not there"},
		"where several fit, none is taken": {
			[]results.Point{point(0, []string{"processes", "2"}, rate(100)), point(1, []string{"processes", "3"}, rate(100))},
			[]results.Point{point(0, []string{"processes", "2", "ior.segments", "1"}, rate(100)), point(1, []string{"processes", "2", "ior.segments", "2"}, rate(100))},
			[]string{"", ""}, "nothing to compare with before: no point has the same parameters, and a metric of the same name and unit, there; it varies ior.segments, of which this run says nothing"},
		"another unit is something else": {
			[]results.Point{point(0, nil, rate(100))}, []results.Point{point(0, nil, single("read", "MB/s", 100))},
			[]string{""}, "not compared with before, which measured something else; the unit of read is kB/s here and MB/s there"},
		"a sweep is not compared with a single point that says nothing of it": {
			[]results.Point{point(0, []string{"processes", "2"}, rate(100)), point(1, []string{"processes", "3"}, rate(100))},
			[]results.Point{point(0, nil, rate(100))}, []string{"", ""}, "nothing to compare with before"},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			says := compare(test.points, test.baseline, 0.03).Sentence()
			var got []string
			for _, p := range test.points {
				text := ""
				if b := p.Metrics[0].Baseline; b != nil {
					text = fmt.Sprintf("%v %s", b.Value, b.Verdict)
					g.Expect(b.Of).To(Equal("before"))
				}
				got = append(got, text)
			}
			g.Expect(got).To(Equal(test.want))
			g.Expect(says).To(ContainSubstring(test.says))
		})
	}
}

func TestARateInTwoUnitsIsTestedOnce(t *testing.T) {
	// Welch: 6/√(2²/5 + 2²/5) = 4.74, 8 degrees of freedom: p = 0.0015. Holm's limit for 30 members is 0.05/30 = 0.0017, and less for 60.
	run := func(first float64) (metrics []results.Metric) {
		for i := range 30 {
			mean := 1000.0
			if i == 0 {
				mean = first
			}
			deviation := 2 + float64(i)/100 // each metric has a deviation of its own
			metrics = append(metrics, repeated(fmt.Sprint("r", i), "MiB/s", mean, deviation, 5),
				repeated(fmt.Sprint("r", i), "ops/s", 4*mean, 4*deviation, 5))
		}
		return metrics
	}
	g := NewWithT(t)
	here := []results.Point{point(0, nil, run(1006)...)}
	compare(here, []results.Point{point(0, nil, run(1000)...)}, 0)
	for i, m := range here[0].Metrics {
		want := results.WithinNoise
		if i < 2 {
			want = results.Better
		}
		g.Expect(m.Baseline.Verdict).To(Equal(want), "%s in %s", m.Name, m.Unit)
	}
}

func TestTwoRatesOfWhichOneIsNoMultipleOfTheOtherAreTestedTwice(t *testing.T) {
	g := NewWithT(t)
	// Welch: 3.1/√(2²/5 + 2²/5) = 2.45, 8 degrees of freedom: p = 0.04. Holm's limit for the first of two is 0.025.
	here := []results.Point{point(0, nil, repeated("read", "MiB/s", 1003.1, 2, 5), repeated("read", "ops/s", 4012.4, 7, 5))}
	there := []results.Point{point(0, nil, repeated("read", "MiB/s", 1000, 2, 5), repeated("read", "ops/s", 4000, 9, 5))}
	compare(here, there, 0)
	g.Expect(here[0].Metrics[0].Baseline.Verdict).To(Equal(results.WithinNoise))
	one := []results.Point{point(0, nil, here[0].Metrics[0])}
	compare(one, there, 0)
	g.Expect(one[0].Metrics[0].Baseline.Verdict).To(Equal(results.Better), "alone, its p is 0.04")
}

func TestMetricsThatTheTermsOmitAreNotRated(t *testing.T) {
	g := NewWithT(t)
	here := []results.Point{point(0, nil, repeated("creation", "ops/s", 80, 1, 5), repeated("removal", "ops/s", 50, 1, 5))}
	there := []results.Point{point(0, nil, repeated("creation", "ops/s", 100, 1, 5), repeated("removal", "ops/s", 100, 1, 5))}
	pair := stats.Pair{Run: results.Run{Points: here}, Baseline: results.Run{Points: there}, Of: "before"}
	got := stats.Compare([]stats.Pair{pair}, stats.Terms{Metrics: []string{"creation", "stat"}})[0]
	g.Expect(here[0].Metrics[0].Baseline.Verdict).To(Equal(results.Worse))
	g.Expect(*here[0].Metrics[1].Baseline).To(And(HaveField("Verdict", results.Unrated), HaveField("Change", -0.5)))
	g.Expect(got.Summary).To(And(HavePrefix("1 result of 1 point compared with before: 0 better, 1 worse"),
		ContainSubstring(`"stat" was named to be judged, and was not compared`)))
}
