package ior_test

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	. "github.com/onsi/gomega"

	"parallelfs.dev/operator/api/v1alpha1"
	"parallelfs.dev/operator/benchmarks"
	"parallelfs.dev/operator/benchmarks/ior"
	"parallelfs.dev/operator/benchmarks/tooltest"
)

// good holds outputs of successful runs, with their points.
var good = map[string]struct {
	spec    *v1alpha1.BenchmarkRunSpec
	step    int
	file    string
	version string
	want    []string
}{
	"IOR 3.0.1: files of their own": {own, 0, "3.0.1-fpp.txt", "3.0.1", []string{
		"write 757.8300 MiB/s (3: 442.2600 to 1027.3900, 295.2615)",
		"read 8806.7600 MiB/s (3: 5927.4300 to 13725.4900, 4280.3976)",
	}},
	"IOR 3.0.1: one file that all share": {shared, 0, "3.0.1-shared.txt", "3.0.1", []string{
		"write 366.0900 MiB/s",
		"read 10776.8100 MiB/s",
	}},
	"IOR 3.3.0: files of their own": {own, 0, "3.3.0-fpp.txt", "3.3.0", []string{
		"write 771.9800 MiB/s (3: 443.2400 to 937.1900, 284.7042)",
		"write 771.9800 OPs (3: 443.2400 to 937.1900, 284.7042)",
		"read 14876.4000 MiB/s (3: 13560.5400 to 15895.1200, 1195.3143)",
		"read 14876.4000 OPs (3: 13560.5400 to 15895.1200, 1195.3143)",
	}},
	"IOR 3.3.0: one file that all share": {shared, 0, "3.3.0-shared.txt", "3.3.0", []string{
		"write 948.7700 MiB/s",
		"write 3795.0800 OPs",
		"read 15249.1300 MiB/s",
		"read 60996.5300 OPs",
	}},
	"IOR 3.3.0: writing only": {written, 0, "3.3.0-write-only.txt", "3.3.0", []string{
		"write 2223.8900 MiB/s (2: 2134.4400 to 2313.3300, 126.4873)",
		"write 8895.5400 OPs (2: 8537.7700 to 9253.3200, 505.9632)",
	}},
	"IOR 3.3.0: the step write": {steps, 0, "3.3.0-step1-write.txt", "3.3.0", []string{
		"write 952.8500 MiB/s (2: 404.9000 to 1500.8000, 774.9183)",
		"write 3811.4000 OPs (2: 1619.6100 to 6003.1800, 3099.6591)",
	}},
	"IOR 3.3.0: the step read": {steps, 1, "3.3.0-step2-read.txt", "3.3.0", []string{
		"read 23505.5200 MiB/s (2: 22418.5100 to 24592.5300, 1537.2643)",
		"read 94022.0800 OPs (2: 89674.0300 to 98370.1300, 6149.0713)",
	}},
	"IOR 3.3.0: MPI-IO": {mpiio, 0, "3.3.0-mpiio.txt", "3.3.0", []string{
		"write 72.1500 MiB/s",
		"write 288.6000 OPs",
		"read 6.2000 MiB/s",
		"read 24.8000 OPs",
	}},
	"IOR 3.3.0: without caches": {direct, 0, "3.3.0-direct.txt", "3.3.0", []string{
		"write 936.9200 MiB/s",
		"write 3747.6800 OPs",
		"read 828.4900 MiB/s",
		"read 3313.9600 OPs",
	}},
	"IOR 3.3.0: in random order": {byChance, 0, "3.3.0-random.txt", "3.3.0", []string{
		"write 711.1600 MiB/s",
		"write 2844.6400 OPs",
		"read 17963.7200 MiB/s",
		"read 71854.8900 OPs",
	}},
	"IOR 3.3.0: until a second is up": {walled, 0, "3.3.0-stonewall.txt", "3.3.0", []string{
		"write 641.3500 MiB/s",
		"write 641.3500 OPs",
	}},
	"IOR 3.3.0: transfers of 8 bytes": {tiny, 0, "3.3.0-t8.txt", "3.3.0", []string{
		"write 0.4400 MiB/s",
		"write 57385.5200 OPs",
		"read 0.6900 MiB/s",
		"read 91041.5100 OPs",
	}},
	"IOR 3.3.0: JSON": {json3, 0, "3.3.0-json.txt", "3.3.0", []string{
		"write 751.7470 MiB/s (3: 122.9384 to 1993.1535, 1075.1201)",
		"write 3006.9880 OPs (3: 491.7537 to 7972.6141, 4300.4806)",
		"read 12298.0282 MiB/s (3: 490.5934 to 19211.8345, 10275.3062)",
		"read 49192.1130 OPs (3: 1962.3735 to 76847.3380, 41101.2249)",
	}},
	"IOR 3.3.0: JSON of one iteration": {json1, 0, "3.3.0-json-i1.txt", "3.3.0", []string{
		"write 558.7486 MiB/s",
		"write 2234.9946 OPs",
		"read 21110.1846 MiB/s",
		"read 84440.7384 OPs",
	}},
	"IOR 4.0.0: files of their own": {own, 0, "4.0.0-fpp.txt", "4.0.0", []string{
		"write 376.4200 MiB/s (3: 260.8900 to 503.5000, 121.7151)",
		"write 376.4200 OPs (3: 260.8900 to 503.5000, 121.7151)",
		"read 12736.7400 MiB/s (3: 295.4000 to 19000.2400, 10774.5950)",
		"read 12736.7400 OPs (3: 295.4000 to 19000.2400, 10774.5950)",
	}},
	"IOR 4.0.0: one file that all share": {shared, 0, "4.0.0-shared.txt", "4.0.0", []string{
		"write 397.1000 MiB/s",
		"write 1588.4100 OPs",
		"read 11166.2000 MiB/s",
		"read 44664.8000 OPs",
	}},
	"IOR 4.0.0: writing only": {written, 0, "4.0.0-write-only.txt", "4.0.0", []string{
		"write 836.2000 MiB/s (2: 675.6600 to 996.7500, 227.0378)",
		"write 3344.8000 OPs (2: 2702.6200 to 3986.9800, 908.1797)",
	}},
	"IOR 4.0.0: the step write": {steps, 0, "4.0.0-step1-write.txt", "4.0.0", []string{
		"write 1627.3400 MiB/s (2: 1509.4200 to 1745.2600, 166.7641)",
		"write 6509.3700 OPs (2: 6037.6800 to 6981.0500, 667.0563)",
	}},
	"IOR 4.0.0: the step read": {steps, 1, "4.0.0-step2-read.txt", "4.0.0", []string{
		"read 20082.6600 MiB/s (2: 18176.8300 to 21988.4900, 2695.2506)",
		"read 80330.6400 OPs (2: 72707.3300 to 87953.9500, 10780.9884)",
	}},
	"IOR 4.0.0: MPI-IO": {mpiio, 0, "4.0.0-mpiio.txt", "4.0.0", []string{
		"write 89.5300 MiB/s",
		"write 358.1400 OPs",
		"read 58.8000 MiB/s",
		"read 235.2000 OPs",
	}},
	"IOR 4.0.0: without caches": {direct, 0, "4.0.0-direct.txt", "4.0.0", []string{
		"write 777.7300 MiB/s",
		"write 3110.9200 OPs",
		"read 929.3800 MiB/s",
		"read 3717.5300 OPs",
	}},
	"IOR 4.0.0: in random order": {byChance, 0, "4.0.0-random.txt", "4.0.0", []string{
		"write 1375.5200 MiB/s",
		"write 5502.0800 OPs",
		"read 23530.4600 MiB/s",
		"read 94121.8300 OPs",
	}},
	"IOR 4.0.0: until a second is up": {walled, 0, "4.0.0-stonewall.txt", "4.0.0", []string{
		"write 184.2200 MiB/s",
		"write 184.2200 OPs",
	}},
	"IOR 4.0.0: transfers of 8 bytes": {tiny, 0, "4.0.0-t8.txt", "4.0.0", []string{
		"write 0.0600 MiB/s",
		"write 7724.3200 OPs",
		"read 3.0500 MiB/s",
		"read 399457.5200 OPs",
	}},
	"IOR 4.0.0: JSON": {json3, 0, "4.0.0-json.txt", "4.0.0", []string{
		"write 2250.8682 MiB/s (3: 2023.3015 to 2417.1180, 203.9428)",
		"write 9003.4730 OPs (3: 8093.2060 to 9668.4720, 815.7715)",
		"read 28644.1907 MiB/s (3: 25970.9226 to 30783.8826, 2450.4436)",
		"read 114576.7628 OPs (3: 103883.6904 to 123135.5303, 9801.7742)",
	}},
	"IOR 4.0.0: JSON of one iteration": {json1, 0, "4.0.0-json-i1.txt", "4.0.0", []string{
		"write 428.2633 MiB/s",
		"write 1713.0533 OPs",
		"read 26672.8394 MiB/s",
		"read 106691.3577 OPs",
	}},
}

// describe formats samples as lines.
func describe(samples []benchmarks.Sample) []string {
	var out []string
	for _, s := range samples {
		line := fmt.Sprintf("%s %.4f %s", s.Name, s.Value, s.Unit)
		if s.Within != nil {
			line += fmt.Sprintf(" (%d: %.4f to %.4f, %.4f)", s.Within.Count, s.Within.Min, s.Within.Max, s.Within.StdDev)
		}
		out = append(out, line)
	}
	return out
}

func TestParseReadsWhatIORPrinted(t *testing.T) {
	for name, test := range good {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			report, err := ior.Tool{}.Parse(test.spec, point(t, test.spec), test.step, tooltest.Output(t, test.file))
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(describe(report.Samples)).To(Equal(test.want))
			g.Expect(report.Version).To(Equal(test.version))
			saved, err := ior.Tool{}.Parse(&v1alpha1.BenchmarkRunSpec{Tool: v1alpha1.ToolIOR}, benchmarks.Point{}, 0, tooltest.Output(t, test.file))
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(saved).To(Equal(report), "an output that was saved elsewhere")
		})
	}
}

func TestParseRefusesRunsThatEndedBadly(t *testing.T) {
	aborted := `mpirun says "MPI_ABORT was invoked`
	failed := `mpirun says "Primary job  terminated normally, but 1 process returned"`
	for file, test := range map[string]struct {
		spec *v1alpha1.BenchmarkRunSpec
		step int
		says string
	}{
		"3.3.0-error-missing-directory": {run(2, v1alpha1.IORSpec{}), 0, aborted},
		"4.0.0-error-missing-directory": {run(2, v1alpha1.IORSpec{}), 0, `says "WARNING: Backend returned error during statfs"`},
		"3.3.0-error-missing-file":      {run(2, v1alpha1.IORSpec{}), 0, aborted},
		"4.0.0-error-missing-file":      {run(2, v1alpha1.IORSpec{}), 0, `says "ERROR: open64(\"/mnt/scratch/data\", 0) failed: No such file or directory`},
		"3.3.0-error-multiple":          {nil, 0, `block size must be a multiple of transfer size`},
		"4.0.0-error-multiple":          {nil, 0, `block size must be a multiple of transfer size`},
		"3.3.0-error-random-reorder":    {nil, 0, `random offset and constant reorder tasks specified with single-shared-file`},
		"4.0.0-error-random-reorder":    {nil, 0, `random offset and constant reorder tasks specified with single-shared-file`},
		"3.3.0-error-option":            {run(2, v1alpha1.IORSpec{}), 0, `Error invalid argument: --nope`},
		"4.0.0-error-option":            {run(2, v1alpha1.IORSpec{}), 0, `says "Error invalid argument: -H2"`},
		"3.3.0-error-no-space":          {run(2, v1alpha1.IORSpec{BlockSize: "4Mi", TransferSize: "1Mi", FilePerProcess: true}), 0, aborted},
		"4.0.0-error-no-space":          {run(2, v1alpha1.IORSpec{BlockSize: "4Mi", TransferSize: "1Mi", FilePerProcess: true}), 0, failed},
		"3.3.0-error-killed":            {thousand, 0, "before the summary"},
		"4.0.0-error-killed":            {thousand, 0, "before the summary"},
		"3.3.0-error-rank-killed":       {thousand, 0, failed},
		"4.0.0-error-rank-killed":       {thousand, 0, failed},
		"3.3.0-error-json-killed":       {thousand, 0, "before the end of its JSON"},
		"4.0.0-error-json-killed":       {thousand, 0, "before the end of its JSON"},
		// The second iteration finds no file, because the first removed it: the read step needs -k too.
		"3.3.0-error-step2-read-without-keep": {steps, 1, aborted},
		"4.0.0-error-step2-read-without-keep": {steps, 1, aborted},
	} {
		t.Run(file, func(t *testing.T) {
			g := NewWithT(t)
			p := benchmarks.Point{}
			if test.spec != nil {
				p = point(t, test.spec)
			}
			report, err := ior.Tool{}.Parse(test.spec, p, test.step, tooltest.Output(t, file+".txt"))
			g.Expect(err).To(MatchError(ContainSubstring(test.says)))
			g.Expect(report).To(Equal(benchmarks.Report{}))
		})
	}
}

func TestParseRefusesOutputThatIsNotOfThePoint(t *testing.T) {
	with := func(change func(*v1alpha1.BenchmarkRunSpec)) *v1alpha1.BenchmarkRunSpec {
		spec := own.DeepCopy()
		change(spec)
		return spec
	}
	for name, test := range map[string]struct {
		spec     *v1alpha1.BenchmarkRunSpec
		file     string
		old, new string
		says     string
	}{
		"another number of processes":  {spec: with(func(s *v1alpha1.BenchmarkRunSpec) { s.Processes = 4 }), says: "write: tasks is 2, but the point asked for 4"},
		"another number of iterations": {spec: with(func(s *v1alpha1.BenchmarkRunSpec) { s.IOR.Iterations = 2 }), says: "write: repetitions is 3, but the point asked for 2"},
		"another block size":           {spec: with(func(s *v1alpha1.BenchmarkRunSpec) { s.IOR.BlockSize = "2m" }), says: "write: block size is 4194304, but the point asked for 2097152"},
		"another transfer size":        {spec: with(func(s *v1alpha1.BenchmarkRunSpec) { s.IOR.TransferSize = "2m" }), says: "write: transfer size is 1048576, but"},
		"another number of segments":   {spec: with(func(s *v1alpha1.BenchmarkRunSpec) { s.IOR.Segments = 2 }), says: "write: segments is 1, but the point asked for 2"},
		"one file":                     {spec: with(func(s *v1alpha1.BenchmarkRunSpec) { s.IOR.FilePerProcess = false }), says: "write: file per process is true, but the point asked for false"},
		"another interface":            {spec: with(func(s *v1alpha1.BenchmarkRunSpec) { s.IOR.Interface = v1alpha1.IORMPIIO }), says: "write: api is POSIX, but the point asked for MPIIO"},
		"an operation too many":        {spec: with(func(s *v1alpha1.BenchmarkRunSpec) { s.IOR.Operations = write }), says: "the summary is of write and read, but the point asked for write"},
		"an operation that is missing": {file: "4.0.0-write-only.txt", spec: run(2, v1alpha1.IORSpec{Segments: 2, Iterations: 2}), says: "the summary is of write, but the point asked for write and read"},
		"JSON of another block size":   {file: "4.0.0-json.txt", spec: run(2, v1alpha1.IORSpec{Segments: 2, Iterations: 3, BlockSize: "2Mi"}), says: "write: block size is 1048576, but"},
		"JSON with an error in it": {file: "4.0.0-json.txt", spec: json3, old: `"Finished"`, new: `WARNING: task 0, partial write()` + "\n" + `"Finished"`,
			says: `found "WARNING: task 0, partial write()" instead of JSON`},
		"JSON with an error behind it": {file: "4.0.0-json.txt", spec: json3, old: "\n}\n", new: "\n}\nERROR: no\n", says: `found "ERROR: no" behind the end of the JSON`},
		"JSON without its end":         {file: "4.0.0-json.txt", spec: json3, old: `"Finished"`, new: `"Ended"`, says: "the JSON is not that of a whole run of IOR"},
		"JSON of a number as text":     {file: "4.0.0-json.txt", spec: json3, old: `"bwMaxMIB": `, new: `"bwMaxMIB": "x", "y": `, says: "the JSON is not of IOR"},
		"an iteration that is missing": {old: "\nwrite ", new: "\nwrote ", says: `found "wrote`},
		"an iteration twice":           {old: "   2   \n", new: "   1   \n", says: "the result is of iteration 1, but 2 comes next"},
		"a number that is none":        {old: "{mean}", new: "nan", says: `"nan" is no number`},
		"infinity":                     {old: "{mean}", new: "inf", says: `"inf" is no number`},
		"a number below 0":             {old: "{mean}", new: "-1.00", says: `"-1.00" is no number`},
		"numbers that contradict":      {old: "{mean}", new: "1.00", says: "the summary of write contradicts its results: Max"},
		"a transfer that was short":    {old: "\nSummary of", new: "\nWARNING: Expected aggregate file size       = 8\nSummary of", says: `found "WARNING: Expected aggregate file size       = 8" instead of the result of an iteration`},
		"data that is wrong":           {old: "\nSummary of", new: "\nWARNING: Incorrect data on read (1 errors found).\nSummary of", says: "Incorrect data on read"},
		"an error among the results":   {old: "\nSummary of", new: "\nERROR: read(3) failed\nSummary of", says: `found "ERROR: read(3) failed" instead of the result of an iteration`},
		"an error after the end":       {old: "\nFinished", new: "\nFinished            : Sat Nov 21 18:35:44 2026\nSegmentation fault\nx", says: `"Segmentation fault" stands outside of the report and says that something has not ended well`},
		"no summary":                   {old: "\nSummary of all tests:", new: "\nSummary of no tests:", says: `found "Summary of no tests:"`},
		"a column that is missing":     {old: "StdDev   Max(OPs)", new: "Deviat   Max(OPs)", says: "the summary has no columns Max(MiB), Min(MiB), Mean(MiB), StdDev"},
		"no banner":                    {old: "IOR-4.0.0: ", new: "", says: `line 1: found "MPI Coordinated Test of Parallel I/O" instead of what IOR is about to run`},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			spec, file := own, "4.0.0-fpp.txt"
			if test.spec != nil {
				spec = test.spec
			}
			if test.file != "" {
				file = test.file
			}
			text := tooltest.Output(t, file)
			if test.old == "{mean}" {
				_, summary, _ := strings.Cut(string(text), "Operation")
				_, line, _ := strings.Cut(summary, "\nwrite")
				test.old = strings.Fields(line)[2]
			}
			if test.old != "" {
				g.Expect(string(text)).To(ContainSubstring(test.old))
				at := bytes.LastIndex(text, []byte(test.old))
				if name != "a number that is none" {
					at = bytes.Index(text, []byte(test.old))
				}
				text = append(append(bytes.Clone(text[:at]), test.new...), text[at+len(test.old):]...)
			}
			report, err := ior.Tool{}.Parse(spec, point(t, spec), 0, text)
			g.Expect(err).To(MatchError(ContainSubstring(test.says)))
			g.Expect(report).To(Equal(benchmarks.Report{}))
		})
	}
}

func TestParseRefusesAStepThatThePointHasNot(t *testing.T) {
	_, err := ior.Tool{}.Parse(steps, point(t, steps), 2, tooltest.Output(t, "4.0.0-step2-read.txt"))
	NewWithT(t).Expect(err).To(MatchError("there is no step 2; the point has 2"))
}

func FuzzParse(f *testing.F) {
	for _, file := range []string{"3.0.1-fpp", "3.3.0-fpp", "4.0.0-fpp", "3.3.0-json", "4.0.0-json", "4.0.0-error-missing-file"} {
		f.Add(tooltest.Output(f, file+".txt"))
	}
	p := point(f, own)
	f.Fuzz(func(t *testing.T, text []byte) {
		for _, known := range []benchmarks.Point{p, {}} {
			samples := tooltest.Reads(t, ior.Tool{}, own, known, text)
			if samples != nil && (len(samples) < 1 || len(samples) > 4) {
				t.Fatalf("%d samples", len(samples))
			}
		}
	})
}

func BenchmarkParse(b *testing.B) {
	p, text := point(b, own), tooltest.Output(b, "4.0.0-fpp.txt")
	b.SetBytes(int64(len(text)))
	b.ReportAllocs()
	for b.Loop() {
		if _, err := (ior.Tool{}).Parse(own, p, 0, text); err != nil {
			b.Fatal(err)
		}
	}
}
