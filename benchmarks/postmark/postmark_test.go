package postmark_test

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
	"testing"

	. "github.com/onsi/gomega"

	"parallelfs.dev/operator/api/v1alpha1"
	"parallelfs.dev/operator/benchmarks"
	"parallelfs.dev/operator/benchmarks/postmark"
	"parallelfs.dev/operator/benchmarks/tooltest"
)

func run(processes int32, o v1alpha1.PostmarkSpec) *v1alpha1.BenchmarkRunSpec {
	return &v1alpha1.BenchmarkRunSpec{Tool: v1alpha1.ToolPostmark, Processes: processes, Postmark: &o}
}

// good holds outputs of successful runs of Debian's postmark 1.53, with their points, prefixed as by the node binary.
var good = map[string]struct {
	spec *v1alpha1.BenchmarkRunSpec
	file string
	want []string
}{
	"two processes with subdirectories": {
		run(2, v1alpha1.PostmarkSpec{Files: 20000, Transactions: 40000, Subdirectories: 10}), "two-processes.txt", []string{
			"transactions 26666.67 per second", "created 13339.33 per second", "creation alone 13332.00 per second", "read 13320.00 per second",
			"appended 13338.00 per second", "deleted 13339.33 per second", "deletion alone 40072.00 per second", "data read 37.61 megabytes per second",
			"data written 77.80 megabytes per second", "total files 80036.00 files",
		}},
	"one process that takes less than a second": {run(1, v1alpha1.PostmarkSpec{}), "one-process-one-second.txt", []string{
		"transactions 500.00 per second", "created 747.00 per second", "creation alone 500.00 per second", "read 250.00 per second",
		"appended 250.00 per second", "deleted 747.00 per second", "deletion alone 494.00 per second", "data read 1.36 megabytes per second",
		"data written 4.16 megabytes per second", "total files 747.00 files",
	}},
	"one process with files of some bytes": {run(1, v1alpha1.PostmarkSpec{SizeLow: "32", SizeHigh: "60"}), "one-process-small-files.txt", []string{
		"transactions 500.00 per second", "created 761.00 per second", "creation alone 500.00 per second", "read 246.00 per second",
		"appended 249.00 per second", "deleted 761.00 per second", "deletion alone 522.00 per second", "data read 0.01 megabytes per second",
		"data written 0.03 megabytes per second", "total files 761.00 files",
	}},
}

func TestContract(t *testing.T) {
	cases := map[string]tooltest.Case{}
	for name, g := range good {
		cases[name] = tooltest.Case{Spec: g.spec, Output: tooltest.Output(t, g.file)}
	}
	tooltest.Run(t, postmark.Tool{}, cases)
}

// The run that was published in the talk of 2014.
var talk = v1alpha1.PostmarkSpec{
	Files: 10000, Transactions: 1000, Subdirectories: 3, SizeLow: "32Ki", SizeHigh: "400000", ReadSize: "16Ki", WriteSize: "16Ki",
}

func TestPlan(t *testing.T) {
	g := NewWithT(t)
	spec := run(32, talk)
	plan, err := postmark.Tool{}.Plan(spec, tooltest.Point(t, postmark.Tool{}, spec))
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(plan).To(Equal(benchmarks.Plan{
		Steps: []benchmarks.Step{{Command: benchmarks.Command{
			Launch: benchmarks.OnEachProcess, Argv: []string{"postmark"},
			Stdin: "set location .\nset number 10000\nset transactions 1000\nset subdirectories 3\nset size 32768 400000\nset read 16384\n" +
				"set write 16384\nset bias read 5\nset bias create 5\nset buffering false\nset seed 42\nset report verbose\nrun\nquit\n",
		}}},
		Processes: 32, Demand: benchmarks.Demand{Bytes: 32 * 11000 * 400000, Inodes: 32 * (11000 + 3 + 1)},
	}))
}

func TestPlanRefusesWhatPostmarkWouldReplace(t *testing.T) {
	for name, test := range map[string]struct {
		spec *v1alpha1.BenchmarkRunSpec
		says string
	}{
		"sizes the wrong way round":    {run(1, v1alpha1.PostmarkSpec{SizeLow: "2Ki", SizeHigh: "1Ki"}), "postmark.sizeHigh: 1Ki is less than postmark.sizeLow (2Ki)"},
		"a size that is no int":        {run(1, v1alpha1.PostmarkSpec{SizeHigh: "4Gi"}), "postmark.sizeHigh: 4Gi is more than 2147483647"},
		"files of nothing":             {run(1, v1alpha1.PostmarkSpec{SizeLow: "0"}), "postmark.sizeLow: 0 is less than 1"},
		"a seed that postmark refuses": {run(1, v1alpha1.PostmarkSpec{Seed: new(int32(0))}), "postmark.seed: 0 is no seed to postmark; take 1 or more"},
		"fewer processes than clients": {
			func() *v1alpha1.BenchmarkRunSpec {
				s := run(1, v1alpha1.PostmarkSpec{})
				s.Clients.Count = 2
				return s
			}(), "processes: 1 is less than clients (2)"},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			plan, err := postmark.Tool{}.Plan(test.spec, tooltest.Point(t, postmark.Tool{}, test.spec))
			var invalid *benchmarks.InvalidPointError
			g.Expect(errors.As(err, &invalid)).To(BeTrue())
			g.Expect(err).To(MatchError(ContainSubstring(test.says)))
			g.Expect(plan).To(Equal(benchmarks.Plan{}))
		})
	}
}

func TestParseReadsWhatPostmarkPrinted(t *testing.T) {
	for name, test := range good {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			report, err := postmark.Tool{}.Parse(test.spec, tooltest.Point(t, postmark.Tool{}, test.spec), 0, tooltest.Output(t, test.file))
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(report.Version).To(Equal("v1.51"))
			g.Expect(tooltest.Lines(report)).To(Equal(test.want))
		})
	}
}

// report returns the output of postmark 1.51 for the run of the talk with these times. Its counts depend only on the seed.
func report(rank, total, active int) string {
	rate := func(count, seconds int) string { return fmt.Sprintf("%d", count/seconds) }
	lines := []string{
		"PostMark v1.51 : 8/14/01", "pm>pm>Creating subdirectories...Done", "Creating files...Done", "Performing transactions..........Done",
		"Deleting files...Done", "Deleting subdirectories...Done", "Time:", fmt.Sprintf("\t%d seconds total", total),
		fmt.Sprintf("\t%d seconds of transactions (%s per second)", active, rate(1000, active)), "", "Files:",
		"\t10495 created (" + rate(10495, total) + " per second)", "\t\tCreation alone: 10000 files (" + rate(10000, total-active) + " per second)",
		"\t\tMixed with transactions: 495 files (" + rate(495, active) + " per second)", "\t504 read (" + rate(504, active) + " per second)",
		"\t496 appended (" + rate(496, active) + " per second)", "\t10495 deleted (" + rate(10495, total) + " per second)",
		"\t\tDeletion alone: 9990 files (9990 per second)", "\t\tMixed with transactions: 505 files (" + rate(505, active) + " per second)", "", "Data:",
		fmt.Sprintf("\t104.33 megabytes read (%.2f megabytes per second)", 104.33/float64(total)),
		fmt.Sprintf("\t2232.60 megabytes written (%.2f megabytes per second)", 2232.60/float64(total)), "pm>",
	}
	prefix := fmt.Sprintf("[rank %d] ", rank)
	return prefix + strings.Join(lines, "\n"+prefix) + fmt.Sprintf("\n[rank %d ended with exit code 0]\n", rank)
}

func TestProcessesAreCombinedAsTheTalkOf2014Did(t *testing.T) {
	g := NewWithT(t)
	var text strings.Builder
	for rank := range 32 {
		total, active := 74, 14
		if rank == 5 {
			total, active = 77, 16
		}
		text.WriteString(report(rank, total, active))
	}
	spec := run(32, talk)
	got, err := postmark.Tool{}.Parse(spec, tooltest.Point(t, postmark.Tool{}, spec), 0, []byte(text.String()))
	g.Expect(err).NotTo(HaveOccurred())
	values := map[string]float64{}
	for _, s := range got.Samples {
		values[s.Name] = s.Value
	}
	g.Expect(values["total files"]).To(Equal(335840.0), "as published")
	g.Expect(values["transactions"]).To(Equal(32*1000/16.0), "over the slowest process")
	g.Expect(values["created"]).To(Equal(335840/77.0), "over the slowest process")
	g.Expect(values["deleted"]).To(Equal(335840/77.0), "over the slowest process")
	g.Expect(values["read"]).To(BeNumerically("~", 31*504/14.0+504/16.0, 1e-9), "each by its own time")
	g.Expect(values["appended"]).To(BeNumerically("~", 31*496/14.0+496/16.0, 1e-9), "each by its own time")
	g.Expect(values["data written"]).To(BeNumerically("~", 31*2232.60/74+2232.60/77, 1e-9), "each by its own time")
}

func TestParseRefuses(t *testing.T) {
	one, two := run(1, v1alpha1.PostmarkSpec{}), good["two processes with subdirectories"].spec
	const whole = "one-process-one-second.txt"
	for name, test := range map[string]struct {
		spec           *v1alpha1.BenchmarkRunSpec
		file, old, new string
		says           string
	}{
		"a directory that is not there": {spec: run(1, v1alpha1.PostmarkSpec{Files: 5, Transactions: 10}), file: "error-no-directory.txt",
			says: `process 0: its line 2: found "Creating files...Error: cannot open '/mnt/scratch/run/nodir/1' for writing" instead of`},
		"out of files, which ends with exit code 0": {spec: run(1, v1alpha1.PostmarkSpec{Transactions: 2000, BiasCreate: new(int32(0))}), file: "error-out-of-files.txt",
			says: "process 0: its line 3: postmark ran out of files; make postmark.files larger"},
		"out of inodes, for which postmark prints numbers and exit code 0": {
			spec: run(1, v1alpha1.PostmarkSpec{Files: 30, Transactions: 50}), file: "error-out-of-inodes.txt", says: "Error: cannot open"},
		"ended from outside":             {spec: run(1, v1alpha1.PostmarkSpec{Files: 20000, Transactions: 4000000}), file: "error-terminated.txt", says: "process 0 ended with exit code 124"},
		"a process that is missing":      {spec: two, file: whole, says: "there is output of 1 processes; 2 were started"},
		"a process that did not end":     {spec: two, file: "two-processes.txt", old: "[rank 1 ended with exit code 0]\n", says: "process 1 did not end"},
		"another number of files":        {spec: run(1, v1alpha1.PostmarkSpec{Files: 400}), file: whole, says: "that does not add up to the 400 files of the point"},
		"another number of transactions": {spec: run(1, v1alpha1.PostmarkSpec{Transactions: 400}), file: whole, says: "400 transactions in 1 of 1 seconds are not 500 per second"},
		"a rate that its count is not":   {spec: one, file: whole, old: "250 read (250", new: "250 read (249", says: "the files read: 250 in 1 seconds are not 249 per second"},
		"no time at all":                 {spec: one, file: whole, old: "1 seconds total", new: "0 seconds total", says: "0 seconds can't be"},
		"a line that is missing":         {spec: one, file: whole, old: "[rank 0] \t250 read (250 per second)\n", says: `found "250 appended (250 per second)" instead of the files read`},
		"a line behind the report":       {spec: one, file: whole, old: "[rank 0] pm>\n", new: "[rank 0] pm>Error: x\n", says: `found "Error: x" instead of the end`},
		"another version":                {spec: one, file: whole, old: "PostMark v1.51", new: "PostMark v2.0", says: "instead of the version of postmark"},
		"a number beyond counting":       {spec: one, file: whole, old: "747 created", new: strings.Repeat("7", 400) + " created", says: "is too large"},
		"two versions":                   {spec: two, file: "two-processes.txt", old: "v1.51", new: "v1.53", says: "process 1 ran postmark v1.51 and process 0 v1.53"},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			text := tooltest.Output(t, test.file)
			if test.old != "" {
				g.Expect(string(text)).To(ContainSubstring(test.old))
				text = bytes.Replace(text, []byte(test.old), []byte(test.new), 1)
			}
			report, err := postmark.Tool{}.Parse(test.spec, tooltest.Point(t, postmark.Tool{}, test.spec), 0, text)
			g.Expect(err).To(MatchError(ContainSubstring(test.says)))
			g.Expect(report).To(Equal(benchmarks.Report{}))
		})
	}
}

func TestOperationsLeftOutByABiasAreAbsentAndNotZero(t *testing.T) {
	g := NewWithT(t)
	spec := run(1, v1alpha1.PostmarkSpec{BiasRead: new(int32(0))})
	text := strings.NewReplacer("250 read (250 per second)", "0 read (0 per second)", "1.36 megabytes read (1.36 megabytes", "0.000000 bytes read (0.000000 bytes").
		Replace(string(tooltest.Output(t, "one-process-one-second.txt")))
	report, err := postmark.Tool{}.Parse(spec, tooltest.Point(t, postmark.Tool{}, spec), 0, []byte(text))
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(report.Samples).To(HaveLen(8))
	g.Expect(report.Samples).NotTo(ContainElement(HaveField("Name", BeElementOf("read", "data read"))))
}

func FuzzParse(f *testing.F) {
	spec := good["two processes with subdirectories"].spec
	for _, file := range []string{"two-processes.txt", "one-process-one-second.txt", "error-out-of-files.txt"} {
		f.Add(tooltest.Output(f, file))
	}
	single := good["one process that takes less than a second"].spec
	both, alone := tooltest.Point(f, postmark.Tool{}, spec), tooltest.Point(f, postmark.Tool{}, single)
	f.Fuzz(func(t *testing.T, text []byte) {
		for s, p := range map[*v1alpha1.BenchmarkRunSpec]benchmarks.Point{spec: both, single: alone} {
			tooltest.Reads(t, postmark.Tool{}, s, p, text)
		}
	})
}

func BenchmarkParse(b *testing.B) {
	spec := good["two processes with subdirectories"].spec
	p, text := tooltest.Point(b, postmark.Tool{}, spec), tooltest.Output(b, "two-processes.txt")
	b.SetBytes(int64(len(text)))
	b.ReportAllocs()
	for b.Loop() {
		if _, err := (postmark.Tool{}).Parse(spec, p, 0, text); err != nil {
			b.Fatal(err)
		}
	}
}

func TestOutputsOfOtherPeopleAreRead(t *testing.T) {
	for file, first := range map[string][]string{
		"1.51-interactive-cfq.txt":    {"transactions 3.12 per second", "created 2.16 per second", "creation alone 55.00 per second"},
		"1.51-atomic_t-tail-only.txt": {"transactions 103.56 per second", "created 59.84 per second", "creation alone 87.00 per second"},
		"default-ext4-1s.txt":         {"transactions 500.00 per second", "created 764.00 per second", "creation alone 500.00 per second"},
		"large-hdrfs.txt":             {"transactions 19.23 per second", "created 14.84 per second", "creation alone 22.00 per second"},
	} {
		t.Run(file, func(t *testing.T) {
			g := NewWithT(t)
			saved, err := postmark.Tool{}.ParseSaved(tooltest.Output(t, "published/"+file))
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(tooltest.Lines(saved[0].Report)[:3]).To(Equal(first))
		})
	}
}

func TestReportsThatContradictThemselvesAreRefused(t *testing.T) {
	for name, c := range map[string]struct{ old, new string }{
		"data that its rate is not of": {"69.80 megabytes read", "6.980 megabytes read"},
		"a unit of a rate":             {"(203.62 kilobytes per second)", "(203.62 megabytes per second)"},
		"a rate that its count is not": {"257 read (1 per", "257 read (10 per"},
		"a line that is missing":       {"	243 appended (1 per second)\n", ""},
		"an error before it":           {"Creating files...Done", "Creating files...Error: cannot open '1' for writing\nDone"},
		"a second report":              {"pm>exit", "Time:"},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			text := string(tooltest.Output(t, "published/1.51-interactive-cfq.txt"))
			g.Expect(text).To(ContainSubstring(c.old))
			saved, err := postmark.Tool{}.ParseSaved([]byte(strings.Replace(text, c.old, c.new, 1)))
			g.Expect(err).To(HaveOccurred())
			g.Expect(saved).To(BeNil())
		})
	}
}
