package fio_test

import (
	"bytes"
	"errors"
	"slices"
	"strconv"
	"strings"
	"testing"

	. "github.com/onsi/gomega"

	"parallelfs.dev/operator/api/v1alpha1"
	"parallelfs.dev/operator/benchmarks"
	"parallelfs.dev/operator/benchmarks/fio"
	"parallelfs.dev/operator/benchmarks/tooltest"
)

// run returns a run of fio.
func run(processes, clients int32, o v1alpha1.FioSpec) *v1alpha1.BenchmarkRunSpec {
	return &v1alpha1.BenchmarkRunSpec{Tool: v1alpha1.ToolFio, Processes: processes, Clients: v1alpha1.BenchmarkClients{Count: clients}, Fio: &o}
}

// good holds outputs of successful runs of fio 3.33, with their points. The outputs of two clients were joined by hand in the same way as
// by the node binary.
var good = map[string]struct {
	spec *v1alpha1.BenchmarkRunSpec
	file string
	want []string
}{
	"one job that reads": {run(1, 1, v1alpha1.FioSpec{BlockSize: "64Ki", FileSize: "4Mi"}), "read-1-job.txt", []string{
		"read bw 819200.00 KiB/s",
		"read iops 12800.00 IOPS",
		"read clat mean 66850.25 ns",
		"read clat p99 1384448.00 ns",
	}},
	"two jobs that read and write at random": {
		run(2, 1, v1alpha1.FioSpec{Mode: v1alpha1.FioRandomReadWrite, ReadPercent: 70, FileSize: "4Mi", FsyncOnClose: true}), "randrw-2-jobs.txt", []string{
			"read bw 71949.00 KiB/s",
			"read iops 17987.34 IOPS",
			"read clat mean 101680.24 ns",
			"read clat p99 626688.00 ns",
			"write bw 31746.00 KiB/s",
			"write iops 7936.71 IOPS",
			"write clat mean 4831.12 ns",
			"write clat p99 22912.00 ns",
		}},
	"two jobs that write for two seconds with libaio": {
		run(2, 1, v1alpha1.FioSpec{
			Mode: v1alpha1.FioRandomWrite, FileSize: "4Mi", Engine: "libaio", QueueDepth: 8, DirectIO: true, RuntimeSeconds: 2, RampSeconds: 1,
		}), "randwrite-libaio-timed.txt", []string{
			"write bw 193545.00 KiB/s",
			"write iops 48379.31 IOPS",
			"write clat mean 322384.43 ns",
			"write clat p99 3424256.00 ns",
		}},
	"two clients with two jobs each": {run(4, 2, v1alpha1.FioSpec{Mode: v1alpha1.FioWrite, FileSize: "2Mi"}), "write-2-clients.txt", []string{
		"write bw 682666.67 KiB/s",
		"write iops 170666.67 IOPS",
		"write clat mean 9959.75 ns",
		"write clat p99 57088.00 ns",
	}},
}

func TestContract(t *testing.T) {
	cases := map[string]tooltest.Case{}
	for name, g := range good {
		cases[name] = tooltest.Case{Spec: g.spec, Output: tooltest.Output(t, g.file)}
	}
	tooltest.Run(t, fio.Tool{}, cases)
}

func TestPlan(t *testing.T) {
	g := NewWithT(t)
	spec := run(8, 2, v1alpha1.FioSpec{
		Mode: v1alpha1.FioRandomWrite, BlockSize: "4Ki", FileSize: "1Gi", Engine: "libaio", QueueDepth: 16, DirectIO: true, FsyncOnClose: true,
		RuntimeSeconds: 60, RampSeconds: 5, Args: []v1alpha1.BenchmarkArgument{"--thinktime=10", "--invalidate=1"},
	})
	plan, err := fio.Tool{}.Plan(spec, tooltest.Point(t, fio.Tool{}, spec))
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(plan).To(Equal(benchmarks.Plan{
		Steps: []benchmarks.Step{{Command: benchmarks.Command{Launch: benchmarks.OnEachClient, Argv: strings.Fields(
			"fio --name=benchmark --directory=$(DIRECTORY) --rw=randwrite --rwmixread=50 --bs=4096 --size=1073741824 --ioengine=libaio --iodepth=16 " +
				"--numjobs=4 --group_reporting --output-format=json --eta=never --direct=1 --end_fsync=1 --time_based --runtime=60 --ramp_time=5 " +
				"--thinktime=10 --invalidate=1")}}},
		Clients: 2, Processes: 8, Demand: benchmarks.Demand{Bytes: 8 << 30, Inodes: 10},
	}))
	spec = run(1, 0, v1alpha1.FioSpec{})
	plan, err = fio.Tool{}.Plan(spec, tooltest.Point(t, fio.Tool{}, spec))
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(plan.Clients).To(Equal(1), "one process needs one client")
	g.Expect(plan.Steps[0].Command.Launch).To(Equal(benchmarks.OnClient))
}

func TestPlanRefusesWhatFioCanNotRun(t *testing.T) {
	with := func(args ...v1alpha1.BenchmarkArgument) v1alpha1.FioSpec { return v1alpha1.FioSpec{Args: args} }
	for name, test := range map[string]struct {
		spec *v1alpha1.BenchmarkRunSpec
		says string
	}{
		"an unknown number of clients":            {run(4, 0, v1alpha1.FioSpec{}), "clients: fio is started once on each client, so their number has to be known"},
		"processes that can't be spread":          {run(5, 2, v1alpha1.FioSpec{}), "processes: 5 can't be spread over 2 clients"},
		"fewer processes than clients":            {run(1, 2, v1alpha1.FioSpec{}), "processes: 1 is less than clients (2)"},
		"a file that is less than a block":        {run(1, 1, v1alpha1.FioSpec{BlockSize: "1Mi", FileSize: "4Ki"}), "fio.fileSize: 4Ki is less than fio.blockSize (1Mi)"},
		"a file of broken blocks":                 {run(1, 1, v1alpha1.FioSpec{BlockSize: "3Ki", FileSize: "4Ki"}), "fio.fileSize: 4Ki is no multiple of fio.blockSize (3Ki)"},
		"a depth that the engine has not":         {run(1, 1, v1alpha1.FioSpec{QueueDepth: 4}), "fio.queueDepth: 4 is more than the engine psync does"},
		"a ramp without a time":                   {run(1, 1, v1alpha1.FioSpec{RampSeconds: 4}), "fio.runtimeSeconds: fio.rampSeconds leaves out"},
		"an argument that a field sets":           {run(1, 1, with("--bs=8k")), `fio.args: "--bs=8k" sets what fio.blockSize sets; leave it out`},
		"the start of the name of such an option": {run(1, 1, with("--iodep=8")), `fio.args: "--iodep=8" sets what fio.queueDepth sets`},
		"such an option with the other dash":      {run(1, 1, with("--end-fsync=1")), "sets what fio.fsyncOnClose sets"},
		"an argument that the operator sets":      {run(1, 1, with("--output=/tmp/x")), `fio.args: "--output=/tmp/x" is set by the operator`},
		"a program to run":                        {run(1, 1, with("--exec_prerun=sh")), "leave it out"},
		"a job file":                              {run(1, 1, with("job.fio")), `fio.args: "job.fio" is no option`},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			plan, err := fio.Tool{}.Plan(test.spec, tooltest.Point(t, fio.Tool{}, test.spec))
			var invalid *benchmarks.InvalidPointError
			g.Expect(errors.As(err, &invalid)).To(BeTrue())
			g.Expect(err).To(MatchError(ContainSubstring(test.says)))
			g.Expect(plan).To(Equal(benchmarks.Plan{}))
		})
	}
}

func TestParseReadsWhatFioPrinted(t *testing.T) {
	for name, test := range good {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			report, err := fio.Tool{}.Parse(test.spec, tooltest.Point(t, fio.Tool{}, test.spec), 0, tooltest.Output(t, test.file))
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(report.Version).To(Equal("fio-3.33"))
			g.Expect(tooltest.Lines(report)).To(Equal(test.want))
		})
	}
}

// The first client wrote its 4 MiB in 6 ms and the second in 12 ms: both wrote for 6 ms, and then one of them for 6 ms more.
func TestTheRateOfClientsIsWhatAllDidInTheTimeOfTheSlowest(t *testing.T) {
	g := NewWithT(t)
	spec := good["two clients with two jobs each"].spec
	report, err := fio.Tool{}.Parse(spec, tooltest.Point(t, fio.Tool{}, spec), 0, tooltest.Output(t, "write-2-clients.txt"))
	g.Expect(err).NotTo(HaveOccurred())
	rates := map[string]float64{}
	for _, s := range report.Samples {
		rates[s.Unit] = s.Value
	}
	g.Expect(rates["KiB/s"]).To(BeNumerically("~", 8192/0.012, 1e-6))
	g.Expect(rates["IOPS"]).To(BeNumerically("~", 2048/0.012, 1e-6))
}

func TestTheMeanOfClientsIsWeightedByWhatTheyDid(t *testing.T) {
	g := NewWithT(t)
	spec := good["two clients with two jobs each"].spec
	text := string(tooltest.Output(t, "write-2-clients.txt"))
	first, second, _ := strings.Cut(text, "[rank 1] {")
	// The first client did three times as many writes.
	first = replaceWriteClat(g, first, "N", "3072")
	second = replaceWriteClat(g, second, "N", "1024")
	report, err := fio.Tool{}.Parse(spec, tooltest.Point(t, fio.Tool{}, spec), 0, []byte(first+"[rank 1] {"+second))
	g.Expect(err).NotTo(HaveOccurred())
	i := slices.IndexFunc(report.Samples, func(s benchmarks.Sample) bool { return s.Name == "write clat mean" })
	g.Expect(report.Samples[i].Value).To(BeNumerically("~", (3*writeClatMean(g, first)+writeClatMean(g, second))/4, 1e-6))
}

// writeClatMean is the mean completion latency of writes.
func writeClatMean(g *WithT, text string) float64 {
	const before = 4
	parts := strings.Split(text, `"mean" : `)
	g.Expect(len(parts)).To(BeNumerically(">", before+1))
	value, err := strconv.ParseFloat(parts[before+1][:strings.IndexAny(parts[before+1], ",\n")], 64)
	g.Expect(err).NotTo(HaveOccurred())
	return value
}

// replaceWriteClat replaces a value in the completion latency of writes. It is preceded by slat, clat and lat of reads, and by slat of
// writes.
func replaceWriteClat(g *WithT, text, name, value string) string {
	const before = 4
	parts := strings.Split(text, `"`+name+`" : `)
	g.Expect(len(parts)).To(BeNumerically(">", before+1))
	end := strings.IndexAny(parts[before+1], ",\n")
	parts[before+1] = value + parts[before+1][end:]
	return strings.Join(parts, `"`+name+`" : `)
}

func TestParseRefuses(t *testing.T) {
	read := good["one job that reads"].spec
	const whole = "read-1-job.txt"
	for name, test := range map[string]struct {
		spec           *v1alpha1.BenchmarkRunSpec
		file, old, new string
		says           string
	}{
		"a directory that is not there": {spec: read, file: "error-no-directory.txt", says: `line 2: fio says "fio: /mnt/scratch/run is not a directory"`},
		"out of space": {spec: run(1, 1, v1alpha1.FioSpec{Mode: v1alpha1.FioWrite, BlockSize: "64Ki", FileSize: "4Mi"}), file: "error-out-of-space.txt",
			says: `line 1: fio says "fio: io_u error on file /mnt/scratch/run/benchmark.0.0: No space left on device`},
		"ended from outside, which fio reports with error 0": {
			spec: run(1, 1, v1alpha1.FioSpec{Mode: v1alpha1.FioRandomRead, FileSize: "4Mi", RuntimeSeconds: 20}), file: "error-terminated.txt",
			says: `line 2: fio says "fio: terminating on signal 15"`},
		"a job that was killed": {
			spec: run(2, 1, v1alpha1.FioSpec{Mode: v1alpha1.FioRandomRead, FileSize: "4Mi", RuntimeSeconds: 20}), file: "error-killed-job.txt",
			says: `got signal=9`},
		"an error without a word":       {spec: read, file: whole, old: `"error" : 0`, new: `"error" : 5`, says: "fio ended with error 5 (errno)"},
		"another block size":            {spec: run(1, 1, v1alpha1.FioSpec{BlockSize: "32Ki", FileSize: "4Mi"}), file: whole, says: `fio ran with bs="65536", but the point asked for 32768`},
		"another number of jobs":        {spec: run(2, 1, v1alpha1.FioSpec{BlockSize: "64Ki", FileSize: "4Mi"}), file: whole, says: `fio ran with numjobs="1", but the point asked for 2`},
		"less than all":                 {spec: read, file: whole, old: `"io_bytes" : 4194304`, new: `"io_bytes" : 4128768`, says: "io_bytes of read is 4128768, and io_kbytes 4096"},
		"nothing":                       {spec: read, file: whole, old: `"io_bytes" : 4194304`, new: `"io_bytes" : 0`, says: "nothing was measured of read"},
		"short reads":                   {spec: read, file: whole, old: `"short_ios" : 0`, new: `"short_ios" : 2`, says: "2 of read were short"},
		"a number below 0":              {spec: read, file: whole, old: `"bw" : `, new: `"bw" : -`, says: "nothing was measured of read"},
		"no percentiles":                {spec: read, file: whole, old: `"99.000000"`, new: `"98.000000"`, says: "lacks the percentile 99.000000"},
		"no bandwidth":                  {spec: read, file: whole, old: `"bw" : `, new: `"bv" : `, says: "lacks bw, iops or clat_ns of read"},
		"another program":               {spec: read, file: whole, old: `fio-3.33`, new: `oif`, says: "none of fio"},
		"words among the JSON":          {spec: read, file: whole, old: "  \"jobs\"", new: "lost connection\n  \"jobs\"", says: "is not the JSON of fio"},
		"an error behind the report":    {spec: read, file: whole, old: "  ]\n}\n", new: "  ]\n}\nfio: fatal error\n", says: "behind its report"},
		"a report of one client of two": {spec: good["two clients with two jobs each"].spec, file: whole, says: "there is output of 0 processes; 2 were started"},
		"a client that failed": {spec: good["two clients with two jobs each"].spec, file: "write-2-clients.txt",
			old: "[rank 1 ended with exit code 0]", new: "[rank 1 ended with exit code 1]", says: "process 1 ended with exit code 1"},
		"clients with two versions": {spec: good["two clients with two jobs each"].spec, file: "write-2-clients.txt",
			old: "fio-3.33", new: "fio-3.38", says: "make their images the same"},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			text := tooltest.Output(t, test.file)
			if test.old != "" {
				g.Expect(string(text)).To(ContainSubstring(test.old))
				text = bytes.Replace(text, []byte(test.old), []byte(test.new), 1)
			}
			report, err := fio.Tool{}.Parse(test.spec, tooltest.Point(t, fio.Tool{}, test.spec), 0, text)
			g.Expect(err).To(MatchError(ContainSubstring(test.says)))
			g.Expect(report).To(Equal(benchmarks.Report{}))
		})
	}
}

func TestNotesBeforeTheReportAreNoErrors(t *testing.T) {
	g := NewWithT(t)
	spec := good["one job that reads"].spec
	text := tooltest.Output(t, "read-1-job.txt")
	want, err := fio.Tool{}.Parse(spec, tooltest.Point(t, fio.Tool{}, spec), 0, text)
	g.Expect(err).NotTo(HaveOccurred())
	notes := "note: both iodepth >= 1 and synchronous I/O engine are selected, queue depth will be capped at 1\n" +
		"fio: native_fallocate call failed: Operation not supported\n"
	got, err := fio.Tool{}.Parse(spec, tooltest.Point(t, fio.Tool{}, spec), 0, append([]byte(notes), text...))
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(got.Samples).To(Equal(want.Samples))
}

func TestReportsOfOtherPeopleAreReadAndThoseThatContradictThemselvesAreNot(t *testing.T) {
	for name, c := range map[string]struct {
		file, old, new string
		says           string
		want           []string
	}{
		"a report with one in normal form behind it": {file: "3.42-json_normal-randwrite.txt", want: []string{
			"write bw 4976.00 KiB/s", "write iops 1244.18 IOPS", "write clat mean 794090.28 ns", "write clat p99 1695744.00 ns"}},
		"fio 2, whose latencies are in µs, with two jobs": {file: "fio-2.17-03-pkb-7fb0c9d8-0_fio.json"},
		"two reports":                        {file: "fio-3.12-04-writes-100-0.txt", says: "line 317: a second report of fio begins; keep one report in each file"},
		"an error before the report":         {file: "fio-3.13-07-TestFioJsonWithError.txt", says: "line 1: fio says"},
		"bytes that the rate is not of":      {file: "fio-3.15-08-02.txt", old: `"bw" : 120597338`, new: `"bw" : 12059733`, says: "KiB/s"},
		"operations that the rate is not of": {file: "fio-3.15-08-02.txt", old: `"iops" : 30149334.614981`, new: `"iops" : 3014933.461498`, says: "IOPS"},
		"percentiles out of order":           {file: "fio-3.38-17-03.txt", old: `"99.000000" : 5144576`, new: `"99.000000" : 514457`, says: "percentile"},
		"a mean below the least":             {file: "fio-3.38-17-03.txt", old: `"mean" : 4831323`, new: `"mean" : 4831`, says: "contradict"},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			text := string(tooltest.Output(t, "published/"+c.file))
			g.Expect(text).To(ContainSubstring(c.old))
			saved, err := fio.Tool{}.ParseSaved([]byte(strings.Replace(text, c.old, c.new, 1)))
			if c.says != "" {
				g.Expect(err).To(MatchError(ContainSubstring(c.says)))
				g.Expect(saved).To(BeNil())
				return
			}
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(saved).To(HaveLen(1))
			if c.want != nil {
				g.Expect(tooltest.Lines(saved[0].Report)).To(Equal(c.want))
			}
		})
	}
}

func FuzzParse(f *testing.F) {
	single, both := good["two jobs that read and write at random"].spec, good["two clients with two jobs each"].spec
	for _, file := range []string{"randrw-2-jobs.txt", "write-2-clients.txt", "error-terminated.txt", "error-out-of-space.txt"} {
		f.Add(tooltest.Output(f, file))
	}
	one, two := tooltest.Point(f, fio.Tool{}, single), tooltest.Point(f, fio.Tool{}, both)
	f.Fuzz(func(t *testing.T, text []byte) {
		for spec, p := range map[*v1alpha1.BenchmarkRunSpec]benchmarks.Point{single: one, both: two} {
			tooltest.Reads(t, fio.Tool{}, spec, p, text)
		}
	})
}

func BenchmarkParse(b *testing.B) {
	spec := good["two jobs that read and write at random"].spec
	p, text := tooltest.Point(b, fio.Tool{}, spec), tooltest.Output(b, "randrw-2-jobs.txt")
	b.SetBytes(int64(len(text)))
	b.ReportAllocs()
	for b.Loop() {
		if _, err := (fio.Tool{}).Parse(spec, p, 0, text); err != nil {
			b.Fatal(err)
		}
	}
}
