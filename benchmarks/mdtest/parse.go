package mdtest

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"parallelfs.dev/operator/api/v1alpha1"
	"parallelfs.dev/operator/benchmarks"
	"parallelfs.dev/operator/benchmarks/openmpi"
)

var (
	startLine   = regexp.MustCompile(`^-- started at .* --$`)
	bannerLine  = regexp.MustCompile(`^mdtest-(\S+) was launched with (\d+) total task\(s\) on \d+ node\(s\)$`)
	itemsLine   = regexp.MustCompile(`^(\d+) tasks, (\d+) (files/directories|files|directories|file)$`)
	summaryLine = regexp.MustCompile(`^SUMMARY(?: (rate|time))?: \(of (\d+) iterations\)$`)
	titleLine   = regexp.MustCompile(`^(Operation +Max +Min +Mean +Std Dev|-+ +--- +--- +---- +-------)$`)
	resultLine  = regexp.MustCompile(`^([A-Z][a-z]+ [a-z]+(?: \(stonewall\))?) *:? +([-+.\w]+) +([-+.\w]+) +([-+.\w]+) +([-+.\w]+)$`)
	endLine     = regexp.MustCompile(`^-- finished at .* --$`)
	// headLine are the other lines before the results that mdtest prints when all goes well. Any other one is refused: mdtest goes on when
	// it could not make, stat or remove something, says so, prints rates, and ends with success.
	headLine = regexp.MustCompile(`^(Command line used: .*|Path *: .*|FS *: .*|Nodemap: [01]+|random seed: \d+` +
		`|(V-0: Rank +\d+ Line +\d+ )?Shifting ranks by \d+ for each phase\.` +
		`|Continue stonewall hit min: \d+ max: \d+ avg: [\d.]+)$`)
	// anyProcess are lines that each process prints as it begins (mdtest.c). mpirun passes on what comes from other nodes when it gets it, so
	// such a line may stand anywhere, also behind the first process's last one.
	anyProcess = regexp.MustCompile(`^WARNING: Read bytes is 0, thus, a read test will actually just open/close$`)
	number     = regexp.MustCompile(`^\d{1,15}\.\d{3}$`)
)

// operation is one that mdtest measures, with its phase and the kind of its items.
type operation struct {
	name  string
	phase v1alpha1.MdtestPhase
	kind  kind
}

// operations are in the order in which mdtest prints them.
var operations = []operation{
	{"Directory creation", v1alpha1.MdtestCreate, directories},
	{"Directory stat", v1alpha1.MdtestStat, directories},
	{"Directory rename", "", directories}, // 4.x, when it runs all phases
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
	// stonewall is what 3.x prints with -W: the rate until the time was up.
	stonewall = "File create (stonewall)"
	// sharedFile lets all processes use one file, and none a directory.
	sharedFile = "-S"
)

// Parse reads the report of mdtest 1.9, 3.x and 4.x. Rates are in ops/s, and times (-Z, -P) in s. An operation that was not asked for,
// which mdtest prints as 0.000, is left out; one that was asked for must be there. The first step says how many items there are, as
// mdtest counts them. In an output that was saved elsewhere (a point without parameters) an operation whose numbers are all 0.000 is
// left out.
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
	if err := p.head(); err != nil {
		return benchmarks.Report{}, read.Explain(err)
	}
	if err := p.tables(); err != nil {
		return benchmarks.Report{}, read.Explain(err)
	}
	if step > 0 {
		p.samples = p.samples[1:]
	}
	return benchmarks.Report{Version: p.version, Samples: p.samples}, nil
}

// want is what a point asked for.
type want struct {
	settings
	options v1alpha1.MdtestSpec
	phases  []v1alpha1.MdtestPhase
}

// asked is true for an operation that the point asked for.
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

// countsAll is true when mdtest has counted items of all directories, though only the deepest hold any, as 1.x does with -I and -L. Its
// rates are those of that number, too; see benchmarks/README.md.
func (w *want) countsAll(version string, count int64) bool {
	return strings.HasPrefix(version, "1.") && w.options.LeafOnly && w.items > 0 && count == int64(w.processes)*w.items*w.directories
}

// parser walks over the lines of an output.
type parser struct {
	openmpi.Reader
	// want is nil when nothing is known of the run.
	want    *want
	version string
	// samples begin with the number of items.
	samples []benchmarks.Sample
}

// head reads up to the first table, and checks that mdtest ran what the point asked for.
func (p *parser) head() error {
	const what = "what mdtest is about to run"
	started, tasks, total := false, "", ""
	for p.Next() {
		line := p.At.Text
		if match := bannerLine.FindStringSubmatch(line); match != nil && started && tasks == "" {
			p.version, tasks = match[1], match[2]
			if p.want != nil && tasks != strconv.Itoa(p.want.processes) {
				return p.Fail("mdtest ran with %s tasks, but the point asked for %d processes", tasks, p.want.processes)
			}
			continue
		}
		if match := itemsLine.FindStringSubmatch(line); match != nil && tasks != "" && total == "" {
			total = match[2]
			if match[1] != tasks {
				return p.Fail("%q, though mdtest was launched with %s tasks", line, tasks)
			}
			if err := p.items(total, match[3] == "file"); err != nil {
				return err
			}
			continue
		}
		switch {
		case startLine.MatchString(line) && !started:
			started = true
		case headLine.MatchString(line):
		case summaryLine.MatchString(line) && total != "":
			return nil
		default:
			return p.Unexpected(what)
		}
	}
	return p.CutOff("the results")
}

// items takes the number of items that mdtest counts.
func (p *parser) items(text string, shared bool) error {
	count, err := strconv.ParseInt(text, 10, 64)
	if err != nil || count > exact {
		return p.Fail("%q is no number of items that can be", text)
	}
	if p.want != nil && !shared && count != p.want.total && !p.want.countsAll(p.version, count) {
		return p.Fail("mdtest counts %d items, but the point asked for %d", count, p.want.total)
	}
	if count == 0 {
		return p.Fail("mdtest made no items: its -n is less than the number of directories")
	}
	p.samples = []benchmarks.Sample{{Name: "items", Unit: "items", Value: float64(count)}}
	return nil
}

// tables reads from the line that begins the first table to the end.
func (p *parser) tables() error {
	seen := map[string]bool{}
	for {
		match := summaryLine.FindStringSubmatch(p.At.Text)
		unit := "ops/s"
		if match[1] == "time" {
			unit = "s"
		}
		count, err := strconv.Atoi(match[2])
		if err != nil || count < 1 || p.want != nil && int64(count) != p.want.iterations {
			return p.Fail("the results are of %s iterations, but the point asked for another number", match[2])
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
	if p.Next() {
		return p.Unexpected("the end of the output")
	}
	return nil
}

// table reads the rows of a table up to the end of the report, or to another table, for which it returns true.
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
		if another || endLine.MatchString(line) {
			return another, p.complete(unit, found)
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

// row reads the numbers of an operation; nil for one that was skipped.
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
			return nil, p.Fail("%q is no number of the form 123.456", text)
		}
	}
	most, least, mean, deviation := values[0], values[1], values[2], values[3]
	// All are rounded to three digits.
	const near = 0.0011
	if least > mean+near || mean > most+near || iterations > 1 && deviation > (most-least)+near {
		return nil, p.Fail("the numbers of %q contradict each other: Max %s, Min %s, Mean %s, Std Dev %s", op.name, texts[0], texts[1], texts[2], texts[3])
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
	if iterations > 1 {
		sample.Within = &benchmarks.Within{Count: iterations, Min: least, Max: most, StdDev: p.sampleDeviation(deviation, iterations)}
	}
	return sample, nil
}

// sampleDeviation is the deviation of a sample (n-1). 4.0 prints that; older versions print that of all values (mdtest.c).
// 3.x has a value for each process of each iteration, which differ by at least what the means of the iterations do: the result is then
// never too small.
func (p *parser) sampleDeviation(printed float64, iterations int) float64 {
	if major, _, _ := strings.Cut(p.version, "."); major == "1" || major == "3" {
		return benchmarks.SampleDeviation(printed, iterations)
	}
	return printed
}

// complete refuses a table that lacks an operation that the point asked for, or that has none at all.
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
