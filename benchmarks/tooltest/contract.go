// Package tooltest tests the contract of benchmarks.Tool. Every tool runs it on real output of its own.
package tooltest

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"maps"
	"math"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"testing"

	. "github.com/onsi/gomega" //nolint:staticcheck // a test helper, although the name of its file does not end in _test

	"parallelfs.dev/operator/api/v1alpha1"
	"parallelfs.dev/operator/benchmarks"
	"parallelfs.dev/operator/benchmarks/sweep"
	"parallelfs.dev/operator/test/places"
)

// Case is a run of one point with the real output of a successful run.
type Case struct {
	// Spec has one point.
	Spec *v1alpha1.BenchmarkRunSpec
	// Step is the step of the plan that printed it.
	Step int
	// Output is the output of one repetition.
	Output []byte
}

// Run checks that a tool fulfills its contract. The cases' names are sentences.
func Run(t *testing.T, tool benchmarks.Tool, cases map[string]Case) {
	NewWithT(t).Expect(cases).NotTo(BeEmpty())
	var all []suite
	for _, name := range slices.Sorted(maps.Keys(cases)) {
		c := cases[name]
		t.Run(name, func(t *testing.T) {
			points, err := sweep.Expand(tool, c.Spec)
			NewWithT(t).Expect(err).NotTo(HaveOccurred())
			NewWithT(t).Expect(points).To(HaveLen(1))
			s := suite{tool: tool, spec: c.Spec, point: points[0], step: c.Step, output: c.Output}
			all = append(all, s)
			t.Run("serves the tool of the spec", func(t *testing.T) { NewWithT(t).Expect(tool.Name()).To(Equal(c.Spec.ToolName())) })
			t.Run("is pure", s.pure)
			t.Run("plans what can be run", s.plan)
			t.Run("refuses a point without a usable value of each parameter", s.unusable)
			t.Run("gives samples that the API can hold", s.samples)
			t.Run("refuses output that is cut off anywhere", s.cutOff)
			t.Run("refuses output of a run that was aborted", s.aborted)
			t.Run("refuses what is not one repetition", s.repetitions)
		})
	}
	if len(all) > 0 {
		t.Run("takes little memory, whatever is printed", all[0].hostile)
	}
	t.Run("refuses what no tool prints", func(t *testing.T) {
		for _, i := range places.Contracts.Of(t, len(all)) {
			all[i].garbage(t)
		}
	})
	t.Run("quotes little of a long word", func(t *testing.T) {
		for _, i := range places.Contracts.Of(t, len(all)) {
			all[i].longWords(t)
		}
	})
	t.Run("has parameters that each change what is run", func(t *testing.T) { parameters(t, all) })
}

// suite is one case.
type suite struct {
	tool   benchmarks.Tool
	spec   *v1alpha1.BenchmarkRunSpec
	point  benchmarks.Point
	step   int
	output []byte
}

// with returns the point with another value of a parameter.
func (s suite) with(name v1alpha1.SweepName, value string) benchmarks.Point {
	out := s.point
	out.Parameters = maps.Clone(s.point.Parameters)
	out.Parameters[name] = value
	return out
}

func (s suite) pure(t *testing.T) {
	g := NewWithT(t)
	spec, output, point := s.spec.DeepCopy(), bytes.Clone(s.output), s.point
	point.Parameters, point.Varied = maps.Clone(s.point.Parameters), slices.Clone(s.point.Varied)
	parameters := s.tool.Parameters(s.spec)
	command, err := s.tool.Plan(s.spec, s.point)
	g.Expect(err).NotTo(HaveOccurred())
	report, err := s.tool.Parse(s.spec, s.point, s.step, s.output)
	g.Expect(err).NotTo(HaveOccurred())
	for range 5 {
		g.Expect(s.tool.Parameters(s.spec)).To(Equal(parameters))
		g.Expect(s.tool.Plan(s.spec, s.point)).To(Equal(command))
		g.Expect(s.tool.Parse(s.spec, s.point, s.step, s.output)).To(Equal(report))
	}
	g.Expect(s.spec).To(Equal(spec), "the spec is not changed")
	g.Expect(s.point).To(Equal(point), "the point is not changed")
	g.Expect(bytes.Equal(s.output, output)).To(BeTrue(), "the output is not changed")
}

// placeholder matches a word that is replaced when a command is run. known lists those in benchmarks.Command and benchmarks.File.
var (
	placeholder = regexp.MustCompile(`\$\([A-Z_]*\)?`)
	known       = map[benchmarks.Launch][]string{
		benchmarks.OnClient:      {"$(DIRECTORY)", "$(HOSTS_FILE)"},
		benchmarks.OnLauncher:    {"$(DIRECTORY)", "$(HOSTS_FILE)", "$(LAUNCHER_IP)", "$(HOST)", "$(INDEX)", "$(PROCESSES)"},
		benchmarks.OnProcesses:   {"$(DIRECTORY)"},
		benchmarks.OnEachProcess: {"$(DIRECTORY)", "$(RANK)"},
		benchmarks.OnEachClient:  {"$(DIRECTORY)", "$(RANK)"},
		benchmarks.OnServers:     {"$(DIRECTORY)", "$(TARGETS)"},
		benchmarks.OnManagement:  {},
	}
)

// plan checks that the steps can be run by the operator.
func (s suite) plan(t *testing.T) {
	g := NewWithT(t)
	plan, err := s.tool.Plan(s.spec, s.point)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(s.step).To(BeNumerically("<", len(plan.Steps)), "the output is of a step of the plan")
	g.Expect(plan.Clients).To(BeNumerically(">=", 0))
	g.Expect(plan.Processes).To(BeNumerically(">=", 0))
	g.Expect(plan.Demand.Bytes).To(BeNumerically(">=", 0))
	g.Expect(plan.Demand.Inodes).To(BeNumerically(">=", 0))
	var names []string
	for _, step := range plan.Steps {
		g.Expect(names).NotTo(ContainElement(step.Name), "each step has a name of its own")
		names = append(names, step.Name)
		if len(plan.Steps) > 1 {
			g.Expect(step.Name).To(MatchRegexp("^[a-z]([a-z0-9-]{0,13}[a-z0-9])?$"), "the name becomes part of the names of jobs")
		}
		c := step.Command
		g.Expect(known).To(HaveKey(c.Launch))
		if c.Launch == benchmarks.OnManagement {
			g.Expect(c.Calls).NotTo(BeEmpty())
			g.Expect(c.Argv).To(BeEmpty())
			continue
		}
		g.Expect(c.Calls).To(BeEmpty())
		g.Expect(c.Argv).NotTo(BeEmpty())
		g.Expect(c.Argv[0]).NotTo(BeEmpty())
		writes := c.Launch == benchmarks.OnLauncher || c.Launch == benchmarks.OnClient
		g.Expect(c.Files == nil || writes).To(BeTrue(), "files are written there only")
		texts := slices.Concat(c.Argv, c.Env, []string{c.Stdin})
		for _, file := range c.Files {
			texts = append(texts, file.Path, file.Text, file.PerHost, file.PerProcess, file.End)
		}
		for _, word := range placeholder.FindAllString(strings.Join(texts, " "), -1) {
			g.Expect(known[c.Launch]).To(ContainElement(word), "%s is replaced there", word)
		}
	}
}

// parameters checks that each parameter changes a command in at least one case, because a parameter may have no effect with certain values
// of others.
func parameters(t *testing.T, cases []suite) {
	g := NewWithT(t)
	changes := map[v1alpha1.SweepName]bool{}
	for _, s := range cases {
		base, err := s.tool.Plan(s.spec, s.point)
		g.Expect(err).NotTo(HaveOccurred())
		seen := map[v1alpha1.SweepName]bool{}
		for _, p := range s.tool.Parameters(s.spec) {
			g.Expect(seen).NotTo(HaveKey(p.Name), "a parameter is named once")
			seen[p.Name] = true
			if p.Name == benchmarks.ParameterStoragePool {
				continue // it determines the place of the directory, not the command
			}
			for _, value := range others(g, p) {
				plan, err := s.tool.Plan(s.spec, s.with(p.Name, value))
				if invalid := (*benchmarks.InvalidPointError)(nil); errors.As(err, &invalid) {
					continue
				}
				g.Expect(err).NotTo(HaveOccurred())
				changes[p.Name] = changes[p.Name] || fmt.Sprintf("%+v", plan) != fmt.Sprintf("%+v", base)
			}
			changes[p.Name] = changes[p.Name] || false
		}
	}
	for name, changed := range changes {
		g.Expect(changed).To(BeTrue(), "%s changes what is run", name)
	}
}

// others returns values other than the parameter's own, some of which are valid.
func others(g *WithT, p benchmarks.Parameter) []string {
	switch {
	case p.Kind == benchmarks.Word:
		g.Expect(len(p.Words)).To(BeNumerically(">", 1), "%s has several words", p.Name)
		return p.Words
	case p.Value == "":
		return []string{"1", "2", "1024", "1Mi"}
	}
	number, err := benchmarks.ParseValue(p, p.Value)
	g.Expect(err).NotTo(HaveOccurred())
	half := max(1, number/2)
	if p.Kind == benchmarks.Size {
		half = max(benchmarks.Kilo, half/benchmarks.Kilo*benchmarks.Kilo)
	}
	return []string{benchmarks.FormatValue(p, number*2), benchmarks.FormatValue(p, half), benchmarks.FormatValue(p, max(half, number)*2)}
}

func (s suite) unusable(t *testing.T) {
	g := NewWithT(t)
	for _, p := range s.tool.Parameters(s.spec) {
		if p.Name == benchmarks.ParameterStoragePool {
			continue // only the filesystem has the list of its pools
		}
		values := []string{"", "-1", "x", "1.5", "4KiB", "9223372036854775807", "999999999999Gi"}
		switch p.Kind {
		case benchmarks.Word:
			values = []string{"", "no-such-word"}
		case benchmarks.Count, benchmarks.Size:
			values = append(values, "0")
		case benchmarks.Number, benchmarks.Bytes:
		}
		for _, value := range values {
			_, err := s.tool.Plan(s.spec, s.with(p.Name, value))
			var invalid *benchmarks.InvalidPointError
			g.Expect(errors.As(err, &invalid)).To(BeTrue(), "%s=%q: %v", p.Name, value, err)
			g.Expect(err).To(MatchError(ContainSubstring(string(p.Name))), "the error names the parameter")
		}
	}
}

func (s suite) samples(t *testing.T) {
	g := NewWithT(t)
	report, err := s.tool.Parse(s.spec, s.point, s.step, s.output)
	g.Expect(err).NotTo(HaveOccurred())
	samples := report.Samples
	g.Expect(samples).NotTo(BeEmpty())
	g.Expect(len(samples)).To(BeNumerically("<=", 32), "status.points[].metrics holds 32")
	var seen []string
	for _, sample := range samples {
		g.Expect(sample.Name).To(MatchRegexp("^[A-Za-z][^\n]{0,62}[^\n ]$"))
		g.Expect(sample.Unit).To(MatchRegexp("^[^ ].{0,31}$"))
		g.Expect(sample.Value).To(BeNumerically(">=", 0))
		g.Expect(math.IsInf(sample.Value, 0)).To(BeFalse())
		key := sample.Name + " " + sample.Unit
		g.Expect(slices.Contains(seen, key)).To(BeFalse(), "%s is measured once", key)
		seen = append(seen, key)
	}
}

// maxMemory bounds the total allocation for parsing an output, in MiB. The manager's memory grows by less, whatever the output is.
const maxMemory = 64

// maxError bounds an error that quotes an output, in bytes.
const maxError = 1 << 10

// Hostile returns outputs of 16 MiB that no benchmark prints. Some begin like a good one.
func Hostile(good []byte) map[string]func() []byte {
	const most = benchmarks.MaxOutput
	fill := func(begin, element string) func() []byte {
		return func() []byte {
			var out bytes.Buffer
			out.Grow(most)
			out.WriteString(begin)
			for out.Len()+len(element) <= most {
				out.WriteString(element)
			}
			return out.Bytes()
		}
	}
	outputs := map[string]func() []byte{
		"short lines": fill("", "1\n"), "empty lines": fill("", "\n"), "one line": fill("", "a "),
		"long lines":      fill("", strings.Repeat("a ", 30000)+"\n"),
		"boxes of mpirun": fill("", strings.Repeat("-", 60)+"\nabort\n"), "the output again and again": fill("", string(good)),
		"lines of processes": fill("", "[rank 0] 1\n"), "lines of more processes than there are": fill("", "[rank 65000] 1\n[rank 65001] 2\n"),
		"HTML": fill("<html>\n", "<td>1</td>"), "CSV": fill("", "1,2,3\n"),
	}
	for name, list := range map[string]string{"objects": "{},", "texts": `"",`} {
		for _, begin := range []string{"{\n\"summary\":[", "{\n\"jobs\":[", "{\n\"jobs\":[{\"job options\":{"} {
			outputs["JSON with "+name+" in "+begin] = fill(begin, list)
		}
	}
	outputs["nested lists"] = fill("{\n", "[")
	grown(good, fill, outputs)
	for i, line := range bytes.SplitAfter(good, []byte("\n")) {
		const tried = 4
		if i < tried && len(line) > 0 {
			before := bytes.Join(bytes.SplitAfter(good, []byte("\n"))[:i], nil)
			outputs[fmt.Sprintf("line %d again and again", i+1)] = fill(string(before), string(line))
		}
	}
	return outputs
}

// grown adds outputs that differ from a good one in one place, or in their characters.
func grown(good []byte, fill func(begin, element string) func() []byte, outputs map[string]func() []byte) {
	words, all := word.FindAllIndex(good, -1), string(good)
	if len(words) == 0 {
		return
	}
	at := words[len(words)/2][1]
	for what, filler := range map[string]string{
		"characters": "x", "digits": "9", "lists": "[", "objects": `{"a":`, "fields": " 1", "backslashes": `\`,
	} {
		outputs["a word followed by "+what] = fill(all[:at], filler)
	}
	for what, element := range map[string]string{
		"NUL":                       strings.ReplaceAll(all, " ", "\x00"),
		"carriage returns":          strings.ReplaceAll(all, "\n", "\r"),
		"carriage returns and more": strings.ReplaceAll(all, "\n", "\r\n"),
		"no newlines":               strings.ReplaceAll(all, "\n", " "),
		"invalid UTF-8":             strings.ReplaceAll(all, " ", "\xff"),
	} {
		outputs["the output again and again with "+what] = fill("", element)
	}
}

// hostile parses outputs that no benchmark prints.
func (s suite) hostile(t *testing.T) {
	const few = 20
	outputs := Hostile(s.output)
	names := slices.Sorted(maps.Keys(outputs))
	for _, i := range places.Contracts.Some(t, len(names), few) {
		what := names[i]
		g, output := NewWithT(t), outputs[what]()
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		_, err := s.tool.Parse(s.spec, s.point, s.step, output)
		runtime.ReadMemStats(&after)
		g.Expect(err).To(HaveOccurred(), what)
		g.Expect(len(err.Error())).To(BeNumerically("<=", maxError), what)
		g.Expect((after.TotalAlloc-before.TotalAlloc)>>20).To(BeNumerically("<=", maxMemory), "MiB for %s: %v", what, err)
	}
}

// refused expects an error and no samples.
func (s suite) refused(g *WithT, output []byte, what string) {
	report, err := s.tool.Parse(s.spec, s.point, s.step, output)
	g.Expect(err).To(HaveOccurred(), what)
	g.Expect(report).To(Equal(benchmarks.Report{}), what)
}

func (s suite) cutOff(t *testing.T) {
	g := NewWithT(t)
	whole := bytes.TrimRight(s.output, " \t\r\n")
	cuts := 0
	for i, c := range whole {
		if c == '\n' {
			s.refused(g, whole[:i], fmt.Sprintf("cut off before byte %d", i))
			s.refused(g, whole[:i+1], fmt.Sprintf("cut off at byte %d", i))
			cuts++
		}
	}
	g.Expect(cuts).To(BeNumerically(">", 1))
	s.refused(g, whole[:len(whole)-1], "without its last character")
}

// abort is mpirun's output when a process fails.
const abort = `--------------------------------------------------------------------------
mpirun noticed that process rank 1 with PID 0 on node client1 exited on signal 9 (Killed).
--------------------------------------------------------------------------
`

func (s suite) aborted(t *testing.T) {
	g := NewWithT(t)
	plan, err := s.tool.Plan(s.spec, s.point)
	g.Expect(err).NotTo(HaveOccurred())
	switch plan.Steps[s.step].Command.Launch {
	case benchmarks.OnProcesses:
		s.refused(g, slices.Concat(s.output, []byte("\n"+abort)), "a process was killed at the end")
		for i, c := range s.output {
			if c == '\n' {
				s.refused(g, slices.Concat(s.output[:i+1], []byte(abort), s.output[i+1:]), fmt.Sprintf("a process was killed at byte %d", i))
			}
		}
	case benchmarks.OnEachProcess, benchmarks.OnEachClient, benchmarks.OnServers:
		end := []byte("ended with exit code 0]")
		g.Expect(bytes.Contains(s.output, end)).To(BeTrue())
		s.refused(g, bytes.Replace(s.output, end, []byte("ended with exit code 137]"), 1), "a process was killed")
		at := bytes.Index(s.output, end)
		first, last := bytes.LastIndexByte(s.output[:at], '\n')+1, at+len(end)
		s.refused(g, slices.Concat(s.output[:first], s.output[last:]), "a process did not say that it ended")
	case benchmarks.OnClient, benchmarks.OnLauncher, benchmarks.OnManagement:
		// The output of these is cut off in that case, and the job's exit code shows it too.
	}
}

func (s suite) repetitions(t *testing.T) {
	g := NewWithT(t)
	s.refused(g, slices.Concat(s.output, []byte("\n"), s.output), "two repetitions")
	s.refused(g, nil, "nothing")
	if !json.Valid(s.output) {
		s.refused(g, bytes.ReplaceAll(s.output, []byte("\n"), nil), "without newlines")
	}
}

// word matches a word or a number.
var word = regexp.MustCompile(`[A-Za-z0-9]+`)

// longs returns the texts that lengthen a word: characters that %q escapes, nearly as many as the longest line that parsers accept, and
// more.
func longs() map[string][]byte {
	out := map[string][]byte{}
	for _, filler := range []string{"9", "x", "\x00", `\u0000`, " 9", "é", "\xff", "\r"} {
		out[fmt.Sprintf("3 KiB of %q", filler)] = bytes.Repeat([]byte(filler), 3<<10/len(filler))
	}
	out["60 KiB of 9"], out["1 MiB of 9"] = bytes.Repeat([]byte("9"), 60<<10), bytes.Repeat([]byte("9"), 1<<20)
	return out
}

// Stretched returns outputs that differ from a good one in one long word. It stretches two words, or with CONTRACTS=all each of them.
func Stretched(t testing.TB, output []byte) iter.Seq2[string, []byte] {
	t.Helper()
	const few = 2
	words := word.FindAllIndex(output, -1)
	chosen := places.Contracts.Some(t, len(words), few)
	return func(yield func(string, []byte) bool) {
		for _, i := range chosen {
			begin, end := words[i][0], words[i][1]
			for what, long := range longs() {
				what = fmt.Sprintf("%s behind %q at byte %d", what, output[begin:end], end)
				if !yield(what, slices.Concat(output[:end], long, output[end:])) {
					return
				}
			}
		}
	}
}

// longWords parses outputs with one long word, because an error that quotes it has to cut it.
func (s suite) longWords(t *testing.T) {
	t.Helper()
	g := NewWithT(t)
	for what, output := range Stretched(t, s.output) {
		report, err := s.tool.Parse(s.spec, s.point, s.step, output)
		if err != nil {
			g.Expect(report).To(Equal(benchmarks.Report{}), what)
			g.Expect(len(err.Error())).To(BeNumerically("<=", maxError), "%s: %s: %.300s", s.spec.ToolName(), what, err)
		}
		if saves, is := s.tool.(benchmarks.SavedParser); is {
			if _, err := saves.ParseSaved(output); err != nil {
				g.Expect(len(err.Error())).To(BeNumerically("<=", maxError), "%s: %s, saved elsewhere: %.300s", s.spec.ToolName(), what, err)
			}
		}
	}
}

// garbage tests outputs that are the same for each case.
func (s suite) garbage(t *testing.T) {
	t.Helper()
	g := NewWithT(t)
	for what, output := range map[string][]byte{
		"blanks":        []byte(" \n\t\n\n"),
		"zeros":         make([]byte, 4096),
		"words":         []byte("the quick brown fox\njumps over 42 lazy dogs\n"),
		"one long line": bytes.Repeat([]byte("9"), 1<<20),
	} {
		s.refused(g, output, what)
	}
}
