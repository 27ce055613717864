package vdbench

import (
	"bytes"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strconv"

	"parallelfs.dev/operator/benchmarks"
)

var (
	// tag matches a tag in vdbench's own HTML files, which contain the lines of its output between <pre> and the end.
	tag = regexp.MustCompile(`<[^<>]{1,512}>`)
	// rawTitles matches the titles above the rows of raw I/O, and rawNames lists the names below them.
	rawTitles = regexp.MustCompile(`\binterval +i/o +MB/sec +bytes +read +resp\b`)
	rawNames  = []string{"rate", "1024**2", "i/o", "pct", "time"}
)

// Columns of raw I/O that are used.
var (
	rawRate  = column{"i/o", "rate"}
	rawBytes = column{"MB/sec", "1024**2"}
	rawSize  = column{"bytes", "i/o"}
	rawTime  = column{"resp", "time"}
)

// ParseSaved parses vdbench's output, its logfile.html or its summary.html, for file runs or raw I/O. A run that creates the files of
// another (format=yes) has a name of its own, which is the other's name with the prefix format_for_. A run that took less than two
// intervals has no average and is left out.
func (Tool) ParseSaved(output []byte) ([]benchmarks.Saved, error) {
	p := parser{saved: true}
	head := output[:min(len(output), maxHead)]
	p.html = bytes.Contains(head, []byte("<title>")) || bytes.Contains(head, []byte("<pre>")) || bytes.Contains(head, []byte("<html"))
	if err := p.read(output); err != nil {
		return nil, err
	}
	out := benchmarks.Saved{Report: benchmarks.Report{Version: p.version, Remarks: p.skipped}}
	for _, run := range p.order {
		out.Samples = append(out.Samples, p.samples[run]...)
	}
	if len(out.Samples) == 0 {
		return nil, errors.New("the output holds no average of a run: each took less than two intervals, or the file is another of vdbench's; " +
			"take its standard output, logfile.html or summary.html")
	}
	return []benchmarks.Saved{out}, nil
}

// ended refuses a run with intervals but without an average.
func (p *parser) ended() error {
	if p.counted > 0 && !p.averaged {
		return fmt.Errorf("the run %q ends without its average", benchmarks.Short(p.run))
	}
	return nil
}

// maxHead is the size of the part of an HTML file that contains the first tags.
const maxHead = 4096

// layOutRaw finds the columns of raw I/O.
func layOutRaw(names []string) ([]column, error) {
	if len(names) < len(rawNames) || !slices.Equal(names[:len(rawNames)], rawNames) {
		return nil, errors.New("the titles of raw I/O stand above other columns than those of vdbench")
	}
	out := []column{rawRate, rawBytes, rawSize, {"read", "pct"}, rawTime}
	for i, name := range names[len(rawNames):] {
		out = append(out, column{fmt.Sprint(i), name})
	}
	return out, nil
}

// number parses a number of a row; false for a column that the row does not have, or that is empty.
func (p *parser) number(of column, fields []string) (float64, bool) {
	at := slices.Index(p.columns, of)
	if at < 0 || at >= len(fields) || !number.MatchString(fields[at]) {
		return 0, false
	}
	value, err := strconv.ParseFloat(fields[at], 64)
	return value, err == nil
}

// interval records the results of an interval. The averages skip the first one.
func (p *parser) interval(at string, fields []string) {
	if at == "1" || len(fields) != len(p.columns) {
		return
	}
	if p.rows == nil {
		p.rows = make([]bounds, len(p.columns))
	}
	p.counted++
	for i, c := range p.columns {
		value, _ := p.number(c, fields) // 0 if there is none
		b := &p.rows[i]
		if p.counted == 1 {
			b.least, b.most = value, value
		}
		b.sum, b.least, b.most = b.sum+value, min(b.least, value), max(b.most, value)
	}
}

// agree compares an average with its intervals, if all of them are there, and its operations and bytes with their parts.
func (p *parser) agree(from, to string, fields []string) error { //nolint:gocyclo // one case for each form of a line
	const part, digit = 0.005, 0.06
	first, err := strconv.ParseInt(from, 10, 64)
	last, err2 := strconv.ParseInt(to, 10, 64)
	if whole := err == nil && err2 == nil && first == 2 && last >= first && p.counted == last-1; whole && len(fields) == len(p.columns) {
		for i, c := range p.columns {
			value, is := p.number(c, fields)
			mean := p.rows[i].sum / float64(p.counted)
			switch rate := c.name == "rate" || c == rawBytes || c == (column{"mb/sec", "total"}); {
			case !is:
			case rate && !benchmarks.Near(value, mean, digit, part):
				return fmt.Errorf("the average of %s of %s is %v, and that of its intervals %.2f", c.name, c.group, value, mean)
			case (c.name == "resp" || c == rawTime) && (value > p.rows[i].most*(1+part)+digit || value < p.rows[i].least*(1-part)-digit):
				return fmt.Errorf("the average of %s of %s is %v, and its intervals have %v to %v", c.name, c.group, value, p.rows[i].least, p.rows[i].most)
			}
		}
	}
	const mebi = 1 << 20
	if rate, is := p.number(rawRate, fields); is {
		size, _ := p.number(rawSize, fields)   // 0 if there is none
		moved, _ := p.number(rawBytes, fields) // the same
		if !benchmarks.Near(rate*size/mebi, moved, 0.0051+digit*size/mebi, part) {
			return fmt.Errorf("%v I/Os of %v bytes in a second are not %v MB/s", rate, size, moved)
		}
		return nil
	}
	total, is := p.number(column{"mb/sec", "total"}, fields)
	in, is1 := p.number(column{"mb/sec", "read"}, fields)
	out, is2 := p.number(column{"mb/sec", "write"}, fields)
	if is && is1 && is2 && !benchmarks.Near(in+out, total, 2*digit, part) {
		return fmt.Errorf("%v and %v MB/s read and written are not %v", in, out, total)
	}
	size, is3 := p.number(column{"xfer", "size"}, fields)
	reads, is4 := p.number(column{"read", "rate"}, fields)
	writes, is5 := p.number(column{"write", "rate"}, fields)
	if is && is3 && is4 && is5 && !benchmarks.Near((reads+writes)*size/mebi, total, digit+2*digit*size/mebi, part) {
		return fmt.Errorf("%v reads and %v writes of %v bytes in a second are not %v MB/s", reads, writes, size, total)
	}
	return nil
}

// savedAverage parses the row of a run's averages; operations that were not run are left out.
func (p *parser) savedAverage(fields []string) error {
	switch {
	case p.run == "" || p.columns == nil:
		return errors.New("an average stands before its run or the titles of its columns")
	case p.samples[p.run] != nil:
		return fmt.Errorf("the run %q has a second average", benchmarks.Short(p.run))
	}
	done := column{"close", "rate"}
	if p.formatting {
		done = column{"create", "rate"}
	}
	for _, metric := range []struct {
		of   column
		unit string
	}{
		{rawRate, "IOPS"}, {rawBytes, "MB/s"}, {rawTime, "ms"}, {done, "files/s"},
		{column{"mb/sec", "total"}, "MB/s"}, {column{"ReqstdOps", "resp"}, "ms"},
	} {
		at := slices.Index(p.columns, metric.of)
		if at < 0 {
			continue
		}
		value, is := p.number(metric.of, fields)
		if !is && (at >= len(fields) || fields[at] != "NaN") {
			return fmt.Errorf("%s of %s is no number", metric.of.name, metric.of.group)
		}
		if value > 0 {
			p.samples[p.run] = append(p.samples[p.run], benchmarks.Sample{Name: p.run, Unit: metric.unit, Value: value})
		}
	}
	if len(fields) != len(p.columns) {
		p.samples[p.run] = nil
		return fmt.Errorf("the average has %d columns, and %d titles stand above", len(fields), len(p.columns))
	}
	return nil
}
