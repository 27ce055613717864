package custom_test

import (
	"bytes"
	"errors"
	"testing"

	. "github.com/onsi/gomega"

	"parallelfs.dev/operator/api/v1alpha1"
	"parallelfs.dev/operator/benchmarks"
	"parallelfs.dev/operator/benchmarks/custom"
	"parallelfs.dev/operator/benchmarks/tooltest"
)

// run returns a run of a program with some metrics.
func run(processes int32, o v1alpha1.CustomSpec) *v1alpha1.BenchmarkRunSpec {
	if o.Command == nil {
		o.Command = []v1alpha1.BenchmarkArgument{"/opt/bench", "--jobs=$(processes)", "--dir", "$(directory)"}
	}
	return &v1alpha1.BenchmarkRunSpec{Tool: v1alpha1.ToolCustom, Processes: processes, Custom: &o}
}

func regex(name, unit, expression string, combine v1alpha1.CustomCombine) v1alpha1.CustomMetric {
	return v1alpha1.CustomMetric{Name: name, Unit: unit, Regex: expression, Combine: combine}
}

func path(name, unit, jsonPath string) v1alpha1.CustomMetric {
	return v1alpha1.CustomMetric{Name: name, Unit: unit, JSONPath: jsonPath}
}

func metrics(m ...v1alpha1.CustomMetric) v1alpha1.CustomSpec { return v1alpha1.CustomSpec{Metrics: m} }

var good = map[string]struct {
	spec *v1alpha1.BenchmarkRunSpec
	file string
	want []string
}{
	"lines": {run(4, v1alpha1.CustomSpec{
		Command:    []v1alpha1.BenchmarkArgument{"/opt/bench", "--jobs=$(processes)", "--depth=$(depth)", "--dir", "$(directory)/$(depth)"},
		Parameters: []v1alpha1.CustomParameter{{Name: "depth", Value: "8"}},
		Metrics: []v1alpha1.CustomMetric{
			regex("total", "MiB/s", `^total: ([0-9.]+) MiB/s, done$`, ""), regex("workers", "MiB/s", `^worker \d+: (\S+) MiB/s`, v1alpha1.CustomSum),
			regex("fastest", "MiB/s", `^worker \d+: (\S+) MiB/s`, v1alpha1.CustomMax), regex("slowest", "MiB/s", `^worker \d+: (\S+) MiB/s`, v1alpha1.CustomMin),
			regex("worker", "MiB/s", `^worker \d+: (\S+) MiB/s`, v1alpha1.CustomMean), regex("latency", "ms", `latency (\S+)`, v1alpha1.CustomOnly),
		},
	}), "lines.txt", []string{
		"total 201.00 MiB/s", "workers 201.00 MiB/s", "fastest 101.50 MiB/s", "slowest 99.50 MiB/s", "worker 100.50 MiB/s", "latency 0.25 ms",
	}},
	"a JSON document, here of fio": {run(1, metrics(path("bw", "KiB/s", "{.jobs[0].read.bw}"), path("size", "bytes", `{.jobs[0].job\ options.size}`))),
		"document.json", []string{"bw 819200.00 KiB/s", "size 4194304.00 bytes"}},
	"two processes": {run(2, v1alpha1.CustomSpec{
		Launch: v1alpha1.CustomPerProcess, Metrics: []v1alpha1.CustomMetric{regex("rate", "ops/s", `^rate=([0-9.]+) ops/s$`, v1alpha1.CustomSum)},
	}), "processes.txt", []string{"rate 22.00 ops/s"}},
}

func TestContract(t *testing.T) {
	cases := map[string]tooltest.Case{}
	for name, g := range good {
		cases[name] = tooltest.Case{Spec: g.spec, Output: tooltest.Output(t, g.file)}
	}
	tooltest.Run(t, custom.Tool{}, cases)
}

func TestPlan(t *testing.T) {
	g := NewWithT(t)
	spec := run(8, v1alpha1.CustomSpec{
		Command: []v1alpha1.BenchmarkArgument{"prog", "$(processes) on $(clients)", "--mode=$(mode)", "-n$(count)", "$(directory)", "$5(", "100%"},
		Launch:  v1alpha1.CustomMPI, Parameters: []v1alpha1.CustomParameter{{Name: "mode", Value: "fast"}, {Name: "count", Value: "64"}},
		Metrics: []v1alpha1.CustomMetric{regex("x", "y", "(.)", "")}, SpaceBytes: "2Gi",
	})
	spec.Clients.Count = 2
	plan, err := custom.Tool{}.Plan(spec, tooltest.Point(t, custom.Tool{}, spec))
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(plan).To(Equal(benchmarks.Plan{
		Steps: []benchmarks.Step{{Command: benchmarks.Command{
			Launch: benchmarks.OnProcesses, Argv: []string{"prog", "8 on 2", "--mode=fast", "-n64", "$(DIRECTORY)", "$5(", "100%"},
		}}},
		Clients: 2, Processes: 8, Demand: benchmarks.Demand{Bytes: 2 << 30},
	}))
	g.Expect(custom.Tool{}.Parameters(spec)).To(ContainElements(
		benchmarks.Parameter{Name: "custom.mode", Kind: benchmarks.Word, Value: "fast"},
		benchmarks.Parameter{Name: "custom.count", Kind: benchmarks.Number, Value: "64"}))
	spec.Custom.Launch = v1alpha1.CustomPerProcess
	spec.Custom.Metrics[0].Combine = v1alpha1.CustomSum
	plan, err = custom.Tool{}.Plan(spec, tooltest.Point(t, custom.Tool{}, spec))
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(plan.Steps[0].Command.Launch).To(Equal(benchmarks.OnEachProcess))
}

func TestPlanRefuses(t *testing.T) {
	one := regex("m", "u", "(.)", "")
	with := func(argument v1alpha1.BenchmarkArgument) v1alpha1.CustomSpec {
		return v1alpha1.CustomSpec{Command: []v1alpha1.BenchmarkArgument{"prog", argument}, Launch: v1alpha1.CustomMPI, Metrics: []v1alpha1.CustomMetric{one}}
	}
	for name, test := range map[string]struct {
		spec *v1alpha1.BenchmarkRunSpec
		says string
	}{
		"something that nothing replaces":      {run(1, with("$(depth)")), `custom.command: "$(depth)" is not known in "$(depth)"; there are $(directory), $(processes)`},
		"a name of the operator's own":         {run(1, with("$(RANK)")), `"$(RANK)" is not known`},
		"clients that are not counted":         {run(1, with("-c$(clients)")), "set spec.clients.count for $(clients)"},
		"an expression that is none":           {run(1, metrics(regex("m", "u", "(", ""))), "custom.metrics, m: its regex is none of RE2"},
		"an expression without a group":        {run(1, metrics(regex("m", "u", "x", ""))), "its regex has 0 groups instead of one"},
		"an expression with two groups":        {run(1, metrics(regex("m", "u", "(x)(y)", ""))), "its regex has 2 groups instead of one"},
		"a path that is none":                  {run(1, metrics(path("m", "u", "{.a["))), "its jsonPath can't be read"},
		"neither of them":                      {run(1, metrics(v1alpha1.CustomMetric{Name: "m", Unit: "u"})), "set exactly one of regex and jsonPath"},
		"no metric":                            {run(1, metrics()), "nothing would be measured"},
		"a parameter with the name of another": {run(1, v1alpha1.CustomSpec{Parameters: []v1alpha1.CustomParameter{{Name: "processes", Value: "1"}}, Metrics: []v1alpha1.CustomMetric{one}}), `"processes" is a name that $(processes) has already`},
		"one result of several processes":      {run(2, v1alpha1.CustomSpec{Launch: v1alpha1.CustomPerProcess, Metrics: []v1alpha1.CustomMetric{one}}), "combine Only would refuse the results of 2 processes"},
		"a launch that there is not":           {run(1, v1alpha1.CustomSpec{Launch: "Rocket", Metrics: []v1alpha1.CustomMetric{one}}), "custom.launch"},
		"a space that is none":                 {run(1, v1alpha1.CustomSpec{SpaceBytes: "much", Metrics: []v1alpha1.CustomMetric{one}}), "custom.spaceBytes"},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			plan, err := custom.Tool{}.Plan(test.spec, tooltest.Point(t, custom.Tool{}, test.spec))
			var invalid *benchmarks.InvalidPointError
			g.Expect(errors.As(err, &invalid)).To(BeTrue())
			g.Expect(err).To(MatchError(ContainSubstring(test.says)))
			g.Expect(plan).To(Equal(benchmarks.Plan{}))
		})
	}
}

func TestParseFindsTheMetrics(t *testing.T) {
	for name, test := range good {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			report, err := custom.Tool{}.Parse(test.spec, tooltest.Point(t, custom.Tool{}, test.spec), 0, tooltest.Output(t, test.file))
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(tooltest.Lines(report)).To(Equal(test.want))
		})
	}
}

func TestParseRefuses(t *testing.T) {
	lines, document, processes := good["lines"].spec, good["a JSON document, here of fio"].spec, good["two processes"].spec
	for name, test := range map[string]struct {
		spec           *v1alpha1.BenchmarkRunSpec
		file, old, new string
		says           string
	}{
		"a metric that is not there":            {spec: lines, file: "lines.txt", old: "latency", new: "delay", says: "metric latency: it was not found"},
		"a metric that is there twice":          {spec: lines, file: "lines.txt", old: "latency", new: "latency 1 ms\nlatency", says: "metric latency: it was found 2 times, and combine is Only"},
		"a number that is none":                 {spec: lines, file: "lines.txt", old: "0.25", new: "nan", says: `metric latency: line 4: "nan" is no number`},
		"infinity":                              {spec: lines, file: "lines.txt", old: "0.25", new: "+Inf", says: `"+Inf" is no number`},
		"a hexadecimal number":                  {spec: lines, file: "lines.txt", old: "0.25", new: "0x1p4", says: `"0x1p4" is no number`},
		"a number beyond counting":              {spec: lines, file: "lines.txt", old: "0.25", new: "1e999", says: `"1e999" is no number`},
		"a document that is cut off":            {spec: document, file: "document.json", old: "  ]\n}\n", new: "", says: "the output is no JSON document"},
		"words behind the document":             {spec: document, file: "document.json", old: "  ]\n}\n", new: "  ]\n}\noops\n", says: "something stands behind the JSON document"},
		"a path that leads nowhere":             {spec: document, file: "document.json", old: `"bw" :`, new: `"bv" :`, says: "metric bw: jsonPath {.jobs[0].read.bw}: bw is not found"},
		"a path to no number":                   {spec: run(1, metrics(path("m", "u", "{.jobs[0].read}"))), file: "document.json", says: "finds something that is no number"},
		"a process without the metric":          {spec: processes, file: "processes.txt", old: "[rank 1] rate", new: "[rank 1] late", says: "metric rate, process 1: it was not found"},
		"a process that failed":                 {spec: processes, file: "processes.txt", old: "[rank 1 ended with exit code 0]", new: "[rank 1 ended with exit code 9]", says: "process 1 ended with exit code 9"},
		"a line of the operator's own, as well": {spec: lines, file: "lines.txt", old: "latency", new: "parallelfs: latency", says: "metric latency: it was not found"},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			text := tooltest.Output(t, test.file)
			if test.old != "" {
				g.Expect(string(text)).To(ContainSubstring(test.old))
				text = bytes.Replace(text, []byte(test.old), []byte(test.new), 1)
			}
			report, err := custom.Tool{}.Parse(test.spec, tooltest.Point(t, custom.Tool{}, test.spec), 0, text)
			g.Expect(err).To(MatchError(ContainSubstring(test.says)))
			g.Expect(report).To(Equal(benchmarks.Report{}))
		})
	}
}

func FuzzParse(f *testing.F) {
	specs := []*v1alpha1.BenchmarkRunSpec{
		good["lines"].spec, good["a JSON document, here of fio"].spec, good["two processes"].spec,
		run(1, metrics(path("m", "u", "{.jobs[*].read.bw}"), path("n", "u", `{..bw}`), path("o", "u", `{.jobs[?(@.error==0)].read.bw}`))),
	}
	for _, file := range []string{"lines.txt", "document.json", "processes.txt"} {
		f.Add(tooltest.Output(f, file))
	}
	var points []benchmarks.Point
	for _, spec := range specs {
		points = append(points, tooltest.Point(f, custom.Tool{}, spec))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		for i, spec := range specs {
			tooltest.Reads(t, custom.Tool{}, spec, points[i], text)
		}
	})
}

func BenchmarkParse(b *testing.B) {
	spec := good["lines"].spec
	p, text := tooltest.Point(b, custom.Tool{}, spec), tooltest.Output(b, "lines.txt")
	b.SetBytes(int64(len(text)))
	b.ReportAllocs()
	for b.Loop() {
		if _, err := (custom.Tool{}).Parse(spec, p, 0, text); err != nil {
			b.Fatal(err)
		}
	}
}
