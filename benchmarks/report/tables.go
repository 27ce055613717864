package report

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"parallelfs.dev/operator/api/v1alpha1"
	"parallelfs.dev/operator/benchmarks/results"
	"parallelfs.dev/operator/benchmarks/stats"
	"parallelfs.dev/operator/benchmarks/telemetry"
)

// table is a table of text in any output format.
type table struct {
	Caption string
	Columns []column
	Rows    []tableRow
}

type column struct {
	Name string
	// Number is true for a column that is aligned to the right.
	Number bool
}

type tableRow struct {
	Cells []string
	// Mark is "best", "worse", "none" or empty.
	Mark string
}

// withoutEmpty drops columns that are empty in all rows.
func (t table) withoutEmpty() table {
	out := table{Caption: t.Caption}
	var kept []int
	for i, c := range t.Columns {
		if slices.ContainsFunc(t.Rows, func(r tableRow) bool { return r.Cells[i] != "" }) {
			kept = append(kept, i)
			out.Columns = append(out.Columns, c)
		}
	}
	for _, r := range t.Rows {
		cells := make([]string, 0, len(kept))
		for _, i := range kept {
			cells = append(cells, r.Cells[i])
		}
		out.Rows = append(out.Rows, tableRow{cells, r.Mark})
	}
	return out
}

// remarksColumn is the heading for the verdict against a baseline and all other remarks.
const remarksColumn = "Verdict and remarks"

// tables returns one table for each metric of a sheet, with all its statistics.
func (s *sheet) tables() []table {
	best := map[metric]int{}
	for _, b := range stats.BestPoints(s.points()) {
		best[metric{b.Name, b.Unit}] = b.Point
	}
	parameters := append(slices.Clone(s.varied), s.derived...)
	var out []table
	for _, m := range s.metrics {
		t := table{Caption: fmt.Sprintf("%s in %s", m.name, m.unit)}
		for _, name := range parameters {
			t.Columns = append(t.Columns, column{short(name), dimensionOf(s.rows, name).numbers != nil})
		}
		value := statisticName(s.statistic)
		t.Columns = append(t.Columns, column{strings.ToUpper(value[:1]) + value[1:], true})
		for _, name := range []string{
			"Mean", "Min", "Max", "Std. dev.", "Mean ± 95 %", "Samples", "Speed-up", "Efficiency", "Baseline", "Change",
		} {
			t.Columns = append(t.Columns, column{name, true})
		}
		t.Columns = append(t.Columns, column{remarksColumn, false})
		winner, has := best[m]
		for _, r := range s.rows {
			row := tableRow{}
			for _, name := range parameters {
				row.Cells = append(row.Cells, r.value(name))
			}
			found := r.point.Metric(m.name, m.unit)
			if found == nil {
				row.Mark = "none"
				row.Cells = append(row.Cells, make([]string, len(t.Columns)-len(row.Cells)-1)...)
				row.Cells = append(row.Cells, "no result: "+strings.ToLower(string(r.point.State)))
			} else {
				row.Cells = append(row.Cells, figures(*found)...)
				isBest := has && r.point.Index == winner
				row.Cells = append(row.Cells, remarks(*found, r.point.State, isBest))
				switch {
				case isBest:
					row.Mark = "best"
				case found.Baseline != nil && found.Baseline.Verdict == results.Worse:
					row.Mark = "worse"
				}
			}
			t.Rows = append(t.Rows, row)
		}
		t.sayOnce(slices.IndexFunc(t.Columns, func(c column) bool { return c.Name == "Samples" }))
		out = append(out, t.withoutEmpty())
	}
	return out
}

// sayOnce moves a column with the same number in all rows to the caption.
func (t *table) sayOnce(at int) {
	seen := map[string]bool{}
	for _, r := range t.Rows {
		if r.Cells[at] != "" {
			seen[r.Cells[at]] = true
		}
	}
	if len(seen) != 1 {
		return
	}
	for text := range seen {
		what := " samples each"
		if text == "1" {
			what = " sample each"
		}
		t.Caption += ", " + text + what
	}
	for i := range t.Rows {
		t.Rows[i].Cells[at] = ""
	}
}

// figures returns the cells of a metric.
func figures(m results.Metric) []string {
	optional := func(v *float64) string {
		if v == nil {
			return ""
		}
		return number(*v)
	}
	mean, lowest, highest := number(m.Mean), number(m.Min), number(m.Max)
	if m.Mean == m.Value {
		mean = ""
	}
	if m.Samples <= 1 && m.Min == m.Max {
		lowest, highest = "", ""
	}
	cells := []string{number(m.Value), mean, lowest, highest, optional(m.StdDev), optional(m.Confidence), strconv.Itoa(m.Samples)}
	speedup, efficiency := "", ""
	if m.Speedup != nil {
		speedup = grouped(strconv.FormatFloat(*m.Speedup, 'f', 2, 64))
	}
	if m.Efficiency != nil {
		efficiency = percent(*m.Efficiency)
	}
	cells = append(cells, speedup, efficiency)
	if m.Baseline == nil {
		return append(cells, "", "")
	}
	return append(cells, number(m.Baseline.Value), change(m.Baseline.Change))
}

func roundTo(v float64, decimals int) float64 {
	rounded, err := strconv.ParseFloat(strconv.FormatFloat(v, 'f', decimals, 64), 64)
	if err != nil {
		return v
	}
	return rounded
}

// remarks returns the remarks about a metric.
func remarks(m results.Metric, state v1alpha1.PointState, best bool) string {
	var parts []string
	if best {
		parts = append(parts, "best point")
	}
	if m.Baseline != nil {
		parts = append(parts, string(m.Baseline.Verdict))
	}
	if state != v1alpha1.PointSucceeded {
		parts = append(parts, "of a point that is "+strings.ToLower(string(state)))
	}
	if len(m.Outliers) > 0 {
		var numbers []string
		for _, n := range m.Outliers {
			numbers = append(numbers, strconv.Itoa(int(n)))
		}
		parts = append(parts, "outlier: repetition "+strings.Join(numbers, ", "))
	}
	return strings.Join(parts, "; ")
}

// figureSheets returns the best values of a suite's variants, plotted over their scale if all have one.
func figureSheets(suite results.Suite, all []stats.Figure) []*sheet {
	scaled := len(suite.Variants) > 1 && !slices.ContainsFunc(suite.Variants, func(v results.Variant) bool { return v.Scale == 0 })
	var out []*sheet
	for _, f := range all {
		i := slices.IndexFunc(out, func(s *sheet) bool { return s.title == f.Run+": best of each variant" })
		if i < 0 {
			s := &sheet{id: "best-" + slug(f.Run), title: f.Run + ": best of each variant", varied: []v1alpha1.SweepName{variantName}, best: true}
			if scaled {
				s.varied = []v1alpha1.SweepName{scaleName}
			}
			out, i = append(out, s), len(out)
		}
		s := out[i]
		if m := (metric{f.Metric, f.Unit}); !slices.Contains(s.metrics, m) {
			s.metrics = append(s.metrics, m)
		}
		j := slices.IndexFunc(s.rows, func(r row) bool { return r.value(variantName) == f.Variant })
		if j < 0 {
			added := []results.Value{{Name: variantName, Value: f.Variant}}
			for _, v := range suite.Variants {
				if v.Name == f.Variant && scaled {
					added = append(added, results.Value{Name: scaleName, Value: strconv.Itoa(int(v.Scale))})
				}
			}
			j = len(s.rows)
			s.rows = append(s.rows, row{added, results.Point{Index: j, State: v1alpha1.PointSucceeded}})
		}
		s.rows[j].point.Metrics = append(s.rows[j].point.Metrics, results.Metric{
			Name: f.Metric, Unit: f.Unit, Value: f.Value, Mean: f.Value, Min: f.Value, Max: f.Value, Samples: 1,
			Speedup: f.Speedup, Efficiency: f.Efficiency,
		})
	}
	return out
}

// figureTable returns the table of a suite.
func figureTable(all []stats.Figure) table {
	t := table{Caption: "Best value of each metric, by variant", Columns: []column{
		{"Run", false}, {"Metric", false}, {"Variant", false}, {"Value", true}, {"Unit", false},
		{"Best at", false}, {"Speed-up", true}, {"Efficiency", true},
	}}
	for _, f := range all {
		cells := []string{f.Run, f.Metric, f.Variant, number(f.Value), f.Unit, f.At, "", ""}
		if f.Speedup != nil {
			cells[6] = grouped(strconv.FormatFloat(*f.Speedup, 'f', 2, 64))
		}
		if f.Efficiency != nil {
			cells[7] = percent(*f.Efficiency)
		}
		t.Rows = append(t.Rows, tableRow{Cells: cells})
	}
	return t.withoutEmpty()
}

// telemetryView is the activity of the servers during one point.
type telemetryView struct {
	Point           string
	Disks, Daemons  []string
	Problems        []string
	DiskCount       int
	DaemonCount     int
	MeanUtilization string
}

// mostShown limits the disks and daemons shown for a point, the busiest first.
const mostShown = 3

// telemetryOf averages the telemetry of the valid attempts, weighted by time, and selects the busiest disks and daemons.
func telemetryOf(at string, p results.Point) (telemetryView, bool) {
	type sum struct {
		telemetry.Summary
		weight float64
	}
	sums := map[string]*sum{}
	view := telemetryView{Point: at}
	for _, a := range p.Attempts {
		if a.WarmUp || a.Error != "" || a.Invalid != "" {
			continue
		}
		for _, one := range a.Telemetry {
			if one.Problem != "" {
				if text := one.Node + ": " + one.Problem; !slices.Contains(view.Problems, text) {
					view.Problems = append(view.Problems, text)
				}
				continue
			}
			key := one.Node + "\x00" + one.Target + "\x00" + one.Daemon
			s := sums[key]
			if s == nil {
				s = &sum{Summary: telemetry.Summary{Node: one.Node, Target: one.Target, Daemon: one.Daemon}}
				sums[key] = s
			}
			s.Count = max(s.Count, one.Count)
			w := max(one.Seconds, 1e-9)
			s.weight += w
			s.Utilization += w * one.Utilization
			s.ReadIOPS += w * one.ReadIOPS
			s.WriteIOPS += w * one.WriteIOPS
			s.ReadBytesPerSecond += w * one.ReadBytesPerSecond
			s.WriteBytesPerSecond += w * one.WriteBytesPerSecond
			s.Queue += w * one.Queue
			s.CPUs += w * one.CPUs
			s.MaxUtilization = max(s.MaxUtilization, one.MaxUtilization)
			s.MaxCPUs = max(s.MaxCPUs, one.MaxCPUs)
		}
	}
	var disks, daemons []telemetry.Summary
	total := 0.0
	for _, key := range slices.Sorted(maps.Keys(sums)) {
		s := sums[key]
		for _, v := range []*float64{
			&s.Utilization, &s.ReadIOPS, &s.WriteIOPS, &s.ReadBytesPerSecond, &s.WriteBytesPerSecond, &s.Queue, &s.CPUs,
		} {
			*v /= s.weight
		}
		n := max(s.Count, 1)
		if s.Target != "" {
			view.DiskCount += n
			total += s.Utilization * float64(n)
		} else {
			view.DaemonCount += n
		}
		switch {
		case s.Count > 0: // summaries of several, without names
		case s.Target != "":
			disks = append(disks, s.Summary)
		default:
			daemons = append(daemons, s.Summary)
		}
	}
	slices.SortStableFunc(disks, func(a, b telemetry.Summary) int { return cmp.Compare(b.Utilization, a.Utilization) })
	slices.SortStableFunc(daemons, func(a, b telemetry.Summary) int { return cmp.Compare(b.CPUs, a.CPUs) })
	if view.DiskCount > 0 {
		view.MeanUtilization = percent(total / float64(view.DiskCount))
	}
	for _, d := range disks[:min(len(disks), mostShown)] {
		view.Disks = append(view.Disks, fmt.Sprintf("%s on %s: %s busy (at most %s), %s reads/s, %s writes/s, %s MB/s, queue %s",
			d.Target, d.Node, percent(d.Utilization), percent(d.MaxUtilization), number(roundTo(d.ReadIOPS, 0)), number(roundTo(d.WriteIOPS, 0)),
			number(roundTo((d.ReadBytesPerSecond+d.WriteBytesPerSecond)/1e6, 1)), number(roundTo(d.Queue, 1))))
	}
	for _, d := range daemons[:min(len(daemons), mostShown)] {
		view.Daemons = append(view.Daemons, fmt.Sprintf("%s on %s: %s CPUs (at most %s)",
			daemonName(d.Daemon), d.Node, number(roundTo(d.CPUs, 2)), number(roundTo(d.MaxCPUs, 2))))
	}
	return view, len(sums) > 0 || len(view.Problems) > 0
}

// daemonName returns the daemon without its filesystem, which is the run's.
func daemonName(daemon string) string {
	if parts := strings.SplitN(daemon, "/", 3); len(parts) == 3 {
		return parts[2]
	}
	return daemon
}
