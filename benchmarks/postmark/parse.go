package postmark

import (
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

// Units of a report.
const (
	perSecond = "per second"
	megabytes = "megabytes per second"
	counted   = "files"
)

// units matches the units of data read and written.
const units = "bytes|kilobytes|megabytes"

// Lines of a report in their order; see verbose_report of postmark-1.51.c.
var (
	versionLine = regexp.MustCompile(`^PostMark (v1\.5\d*) : \S+$`)
	totalLine   = regexp.MustCompile(`^(\d+) seconds total$`)
	actionsLine = regexp.MustCompile(`^(\d+) seconds of transactions \((\d+) per second\)$`)
	createdLine = regexp.MustCompile(`^(\d+) created \((\d+) per second\)$`)
	madeLine    = regexp.MustCompile(`^Creation alone: (\d+) files \((\d+) per second\)$`)
	mixedLine   = regexp.MustCompile(`^Mixed with transactions: (\d+) files \((\d+) per second\)$`)
	readLine    = regexp.MustCompile(`^(\d+) read \((\d+) per second\)$`)
	appendLine  = regexp.MustCompile(`^(\d+) appended \((\d+) per second\)$`)
	deletedLine = regexp.MustCompile(`^(\d+) deleted \((\d+) per second\)$`)
	endedLine   = regexp.MustCompile(`^Deletion alone: (\d+) files \((\d+) per second\)$`)
	inLine      = regexp.MustCompile(`^(\d+\.\d+) (` + units + `) read \((\d+\.\d+) (` + units + `) per second\)$`)
	outLine     = regexp.MustCompile(`^(\d+\.\d+) (` + units + `) written \((\d+\.\d+) (` + units + `) per second\)$`)
)

// result is the report of one process.
type result struct {
	version string
	// total and active are the seconds of the whole run and of the transactions.
	total, active float64
	// made and ended are the rates of creating and deleting files before and after the transactions.
	created, made, read, appended, deleted, ended float64
	// in and out are the megabytes read and written.
	in, out float64
	// alone and removed count the files created before the transactions and deleted after them.
	alone, removed float64
}

// Parse parses the report of each process, and combines them like the MPI version in the talk of 2014. benchmarks/README.md describes how,
// and how that is known. postmark exits with 0 after most errors, so any line that a good report does not contain is refused.
func (Tool) Parse(spec *v1alpha1.BenchmarkRunSpec, point benchmarks.Point, _ int, output []byte) (benchmarks.Report, error) {
	s, err := check(spec, point)
	if err != nil {
		return benchmarks.Report{}, err
	}
	outputs, err := benchmarks.SplitRanks(output, int(s.processes))
	if err != nil {
		return benchmarks.Report{}, err
	}
	var results []result
	for rank, text := range outputs {
		if err := benchmarks.BoundLines(text); err != nil {
			return benchmarks.Report{}, fmt.Errorf("process %d: %w", rank, err)
		}
		r, err := s.parse(string(text))
		if err != nil {
			return benchmarks.Report{}, fmt.Errorf("process %d: %w", rank, err)
		}
		if len(results) > 0 && r.version != results[0].version {
			return benchmarks.Report{}, fmt.Errorf("process %d ran postmark %s and process 0 %s; make their images the same",
				rank, benchmarks.Short(r.version), benchmarks.Short(results[0].version))
		}
		results = append(results, r)
	}
	return benchmarks.Report{Version: results[0].version, Samples: combine(float64(s.transactions), results)}, nil
}

// combine combines the reports of all processes. Operations that were not run at all, because of a bias, are left out.
func combine(transactions float64, results []result) []benchmarks.Sample {
	var sum, longest, rate result
	for _, r := range results {
		longest.total, longest.active = max(longest.total, r.total), max(longest.active, r.active)
		sum.created += r.created
		sum.deleted += r.deleted
		rate.made += r.made
		rate.ended += r.ended
		rate.read += r.read / r.active
		rate.appended += r.appended / r.active
		rate.in += r.in / r.total
		rate.out += r.out / r.total
	}
	out := []benchmarks.Sample{
		{Name: "transactions", Unit: perSecond, Value: transactions * float64(len(results)) / longest.active},
		{Name: "created", Unit: perSecond, Value: sum.created / longest.total},
		{Name: "creation alone", Unit: perSecond, Value: rate.made},
		{Name: "read", Unit: perSecond, Value: rate.read},
		{Name: "appended", Unit: perSecond, Value: rate.appended},
		{Name: "deleted", Unit: perSecond, Value: sum.deleted / longest.total},
		{Name: "deletion alone", Unit: perSecond, Value: rate.ended},
		{Name: "data read", Unit: megabytes, Value: rate.in},
		{Name: "data written", Unit: megabytes, Value: rate.out},
		{Name: "total files", Unit: counted, Value: sum.created},
	}
	return slices.DeleteFunc(out, func(s benchmarks.Sample) bool { return s.Value == 0 })
}

// parser reads the lines of one process.
type parser struct {
	lines []string
	at    int
}

// next returns the next line with text, without the prompts before it; empty at the end of the output.
func (p *parser) next() string {
	for p.at < len(p.lines) {
		line := p.lines[p.at]
		p.at++
		for strings.HasPrefix(line, "pm>") {
			line = line[len("pm>"):]
		}
		if line = strings.TrimSpace(line); line != "" {
			return line
		}
	}
	return ""
}

func (p *parser) fail(line, want string) error {
	switch {
	case line == "":
		return fmt.Errorf("its output ends before %s", want)
	case strings.HasSuffix(line, "out of files!"):
		return fmt.Errorf("its line %d: postmark ran out of files; make %s larger, %s smaller, or postmark.biasCreate larger", p.at, files, transactions)
	}
	return fmt.Errorf("its line %d: found %q instead of %s", p.at, benchmarks.Short(line), want)
}

// literal parses a constant line, ignoring the progress dots.
func (p *parser) literal(want string) error {
	if line := p.next(); strings.ReplaceAll(line, ".", "") != want {
		return p.fail(line, strconv.Quote(want))
	}
	return nil
}

// match parses a line and returns its groups.
func (p *parser) match(expression *regexp.Regexp, want string) ([]string, error) {
	line := p.next()
	groups := expression.FindStringSubmatch(line)
	if groups == nil {
		return nil, p.fail(line, want)
	}
	return groups[1:], nil
}

// number parses a whole number of at most 12 digits, which a float64 represents exactly.
func number(text string) (float64, error) {
	if len(text) > 12 {
		return 0, fmt.Errorf("%q is too large", benchmarks.Short(text))
	}
	return strconv.ParseFloat(text, 64)
}

// rate parses a line with a count and postmark's rate in whole files per second, and checks that they match. seconds is 0 if it is not
// printed.
func (p *parser) rate(expression *regexp.Regexp, want string, seconds float64) (count, perSecond float64, err error) {
	groups, err := p.match(expression, want)
	if err != nil {
		return 0, 0, err
	}
	count, err = number(groups[0])
	perSecond, err2 := number(groups[1])
	if err = errors.Join(err, err2); err != nil {
		return 0, 0, fmt.Errorf("its line %d: %w", p.at, err)
	}
	// For other files, the rate is only known to be based on a whole number of seconds of at least 1.
	whole := perSecond == 0 || perSecond == math.Floor(count/math.Floor(count/perSecond))
	if seconds > 0 && perSecond != float64(int64(count/seconds)) || perSecond > count || !whole {
		return 0, 0, fmt.Errorf("its line %d: %s: %.0f in %.0f seconds are not %.0f per second", p.at, want, count, seconds, perSecond)
	}
	return count, perSecond, nil
}

// seconds parses a number of seconds; postmark never prints less than 1.
func (p *parser) seconds(text string) (float64, error) {
	value, err := number(text)
	if err == nil && value < 1 {
		err = errors.New("0 seconds can't be")
	}
	if err != nil {
		return 0, fmt.Errorf("its line %d: %w", p.at, err)
	}
	return value, nil
}

// data parses a line with an amount of data, in megabytes.
func (p *parser) data(expression *regexp.Regexp, want string, seconds float64) (float64, error) {
	groups, err := p.match(expression, want)
	if err != nil {
		return 0, err
	}
	value, err := strconv.ParseFloat(groups[0], 64)
	if err != nil {
		return 0, fmt.Errorf("its line %d: %q is too large", p.at, benchmarks.Short(groups[0]))
	}
	perSecond, err := strconv.ParseFloat(groups[2], 64)
	if err != nil {
		return 0, fmt.Errorf("its line %d: %q is too large", p.at, benchmarks.Short(groups[2]))
	}
	for _, number := range [][2]string{{groups[0], groups[1]}, {groups[2], groups[3]}} {
		if _, decimals, _ := strings.Cut(number[0], "."); number[1] != "bytes" && len(decimals) != 2 {
			return 0, fmt.Errorf("its line %d: %s: %q has not two digits behind the point", p.at, want, benchmarks.Short(number[0]))
		}
	}
	if seconds == 1 && groups[1] == groups[3] && groups[0] != groups[2] {
		return 0, fmt.Errorf("its line %d: %s: %s %s in a second are not %s", p.at, want,
			benchmarks.Short(groups[0]), benchmarks.Short(groups[1]), benchmarks.Short(groups[2]))
	}
	// Both are rounded to two decimals, each in its own unit.
	const half = 0.0051
	amount, rate := inMegabytes(value, groups[1]), inMegabytes(perSecond, groups[3])
	if !benchmarks.Near(amount/seconds, rate, inMegabytes(half, groups[1])/seconds+inMegabytes(half, groups[3]), 1e-6) {
		return 0, fmt.Errorf("its line %d: %s: %s %s in %.0f seconds are not %s %s per second", p.at, want,
			benchmarks.Short(groups[0]), benchmarks.Short(groups[1]), seconds, benchmarks.Short(groups[2]), benchmarks.Short(groups[3]))
	}
	return amount, nil
}

// inMegabytes converts an amount to megabytes.
func inMegabytes(value float64, unit string) float64 {
	switch unit {
	case "bytes":
		return value / (benchmarks.Kilo * benchmarks.Kilo)
	case "kilobytes":
		return value / benchmarks.Kilo
	default:
		return value
	}
}

// parse parses the report of one process.
func (s settings) parse(text string) (result, error) {
	p := parser{lines: strings.Split(text, "\n")}
	var r result
	groups, err := p.match(versionLine, "the version of postmark, which must be 1.5")
	if err != nil {
		return r, err
	}
	r.version = groups[0]
	progress := []string{"Creating filesDone", "Performing transactionsDone", "Deleting filesDone"}
	if s.subdirectories > 0 {
		progress = append(append([]string{"Creating subdirectoriesDone"}, progress...), "Deleting subdirectoriesDone")
	}
	for _, line := range append(progress, "Time:") {
		if err := p.literal(line); err != nil {
			return r, err
		}
	}
	err = p.body(&r, s)
	return r, err
}

// body parses a report after the line "Time:".
func (p *parser) body(r *result, s settings) error {
	if err := p.times(r, s); err != nil {
		return err
	}
	if err := p.files(r, s); err != nil {
		return err
	}
	if err := p.literal("Data:"); err != nil {
		return err
	}
	var err error
	if r.in, err = p.data(inLine, "the data read", r.total); err != nil {
		return err
	}
	if r.out, err = p.data(outLine, "the data written", r.total); err != nil {
		return err
	}
	if line := p.next(); line != "" {
		return p.fail(line, "the end")
	}
	return p.between(r)
}

// between checks the files created and deleted outside of the transactions against the time outside of the transactions, of which only the
// sum is printed. At the two rates, both together take about that time. postmark counts whole seconds, and at least one.
func (p *parser) between(r *result) error {
	const slack = 3
	shortest := r.alone/(r.made+1) + r.removed/(r.ended+1)
	longest := r.alone/max(r.made, 1) + r.removed/max(r.ended, 1)
	if left := r.total - r.active; shortest > left+slack || longest < left-slack {
		return fmt.Errorf("its lines until %d: making %.0f files at %.0f per second and deleting %.0f at %.0f does not take the %.0f seconds that the transactions leave",
			p.at, r.alone, r.made, r.removed, r.ended, left)
	}
	return nil
}

func (p *parser) times(r *result, s settings) error {
	groups, err := p.match(totalLine, "the seconds in total")
	if err != nil {
		return err
	}
	if r.total, err = p.seconds(groups[0]); err != nil {
		return err
	}
	if groups, err = p.match(actionsLine, "the seconds of transactions"); err != nil {
		return err
	}
	if r.active, err = p.seconds(groups[0]); err != nil {
		return err
	}
	perSecond, err := number(groups[1])
	if err != nil || perSecond != float64(int64(float64(s.transactions)/r.active)) || r.active > r.total {
		return fmt.Errorf("its line %d: %d transactions in %.0f of %.0f seconds are not %s per second",
			p.at, s.transactions, r.active, r.total, benchmarks.Short(groups[1]))
	}
	return nil
}

func (p *parser) files(r *result, s settings) error {
	if err := p.literal("Files:"); err != nil {
		return err
	}
	var mixed, mixedRemoved float64
	for _, line := range []struct {
		expression    *regexp.Regexp
		what          string
		seconds       float64
		count, second *float64
	}{
		{createdLine, "the files created", r.total, &r.created, nil},
		{madeLine, "the files created before the transactions", 0, &r.alone, &r.made},
		{mixedLine, "the files created by transactions", r.active, &mixed, nil},
		{readLine, "the files read", r.active, &r.read, nil},
		{appendLine, "the files appended to", r.active, &r.appended, nil},
		{deletedLine, "the files deleted", r.total, &r.deleted, nil},
		{endedLine, "the files deleted after the transactions", 0, &r.removed, &r.ended},
		{mixedLine, "the files deleted by transactions", r.active, &mixedRemoved, nil},
	} {
		count, perSecond, err := p.rate(line.expression, line.what, line.seconds)
		if err != nil {
			return err
		}
		*line.count = count
		if line.second != nil {
			*line.second = perSecond
		}
	}
	if r.alone != float64(s.files) || r.alone+mixed != r.created || r.removed+mixedRemoved != r.deleted {
		return fmt.Errorf("its lines until %d: %.0f created of which %.0f before the transactions and %.0f by them, %.0f deleted of which %.0f and %.0f: "+
			"that does not add up to the %d files of the point", p.at, r.created, r.alone, mixed, r.deleted, r.removed, mixedRemoved, s.files)
	}
	return nil
}
