package ior

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"parallelfs.dev/operator/benchmarks"
	"parallelfs.dev/operator/benchmarks/openmpi"
)

// document is the output of IOR with -O summaryFormat=JSON. 3.x and 4.x differ in the content of tests, which is not needed.
type document struct {
	Version  string
	Finished string
	Summary  []struct {
		Operation     string  `json:"operation"`
		API           string  `json:"API"`
		Tasks         int64   `json:"numTasks"`
		Repetitions   int64   `json:"repetitions"`
		Segments      int64   `json:"segmentCount"`
		Block         int64   `json:"blockSize"`
		Transfer      int64   `json:"transferSize"`
		FilePerProc   int64   `json:"filePerProc"`
		BandwidthMax  float64 `json:"bwMaxMIB"`
		BandwidthMin  float64 `json:"bwMinMIB"`
		BandwidthMean float64 `json:"bwMeanMIB"`
		BandwidthStd  float64 `json:"bwStdMIB"`
		OPsMax        float64
		OPsMin        float64
		OPsMean       float64
		OPsSD         float64
	} `json:"summary"`
}

// maxJSON and maxValues bound the JSON of a report: a summary of each operation, and up to twelve numbers for each iteration.
const maxJSON, maxValues = 4 << 20, 1 << 16

// readJSON parses a JSON report.
func readJSON(lines []openmpi.Line) (result, error) {
	size := 0
	for _, line := range lines {
		size += len(line.Text) + 1
	}
	if size > maxJSON {
		return result{}, fmt.Errorf("line %d: the JSON has more than %d MiB, which no report of IOR has", lines[0].Number, maxJSON>>20)
	}
	var text strings.Builder
	text.Grow(size)
	starts := make([]int64, 0, len(lines))
	for _, line := range lines {
		starts = append(starts, int64(text.Len()))
		text.WriteString(line.Text + "\n")
	}
	// at returns the line at an offset in the text.
	at := func(offset int64) openmpi.Line {
		out := lines[0]
		for i, start := range starts {
			if start < offset {
				out = lines[i]
			}
		}
		return out
	}
	if _, err := benchmarks.BoundJSON([]byte(text.String()), maxValues); err != nil {
		return result{}, fmt.Errorf("line %d: %w", lines[0].Number, err)
	}
	decoder := json.NewDecoder(strings.NewReader(text.String()))
	var d document
	if err := decoder.Decode(&d); err != nil {
		last := lines[len(lines)-1]
		if errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, io.EOF) {
			return result{}, fmt.Errorf("the output is cut off after line %d (%q), before the end of its JSON", last.Number, benchmarks.Short(last.Text))
		}
		if syntax, is := errors.AsType[*json.SyntaxError](err); is {
			line := at(syntax.Offset)
			return result{}, fmt.Errorf("line %d: found %q instead of JSON: %w", line.Number, benchmarks.Short(line.Text), err)
		}
		line := at(decoder.InputOffset())
		return result{}, fmt.Errorf("line %d: the JSON is not of IOR: %w", line.Number, benchmarks.ShortError(err))
	}
	end := decoder.InputOffset()
	if err := decoder.Decode(new(json.RawMessage)); !errors.Is(err, io.EOF) {
		behind := slices.IndexFunc(starts, func(start int64) bool { return start >= end })
		line := lines[max(behind, 0)]
		return result{}, fmt.Errorf("line %d: found %q behind the end of the JSON", line.Number, benchmarks.Short(line.Text))
	}
	if d.Version == "" || d.Finished == "" || len(d.Summary) == 0 {
		return result{}, fmt.Errorf("line %d: the JSON is not that of a whole run of IOR: Version, summary and Finished must be there", lines[0].Number)
	}
	out := result{version: d.Version}
	for _, s := range d.Summary {
		out.rows = append(out.rows, row{
			line: lines[0].Number, operation: s.Operation, api: s.API, tasks: s.Tasks, repetitions: s.Repetitions, segments: s.Segments,
			block: s.Block, transfer: s.Transfer, filePerProcess: s.FilePerProc == 1,
			bandwidth:  &[4]float64{s.BandwidthMax, s.BandwidthMin, s.BandwidthMean, s.BandwidthStd},
			operations: &[4]float64{s.OPsMax, s.OPsMin, s.OPsMean, s.OPsSD},
		})
	}
	return out, nil
}
