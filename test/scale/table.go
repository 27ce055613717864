//go:build scale

package main

import (
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"math"
	"os"
	"slices"
	"strings"
	"text/tabwriter"
)

// column is one measured quantity.
type column struct {
	// name in the document, head in the table.
	name, head string
}

// The columns.
var (
	readySeconds     = column{"readySeconds", "seconds"}
	writesPerTarget  = column{"writesPerTarget", "writes/target"}
	eventsPerTarget  = column{"eventsPerTarget", "events/target"}
	writesPerNode    = column{"writesPerNode", "writes/node"}
	managerSeconds   = column{"managerCPUSeconds", "manager CPU s"}
	apiServerSeconds = column{"apiServerCPUSeconds", "API server CPU s"}
	etcdSeconds      = column{"etcdCPUSeconds", "etcd CPU s"}
	readyP99         = column{"passP99Milliseconds", "pass p99 ms"}
	quietPerTarget   = column{"writesPerTargetUntilQuiet", "until quiet: writes/target"}
	quietPerNode     = column{"writesPerNodeUntilQuiet", "until quiet: writes/node"}
	stoppedSeconds   = column{"stoppedAfterSeconds", ""}

	idleWrites       = column{"idleWritesPerSecond", "writes/s"}
	idleManager      = column{"idleManagerPercent", "manager % of a core"}
	idleControlPlane = column{"idleControlPlanePercent", "API server + etcd %"}
	idleResident     = column{"idleManagerMiB", "manager RSS MiB"}
	idleP50          = column{"idlePassP50Milliseconds", "pass p50 ms"}
	idleP99          = column{"idlePassP99Milliseconds", "pass p99 ms"}
	idleAnswer       = column{"idleAnswerP99Milliseconds", "and waits p99 ms"}

	runsSeconds   = column{"runsSeconds", "seconds"}
	runsEnded     = column{"runsEnded", "ended"}
	runsWrites    = column{"writesPerRun", "writes/run"}
	runsManager   = column{"runsManagerCPUSeconds", "manager CPU s"}
	runsAPIServer = column{"runsAPIServerCPUSeconds", "API server CPU s"}
	runsP50       = column{"runPassP50Milliseconds", "pass p50 ms"}
	runsP99       = column{"runPassP99Milliseconds", "pass p99 ms"}
	runsLargest   = column{"largestRunKiB", "largest BenchmarkRun KiB"}

	restarted      = column{"restartedServers", "servers"}
	restartServers = column{"restartServersAway", "servers away at a time"}
	restartDomains = column{"restartDomainsAway", "failure domains away at a time"}
	restartWrites  = column{"writesPerRestart", "writes/server"}

	usedWrites  = column{"usedWritesPerSecond", "space: writes/s"}
	lossWrites  = column{"lostDiskWrites", "lost disk: writes"}
	lossEvents  = column{"lostDiskEvents", "lost disk: events"}
	lossSeconds = column{"lostDiskSeconds", "lost disk: seconds"}
)

// Result is what was measured of one size.
type Result struct {
	Nodes   int `json:"nodes"`
	Targets int `json:"targets"`
	// Runs is how many BenchmarkRuns were made.
	Runs int `json:"runs"`
	// Measured are the columns by their names.
	Measured map[string]float64 `json:"measured"`
	// Largest are the largest objects by kind, in KiB.
	Largest map[string]float64 `json:"largestKiB"`
	// UntilReady, Loss, OfRuns and Requests count the operator's accepted writes by user, verb and resource: until Ready, of the loss of a
	// disk, of the BenchmarkRuns, and in all.
	UntilReady map[string]int `json:"writesUntilReady,omitempty"`
	Loss       map[string]int `json:"writesOfLostDisk,omitempty"`
	OfRuns     map[string]int `json:"writesOfRuns,omitempty"`
	Requests   map[string]int `json:"writes,omitempty"`
	// Stopped says why not all was measured; empty when it was.
	Stopped string `json:"stopped,omitempty"`
}

func newResult(nodes int) *Result {
	return &Result{Nodes: nodes, Measured: map[string]float64{}, Largest: map[string]float64{}}
}

// set notes a quantity. JSON has no number for one that there is not.
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
}

// newDocument adds the exponents.
func newDocument(results []*Result) Document {
	results = slices.SortedFunc(slices.Values(results), func(a, b *Result) int { return a.Nodes - b.Nodes })
	d := Document{Results: results, Exponents: map[string]float64{}}
	note := func(name string, of func(*Result) float64) {
		if e := exponentOf(results, of); !math.IsNaN(e) {
			d.Exponents[name] = math.Round(e*100) / 100
		}
	}
	for _, t := range tables {
		for _, c := range t.columns {
			note(c.name, func(r *Result) float64 { return r.value(c) })
		}
	}
	for _, kind := range kindsOf(results) {
		note("largestKiB."+kind, func(r *Result) float64 { return sizeOf(r, kind) })
	}
	return d
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

// kindsOf are the kinds of objects that were found.
func kindsOf(results []*Result) []string {
	all := map[string]bool{}
	for _, r := range results {
		for kind := range r.Largest {
			all[kind] = true
		}
	}
	return slices.Sorted(maps.Keys(all))
}

func sizeOf(r *Result, kind string) float64 {
	if size, there := r.Largest[kind]; there {
		return size
	}
	return math.NaN()
}

// tables are what is printed, one below the other.
var tables = []struct {
	title   string
	columns []column
}{
	{"From apply to Ready", []column{
		readySeconds, writesPerTarget, eventsPerTarget, writesPerNode, managerSeconds, readyP99, apiServerSeconds, etcdSeconds,
		quietPerTarget, quietPerNode,
	}},
	{"An idle minute", []column{idleWrites, idleManager, idleResident, idleP50, idleP99, idleAnswer, idleControlPlane}},
	{"Storage servers are restarted for a minute", []column{restarted, restartServers, restartDomains, restartWrites}},
	{"Benchmarks, ten at a time", []column{runsSeconds, runsEnded, runsWrites, runsManager, runsP50, runsP99, runsAPIServer, runsLargest}},
	{"Programs write; a disk dies", []column{usedWrites, lossWrites, lossEvents, lossSeconds}},
}

// print prints the tables, each with the exponents of growth below it.
func (d Document) print(out io.Writer) error {
	var b strings.Builder
	for _, t := range tables {
		heads := make([]string, len(t.columns))
		for i, c := range t.columns {
			heads[i] = c.head
		}
		d.table(&b, t.title, heads, func(r *Result, column int) float64 { return r.value(t.columns[column]) })
	}
	kinds := kindsOf(d.Results)
	d.table(&b, "Largest object in KiB", kinds, func(r *Result, column int) float64 { return sizeOf(r, kinds[column]) })
	for _, r := range d.Results {
		if r.Stopped != "" {
			after := ""
			if seconds := r.value(stoppedSeconds); !math.IsNaN(seconds) {
				after = fmt.Sprintf(" (after %.0f s, %.0f s of the manager's CPU)", seconds, r.value(managerSeconds))
			}
			fmt.Fprintf(&b, "%d nodes, %d targets: %s%s\n", r.Nodes, r.Targets, r.Stopped, after)
		}
	}
	_, err := io.WriteString(out, b.String())
	return err
}

func (d Document) table(b *strings.Builder, title string, heads []string, value func(r *Result, column int) float64) {
	fmt.Fprintf(b, "%s\n", title)
	w := tabwriter.NewWriter(b, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintf(w, "N\ttargets\t%s\t\n", strings.Join(heads, "\t"))
	for _, r := range d.Results {
		fmt.Fprintf(w, "%d\t%d", r.Nodes, r.Targets)
		for i := range heads {
			fmt.Fprintf(w, "\t%s", figure(value(r, i)))
		}
		fmt.Fprint(w, "\t\n")
	}
	fmt.Fprint(w, "grows with N^\t")
	for i := range heads {
		fmt.Fprintf(w, "\t%s", figure(exponentOf(d.Results, func(r *Result) float64 { return value(r, i) })))
	}
	fmt.Fprint(w, "\t\n")
	_ = w.Flush() // into memory
	b.WriteByte('\n')
}
