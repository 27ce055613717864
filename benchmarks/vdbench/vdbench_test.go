package vdbench_test

import (
	"bytes"
	"errors"
	"strings"
	"testing"

	. "github.com/onsi/gomega"

	"parallelfs.dev/operator/api/v1alpha1"
	"parallelfs.dev/operator/benchmarks"
	"parallelfs.dev/operator/benchmarks/tooltest"
	"parallelfs.dev/operator/benchmarks/vdbench"
)

// run returns a run of vdbench on some clients; 0 derives their number from processes.
func run(clients int32, o v1alpha1.VdbenchSpec) *v1alpha1.BenchmarkRunSpec {
	return &v1alpha1.BenchmarkRunSpec{Tool: v1alpha1.ToolVdbench, Vdbench: &o, Clients: v1alpha1.BenchmarkClients{Count: clients}}
}

var (
	all       = []v1alpha1.VdbenchOperation{"Write", "Create", "Read"}
	smallFile = run(2, v1alpha1.VdbenchSpec{Operations: all, Files: 1024, ThreadsPerClient: 16, SyncWrites: true})
	twoOf     = run(0, v1alpha1.VdbenchSpec{Files: 1024, ThreadsPerClient: 16})
)

// good holds outputs in the format of the Users Guide and of published outputs. The numbers are made up, because vdbench may not be
// redistributed.
var good = map[string]struct {
	spec *v1alpha1.BenchmarkRunSpec
	file string
	want []string
}{
	"all three operations on two clients": {smallFile, "documented-three-operations.txt", []string{
		"create 159.10 files/s", "create 636.50 MB/s", "create 50.28 ms",
		"read 348.00 files/s", "read 1392.00 MB/s", "read 22.99 ms",
		"write 175.90 files/s", "write 703.75 MB/s", "write 45.47 ms",
	}},
	"the operations of the API's default": {twoOf, "documented-create-read.txt", []string{
		"create 159.10 files/s", "create 636.50 MB/s", "create 50.28 ms",
		"read 348.00 files/s", "read 1392.00 MB/s", "read 22.99 ms",
	}},
}

func point(t testing.TB, spec *v1alpha1.BenchmarkRunSpec) benchmarks.Point {
	t.Helper()
	return tooltest.Point(t, vdbench.Tool{}, spec)
}

func TestContract(t *testing.T) {
	cases := map[string]tooltest.Case{}
	for name, g := range good {
		cases[name] = tooltest.Case{Spec: g.spec, Output: tooltest.Output(t, g.file)}
	}
	tooltest.Run(t, vdbench.Tool{}, cases)
}

func TestPlanMakesTheParameterFile(t *testing.T) {
	g := NewWithT(t)
	spec := run(2, v1alpha1.VdbenchSpec{
		Operations: all, Files: 512, Depth: 2, Width: 3, FileSize: "4Mi", TransferSize: "1Mi", ThreadsPerClient: 16, SyncWrites: true, DirectIO: true,
		Args: []v1alpha1.BenchmarkArgument{"-m4"},
	})
	plan, err := vdbench.Tool{}.Plan(spec, point(t, spec))
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(plan).To(Equal(benchmarks.Plan{
		Clients: 2, Processes: 2, Demand: benchmarks.Demand{Bytes: 2 * 9 * 512 * 4 << 20, Inodes: 2 * (9*512 + 12 + 2)},
		Steps: []benchmarks.Step{{Command: benchmarks.Command{
			Launch: benchmarks.OnLauncher, Programs: []string{"java", "ssh"},
			Argv: []string{"/opt/vdbench/vdbench", "-f", "$(HOSTS_FILE)", "-o", "/tmp/parallelfs-vdbench-output", "-m4"},
			Files: []benchmarks.File{
				{
					Text:    "hd=default,shell=ssh,user=root,vdbench=/opt/vdbench,jvms=1\n",
					PerHost: "hd=client$(INDEX),system=$(HOST)\n",
					End: "include=/tmp/parallelfs-vdbench-trees\n" +
						"include=/tmp/parallelfs-vdbench-workloads\n" +
						"rd=create,fwd=read*,fwdrate=max,format=only,elapsed=604800,interval=1\n" +
						"rd=read,fwd=read*,fwdrate=max,format=no,elapsed=604800,interval=1\n" +
						"rd=write,fwd=write*,fwdrate=max,format=no,elapsed=604800,interval=1\n",
				},
				{
					Path:    "/tmp/parallelfs-vdbench-trees",
					PerHost: "fsd=fsd$(INDEX),anchor=$(DIRECTORY)/client$(INDEX),depth=2,width=3,files=512,size=4194304,openflags=(o_direct)\n",
				},
				{
					Path: "/tmp/parallelfs-vdbench-workloads", Text: "fwd=format,xfersize=1048576,threads=16\n",
					PerHost: "fwd=read$(INDEX),fsd=fsd$(INDEX),host=client$(INDEX),operation=read,fileio=sequential,fileselect=(sequential,once),xfersize=1048576,threads=16\n" +
						"fwd=write$(INDEX),fsd=fsd$(INDEX),host=client$(INDEX),operation=write,fileio=sequential,fileselect=(sequential,once),xfersize=1048576,threads=16," +
						"openflags=(o_direct,o_sync)\n",
				},
			},
		}}},
	}))
}

func TestATimeEndsTheRunsInsteadOfTheLastFile(t *testing.T) {
	g := NewWithT(t)
	spec := run(1, v1alpha1.VdbenchSpec{ElapsedSeconds: 300})
	plan, err := vdbench.Tool{}.Plan(spec, point(t, spec))
	g.Expect(err).NotTo(HaveOccurred())
	files := plan.Steps[0].Command.Files
	g.Expect(files[0].End).To(HaveSuffix("rd=create,fwd=read*,fwdrate=max,format=only,elapsed=604800,interval=1\n" +
		"rd=read,fwd=read*,fwdrate=max,format=no,elapsed=300,interval=1\n"))
	g.Expect(files[2].PerHost).NotTo(ContainSubstring("once"))
}

func TestPlanRefusesWhatVdbenchCanNotRun(t *testing.T) {
	with := func(args ...v1alpha1.BenchmarkArgument) *v1alpha1.BenchmarkRunSpec {
		return run(1, v1alpha1.VdbenchSpec{Args: args})
	}
	for name, test := range map[string]struct {
		spec *v1alpha1.BenchmarkRunSpec
		says string
	}{
		"more threads than files":          {run(1, v1alpha1.VdbenchSpec{Files: 4, ThreadsPerClient: 5}), "vdbench.threadsPerClient: 5 is more than the 4 files of a client"},
		"a file of broken transfers":       {run(1, v1alpha1.VdbenchSpec{FileSize: "1Mi", TransferSize: "384Ki"}), "vdbench.fileSize: 1048576 is no multiple of vdbench.transferSize (393216)"},
		"a transfer of less than a sector": {run(1, v1alpha1.VdbenchSpec{TransferSize: "100"}), "vdbench.transferSize: 100 is less than 512"},
		"a transfer of broken sectors":     {run(1, v1alpha1.VdbenchSpec{FileSize: "6000", TransferSize: "600"}), "vdbench.transferSize: 600 is no multiple of 512 bytes"},
		"a tree beyond counting":           {run(1, v1alpha1.VdbenchSpec{Depth: 64, Width: 10}), "spec.vdbench.depth: a tree of depth 64 and width 10 has more than 2^53 directories"},
		"bytes beyond counting":            {run(1, v1alpha1.VdbenchSpec{Depth: 4, Width: 100, FileSize: "1Gi"}), "vdbench.files: 100 in each of 100000000 directories, of 1073741824 bytes, on 1 clients are more than 8 PiB"},
		"a run that is too short":          {run(1, v1alpha1.VdbenchSpec{ElapsedSeconds: 1}), "spec.vdbench.elapsedSeconds: 1 is less than 2"},
		"another parameter file in args":   {with("-f/x"), `"-f/x" sets -f, which is set by the operator (the parameter file)`},
		"another output directory in args": {with("-o", "/x"), `"/x" is no option of vdbench`},
		"a definition in args":             {with("rd=x"), `spec.vdbench.args[0]: "rd=x" is no option of vdbench, such as -m4; the parameter file is the operator's`},
		"a second line in args":            {with("-m4\nrd=x"), "is no option of vdbench"},
		"another time in args":             {with("-m4", "-e5"), `"-e5" sets -e, which is set by vdbench.elapsedSeconds`},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			plan, err := vdbench.Tool{}.Plan(test.spec, point(t, test.spec))
			var invalid *benchmarks.InvalidPointError
			g.Expect(errors.As(err, &invalid)).To(BeTrue(), "%v", err)
			g.Expect(err).To(MatchError(ContainSubstring(test.says)))
			g.Expect(plan).To(Equal(benchmarks.Plan{}))
		})
	}
}

func TestParseReadsWhatVdbenchPrints(t *testing.T) {
	for name, test := range good {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			report, err := vdbench.Tool{}.Parse(test.spec, point(t, test.spec), 0, tooltest.Output(t, test.file))
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(tooltest.Lines(report)).To(Equal(test.want))
			g.Expect(report.Version).To(Equal("50407"))
			saved, err := vdbench.Tool{}.Parse(&v1alpha1.BenchmarkRunSpec{}, benchmarks.Point{}, 0, tooltest.Output(t, test.file))
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(saved).To(Equal(report), "an output that was saved elsewhere")
		})
	}
}

func TestParseRefusesWhatIsNoGoodRun(t *testing.T) {
	const average = "     avg_2-5"
	for name, test := range map[string]struct {
		spec     *v1alpha1.BenchmarkRunSpec
		file     string
		old, new string
		says     string
	}{
		"a client that died":            {file: "error-documented-slave-died.txt", says: `vdbench says "Slave client2-0 prematurely terminated."`},
		"a run that was too short":      {file: "error-documented-too-short.txt", says: `the output ends without an average of the run "read", which the point asked for`},
		"an operation that is missing":  {spec: run(2, v1alpha1.VdbenchSpec{Operations: all}), says: `the output ends without an average of the run "write"`},
		"an average without a run":      {old: "Starting RD=format_for_create", new: "Ending RD", says: "an average stands before its run or the titles of its columns"},
		"an average without titles":     {old: ".Interval.", new: ".Period.", says: "an average stands before its run or the titles of its columns"},
		"an average with a column more": {old: average, new: average + " 1.0", says: "the average has 26 columns, and 25 titles stand above"},
		"a title too many":              {old: "...delete...", new: "...delete... ...copy...", says: "15 titles stand above 25 columns, which is no table of vdbench"},
		"a title that is missing":       {old: "...delete...", new: "", says: "13 titles stand above 25 columns, which is no table of vdbench"},
		"a table without the sum":       {old: " mb/sec .", new: " gb/sec .", says: "which is no table of vdbench"},
		"two averages":                  {old: average, new: average + " 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1\n14:02:11.062 avg_2-5", says: "the average of rate of ReqstdOps is 1, and that of its intervals"},
		"a run twice":                   {old: "Starting RD=read", new: "Starting RD=create", says: `the run "create" begins a second time`},
		"an error of an operation":      {old: "14:02:11.061", new: "14:02:10.500 client1-0: op: read  lun: /mnt/x failed\n14:02:11.061", says: "lun: /mnt/x failed"},
		"something behind the end":      {old: "vdbench-output \n", new: "vdbench-output \nx\n", says: `found "x" behind the end of vdbench`},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			spec, file := twoOf, "documented-create-read.txt"
			if test.spec != nil {
				spec = test.spec
			}
			if test.file != "" {
				file = test.file
			}
			text := tooltest.Output(t, file)
			if test.old != "" {
				g.Expect(string(text)).To(ContainSubstring(test.old))
				text = bytes.Replace(text, []byte(test.old), []byte(test.new), 1)
			}
			report, err := vdbench.Tool{}.Parse(spec, point(t, spec), 0, text)
			g.Expect(err).To(MatchError(ContainSubstring(test.says)))
			g.Expect(report).To(Equal(benchmarks.Report{}))
		})
	}
}

func TestParseRefusesNumbersThatAreNone(t *testing.T) {
	text := string(tooltest.Output(t, "documented-create-read.txt"))
	for _, value := range []string{"0.0", "-1.0", "NaN", "inf", "1e9", strings.Repeat("9", 40)} {
		t.Run(value, func(t *testing.T) {
			at := strings.Index(text, "avg_2-5")
			end := at + strings.Index(text[at:], "\n")
			fields := strings.Fields(text[at:end])
			fields[18] = value // the rate of the operation create
			_, err := vdbench.Tool{}.Parse(twoOf, point(t, twoOf), 0, []byte(text[:at]+strings.Join(fields, " ")+text[end:]))
			NewWithT(t).Expect(err).To(MatchError(ContainSubstring("rate of create is " + map[bool]string{true: "0", false: `"` + value}[value == "0.0"])))
		})
	}
}

func FuzzParse(f *testing.F) {
	f.Add(tooltest.Output(f, "documented-create-read.txt"))
	f.Add(tooltest.Output(f, "error-documented-slave-died.txt"))
	p := point(f, twoOf)
	f.Fuzz(func(t *testing.T, text []byte) {
		for _, known := range []benchmarks.Point{p, {}} {
			samples := tooltest.Reads(t, vdbench.Tool{}, twoOf, known, text)
			if samples != nil && (len(samples)%3 != 0 || len(samples) == 0) {
				t.Fatalf("%d samples", len(samples))
			}
		}
	})
}

func BenchmarkParse(b *testing.B) {
	p, text := point(b, smallFile), tooltest.Output(b, "documented-three-operations.txt")
	b.SetBytes(int64(len(text)))
	b.ReportAllocs()
	for b.Loop() {
		if _, err := (vdbench.Tool{}).Parse(smallFile, p, 0, text); err != nil {
			b.Fatal(err)
		}
	}
}

func TestOutputsOfOtherPeopleAreRead(t *testing.T) {
	for file, want := range map[string][]string{
		"50407-t-rawio-stdout.txt":                     {"rd1 104.50 IOPS", "rd1 0.10 MB/s", "rd1 0.01 ms"},
		"raw-logfile.html-04-logfile.html":             {"rd1 107.50 IOPS", "rd1 0.10 MB/s", "rd1 1.56 ms"},
		"fs-logfile.html-01-logfile.html":              {"format_for_rd1 15490.00 files/s", "format_for_rd1 48271.00 MB/s", "format_for_rd1 0.10 ms"},
		"50407-filesystem-03910-stdout-of-logfile.txt": {"format_for_rd1 15490.00 files/s", "format_for_rd1 48271.00 MB/s", "format_for_rd1 0.10 ms"},
	} {
		t.Run(file, func(t *testing.T) {
			g := NewWithT(t)
			saved, err := vdbench.Tool{}.ParseSaved(tooltest.Output(t, "published/"+file))
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(saved).To(HaveLen(1))
			g.Expect(tooltest.Lines(saved[0].Report)).To(Equal(want))
		})
	}
}

func TestTheFormattingBeforeARunIsNotThatRun(t *testing.T) {
	g := NewWithT(t)
	text := string(tooltest.Output(t, "documented-create-read.txt"))
	both := strings.Replace(text, "format_for_create", "format_for_read", 1)
	saved, err := vdbench.Tool{}.ParseSaved([]byte(both))
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(tooltest.Lines(saved[0].Report)).To(ContainElements("format_for_read 159.10 files/s", "read 348.00 files/s"))
}

func TestAveragesThatContradictTheirIntervalsOrPartsAreRefused(t *testing.T) {
	for name, c := range map[string]struct{ file, old, new string }{
		"another rate":        {"50407-t-rawio-stdout.txt", "104.5     0.10    1024  50.72", "1045     0.10    1024  50.72"},
		"another size":        {"50407-t-rawio-stdout.txt", "104.5     0.10    1024  50.72", "104.5     0.10    102400  50.72"},
		"another time":        {"50407-t-rawio-stdout.txt", "50.72    0.012", "50.72    12.00"},
		"another total":       {"fs-logfile.html-01-logfile.html", "48271  48271  129574", "48271  4827  129574"},
		"an error at the end": {"50407-t-rawio-stdout.txt", "completed successfully. Output", "aborted. Output"},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			text := string(tooltest.Output(t, "published/"+c.file))
			g.Expect(strings.Count(text, c.old)).To(Equal(1))
			saved, err := vdbench.Tool{}.ParseSaved([]byte(strings.Replace(text, c.old, c.new, 1)))
			g.Expect(err).To(HaveOccurred())
			g.Expect(saved).To(BeNil())
		})
	}
}
