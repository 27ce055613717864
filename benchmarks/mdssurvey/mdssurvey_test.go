package mdssurvey_test

import (
	"bytes"
	"errors"
	"testing"

	. "github.com/onsi/gomega"

	"parallelfs.dev/operator/api/v1alpha1"
	"parallelfs.dev/operator/benchmarks"
	"parallelfs.dev/operator/benchmarks/mdssurvey"
	"parallelfs.dev/operator/benchmarks/tooltest"
)

func run(o v1alpha1.MDSSurveySpec) *v1alpha1.BenchmarkRunSpec {
	return &v1alpha1.BenchmarkRunSpec{Tool: v1alpha1.ToolMDSSurvey, MDSSurvey: &o}
}

// The survey in the talk of 2014, from 64 threads on.
func talk(high int32) *v1alpha1.BenchmarkRunSpec {
	return run(v1alpha1.MDSSurveySpec{ThreadsLow: 64, ThreadsHigh: high, FileCount: 200000, DirCount: 64})
}

// recorded is a survey that was run on a real Lustre.
var recorded = run(v1alpha1.MDSSurveySpec{ThreadsLow: 1, ThreadsHigh: 4, FileCount: 2000, DirCount: 1})

// good holds outputs of Lustre 2.17.57, and outputs in the same format with the numbers of the talk.
var good = map[string]struct {
	spec *v1alpha1.BenchmarkRunSpec
	file string
	want []string
}{
	"a real target with three numbers of threads": {recorded, "2.17.57-one-mdt.txt", []string{
		"create thr 1 1622.98 ops/s", "lookup thr 1 36884.04 ops/s", "md_getattr thr 1 8654.30 ops/s", "setxattr thr 1 9780.86 ops/s", "destroy thr 1 2749.33 ops/s",
		"create thr 2 1646.43 ops/s", "lookup thr 2 6647.74 ops/s", "md_getattr thr 2 8860.18 ops/s", "setxattr thr 2 4577.20 ops/s", "destroy thr 2 1501.51 ops/s",
		"create thr 4 1157.16 ops/s", "lookup thr 4 19571.00 ops/s", "md_getattr thr 4 8092.45 ops/s", "setxattr thr 4 4845.36 ops/s", "destroy thr 4 2160.08 ops/s",
	}},
	"two targets of one server, each with a script of its own, added up": {talk(64), "one-server-two-mdts.txt", []string{
		"create thr 64 106341.92 ops/s", "lookup thr 64 1616553.00 ops/s", "md_getattr thr 64 1066947.39 ops/s", "setxattr thr 64 72548.04 ops/s",
		"destroy thr 64 100921.17 ops/s",
	}},
	"one server with two numbers of threads": {talk(128), "one-server.txt", []string{
		"create thr 64 70894.61 ops/s", "lookup thr 64 1077702.00 ops/s", "md_getattr thr 64 711298.26 ops/s", "setxattr thr 64 48365.36 ops/s",
		"destroy thr 64 67280.78 ops/s", "create thr 128 60852.58 ops/s", "lookup thr 128 1148586.00 ops/s", "md_getattr thr 128 619296.27 ops/s",
		"setxattr thr 128 61283.87 ops/s", "destroy thr 128 59644.49 ops/s",
	}},
	"two servers, added up": {talk(64), "two-servers.txt", []string{
		"create thr 64 106341.92 ops/s", "lookup thr 64 1616553.00 ops/s", "md_getattr thr 64 1066947.39 ops/s", "setxattr thr 64 72548.04 ops/s",
		"destroy thr 64 100921.17 ops/s",
	}},
}

func TestContract(t *testing.T) {
	cases := map[string]tooltest.Case{}
	for name, g := range good {
		if g.file == "two-servers.txt" || g.file == "one-server-two-mdts.txt" {
			continue // the number of servers and targets is unknown here, so a missing one can't be detected
		}
		cases[name] = tooltest.Case{Spec: g.spec, Output: tooltest.Output(t, g.file)}
	}
	tooltest.Run(t, mdssurvey.Tool{}, cases)
}

func TestPlan(t *testing.T) {
	g := NewWithT(t)
	spec := talk(2048)
	plan, err := mdssurvey.Tool{}.Plan(spec, tooltest.Point(t, mdssurvey.Tool{}, spec))
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(plan.Steps).To(HaveLen(1))
	command := plan.Steps[0].Command
	g.Expect(command.Launch).To(Equal(benchmarks.OnServers))
	g.Expect(command.Role).To(Equal(v1alpha1.RoleMetadata))
	g.Expect(command.Argv).To(Equal([]string{"mds-survey"}))
	g.Expect(command.Env).To(Equal([]string{
		"thrlo=64", "thrhi=2048", "file_count=200000", "dir_count=64", "stripe_count=0", "tests_str=create lookup md_getattr setxattr destroy",
		"targets=$(TARGETS)", "rslt_loc=$(DIRECTORY)",
	}))
	g.Expect(command.ForEachTarget).To(BeTrue(), "one script measures several targets one after the other")
}

func TestPlanAcceptsAFileForEachThreadAndAsManyResultsAsAPointHolds(t *testing.T) {
	g := NewWithT(t)
	spec := run(v1alpha1.MDSSurveySpec{
		ThreadsLow: 1, ThreadsHigh: 128, FileCount: 128, DirCount: 1, Tests: []v1alpha1.MDSSurveyTest{"create", "lookup", "md_getattr", "destroy"},
	})
	_, err := mdssurvey.Tool{}.Plan(spec, tooltest.Point(t, mdssurvey.Tool{}, spec))
	g.Expect(err).NotTo(HaveOccurred(), "8 numbers of threads with 4 tests make 32 results")
}

func TestPlanRefuses(t *testing.T) {
	for name, test := range map[string]struct {
		spec v1alpha1.MDSSurveySpec
		says string
	}{
		"threads the wrong way round":     {v1alpha1.MDSSurveySpec{ThreadsLow: 8, ThreadsHigh: 4}, "mdsSurvey.threadsHigh: 4 is less than mdsSurvey.threadsLow (8)"},
		"fewer threads than directories":  {v1alpha1.MDSSurveySpec{ThreadsLow: 4, DirCount: 8}, "mdsSurvey.threadsLow: 4 is less than mdsSurvey.dirCount (8); mds-survey leaves out"},
		"fewer files than threads":        {v1alpha1.MDSSurveySpec{FileCount: 10}, "mdsSurvey.fileCount: 10 is less than mdsSurvey.threadsHigh (64)"},
		"tests without the first":         {v1alpha1.MDSSurveySpec{Tests: []v1alpha1.MDSSurveyTest{"lookup", "destroy"}}, "the first test must be create"},
		"more results than a point holds": {v1alpha1.MDSSurveySpec{ThreadsLow: 4, ThreadsHigh: 256}, "7 numbers of threads from 4 to 256 with 5 tests make 35 results, and a point holds 32"},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			spec := run(test.spec)
			plan, err := mdssurvey.Tool{}.Plan(spec, tooltest.Point(t, mdssurvey.Tool{}, spec))
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
			report, err := mdssurvey.Tool{}.Parse(test.spec, tooltest.Point(t, mdssurvey.Tool{}, test.spec), 0, tooltest.Output(t, test.file))
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
		"a test that failed, with exit code 0": {spec: talk(64), file: "error-test.txt", says: `instead of the result of setxattr`},
		"ended from outside, with exit code 0": {spec: talk(64), file: "error-terminated.txt", says: `mds-survey says "Terminated"`},
		"a node without a metadata target":     {spec: talk(64), file: "error-no-mdt.txt", says: "process 0 ended with exit code 1"},
		"directories that could not be made":   {spec: talk(64), file: "error-directories.txt", says: `mds-survey says "created directories on localhost:lustre-MDT0000_ecc failed"`},
		"a script that measured two targets, one after the other": {
			spec: run(v1alpha1.MDSSurveySpec{ThreadsLow: 2, ThreadsHigh: 2, FileCount: 1000, DirCount: 2}), file: "error-2.17.57-two-mdts-one-script.txt",
			says: "the result is of 2 metadata targets instead of 1",
		},
		"a target that does not exist, with exit code 0": {spec: recorded, file: "error-2.17.57-no-target.txt", says: `mds-survey says "OST pfs-MDT0009 not setup"`},
		"more directories than threads, with exit code 0": {
			spec: recorded, file: "error-2.17.57-threads.txt", says: "there are results of 0 numbers of threads instead of 3",
		},
		"one of two targets that does not exist": {
			spec: talk(64), file: "one-server-two-mdts.txt", old: "[target pfs-MDT0001] mdt", new: "[target pfs-MDT0001] OST pfs-MDT0001 not setup\n[rank 0] mdt",
			says: `mds-survey says "OST pfs-MDT0001 not setup"`,
		},
		"too few numbers of threads":  {spec: talk(256), file: "one-server.txt", says: "there are results of 2 numbers of threads instead of 3"},
		"too many numbers of threads": {spec: talk(64), file: "one-server.txt", says: "more numbers of threads than 1"},
		"another number of files":     {spec: talk(128), file: "one-server.txt", old: "file  200000", new: "file  100000", says: "the result is of 100000 files instead of 200000"},
		"a result of nothing":         {spec: talk(128), file: "one-server.txt", old: "70894.61", new: "0.00", says: `the result of create is "0.00"`},
		"a test that is missing":      {spec: talk(128), file: "one-server.txt", old: "lookup", new: "stat", says: "instead of the result of lookup"},
		"something behind the end":    {spec: talk(128), file: "one-server.txt", old: "done!\n", new: "done!\n[rank 0] oops\n", says: `"oops" stands behind the end`},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			text := tooltest.Output(t, test.file)
			if test.old != "" {
				g.Expect(string(text)).To(ContainSubstring(test.old))
				text = bytes.Replace(text, []byte(test.old), []byte(test.new), 1)
			}
			report, err := mdssurvey.Tool{}.Parse(test.spec, tooltest.Point(t, mdssurvey.Tool{}, test.spec), 0, text)
			g.Expect(err).To(MatchError(ContainSubstring(test.says)))
			g.Expect(report).To(Equal(benchmarks.Report{}))
		})
	}
}

func FuzzParse(f *testing.F) {
	for _, file := range []string{"one-server.txt", "two-servers.txt", "error-test.txt", "error-terminated.txt"} {
		f.Add(tooltest.Output(f, file))
	}
	spec := talk(128)
	p := tooltest.Point(f, mdssurvey.Tool{}, spec)
	f.Fuzz(func(t *testing.T, text []byte) {
		samples := tooltest.Reads(t, mdssurvey.Tool{}, spec, p, text)
		if samples != nil && len(samples) != 10 {
			t.Fatalf("%d samples", len(samples))
		}
	})
}

func BenchmarkParse(b *testing.B) {
	spec := talk(128)
	p, text := tooltest.Point(b, mdssurvey.Tool{}, spec), tooltest.Output(b, "one-server.txt")
	b.SetBytes(int64(len(text)))
	b.ReportAllocs()
	for b.Loop() {
		if _, err := (mdssurvey.Tool{}).Parse(spec, p, 0, text); err != nil {
			b.Fatal(err)
		}
	}
}
