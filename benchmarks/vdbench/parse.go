package vdbench

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"parallelfs.dev/operator/api/v1alpha1"
	"parallelfs.dev/operator/benchmarks"
)

var (
	timed      = regexp.MustCompile(`^\d\d:\d\d:\d\d\.\d{3} *(.*)$`)
	startLine  = regexp.MustCompile(`^Starting RD=(format_for_)?([\w.-]+)(?:;.*)?$`)
	averageRow = regexp.MustCompile(`^avg_(\d{1,9})-(\d{1,9}) +(.*)$`)
	// intervalRow matches the results of one interval.
	intervalRow = regexp.MustCompile(`^(\d{1,9}) +([\d.].*)$`)
	version     = regexp.MustCompile(`^Vdbench distribution: vdbench(\S+)`)
	success     = regexp.MustCompile(`^Vdbench execution completed successfully\. Output directory: (\S+)$`)
	// failed matches errors after which vdbench may continue.
	failed = regexp.MustCompile(`(?i)\b(abort(ed|ing)?|exception|i/o error|data validation|terminat(ed|ing)|error count|heartbeat` +
		`|failed|failure)\b`)
	number = regexp.MustCompile(`^\d{1,15}(\.\d{1,6})?$`)
)

// Parse parses vdbench's standard output, which includes its summary.html. For each run it uses the row avg_2-n, which skips the first
// second. flatfile.html and totals.html contain the same numbers, but remain in the launcher's pod, so only a second command could print
// them. For each operation it returns files/s (created or closed), MB/s (of 1024² bytes) and ms (the response time of a transfer).
func (Tool) Parse(spec *v1alpha1.BenchmarkRunSpec, point benchmarks.Point, step int, output []byte) (benchmarks.Report, error) {
	var asked []string
	p := parser{}
	if len(point.Parameters) > 0 {
		if _, err := check(spec, point); err != nil {
			return benchmarks.Report{}, err
		}
		if step != 0 {
			return benchmarks.Report{}, fmt.Errorf("there is no step %d; the point has 1", step)
		}
		p.directory = outputDirectory
		for _, operation := range options(spec).Operations {
			asked = append(asked, strings.ToLower(string(operation)))
		}
	}
	if err := p.read(output); err != nil {
		return benchmarks.Report{}, err
	}
	if asked == nil {
		asked = p.order
	}
	report := benchmarks.Report{Version: p.version}
	for _, operation := range asked {
		samples, found := p.samples[operation]
		if !found {
			return benchmarks.Report{}, fmt.Errorf("the output ends without an average of the run %q, which the point asked for: "+
				"it was not run, or took less than two seconds; make vdbench.files larger", operation)
		}
		report.Samples = append(report.Samples, samples...)
	}
	if len(report.Samples) == 0 {
		return benchmarks.Report{}, errors.New("the output holds no average of a run")
	}
	return report, nil
}

// parser parses the lines of an output.
type parser struct {
	version string
	// directory is the directory of vdbench's other files; empty if unknown.
	directory string
	// run is the current run, and titles holds the groups of the columns as printed above the rows.
	run     string
	titles  []string
	columns []column
	// samples holds the samples of each run, and order the order of the runs.
	samples map[string][]benchmarks.Sample
	order   []string
	// saved is true for an output that the operator did not produce, and html for one of vdbench's own files.
	saved, html bool
	// formatting is true for the run that creates the files for another one.
	formatting bool
	// rows holds the sums and bounds of the intervals after the first, by column.
	rows    []bounds
	counted int64
	// averaged is true if the run has its average.
	averaged bool
	skipped  benchmarks.Remarks
}

// bounds holds the sum and the extremes of the numbers in one column.
type bounds struct{ sum, least, most float64 }

// maxRuns bounds the number of runs; no point has as many.
const maxRuns = 256

// column identifies a number in a row.
type column struct{ group, name string }

// read parses all lines.
func (p *parser) read(output []byte) error {
	if err := benchmarks.BoundLines(output); err != nil {
		return err
	}
	p.samples = map[string][]benchmarks.Sample{}
	ended, number, last := false, 0, ""
	for raw := range strings.Lines(string(output)) {
		number++
		line := strings.TrimSpace(raw)
		if p.html {
			line = strings.TrimSpace(tag.ReplaceAllString(line, ""))
		}
		if line == "" || strings.HasPrefix(line, "parallelfs: ") {
			continue
		}
		last = line
		text := line
		if match := timed.FindStringSubmatch(line); match != nil {
			text = match[1]
		}
		if ended && p.saved && !slices.ContainsFunc([]*regexp.Regexp{failed, startLine, averageRow, version}, func(r *regexp.Regexp) bool {
			return r.MatchString(text)
		}) {
			p.skipped.Add(number, line)
			continue
		}
		if ended && version.MatchString(text) {
			return fmt.Errorf("line %d: a second run of vdbench begins; keep one run in each file", number)
		}
		if ended {
			return fmt.Errorf("line %d: found %q behind the end of vdbench", number, benchmarks.Short(line))
		}
		if match := success.FindStringSubmatch(text); match != nil && text != line && (p.directory == "" || p.directory == match[1]) {
			ended = true
			continue
		}
		if p.saved && strings.HasPrefix(text, "Vdbench execution completed successfully") {
			ended = true
			continue
		}
		if err := p.line(text); err != nil {
			return fmt.Errorf("line %d: %w", number, err)
		}
	}
	if err := p.ended(); ended && err != nil {
		return err
	}
	switch {
	case last == "":
		return errors.New("the output is empty")
	case !ended:
		return fmt.Errorf(`the output is cut off after line %d (%q), before "Vdbench execution completed successfully"`,
			number, benchmarks.Short(last))
	}
	return nil
}

// line parses a line without its time.
func (p *parser) line(text string) error {
	if match := version.FindStringSubmatch(text); match != nil {
		if p.version != "" {
			return errors.New("vdbench begins a second time")
		}
		p.version = match[1]
		return nil
	}
	if match := startLine.FindStringSubmatch(text); match != nil {
		if err := p.ended(); err != nil {
			return err
		}
		p.averaged = false
		p.run, p.titles, p.columns, p.rows, p.counted = match[2], nil, nil, nil, 0
		// The operator's run "create" consists only of formatting. For any other run, the formatting precedes it.
		if p.formatting = match[1] != ""; p.formatting && p.run != "create" {
			p.run = match[1] + match[2]
		}
		if slices.Contains(p.order, p.run) {
			return fmt.Errorf("the run %q begins a second time", benchmarks.Short(p.run))
		}
		if p.order = append(p.order, p.run); len(p.order) > maxRuns {
			return fmt.Errorf("there are more than %d runs", maxRuns)
		}
		return nil
	}
	if rawTitles.MatchString(text) {
		p.titles, p.columns = strings.Fields(text), nil
		return nil
	}
	if strings.Contains(text, ".Interval.") {
		fields := strings.Fields(text)
		at := slices.IndexFunc(fields, func(f string) bool { return strings.Trim(f, ".") == "Interval" })
		p.titles, p.columns = fields[at+1:], nil
		return nil
	}
	if p.titles != nil && p.columns == nil {
		var err error
		if names := strings.Fields(text); rawTitles.MatchString(strings.Join(p.titles, " ")) {
			p.columns, err = layOutRaw(names)
		} else {
			p.columns, err = layOut(p.titles, names)
		}
		return err
	}
	if match := averageRow.FindStringSubmatch(text); match != nil {
		return p.averageOf(match[1], match[2], strings.Fields(match[3]))
	}
	if match := intervalRow.FindStringSubmatch(text); match != nil && p.columns != nil {
		p.interval(match[1], strings.Fields(match[2]))
		return nil
	}
	if failed.MatchString(text) {
		return fmt.Errorf("vdbench says %q", benchmarks.Short(text))
	}
	return nil
}

// averageOf parses the row of the average over the intervals from and to.
func (p *parser) averageOf(from, to string, fields []string) error {
	if p.averaged && p.saved {
		return fmt.Errorf("the run %q has a second average", benchmarks.Short(p.run))
	}
	p.averaged = true
	if p.samples[p.run] == nil && len(fields) == len(p.columns) {
		if err := p.agree(from, to, fields); err != nil {
			return err
		}
	}
	if p.saved {
		return p.savedAverage(fields)
	}
	return p.average(fields)
}

// layOut finds the columns below the titles of their groups, of which most have two.
func layOut(titles, names []string) ([]column, error) {
	var out []column
	left := names
	for _, title := range titles {
		group, count := strings.Trim(title, "."), 2
		if len(left) > 0 && slices.Contains([]string{"pct", "size"}, left[0]) || len(left) > 0 && left[0] == "total" && group == "mb/sec" {
			count = 1
		}
		if len(left) < count {
			return nil, fmt.Errorf("%d titles stand above %d columns, which is no table of vdbench", len(titles), len(names))
		}
		for _, name := range left[:count] {
			out = append(out, column{group, name})
		}
		left = left[count:]
	}
	if len(left) > 0 {
		return nil, fmt.Errorf("%d titles stand above %d columns, which is no table of vdbench", len(titles), len(names))
	}
	return out, nil
}

// average parses the row of a run's averages.
func (p *parser) average(fields []string) error {
	switch {
	case p.run == "" || p.columns == nil:
		return errors.New("an average stands before its run or the titles of its columns")
	case p.samples[p.run] != nil:
		return fmt.Errorf("the run %q has a second average", benchmarks.Short(p.run))
	case len(fields) != len(p.columns):
		return fmt.Errorf("the average has %d columns, and %d titles stand above", len(fields), len(p.columns))
	}
	value := func(group, name string) (float64, error) {
		at := slices.Index(p.columns, column{group, name})
		if at < 0 {
			return 0, fmt.Errorf("the table has no column %s of %s", name, group)
		}
		if !number.MatchString(fields[at]) {
			return 0, fmt.Errorf("%s of %s is %q, which is no number", name, group, benchmarks.Short(fields[at]))
		}
		out, err := strconv.ParseFloat(fields[at], 64)
		if err == nil && out == 0 {
			err = fmt.Errorf("%s of %s is 0 in the run %q: nothing was done, or too little to measure", name, group, benchmarks.Short(p.run))
		}
		return out, err
	}
	done := "close"
	if p.run == "create" || p.formatting {
		done = "create"
	}
	for _, metric := range []struct{ group, name, unit string }{
		{done, "rate", "files/s"}, {"mb/sec", "total", "MB/s"}, {"ReqstdOps", "resp", "ms"},
	} {
		v, err := value(metric.group, metric.name)
		if err != nil {
			p.samples[p.run] = nil
			return err
		}
		p.samples[p.run] = append(p.samples[p.run], benchmarks.Sample{Name: p.run, Unit: metric.unit, Value: v})
	}
	return nil
}
