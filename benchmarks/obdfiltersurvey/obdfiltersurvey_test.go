package obdfiltersurvey_test

import (
	"bytes"
	"errors"
	"testing"

	. "github.com/onsi/gomega"

	"parallelfs.dev/operator/api/v1alpha1"
	"parallelfs.dev/operator/benchmarks"
	"parallelfs.dev/operator/benchmarks/obdfiltersurvey"
	"parallelfs.dev/operator/benchmarks/tooltest"
)

func run(o v1alpha1.OBDFilterSurveySpec) *v1alpha1.BenchmarkRunSpec {
	return &v1alpha1.BenchmarkRunSpec{Tool: v1alpha1.ToolOBDFilterSurvey, OBDFilterSurvey: &o}
}

// small is a survey with few combinations.
var small = v1alpha1.OBDFilterSurveySpec{ThreadsHigh: 4}

// single is a survey with one combination.
var single = v1alpha1.OBDFilterSurveySpec{ThreadsHigh: 1, ObjectsHigh: 1}

// good holds outputs in the format of the lustre-iokit script (print_summary, cleanup), with made-up numbers.
var good = map[string]struct {
	spec *v1alpha1.BenchmarkRunSpec
	file string
	want []string
}{
	"one server with two targets": {run(small), "one-server-two-osts.txt", []string{
		"write obj 1 thr 1 613.54 MB/s", "read obj 1 thr 1 1024.11 MB/s", "write obj 1 thr 2 871.02 MB/s", "read obj 1 thr 2 1450.66 MB/s",
		"write obj 1 thr 4 1102.33 MB/s", "read obj 1 thr 4 1744.90 MB/s", "write obj 2 thr 2 844.20 MB/s", "read obj 2 thr 2 1398.51 MB/s",
		"write obj 2 thr 4 1100.87 MB/s", "read obj 2 thr 4 1733.02 MB/s",
	}},
	"two servers, added up": {run(single), "two-servers.txt", []string{"write obj 1 thr 1 1100.50 MB/s", "read obj 1 thr 1 1900.25 MB/s"}},
}

func TestContract(t *testing.T) {
	cases := map[string]tooltest.Case{}
	for name, g := range good {
		if g.file == "two-servers.txt" {
			continue // the number of servers is unknown here, so a missing one can't be detected
		}
		cases[name] = tooltest.Case{Spec: g.spec, Output: tooltest.Output(t, g.file)}
	}
	tooltest.Run(t, obdfiltersurvey.Tool{}, cases)
}

func TestPlan(t *testing.T) {
	g := NewWithT(t)
	spec := run(v1alpha1.OBDFilterSurveySpec{ThreadsLow: 2, ThreadsHigh: 16, ObjectsLow: 2, ObjectsHigh: 4, SizeMiB: 4096, RecordKiB: 512,
		Tests: []v1alpha1.OBDFilterTest{"read", "write", "rewrite"}})
	plan, err := obdfiltersurvey.Tool{}.Plan(spec, tooltest.Point(t, obdfiltersurvey.Tool{}, spec))
	g.Expect(err).NotTo(HaveOccurred())
	command := plan.Steps[0].Command
	g.Expect(command.Launch).To(Equal(benchmarks.OnServers))
	g.Expect(command.Role).To(Equal(v1alpha1.RoleStorage))
	g.Expect(command.Argv).To(Equal([]string{"obdfilter-survey"}))
	g.Expect(command.Env).To(Equal([]string{
		"case=disk", "thrlo=2", "thrhi=16", "nobjlo=2", "nobjhi=4", "size=4096", "rszlo=512", "rszhi=512", "tests_str=write rewrite read",
		"targets=$(TARGETS)", "rslt_loc=$(DIRECTORY)",
	}))
}

func TestPlanRefuses(t *testing.T) {
	for name, test := range map[string]struct {
		spec v1alpha1.OBDFilterSurveySpec
		says string
	}{
		"threads the wrong way round":      {v1alpha1.OBDFilterSurveySpec{ThreadsLow: 8, ThreadsHigh: 4}, "obdfilterSurvey.threadsHigh: 4 is less than obdfilterSurvey.threadsLow (8)"},
		"objects the wrong way round":      {v1alpha1.OBDFilterSurveySpec{ObjectsLow: 8}, "obdfilterSurvey.objectsHigh: 2 is less than obdfilterSurvey.objectsLow (8)"},
		"no combination":                   {v1alpha1.OBDFilterSurveySpec{ObjectsLow: 32, ObjectsHigh: 32}, "leaves out the others"},
		"a record of broken pages":         {v1alpha1.OBDFilterSurveySpec{RecordKiB: 6}, "obdfilterSurvey.recordKiB: 6 is no multiple of 4"},
		"a record that the script refuses": {v1alpha1.OBDFilterSurveySpec{RecordKiB: 8192}, "obdfilterSurvey.recordKiB: 8192"},
		"a size that can't be divided":     {v1alpha1.OBDFilterSurveySpec{SizeMiB: 1000, ThreadsHigh: 16}, "obdfilterSurvey.sizeMiB: 1000 MiB can't be divided among 16 threads"},
		"tests without the first":          {v1alpha1.OBDFilterSurveySpec{Tests: []v1alpha1.OBDFilterTest{"read"}}, "the first test must be write"},
		"more results than a point holds":  {v1alpha1.OBDFilterSurveySpec{ThreadsHigh: 256, ObjectsHigh: 8}, "make 60 results, and a point holds 32"},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			spec := run(test.spec)
			plan, err := obdfiltersurvey.Tool{}.Plan(spec, tooltest.Point(t, obdfiltersurvey.Tool{}, spec))
			var invalid *benchmarks.InvalidPointError
			g.Expect(errors.As(err, &invalid)).To(BeTrue())
			g.Expect(err).To(MatchError(ContainSubstring(test.says)))
			g.Expect(plan).To(Equal(benchmarks.Plan{}))
		})
	}
}

func TestParseReadsWhatTheScriptPrinted(t *testing.T) {
	for name, test := range good {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			report, err := obdfiltersurvey.Tool{}.Parse(test.spec, tooltest.Point(t, obdfiltersurvey.Tool{}, test.spec), 0, tooltest.Output(t, test.file))
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(tooltest.Lines(report)).To(Equal(test.want))
		})
	}
}

func TestParseRefuses(t *testing.T) {
	for name, test := range map[string]struct {
		spec           *v1alpha1.BenchmarkRunSpec
		file, old, new string
		says           string
	}{
		"a real survey that was too short, with exit code 0": {
			spec: run(v1alpha1.OBDFilterSurveySpec{ThreadsHigh: 4, SizeMiB: 64, Tests: []v1alpha1.OBDFilterTest{"write", "rewrite", "read"}}),
			file: "error-2.17.57-short.txt", says: "its line 3: write was over before there were two looks at it",
		},
		"a target that does not exist":         {spec: run(single), file: "error-2.17.57-no-target.txt", says: "process 0 ended with exit code 2"},
		"a test that failed, with exit code 0": {spec: run(single), file: "error-test.txt", says: "instead of the result of read"},
		"a test of less than a second":         {spec: run(single), file: "error-short.txt", says: "write was over before there were two looks at it, which need about two seconds; make obdfilterSurvey.sizeMiB larger"},
		"ended from outside":                   {spec: run(single), file: "error-terminated.txt", says: "instead of the result of write"},
		"too much memory for all targets":      {spec: run(single), file: "error-buffer.txt", says: `found "Too much buffer space" instead of`},
		"too few combinations":                 {spec: run(v1alpha1.OBDFilterSurveySpec{}), file: "one-server-two-osts.txt", says: "the result is of 4 objects instead of 2"},
		"too many combinations":                {spec: run(v1alpha1.OBDFilterSurveySpec{ThreadsHigh: 4, ObjectsHigh: 1}), file: "one-server-two-osts.txt", says: "more combinations than 3"},
		"another size":                         {spec: run(v1alpha1.OBDFilterSurveySpec{ThreadsHigh: 4, SizeMiB: 2048}), file: "one-server-two-osts.txt", says: "the result is of 2097152 KiB instead of 4194304"},
		"a result of nothing":                  {spec: run(small), file: "one-server-two-osts.txt", old: "613.54", new: "0.00", says: `the result of write is "0.00"`},
		"no targets":                           {spec: run(small), file: "one-server-two-osts.txt", old: "ost  2", new: "ost  0", says: `the result is of "0" targets`},
		"an error of lctl":                     {spec: run(small), file: "one-server-two-osts.txt", old: "[rank 0] done!", new: "[rank 0] error: test_brw\n[rank 0] done!", says: `obdfilter-survey says "error: test_brw"`},
		"something behind the end":             {spec: run(small), file: "one-server-two-osts.txt", old: "done!\n", new: "done!\n[rank 0] oops\n", says: `"oops" stands behind the end`},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			text := tooltest.Output(t, test.file)
			if test.old != "" {
				g.Expect(string(text)).To(ContainSubstring(test.old))
				text = bytes.Replace(text, []byte(test.old), []byte(test.new), 1)
			}
			report, err := obdfiltersurvey.Tool{}.Parse(test.spec, tooltest.Point(t, obdfiltersurvey.Tool{}, test.spec), 0, text)
			g.Expect(err).To(MatchError(ContainSubstring(test.says)))
			g.Expect(report).To(Equal(benchmarks.Report{}))
		})
	}
}

func FuzzParse(f *testing.F) {
	for _, file := range []string{"one-server-two-osts.txt", "two-servers.txt", "error-test.txt", "error-terminated.txt"} {
		f.Add(tooltest.Output(f, file))
	}
	spec := run(small)
	p := tooltest.Point(f, obdfiltersurvey.Tool{}, spec)
	f.Fuzz(func(t *testing.T, text []byte) {
		samples := tooltest.Reads(t, obdfiltersurvey.Tool{}, spec, p, text)
		if samples != nil && len(samples) != 10 {
			t.Fatalf("%d samples", len(samples))
		}
	})
}

func BenchmarkParse(b *testing.B) {
	spec := run(small)
	p, text := tooltest.Point(b, obdfiltersurvey.Tool{}, spec), tooltest.Output(b, "one-server-two-osts.txt")
	b.SetBytes(int64(len(text)))
	b.ReportAllocs()
	for b.Loop() {
		if _, err := (obdfiltersurvey.Tool{}).Parse(spec, p, 0, text); err != nil {
			b.Fatal(err)
		}
	}
}
