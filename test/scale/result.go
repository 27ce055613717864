//go:build scale

package main

import (
	"encoding/json"
	"fmt"
	"math"
	"os"
	"slices"
)

// Result has the measurements of one size.
type Result struct {
	Nodes   int `json:"nodes"`
	Targets int `json:"targets"`
	// Runs is how many BenchmarkRuns were made.
	Runs int `json:"runs"`
	// Measured are the columns by their names.
	Measured map[string]float64 `json:"measured"`
	// Largest has the largest objects by kind while the filesystem is healthy, in KiB, and AtWorst those at any time.
	Largest map[string]float64 `json:"largestKiB"`
	AtWorst map[string]float64 `json:"largestAtWorstKiB"`
	// UntilReady, Loss, OfRuns, Anew and Requests count the operator's accepted writes by user, verb and resource: until Ready, for the loss
	// of a disk, for the BenchmarkRuns, for a restarted manager, and in total.
	UntilReady map[string]int `json:"writesUntilReady,omitempty"`
	Loss       map[string]int `json:"writesOfLostDisk,omitempty"`
	OfRuns     map[string]int `json:"writesOfRuns,omitempty"`
	Anew       map[string]int `json:"writesOfManagerAnew,omitempty"`
	Requests   map[string]int `json:"writes,omitempty"`
	// Stopped is why the measurement is incomplete; empty when it is complete.
	Stopped string `json:"stopped,omitempty"`
}

func newResult(nodes int) *Result {
	return &Result{
		Nodes: nodes, Targets: nodes*disksPerNode + 1,
		Measured: map[string]float64{}, Largest: map[string]float64{}, AtWorst: map[string]float64{},
	}
}

// set notes a quantity. JSON has no number for a missing quantity.
func (r *Result) set(c column, value float64) {
	if !math.IsNaN(value) && !math.IsInf(value, 0) {
		r.Measured[c.name] = math.Round(value*1000) / 1000
	}
}

func (r *Result) value(c column) float64 {
	if v, measured := r.Measured[c.name]; measured {
		return v
	}
	return math.NaN()
}

// Document is the JSON document of a run.
type Document struct {
	Results []*Result `json:"results"`
	// Exponents are the powers of the number of nodes with which the columns grow.
	Exponents map[string]float64 `json:"exponents"`
	// Missed are the goals that were missed, a sentence each.
	Missed []string `json:"missed"`
}

// newDocument adds the exponents, and judges.
func newDocument(results []*Result) Document {
	results = slices.SortedFunc(slices.Values(results), func(a, b *Result) int { return a.Nodes - b.Nodes })
	d := Document{Results: results, Exponents: map[string]float64{}}
	for _, s := range sheets(results) {
		for _, c := range s.columns {
			if e, _ := growth(results, c); !math.IsNaN(e) {
				d.Exponents[c.name] = math.Round(e*100) / 100
			}
		}
	}
	d.Missed = missed(results, sheets(results))
	return d
}

// judge returns an error when a goal was missed.
func (d Document) judge() error {
	if len(d.Missed) == 0 {
		return nil
	}
	return fmt.Errorf("goals that were missed: %d; they stand below the tables", len(d.Missed))
}

// write writes the document.
func (d Document) write(path string) error {
	content, err := json.MarshalIndent(d, "", " ")
	if err != nil {
		return fmt.Errorf("encode the results: %w", err)
	}
	if err := os.WriteFile(path, append(content, '\n'), privateFile); err != nil {
		return fmt.Errorf("write the results: %w", err)
	}
	return nil
}

func exponentOf(results []*Result, of func(*Result) float64) float64 {
	var sizes, values []float64
	for _, r := range results {
		sizes, values = append(sizes, float64(r.Nodes)), append(values, of(r))
	}
	return exponent(sizes, values)
}
