package iozone

import (
	"bytes"
	"errors"
	"fmt"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"parallelfs.dev/operator/api/v1alpha1"
	"parallelfs.dev/operator/benchmarks"
)

// result is one of iozone's results: iozone's title for its processes, and the name of the metric.
type result struct{ title, metric string }

// expected returns the results that a run of iozone must have, in iozone's order.
func expected(o v1alpha1.IOzoneSpec, tests []v1alpha1.IOzoneTest) []result {
	var out []result
	for _, test := range tests {
		switch test {
		case v1alpha1.IOzoneWrite:
			out = append(out, result{"initial writers", "write"})
			if !o.NoRetest {
				out = append(out, result{"rewriters", "rewrite"})
			}
		case v1alpha1.IOzoneRead:
			out = append(out, result{"readers", "read"})
			if !o.NoRetest {
				out = append(out, result{"re-readers", "reread"})
			}
		case v1alpha1.IOzoneRandom:
			out = append(out, result{"random readers", "randomRead"}, result{"random writers", "randomWrite"})
		}
	}
	return out
}

var (
	versionLine = regexp.MustCompile(`^Version \$Revision: (\S+) \$$`)
	// Lines before the results with iozone's parameters.
	recordLine  = regexp.MustCompile(`^Record Size (\d+) kB$`)
	fileLine    = regexp.MustCompile(`^File size set to (\d+) kB$`)
	processLine = regexp.MustCompile(`^Throughput test with (\d+) (?:process|processes|thread|threads)$`)
	eachLine    = regexp.MustCompile(`^Each (?:process|thread) writes a \d+ kByte file in \d+ kByte records$`)
	// Lines of one result.
	totalLine  = regexp.MustCompile(`^Children see throughput for +(\d+) ([a-z -]+?)\s+= *(\S+) (\S+)$`)
	parentLine = regexp.MustCompile(`^Parent sees throughput for +\d+ [a-z -]+?\s+= *\S+ kB/sec$`)
	boundLine  = regexp.MustCompile(`^(Min|Max|Avg) throughput per (?:process|thread)\s+= *(\S+) kB/sec$`)
	leastLine  = regexp.MustCompile(`^Min xfer\s+= *(\S+) kB$`)
	// Lines of ssh and shells that are no errors, such as "Warning: Permanently added 'n1' (ED25519) to the list of known hosts."
	warningLine = regexp.MustCompile(`(?i)^(?:[^ ]+: )*warning: `)
)

const (
	// unit is the unit for iozone's kB/sec, which are kilobytes of 1024 bytes.
	unit = "kB/s"
	// iops is the unit for reads or writes of one record per second.
	iops = "IOPS"
	// complete is iozone's last line when all tests have ended.
	complete = "iozone test complete."
	// substantial is the size of a file from which on every process must have moved some data before another one moved all of its own. A
	// process that did not was killed, which iozone does not notice. A small file can be completed before the last process gets a CPU.
	substantial = 256 << 20
)

// Parse parses the results of iozone's throughput mode: for each test the sum over all processes in kB/s, and in IOPS. IOPS follow from
// kB/s because all processes move whole records. After an error iozone continues, prints numbers and exits with 0. Therefore any line that
// a successful run does not print is refused, wherever it is between the results.
func (Tool) Parse(spec *v1alpha1.BenchmarkRunSpec, point benchmarks.Point, step int, output []byte) (benchmarks.Report, error) {
	s, err := check(spec, point)
	if err != nil {
		return benchmarks.Report{}, err
	}
	all := steps(spec)
	if step < 0 || step >= len(all) {
		return benchmarks.Report{}, fmt.Errorf("iozone has no step %d; it has %d", step, len(all))
	}
	if err := benchmarks.BoundLines(output); err != nil {
		return benchmarks.Report{}, err
	}
	p := parser{settings: s, expected: expected(options(spec), all[step].tests), lines: bytes.Split(output, []byte("\n"))}
	if err := p.header(); err != nil {
		return benchmarks.Report{}, err
	}
	var samples []benchmarks.Sample
	for _, r := range p.expected {
		value, err := p.result(r)
		if err != nil {
			return benchmarks.Report{}, err
		}
		samples = append(samples,
			benchmarks.Sample{Name: r.metric, Unit: unit, Value: value},
			benchmarks.Sample{Name: r.metric, Unit: iops, Value: value * benchmarks.Kilo / float64(s.record)})
	}
	if err := p.end(); err != nil {
		return benchmarks.Report{}, err
	}
	return benchmarks.Report{Version: p.version, Samples: samples}, nil
}

// parser reads the lines of an output.
type parser struct {
	settings
	expected []result
	lines    [][]byte
	// version is iozone's version, such as "3.489"; a distributed one may not print it.
	version string
	// at is the number of lines read, which is also the number of the last one.
	at int
}

// next returns the next line with text, trimmed, or false at the end of the output.
func (p *parser) next() (string, bool) {
	for p.at < len(p.lines) {
		line := strings.TrimSpace(string(p.lines[p.at]))
		p.at++
		if line != "" && line != "Test running:" && line != "Test cleanup:" && !warningLine.MatchString(line) {
			return line, true
		}
	}
	return "", false
}

// fail returns an error for the last line that was read.
func (p *parser) fail(format string, args ...any) error {
	return fmt.Errorf("line %d: %s", p.at, fmt.Sprintf(format, args...))
}

// unexpected explains a line that is not one of the expected ones.
func (p *parser) unexpected(line, want string) error {
	if line == complete {
		return p.fail("iozone ended without %s", want)
	}
	return p.fail("found %q instead of %s", benchmarks.Short(line), want)
}

// cutOff returns the error of an incomplete output, with its last line.
func (p *parser) cutOff(want string) error {
	for i, line := range slices.Backward(p.lines) {
		if text := strings.TrimSpace(string(line)); text != "" {
			return fmt.Errorf("the output is cut off after line %d (%q), before %s", i+1, benchmarks.Short(text), want)
		}
	}
	return errors.New("the output is empty")
}

// header parses the lines up to the first result, and checks that iozone ran with the parameters of the point.
func (p *parser) header() error {
	facts := []struct {
		line *regexp.Regexp
		what string
		want int64
		seen bool
	}{
		{recordLine, "a record size of %d kB", p.record / benchmarks.Kilo, false},
		{fileLine, "a file size of %d kB", p.file / benchmarks.Kilo, false},
		{processLine, "%d processes or threads", int64(p.processes), false},
	}
	for {
		line, found := p.next()
		if !found {
			return p.cutOff("the line that says how large the file of each process is")
		}
		if match := versionLine.FindStringSubmatch(line); match != nil {
			p.version = match[1]
		}
		for i := range facts {
			match := facts[i].line.FindStringSubmatch(line)
			if match == nil {
				continue
			}
			if want := strconv.FormatInt(facts[i].want, 10); match[1] != want {
				return p.fail("%q, but the point asked for "+facts[i].what, benchmarks.Short(line), facts[i].want)
			}
			facts[i].seen = true
		}
		switch {
		case eachLine.MatchString(line):
			for _, f := range facts {
				if !f.seen {
					return p.fail("the results begin, but no line before says that iozone used "+f.what, f.want)
				}
			}
			return nil
		case line == complete, totalLine.MatchString(line), strings.HasPrefix(strings.ToLower(line), "error"):
			return p.unexpected(line, "the lines that say what iozone is about to run")
		}
	}
}

// result parses one result, and returns the throughput of all processes together in kB/s.
func (p *parser) result(want result) (float64, error) {
	title := fmt.Sprintf("the throughput of the %s (%s)", want.title, want.metric)
	line, found := p.next()
	if !found {
		return 0, p.cutOff(title)
	}
	match := totalLine.FindStringSubmatch(line)
	if len(match) < 3 || match[2] != want.title {
		return 0, p.unexpected(line, title)
	}
	if match[1] != strconv.Itoa(p.processes) {
		return 0, p.fail("the result is of %s processes, but the point asked for %d", benchmarks.Short(match[1]), p.processes)
	}
	if match[4] != "kB/sec" {
		return 0, p.fail("the result is in %s instead of kB/sec", benchmarks.Short(match[4]))
	}
	total, err := p.number(match[3])
	if err != nil {
		return 0, err
	}
	if total == 0 {
		return 0, p.fail("%s is 0: nothing was transferred, or too little to measure; see the lines around it, or make %s larger", title, fileSize)
	}
	at := p.at
	bounds := map[string]float64{}
	for _, name := range []string{"Min", "Max", "Avg"} {
		if line, found = p.next(); found && name == "Min" && parentLine.MatchString(line) {
			// Only the processes of one client have a parent that measures.
			line, found = p.next()
		}
		what := fmt.Sprintf("the %s throughput of one of the %s", name, want.title)
		if !found {
			return 0, p.cutOff(what)
		}
		if match = boundLine.FindStringSubmatch(line); len(match) < 2 || match[1] != name {
			return 0, p.unexpected(line, what)
		}
		if bounds[name], err = p.number(match[2]); err != nil {
			return 0, err
		}
	}
	if line, found = p.next(); !found {
		return 0, p.cutOff("the least that one of the " + want.title + " transferred")
	}
	if match = leastLine.FindStringSubmatch(line); match == nil {
		return 0, p.unexpected(line, "the least that one of the "+want.title+" transferred")
	}
	least, err := p.number(match[1])
	if err != nil {
		return 0, err
	}
	if least == 0 && p.file >= substantial {
		return 0, p.fail("one of the %s transferred nothing while another transferred its file: it was killed, or given no time; run the point again", want.title)
	}
	// iozone rounds each number to two decimals, and computes the average from the sum.
	near := func(a, b float64) bool { return math.Abs(a-b) <= 0.011*float64(p.processes)+1e-7*total }
	// A process that got no CPU time before another had ended counts as 0. In that case iozone reports the next one as the minimum.
	if bounds["Min"] > bounds["Avg"]+0.01 {
		return 0, fmt.Errorf("line %d: iozone left a process out of the throughput of the %s (Min %.2f is more than Avg %.2f): another had ended before it began; make %s larger",
			at, want.title, bounds["Min"], bounds["Avg"], fileSize)
	}
	if !p.same(bounds, total) || !near(bounds["Avg"]*float64(p.processes), total) || bounds["Avg"] > bounds["Max"]+0.01 {
		return 0, fmt.Errorf("line %d: %s, %.2f kB/sec, does not agree with the numbers below it: Min %.2f, Max %.2f, Avg %.2f",
			at, title, total, bounds["Min"], bounds["Max"], bounds["Avg"])
	}
	return total, nil
}

// same is true unless the figures of a single process differ.
func (p *parser) same(bounds map[string]float64, total float64) bool {
	const near = 0.011
	return p.processes != 1 || math.Abs(bounds["Min"]-total) <= near && math.Abs(bounds["Max"]-total) <= near
}

// number parses a finite, non-negative number in iozone's format: digits with a point.
func (p *parser) number(text string) (float64, error) {
	plain := !strings.ContainsFunc(text, func(r rune) bool { return r != '.' && (r < '0' || r > '9') })
	value, err := strconv.ParseFloat(text, 64)
	if !plain || err != nil {
		return 0, p.fail("%q is no number of the form 123.45", benchmarks.Short(text))
	}
	return value, nil
}

// end parses the last line, which must end the output.
func (p *parser) end() error {
	line, found := p.next()
	if !found {
		return p.cutOff(fmt.Sprintf("its last line (%q)", complete))
	}
	if line != complete {
		return p.unexpected(line, fmt.Sprintf("the end (%q)", complete))
	}
	if line, found = p.next(); found {
		if strings.HasPrefix(line, "Timer resolution is poor.") {
			return p.fail("iozone says that its timer was too coarse for what it measured; make %s larger", fileSize)
		}
		return p.unexpected(line, "the end of the output")
	}
	return nil
}
