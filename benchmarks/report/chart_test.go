package report

import (
	"fmt"
	"testing"

	. "github.com/onsi/gomega"
	"gonum.org/v1/plot/vg"

	"parallelfs.dev/operator/api/v1alpha1"
	"parallelfs.dev/operator/benchmarks/results"
	"parallelfs.dev/operator/benchmarks/telemetry"
)

// runOver returns a run with one metric at each combination of the values.
func runOver(names []v1alpha1.SweepName, points ...[]string) results.Run {
	run := results.Run{}
	for _, name := range names {
		run.Spec.Sweep = append(run.Spec.Sweep, v1alpha1.SweepDimension{Name: name})
	}
	for i, values := range points {
		p := results.Point{Index: i, State: v1alpha1.PointSucceeded}
		for j, text := range values {
			p.Parameters = append(p.Parameters, results.Value{Name: names[j], Value: text})
		}
		v := float64(100 * (i + 1))
		p.Metrics = []results.Metric{{Name: "write", Unit: "MiB/s", Value: v, Mean: v, Min: v - 1, Max: v + 2, Samples: 3}}
		run.Points = append(run.Points, p)
	}
	return run
}

// shape summarizes the drawing of a chart in one line.
func shape(c chart) string {
	kind := "lines"
	if c.bars {
		kind = "bars"
	}
	if c.log2 {
		kind += " log2"
	}
	out := fmt.Sprintf("%s of %s over %q:", kind, c.title, c.dimension)
	for _, t := range c.ticks {
		out += " " + t.text
	}
	for _, l := range c.lines {
		out += fmt.Sprintf("; %q has %d", c.label(l), len(l.values))
	}
	return out
}

func TestTheFirstNumberIsTheAxisAndTheOthersAreLines(t *testing.T) {
	for name, c := range map[string]struct {
		run  results.Run
		want []string
	}{
		"powers of two are on an axis that doubles, in the order of their size": {
			runOver([]v1alpha1.SweepName{"iozone.recordSize"}, []string{"1m"}, []string{"512"}, []string{"2048k"}),
			[]string{`lines log2 of write over "recordSize": 512 1m 2048k; "" has 3`},
		},
		"other numbers are on a linear one": {
			runOver([]v1alpha1.SweepName{"processes"}, []string{"1"}, []string{"6"}), []string{`lines of write over "processes": 1 6; "" has 2`},
		},
		"words that stand before it are lines": {
			runOver([]v1alpha1.SweepName{"storagePool", "processes"}, []string{"ssd", "1"}, []string{"ssd", "2"}, []string{"hdd", "1"}, []string{"hdd", "2"}),
			[]string{`lines log2 of write over "processes": 1 2; "ssd" has 2; "hdd" has 2`},
		},
		"a number that is no axis says its name": {
			runOver([]v1alpha1.SweepName{"processes", "mdtest.depth"}, []string{"1", "3"}, []string{"2", "3"}, []string{"1", "4"}),
			[]string{`lines log2 of write over "processes": 1 2; "depth 3" has 2; "depth 4" has 1`},
		},
		"what follows from the axis, as in a zipped sweep, makes no lines": {
			runOver([]v1alpha1.SweepName{"processes", "clients"}, []string{"2", "1"}, []string{"4", "2"}, []string{"8", "2"}),
			[]string{`lines log2 of write over "processes": 2 4 8; "" has 3`},
		},
		"words alone are bars": {
			runOver([]v1alpha1.SweepName{"storagePool"}, []string{"ssd"}, []string{"hdd"}), []string{`bars of write over "storagePool": ssd hdd; "" has 2`},
		},
		"one point is a bar": {runOver(nil, nil), []string{`bars of write over "":; "" has 1`}},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			var got []string
			for _, one := range runSheet("x", c.run).charts(MinMax) {
				got = append(got, shape(one))
				svg, err := one.svg()
				g.Expect(err).NotTo(HaveOccurred())
				g.Expect(svg).NotTo(ContainSubstring("NaN"))
			}
			g.Expect(got).To(Equal(c.want))
		})
	}
}

func TestAlongIsTheAxis(t *testing.T) {
	g := NewWithT(t)
	run := runOver([]v1alpha1.SweepName{"mdtest.depth", "processes"}, []string{"1", "3"}, []string{"1", "4"}, []string{"2", "3"})
	run.Spec.Along = "processes"
	g.Expect(runSheet("x", run).charts(MinMax)[0].dimension).To(Equal("processes"))
}

func TestTooManyLinesBecomeSeveralCharts(t *testing.T) {
	g := NewWithT(t)
	var points [][]string
	for i := range 64 {
		points = append(points, []string{fmt.Sprint(1 << (i % 4)), fmt.Sprint("pool", i/4%4), fmt.Sprint(i / 16)})
	}
	got := runSheet("x", runOver([]v1alpha1.SweepName{"processes", "storagePool", "mdtest.depth"}, points...)).charts(MinMax)
	g.Expect(got).To(HaveLen(4))
	g.Expect(got[1].title).To(Equal("write (storagePool pool1)"))
	g.Expect(shape(got[1])).To(ContainSubstring(`"depth 0" has 4; "depth 1" has 4; "depth 2" has 4; "depth 3" has 4`))
	best := 0
	for _, c := range got {
		for _, l := range c.lines {
			for _, v := range l.values {
				if v.best {
					best++
				}
			}
		}
	}
	g.Expect(best).To(Equal(1), "one point is the best of all charts")
}

func TestOnlyPointsThatSucceededAreDrawn(t *testing.T) {
	g := NewWithT(t)
	run := runOver([]v1alpha1.SweepName{"processes"}, []string{"1"}, []string{"2"}, []string{"4"})
	run.Points[1].State = v1alpha1.PointInvalid
	c := runSheet("x", run).charts(MinMax)[0]
	g.Expect(c.lines[0].values).To(HaveLen(2))
	g.Expect(problemsOf("", "processes=2", run.Points[1])[0].State).To(Equal("Invalid"))
}

func TestABaselineIsALineBesideItsOwn(t *testing.T) {
	g := NewWithT(t)
	run := runOver([]v1alpha1.SweepName{"processes"}, []string{"1"}, []string{"2"})
	run.Points[1].Metrics[0].Baseline = &results.Baseline{Of: "the paper", Value: 250}
	c := runSheet("x", run).charts(MinMax)[0]
	g.Expect(shape(c)).To(Equal(`lines log2 of write over "processes": 1 2; "this run" has 2; "baseline" has 1`))
	g.Expect(c.baselineOf).To(Equal("the paper"))
	g.Expect(c.top()).To(Equal(250.0))
	g.Expect(c.lines[0].style).To(Equal(c.lines[1].style))
}

func TestErrorBarsMatchTheirName(t *testing.T) {
	g := NewWithT(t)
	run := runOver([]v1alpha1.SweepName{"processes"}, []string{"1"}, []string{"2"})
	half := 7.0
	run.Points[0].Metrics[0].Confidence = &half
	spread := runSheet("x", run).charts(MinMax)[0]
	g.Expect(spread.lines[0].values[0]).To(Equal(value{x: 1, y: 100, low: 99, high: 102}))
	g.Expect(spread.whiskers).To(Equal("lowest and highest sample"))
	sure := runSheet("x", run).charts(Confidence)[0]
	g.Expect(sure.lines[0].values[0]).To(Equal(value{x: 1, y: 100, low: 93, high: 107}))
	g.Expect(sure.lines[0].values[1].high).To(Equal(200.0), "without a confidence interval there is no bar")
	g.Expect(sure.whiskers).To(Equal("95 % confidence interval of the mean"))
}

func TestLooksDiffer(t *testing.T) {
	g := NewWithT(t)
	seen := map[string]bool{}
	for i := range 280 {
		l := lookOf(i)
		seen[fmt.Sprintf("%v %#v %v", l.color, l.marker, l.dashes)] = true
	}
	g.Expect(seen).To(HaveLen(280))
}

func TestNumbersAreForPeople(t *testing.T) {
	for v, want := range map[float64]string{
		0: "0", 7: "7", 1234: "1234", 12345: "12\u202f345", 1720799: "1\u202f720\u202f799", 1.5: "1.500", 12.345: "12.35", 123.45: "123.5",
		0.0123456: "0.01235", -12345.6: "\u221212\u202f346", 1234567.89: "1\u202f234\u202f568",
	} {
		NewWithT(t).Expect(number(v)).To(Equal(want))
	}
	g := NewWithT(t)
	g.Expect(change(0.031)).To(Equal("+3.1\u00a0%"))
	g.Expect(change(-0.2)).To(Equal("\u221220.0\u00a0%"))
	g.Expect(change(0)).To(Equal("0.0\u00a0%"))
}

func TestAxesHaveFewRoundNumbers(t *testing.T) {
	for top, want := range map[float64][]string{
		119000: {"0", "25\u202f000", "50\u202f000", "75\u202f000", "100\u202f000", "125\u202f000"}, 0.9: {"0.0", "0.2", "0.4", "0.6", "0.8", "1.0"},
		0: {"0.0", "0.2", "0.4", "0.6", "0.8", "1.0"}, 100: {"0", "20", "40", "60", "80", "100"}, 6.4e6: {"0", "2\u202f000\u202f000", "4\u202f000\u202f000", "6\u202f000\u202f000", "8\u202f000\u202f000"},
	} {
		NewWithT(t).Expect(tickLabels(niceTicks(top))).To(Equal(want))
	}
}

func TestLabelsThatWouldOverlapMoveApartAndNoFartherThanTheyMust(t *testing.T) {
	g := NewWithT(t)
	g.Expect(spreadOut([]vg.Length{10, 50, 90}, 0, 100)).To(Equal([]vg.Length{10, 50, 90}))
	g.Expect(spreadOut([]vg.Length{50, 50}, 0, 100)).To(Equal([]vg.Length{43, 57}))
	g.Expect(spreadOut([]vg.Length{99, 100}, 0, 100)).To(Equal([]vg.Length{86, 100}))
	crowded := spreadOut(make([]vg.Length, 21), 0, 100)
	for i, at := range crowded {
		g.Expect(float64(at)).To(BeNumerically("~", 5*float64(i), 1e-6))
	}
	g.Expect(spreadOut(nil, 0, 100)).To(BeEmpty())
}

func TestTelemetryNamesTheBusiestOfTheAttemptsThatCount(t *testing.T) {
	g := NewWithT(t)
	_, has := telemetryOf("x", results.Point{Attempts: []results.Attempt{{}}})
	g.Expect(has).To(BeFalse())
	disk := func(name string, seconds, use float64) telemetry.Summary {
		return telemetry.Summary{Node: "n1", Target: name, Seconds: seconds, Utilization: use, MaxUtilization: use}
	}
	got, has := telemetryOf("x", results.Point{Attempts: []results.Attempt{
		{Telemetry: []telemetry.Summary{disk("a", 10, 0.2), disk("b", 10, 0.5), {Node: "n2", Problem: "the agent did not answer"}}},
		{Telemetry: []telemetry.Summary{disk("a", 30, 0.6), disk("b", 10, 0.3), {Node: "n1", Daemon: "ns/fs/meta/0", Seconds: 10, CPUs: 1.5, MaxCPUs: 2}}},
		{WarmUp: true, Telemetry: []telemetry.Summary{disk("b", 10, 1)}},
		{Invalid: "a daemon was started again", Telemetry: []telemetry.Summary{disk("b", 10, 1)}},
	}})
	g.Expect(has).To(BeTrue())
	g.Expect(got.Disks).To(HaveLen(2))
	g.Expect(got.Disks[0]).To(HavePrefix("a on n1: 50.0\u00a0% busy (at most 60.0\u00a0%)"))
	g.Expect(got.Disks[1]).To(HavePrefix("b on n1: 40.0\u00a0% busy (at most 50.0\u00a0%)"))
	g.Expect(got.MeanUtilization).To(Equal("45.0\u00a0%"))
	g.Expect(got.Daemons).To(Equal([]string{"meta/0 on n1: 1.500 CPUs (at most 2)"}))
	g.Expect(got.Problems).To(Equal([]string{"n2: the agent did not answer"}))
}
