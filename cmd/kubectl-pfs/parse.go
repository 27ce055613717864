package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"reflect"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"
	"sigs.k8s.io/yaml"

	"parallelfs.dev/operator/api/v1alpha1"
	"parallelfs.dev/operator/benchmarks"
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
		Use:   "parse --tool TOOL FILE...",
		Short: "Read outputs of a tool that were saved elsewhere",
		Long: `parse reads what a tool printed, with the same parser as the operator, and writes a document that report --from and compare read.

An output of an aborted run, one that is cut off, or of a form that is not known is an error with the line, never a number.

The parameters are those of the command line that the tool printed (mdtest, ior, iozone, fio), of --spec (a BenchmarkRun, or its spec) and
of --set, the later ones first. The output is checked against them: that it has all tests and the counts that were asked for. What can't be
checked is said on stderr and stands in the document: options that no field of a spec stands for, and everything where the tool does not say
how it was called.

Several files become several points; files with the same parameters become repetitions of one.`,
		Example: `  kubectl pfs bench parse --tool mdtest old-mdtest.txt
  kubectl pfs bench parse --tool mdtest run-*.txt -o json --file old.json
  kubectl pfs bench parse --tool fio fio.json --set clients=1 -o table
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
	cmd.Flags().StringVar(&flags.tool, "tool", "", "the tool that made the output: "+strings.Join(a.toolNames(), ", "))
	cmd.Flags().StringVarP(&flags.output, "output", "o", "table", "table, json or csv")
	cmd.Flags().StringVar(&flags.file, "file", "", "file to write (default: standard output)")
	cmd.Flags().IntVar(&flags.processes, "processes", 0, "number of processes over all clients, as --set processes=N")
	cmd.Flags().StringArrayVar(&flags.set, "set", nil, "field of the spec, such as mdtest.depth=2 or mdtest.phases=Create,Stat; can be repeated")
	cmd.Flags().StringVar(&flags.spec, "spec", "", "file with a BenchmarkRun, or with its spec, that says what was asked for")
	cmd.Flags().StringVar(&flags.name, "name", "", "name of the document (default: the first file)")
	return cmd
}

// toolNames are those of the tools, sorted.
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
	tool, known := a.tools[name]
	switch {
	case !known:
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
	}
	run := results.Run{Format: results.Format, Name: flags.name}
	if run.Name == "" {
		run.Name = strings.TrimPrefix(files[0], "./")
	}
	repetitions := map[int][][]benchmarks.Sample{}
	for _, file := range files {
		output, err := a.read(file)
		if err != nil {
			return err
		}
		one, err := readOutput(tool, base, given, output)
		if err != nil {
			return fmt.Errorf("%s: %w", file, err)
		}
		for _, note := range one.notes {
			cmd.PrintErrln("Note: " + file + ": " + note + ".")
		}
		i := slices.IndexFunc(run.Points, func(p results.Point) bool { return slices.Equal(p.Parameters, one.point.Parameters) })
		if i < 0 {
			i = len(run.Points)
			one.point.Index = i
			run.Points = append(run.Points, one.point)
		}
		if len(run.Points) == 1 {
			run.Spec, run.Provenance.ToolVersion = one.spec, one.version
		} else if one.version != run.Provenance.ToolVersion {
			cmd.PrintErrln(fmt.Sprintf("Note: %s: made by version %s, the first file by %s.", file, one.version, run.Provenance.ToolVersion))
		}
		repetitions[i] = append(repetitions[i], one.samples)
		run.Points[i].Attempts = append(run.Points[i].Attempts, results.Attempt{
			Repetition: len(repetitions[i]), Attempt: 1, Samples: one.samples,
		})
		run.Spec.Repetitions = max(run.Spec.Repetitions, int32(min(len(repetitions[i]), 100)))
	}
	for i := range run.Points {
		if run.Points[i].Metrics, err = stats.Summarize(repetitions[i], run.Spec.Statistic); err != nil {
			return fmt.Errorf("the files with %s: %w", pointName(run, run.Points[i]), err)
		}
	}
	if flags.output == "table" {
		return write(cmd, flags.file, func(w io.Writer) error { return printPoints(w, run) })
	}
	made, err := document{run: &run}.form(flags.output, report.MinMax)
	if err != nil {
		return err
	}
	return write(cmd, flags.file, made)
}

// givenSettings are those of the command line.
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
	if spec.ToolName() != tool {
		return spec, fmt.Errorf("%s: the tool of the spec is %q, that of the output %q", path, spec.ToolName(), tool)
	}
	// What varied is not known of one output; only values of fields are.
	spec.Sweep, spec.Derive, spec.Along, spec.Baseline, spec.Until, spec.Caches = nil, nil, "", nil, nil, nil
	return spec, nil
}

// reading is what one output holds.
type reading struct {
	spec    v1alpha1.BenchmarkRunSpec
	point   results.Point
	version string
	samples []benchmarks.Sample
	notes   []string
}

// readOutput lets the tool's parser read an output. It is held to the parameters that are known; when some option is not known, and it does
// not agree with the others, it is read without them.
func readOutput(tool benchmarks.Tool, base v1alpha1.BenchmarkRunSpec, given []setting, output []byte) (reading, error) {
	found, command, unknown := recognize(tool.Name(), output)
	spec, err := specOf(tool.Name(), base, append(found, given...))
	if err != nil {
		return reading{}, err
	}
	point := benchmarks.Point{Parameters: map[v1alpha1.SweepName]string{}}
	parameters := tool.Parameters(&spec)
	for _, p := range parameters {
		if p.Value != "" {
			point.Parameters[p.Name] = p.Value
		}
	}
	r := reading{spec: spec, point: results.Point{
		State: v1alpha1.PointSucceeded, Parameters: results.Values(point, parameters), Command: command,
	}}
	told := len(command) > 0 || len(given) > 0 || !reflect.DeepEqual(base, v1alpha1.BenchmarkRunSpec{})
	parsed, wrapped, err := parseAny(tool, &spec, point, output)
	switch {
	case err == nil && len(unknown) > 0:
		r.notes = append(r.notes, "what these options do is not known, and could not be checked: "+strings.Join(unknown, " "))
	case err == nil && !told:
		r.notes = append(r.notes, "the output does not say how the tool was called, and was checked against its defaults; say it with --set")
	case err != nil:
		var impossible *benchmarks.InvalidPointError
		var why string
		switch {
		case len(unknown) > 0:
			why = "what these options do is not known: " + strings.Join(unknown, " ")
		case !told:
			why = "the output does not say how the tool was called"
		case len(given) == 0 && errors.As(err, &impossible):
			why = "the operator could not have asked for this run (" + impossible.Error() + ")"
		default:
			return reading{}, err
		}
		loose, looseWrapped, looseErr := parseAny(tool, &spec, benchmarks.Point{}, output)
		switch {
		case looseErr != nil && errors.As(err, &impossible):
			return reading{}, looseErr
		case looseErr != nil:
			return reading{}, err
		}
		parsed, wrapped = loose, looseWrapped
		r.notes = append(r.notes, why+"; so it could not be checked that every test that was asked for is there")
		if !told {
			r.point.Parameters = valuesOf(found)
		}
	}
	if wrapped {
		r.notes = append(r.notes, "the exit code is not known; the output is taken as that of one process that ended well")
	}
	if len(r.notes) > 0 {
		r.point.Message = "Read from a saved output: " + strings.Join(r.notes, "; ")
	}
	r.version, r.samples = parsed.Version, parsed.Samples
	return r, nil
}

// valuesOf are settings as the parameters of a point.
func valuesOf(settings []setting) []results.Value {
	var out []results.Value
	for _, s := range settings {
		out = append(out, results.Value{Name: v1alpha1.SweepName(s.field), Value: s.value})
	}
	return out
}

// parseAny parses an output; one of a tool that the operator starts on each process is taken as that of one process, when it says nothing
// of processes.
func parseAny(
	tool benchmarks.Tool, spec *v1alpha1.BenchmarkRunSpec, point benchmarks.Point, output []byte,
) (report benchmarks.Report, wrapped bool, err error) {
	parsed, err := tool.Parse(spec, point, 0, output)
	if err == nil || bytes.Contains(output, []byte("[rank ")) {
		return parsed, false, err
	}
	var ranked bytes.Buffer
	for line := range bytes.Lines(output) {
		fmt.Fprintf(&ranked, benchmarks.RankPrefix+"%s\n", 0, bytes.TrimRight(line, "\r\n"))
	}
	fmt.Fprintf(&ranked, benchmarks.RankEnd+"\n", 0, 0)
	again, second := tool.Parse(spec, point, 0, ranked.Bytes())
	if second == nil {
		return again, true, nil
	}
	return parsed, false, err
}

// specOf is the spec with its fields set, the later settings over the earlier.
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

// set writes one field: as the JSON that the value is, as a word, or as a list of words, whichever the field can hold.
func set(tree map[string]any, s setting) error {
	path := strings.Split(s.field, ".")
	switch s.field {
	case "clients":
		path = []string{"clients", "count"}
	case "storagePool":
		path = []string{"fileSystem", "storagePool"}
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
