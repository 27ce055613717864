// Package reference holds the published figures of the experiments, to be shown beside a run's own. They are never used as expectations for
// a run.
package reference

import (
	"embed"
	"encoding/csv"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strconv"
	"strings"

	"parallelfs.dev/operator/api/v1alpha1"
	"parallelfs.dev/operator/benchmarks"
	"parallelfs.dev/operator/benchmarks/results"
)

// Each table is a file: comments with the source of its figures, a header, and one row for each point and metric. The columns before
// "metric" are parameters with the names of a sweep; "variant" is the variant of a BenchmarkSuite, or spec.baseline.variant. A parameter
// with the value "best" had the value of the best result. Metrics have the names and units that the tool prints. "samples" is empty if the
// source does not contain their number.
//
//go:embed *.csv
var files embed.FS

// figures lists the columns after the parameters. The deviation is that of a sample (n-1). If the source has that of the whole set (n),
// another column replaces it.
var figures = []string{"metric", "unit", "value", "min", "max", deviationOfSample, "samples"}

const (
	deviationOfSample = "stdDev"
	deviationOfAll    = "stdDevOfAll"
	// variant is the column with the variants.
	variant v1alpha1.SweepName = "variant"
)

// Names lists the tables, sorted.
func Names() []string {
	paths, err := fs.Glob(files, "*.csv")
	if err != nil {
		panic(err) // the pattern is constant
	}
	for i, path := range paths {
		paths[i] = strings.TrimSuffix(path, ".csv")
	}
	return paths
}

// Source returns the source of a table's figures, or empty for an unknown table.
func Source(name string) string {
	text, err := files.ReadFile(name + ".csv")
	if err != nil {
		return ""
	}
	var out []string
	for line := range strings.Lines(string(text)) {
		if comment, is := strings.CutPrefix(line, "# "); is {
			out = append(out, strings.TrimSpace(comment))
		}
	}
	return strings.Join(out, " ")
}

// Baseline returns a table as a run to compare with: the whole table, or the rows of one variant without that column. For a table without
// variants, the variant is ignored.
func Baseline(name, of string) (results.Run, error) {
	points, err := Published(name)
	out := results.Run{Format: results.Format, Name: name}
	if err != nil {
		return out, err
	}
	var variants []string
	for _, p := range points {
		if value := p.Value(variant); value != "" && !slices.Contains(variants, value) {
			variants = append(variants, value)
		}
		if value := p.Value(variant); value == "" || value == of {
			p.Parameters = slices.DeleteFunc(p.Parameters, func(v results.Value) bool { return v.Name == variant })
			out.Points = append(out.Points, p)
		}
	}
	switch {
	case len(out.Points) > 0:
		return out, nil
	case of == "":
		return out, fmt.Errorf("the table %s has the variants %s; name one of them", name, strings.Join(variants, ", "))
	}
	return out, fmt.Errorf("the table %s has nothing of %s; it has the variants %s", name, of, strings.Join(variants, ", "))
}

// Published returns the points of a table, in their published order. The number of samples is 0 if it was not published.
func Published(name string) ([]results.Point, error) {
	file, err := files.Open(name + ".csv")
	if err != nil {
		return nil, fmt.Errorf("there is no published table %q; there are %s", name, strings.Join(Names(), ", "))
	}
	reader := csv.NewReader(file)
	reader.Comment = '#'
	rows, err := reader.ReadAll()
	if err = errors.Join(err, file.Close()); err != nil {
		return nil, fmt.Errorf("read the table %s: %w", name, err)
	}
	header := slices.Clone(rows[0])
	ofAll := slices.Index(header, deviationOfAll)
	if ofAll >= 0 {
		header[ofAll] = deviationOfSample
	}
	if len(rows) < 2 || len(header) < len(figures) || !slices.Equal(header[len(header)-len(figures):], figures) {
		return nil, fmt.Errorf("the table %s has no rows below a header that ends in %v", name, figures)
	}
	parameters := header[:len(header)-len(figures)]
	var points []results.Point
	at := map[string]int{}
	for i, row := range rows[1:] {
		key := strings.Join(row[:len(parameters)], "\x00")
		if _, known := at[key]; !known {
			at[key] = len(points)
			point := results.Point{Index: len(points), State: v1alpha1.PointSucceeded}
			for column, parameter := range parameters {
				point.Parameters = append(point.Parameters, results.Value{Name: v1alpha1.SweepName(parameter), Value: row[column]})
			}
			points = append(points, point)
		}
		metric, err := figure(row[len(parameters):], ofAll >= 0)
		if err != nil {
			return nil, fmt.Errorf("the table %s, row %d: %w", name, i+1, err)
		}
		points[at[key]].Metrics = append(points[at[key]].Metrics, metric)
	}
	return points, nil
}

// figure parses the columns of figures.
func figure(row []string, ofAll bool) (results.Metric, error) {
	m := results.Metric{Name: row[0], Unit: row[1]}
	number := func(text string, otherwise float64) (float64, error) {
		if text == "" {
			return otherwise, nil
		}
		value, err := strconv.ParseFloat(text, 64)
		if err != nil {
			return 0, fmt.Errorf("%q is no number", text)
		}
		return value, nil
	}
	var errs [5]error
	if row[2] == "" {
		return m, errors.New("there is no value")
	}
	m.Value, errs[0] = number(row[2], 0)
	m.Mean = m.Value
	m.Min, errs[1] = number(row[3], m.Value)
	m.Max, errs[2] = number(row[4], m.Value)
	if row[6] != "" {
		m.Samples, errs[3] = strconv.Atoi(row[6])
	}
	if row[5] != "" {
		var deviation float64
		deviation, errs[4] = number(row[5], 0)
		if ofAll {
			if m.Samples < 2 {
				return m, errors.New("a deviation of all samples needs their number, from 2")
			}
			deviation = benchmarks.SampleDeviation(deviation, m.Samples)
		}
		m.StdDev = &deviation
	}
	return m, errors.Join(errs[:]...)
}
