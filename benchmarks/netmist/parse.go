package netmist

import (
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"strings"

	"parallelfs.dev/operator/api/v1alpha1"
	"parallelfs.dev/operator/benchmarks"
)

var (
	runLine    = regexp.MustCompile(`^Test run time = (\d+) seconds, Warmup = (\d+) seconds\.?$`)
	copiesLine = regexp.MustCompile(`^Running (\d+) copies of the test on (\d+) clients?$`)
	resultLine = regexp.MustCompile(`^(Overall .*?) +~? *(-?[\d.]+|-?nan|-?inf) (Milli-seconds|Ops/sec|Kbytes/sec)$`)
	// printLine matches the last line of a summary: Public in the talk, Registered in later versions.
	printLine = regexp.MustCompile(`^(?:Public|Registered) Finger ?Print +\d+$`)
	// spaceLine matches a line before the fingerprint in later versions, and detail the lines after the summary.
	spaceLine = regexp.MustCompile(`^Total file space \S+ +~ *\d+ Mbytes$`)
	detail    = regexp.MustCompile(`^(Latency Bands:|Band +\d.*|Contributing workloads:` +
		`|\S+ +Procs +\d+ +Ops/sec +[\d.]+ +Avg Latency +[\d.]+)$`)
	opsLine = regexp.MustCompile(`^Overall \S.* Ops/sec$`)
	rule    = regexp.MustCompile(`^-{20,}$`)
	number  = regexp.MustCompile(`^\d{1,15}(\.\d{1,6})?$`)
	// failed matches lines about failed clients, after which netmist may continue.
	failed = regexp.MustCompile(`(?i)\b(error|errors|failed|failure|aborted|aborting|abort|terminating` +
		`|interrupted|unable|invalid|dead|heartbeat lost)\b`)
)

// wanted lists the results of a summary in its order, with the names and units of their samples.
var wanted = []struct{ title, name, printed, unit string }{
	{"Overall average latency", "average latency", "Milli-seconds", "ms"},
	{"", "operations", "Ops/sec", "ops/s"}, // the benchmark's name is between Overall and the number
	{"Overall Read_throughput", "Read_throughput", "Kbytes/sec", "KB/s"},
	{"Overall Write_throughput", "Write_throughput", "Kbytes/sec", "KB/s"},
	{"Overall throughput", "throughput", "Kbytes/sec", "KB/s"},
}

// Parse parses netmist's summary. An output with an error line before the summary, or without the fingerprint after it, is refused.
func (Tool) Parse(spec *v1alpha1.BenchmarkRunSpec, point benchmarks.Point, step int, output []byte) (benchmarks.Report, error) {
	if err := benchmarks.BoundLines(output); err != nil {
		return benchmarks.Report{}, err
	}
	p := parser{}
	if len(point.Parameters) > 0 {
		s, err := check(spec, point)
		if err != nil {
			return benchmarks.Report{}, err
		}
		if step != 0 {
			return benchmarks.Report{}, fmt.Errorf("there is no step %d; the point has 1", step)
		}
		p.settings, p.warmUp = &s, options(spec).WarmUpSeconds
	}
	number := 0
	for raw := range strings.Lines(string(output)) {
		number++
		line := strings.TrimSpace(raw)
		if line == "" || strings.HasPrefix(line, "parallelfs: ") || strings.HasPrefix(line, "Warning: Permanently added ") {
			continue
		}
		p.last, p.at = line, number
		if err := p.line(line); err != nil {
			return benchmarks.Report{}, fmt.Errorf("line %d: %w", number, err)
		}
	}
	switch {
	case p.last == "":
		return benchmarks.Report{}, errors.New("the output is empty")
	case !p.closed:
		return benchmarks.Report{}, fmt.Errorf("the output is cut off after line %d (%q), before the rule below the fingerprint", p.at, benchmarks.Short(p.last))
	}
	return benchmarks.Report{Samples: p.samples}, nil
}

// parser parses the lines of an output.
type parser struct {
	// settings is nil if nothing is known about the run.
	*settings
	warmUp int32
	last   string
	at     int
	// border is the rule above the summary, which is repeated below it.
	border string
	// begun is set by the line about the run, ended by the fingerprint, and closed by the rule below it.
	begun, ended, closed bool
	samples              []benchmarks.Sample
}

// line parses a line.
func (p *parser) line(line string) error {
	switch {
	case p.closed && (detail.MatchString(line) || rule.MatchString(line)):
		return nil
	case p.closed:
		return fmt.Errorf("found %q behind the end of the summary", benchmarks.Short(line))
	case len(p.samples) == 0 && rule.MatchString(line):
		p.border = line
		return nil
	case len(p.samples) == len(wanted) && spaceLine.MatchString(line):
		return nil
	case p.ended && line == p.border:
		p.closed = true
		return nil
	case p.ended:
		return fmt.Errorf("found %q instead of the rule below the fingerprint", benchmarks.Short(line))
	case printLine.MatchString(line):
		if len(p.samples) != len(wanted) {
			return fmt.Errorf("the summary ends after %d of %d results", len(p.samples), len(wanted))
		}
		p.ended = true
		return nil
	}
	if match := runLine.FindStringSubmatch(line); match != nil {
		if p.begun {
			return errors.New("netmist begins a second time")
		}
		p.begun = true
		if p.settings != nil && (match[1] != strconv.FormatInt(p.seconds, 10) || match[2] != strconv.Itoa(int(p.warmUp))) {
			return fmt.Errorf("%q, but the point asked for %d s, and %d s before", benchmarks.Short(line), p.seconds, p.warmUp)
		}
		return nil
	}
	if match := copiesLine.FindStringSubmatch(line); match != nil {
		if p.settings != nil && match[1] != strconv.Itoa(p.processes) {
			return fmt.Errorf("%q, but the point asked for %d processes", benchmarks.Short(line), p.processes)
		}
		return nil
	}
	if match := resultLine.FindStringSubmatch(line); match != nil {
		return p.result(match[1], match[2], match[3])
	}
	if len(p.samples) > 0 || failed.MatchString(line) {
		return fmt.Errorf("netmist says %q", benchmarks.Short(line))
	}
	return nil
}

// result parses a result of the summary.
func (p *parser) result(title, text, unit string) error {
	if !p.begun {
		return errors.New("a result stands before the line that says what netmist runs")
	}
	if len(p.samples) >= len(wanted) {
		return fmt.Errorf("%q is a result too many", benchmarks.Short(title))
	}
	w := wanted[len(p.samples)]
	if unit != w.printed || w.title != "" && title != w.title || w.title == "" && !opsLine.MatchString(title+" "+unit) {
		return fmt.Errorf("found %q in %s, where %s in %s comes next", benchmarks.Short(title), unit, w.name, w.printed)
	}
	if !number.MatchString(text) {
		return fmt.Errorf("%q is no number", benchmarks.Short(text))
	}
	value, err := strconv.ParseFloat(text, 64)
	if err != nil {
		return err
	}
	if value == 0 && w.title != "Overall Read_throughput" && w.title != "Overall Write_throughput" {
		return fmt.Errorf("%s is 0: nothing was done", w.name)
	}
	p.samples = append(p.samples, benchmarks.Sample{Name: w.name, Unit: w.unit, Value: value})
	return nil
}
