package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"
	"sigs.k8s.io/yaml"

	"parallelfs.dev/operator/api/v1alpha1"
	"parallelfs.dev/operator/benchmarks"
	"parallelfs.dev/operator/benchmarks/guess"
	"parallelfs.dev/operator/benchmarks/report"
	"parallelfs.dev/operator/benchmarks/results"
	"parallelfs.dev/operator/benchmarks/stats"
)

type parseFlags struct {
	tool, output, spec, name, file string
	processes                      int
	set                            []string
}

func (a *app) parseCommand() *cobra.Command {
	var flags parseFlags
	cmd := &cobra.Command{
		Use:   "parse FILE...",
		Short: "Read outputs of a tool that were saved elsewhere",
		Long: `parse reads what a tool printed, with the same parser as the operator, and writes a document that report --from and compare read.

Without --tool, the output itself shows which tool printed it. Lines of launchers, MPI and shells around the report are skipped, and
named on stderr. An output of an aborted run, one that is cut off, one with numbers that contradict each other, or a line within the
report that is not known is an error with the line, never a number.

The parameters are those of the command line that the tool printed (mdtest, ior, iozone, fio), of --spec (a BenchmarkRun, or its spec) and
of --set, the later ones first. The output is checked against them: that it has all tests and the counts that were asked for. What can't be
checked is said on stderr and stands in the document: options that no field of a spec stands for, and everything where the tool does not say
how it was called.

Several files, and several runs of mdtest or IOR in one file, become several points. Files of the same version and parameters become
repetitions of one point, where all options of their command lines are known; others never do.`,
		Example: `  kubectl pfs bench parse old-mdtest.txt
  kubectl pfs bench parse run-*.txt -o json --file old.json
  kubectl pfs bench parse fio.json
  kubectl pfs bench parse --tool mdtest --processes 32 --set mdtest.depth=2 --set mdtest.branch=8 --set mdtest.filesOnly=true old.txt
  kubectl pfs bench parse --tool custom --spec run.yaml output.txt
  kubectl pfs bench report --from old.json --file old.html
  kubectl pfs bench compare old.json creates`,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) == 0 {
				return usage(errors.New("name the file with the output, or - for standard input"))
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error { return a.parse(cmd, args, flags) },
	}
	cmd.Flags().StringVar(&flags.tool, "tool", "", "the tool that made the output (default: the one that the output shows): "+strings.Join(a.toolNames(), ", "))
	cmd.Flags().StringVarP(&flags.output, "output", "o", "table", "table, json or csv")
	cmd.Flags().StringVar(&flags.file, "file", "", "file to write (default: standard output)")
	cmd.Flags().IntVar(&flags.processes, "processes", 0, "number of processes over all clients, as --set processes=N")
	cmd.Flags().StringArrayVar(&flags.set, "set", nil, "field of the spec, such as mdtest.depth=2 or mdtest.phases=Create,Stat; can be repeated")
	cmd.Flags().StringVar(&flags.spec, "spec", "", "file with a BenchmarkRun, or with its spec, that says what was asked for")
	cmd.Flags().StringVar(&flags.name, "name", "", "name of the document (default: the first file)")
	return cmd
}

// toolNames returns the names of the tools, sorted.
func (a *app) toolNames() []string {
	var out []string
	for name := range maps.Keys(a.tools) {
		out = append(out, string(name))
	}
	slices.Sort(out)
	return out
}

func (a *app) parse(cmd *cobra.Command, files []string, flags parseFlags) error {
	name := v1alpha1.BenchmarkTool(flags.tool)
	_, known := a.tools[name]
	switch {
	case flags.tool != "" && !known:
		return usage(fmt.Errorf("--tool is %q instead of one of %s", flags.tool, strings.Join(a.toolNames(), ", ")))
	case !slices.Contains([]string{"table", "json", "csv"}, flags.output):
		return usage(fmt.Errorf("--output is %q instead of table, json or csv", flags.output))
	}
	given, err := givenSettings(flags)
	if err != nil {
		return usage(err)
	}
	base := v1alpha1.BenchmarkRunSpec{}
	if flags.spec != "" {
		if base, err = a.readSpec(flags.spec, name); err != nil {
			return err
		}
		name = base.ToolName()
	}
	c := collection{run: results.Run{Format: results.Format, Name: flags.name}}
	if c.run.Name == "" {
		c.run.Name = strings.TrimPrefix(files[0], "./")
	}
	for _, file := range files {
		output, err := a.read(file)
		if err != nil {
			return err
		}
		if name == "" {
			if name, err = guess.Tool(output); err != nil {
				return fmt.Errorf("%s: %w", file, err)
			}
		}
		tool, known := a.tools[name]
		if !known {
			return usage(fmt.Errorf("the tool is %q instead of one of %s", name, strings.Join(a.toolNames(), ", ")))
		}
		all, err := readFile(tool, base, given, output)
		if err != nil {
			return fmt.Errorf("%s: %w", file, err)
		}
		for i, one := range all {
			label := filepath.Base(file)
			if len(all) > 1 {
				label = fmt.Sprintf("%s, run %d", label, i+1)
			}
			for _, note := range one.notes {
				cmd.PrintErrln("Note: " + file + ": " + note + ".")
			}
			for _, note := range c.add(one, label) {
				cmd.PrintErrln("Note: " + file + ": " + note + ".")
			}
		}
	}
	if err := c.summarize(); err != nil {
		return err
	}
	if flags.output == "table" {
		return write(cmd, flags.file, func(w io.Writer) error { return printPoints(w, c.run) })
	}
	made, err := document{run: &c.run}.form(flags.output, report.MinMax)
	if err != nil {
		return err
	}
	return write(cmd, flags.file, made)
}

// collection becomes the document of several outputs.
type collection struct {
	run results.Run
	// repetitions has the samples of each point, and merges is true for a point whose parameters are all known. labels has the source of each.
	repetitions [][][]benchmarks.Sample
	merges      []bool
	versions    []string
	labels      []string
	// specs has the spec of each point, and settings the fields of it that are known.
	specs    []v1alpha1.BenchmarkRunSpec
	settings [][]results.Value
}

// add makes an output a repetition of a point with the same known parameters, or a new point. It returns notes for the user.
func (c *collection) add(one reading, label string) (notes []string) {
	same := func(i int) bool { return slices.Equal(c.run.Points[i].Parameters, one.point.Parameters) }
	at := -1
	for i := range c.run.Points {
		switch {
		case !same(i):
		case !one.complete || !c.merges[i]:
			notes = append(notes, fmt.Sprintf("its known parameters are those of %s, but not all of its options are known, so it is a point of its own", c.labels[i]))
		case !reflect.DeepEqual(one.spec, c.specs[i]):
			notes = append(notes, fmt.Sprintf("it was called with other options than %s, so it is a point of its own", c.labels[i]))
		case one.version != c.versions[i]:
			notes = append(notes, fmt.Sprintf("its parameters are those of %s, but it was made by version %s instead of %s, so it is a point of its own",
				c.labels[i], one.version, c.versions[i]))
		case counted(one.samples) != counted(c.repetitions[i][0]):
			notes = append(notes, fmt.Sprintf("its parameters are those of %s, but it counts other items, so it is a point of its own", c.labels[i]))
		default:
			at = i
		}
	}
	if at >= 0 {
		notes = nil
	} else {
		at = len(c.run.Points)
		one.point.Index = at
		c.run.Points = append(c.run.Points, one.point)
		c.repetitions = append(c.repetitions, nil)
		c.merges, c.versions, c.labels = append(c.merges, one.complete), append(c.versions, one.version), append(c.labels, label)
		c.specs, c.settings = append(c.specs, one.spec), append(c.settings, one.settings)
	}
	if len(c.run.Points) == 1 {
		c.run.Spec, c.run.Provenance.ToolVersion = one.spec, one.version
	} else if one.version != c.run.Provenance.ToolVersion {
		notes = append(notes, fmt.Sprintf("made by version %s, the first file by %s", one.version, c.run.Provenance.ToolVersion))
	}
	c.repetitions[at] = append(c.repetitions[at], one.samples)
	c.run.Points[at].Attempts = append(c.run.Points[at].Attempts, results.Attempt{
		Repetition: len(c.repetitions[at]), Attempt: 1, Samples: one.samples,
	})
	const most = 100
	c.run.Spec.Repetitions = max(c.run.Spec.Repetitions, int32(min(len(c.repetitions[at]), most)))
	return notes[:min(len(notes), 1)]
}

// counted is the number of items that a tool reports as processed, 0 for a tool that does not report it.
func counted(samples []benchmarks.Sample) float64 {
	for _, s := range samples {
		if s.Name == "items" && s.Unit == "items" {
			return s.Value
		}
	}
	return 0
}

// summarize computes the metrics of each point. If the parameters of two points are equal, their sources become one more parameter.
func (c *collection) summarize() error {
	points := c.run.Points
	// The document has one spec. Each point has the parts of its spec that differ.
	if slices.ContainsFunc(c.specs, func(s v1alpha1.BenchmarkRunSpec) bool { return !reflect.DeepEqual(s, c.specs[0]) }) {
		for i := range points {
			for _, v := range c.settings[i] {
				if !slices.ContainsFunc(points[i].Parameters, func(p results.Value) bool { return p.Name == v.Name }) {
					points[i].Parameters = append(slices.Clip(points[i].Parameters), v)
				}
			}
		}
	}
	var shared []int
	for i := range points {
		if slices.ContainsFunc(points, func(p results.Point) bool { return p.Index != i && slices.Equal(p.Parameters, points[i].Parameters) }) {
			shared = append(shared, i)
		}
	}
	for _, i := range shared {
		points[i].Parameters = append(slices.Clone(points[i].Parameters), results.Value{Name: "output", Value: c.labels[i]})
	}
	for i := range points {
		var err error
		if points[i].Metrics, err = stats.Summarize(c.repetitions[i], c.run.Spec.Statistic, c.run.Spec.Until); err != nil {
			return fmt.Errorf("the files with %s: %w", pointName(c.run, points[i]), err)
		}
	}
	return nil
}

// givenSettings returns the settings of the command line.
func givenSettings(flags parseFlags) ([]setting, error) {
	var out []setting
	if flags.processes < 0 {
		return nil, errors.New("--processes must be at least 1")
	}
	if flags.processes > 0 {
		out = append(out, setting{"processes", fmt.Sprint(flags.processes)})
	}
	for _, text := range flags.set {
		field, value, is := strings.Cut(text, "=")
		if !is || field == "" {
			return nil, fmt.Errorf("--set is %q instead of FIELD=VALUE, such as mdtest.depth=2", text)
		}
		out = append(out, setting{field, value})
	}
	return out, nil
}

// readSpec reads a BenchmarkRun or its spec.
func (a *app) readSpec(path string, tool v1alpha1.BenchmarkTool) (v1alpha1.BenchmarkRunSpec, error) {
	text, err := a.read(path)
	if err != nil {
		return v1alpha1.BenchmarkRunSpec{}, err
	}
	var manifest struct {
		Kind string                    `json:"kind"`
		Spec v1alpha1.BenchmarkRunSpec `json:"spec"`
	}
	if err := yaml.Unmarshal(text, &manifest); err != nil {
		return v1alpha1.BenchmarkRunSpec{}, fmt.Errorf("%s: %w", path, err)
	}
	spec := manifest.Spec
	if manifest.Kind == "" {
		if err := yaml.Unmarshal(text, &spec); err != nil {
			return spec, fmt.Errorf("%s: %w", path, err)
		}
	}
	if spec.ToolName() == "" {
		return spec, fmt.Errorf("%s: the spec has no member with the name of a tool, such as mdtest: {}", path)
	}
	if tool != "" && spec.ToolName() != tool {
		return spec, fmt.Errorf("%s: the tool of the spec is %q, that of the output %q", path, spec.ToolName(), tool)
	}
	// It is unknown which parameters of an output varied; only the values of fields are known.
	spec.Sweep, spec.Derive, spec.Along, spec.Baseline, spec.Until, spec.Caches = nil, nil, "", nil, nil, nil
	return spec, nil
}

// reading is the content of one run of an output.
type reading struct {
	spec    v1alpha1.BenchmarkRunSpec
	point   results.Point
	version string
	samples []benchmarks.Sample
	notes   []string
	// complete is true when the tool's command line is fully known, so that another output with the same parameters measures the same point.
	complete bool
	// settings has the fields that the output or the user names.
	settings []results.Value
}

// readFile reads all runs of an output.
func readFile(tool benchmarks.Tool, base v1alpha1.BenchmarkRunSpec, given []setting, output []byte) ([]reading, error) {
	parts, err := guess.Runs(tool.Name(), output)
	if err != nil {
		return nil, err
	}
	var out []reading
	for i, part := range parts {
		all, err := readOutput(tool, base, given, part)
		if err != nil && len(parts) > 1 {
			return nil, fmt.Errorf("run %d of %d: %w; to read the others, save each run in a file of its own", i+1, len(parts), err)
		}
		if err != nil {
			return nil, err
		}
		out = append(out, all...)
	}
	return out, nil
}

// call is the command line of a tool, as far as its output and the user name it.
type call struct {
	spec v1alpha1.BenchmarkRunSpec
	// found has the settings in the output itself, given those of the user.
	found, given []setting
	command      []string
	// unknown lists options without a field in the spec, or with a value that the field can't hold.
	unknown []string
	// told is true when the output or the user names the command line.
	told bool
}

// callOf reads the command line of the tool.
func callOf(tool v1alpha1.BenchmarkTool, base v1alpha1.BenchmarkRunSpec, given []setting, output []byte) (call, error) {
	found, command, unknown := recognize(tool, output)
	c := call{given: given, command: command, unknown: unknown}
	c.told = len(command) > 0 || len(given) > 0 || !reflect.DeepEqual(base, v1alpha1.BenchmarkRunSpec{})
	for _, s := range found {
		if _, err := specOf(tool, base, append(slices.Clone(c.found), s)); err != nil {
			c.unknown = append(c.unknown, s.field+"="+s.value)
			continue
		}
		c.found = append(c.found, s)
	}
	var err error
	c.spec, err = specOf(tool, base, slices.Concat(c.found, given))
	return c, err
}

// reading returns the reading of a report. Defaults of the tool are among its parameters only if the whole command line is known.
func (c call) reading(tool benchmarks.Tool, parsed benchmarks.Report) reading {
	r := reading{spec: c.spec, version: parsed.Version, samples: parsed.Samples, complete: c.told && len(c.unknown) == 0}
	r.point = results.Point{State: v1alpha1.PointSucceeded, Command: c.command, Options: c.unknown}
	r.settings = valuesOf(slices.Concat(c.found, c.given))
	if r.complete {
		r.point.Parameters = parametersOf(tool, c.spec)
	} else {
		r.point.Parameters = r.settings
	}
	if skipped := parsed.Remarks.String(); skipped != "" {
		r.notes = append(r.notes, skipped)
	}
	return r
}

// parametersOf returns all values of a spec.
func parametersOf(tool benchmarks.Tool, spec v1alpha1.BenchmarkRunSpec) []results.Value {
	parameters := tool.Parameters(&spec)
	return results.Values(pointOf(parameters), parameters)
}

func pointOf(parameters []benchmarks.Parameter) benchmarks.Point {
	out := benchmarks.Point{Parameters: map[v1alpha1.SweepName]string{}}
	for _, p := range parameters {
		if p.Value != "" {
			out.Parameters[p.Name] = p.Value
		}
	}
	return out
}

// readOutput parses an output with the tool's parser. The parser checks it against the known parameters. If some option is unknown, an
// output that contradicts the others is read without this check. The same applies to a run that the operator could not have requested.
func readOutput(tool benchmarks.Tool, base v1alpha1.BenchmarkRunSpec, given []setting, output []byte) ([]reading, error) {
	c, err := callOf(tool.Name(), base, given, output)
	if err != nil {
		return nil, err
	}
	parsed, wrapped, err := parseAny(tool, &c.spec, pointOf(tool.Parameters(&c.spec)), output)
	var out []reading
	switch err {
	case nil:
		r := c.reading(tool, parsed)
		switch {
		case len(c.unknown) > 0:
			r.notes = append(r.notes, "what these options do is not known, and could not be checked: "+joined(c.unknown))
		case !c.told:
			r.notes = append(r.notes, "the output does not say how the tool was called, and was checked against its defaults; say it with --set")
		}
		if wrapped {
			r.notes = append(r.notes, "the exit code is not known; the output is taken as that of one process that ended well")
		}
		out = []reading{r}
	default:
		if out, err = c.loose(tool, output, err); err != nil {
			return nil, err
		}
	}
	for i := range out {
		if len(out[i].notes) > 0 {
			out[i].point.Message = "Read from a saved output: " + strings.Join(out[i].notes, "; ")
		}
	}
	return out, nil
}

// loose reads an output again after it was not accepted as the point that it seems to measure; failed is the reason.
func (c call) loose(tool benchmarks.Tool, output []byte, failed error) ([]reading, error) {
	var impossible *benchmarks.InvalidPointError
	saved, reads := tool.(benchmarks.SavedParser)
	var why string
	switch {
	case len(c.unknown) > 0:
		why = "what these options do is not known: " + joined(c.unknown)
	case !c.told:
		why = "the output does not say how the tool was called"
	case len(c.given) > 0:
		return nil, failed
	case errors.As(failed, &impossible):
		why = "the operator could not have asked for this run (" + impossible.Error() + ")"
	case reads:
		why = "the operator would not have asked for this run so"
	default:
		return nil, failed
	}
	why += "; so it could not be checked that every test that was asked for is there"
	if !reads {
		parsed, err := benchmarks.Parse(tool, &c.spec, benchmarks.Point{}, 0, output)
		switch {
		case err != nil && errors.As(failed, &impossible):
			return nil, err
		case err != nil:
			return nil, failed
		}
		r := c.reading(tool, parsed)
		r.notes, r.complete = append(r.notes, why), false
		r.point.Parameters = r.settings
		return []reading{r}, nil
	}
	all, err := saved.ParseSaved(output)
	if err != nil {
		return nil, err
	}
	var out []reading
	for i, one := range all {
		r := c.reading(tool, one.Report)
		r.complete = false
		if i == 0 {
			r.notes = append(r.notes, why)
		} else {
			r.notes = nil
		}
		r.point.Parameters = nil
		names := slices.Sorted(maps.Keys(one.Parameters))
		for _, v := range r.settings {
			if !slices.Contains(names, v.Name) {
				r.point.Parameters = append(r.point.Parameters, v)
			}
		}
		for _, name := range names {
			r.point.Parameters = append(r.point.Parameters, results.Value{Name: name, Value: one.Parameters[name]})
		}
		out = append(out, r)
	}
	return out, nil
}

// joined joins words, and shortens a long list.
func joined(words []string) string {
	const most = 24
	if len(words) <= most {
		return strings.Join(words, " ")
	}
	return fmt.Sprintf("%s and %d more", strings.Join(words[:most], " "), len(words)-most)
}

// valuesOf returns settings as the parameters of a point.
func valuesOf(settings []setting) []results.Value {
	var out []results.Value
	for _, s := range settings {
		out = append(out, results.Value{Name: v1alpha1.SweepName(s.field), Value: s.value})
	}
	return out
}

// parseAny parses an output. If the operator starts the tool on each process and the output has no number of processes, it counts as one
// process.
func parseAny(
	tool benchmarks.Tool, spec *v1alpha1.BenchmarkRunSpec, point benchmarks.Point, output []byte,
) (report benchmarks.Report, wrapped bool, err error) {
	parsed, err := benchmarks.Parse(tool, spec, point, 0, output)
	if err == nil || bytes.Contains(output, []byte("[rank ")) {
		return parsed, false, err
	}
	var ranked bytes.Buffer
	for line := range bytes.Lines(output) {
		fmt.Fprintf(&ranked, benchmarks.RankPrefix+"%s\n", 0, bytes.TrimRight(line, "\r\n"))
	}
	fmt.Fprintf(&ranked, benchmarks.RankEnd+"\n", 0, 0)
	again, second := benchmarks.Parse(tool, spec, point, 0, ranked.Bytes())
	if second == nil {
		return again, true, nil
	}
	return parsed, false, err
}

// specOf is the spec with its fields set; later settings replace earlier ones.
func specOf(tool v1alpha1.BenchmarkTool, base v1alpha1.BenchmarkRunSpec, all []setting) (v1alpha1.BenchmarkRunSpec, error) {
	base.Tool = tool
	base.Processes = max(base.Processes, 1)
	base.Statistic, base.Repetitions = v1alpha1.StatisticMean, 1
	member := string(tool)
	tree, err := treeOf(base)
	if err != nil {
		return base, err
	}
	if tree[member] == nil {
		tree[member] = map[string]any{}
	}
	for _, s := range all {
		if err := set(tree, s); err != nil {
			return base, err
		}
	}
	return specFrom(tree)
}

func treeOf(spec v1alpha1.BenchmarkRunSpec) (map[string]any, error) {
	text, err := json.Marshal(spec)
	if err != nil {
		return nil, err
	}
	tree := map[string]any{}
	err = json.Unmarshal(text, &tree)
	return tree, err
}

func specFrom(tree map[string]any) (v1alpha1.BenchmarkRunSpec, error) {
	var spec v1alpha1.BenchmarkRunSpec
	text, err := json.Marshal(tree)
	if err != nil {
		return spec, err
	}
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.DisallowUnknownFields()
	err = decoder.Decode(&spec)
	return spec, err
}

// set writes one field: as JSON, as a word, or as a list of words, whichever the field can hold.
func set(tree map[string]any, s setting) error {
	path := strings.Split(s.field, ".")
	switch s.field {
	case "clients":
		path = []string{"clients", "count"}
	case "storagePool":
		path = []string{"target", "fileSystem", "storagePool"}
	}
	at := tree
	for _, name := range path[:len(path)-1] {
		next, is := at[name].(map[string]any)
		if !is {
			next = map[string]any{}
			at[name] = next
		}
		at = next
	}
	last := path[len(path)-1]
	before, had := at[last]
	var number any
	candidates := []any{s.value}
	if json.Unmarshal([]byte(s.value), &number) == nil {
		candidates = []any{json.RawMessage(s.value), s.value}
	}
	var list []any
	for word := range strings.SplitSeq(s.value, ",") {
		list = append(list, word)
	}
	candidates = append(candidates, list)
	var why error
	for _, value := range candidates {
		at[last] = value
		_, err := specFrom(tree)
		if err == nil {
			return nil
		}
		if why == nil {
			why = err
		}
	}
	delete(at, last)
	if had {
		at[last] = before
	}
	return fmt.Errorf("%s=%s can't be set in the spec of a BenchmarkRun: %w", s.field, s.value, why)
}

// printPoints writes each point, and below it a row for each of its metrics.
func printPoints(to io.Writer, run results.Run) error {
	for i, p := range run.Points {
		if name := pointName(run, p); name != "" {
			if i > 0 {
				name = "\n" + name
			}
			if _, err := fmt.Fprintln(to, name); err != nil {
				return err
			}
		}
		w := tabwriter.NewWriter(to, 0, 0, 2, ' ', 0)
		_, _ = fmt.Fprintln(w, "  METRIC\tVALUE\tUNIT\tMIN\tMAX\tSAMPLES") // the writer keeps the error for Flush
		for _, m := range p.Metrics {
			_, _ = fmt.Fprintf(w, "  %s\t%s\t%s\t%s\t%s\t%d\n", m.Name, plain(m.Value), m.Unit, plain(m.Min), plain(m.Max), m.Samples) // as above
		}
		if err := w.Flush(); err != nil {
			return err
		}
	}
	return nil
}
