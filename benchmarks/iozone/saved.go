package iozone

import (
	"fmt"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"parallelfs.dev/operator/api/v1alpha1"
	"parallelfs.dev/operator/benchmarks"
	"parallelfs.dev/operator/benchmarks/openmpi"
)

// Lines of any iozone from 3.1 on. Versions write kB as KB, Kbytes or kBytes, or ops with -O.
var (
	anyBanner  = regexp.MustCompile(`^Iozone: Performance Test of File I/O$`)
	anyVersion = regexp.MustCompile(`^Version \$Revision: (\S+) \$$`)
	anyCommand = regexp.MustCompile(`^Command line used: (.*)$`)
	anyRecord  = regexp.MustCompile(`^Record Size (\d{1,15}) [kK]B$`)
	anyFile    = regexp.MustCompile(`^File size set to (\d{1,15}) [kK]B$`)
	anyUnit    = regexp.MustCompile(`^(?:OPS Mode\. |.*Mode\. )?Output is in (.+?)\.?$`)
	anyCount   = regexp.MustCompile(`^Throughput test with (\d{1,6}) (?:process|processes|thread|threads)$`)
	anyEach    = regexp.MustCompile(`^Each (?:process|thread) writes a (\d{1,15}) [kK][Bb]yte file in (\d{1,15}) [kK][Bb]yte records$`)
	anyTotal   = regexp.MustCompile(`^Children see throughput for +(\d{1,6}) ([a-z -]+?)\s+= *(\S+) (\S+)$`)
	anyParent  = regexp.MustCompile(`^Parent sees throughput for +\d+ [a-z -]+?\s+= *(\S+) (\S+)$`)
	anyBound   = regexp.MustCompile(`^(Min|Max|Avg) throughput per (?:process|thread)\s+= *(\S+) (\S+)$`)
	anyLeast   = regexp.MustCompile(`^Min xfer\s+= *(\S+) (kB|KB|ops)$`)
	anyColumns = regexp.MustCompile(`^[kK]B +reclen +(.*)$`)
	anyRow     = regexp.MustCompile(`^\d+( +\d+)+$`)
	anyExcel   = regexp.MustCompile(`^"([^"]*)"(?: +(.*))?$`)
	testOption = regexp.MustCompile(` -i *(\d+)`)
)

// titles maps iozone's titles of processes to metrics, and excels maps the titles in its spreadsheet report.
var (
	titles = map[string]string{
		"initial writers": "write", "rewriters": "rewrite", "readers": "read", "re-readers": "reread", "random readers": "randomRead",
		"random writers": "randomWrite", "mixed workload": "mixed", "reverse readers": "reverseRead", "stride readers": "strideRead",
		"pwrite writers": "pwrite", "pread readers": "pread", "fwriters": "fwrite", "freaders": "fread",
	}
	excels = map[string]string{
		"initial write": "write", "rewrite": "rewrite", "read": "read", "re-read": "reread", "random read": "randomRead",
		"random write": "randomWrite", "reverse read": "reverseRead", "stride read": "strideRead", "mixed workload": "mixed",
		"pwrite": "pwrite", "pread": "pread", "fwrite": "fwrite", "fread": "fread",
		"writer report": "write", "re-writer report": "rewrite", "reader report": "read", "re-reader report": "reread",
		"random read report": "randomRead", "random write report": "randomWrite", "backward read report": "reverseRead",
		"record rewrite report": "recordRewrite", "stride read report": "strideRead", "fwrite report": "fwrite", "re-fwrite report": "refwrite",
		"fread report": "fread", "re-fread report": "refread",
	}
	// columns lists the metrics in the table of the automatic mode, tests the columns of each test (-i), and heads the text above them.
	columns = []string{
		"write", "rewrite", "read", "reread", "randomRead", "randomWrite", "reverseRead", "recordRewrite", "strideRead",
		"fwrite", "refwrite", "fread", "refread",
	}
	tests = [][]int{{0, 1}, {2, 3}, {4, 5}, {6}, {7}, {8}, {9, 10}, {11, 12}}
	heads = []string{"write", "rewrite", "read", "reread", "read", "write", "read", "rewrite", "read",
		"fwrite", "frewrite", "fread", "freread"}
)

// maxRows bounds the points of one output.
const maxRows = 4096

// ParseSaved reads the throughput mode (-t) and the automatic mode (-a) of any iozone from 3.1 on, in kB/s, and in operations per second
// with -O. Each pair of a file and record size of the automatic mode is a report. Values that the spreadsheet report (-R) repeats must be
// the same.
func (Tool) ParseSaved(output []byte) ([]benchmarks.Saved, error) {
	if err := benchmarks.BoundLines(output); err != nil {
		return nil, err //nolint:wrapcheck // it is a sentence about the output
	}
	read, err := openmpi.Read(output)
	if err != nil {
		return nil, err //nolint:wrapcheck // the same
	}
	p := anyParser{Reader: openmpi.Reader{Lines: read.Lines, Skipped: read.Remarks}, values: map[string]float64{}}
	if err := p.head(); err != nil {
		return nil, read.Explain(err)
	}
	if err := p.body(); err != nil {
		return nil, read.Explain(err)
	}
	p.out[0].Remarks = p.Skipped
	return p.out, nil
}

// anyParser reads the lines of an output.
type anyParser struct {
	openmpi.Reader
	version, command string
	// unit is the unit of the table in the automatic mode, or empty if no line names it.
	unit string
	// record and file are sizes in kB, and processes the number of processes; 0 if not printed.
	record, file, processes int64
	out                     []benchmarks.Saved
	// values holds all results by metric, file and record, with the names of the spreadsheet report.
	values map[string]float64
	// report is the current metric of the spreadsheet, and records holds the sizes above its columns.
	report  string
	records []string
}

// head parses the lines up to the first result or table.
func (p *anyParser) head() error {
	started := false
	for p.Next() {
		line := p.At.Text
		switch {
		case anyBanner.MatchString(line) && !started:
			started = true
		case anyBanner.MatchString(line):
			return p.again()
		case !started:
			if anyTotal.MatchString(line) || anyColumns.MatchString(line) || line == complete {
				return p.Unexpected("the line with which iozone begins")
			}
			if err := p.Skip(); err != nil {
				return err
			}
		case line == complete:
			return p.Fail("iozone ended without a result")
		case openmpi.Failed(line) || complaint.MatchString(line):
			return p.Unexpected("the lines that say what iozone is about to run")
		default:
			begun, err := p.fact(line)
			if begun || err != nil {
				return err
			}
		}
	}
	return p.CutOff("the results")
}

// complaint matches the beginning of error lines after which iozone continues.
var complaint = regexp.MustCompile(`(?i)^(can'?t|can ?not|unable|could not|open: |write: |read: |stat: |interrupted)|no space left`)

// fact parses a line of the head, and returns true for one that results follow.
func (p *anyParser) fact(line string) (bool, error) {
	for _, f := range []struct {
		line *regexp.Regexp
		to   *int64
	}{{anyRecord, &p.record}, {anyFile, &p.file}, {anyCount, &p.processes}} {
		if match := f.line.FindStringSubmatch(line); match != nil {
			*f.to, _ = strconv.ParseInt(match[1], 10, 64) // at most 15 digits
		}
	}
	if match := anyVersion.FindStringSubmatch(line); match != nil {
		p.version = match[1]
	}
	if match := anyCommand.FindStringSubmatch(line); match != nil {
		p.command = " " + match[1]
	}
	if match := anyUnit.FindStringSubmatch(line); match != nil {
		p.unit = unitOf(match[1])
	}
	if match := anyEach.FindStringSubmatch(line); match != nil {
		file, _ := strconv.ParseInt(match[1], 10, 64)   // the same
		record, _ := strconv.ParseInt(match[2], 10, 64) // the same
		if p.file > 0 && p.file != file || p.record > 0 && p.record != record {
			return true, p.Fail("%q contradicts a line before, which has files of %d kB and records of %d", benchmarks.Short(line), p.file, p.record)
		}
		p.file, p.record = file, record
		if p.processes < 1 || p.record < 1 {
			return true, p.Fail("no line before says how many processes there are, or how large their records")
		}
		p.point()
		return true, nil
	}
	if match := anyColumns.FindStringSubmatch(line); match != nil {
		switch {
		case !slices.Equal(strings.Fields(match[1]), heads):
			return true, p.Unexpected("the columns of iozone's automatic mode")
		case p.unit == "":
			return true, p.Fail("no line before the table says in which unit its numbers are")
		}
		p.processes = 0
		return true, nil
	}
	return false, nil
}

// unitOf returns the unit with the operator's name, or empty for an unknown one.
func unitOf(text string) string {
	switch strings.ToLower(text) {
	case "kb/sec", "kbytes/sec":
		return unit
	case "ops/sec", "operations per second":
		return iops
	}
	return ""
}

func (p *anyParser) again() error {
	return p.Fail("a second run of iozone begins; keep one run in each file")
}

// point starts a report of the throughput mode.
func (p *anyParser) point() {
	p.out = append(p.out, benchmarks.Saved{
		Report: benchmarks.Report{Version: p.version},
		Parameters: map[v1alpha1.SweepName]string{
			processes: strconv.FormatInt(p.processes, 10), recordSize: fmt.Sprintf("%dk", p.record), fileSize: fmt.Sprintf("%dk", p.file),
		},
	})
}

// body parses the results up to the end.
func (p *anyParser) body() error {
	ended, auto := false, p.processes == 0
	for p.Next() {
		line := p.At.Text
		var err error
		switch {
		case line == "Test running:", line == "Test cleanup:", warningLine.MatchString(line), line == "Excel output is below:":
		case line == complete && !ended:
			ended = true
		case strings.HasPrefix(line, "Timer resolution is poor."):
			err = p.Fail("iozone says that its timer was too coarse for what it measured; make the files larger")
		case anyBanner.MatchString(line):
			err = p.again()
		case anyExcel.MatchString(line):
			err = p.excel(anyExcel.FindStringSubmatch(line))
		case ended:
			if anyTotal.MatchString(line) || anyRow.MatchString(line) || line == complete {
				err = p.Unexpected("the end of the output")
			} else {
				err = p.Skip()
			}
		case !auto && anyTotal.MatchString(line):
			err = p.result(anyTotal.FindStringSubmatch(line))
		case !auto && (anyCount.MatchString(line) || anyEach.MatchString(line)):
			_, err = p.fact(line)
		case auto && anyRow.MatchString(line):
			err = p.row(strings.Fields(line))
		default:
			err = p.Unexpected("a result of iozone")
		}
		if err != nil {
			return err
		}
	}
	return p.whole(ended, auto)
}

// whole refuses an output that lacks results. Some versions print no last line after a spreadsheet report, or none at all. In that case
// each test on the command line must have results.
func (p *anyParser) whole(ended, auto bool) error {
	if len(p.out) == 0 || len(p.values) == 0 {
		return p.CutOff("the first result")
	}
	asked := map[string]bool{}
	for _, match := range testOption.FindAllStringSubmatch(p.command, -1) {
		number, err := strconv.Atoi(match[1])
		if err != nil || number >= len(tests) {
			continue
		}
		for _, column := range tests[number] {
			asked[columns[column]] = column == tests[number][0] || number == 2
		}
	}
	for name, must := range asked {
		if auto || !must || name == "recordRewrite" {
			continue
		}
		for _, saved := range p.out {
			if !slices.ContainsFunc(saved.Samples, func(s benchmarks.Sample) bool { return s.Name == name }) {
				return p.Fail("the output ends without %s, which its command line asked for", name)
			}
		}
	}
	if !ended && (auto || len(asked) == 0) {
		return p.CutOff(fmt.Sprintf("its last line (%q)", complete))
	}
	for i := range p.out {
		if len(p.out[i].Samples) == 0 {
			return p.Fail("the output ends without a result of %s processes", p.out[i].Parameters[processes])
		}
	}
	return nil
}

// number parses a finite, non-negative number.
func (p *anyParser) number(text string) (float64, error) {
	q := parser{at: p.At.Number}
	if _, decimals, _ := strings.Cut(text, "."); len(decimals) != 2 {
		return 0, p.Fail("%q is no number of the form 123.45", benchmarks.Short(text))
	}
	return q.number(text)
}

// result parses the lines of one result in the throughput mode.
func (p *anyParser) result(match []string) error {
	title, counted := match[2], unitOf(match[4])
	metric, known := titles[title]
	if !known {
		metric = title
	}
	if count, _ := strconv.ParseInt(match[1], 10, 64); count != p.processes || counted == "" {
		return p.Fail("the result is of %s processes in %s, and %d in kB/sec or ops/sec were expected",
			benchmarks.Short(match[1]), benchmarks.Short(match[4]), p.processes)
	}
	saved := &p.out[len(p.out)-1]
	if slices.ContainsFunc(saved.Samples, func(s benchmarks.Sample) bool { return s.Name == metric }) {
		return p.Fail("there is a second result of the %s", title)
	}
	total, err := p.number(match[3])
	if err != nil {
		return err
	}
	if total == 0 {
		return p.Fail("the throughput of the %s is 0: nothing was transferred, or too little to measure", title)
	}
	bounds := map[string]float64{}
	for _, name := range []string{"Min", "Max", "Avg"} {
		what := fmt.Sprintf("the %s throughput of one of the %s", name, title)
		if !p.Next() {
			return p.CutOff(what)
		}
		if parent := anyParent.FindStringSubmatch(p.At.Text); parent != nil && name == "Min" {
			seen, err := p.number(parent[1])
			if err != nil {
				return err
			}
			if unitOf(parent[2]) != counted || seen > total*1.05+1 {
				return p.Fail("the parent of the %s sees %s %s, more than its children do",
					title, benchmarks.Short(parent[1]), benchmarks.Short(parent[2]))
			}
			if !p.Next() {
				return p.CutOff(what)
			}
		}
		bound := anyBound.FindStringSubmatch(p.At.Text)
		if len(bound) < 2 || bound[1] != name || unitOf(bound[3]) != counted {
			return p.Unexpected(what)
		}
		if bounds[name], err = p.number(bound[2]); err != nil {
			return err
		}
	}
	if err := p.bounds(title, total, bounds); err != nil {
		return err
	}
	if err := p.least(title); err != nil {
		return err
	}
	p.add(saved, metric, counted, total)
	return nil
}

// bounds compares the total with the figures of the processes, like the parser of the operator's own outputs.
func (p *anyParser) bounds(title string, total float64, bounds map[string]float64) error {
	n := float64(p.processes)
	const near, part = 0.011, 1e-7
	if bounds["Min"] > bounds["Avg"]+near {
		return p.Fail("iozone left a process out of the throughput of the %s (Min %.2f is more than Avg %.2f): another had ended before it began; make the files larger",
			title, bounds["Min"], bounds["Avg"])
	}
	if math.Abs(bounds["Avg"]*n-total) > near*n+part*total || bounds["Avg"] > bounds["Max"]+near ||
		p.processes == 1 && (math.Abs(bounds["Min"]-total) > near || math.Abs(bounds["Max"]-total) > near) {
		return p.Fail("the throughput of the %s, %.2f, does not agree with the numbers below it: Min %.2f, Max %.2f, Avg %.2f",
			title, total, bounds["Min"], bounds["Max"], bounds["Avg"])
	}
	return nil
}

// least parses the amount that the slowest process has moved.
func (p *anyParser) least(title string) error {
	if !p.Next() {
		return p.CutOff("the least that one of the " + title + " transferred")
	}
	match := anyLeast.FindStringSubmatch(p.At.Text)
	if match == nil {
		return p.Unexpected("the least that one of the " + title + " transferred")
	}
	moved, err := p.number(match[1])
	if err != nil {
		return err
	}
	if match[2] == "ops" {
		moved *= float64(p.record)
	}
	whole := float64(p.file)
	switch {
	case p.file == 0:
	case moved == 0 && p.file*benchmarks.Kilo >= substantial:
		return p.Fail("one of the %s transferred nothing while another transferred its file: it was killed, or given no time; run it again", title)
	case moved > whole+1:
		return p.Fail("one of the %s transferred %.0f kB of a file of %d", title, moved, p.file)
	}
	return nil
}

// add stores a result, and also its value in the other unit, which follows because all processes move whole records.
func (p *anyParser) add(saved *benchmarks.Saved, metric, counted string, value float64) {
	saved.Samples = append(saved.Samples, benchmarks.Sample{Name: metric, Unit: counted, Value: value})
	if counted == unit && p.record > 0 {
		saved.Samples = append(saved.Samples, benchmarks.Sample{Name: metric, Unit: iops, Value: value / float64(p.record)})
	}
	p.values[metric] = value
}

// row parses a row of the automatic mode.
func (p *anyParser) row(fields []string) error {
	const sizes = 2
	var numbers []int64
	for _, field := range fields {
		number, err := strconv.ParseInt(field, 10, 64)
		if err != nil || number > 1<<53 {
			return p.Fail("%q is no number that can be", benchmarks.Short(field))
		}
		numbers = append(numbers, number)
	}
	if len(fields) < sizes+1 || numbers[0] < 1 || numbers[1] < 1 || numbers[1] > numbers[0] {
		return p.Unexpected("a file size, a record size of at most that, and results")
	}
	places, err := p.places(len(fields) - sizes)
	if err != nil {
		return err
	}
	file, record := fields[0], fields[1]
	if _, twice := p.values[file+" "+record]; twice {
		return p.Fail("there is a second row of files of %s kB in records of %s kB", benchmarks.Short(file), benchmarks.Short(record))
	}
	if len(p.out) == maxRows {
		return p.Fail("there are more than %d rows", maxRows)
	}
	p.values[file+" "+record] = 0
	saved := benchmarks.Saved{Report: benchmarks.Report{Version: p.version}, Parameters: map[v1alpha1.SweepName]string{
		processes: "1", fileSize: file + "k", recordSize: record + "k",
	}}
	for i, place := range places {
		value := float64(numbers[sizes+i])
		if value == 0 {
			continue // iozone did not run it for this size
		}
		saved.Samples = append(saved.Samples, benchmarks.Sample{Name: columns[place], Unit: p.unit, Value: value})
		p.values[columns[place]+" "+file+" "+record] = value
	}
	if len(saved.Samples) == 0 {
		return p.Fail("the row has no result")
	}
	p.out = append(p.out, saved)
	return nil
}

// places returns the columns of this number of results: all, or those of the tests on the command line. The other columns are blank.
func (p *anyParser) places(count int) ([]int, error) {
	var asked []int
	for _, match := range testOption.FindAllStringSubmatch(p.command, -1) {
		if number, err := strconv.Atoi(match[1]); err == nil && number < len(tests) {
			asked = append(asked, tests[number]...)
		}
	}
	slices.Sort(asked)
	asked = slices.Compact(asked)
	switch {
	case len(asked) == 0 && count == len(columns):
		for i := range columns {
			asked = append(asked, i)
		}
	case count != len(asked):
		return nil, p.Fail("the row has %d results, and the command line asks for %d", count, max(len(asked), 1))
	}
	return asked, nil
}

// excel compares a line of the spreadsheet report with the values read before.
func (p *anyParser) excel(match []string) error {
	name, rest := strings.ToLower(strings.TrimSpace(match[1])), strings.TrimSpace(match[2])
	if metric, known := excels[name]; known {
		if rest == "" {
			p.report, p.records = metric, nil
			return nil
		}
		value, err := p.number(rest)
		if err != nil {
			return err
		}
		if before, found := p.values[metric]; !found || math.Abs(before-value) > 0.011 {
			return p.Fail("the report for a spreadsheet has %s of %s, and the result above is %.2f", benchmarks.Short(rest), metric, before)
		}
		return nil
	}
	if isTitle := name == "" || strings.Trim(name, "0123456789") != ""; isTitle || p.report == "" || p.processes > 0 {
		return nil
	}
	if strings.Contains(rest, `"`) || p.records == nil {
		p.records = strings.Fields(strings.ReplaceAll(name+" "+rest, `"`, ""))
		return nil
	}
	fields := strings.Fields(rest)
	if len(fields) > len(p.records) {
		return p.Unexpected("a row of the report for a spreadsheet")
	}
	for i, field := range fields {
		value, err := strconv.ParseFloat(field, 64)
		if err != nil {
			return p.Unexpected("a row of the report for a spreadsheet")
		}
		if before, found := p.values[p.report+" "+name+" "+p.records[i]]; found && before != value {
			return p.Fail("the report for a spreadsheet has %s of %s, and the table above %.0f", benchmarks.Short(field), p.report, before)
		}
	}
	return nil
}
