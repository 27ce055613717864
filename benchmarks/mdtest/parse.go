package mdtest

import (
	"fmt"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"parallelfs.dev/operator/api/v1alpha1"
	"parallelfs.dev/operator/benchmarks"
	"parallelfs.dev/operator/benchmarks/openmpi"
)

var (
	startLine    = regexp.MustCompile(`^-- started at (.*) --$`)
	bannerLine   = regexp.MustCompile(`^mdtest-(\S+) was launched with (\d+) total task\(s\) on \d+ node\(s\)$`)
	itemsLine    = regexp.MustCompile(`^(\d+) tasks, (\d+) (files/directories|files|directories|file)$`)
	statusOption = regexp.MustCompile(`['" ]-x['" =]`)
	summaryLine  = regexp.MustCompile(`^SUMMARY(?: (rate|time))?(?: (\(in [a-z/]+\)))?: \(of (\d+) iterations\)$`)
	titleLine    = regexp.MustCompile(`^(Operation +Max +Min +Mean +Std Dev|-+ +--- +--- +---- +-------)$`)
	resultLine   = regexp.MustCompile(`^([A-Z][a-z]+ [a-z]+(?: \(stonewall\))?) *:? +([-+.\w]+) +([-+.\w]+) +([-+.\w]+) +([-+.\w]+)$`)
	endLine      = regexp.MustCompile(`^-- finished at (.*) --$`)
	// knownVersion matches the versions with known deviations and tables.
	knownVersion = regexp.MustCompile(`^(1\.[89]\.\d{1,2}|[34]\.\d\.\d{1,2})([-+]\w+)?$`)
	// headLine matches the other lines before the results of a successful run. Others are refused: if mdtest could not create, stat or remove
	// something, it prints an error, continues, prints rates, and exits with 0.
	headLine = regexp.MustCompile(`^(Command line used: .*|Path *:.*|FS *:.*|Nodemap: [01]+|random seed: \d+` +
		`|(V-0: Rank +\d+ Line +\d+ )?Shifting ranks by \d+ for each phase\.` +
		`|WARNING: could not read stonewall status file|stonewall rank \d+: \d+ of \d+)$`)
	// stonewallLine contains the number of items that the processes have created at the time limit. Each process then continues up to the
	// maximum.
	stonewallLine = regexp.MustCompile(`^Continue stonewall hit min: \d+ max: (\d+) avg: [\d.]+$`)
	// verboseLine matches the additional lines of -v: steps, the values of all options, and the rates of each iteration, which the summary
	// repeats.
	verboseLine = regexp.MustCompile(`^(V-\d+: .*|[a-z_]+ *: (True|False|-?\d+)|dirpath\(s\):|/\S*|Operation +Duration +Rate|-+ +-+ +-+)$`)
	// anyProcess matches lines that each process prints at its start (mdtest.c). mpirun forwards lines from other nodes when they arrive, so
	// such a line may be anywhere, even after the first process's last line.
	anyProcess = regexp.MustCompile(`^WARNING: Read bytes is 0, thus, a read test will actually just open/close$`)
	number     = regexp.MustCompile(`^\d{1,15}\.\d{3}$`)
)

// operation is an operation that mdtest measures, with its phase and the kind of its items.
type operation struct {
	name  string
	phase v1alpha1.MdtestPhase
	kind  kind
}

// operations lists the operations in mdtest's order of output.
var operations = []operation{
	{"Directory creation", v1alpha1.MdtestCreate, directories},
	{"Directory stat", v1alpha1.MdtestStat, directories},
	{"Directory rename", "", directories}, // 4.x, if it runs all phases
	{"Directory removal", v1alpha1.MdtestRemove, directories},
	{"File creation", v1alpha1.MdtestCreate, files},
	{"File stat", v1alpha1.MdtestStat, files},
	{"File read", v1alpha1.MdtestRead, files},
	{"File removal", v1alpha1.MdtestRemove, files},
	{stonewall, "", files},
	{"Tree creation", v1alpha1.MdtestCreate, trees},
	{"Tree removal", v1alpha1.MdtestRemove, trees},
}

// kind is the kind of item of an operation.
type kind int

const (
	directories kind = iota
	files
	trees
)

const (
	// stonewall is the rate until the time limit, which 3.x prints with -W.
	stonewall = "File create (stonewall)"
	// sharedFile is the option that lets all processes use one file and no directories.
	sharedFile = "-S"
)

// Parse parses the report of mdtest 1.9, 3.x and 4.x, up to 4.1.0+dev. Rates are in ops/s, and times (-Z, -P) in s. An operation that was
// not requested, which mdtest prints as 0.000, is left out; a requested one must be there. The first step also returns the number of items
// as mdtest counts them. In an output that was saved elsewhere (a point without parameters), an operation with only 0.000 is left out.
func (Tool) Parse(spec *v1alpha1.BenchmarkRunSpec, point benchmarks.Point, step int, output []byte) (benchmarks.Report, error) {
	p := parser{}
	if len(point.Parameters) > 0 {
		s, err := check(spec, point)
		if err != nil {
			return benchmarks.Report{}, err
		}
		all := steps(spec)
		if step < 0 || step >= len(all) {
			return benchmarks.Report{}, fmt.Errorf("there is no step %d; the point has %d", step, len(all))
		}
		p.want = &want{settings: s, options: options(spec), phases: all[step]}
	}
	read, err := openmpi.Read(output)
	if err != nil {
		return benchmarks.Report{}, err
	}
	p.Lines = slices.DeleteFunc(read.Lines, func(l openmpi.Line) bool { return anyProcess.MatchString(l.Text) })
	p.Skipped = read.Remarks
	if err := p.head(); err != nil {
		return benchmarks.Report{}, read.Explain(err)
	}
	if err := p.tables(); err != nil {
		return benchmarks.Report{}, read.Explain(err)
	}
	if step > 0 {
		p.samples = p.samples[1:]
	}
	return benchmarks.Report{Version: p.version, Samples: p.samples, Remarks: p.Skipped}, nil
}

// want holds a point's requirements.
type want struct {
	settings
	options v1alpha1.MdtestSpec
	phases  []v1alpha1.MdtestPhase
}

// asked is true for an operation that the point requires.
func (w *want) asked(o operation) bool {
	switch {
	case !slices.Contains(w.phases, o.phase):
		return false
	case o.kind == directories:
		return !w.options.FilesOnly && !slices.Contains(w.options.Args, v1alpha1.BenchmarkArgument(sharedFile))
	case o.kind == files:
		return !w.options.DirectoriesOnly
	}
	return true
}

// countsAll is true if mdtest has counted items in all directories although only the deepest contain any, as 1.x does with -I and -L. Its
// rates are based on that number, too; see benchmarks/README.md.
func (w *want) countsAll(version string, count int64) bool {
	return strings.HasPrefix(version, "1.") && w.options.LeafOnly && w.items > 0 && count == int64(w.processes)*w.items*w.directories
}

// parser reads the lines of an output.
type parser struct {
	openmpi.Reader
	// want is nil if nothing is known about the run.
	want    *want
	version string
	// began and ended are the times in the first and last lines.
	began, ended string
	// command is the line with the command line, or empty if it is not printed.
	command string
	tasks   int64
	// total is the number of items, or 0 if all processes use one file. reached is the number of items of a run that continues until all
	// processes have created as many as the fastest had at the time limit.
	total, reached int64
	// resumed is true if a status file of an earlier run contains the number of existing items.
	resumed bool
	// samples begins with the number of items.
	samples []benchmarks.Sample
	// rows holds the rows of each table by unit.
	rows map[string][]row
}

// row is a table's row for an operation.
type row struct {
	line              int
	op                operation
	most, least, mean float64
}

// head parses the lines up to the first table, and checks that mdtest ran with the parameters of the point.
func (p *parser) head() error { //nolint:gocyclo // one case for each form of a line
	const what = "what mdtest is about to run"
	started, tasks, total := false, "", ""
	for p.Next() {
		line := p.At.Text
		if !started && !startLine.MatchString(line) {
			if inside(line) {
				return p.Unexpected("the line with which mdtest begins")
			}
			if err := p.Skip(); err != nil {
				return err
			}
			continue
		}
		if match := bannerLine.FindStringSubmatch(line); match != nil && started && tasks == "" {
			p.version, tasks = match[1], match[2]
			if !knownVersion.MatchString(p.version) {
				return p.Fail("mdtest %s has a form that is not known; those of 1.8 to 4.1 are", benchmarks.Short(p.version))
			}
			var err error
			if p.tasks, err = strconv.ParseInt(tasks, 10, 32); err != nil || p.tasks < 1 {
				return p.Fail("%s tasks can't be", benchmarks.Short(tasks))
			}
			if p.want != nil && tasks != strconv.Itoa(p.want.processes) {
				return p.Fail("mdtest ran with %s tasks, but the point asked for %d processes", benchmarks.Short(tasks), p.want.processes)
			}
			continue
		}
		if match := itemsLine.FindStringSubmatch(line); match != nil && tasks != "" && total == "" {
			total = match[2]
			if match[1] != tasks {
				return p.Fail("%q, though mdtest was launched with %s tasks", benchmarks.Short(line), benchmarks.Short(tasks))
			}
			if err := p.items(total, match[3] == "file"); err != nil {
				return err
			}
			continue
		}
		if match := stonewallLine.FindStringSubmatch(line); match != nil && total != "" {
			most, err := strconv.ParseInt(match[1], 10, 64)
			if err != nil || most > exact/p.tasks {
				return p.Fail("%s items of a process can't be", benchmarks.Short(match[1]))
			}
			p.reached = most * p.tasks
			continue
		}
		switch {
		case startLine.MatchString(line) && !started:
			started, p.began = true, startLine.FindStringSubmatch(line)[1]
		case startLine.MatchString(line):
			return p.Fail("a second run of mdtest begins, and the first has not ended; keep one run in each file")
		case headLine.MatchString(line), verboseLine.MatchString(line) && !openmpi.Failed(line):
			if strings.HasPrefix(line, "Command line used:") {
				p.command = line
			}
			p.resumed = p.resumed || strings.HasPrefix(line, "Command line used:") && statusOption.MatchString(line)
		case summaryLine.MatchString(line) && total != "":
			return nil
		default:
			return p.Unexpected(what)
		}
	}
	return p.CutOff("the results")
}

// inside is true for a line that occurs only in a report.
func inside(line string) bool {
	return bannerLine.MatchString(line) || itemsLine.MatchString(line) || summaryLine.MatchString(line) || titleLine.MatchString(line) ||
		resultLine.MatchString(line) || endLine.MatchString(line) || strings.HasPrefix(line, "Command line used:")
}

// items parses the number of items that mdtest counts.
func (p *parser) items(text string, shared bool) error {
	count, err := strconv.ParseInt(text, 10, 64)
	if err != nil || count > exact {
		return p.Fail("%q is no number of items that can be", benchmarks.Short(text))
	}
	if p.want != nil && !shared && count != p.want.total && !p.want.countsAll(p.version, count) {
		return p.Fail("mdtest counts %d items, but the point asked for %d", count, p.want.total)
	}
	if count == 0 {
		return p.Fail("mdtest made no items: its -n is less than the number of directories")
	}
	if !shared {
		p.total = count
	}
	p.samples = []benchmarks.Sample{{Name: "items", Unit: "items", Value: float64(count)}}
	return nil
}

// tables parses from the first line of the first table to the end.
func (p *parser) tables() error {
	seen, proof := map[string]bool{}, false
	p.rows = map[string][]row{}
	for {
		match := summaryLine.FindStringSubmatch(p.At.Text)
		unit := "ops/s"
		if match[1] == "time" {
			unit = "s"
		}
		const most = 1 << 20
		count, err := strconv.Atoi(match[3])
		if err != nil || count < 1 || count > most || p.want != nil && int64(count) != p.want.iterations {
			return p.Fail("the results are of %s iterations, but the point asked for another number", benchmarks.Short(match[3]))
		}
		// 4.1 prints a unit after the title. For times this unit is wrong, because they are in s. agree proves that.
		if titled := match[2]; titled != "" && unit == "ops/s" && titled != "(in ops/sec)" {
			return p.Unexpected("a table of rates in ops/sec")
		} else if titled != "" && unit == "s" {
			proof = true
		}
		if err := p.titled(unit); err != nil {
			return err
		}
		if seen[unit] {
			return p.Fail("there is a second table of the same kind: this is the output of several runs")
		}
		seen[unit] = true
		more, err := p.table(unit, count)
		if err != nil {
			return err
		}
		if !more {
			break
		}
	}
	if err := p.agree(proof); err != nil {
		return err
	}
	for p.Next() {
		if startLine.MatchString(p.At.Text) {
			return p.Fail("a second run of mdtest begins; keep one run in each file")
		}
		if inside(p.At.Text) {
			return p.Unexpected("the end of the output")
		}
		if err := p.Skip(); err != nil {
			return err
		}
	}
	return nil
}

// timeOption matches the options for times: -Z prints them instead of rates, and -P in addition.
var timeOption = regexp.MustCompile(`['" ]-[A-Za-z]*([ZP])`)

// titled refuses a table that the command line does not request.
func (p *parser) titled(unit string) error {
	times, rates := false, true
	for _, match := range timeOption.FindAllStringSubmatch(p.command, -1) {
		times = true
		rates = rates && match[1] != "Z"
	}
	switch {
	case p.command == "":
	case unit == "s" && !times:
		return p.Fail("the table is called one of times, which mdtest prints only with -Z or -P")
	case unit != "s" && !rates && !strings.Contains(p.command, "P"):
		return p.Fail("the table is called one of rates, though mdtest was called with -Z, which prints times")
	}
	return nil
}

// agree compares the two tables: the highest rate corresponds to the shortest time, and their product is the number of items. proof
// requires that number, because the title of the times contains another unit.
func (p *parser) agree(proof bool) error {
	proven := !proof
	for _, t := range p.rows["s"] {
		i := slices.IndexFunc(p.rows["ops/s"], func(r row) bool { return r.op == t.op })
		if i < 0 {
			if len(p.rows["ops/s"]) > 0 {
				return fmt.Errorf("line %d: there is a time of %q and no rate", t.line, t.op.name)
			}
			continue
		}
		r := p.rows["ops/s"][i]
		// Rates and times are rounded to three decimals.
		const half, part = 0.0006, 2e-6
		first, second := r.most*t.least, r.least*t.most
		slack := func(rate, time float64) float64 { return half*rate + half*time + part*rate*time }
		if math.Abs(first-second) > slack(r.most, t.least)+slack(r.least, t.most) {
			return fmt.Errorf("line %d: the times of %q contradict its rates in line %d: the highest rate times the least time is %.0f, the lowest times the most %.0f",
				t.line, t.op.name, r.line, first, second)
		}
		if t.op.kind == trees || p.total == 0 {
			continue
		}
		switch items := float64(p.total); {
		case math.Abs(first-items) <= slack(r.most, t.least), p.reached > 0 && math.Abs(first-float64(p.reached)) <= slack(r.most, t.least):
			proven = true
		case p.resumed && first <= items+slack(r.most, t.least):
			// The number of items from an earlier run is not printed. If the times are in s, it is a whole number for each process.
		default:
			return fmt.Errorf("line %d: the times of %q contradict its rates in line %d: rate times time is %.0f, and there are %d items",
				t.line, t.op.name, r.line, first, p.total)
		}
	}
	return p.prove(proven)
}

// prove refuses times whose title contains another unit than s, unless they are proven to be in s. If a status file leaves this open, the
// clock decides: in ms, the operations would have taken a thousandth of the time between the first and last lines.
func (p *parser) prove(proven bool) error {
	if proven || len(p.rows["s"]) == 0 {
		return nil
	}
	sum := 0.0
	for _, t := range p.rows["s"] {
		sum += t.mean
	}
	const layout, slack, least = "01/02/2006 15:04:05", 2, 0.1
	begin, err := time.Parse(layout, p.began)
	end, err2 := time.Parse(layout, p.ended)
	span := end.Sub(begin).Seconds()
	if err == nil && err2 == nil && sum <= span+slack && sum >= least*span && span > slack {
		return nil
	}
	return p.Fail("the title of the times names another unit than s, and nothing in the report proves which one it is; run mdtest without -P")
}

// table parses the rows of a table up to the end of the report. It returns true if another table follows.
func (p *parser) table(unit string, iterations int) (bool, error) {
	found, titles := map[string]bool{}, 0
	last := -1
	for p.Next() {
		line := p.At.Text
		if titles < 2 && titleLine.MatchString(line) {
			titles++
			continue
		}
		another := summaryLine.MatchString(line)
		if end := endLine.FindStringSubmatch(line); another || end != nil {
			if end != nil {
				p.ended = end[1]
			}
			return another, p.complete(unit, found)
		}
		if strings.HasPrefix(line, "V-") && verboseLine.MatchString(line) && !openmpi.Failed(line) {
			continue
		}
		match := resultLine.FindStringSubmatch(line)
		if match == nil || titles < 2 {
			return false, p.Unexpected("the rate or time of an operation")
		}
		place := slices.IndexFunc(operations, func(o operation) bool { return o.name == match[1] })
		if place <= last {
			return false, p.Unexpected("an operation of mdtest that comes next in its order")
		}
		last = place
		sample, err := p.row(place, match[2:], unit, iterations)
		if err != nil {
			return false, err
		}
		if sample != nil {
			found[sample.Name] = true
			p.samples = append(p.samples, *sample)
		}
	}
	return false, p.CutOff(`its last line ("-- finished at ... --")`)
}

// row parses the numbers of an operation, and returns nil for one that was skipped.
func (p *parser) row(place int, texts []string, unit string, iterations int) (*benchmarks.Sample, error) {
	op := operations[place]
	sample := &benchmarks.Sample{Name: op.name, Unit: unit}
	if op.name == stonewall {
		if texts[0] != "NA" || texts[1] != "NA" || !number.MatchString(texts[2]) || texts[3] != "NA" {
			return nil, p.Unexpected("the rate until the time was up")
		}
		var err error
		sample.Value, err = strconv.ParseFloat(texts[2], 64)
		return sample, err
	}
	var values [4]float64
	for i, text := range texts {
		var err error
		if values[i], err = strconv.ParseFloat(text, 64); err != nil || !number.MatchString(text) {
			return nil, p.Fail("%q is no number of the form 123.456", benchmarks.Short(text))
		}
	}
	most, least, mean, deviation := values[0], values[1], values[2], values[3]
	// All are rounded to three decimals. 3.3 has a value for each process of each iteration.
	const near = 0.0011
	count := int64(iterations)
	if strings.HasPrefix(p.version, "3.") && p.tasks > 1 {
		if count *= p.tasks; most == least {
			count = int64(iterations)
		}
	}
	if benchmarks.Contradict(count, least, most, mean, deviation, near) {
		return nil, p.Fail("the numbers of %q contradict each other: Max %s, Min %s, Mean %s, Std Dev %s", op.name,
			benchmarks.Short(texts[0]), benchmarks.Short(texts[1]), benchmarks.Short(texts[2]), benchmarks.Short(texts[3]))
	}
	asked := p.want != nil && p.want.asked(op)
	if most == 0 {
		if unit == "s" && asked {
			return sample, nil // it took less than half a millisecond
		}
		return nil, nil //nolint:nilnil // there is nothing, and nothing is wrong with that
	}
	if p.want != nil && !asked && op.phase != "" {
		return nil, p.Fail("the report holds %q, which the point did not ask for", op.name)
	}
	if least == 0 && unit == "ops/s" {
		return nil, p.Fail("%q failed in one of its iterations, or for a process: its lowest rate is 0", op.name)
	}
	sample.Value = mean
	p.rows[unit] = append(p.rows[unit], row{p.At.Number, op, most, least, mean})
	if iterations > 1 {
		sample.Within = &benchmarks.Within{Count: iterations, Min: least, Max: most, StdDev: p.sampleDeviation(deviation, iterations)}
	}
	return sample, nil
}

// sampleDeviation is the deviation of a sample (n-1). Version 4.0 prints it; older versions print the deviation of the whole set
// (mdtest.c). Version 3.x has a value for each process of each iteration. These values differ at least as much as the means of the
// iterations, so the result is never too small.
func (p *parser) sampleDeviation(printed float64, iterations int) float64 {
	if major, _, _ := strings.Cut(p.version, "."); major == "1" || major == "3" {
		return benchmarks.SampleDeviation(printed, iterations)
	}
	return printed
}

// complete refuses a table that lacks a required operation, or that is empty.
func (p *parser) complete(unit string, found map[string]bool) error {
	if len(found) == 0 {
		return p.Fail("the report has no result")
	}
	if p.want == nil {
		return nil
	}
	for _, o := range operations {
		if !found[o.name] && o.phase != "" && p.want.asked(o) {
			return p.Fail("the report ends without %q in %s, which the point asked for", o.name, unit)
		}
	}
	return nil
}
