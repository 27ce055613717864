package iozone_test

import (
	"bytes"
	"strings"
	"testing"

	. "github.com/onsi/gomega"

	"parallelfs.dev/operator/api/v1alpha1"
	"parallelfs.dev/operator/benchmarks"
	"parallelfs.dev/operator/benchmarks/iozone"
	"parallelfs.dev/operator/benchmarks/tooltest"
)

// good holds outputs of successful runs, with their points. In distributed-write-read.txt the clients were two nodes. In the other
// distributed outputs, each line of the host file had the same machine, which iozone does not notice.
var good = map[string]struct {
	spec *v1alpha1.BenchmarkRunSpec
	file string
	want []string
	step int
}{
	"one process on one client": {run(1, "16Ki", "4Mi"), "single-1-process.txt", []string{
		"write 1079557.50 kB/s", "write 67472.34 IOPS", "rewrite 1451394.00 kB/s", "rewrite 90712.12 IOPS",
		"read 5157872.00 kB/s", "read 322367.00 IOPS", "reread 6032669.00 kB/s", "reread 377041.81 IOPS",
		"randomRead 5211065.00 kB/s", "randomRead 325691.56 IOPS", "randomWrite 1420316.25 kB/s", "randomWrite 88769.77 IOPS",
	}, 0},
	"four processes on one client": {run(4, "64Ki", "8Mi"), "single-4-processes.txt", []string{
		"write 1929288.38 kB/s", "write 30145.13 IOPS", "rewrite 2218852.50 kB/s", "rewrite 34669.57 IOPS",
		"read 2196970.94 kB/s", "read 34327.67 IOPS", "reread 1951109.69 kB/s", "reread 30486.09 IOPS",
		"randomRead 2459887.94 kB/s", "randomRead 38435.75 IOPS", "randomWrite 2240991.56 kB/s", "randomWrite 35015.49 IOPS",
	}, 0},
	"two threads on one client without retests": {run(2, "64Ki", "4Mi", noRetest), "single-2-threads-no-retest.txt", []string{
		"write 5693234.38 kB/s", "write 88956.79 IOPS", "read 12843921.50 kB/s", "read 200686.27 IOPS",
		"randomRead 14496681.50 kB/s", "randomRead 226510.65 IOPS", "randomWrite 9787374.25 kB/s", "randomWrite 152927.72 IOPS",
	}, 0},
	"two clients, with warnings of ssh between the results, without the banner": {
		run(2, "64Ki", "4Mi", noRetest, distributed(2), tests("Write", "Read")), "distributed-write-read.txt", []string{
			"write 535679.08 kB/s", "write 8369.99 IOPS", "read 8409155.50 kB/s", "read 131393.05 IOPS",
		}, 0},
	"two threads, distributed, with all tests": {run(2, "64Ki", "4Mi", noRetest, distributed(2)), "distributed-threads-no-retest.txt", []string{
		"write 320626.16 kB/s", "write 5009.78 IOPS", "read 1329359.56 kB/s", "read 20771.24 IOPS",
		"randomRead 6458637.38 kB/s", "randomRead 100916.21 IOPS", "randomWrite 722891.22 kB/s", "randomWrite 11295.18 IOPS",
	}, 0},
	"32 threads, distributed": {run(32, "64Ki", "32Mi", noRetest, distributed(8)), "distributed-32-threads.txt", []string{
		"write 4283472.37 kB/s", "write 66929.26 IOPS",
		"read 10393200.86 kB/s", "read 162393.76 IOPS",
		"randomRead 11042983.93 kB/s", "randomRead 172546.62 IOPS",
		"randomWrite 8364062.20 kB/s", "randomWrite 130688.47 IOPS",
	}, 0},
	"two processes, distributed, with retests": {run(2, "64Ki", "4Mi", distributed(0)), "distributed-all.txt", []string{
		"write 577884.84 kB/s", "write 9029.45 IOPS", "rewrite 4306072.88 kB/s", "rewrite 67282.39 IOPS",
		"read 5966865.88 kB/s", "read 93232.28 IOPS", "reread 8248952.75 kB/s", "reread 128889.89 IOPS",
		"randomRead 4423993.34 kB/s", "randomRead 69124.90 IOPS", "randomWrite 700733.81 kB/s", "randomWrite 10948.97 IOPS",
	}, 0},
	"the first of three steps":  {run(2, "64Ki", "64Mi", phases), "step-write.txt", []string{"write 448902.50 kB/s", "write 7014.10 IOPS", "rewrite 5200316.56 kB/s", "rewrite 81254.95 IOPS"}, 0},
	"the second of three steps": {run(2, "64Ki", "64Mi", phases), "step-read.txt", []string{"read 2002487.94 kB/s", "read 31288.87 IOPS", "reread 5881198.47 kB/s", "reread 91893.73 IOPS"}, 1},
	"the last of three steps":   {run(2, "64Ki", "64Mi", phases), "step-random.txt", []string{"randomRead 9192526.75 kB/s", "randomRead 143633.23 IOPS", "randomWrite 6249092.75 kB/s", "randomWrite 97642.07 IOPS"}, 2},
}

func TestParseReadsWhatIozonePrinted(t *testing.T) {
	for name, test := range good {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			report, err := iozone.Tool{}.Parse(test.spec, point(t, test.spec), test.step, output(t, test.file))
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(tooltest.Lines(report)).To(Equal(test.want))
		})
	}
}

func TestParseRefusesRunsThatEndedBadly(t *testing.T) {
	for name, test := range map[string]struct {
		spec *v1alpha1.BenchmarkRunSpec
		file string
		says string
	}{
		"out of space": {run(4, "64Ki", "2Mi", tests("Write", "Read")), "error-out-of-space.txt",
			`line 30: found "Error writing block 19, fd= 3" instead of the throughput of the initial writers (write)`},
		"out of space with threads": {run(2, "64Ki", "16Mi"), "error-out-of-space-threads.txt", `found "Error writing block 27, fd= 4" instead of`},
		"out of space on a client, which hangs until it is ended": {run(2, "64Ki", "4Mi", distributed(2)), "error-distributed-out-of-space.txt",
			`found "iozone: interrupted" instead of the throughput of the initial writers (write)`},
		"clients without the directory, for which iozone prints numbers of another one and succeeds": {
			run(2, "64Ki", "4Mi", distributed(2), tests("Write")), "error-distributed-wrong-directory.txt",
			`found "Client # 0 reporting an error No such file or directory !" instead of the throughput of the initial writers`},
		"ended from outside": {run(2, "4Ki", "900Mi", tests("Write", "Read")), "error-terminated.txt",
			`found "iozone: interrupted" instead of the throughput of the rewriters (rewrite)`},
		"a process that was killed, which the others fail over": {run(2, "4Ki", "700Mi", tests("Write", "Read")), "error-killed-process.txt",
			"one of the initial writers transferred nothing while another transferred its file: it was killed"},
		"a process that was killed, for which iozone prints numbers and succeeds": {
			run(2, "64Ki", "700Mi", tests("Write"), noRetest), "error-killed-process-unnoticed.txt",
			"line 36: one of the initial writers transferred nothing while another transferred its file: it was killed"},
		"a process that had no time before another had ended": {run(4, "1024Ki", "4Mi", distributed(2), noRetest), "error-process-left-out.txt",
			"line 35: iozone left a process out of the throughput of the initial writers"},
		"a record that iozone can't hold": {run(1, "16Mi", "64Mi"), "error-record-too-large.txt",
			`line 1: found "Error: maximum record size 32768 kB is greater than maximum buffer size 16384 kB" instead of`},
		"fewer hosts than processes": {run(4, "64Ki", "4Mi", distributed(2)), "error-too-few-hosts.txt", `the output is cut off after line 24 ("You can not specify more threads/processes than you have in the client file list"), before`},
		"a timer that is too coarse": {run(300, "4Ki", "64Ki", tests("Write")), "error-coarse-timer.txt",
			"iozone says that its timer was too coarse for what it measured; make iozone.fileSize larger"},
		"operations instead of kilobytes": {run(2, "64Ki", "4Mi", tests("Write", "Read")), "error-operations-per-second.txt",
			"the result is in ops/sec instead of kB/sec"},
		"the automatic mode": {run(1, "64Ki", "4Mi"), "auto.txt", "line 31: iozone ended without the lines that say what iozone is about to run"},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			report, err := iozone.Tool{}.Parse(test.spec, point(t, test.spec), 0, output(t, test.file))
			g.Expect(err).To(MatchError(ContainSubstring(test.says)))
			g.Expect(report).To(Equal(benchmarks.Report{}))
		})
	}
}

func TestParseRefusesOutputThatIsNotOfThePoint(t *testing.T) {
	const whole = "single-4-processes.txt"
	spec := run(4, "64Ki", "8Mi")
	for name, test := range map[string]struct {
		spec     *v1alpha1.BenchmarkRunSpec
		old, new string
		says     string
	}{
		"another record size":          {spec: run(4, "32Ki", "8Mi"), says: `line 20: "Record Size 64 kB", but the point asked for a record size of 32 kB`},
		"another file size":            {spec: run(4, "64Ki", "16Mi"), says: `line 21: "File size set to 8192 kB", but the point asked for a file size of 16384 kB`},
		"another number of processes":  {spec: run(2, "64Ki", "8Mi"), says: `line 28: "Throughput test with 4 processes", but the point asked for 2 processes`},
		"a test too many":              {spec: run(4, "64Ki", "8Mi", tests("Write", "Read")), says: `line 59: found "Children see throughput for 4 random readers`},
		"retests that were not wanted": {spec: run(4, "64Ki", "8Mi", noRetest), says: `line 38: found "Children see throughput for  4 rewriters`},
		"no record size":               {spec: spec, old: "\tRecord Size 64 kB\n", says: "no line before says that iozone used a record size of 64 kB"},
		"a result of fewer processes": {spec: spec, old: "4 initial writers 	= 1929288.38", new: "3 initial writers 	= 1929288.38",
			says: "line 31: the result is of 3 processes, but the point asked for 4"},
		"a result that is missing": {spec: spec, old: "readers", new: "dreamers", says: `found "Children see throughput for  4 dreamers`},
		"a sum that its parts do not make": {spec: spec, old: "= 1929288.38", new: "= 9929288.38",
			says: "line 31: the throughput of the initial writers (write), 9929288.38 kB/sec, does not agree with the numbers below it"},
		"a number that is none":    {spec: spec, old: "= 1929288.38", new: "=       nan", says: `line 31: "nan" is no number`},
		"infinity":                 {spec: spec, old: "= 1929288.38", new: "=       inf", says: `line 31: "inf" is no number`},
		"a number below 0":         {spec: spec, old: "= 1929288.38", new: "= -929288.38", says: `line 31: "-929288.38" is no number`},
		"a number beyond counting": {spec: spec, old: "= 1929288.38", new: "= " + strings.Repeat("9", 400) + ".00", says: "is no number"},
		"nothing transferred":      {spec: spec, old: "= 1929288.38", new: "= 0.00", says: "line 31: the throughput of the initial writers (write) is 0: nothing was transferred"},
		"an error among the bounds": {spec: spec, old: "\tMin xfer", new: "fsync: Input/output error\n\tMin xfer",
			says: `line 36: found "fsync: Input/output error" instead of the least that one of the initial writers transferred`},
		"an error after the end": {spec: spec, old: "complete.\n", new: "complete.\nSegmentation fault\n", says: `found "Segmentation fault" instead of the end`},
		"no end":                 {spec: spec, old: "iozone test complete.\n", says: `before its last line ("iozone test complete.")`},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			text := output(t, whole)
			if test.old != "" {
				g.Expect(string(text)).To(ContainSubstring(test.old))
				text = bytes.Replace(text, []byte(test.old), []byte(test.new), 1)
			}
			report, err := iozone.Tool{}.Parse(test.spec, point(t, test.spec), 0, text)
			g.Expect(err).To(MatchError(ContainSubstring(test.says)))
			g.Expect(report).To(Equal(benchmarks.Report{}))
		})
	}
}

func TestParseTakesTheLineEndingsOfATerminal(t *testing.T) {
	g := NewWithT(t)
	spec := run(4, "64Ki", "8Mi")
	text := output(t, "single-4-processes.txt")
	want, err := iozone.Tool{}.Parse(spec, point(t, spec), 0, text)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(iozone.Tool{}.Parse(spec, point(t, spec), 0, bytes.ReplaceAll(text, []byte("\n"), []byte("\r\n")))).To(Equal(want))
}

func FuzzParse(f *testing.F) {
	spec := run(2, "64Ki", "4Mi", noRetest)
	for _, file := range []string{"single-2-threads-no-retest.txt", "distributed-threads-no-retest.txt", "error-distributed-out-of-space.txt", "auto.txt"} {
		f.Add(output(f, file))
	}
	// This keeps only the relevant lines, so that more of the fuzzer's changes hit the results.
	_, results, _ := bytes.Cut(output(f, "single-2-threads-no-retest.txt"), []byte("option selected\n"))
	f.Add(results)
	p := point(f, spec)
	f.Fuzz(func(t *testing.T, text []byte) {
		samples := tooltest.Reads(t, iozone.Tool{}, spec, p, text)
		if samples != nil && len(samples) != 8 {
			t.Fatalf("%d samples", len(samples))
		}
	})
}

func BenchmarkParse(b *testing.B) {
	spec := run(4, "64Ki", "8Mi")
	p, text := point(b, spec), output(b, "single-4-processes.txt")
	b.SetBytes(int64(len(text)))
	b.ReportAllocs()
	for b.Loop() {
		if _, err := (iozone.Tool{}).Parse(spec, p, 0, text); err != nil {
			b.Fatal(err)
		}
	}
}

func TestOutputsOfOtherPeopleAreRead(t *testing.T) {
	for file, want := range map[string]struct {
		points int
		first  []string
	}{
		"3.169-throughput-c.txt": {1, []string{
			"write 109333.84 kB/s", "write 854.17 IOPS", "rewrite 111377.63 kB/s", "rewrite 870.14 IOPS", "read 123864.27 kB/s", "read 967.69 IOPS",
			"reread 167226.50 kB/s", "reread 1306.46 IOPS",
		}},
		"3.507-O-throughput-1.txt":  {1, []string{"write 3159.44 IOPS", "rewrite 2582.62 IOPS", "read 6311.43 IOPS", "reread 2398.97 IOPS"}},
		"3.507-O-c-Rb-excel-1g.txt": {1, []string{"write 2632.07 IOPS", "rewrite 2527.00 IOPS", "read 7629.02 IOPS", "reread 2603.66 IOPS"}},
		"psteinb+iozone2csv-03-iozone.txt": {8, []string{
			"write 5169375.00 kB/s", "rewrite 7712220.00 kB/s", "read 7634280.00 kB/s", "reread 7649870.00 kB/s", "randomRead 7541971.00 kB/s",
			"randomWrite 8989992.00 kB/s", "reverseRead 7688128.00 kB/s", "recordRewrite 11968815.00 kB/s", "strideRead 7556588.00 kB/s",
			"fwrite 7164076.00 kB/s", "refwrite 7202157.00 kB/s", "fread 7687779.00 kB/s", "refread 7659035.00 kB/s",
		}},
	} {
		t.Run(file, func(t *testing.T) {
			g := NewWithT(t)
			saved, err := iozone.Tool{}.ParseSaved(tooltest.Output(t, "published/"+file))
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(saved).To(HaveLen(want.points))
			g.Expect(tooltest.Lines(saved[0].Report)).To(Equal(want.first))
		})
	}
}

func TestOutputsOfOtherPeopleThatContradictThemselvesAreRefused(t *testing.T) {
	for name, c := range map[string]struct{ file, old, new, says string }{
		"a spreadsheet with another number":   {"published/3.507-O-c-Rb-excel-1g.txt", `"        Rewrite "    2527.00`, `"        Rewrite "    252.70`, "the report for a spreadsheet has"},
		"one process with another minimum":    {"published/3.507-O-throughput-1.txt", "Min throughput per process                      =    3159.44", "Min throughput per process                      =    159.44", "does not agree"},
		"a test that is missing":              {"published/3.507-O-throughput-1.txt", "readers", "reeders", "without read"},
		"a row of the automatic mode cut off": {"published/psteinb+iozone2csv-03-iozone.txt", "  7659035", "", "12 results"},
		"no end of the automatic mode":        {"published/psteinb+iozone2csv-03-iozone.txt", "iozone test complete.", "", "cut off"},
		"another unit":                        {"published/psteinb+iozone2csv-03-iozone.txt", "Output is in kBytes/sec", "Output is in MBytes/sec", "in which unit"},
		"a process that was killed unnoticed": {"error-killed-process-unnoticed.txt", "", "", "it was killed, or given no time"},
		"a process that was left out":         {"error-process-left-out.txt", "", "", "left a process out"},
		"a timer that was too coarse":         {"error-coarse-timer.txt", "", "", "timer was too coarse"},
		"two runs in one file":                {"published/3.169-throughput-c.txt", "        Run began", "Iozone: Performance Test of File I/O\n", "a second run of iozone begins"},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			text := string(tooltest.Output(t, c.file))
			g.Expect(text).To(ContainSubstring(c.old))
			saved, err := iozone.Tool{}.ParseSaved([]byte(strings.Replace(text, c.old, c.new, 1)))
			g.Expect(err).To(MatchError(ContainSubstring(c.says)))
			g.Expect(saved).To(BeNil())
		})
	}
}
