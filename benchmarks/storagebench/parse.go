package storagebench

import (
	"errors"
	"fmt"
	"math"
	"regexp"
	"strconv"
	"strings"

	"parallelfs.dev/operator/api/v1alpha1"
	"parallelfs.dev/operator/benchmarks"
)

// unit is the unit in both versions: KiB/s in 7, kiB/s in 8 with --raw.
const unit = "KiB/s"

// ended matches the node binary's line at the end of a call's output.
var ended = regexp.MustCompile(`^parallelfs: ([a-z]+) has ended$`)

// Lines of a result of beegfs-ctl 7.
var (
	heads7   = regexp.MustCompile(`^(?:Server benchmark status:|List of all targets:)$`)
	status7  = regexp.MustCompile(`^Finished: +(\d+)$`)
	title7   = regexp.MustCompile(`^(Read|Write) benchmark results:$`)
	summary7 = regexp.MustCompile(`^(Min|Max|Avg|Aggregate) throughput: +(\d+) +KiB/s(?: +nodeID: .*, targetID: \d+)?$`)
	target7  = regexp.MustCompile(`^(\d+) +(\d+) +KiB/s +nodeID: .+$`)
)

// Lines of a result of beegfs 8, with --unadorned --raw --verbose.
var (
	heads8   = regexp.MustCompile(`^(?:Overall Benchmark Status|Benchmark Results by Target|UNINITIALIZED .*|METRIC .*|TYPE .*)$`)
	status8  = regexp.MustCompile(`^0 +0 +0 +0 +0 +0 +0 +([1-9]\d*) +0$`)
	title8   = regexp.MustCompile(`^(READ|WRITE) Test Summary$`)
	summary8 = regexp.MustCompile(`^(Minimum|Maximum|Average|Aggregate) +(\d+)kiB/s .*$`)
	target8  = regexp.MustCompile(`^(?:read|write) +(\d+)kiB/s +s:(\d+) .*$`)
)

// metrics lists the names in a summary, in the order of both versions.
var metrics = []struct{ seven, eight, name string }{
	{"Min", "Minimum", "Min throughput"}, {"Max", "Maximum", "Max throughput"}, {"Avg", "Average", "Avg throughput"},
	{"Aggregate", "Aggregate", "Aggregate throughput"},
}

// Parse parses the result of each call: the minimum, maximum and mean throughput of a target, and the sum of all. They must match the
// targets that are listed after them.
func (Tool) Parse(spec *v1alpha1.BenchmarkRunSpec, point benchmarks.Point, _ int, output []byte) (benchmarks.Report, error) {
	if _, err := check(spec, point); err != nil {
		return benchmarks.Report{}, err
	}
	if err := benchmarks.BoundLines(output); err != nil {
		return benchmarks.Report{}, err
	}
	var want []string
	for _, operation := range options(spec).Operations {
		want = append(want, verbs[operation])
	}
	want = append(want, "clean") // the backend adds this last call
	var samples []benchmarks.Sample
	lines := strings.Split(strings.TrimRight(string(output), "\r\n"), "\n")
	start, targets := 0, 0
	for i, line := range lines {
		match := ended.FindStringSubmatch(strings.TrimSpace(line))
		switch {
		case match == nil:
			continue
		case len(want) == 0:
			return benchmarks.Report{}, fmt.Errorf("line %d: %s has ended behind the last call", i+1, benchmarks.Short(match[1]))
		case match[1] != want[0]:
			return benchmarks.Report{}, fmt.Errorf("line %d: %s has ended instead of %s", i+1, benchmarks.Short(match[1]), want[0])
		}
		if want = want[1:]; len(want) > 0 {
			r, err := parse(lines[start:i], start, match[1])
			if err != nil {
				return benchmarks.Report{}, err
			}
			if targets != 0 && targets != len(r.targets) {
				return benchmarks.Report{}, fmt.Errorf("line %d: the result of %s is of %d targets, and that before of %d", i+1, match[1], len(r.targets), targets)
			}
			targets = len(r.targets)
			for _, m := range metrics {
				samples = append(samples, benchmarks.Sample{Name: match[1] + " " + m.name, Unit: unit, Value: r.summary[m.name]})
			}
		}
		start = i + 1
	}
	if len(want) > 0 {
		return benchmarks.Report{}, fmt.Errorf("the output is cut off, or a call failed: no line says that %s has ended", want[0])
	}
	if start != len(lines) {
		return benchmarks.Report{}, fmt.Errorf("line %d: something stands behind the last call", start+1)
	}
	return benchmarks.Report{Samples: samples}, nil
}

// result is the result of one operation.
type result struct {
	summary  map[string]float64
	targets  map[string]float64
	finished bool
	title    string
}

// parse parses the output of one call; before is the number of lines before it.
func parse(lines []string, before int, operation string) (result, error) {
	r := result{summary: map[string]float64{}, targets: map[string]float64{}}
	for i, text := range lines {
		line := strings.TrimSpace(text)
		if line == "" || heads7.MatchString(line) || heads8.MatchString(line) {
			continue
		}
		if err := r.line(line); err != nil {
			return r, fmt.Errorf("line %d: %w", before+i+1, err)
		}
	}
	if err := r.check(operation); err != nil {
		return r, fmt.Errorf("lines %d to %d: %w", before+1, before+len(lines), err)
	}
	return r, nil
}

func (r *result) line(line string) error {
	set := func(into map[string]float64, name, text string) error {
		if _, found := into[name]; found {
			return fmt.Errorf("there is a second %s", name)
		}
		value, err := strconv.ParseUint(text, 10, 53)
		if err != nil {
			return fmt.Errorf("%q is no throughput", benchmarks.Short(text))
		}
		into[name] = float64(value)
		return nil
	}
	if status7.MatchString(line) || status8.MatchString(line) {
		r.finished = true
		return nil
	}
	for _, title := range []*regexp.Regexp{title7, title8} {
		if match := title.FindStringSubmatch(line); match != nil {
			r.title += strings.ToLower(match[1])
			return nil
		}
	}
	for _, summary := range []*regexp.Regexp{summary7, summary8} {
		if match := summary.FindStringSubmatch(line); match != nil {
			for _, m := range metrics {
				if match[1] == m.seven || match[1] == m.eight {
					return set(r.summary, m.name, match[2])
				}
			}
		}
	}
	if match := target7.FindStringSubmatch(line); match != nil {
		return set(r.targets, "target "+match[1], match[2])
	}
	if match := target8.FindStringSubmatch(line); match != nil {
		return set(r.targets, "target "+match[2], match[1])
	}
	const most = 200
	if len(line) > most {
		line = strings.ToValidUTF8(line[:most], "") + "…"
	}
	return fmt.Errorf("%q is no line of a result", benchmarks.Short(line))
}

// check refuses a result of another operation, or whose summary does not match its targets.
func (r *result) check(operation string) error {
	switch {
	case !r.finished:
		return errors.New("no line says that all servers have finished")
	case r.title != operation:
		return fmt.Errorf("the result is of %q instead of %s", benchmarks.Short(r.title), operation)
	case len(r.targets) == 0:
		return errors.New("there are no targets")
	}
	least, most, sum := math.Inf(1), 0.0, 0.0
	for _, value := range r.targets {
		least, most, sum = min(least, value), max(most, value), sum+value
	}
	if least == 0 {
		return errors.New("nothing was moved on one of the targets")
	}
	for _, m := range metrics {
		value, found := r.summary[m.name]
		if !found {
			return fmt.Errorf("%s is missing", m.name)
		}
		want := map[string]float64{
			"Min throughput": least, "Max throughput": most,
			"Avg throughput": math.Floor(sum / float64(len(r.targets))), "Aggregate throughput": sum,
		}[m.name]
		if value != want {
			return fmt.Errorf("%s is %.0f, but the targets make %.0f", m.name, value, want)
		}
	}
	return nil
}
