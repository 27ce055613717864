package ior

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"parallelfs.dev/operator/api/v1alpha1"
	"parallelfs.dev/operator/benchmarks"
	"parallelfs.dev/operator/benchmarks/openmpi"
)

const (
	// bandwidth is the unit of IOR's MiB/sec, and operations that of its OPs: transfers in a second.
	bandwidth  = "MiB/s"
	operations = "OPs"
)

var (
	bannerLine = regexp.MustCompile(`^IOR-(\S+): MPI Coordinated Test of Parallel I/O$`)
	// headLine are the lines before the results that IOR prints when all goes well. Any other one is refused.
	headLine = regexp.MustCompile(`^((Began|Command line|Command line used|Machine|TestID|StartTime|Path|FS|Test \d+ started` +
		`|api|apiVersion|test filename|access|type|segments|ordering in a file|ordering inter file|task offset|reorder random seed` +
		`|nodes|tasks|clients|clients per node|memoryPerTask|memoryPerNode|repetitions|xfersize|blocksize|aggregate filesize` +
		`|stonewallingTime|stoneWallingWearOut|Lustre stripe size|Lustre stripe count) *[:=].*` +
		`|Options: *|Summary: *|Results: *)$`)
	timeLine   = regexp.MustCompile(`^stonewallingTime *[:=] *[1-9]`)
	tableLine  = regexp.MustCompile(`^access +bw\(MiB/s\) `)
	rulerLine  = regexp.MustCompile(`^-{6}( +-+)+$`)
	resultLine = regexp.MustCompile(`^(write|read|remove) .* (\d+)$`)
	// shortLine is said of a transfer that was ended when its time was up.
	shortLine = regexp.MustCompile(`(?i)^WARNING: (Expected aggregate file size|Stat\(\) of aggregate file size` +
		`|Using actual aggregate bytes moved|maybe caused by deadlineForStonewalling)`)
	mostLine = regexp.MustCompile(`^Max (Write|Read): +[\d.]+ MiB/sec \([\d.]+ MB/sec\)$`)
	endLine  = regexp.MustCompile(`^Finished *: \w{3} \w{3} +\d+ \d\d:\d\d:\d\d \d{4}$`)
	decimal  = regexp.MustCompile(`^\d{1,15}\.\d{2,6}$`)
)

const summaryLine = "Summary of all tests:"

// Parse reads the report of IOR 3.x and 4.x, text or JSON: for write and read the mean over IOR's iterations, in MiB/s and in OPs.
// A report of another run than the point asked for is refused.
func (Tool) Parse(spec *v1alpha1.BenchmarkRunSpec, point benchmarks.Point, step int, output []byte) (benchmarks.Report, error) {
	var w *want
	if len(point.Parameters) > 0 {
		s, err := check(spec, point)
		if err != nil {
			return benchmarks.Report{}, err
		}
		all := steps(spec)
		if step < 0 || step >= len(all) {
			return benchmarks.Report{}, fmt.Errorf("there is no step %d; the point has %d", step, len(all))
		}
		w = &want{settings: s, options: options(spec), operations: all[step]}
	}
	read, err := openmpi.Read(output)
	if err != nil {
		return benchmarks.Report{}, err
	}
	var out result
	if lines := read.Lines; len(lines) > 0 && lines[0].Text == "{" {
		out, err = readJSON(lines)
	} else {
		p := parser{openmpi.Reader{Lines: lines}}
		out, err = p.report()
	}
	if err != nil {
		return benchmarks.Report{}, read.Explain(err)
	}
	samples, err := out.samples(w)
	if err != nil {
		return benchmarks.Report{}, err
	}
	return benchmarks.Report{Version: out.version, Samples: samples}, nil
}

// want is what a point asked for.
type want struct {
	settings
	options    v1alpha1.IORSpec
	operations []v1alpha1.IOROperation
}

// result is a report: its summary, one row for each operation.
type result struct {
	version string
	rows    []row
}

// row is what the summary says of one operation.
type row struct {
	// line of the output, 0 when it has none of its own.
	line      int
	operation string
	// most, least, mean and deviation in MiB/s, and in OPs; the latter are missing before 3.2.
	bandwidth, operations *[4]float64
	// What was run.
	api                                           string
	tasks, repetitions, segments, block, transfer int64
	filePerProcess                                bool
}

// samples checks the rows and makes samples of them.
func (r result) samples(w *want) ([]benchmarks.Sample, error) {
	var out []benchmarks.Sample
	var found []string
	for _, row := range r.rows {
		fail := func(format string, args ...any) error {
			return fmt.Errorf("line %d: %s: %s", row.line, row.operation, fmt.Sprintf(format, args...))
		}
		if row.operation != "write" && row.operation != "read" || slices.Contains(found, row.operation) {
			return nil, fail("the summary holds an operation that IOR does not print there, or twice")
		}
		found = append(found, row.operation)
		if err := row.check(w); err != nil {
			return nil, fail("%v", err)
		}
		for _, numbers := range []struct {
			unit   string
			values *[4]float64
		}{{bandwidth, row.bandwidth}, {operations, row.operations}} {
			if numbers.values == nil {
				continue
			}
			most, least, mean, deviation := numbers.values[0], numbers.values[1], numbers.values[2], numbers.values[3]
			// All are rounded to two digits.
			const near = 0.011
			if least > mean+near || mean > most+near || deviation > most-least+near {
				return nil, fail("the numbers in %s contradict each other: Max %v, Min %v, Mean %v, StdDev %v", numbers.unit, most, least, mean, deviation)
			}
			if least <= 0 {
				return nil, fail("the lowest of the numbers in %s is 0: nothing was transferred, or too little to measure", numbers.unit)
			}
			sample := benchmarks.Sample{Name: row.operation, Unit: numbers.unit, Value: mean}
			if count := int(row.repetitions); count > 1 {
				// All versions divide by the number of iterations (ior.c of 3.0, ior-output.c of 3.3 and 4.0).
				sample.Within = &benchmarks.Within{Count: count, Min: least, Max: most, StdDev: benchmarks.SampleDeviation(deviation, count)}
			}
			out = append(out, sample)
		}
	}
	if w != nil {
		var asked []string
		for _, operation := range w.operations {
			asked = append(asked, name(operation))
		}
		if !slices.Equal(asked, found) {
			return nil, fmt.Errorf("the summary is of %s, but the point asked for %s", list(found), list(asked))
		}
	}
	if len(out) == 0 {
		return nil, errors.New("the summary is empty")
	}
	return out, nil
}

// list is words for a message.
func list(words []string) string {
	if len(words) == 0 {
		return "nothing"
	}
	return strings.Join(words, " and ")
}

// check refuses a row of another run than the point asked for.
func (r row) check(w *want) error {
	if r.repetitions < 1 || r.repetitions > maxIterations {
		return fmt.Errorf("%d iterations can't be", r.repetitions)
	}
	if w == nil {
		return nil
	}
	for _, fact := range []struct {
		what      string
		got, want any
	}{
		{"api", r.api, string(w.options.Interface)},
		{"tasks", r.tasks, int64(w.processes)},
		{"repetitions", r.repetitions, w.iterations},
		{"segments", r.segments, w.segments},
		{"block size", r.block, w.block},
		{"transfer size", r.transfer, w.transfer},
		{"file per process", r.filePerProcess, w.options.FilePerProcess},
	} {
		if fact.got != fact.want {
			return fmt.Errorf("%s is %v, but the point asked for %v", fact.what, fact.got, fact.want)
		}
	}
	return nil
}

// parser walks over the lines of a text report.
type parser struct {
	openmpi.Reader
}

// report reads a whole report.
func (p *parser) report() (result, error) {
	var out result
	timed, err := p.head(&out)
	if err != nil {
		return out, err
	}
	counts, err := p.iterations(timed, len(strings.Fields(p.At.Text)))
	if err != nil {
		return out, err
	}
	if err := p.summary(&out); err != nil {
		return out, err
	}
	for _, row := range out.rows {
		if counts[row.operation] != row.repetitions {
			return out, fmt.Errorf("line %d: the summary of %s is of %d iterations, but there are the results of %d", row.line, row.operation, row.repetitions, counts[row.operation])
		}
	}
	if p.Next() {
		return out, p.Unexpected("the end of the output")
	}
	return out, nil
}

// head reads up to the table of results. It returns true when a time ends each transfer.
func (p *parser) head(out *result) (bool, error) {
	timed := false
	for p.Next() {
		line := p.At.Text
		switch match := bannerLine.FindStringSubmatch(line); {
		case match != nil && out.version == "":
			out.version = match[1]
		case headLine.MatchString(line) && out.version != "":
			timed = timed || timeLine.MatchString(line)
		case tableLine.MatchString(line) && out.version != "":
			return timed, nil
		default:
			return false, p.Unexpected("what IOR is about to run")
		}
	}
	return false, p.CutOff("the results")
}

// iterations reads the results, of so many columns, up to the summary, and counts them by operation.
func (p *parser) iterations(timed bool, columns int) (map[string]int64, error) {
	counts := map[string]int64{}
	for p.Next() {
		line := p.At.Text
		if match := resultLine.FindStringSubmatch(line); match != nil {
			switch {
			case len(strings.Fields(line)) != columns:
				return nil, p.Unexpected(fmt.Sprintf("a result of %d columns", columns))
			case match[2] != strconv.FormatInt(counts[match[1]], 10):
				return nil, p.Fail("the result is of iteration %s, but %d comes next", match[2], counts[match[1]])
			}
			counts[match[1]]++
			continue
		}
		switch {
		case line == summaryLine:
			return counts, nil
		case rulerLine.MatchString(line) && len(counts) == 0, mostLine.MatchString(line), timed && shortLine.MatchString(line):
		default:
			return nil, p.Unexpected("the result of an iteration")
		}
	}
	return nil, p.CutOff("the summary")
}

// summary reads the summary and the last line.
func (p *parser) summary(out *result) error {
	if !p.Next() {
		return p.CutOff("the titles of the summary")
	}
	titles := strings.Fields(p.At.Text)
	if len(titles) < 20 || titles[0] != "Operation" || titles[1] != "Max(MiB)" {
		return p.Unexpected("the titles of the summary")
	}
	for p.Next() {
		if endLine.MatchString(p.At.Text) {
			return nil
		}
		fields := strings.Fields(p.At.Text)
		if len(fields) != len(titles) {
			return p.Unexpected("a line of the summary")
		}
		next, err := p.row(titles, fields)
		if err != nil {
			return err
		}
		out.rows = append(out.rows, next)
	}
	return p.CutOff(`its last line ("Finished")`)
}

// row reads a line of the summary.
func (p *parser) row(titles, fields []string) (row, error) {
	out := row{line: p.At.Number, operation: fields[0]}
	var err error
	if out.bandwidth, err = p.numbers("MiB", titles, fields); err != nil {
		return out, err
	}
	if slices.Contains(titles, "Max(OPs)") {
		if out.operations, err = p.numbers("OPs", titles, fields); err != nil {
			return out, err
		}
	}
	place := func(title string) string {
		if i := slices.Index(titles, title); i >= 0 {
			return fields[i]
		}
		return ""
	}
	out.api, out.filePerProcess = place("API"), place("fPP") == "1"
	for title, number := range map[string]*int64{
		"#Tasks": &out.tasks, "reps": &out.repetitions, "segcnt": &out.segments, "blksiz": &out.block, "xsize": &out.transfer,
	} {
		if *number, err = strconv.ParseInt(place(title), 10, 64); err != nil {
			return out, p.Fail("%s of the summary is %q, which is no number", title, place(title))
		}
	}
	return out, nil
}

// numbers reads Max, Min, Mean and StdDev, which stand side by side.
func (p *parser) numbers(of string, titles, fields []string) (*[4]float64, error) {
	first := slices.Index(titles, "Max("+of+")")
	want := []string{"Max(" + of + ")", "Min(" + of + ")", "Mean(" + of + ")", "StdDev"}
	if first < 0 || first+len(want) > len(titles) || !slices.Equal(titles[first:first+len(want)], want) {
		return nil, p.Fail("the summary has no columns %s", strings.Join(want, ", "))
	}
	var out [4]float64
	for i := range out {
		text := fields[first+i]
		value, err := strconv.ParseFloat(text, 64)
		if err != nil || !decimal.MatchString(text) {
			return nil, p.Fail("%q is no number of the form 123.45", text)
		}
		out[i] = value
	}
	return &out, nil
}
