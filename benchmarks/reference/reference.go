// Package reference holds the published figures of the experiments, to show beside a run's own. They are never what a run
// is expected to reach.
package reference

import (
	"embed"
	"encoding/csv"
	"fmt"
	"slices"
	"strconv"

	"parallelfs.dev/operator/api/v1alpha1"
	"parallelfs.dev/operator/benchmarks"
)

// The tables, by the names of their files without ".csv". They are tables 1 and 2 of "MooseFS performance
// scores high on InfiniBand Network" (Core Technology with ICM, University of Warsaw, 2017).
const (
	MooseFSSingle      = "moosefs-ipoib-2017-table1-single-client"
	MooseFSDistributed = "moosefs-ipoib-2017-table2-distributed"
)

//go:embed *.csv
var files embed.FS

// Row is one published point.
type Row struct {
	// Parameters are those that the table names, as a sweep writes them.
	Parameters map[v1alpha1.SweepName]string
	// Figures are named as iozone's metrics are. Those of throughput are in MB/s, rounded to a whole number; the paper's IOPS
	// follow from them when a MB is 1024 kB.
	Figures []benchmarks.Sample
}

// header is that of every table.
var header = []string{
	"block_size", "threads", "read_MBps", "read_iops", "write_MBps", "write_iops",
	"random_read_MBps", "random_read_iops", "random_write_MBps", "random_write_iops",
}

// Load returns the rows of a table in their published order.
func Load(table string) ([]Row, error) {
	file, err := files.Open(table + ".csv")
	if err != nil {
		return nil, fmt.Errorf("there is no table %q: %w", table, err)
	}
	defer file.Close()
	records, err := csv.NewReader(file).ReadAll()
	if err != nil {
		return nil, fmt.Errorf("read the table %s: %w", table, err)
	}
	if len(records) < 2 || !slices.Equal(records[0], header) {
		return nil, fmt.Errorf("the table %s has no rows below the header %v", table, header)
	}
	var out []Row
	for i, record := range records[1:] {
		row := Row{Parameters: map[v1alpha1.SweepName]string{"iozone.recordSize": record[0], "processes": record[1]}}
		for column, name := range []string{"read", "write", "randomRead", "randomWrite"} {
			for offset, unit := range []string{"MB/s", "IOPS"} {
				text := record[2+2*column+offset]
				value, err := strconv.ParseFloat(text, 64)
				if err != nil {
					return nil, fmt.Errorf("the table %s, row %d: %q is no number", table, i+1, text)
				}
				row.Figures = append(row.Figures, benchmarks.Sample{Name: name, Unit: unit, Value: value})
			}
		}
		out = append(out, row)
	}
	return out, nil
}
