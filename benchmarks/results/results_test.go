package results_test

import (
	"bytes"
	"encoding/csv"
	"flag"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"parallelfs.dev/operator/api/v1alpha1"
	"parallelfs.dev/operator/benchmarks"
	"parallelfs.dev/operator/benchmarks/results"
	"parallelfs.dev/operator/benchmarks/telemetry"
)

var update = flag.Bool("update", false, "write the golden files anew")

// golden compares with a file in testdata.
func golden(t *testing.T, name string, got []byte) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if *update {
		NewWithT(t).Expect(os.WriteFile(path, got, 0o600)).To(Succeed())
	}
	want, err := os.ReadFile(path)
	NewWithT(t).Expect(err).NotTo(HaveOccurred())
	NewWithT(t).Expect(string(got)).To(Equal(string(want)))
}

// sample returns a run with a complete point, a failed one and one that was not started.
func sample() results.Run {
	began := time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)
	return results.Run{
		Format: results.Format, Name: "creates", Namespace: "lab", UID: "1b4e28ba-2fa1-11d2-883f-0016d3cca427",
		Spec: v1alpha1.BenchmarkRunSpec{
			Target: v1alpha1.BenchmarkTarget{FileSystem: v1alpha1.FileSystemTarget{Name: "scratch"}}, Tool: v1alpha1.ToolMdtest, Mdtest: &v1alpha1.MdtestSpec{}, Repetitions: 2,
			Sweep: []v1alpha1.SweepDimension{{Name: "processes", PowersOfTwo: &v1alpha1.SweepPowers{From: "1", To: "4"}}},
		},
		Started: began, Ended: began.Add(time.Hour),
		Provenance: results.Provenance{
			RunProvenance: v1alpha1.RunProvenance{FileSystem: "BeeGFS 7.4.6, generation 3", Clients: []v1alpha1.NodeProvenance{{Node: "c1", CPUs: 8}}},
			Operator:      "v1",
		},
		Points: []results.Point{
			{
				Index: 0, State: v1alpha1.PointSucceeded, Command: []string{"mdtest", "-n", "10"}, Placement: "1 on 1 client",
				Parameters: []results.Value{{Name: "processes", Value: "1"}, {Name: "mdtest.items", Value: "1k"}},
				Metrics: []results.Metric{
					{
						Name: "File creation", Unit: "ops/s", Value: 1000.5, Mean: 1000.5, Min: 999, Max: 1002, Median: new(1000.5), StdDev: new(2.1213),
						Confidence: new(19.06), Outliers: []int32{1, 2}, Samples: 2, Speedup: new(1.0), Efficiency: new(1.0),
						Baseline: &results.Baseline{Of: "before", Value: 900, Change: 0.11166666666666666, Verdict: results.Better},
					},
					{Name: "items", Unit: "items", Value: 1e6, Mean: 1e6, Min: 1e6, Max: 1e6, Samples: 2},
				},
				Attempts: []results.Attempt{
					{Repetition: 1, Attempt: 1, WarmUp: true, Started: began, Ended: began.Add(time.Minute), ExitCode: new(int32(0))},
					{
						Repetition: 1, Attempt: 1, Started: began, Ended: began.Add(time.Minute), ExitCode: new(int32(0)),
						Samples: []benchmarks.Sample{
							{Name: "File creation", Unit: "ops/s", Value: 999, Within: &benchmarks.Within{Count: 3, Min: 990, Max: 1010, StdDev: 10}},
							{Name: "items", Unit: "items", Value: 1e6},
						},
						Telemetry: []telemetry.Summary{{Node: "s1", Target: "ssd", Seconds: 60, Samples: 60, Utilization: 0.37}},
					},
					{Repetition: 2, Attempt: 1, Invalid: "the daemon meta/0 was started anew"},
					{Repetition: 2, Attempt: 2, Samples: []benchmarks.Sample{{Name: "File creation", Unit: "ops/s", Value: 1002}, {Name: "items", Unit: "items", Value: 1e6}}},
				},
			},
			{
				Index: 1, State: v1alpha1.PointFailed, Message: "mdtest ended with exit code 1:\nno space, \"left\"",
				Parameters: []results.Value{{Name: "processes", Value: "2"}, {Name: "mdtest.items", Value: "512"}},
				Attempts:   []results.Attempt{{Repetition: 1, Attempt: 1, Step: "create", ExitCode: new(int32(1)), Error: "no space"}},
			},
			{Index: 2, State: v1alpha1.PointPending, Parameters: []results.Value{{Name: "processes", Value: "4"}}},
		},
	}
}

func sampleSuite() results.Suite {
	small := sample()
	small.Points = small.Points[:1]
	return results.Suite{
		Format: results.Format, Name: "backends", Namespace: "lab", UID: "7",
		Variants: []results.Variant{
			{Name: "ext4", Scale: 1, Runs: []results.SuiteRun{{Name: "creates", Run: sample()}}}, {Name: "xfs", Runs: []results.SuiteRun{{Name: "creates", Run: small}}},
		},
	}
}

func TestDocumentsAreReadAsTheyWereWritten(t *testing.T) {
	g := NewWithT(t)
	text, err := results.Encode(sample())
	g.Expect(err).NotTo(HaveOccurred())
	golden(t, "run.json", text)
	g.Expect(results.Decode(text)).To(Equal(sample()))
	packed, err := results.Zip(text)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(results.Decode(packed)).To(Equal(sample()), "packed too")
	g.Expect(results.IsSuite(text)).To(BeFalse())
	_, err = results.DecodeSuite(text)
	g.Expect(err).To(MatchError(ContainSubstring("these are the results of one run")))

	unnamed := sampleSuite()
	unnamed.Format, unnamed.Variants[0].Runs[0].Run.Format = "", ""
	text, err = results.EncodeSuite(unnamed)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(unnamed.Variants[0].Runs[0].Run.Format).To(BeEmpty(), "what is written is not changed")
	g.Expect(results.DecodeSuite(text)).To(Equal(sampleSuite()))
	g.Expect(results.IsSuite(text)).To(BeTrue())
	_, err = results.Decode(text)
	g.Expect(err).To(MatchError(ContainSubstring("these are the results of a BenchmarkSuite")))
}

func TestDecodeRefuses(t *testing.T) {
	for name, test := range map[string]struct{ text, says string }{
		"nothing":                 {"", "these are no results of a benchmark"},
		"another document":        {`{"kind": "Pod"}`, "there is no format in them"},
		"a later form":            {`{"format": "parallelfs.dev/results/v2", "points": []}`, `of format "parallelfs.dev/results/v2"; this version reads "parallelfs.dev/results/v1": use the version that wrote them`},
		"two forms at once":       {`{"format": "parallelfs.dev/results/v1", "points": [], "variants": []}`, "there are both variants and points"},
		"a document that is cut":  {`{"format": "parallelfs.dev/results/v1", "points": [`, "unexpected end of JSON input"},
		"something behind it":     {`{"format": "parallelfs.dev/results/v1", "points": []} {}`, "invalid character"},
		"gzip that is cut":        {"\x1f\x8b\x08\x00", "unpack the results"},
		"a point that is twice":   {`{"format": "parallelfs.dev/results/v1", "points": [{"index": 1}, {"index": 1}]}`, "have point 1 twice"},
		"words where numbers are": {`{"format": "parallelfs.dev/results/v1", "points": [{"index": "a"}]}`, "read the results of a run"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := results.Decode([]byte(test.text))
			NewWithT(t).Expect(err).To(MatchError(ContainSubstring(test.says)))
		})
	}
}

func TestOnlyNumbersAreWritten(t *testing.T) {
	g := NewWithT(t)
	for _, number := range []float64{math.NaN(), math.Inf(1)} {
		run := sample()
		run.Points[0].Metrics[0].Value = number
		_, err := results.Encode(run)
		g.Expect(err).To(MatchError(ContainSubstring("write the results of the run creates as JSON")))
		_, err = results.Pack(run, 1<<20)
		g.Expect(err).To(HaveOccurred())
	}
}

func TestCSV(t *testing.T) {
	for name, write := range map[string]func() ([]byte, error){
		"run.csv":           func() ([]byte, error) { return results.CSV(sample()) },
		"samples.csv":       func() ([]byte, error) { return results.SamplesCSV(sample()) },
		"suite.csv":         func() ([]byte, error) { return results.SuiteCSV(sampleSuite()) },
		"suite-samples.csv": func() ([]byte, error) { return results.SuiteSamplesCSV(sampleSuite()) },
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			text, err := write()
			g.Expect(err).NotTo(HaveOccurred())
			golden(t, name, text)
			rows, err := csv.NewReader(bytes.NewReader(text)).ReadAll()
			g.Expect(err).NotTo(HaveOccurred(), "every row has as many columns as the header")
			g.Expect(len(rows)).To(BeNumerically(">", 1))
		})
	}
}

func TestFromStatus(t *testing.T) {
	g := NewWithT(t)
	began := metav1.NewTime(time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC))
	run := &v1alpha1.BenchmarkRun{
		ObjectMeta: metav1.ObjectMeta{Name: "creates", Namespace: "lab", UID: "u"}, Spec: sample().Spec,
		Status: v1alpha1.BenchmarkRunStatus{
			StartTime: &began, Provenance: &v1alpha1.RunProvenance{ConfigHash: "abc"},
			Points: []v1alpha1.PointStatus{{
				Index: 3, State: v1alpha1.PointSucceeded, Command: "mdtest -n 10", Parameters: []v1alpha1.PointParameter{{Name: "processes", Value: "8"}},
				Metrics: []v1alpha1.MetricResult{
					{Name: "a", Unit: "ops/s", Value: "15.5", Mean: "15", Min: "14", Max: "16", StdDev: "0.5", Efficiency: "78.2", Samples: 3},
					{Name: "b", Unit: "ops/s", Value: "7", Samples: 1}, {Name: "c", Unit: "ops/s", Value: "much"},
				},
			}},
		},
	}
	got := results.FromStatus(run)
	g.Expect(got.Points).To(Equal([]results.Point{{
		Index: 3, State: v1alpha1.PointSucceeded, Command: []string{"mdtest -n 10"}, Parameters: []results.Value{{Name: "processes", Value: "8"}},
		Metrics: []results.Metric{
			{Name: "a", Unit: "ops/s", Value: 15.5, Mean: 15, Min: 14, Max: 16, StdDev: new(0.5), Efficiency: new(0.782), Samples: 3},
			{Name: "b", Unit: "ops/s", Value: 7, Mean: 7, Min: 7, Max: 7, Samples: 1},
		},
	}}))
	g.Expect(got.Started).To(Equal(began.Time))
	g.Expect(got.Provenance.ConfigHash).To(Equal("abc"))
	g.Expect(got.Describe(3)).To(Equal("processes=8"))
	text, err := results.Encode(got)
	g.Expect(err).NotTo(HaveOccurred())
	_, err = results.Decode(text)
	g.Expect(err).NotTo(HaveOccurred())
}

func TestTheParametersOfAPoint(t *testing.T) {
	g := NewWithT(t)
	values := results.Values(
		benchmarks.Point{Parameters: map[v1alpha1.SweepName]string{"a": "1", "b": "2", "c": "3"}, Varied: []v1alpha1.SweepName{"c"}},
		[]benchmarks.Parameter{{Name: "a"}, {Name: "open"}, {Name: "b"}, {Name: "c"}})
	g.Expect(values).To(Equal([]results.Value{{Name: "c", Value: "3"}, {Name: "a", Value: "1"}, {Name: "b", Value: "2"}}))
	saved := results.Run{Points: []results.Point{{Index: 0, Parameters: values}, {Index: 1, Parameters: []results.Value{{Name: "c", Value: "4"}, {Name: "a", Value: "1"}, {Name: "b", Value: "2"}}}}}
	g.Expect(saved.Varied()).To(Equal([]v1alpha1.SweepName{"c"}), "without a sweep, what differs")
	g.Expect(saved.Describe(1)).To(Equal("c=4"))
	for text, want := range map[string]float64{"12": 12, "4k": 4096, "1t": 1 << 40} {
		number, is := results.Number("ior.blockSize", text)
		g.Expect(is).To(BeTrue())
		g.Expect(number).To(Equal(want))
	}
	number, _ := results.Number("iozone.recordSize", "4")
	g.Expect(number).To(Equal(4096.0), "kilobytes")
	_, is := results.Number("storagePool", "ssd")
	g.Expect(is).To(BeFalse())
}

// large returns a run with these numbers of points, metrics and repetitions. Its numbers have as many digits as mdtest prints.
func large(points, metrics, repetitions int) results.Run {
	chance := rand.New(rand.NewPCG(1, 2))
	digits := func() float64 { return math.Round(chance.Float64()*1e9) / 1e3 }
	run := sample()
	run.Points = nil
	for i := range points {
		p := results.Point{Index: i, State: v1alpha1.PointSucceeded, Parameters: []results.Value{{Name: "processes", Value: fmt.Sprint(i)}}}
		for j := range metrics {
			p.Metrics = append(p.Metrics, results.Metric{
				Name: fmt.Sprintf("metric %d", j), Unit: "ops/s", Value: digits(), Mean: chance.Float64() * 1e6, Min: digits(), Max: digits(), Median: new(digits()),
				StdDev: new(chance.Float64() * 1e4), Confidence: new(chance.Float64() * 1e4), Samples: repetitions,
			})
		}
		for r := range repetitions {
			a := results.Attempt{Repetition: r + 1, Attempt: 1, Telemetry: make([]telemetry.Summary, 8)}
			for k := range a.Telemetry {
				a.Telemetry[k] = telemetry.Summary{Node: "s1", Target: fmt.Sprintf("ssd-%d", k), Seconds: 60, Samples: 60, Utilization: chance.Float64(), WriteIOPS: digits()}
			}
			for j := range metrics {
				a.Samples = append(a.Samples, benchmarks.Sample{Name: fmt.Sprintf("metric %d", j), Unit: "ops/s", Value: digits()})
			}
			p.Attempts = append(p.Attempts, a)
		}
		run.Points = append(run.Points, p)
	}
	return run
}

func TestPackLeavesOutWhatIsLeastMissed(t *testing.T) {
	run := large(20, 9, 3)
	size := func(limit int) (results.Packed, int) {
		packed, err := results.Pack(run, limit)
		NewWithT(t).Expect(err).NotTo(HaveOccurred())
		total := 0
		for _, data := range packed.Files {
			total += len(data)
		}
		return packed, total
	}
	_, all := size(10 << 20)
	const left = "left out, because the ConfigMap would have become larger than %d bytes: "
	seen := map[string]bool{}
	for limit := all + 100; limit > 0; limit -= 1000 {
		packed, err := results.Pack(run, limit)
		if err != nil {
			NewWithT(t).Expect(err).To(MatchError(And(ContainSubstring("even without attempts"), ContainSubstring("spread the sweep over several runs"))))
			seen["error"] = true
			break
		}
		g := NewWithT(t)
		total := 0
		for name, data := range packed.Files {
			total += len(name) + len(data)
		}
		g.Expect(total).To(BeNumerically("<=", limit))
		document, err := results.Decode(packed.Files[results.FileJSON])
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(document.Points).To(HaveLen(20))
		g.Expect(document.Points[7].Metrics).To(Equal(run.Points[7].Metrics), "no result is ever left out")
		what := packed.Note
		if what != "" {
			g.Expect(what).To(HavePrefix(fmt.Sprintf(left, limit)))
			what = what[len(fmt.Sprintf(left, limit)):]
		}
		_, plain := packed.Files[results.FileCSV]
		seen[fmt.Sprintf("%s (plain CSV %v)", what, plain)] = true
		switch what {
		case "":
			g.Expect(document.Points).To(Equal(run.Points))
			g.Expect(packed.Files).To(HaveKey(results.FileSamples))
		case "samples.csv, the telemetry of attempts":
			g.Expect(document.Points[0].Attempts[0].Telemetry).To(BeNil())
			g.Expect(document.Points[0].Attempts[0].Samples).To(Equal(run.Points[0].Attempts[0].Samples))
		}
	}
	NewWithT(t).Expect(seen).To(Equal(map[string]bool{
		" (plain CSV true)": true, " (plain CSV false)": true, "samples.csv (plain CSV false)": true,
		"samples.csv, the telemetry of attempts (plain CSV false)": true, "samples.csv, the telemetry of attempts, the samples of attempts (plain CSV false)": true,
		"samples.csv, the telemetry of attempts, the samples of attempts, results.csv (plain CSV false)": true, "error": true,
	}))
	NewWithT(t).Expect(run.Points[0].Attempts[0].Telemetry).To(HaveLen(8), "the run itself is not changed")
}

func TestTheLargestRunFitsAConfigMap(t *testing.T) {
	g := NewWithT(t)
	packed, err := results.Pack(large(256, 30, 5), 900<<10)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(packed.Files).To(HaveKey(results.FileJSON))
	t.Logf("%d files; %s", len(packed.Files), packed.Note)
	for name, data := range packed.Files {
		t.Logf("%s has %d bytes", name, len(data))
	}
	suite := results.Suite{Name: "s", Variants: []results.Variant{{Name: "v", Runs: []results.SuiteRun{{Name: "r", Run: large(20, 9, 3)}}}}}
	packed, err = results.PackSuite(suite, 30<<10)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(packed.Note).To(ContainSubstring("the telemetry of attempts"))
	back, err := results.DecodeSuite(packed.Files[results.FileJSON])
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(back.Variants[0].Runs[0].Run.Points).To(HaveLen(20))
}

func FuzzDecode(f *testing.F) {
	for _, name := range []string{"run.json"} {
		text, err := os.ReadFile(filepath.Join("testdata", name))
		if err != nil {
			f.Fatal(err)
		}
		f.Add(text)
	}
	f.Add([]byte(`{"format": "parallelfs.dev/results/v1", "variants": [{"runs": [{"run": {"format": "parallelfs.dev/results/v1"}}]}]}`))
	f.Add([]byte("\x1f\x8b\x08\x00\x00\x00\x00\x00\x00\xff"))
	f.Fuzz(func(t *testing.T, data []byte) {
		run, err := results.Decode(data)
		if err == nil {
			again, err := results.Encode(run)
			if err != nil {
				t.Fatalf("what was read can't be written: %v", err)
			}
			if _, err := results.Decode(again); err != nil {
				t.Fatalf("what was written can't be read: %v", err)
			}
			if _, err := results.CSV(run); err != nil {
				t.Fatal(err)
			}
			if _, err := results.SamplesCSV(run); err != nil {
				t.Fatal(err)
			}
		}
		suite, suiteErr := results.DecodeSuite(data)
		if err == nil && suiteErr == nil {
			t.Fatal("a document is a run and a suite at once")
		}
		if suiteErr == nil {
			if _, err := results.SuiteCSV(suite); err != nil {
				t.Fatal(err)
			}
		}
	})
}

func BenchmarkPack(b *testing.B) {
	run := large(256, 30, 5)
	b.ReportAllocs()
	for b.Loop() {
		if _, err := results.Pack(run, 900<<10); err != nil {
			b.Fatal(err)
		}
	}
}

func TestARunAndASuiteOfOneNameHaveConfigMapsOfTheirOwn(t *testing.T) {
	g := NewWithT(t)
	for _, run := range []string{"night", "night-suite", "night-results"} {
		for _, suite := range []string{"night", "night-suite", "night-results"} {
			g.Expect(results.ConfigMapOfRun(run)).NotTo(Equal(results.ConfigMapOfSuite(suite)), "run %s and suite %s", run, suite)
		}
	}
}

func TestASpreadsheetCalculatesNothingOfAResult(t *testing.T) {
	g, run := NewWithT(t), sample()
	run.Points[0].Metrics[0].Name, run.Points[0].Metrics[0].Unit = `=cmd|' /C calc'!A0`, "@SUM(1)"
	run.Points[0].Message = " +1+2"
	run.Points[1].Message = "\t=1"
	run.Points[0].Attempts[0].Error = "-2+3"
	run.Points[0].Parameters[0].Value = "-5"
	read := func(data []byte, err error) (all [][]string) {
		g.Expect(err).NotTo(HaveOccurred())
		all, err = csv.NewReader(bytes.NewReader(data)).ReadAll()
		g.Expect(err).NotTo(HaveOccurred())
		return all
	}
	rows := append(read(results.CSV(run)), read(results.SamplesCSV(run))...)
	var guarded []string
	for _, row := range rows {
		for _, cell := range row {
			g.Expect(cell).NotTo(MatchRegexp(`^\s*[=+@]|^\s*-[^0-9]|^\s*-[0-9.]+[^0-9.]`))
			if len(cell) > 0 && cell[0] == '\'' {
				guarded = append(guarded, cell)
			}
		}
	}
	g.Expect(guarded).To(ContainElements(`'=cmd|' /C calc'!A0`, "'@SUM(1)", "' +1+2", "'\t=1", "'-2+3"))
	g.Expect(rows[1]).To(ContainElement("-5"), "a number stays a number")
}
