// Package report turns the complete results of a BenchmarkRun or BenchmarkSuite into documents for people: one self-contained HTML file,
// Markdown, and charts as SVG and PNG. It measures and computes nothing: all numbers are from the document or from package stats.
package report

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"sigs.k8s.io/yaml"

	"parallelfs.dev/operator/api/v1alpha1"
	"parallelfs.dev/operator/benchmarks/results"
	"parallelfs.dev/operator/benchmarks/stats"
)

// Report is a document that is ready to be written in any format.
type Report struct {
	bars  ErrorBars
	title string
	kind  string
	// facts holds the most important facts.
	facts []fact
	// best holds the best points, and verdicts the comparisons with a baseline.
	best     []bestView
	verdicts []verdictView
	figures  []stats.Figure
	problems []problem
	// expectations holds the verdicts on what was expected of the runs.
	expectations []expectationView
	sections     []section
	runs         []runView
}

// fact is a name with a text.
type fact struct{ Name, Text string }

// problem is a point without a result or with a repeated attempt, and the reason.
type problem struct {
	Run, Point, State, Why string
}

// section is a sheet with its charts and tables.
type section struct {
	sheet  *sheet
	charts []chart
}

// runView holds the facts about one run besides its numbers.
type runView struct {
	Name string
	// Provenance holds the systems and software of the measurement.
	Provenance []fact
	Clients    []v1alpha1.NodeProvenance
	Servers    []results.Server
	Targets    []results.Target
	Telemetry  []telemetryView
	Commands   []commandView
	Spec       string
	FileSystem string
}

type bestView struct{ Run, Metric, Value, Unit, At string }

// expectationView is the verdict on one expectation.
type expectationView struct {
	Run string
	v1alpha1.ExpectationStatus
}

type commandView struct{ Point, Placement, Command string }

type verdictView struct {
	Run, Of                              string
	Better, Worse, Within, Small, Unsure int
	// Summary is the sentence of the comparison, and Differs lists differences between the two sides.
	Summary     string
	Differs     []string
	regressions []regression
}

// regression is a point that is worse beyond the noise, with the size of the difference.
type regression struct {
	size float64
	text string
}

// mostRegressions limits the listed regressions of a run, and mostRegressionsOfOne those of each run in a suite; tables have all of them.
const (
	mostRegressions      = 12
	mostRegressionsOfOne = 3
)

// Regressions returns the points that are worse, the largest differences first.
func (v verdictView) Regressions() []string {
	sorted := slices.Clone(v.regressions)
	slices.SortStableFunc(sorted, func(a, b regression) int { return cmp.Compare(b.size, a.size) })
	var out []string
	most := mostRegressions
	if v.Run != "" {
		most = mostRegressionsOfOne
	}
	for _, r := range sorted[:min(len(sorted), most)] {
		out = append(out, r.text)
	}
	if more := len(sorted) - len(out); more > 0 {
		out = append(out, fmt.Sprintf("and %d more, which the tables mark", more))
	}
	return out
}

// OfRun makes the report of a run.
func OfRun(run results.Run, bars ErrorBars) (*Report, error) {
	r := &Report{bars: bars, title: run.Name, kind: "BenchmarkRun"}
	r.facts = runFacts(run)
	if err := r.addRun("", run); err != nil {
		return nil, err
	}
	s := runSheet("run", run)
	r.addSheet(s, "")
	return r, nil
}

// OfSuite makes the report of a suite.
func OfSuite(suite results.Suite, bars ErrorBars) (*Report, error) {
	r := &Report{bars: bars, title: suite.Name, kind: "BenchmarkSuite"}
	var names []string
	for _, v := range suite.Variants {
		names = append(names, v.Name)
	}
	r.facts = []fact{{"Variants", strings.Join(names, ", ")}}
	if suite.Namespace != "" {
		r.facts = append(r.facts, fact{"Namespace", suite.Namespace})
	}
	r.figures = stats.Table(suite)
	for _, s := range figureSheets(suite, r.figures) {
		r.sections = append(r.sections, section{s, s.charts(bars)})
	}
	for _, s := range suiteSheets(suite) {
		r.addSheet(s, s.title)
	}
	for _, v := range suite.Variants {
		for _, one := range v.Runs {
			if err := r.addRun(v.Name+": "+one.Name, one.Run); err != nil {
				return nil, err
			}
		}
	}
	return r, nil
}

// addSheet adds the charts and tables of a sheet, and its best points.
func (r *Report) addSheet(s *sheet, run string) {
	r.sections = append(r.sections, section{s, s.charts(r.bars)})
	for _, b := range stats.BestPoints(s.points()) {
		i := slices.IndexFunc(s.rows, func(one row) bool { return one.point.Index == b.Point })
		if i >= 0 {
			r.best = append(r.best, bestView{run, b.Name, number(b.Value), b.Unit, s.at(s.rows[i])})
		}
	}
}

// addRun adds the facts about a run besides its numbers.
func (r *Report) addRun(name string, run results.Run) error {
	s := runSheet("", run)
	view := runView{
		Name: name, Provenance: provenanceFacts(run), Clients: run.Provenance.Clients,
		Servers: run.Provenance.Servers, Targets: run.Provenance.Targets,
	}
	spec, err := yaml.Marshal(run.Spec)
	if err != nil {
		return fmt.Errorf("write the spec of %s: %w", run.Name, err)
	}
	view.Spec = string(spec)
	if run.Provenance.FileSystemSpec != nil {
		spec, err := yaml.Marshal(run.Provenance.FileSystemSpec)
		if err != nil {
			return fmt.Errorf("write the spec of the filesystem of %s: %w", run.Name, err)
		}
		view.FileSystem = string(spec)
	}
	for _, one := range stats.Judge(run) {
		r.expectations = append(r.expectations, expectationView{name, one})
	}
	verdict := verdictView{Run: name}
	for _, one := range s.rows {
		p := one.point
		r.problems = append(r.problems, problemsOf(name, s.at(one), p)...)
		if t, has := telemetryOf(s.at(one), p); has {
			view.Telemetry = append(view.Telemetry, t)
		}
		if len(p.Command) > 0 {
			view.Commands = append(view.Commands, commandView{s.at(one), p.Placement, commandLine(p.Command)})
		}
		verdict.add(s.at(one), p)
	}
	if c := run.Comparison; c != nil {
		verdict.Of, verdict.Summary = c.Of, c.Summary
		for _, d := range slices.Concat(c.Refused, c.Differs) {
			verdict.Differs = append(verdict.Differs, d.String())
		}
	}
	if verdict.Of != "" {
		r.verdicts = append(r.verdicts, verdict)
	}
	r.runs = append(r.runs, view)
	return nil
}

func (v *verdictView) add(at string, p results.Point) {
	for _, m := range p.Metrics {
		if m.Baseline == nil {
			continue
		}
		v.Of = m.Baseline.Of
		switch m.Baseline.Verdict {
		case results.Better:
			v.Better++
		case results.Worse:
			v.Worse++
			v.regressions = append(v.regressions, regression{math.Abs(m.Baseline.Change), fmt.Sprintf("%s at %s: %s %s, baseline %s (%s)",
				m.Name, at, number(m.Value), m.Unit, number(m.Baseline.Value), change(m.Baseline.Change))})

		case results.WithinNoise:
			v.Within++
		case results.Small:
			v.Small++
		default:
			v.Unsure++
		}
	}
}

// problemsOf returns the problems of a point: no result, or failed attempts.
func problemsOf(run, at string, p results.Point) []problem {
	var out []problem
	if p.State != v1alpha1.PointSucceeded || p.Message != "" {
		why := p.Message
		if why == "" {
			why = "It has no result yet."
		}
		out = append(out, problem{run, at, string(p.State), why})
	}
	for _, a := range p.Attempts {
		state, why := "Attempt failed", a.Error
		if a.Invalid != "" {
			state, why = "Attempt invalid", a.Invalid
		}
		if why == "" || why == p.Message {
			continue
		}
		name := fmt.Sprintf("%s, repetition %d, attempt %d", at, a.Repetition, a.Attempt)
		if a.WarmUp {
			name = fmt.Sprintf("%s, warm-up %d, attempt %d", at, a.Repetition, a.Attempt)
		}
		out = append(out, problem{run, name, state, why})
	}
	return out
}

// at names a row by its varied parameters. The derived parameters follow from them; tables have them.
func (s *sheet) at(r row) string {
	var parts []string
	for _, name := range s.varied {
		if text := r.value(name); text != "" {
			parts = append(parts, short(name)+"="+text)
		}
	}
	if len(parts) == 0 {
		return "the only point"
	}
	return strings.Join(parts, " ")
}

// commandLine formats arguments for a person, and quotes those with blanks.
func commandLine(args []string) string {
	parts := make([]string, 0, len(args))
	for _, arg := range args {
		if arg == "" || strings.ContainsAny(arg, " \t\n\"'\\$`;&|<>*?()[]{}#~!") {
			arg = "'" + strings.ReplaceAll(arg, "'", `'\''`) + "'"
		}
		parts = append(parts, arg)
	}
	return strings.Join(parts, " ")
}

// runFacts returns the most important facts about a run.
func runFacts(run results.Run) []fact {
	counts := map[v1alpha1.PointState]int{}
	for _, p := range run.Points {
		counts[p.State]++
	}
	parts := []string{fmt.Sprint(len(run.Points))}
	for _, state := range []v1alpha1.PointState{
		v1alpha1.PointSucceeded, v1alpha1.PointFailed, v1alpha1.PointInvalid, v1alpha1.PointRunning, v1alpha1.PointPending,
	} {
		if counts[state] > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", counts[state], strings.ToLower(string(state))))
		}
	}
	repetitions := fmt.Sprintf("%d per point, %s shown", max(run.Spec.Repetitions, 1), statisticName(run.Spec.Statistic))
	if run.Spec.Until != nil {
		repetitions = fmt.Sprintf("%d to %d per point, until half of the 95 %% interval is %s %% of the mean; %s shown",
			run.Spec.Repetitions, run.Spec.Until.MaxRepetitions, run.Spec.Until.ConfidencePercent, statisticName(run.Spec.Statistic))
	}
	out := []fact{
		{"Tool", toolName(run)},
		{"Filesystem", strings.TrimSpace(run.Spec.Target.FileSystem.Name + "  " + run.Provenance.FileSystem)},
		{"Points", strings.Join(parts, ", ")},
		{"Repetitions", repetitions},
	}
	switch target := run.Spec.Target.String(); {
	case target == "":
		out = slices.Delete(out, 1, 2)
	case !run.Spec.Target.IsFileSystem():
		out[1] = fact{"Volume", strings.TrimSpace(target + "  " + volumeText(run.Provenance.Volume))}
		if run.Provenance.Unknown != "" {
			out = slices.Insert(out, 2, fact{"Unknown", run.Provenance.Unknown})
		}
	}
	if !run.Started.IsZero() {
		out = append(out, fact{"Measured", moment(run.Started) + " to " + moment(run.Ended)})
	}
	return out
}

// volumeText describes a volume in one line.
func volumeText(v *v1alpha1.VolumeProvenance) string {
	if v == nil {
		return ""
	}
	words := []string{v.StorageClass, v.Driver, v.AccessModes, v.Capacity, v.Mount}
	return strings.Join(slices.DeleteFunc(words, func(word string) bool { return word == "" }), ", ")
}

// toolName is the tool and what it says of itself, which often begins with its name.
func toolName(run results.Run) string {
	version := run.Provenance.ToolVersion
	if strings.HasPrefix(strings.ToLower(version), strings.ToLower(string(run.Spec.ToolName()))) {
		return version
	}
	return strings.TrimSpace(string(run.Spec.ToolName()) + " " + version)
}

// statisticName returns the name of a statistic for a sentence.
func statisticName(s v1alpha1.Statistic) string {
	switch s {
	case v1alpha1.StatisticMedian:
		return "median"
	case v1alpha1.StatisticMin:
		return "lowest"
	case v1alpha1.StatisticMax:
		return "highest"
	case v1alpha1.StatisticWorst:
		return "worst"
	case v1alpha1.StatisticTrimmedMean:
		return "mean without the highest and the lowest"
	default:
		return "mean"
	}
}

// moment formats a time in UTC.
func moment(t time.Time) string {
	if t.IsZero() {
		return "now"
	}
	return t.UTC().Format("2006-01-02 15:04:05 UTC")
}

// list joins counts with commas.
func list[T fmt.Stringer](counts []T) string {
	words := make([]string, 0, len(counts))
	for _, c := range counts {
		words = append(words, c.String())
	}
	return strings.Join(words, ", ")
}

// provenanceFacts returns the systems and software of the measurement.
func provenanceFacts(run results.Run) []fact {
	p := run.Provenance
	var out []fact
	add := func(name, text string) {
		if text != "" {
			out = append(out, fact{name, text})
		}
	}
	add("Run", strings.TrimPrefix(run.Namespace+"/"+run.Name, "/"))
	add("UID", run.UID)
	if !run.Started.IsZero() {
		add("Measured", moment(run.Started)+" to "+moment(run.Ended))
	}
	add("Filesystem", p.FileSystem)
	add("Servers", list(p.ServerCounts))
	add("Targets", list(p.TargetCounts))
	add("Configuration hash", p.ConfigHash)
	add("Tool", toolName(run))
	add("Image", p.Image)
	add("Image digest", p.ImageID)
	add("CPU pinning, as the kernel says", p.Pinning)
	add("RDMA, as the filesystem lists interfaces", p.Transport)
	add("Operator", p.Operator)
	return out
}
