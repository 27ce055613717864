package ior

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
	"parallelfs.dev/operator/benchmarks/openmpi"
)

const (
	// bandwidth is the unit for IOR's MiB/sec, and operations that for its OPs, which are transfers per second.
	bandwidth  = "MiB/s"
	operations = "OPs"
)

var (
	bannerLine = regexp.MustCompile(`^IOR-(\S+): MPI Coordinated Test of Parallel I/O$`)
	// headLine matches a named fact, which all versions print before the results: "api : POSIX" or "api = POSIX". Other lines are refused,
	// except those that match verboseLine or harmlessLine.
	headLine = regexp.MustCompile(`^([A-Za-z][A-Za-z0-9_ ]{1,23}?) *[:=](?: (.*))?$`)
	// verboseLine matches the additional lines of -v, before and between the results.
	verboseLine = regexp.MustCompile(`^(Participating tasks *: \d+|Start time skew across all tasks: [\d.]+ sec|Using synchronized MPI timer` +
		`|Using reorderTasks .*|task \d+ on \S+|Using Time Stamp \d+ \(0x[0-9a-f]+\) for Data Signature|Using stonewalling = \d+ second\(s\).*` +
		`|Commencing (write|read|write check|read check) performance test: .*|delaying \d+ seconds.*|no striping to set` +
		`|(\d+: )?stonewalling pairs accessed.*|Pairs deadlineForStonewallingaccessed: \d+|\[RANK \d+\] open for (reading|writing) file .*)$`)
	// harmlessLine matches warnings that affect no number: an unsupported option of the interface, an overwritten file, or a filesystem of
	// unknown size.
	harmlessLine = regexp.MustCompile(`^(ior )?WARNING: (fsync\(\) (only )?available.*|The file ".*" exists already and will be overwritten` +
		`|Backend returned error during statfs)$`)
	optionsLine = regexp.MustCompile(`^(Options|Summary|Results):$`)
	timeLine    = regexp.MustCompile(`^(stonewallingTime *[:=] *[1-9]|Using stonewalling = [1-9]` +
		`|Command line.* -O stoneWallingStatusFile=|Command line.* -D *=?[0-9])`)
	tableLine  = regexp.MustCompile(`^access +bw\(MiB/s\) `)
	summaryRow = regexp.MustCompile(`^Operation +Max\(MiB\)`)
	rulerLine  = regexp.MustCompile(`^-{6}( +-+)+$`)
	resultLine = regexp.MustCompile(`^(write|read|remove) .* (\d+)$`)
	cellNumber = regexp.MustCompile(`^\d{1,15}(\.\d{1,6})?$`)
	// shortLine matches lines about a transfer that was ended by its time limit.
	shortLine = regexp.MustCompile(`(?i)^WARNING: (Expected aggregate file size|Stat\(\) of aggregate file size` +
		`|Using actual aggregate bytes moved|maybe caused by deadlineForStonewalling)`)
	mostLine = regexp.MustCompile(`^Max (Write|Read): +([\d.]+) MiB/sec \(([\d.]+) MB/sec\)$`)
	endLine  = regexp.MustCompile(`^Finished *: \w{3} \w{3} +\d+ \d\d:\d\d:\d\d \d{4}$`)
	decimal  = regexp.MustCompile(`^\d{1,15}\.\d{2,6}$`)
)

// bareOption matches options that the IO500 application always sets.
var bareOption = regexp.MustCompile(` -O (stoneWallingStatusFile|saveRankPerformanceDetailsCSV)=`)

const summaryLine = "Summary of all tests:"

// Parse parses the report of IOR 3.x and 4.x, text or JSON. For write and read it returns the mean over IOR's iterations, in MiB/s and in
// OPs. A report of another run than the point requires is refused.
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
		out.skipped = read.Remarks
	} else {
		p := parser{Reader: openmpi.Reader{Lines: lines, Skipped: read.Remarks}}
		out, err = p.report()
	}
	if err != nil {
		return benchmarks.Report{}, read.Explain(err)
	}
	samples, err := out.samples(w)
	if err != nil {
		return benchmarks.Report{}, err
	}
	return benchmarks.Report{Version: out.version, Samples: samples, Remarks: out.skipped}, nil
}

// want holds a point's requirements.
type want struct {
	settings
	options    v1alpha1.IORSpec
	operations []v1alpha1.IOROperation
}

// result is a parsed report with one summary row for each operation.
type result struct {
	version string
	rows    []row
	skipped benchmarks.Remarks
}

// row is the summary of one operation.
type row struct {
	// line is the number of its line, or 0 without a line of its own.
	line      int
	operation string
	// maximum, minimum, mean and deviation in MiB/s and in OPs; the latter are missing before 3.2
	bandwidth, operations *[4]float64
	// Parameters of the run.
	api                                           string
	tasks, repetitions, segments, block, transfer int64
	filePerProcess                                bool
	// mebibytes and seconds of the only iteration, or 0 if not printed.
	mebibytes, seconds float64
}

// samples checks the rows and converts them to samples.
func (r result) samples(w *want) ([]benchmarks.Sample, error) {
	var out []benchmarks.Sample
	var found []string
	for _, row := range r.rows {
		fail := func(format string, args ...any) error {
			words := fmt.Sprintf(format, args...)
			return benchmarks.ShortError(fmt.Errorf("line %d: %s: %s", row.line, benchmarks.Short(row.operation), words))
		}
		if row.operation != "write" && row.operation != "read" || slices.Contains(found, row.operation) {
			return nil, fail("the summary holds an operation that IOR does not print there, or twice")
		}
		found = append(found, row.operation)
		if err := row.check(w); err != nil {
			return nil, fail("%v", err)
		}
		if err := row.agree(); err != nil {
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
			if benchmarks.Contradict(row.repetitions, least, most, mean, deviation, near) {
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
			return nil, fmt.Errorf("the summary is of %s, but the point asked for %s", benchmarks.Short(list(found)), list(asked))
		}
	}
	if len(out) == 0 {
		return nil, errors.New("the summary is empty")
	}
	return out, nil
}

// agree compares the numbers of a row with each other: transfers per second with the bytes that they move, and the bytes with their time.
func (r row) agree() error {
	const half, mebi, part = 0.0051, 1 << 20, 2e-6
	if r.operations != nil && r.transfer > 0 {
		size := float64(r.transfer) / mebi
		for i := range r.bandwidth {
			if bw, ops := r.bandwidth[i], r.operations[i]; !benchmarks.Near(bw, ops*size, half+half*size, part) {
				return fmt.Errorf("%.2f OPs of %d bytes are not %.2f MiB/s", ops, r.transfer, bw)
			}
		}
	}
	if r.repetitions == 1 && r.seconds > 0 && r.mebibytes > 0 {
		bw := r.bandwidth[2]
		// The seconds have five digits, the mebibytes one.
		const fifth, tenth = 0.0000051, 0.051
		if !benchmarks.Near(bw*r.seconds, r.mebibytes, half*r.seconds+fifth*bw+tenth, part) {
			return fmt.Errorf("%.1f MiB in %.5f s are not %.2f MiB/s", r.mebibytes, r.seconds, bw)
		}
	}
	return nil
}

// list joins words for a message.
func list(words []string) string {
	if len(words) == 0 {
		return "nothing"
	}
	return strings.Join(words, " and ")
}

// check refuses a row of another run than the point requires.
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
		if zero := fact.got == int64(0); !zero && fact.got != fact.want {
			return fmt.Errorf("%s is %s, but the point asked for %v", fact.what, benchmarks.Short(fmt.Sprint(fact.got)), fact.want)
		}
	}
	return nil
}

// parser reads the lines of a text report.
type parser struct {
	openmpi.Reader
	// facts holds the named facts of the head.
	facts map[string]string
	// titles holds the column titles of the table of results.
	titles []string
	// cells holds the results of the iterations in MiB/s by operation, and most the maximum that is printed below them.
	cells map[string][]cell
	most  map[string]float64
}

// cell is a printed number, with the value of its last digit's place.
type cell struct{ value, step float64 }

// two is that value for a number with two decimals.
const two = 0.01

// near is true if a number, rounded to two decimals, is equal to the unrounded cell.
func (c cell) near(value float64) bool { return math.Abs(c.value-value) <= 0.51*(c.step+two) }

// report parses a whole report.
func (p *parser) report() (result, error) {
	var out result
	timed, err := p.head(&out)
	if err != nil {
		return out, err
	}
	p.titles = strings.Fields(p.At.Text)
	counts, summed, err := p.iterations(timed)
	if err != nil {
		return out, err
	}
	if !summed {
		out.rows, err = p.rows()
	} else {
		err = p.summary(&out)
	}
	if err != nil {
		return out, err
	}
	for _, row := range out.rows {
		if counts[row.operation] != row.repetitions {
			return out, fmt.Errorf("line %d: the summary of %s is of %d iterations, but there are the results of %d",
				row.line, benchmarks.Short(row.operation), row.repetitions, counts[row.operation])
		}
		if err := p.compare(row); err != nil {
			return out, err
		}
	}
	for name := range p.cells {
		if !slices.ContainsFunc(out.rows, func(r row) bool { return r.operation == name }) {
			return out, p.Fail("the summary lacks %s, of which there are results", name)
		}
	}
	err = p.behind()
	out.skipped = p.Skipped
	return out, err
}

// behind parses the lines after the report.
func (p *parser) behind() error {
	for p.Next() {
		switch line := p.At.Text; {
		case bannerLine.MatchString(line):
			return p.Fail("a second run of IOR begins; keep one run in each file")
		case tableLine.MatchString(line), resultLine.MatchString(line), line == summaryLine, summaryRow.MatchString(line),
			endLine.MatchString(line), mostLine.MatchString(line), rulerLine.MatchString(line):
			return p.Unexpected("the end of the output")
		}
		if err := p.Skip(); err != nil {
			return err
		}
	}
	return nil
}

// compare compares a row of the summary with the results of the iterations.
func (p *parser) compare(r row) error {
	cells := p.cells[r.operation]
	if len(cells) == 0 {
		return nil
	}
	most, least, mean, step := cells[0], cells[0], 0.0, 0.0
	for _, c := range cells {
		if c.value > most.value {
			most = c
		}
		if c.value < least.value {
			least = c
		}
		mean += c.value / float64(len(cells))
		step = max(step, c.step)
	}
	summed := r.bandwidth
	if !most.near(summed[0]) || !least.near(summed[1]) || !(cell{mean, step}).near(summed[2]) {
		return fmt.Errorf("line %d: the summary of %s contradicts its results: Max %.2f, Min %.2f and Mean %.2f MiB/s, and the results have %.2f, %.2f and %.2f",
			r.line, benchmarks.Short(r.operation), summed[0], summed[1], summed[2], most.value, least.value, mean)
	}
	if printed, found := p.most[r.operation]; found && !most.near(printed) {
		return fmt.Errorf("line %d: the highest of %s is %.2f MiB/s in one place and %.2f in another",
			r.line, benchmarks.Short(r.operation), printed, most.value)
	}
	return nil
}

// head parses the lines up to the table of results. It returns true if the transfers are limited by time, or if a status file contains the
// end of an earlier one.
func (p *parser) head(out *result) (bool, error) {
	timed := false
	p.facts = map[string]string{}
	for p.Next() {
		line := p.At.Text
		switch banner := bannerLine.FindStringSubmatch(line); {
		case banner != nil && out.version == "":
			out.version = banner[1]
			continue
		case banner != nil:
			return false, p.Fail("a second run of IOR begins, and the first has no results; keep one run in each file")
		case out.version == "":
			if tableLine.MatchString(line) || endLine.MatchString(line) || summaryRow.MatchString(line) || line == summaryLine ||
				strings.HasPrefix(line, "MPI Coordinated") {
				return false, p.Unexpected("what IOR is about to run")
			}
			if err := p.Skip(); err != nil {
				return false, err
			}
			continue
		case tableLine.MatchString(line):
			return timed, nil
		case harmlessLine.MatchString(line), p.verbose(line), optionsLine.MatchString(line):
			timed = timed || timeLine.MatchString(line)
			continue
		}
		fact := headLine.FindStringSubmatch(line)
		if len(fact) < 2 || openmpi.Failed(fact[1]) || strings.HasPrefix(line, "WARNING") || strings.HasPrefix(line, "ERROR") {
			return false, p.Unexpected("what IOR is about to run")
		}
		timed = timed || timeLine.MatchString(line)
		const most = 64
		if len(p.facts) < most {
			p.facts[fact[1]] = fact[2]
		}
	}
	return false, p.CutOff("the results")
}

// verbose is true for a harmless line of -v.
func (p *parser) verbose(line string) bool {
	return verboseLine.MatchString(line) && !strings.Contains(line, "WARNING") && !strings.Contains(line, "ERROR")
}

// iterations parses the results up to the summary, and counts them by operation. summed is false if the report ends without a summary, as
// that of the IO500 application does.
func (p *parser) iterations(timed bool) (counts map[string]int64, summed bool, err error) {
	counts, p.cells, p.most = map[string]int64{}, map[string][]cell{}, map[string]float64{}
	for p.Next() {
		line := p.At.Text
		if match := resultLine.FindStringSubmatch(line); match != nil {
			switch {
			case len(strings.Fields(line)) != len(p.titles):
				return nil, false, p.Unexpected(fmt.Sprintf("a result of %d columns", len(p.titles)))
			case match[2] != strconv.FormatInt(counts[match[1]], 10):
				return nil, false, p.Fail("the result is of iteration %s, but %d comes next", benchmarks.Short(match[2]), counts[match[1]])
			}
			counts[match[1]]++
			if err := p.result(match[1], strings.Fields(line)); err != nil {
				return nil, false, err
			}
			continue
		}
		switch most := mostLine.FindStringSubmatch(line); {
		case line == summaryLine:
			return counts, true, nil
		case endLine.MatchString(line) && len(p.cells) > 0:
			return counts, false, nil
		case most != nil:
			if err := p.highest(most); err != nil {
				return nil, false, err
			}
		case rulerLine.MatchString(line) && len(counts) == 0, p.verbose(line), harmlessLine.MatchString(line),
			timed && shortLine.MatchString(line):
		default:
			return nil, false, p.Unexpected("the result of an iteration")
		}
	}
	if p.bare(counts) {
		return counts, false, nil
	}
	return nil, false, p.CutOff("the summary")
}

// bare is true for the complete output of the IO500 application, which prints no summary and no last line. It contains every result that
// its command line requires. Any other output without a summary may have been cut off before it.
func (p *parser) bare(counts map[string]int64) bool {
	command := p.facts["Command line"] + " "
	if !bareOption.MatchString(command) || len(p.most) > 0 {
		return false
	}
	var asked []string
	for option, name := range map[string]string{" -w ": "write", " -r ": "read"} {
		if strings.Contains(command, option) {
			asked = append(asked, name)
		}
	}
	repetitions, err := strconv.ParseInt(p.facts["repetitions"], 10, 64)
	if err != nil || repetitions < 1 || len(asked) == 0 {
		return false
	}
	for _, name := range asked {
		if counts[name] != repetitions {
			return false
		}
	}
	return true
}

// result parses the numbers of an iteration and compares them: the data moved in the total time must equal the transfers per second times
// the time of the transfers.
func (p *parser) result(operation string, fields []string) error {
	if operation == "remove" {
		return nil
	}
	numbers := map[string]cell{}
	for i, title := range p.titles {
		if i == 0 || title == "iter" {
			continue
		}
		c, err := p.cell(fields[i])
		if err != nil {
			return err
		}
		numbers[title] = c
	}
	bw := numbers["bw(MiB/s)"]
	if bw.value == 0 {
		// It is less than a hundredth; the summary has the exact value.
		p.cells[operation] = append(p.cells[operation], bw)
		return nil
	}
	p.cells[operation] = append(p.cells[operation], bw)
	iops, found := numbers["IOPS"]
	if !found {
		return nil
	}
	const kibi = 1024
	size, total, moving := numbers["xfer(KiB)"], numbers["total(s)"], numbers["wr/rd(s)"]
	here, there := bw.value*total.value, iops.value*size.value/kibi*moving.value
	relative := func(c cell) float64 { return 0.51 * c.step / max(c.value, c.step) }
	if slack := relative(bw) + relative(total) + relative(iops) + relative(size) + relative(moving) + 1e-4; here > 0 && there > 0 &&
		math.Abs(here-there) > slack*max(here, there) {
		return p.Fail("the numbers of the result contradict each other: %v MiB/s in %v s are %.1f MiB, and %v IOPS of %v KiB in %v s are %.1f",
			bw.value, total.value, here, iops.value, size.value, moving.value, there)
	}
	return nil
}

// cell parses a number of the table, which has as many digits as fit.
func (p *parser) cell(text string) (cell, error) {
	value, err := strconv.ParseFloat(text, 64)
	if err != nil || !cellNumber.MatchString(text) {
		if text == "-" || text == "NA" {
			return cell{}, nil
		}
		return cell{}, p.Fail("%q is no number of the form 123.45", benchmarks.Short(text))
	}
	_, digits, _ := strings.Cut(text, ".")
	return cell{value, math.Pow10(-len(digits))}, nil
}

// highest parses the highest result in MiB/s and in MB/s, where 1 MB is a million bytes.
func (p *parser) highest(match []string) error {
	mebi, err := strconv.ParseFloat(match[2], 64)
	mega, err2 := strconv.ParseFloat(match[3], 64)
	const ratio, near, part = 1.048576, 0.011, 1e-6
	if err != nil || err2 != nil || !benchmarks.Near(mebi*ratio, mega, near, part) {
		return p.Fail("%s MiB/s are not %s MB/s", benchmarks.Short(match[2]), benchmarks.Short(match[3]))
	}
	p.most[strings.ToLower(match[1])] = mebi
	return nil
}

// rows creates the rows of a missing summary. They lack transfers per second, because those of a result refer to another time.
func (p *parser) rows() ([]row, error) {
	var out []row
	for _, name := range []string{"write", "read"} {
		cells := p.cells[name]
		if len(cells) == 0 {
			continue
		}
		var values []float64
		for _, c := range cells {
			values = append(values, c.value)
		}
		r := row{line: p.At.Number, operation: name, api: p.facts["api"], repetitions: int64(len(cells)), filePerProcess: p.facts["access"] == "file-per-process"}
		var mean, squares float64
		for _, v := range values {
			mean += v / float64(len(values))
		}
		for _, v := range values {
			squares += (v - mean) * (v - mean)
		}
		r.bandwidth = &[4]float64{slices.Max(values), slices.Min(values), mean, math.Sqrt(squares / float64(len(values)))}
		for fact, number := range map[string]*int64{"tasks": &r.tasks, "segments": &r.segments} {
			*number, _ = strconv.ParseInt(p.facts[fact], 10, 64) // 0 if it is not printed
		}
		out = append(out, r)
		if asked := p.facts["repetitions"]; asked != "" && asked != strconv.FormatInt(r.repetitions, 10) {
			return nil, p.Fail("there are %d results of %s, and %s repetitions were asked for", r.repetitions, name, benchmarks.Short(asked))
		}
	}
	return out, nil
}

// summary parses the summary and the last line.
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
		if p.verbose(p.At.Text) {
			continue
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

// row parses a line of the summary.
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
			return out, p.Fail("%s of the summary is %q, which is no number", title, benchmarks.Short(place(title)))
		}
	}
	out.seconds, _ = strconv.ParseFloat(place("Mean(s)"), 64) // 0 if they are not printed
	if out.mebibytes, err = strconv.ParseFloat(place("aggs(MiB)"), 64); err != nil {
		const mebi = 1 << 20
		bytes, _ := strconv.ParseFloat(place("aggsize"), 64) // the same
		out.mebibytes = bytes / mebi
	}
	return out, nil
}

// numbers parses Max, Min, Mean and StdDev, which are adjacent columns.
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
			return nil, p.Fail("%q is no number of the form 123.45", benchmarks.Short(text))
		}
		out[i] = value
	}
	return &out, nil
}
