package results

import (
	"bytes"
	"encoding/csv"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"parallelfs.dev/operator/api/v1alpha1"
)

// CSV returns one row for each metric of each point, with its parameters, statistics and baseline, and one row for each point without
// metrics. Its header contains the column names. Numbers are decimals without exponents, and missing ones are empty.
func CSV(run Run) ([]byte, error) { return table([]origin{{run: run}}, metricColumns, metricRows) }

// SamplesCSV returns one row for each sample of each attempt, and one row for each attempt without samples.
func SamplesCSV(run Run) ([]byte, error) {
	return table([]origin{{run: run}}, sampleColumns, sampleRows)
}

// SuiteCSV returns the CSV of all runs of a suite, with columns for the variant, its scale and the run in front.
func SuiteCSV(suite Suite) ([]byte, error) {
	return table(origins(suite), metricColumns, metricRows, suiteColumns...)
}

// SuiteSamplesCSV returns the SamplesCSV of all runs of a suite, with columns for the variant, its scale and the run in front.
func SuiteSamplesCSV(suite Suite) ([]byte, error) {
	return table(origins(suite), sampleColumns, sampleRows, suiteColumns...)
}

// origin is a run with the values of the columns in front.
type origin struct {
	before []string
	run    Run
}

// Columns after those of the parameters.
var (
	suiteColumns  = []string{"variant", "scale", "run"}
	metricColumns = []string{
		"state", "metric", "unit", "value", "mean", "median", "min", "max", "stdDev", "confidence95", "samples", "outliers",
		"speedup", "efficiency",
		"baseline", "baselineOf", "baselineChange", "verdict", "message",
	}
	sampleColumns = []string{
		"repetition", "warmUp", "attempt", "step", "started", "ended", "exitCode", "metric", "unit", "value", "iterations",
		"min", "max", "stdDev",
		"error", "invalid",
	}
)

// origins returns the runs of a suite.
func origins(suite Suite) []origin {
	var out []origin
	for _, v := range suite.Variants {
		scale := ""
		if v.Scale > 0 {
			scale = fmt.Sprint(v.Scale)
		}
		for _, r := range v.Runs {
			out = append(out, origin{before: []string{v.Name, scale, r.Name}, run: r.Run})
		}
	}
	return out
}

// table writes the rows of all runs below one header: the columns in before, the point, all parameters of any run, and the columns in
// columns.
func table(runs []origin, columns []string, rows func(Point) [][]string, before ...string) ([]byte, error) {
	var parameters []v1alpha1.SweepName
	for _, r := range runs {
		for _, name := range Names(r.run.Points) {
			if !slices.Contains(parameters, name) {
				parameters = append(parameters, name)
			}
		}
	}
	header := append(slices.Clone(before), "point")
	for _, name := range parameters {
		header = append(header, string(name))
	}
	out := &bytes.Buffer{}
	writer := csv.NewWriter(out)
	err := writer.Write(cells(append(header, columns...)))
	for _, r := range runs {
		for _, p := range r.run.Points {
			start := append(slices.Clone(r.before), strconv.Itoa(p.Index))
			for _, name := range parameters {
				start = append(start, p.Value(name))
			}
			for _, row := range rows(p) {
				if err == nil {
					err = writer.Write(cells(append(slices.Clone(start), row...)))
				}
			}
		}
	}
	writer.Flush()
	if err == nil {
		err = writer.Error()
	}
	if err != nil {
		return nil, fmt.Errorf("write the results as CSV: %w", err)
	}
	return out.Bytes(), nil
}

// cells makes a row safe for a spreadsheet, which calculates what begins like a formula: names, units and messages come from the output of
// programs. Such a text gets an apostrophe in front, which a spreadsheet does not show (OWASP, "CSV Injection"). Numbers stay as they are.
func cells(row []string) []string {
	for i, cell := range row {
		if text := strings.TrimLeft(cell, " "); text != "" && strings.ContainsRune("=+-@\t\r\n", rune(text[0])) {
			if _, err := strconv.ParseFloat(cell, 64); err != nil {
				row[i] = "'" + cell
			}
		}
	}
	return row
}

// metricRows returns the rows of a point in CSV.
func metricRows(p Point) [][]string {
	if len(p.Metrics) == 0 {
		row := make([]string, len(metricColumns))
		row[0], row[len(row)-1] = string(p.State), p.Message
		return [][]string{row}
	}
	var out [][]string
	for _, m := range p.Metrics {
		outliers := make([]string, 0, len(m.Outliers))
		for _, o := range m.Outliers {
			outliers = append(outliers, fmt.Sprint(o))
		}
		row := []string{
			string(p.State), m.Name, m.Unit, decimal(m.Value), decimal(m.Mean), optional(m.Median), decimal(m.Min), decimal(m.Max),
			optional(m.StdDev), optional(m.Confidence), strconv.Itoa(m.Samples), strings.Join(outliers, " "),
			optional(m.Speedup), optional(m.Efficiency),
		}
		if b := m.Baseline; b != nil {
			row = append(row, decimal(b.Value), b.Of, decimal(b.Change), string(b.Verdict))
		} else {
			row = append(row, "", "", "", "")
		}
		out = append(out, append(row, p.Message))
	}
	return out
}

// sampleRows returns the rows of a point in SamplesCSV.
func sampleRows(p Point) [][]string {
	var out [][]string
	for _, a := range p.Attempts {
		exit := ""
		if a.ExitCode != nil {
			exit = fmt.Sprint(*a.ExitCode)
		}
		start := []string{strconv.Itoa(a.Repetition), strconv.FormatBool(a.WarmUp), strconv.Itoa(a.Attempt), a.Step,
			moment(a.Started), moment(a.Ended), exit}
		end := []string{a.Error, a.Invalid}
		if len(a.Samples) == 0 {
			out = append(out, slices.Concat(start, make([]string, len(sampleColumns)-len(start)-len(end)), end))
		}
		for _, s := range a.Samples {
			middle := []string{s.Name, s.Unit, decimal(s.Value), "", "", "", ""}
			if w := s.Within; w != nil {
				middle = []string{s.Name, s.Unit, decimal(s.Value), strconv.Itoa(w.Count), decimal(w.Min), decimal(w.Max), decimal(w.StdDev)}
			}
			out = append(out, slices.Concat(start, middle, end))
		}
	}
	return out
}

// decimal formats a number in the shortest exact form, without an exponent.
func decimal(value float64) string { return strconv.FormatFloat(value, 'f', -1, 64) }

func optional(value *float64) string {
	if value == nil {
		return ""
	}
	return decimal(*value)
}

// moment formats a time in UTC; the zero time is empty.
func moment(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return t.UTC().Format(time.RFC3339)
}
