package postmark

import (
	"errors"
	"fmt"
	"math"
	"regexp"
	"strconv"
	"strings"

	"parallelfs.dev/operator/api/v1alpha1"
	"parallelfs.dev/operator/benchmarks"
	"parallelfs.dev/operator/benchmarks/openmpi"
)

var (
	anyVersion = regexp.MustCompile(`^PostMark (v\d+\.\d+\w*) : \S+$`)
	// promptLine matches a command typed by a person, or the echo of a command file.
	promptLine = regexp.MustCompile(`^(pm>\s*)+(.*)$`)
	setLine    = regexp.MustCompile(`^set (\w+) (\d+)(?: (\d+))?$`)
	// doneLine matches a progress line.
	doneLine = regexp.MustCompile(`^((Creating|Deleting) (subdirectories|files)|Performing transactions)\.*Done$`)
	timeLine = regexp.MustCompile(`^Time:$`)
)

// ParseSaved parses the report of one postmark, whatever was set before it. The report contains the numbers of files and transactions; the
// commands at the prompt contain the rest.
func (Tool) ParseSaved(output []byte) ([]benchmarks.Saved, error) {
	if err := benchmarks.BoundLines(output); err != nil {
		return nil, err //nolint:wrapcheck // it is a sentence about the output
	}
	p := savedParser{
		out: benchmarks.Saved{Parameters: map[v1alpha1.SweepName]string{processes: "1"}},
	}
	var report []string
	began := 0
	number := 0
	for raw := range strings.Lines(string(output)) {
		number++
		line := strings.TrimSpace(raw)
		switch {
		case line == "":
		case strings.HasPrefix(line, "[rank "):
			return nil, errors.New("the output is of processes that the operator has started; say with --processes how many, and with --set what was asked for")
		case timeLine.MatchString(line) && began > 0:
			return nil, fmt.Errorf("line %d: a second report of postmark begins; keep one report in each file", number)
		case timeLine.MatchString(line):
			began = number
		case began > 0 && !promptLine.MatchString(line) && len(report) < reportLines:
			report = append(report, line)
		default:
			if err := p.around(number, line); err != nil {
				return nil, err
			}
		}
	}
	if began == 0 {
		return nil, errors.New(`there is no report of postmark: no line "Time:" begins it`)
	}
	if err := p.report(report, began); err != nil {
		return nil, err
	}
	return []benchmarks.Saved{p.out}, nil
}

// reportLines is the number of lines of a report after "Time:", without blank ones.
const reportLines = 14

// savedParser collects the lines around a report.
type savedParser struct{ out benchmarks.Saved }

// around parses a line outside of the report.
func (p *savedParser) around(number int, line string) error {
	if match := anyVersion.FindStringSubmatch(line); match != nil {
		p.out.Version = match[1]
		return nil
	}
	if match := promptLine.FindStringSubmatch(line); match != nil {
		line = strings.TrimSpace(match[2])
		if set := setLine.FindStringSubmatch(line); set != nil {
			p.set(set)
			return nil
		}
	}
	switch {
	case line == "", doneLine.MatchString(line), line == "run", line == "exit", line == "quit":
		return nil
	case strings.HasSuffix(line, "out of files!"):
		return fmt.Errorf("line %d: postmark ran out of files; have it create more of them", number)
	case openmpi.Failed(line), strings.Contains(line, "cannot"), strings.Contains(line, "Warning"), reportLine.MatchString(line):
		return fmt.Errorf("line %d: %q says that the run is not whole, so no number is taken", number, benchmarks.Short(line))
	}
	p.out.Remarks.Add(number, line)
	return nil
}

// reportLine matches lines that occur only in a report.
var reportLine = regexp.MustCompile(`per second\)$|seconds total$|^(Files|Data):$`)

// set parses a command that sets a parameter.
func (p *savedParser) set(match []string) {
	for prefix, name := range map[string]v1alpha1.SweepName{"number": files, "transactions": transactions, "subdirectories": subdirectories} {
		if strings.HasPrefix(match[1], prefix) {
			p.out.Parameters[name] = match[2]
		}
	}
	if match[1] == "size" && match[3] != "" {
		p.out.Parameters[sizeLow], p.out.Parameters[sizeHigh] = match[2], match[3]
	}
}

// report parses the lines after "Time:" with the parser of the operator's own outputs. That parser needs the numbers of files and
// transactions, which are in the lines "Creation alone" and "Mixed with transactions".
func (p *savedParser) report(lines []string, began int) error {
	if len(lines) < reportLines {
		return fmt.Errorf("the report that begins in line %d is cut off: it has %d of %d lines", began, len(lines), reportLines)
	}
	var s settings
	mixed := int64(0)
	for _, line := range lines {
		if match := madeLine.FindStringSubmatch(line); match != nil {
			s.files, _ = strconv.ParseInt(match[1], 10, 64) // the parser below reports any fault
		}
		if match := mixedLine.FindStringSubmatch(line); match != nil {
			count, _ := strconv.ParseInt(match[1], 10, 64) // the same
			mixed += min(count, math.MaxInt32)
		}
		for _, expression := range []*regexp.Regexp{readLine, appendLine} {
			if match := expression.FindStringSubmatch(line); match != nil {
				count, _ := strconv.ParseInt(match[1], 10, 64) // the same
				s.transactions += min(count, math.MaxInt32)
			}
		}
	}
	// Each transaction creates or deletes a file, and reads one or appends to it; a bias of -1 disables one of the two.
	if mixed > 0 && s.transactions > mixed {
		return fmt.Errorf("in the report that begins in line %d: %d files were read or appended to, and only %d created or deleted, by as many transactions",
			began, s.transactions, mixed)
	}
	s.transactions = max(s.transactions, mixed)
	q := parser{lines: lines}
	var r result
	if err := q.body(&r, s); err != nil {
		return fmt.Errorf("in the report that begins in line %d: %w", began, err)
	}
	if asked := p.out.Parameters[transactions]; asked != "" && asked != strconv.FormatInt(s.transactions, 10) {
		return fmt.Errorf("postmark was told to make %s transactions, and the report has %d", benchmarks.Short(asked), s.transactions)
	}
	p.out.Parameters[files], p.out.Parameters[transactions] = strconv.FormatInt(s.files, 10), strconv.FormatInt(s.transactions, 10)
	p.out.Samples = combine(float64(s.transactions), []result{r})
	return nil
}
