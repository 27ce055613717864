package storagebench_test

import (
	"bytes"
	"errors"
	"testing"

	. "github.com/onsi/gomega"

	"parallelfs.dev/operator/api/v1alpha1"
	"parallelfs.dev/operator/benchmarks"
	"parallelfs.dev/operator/benchmarks/storagebench"
	"parallelfs.dev/operator/benchmarks/tooltest"
)

func run(o v1alpha1.StoragebenchSpec) *v1alpha1.BenchmarkRunSpec {
	return &v1alpha1.BenchmarkRunSpec{Tool: v1alpha1.ToolStoragebench, Storagebench: &o}
}

var writeOnly = v1alpha1.StoragebenchSpec{Operations: []v1alpha1.StoragebenchOperation{v1alpha1.StoragebenchWrite}}

// good holds outputs of successful calls. The results of 7.4.6 are from its real servers. Those of 8.3.1 were printed by its own code from
// made-up numbers. The lines between them are the node binary's.
var good = map[string]struct {
	spec *v1alpha1.BenchmarkRunSpec
	file string
	want []string
}{
	"7: writing": {run(writeOnly), "7.4.6-write.txt", []string{
		"write Min throughput 1820444.00 KiB/s", "write Max throughput 2978909.00 KiB/s", "write Avg throughput 2206599.00 KiB/s",
		"write Aggregate throughput 6619797.00 KiB/s",
	}},
	"7: writing and reading": {run(v1alpha1.StoragebenchSpec{}), "7.4.6-write-read.txt", []string{
		"write Min throughput 1820444.00 KiB/s", "write Max throughput 2978909.00 KiB/s", "write Avg throughput 2206599.00 KiB/s",
		"write Aggregate throughput 6619797.00 KiB/s", "read Min throughput 1710321.00 KiB/s", "read Max throughput 3100412.00 KiB/s",
		"read Avg throughput 2173684.00 KiB/s", "read Aggregate throughput 6521054.00 KiB/s",
	}},
	"8: writing and reading": {run(v1alpha1.StoragebenchSpec{}), "8.3.1-write-read.txt", []string{
		"write Min throughput 1820545.00 KiB/s", "write Max throughput 1821546.00 KiB/s", "write Avg throughput 1820912.00 KiB/s",
		"write Aggregate throughput 5462736.00 KiB/s", "read Min throughput 1820545.00 KiB/s", "read Max throughput 1821546.00 KiB/s",
		"read Avg throughput 1820912.00 KiB/s", "read Aggregate throughput 5462736.00 KiB/s",
	}},
}

func TestContract(t *testing.T) {
	cases := map[string]tooltest.Case{}
	for name, g := range good {
		cases[name] = tooltest.Case{Spec: g.spec, Output: tooltest.Output(t, g.file)}
	}
	tooltest.Run(t, storagebench.Tool{}, cases)
}

func TestPlan(t *testing.T) {
	g := NewWithT(t)
	spec := run(v1alpha1.StoragebenchSpec{BlockSize: "512Ki", FileSize: "20Gi", Threads: 8, DirectIO: true,
		Operations: []v1alpha1.StoragebenchOperation{v1alpha1.StoragebenchRead, v1alpha1.StoragebenchWrite}})
	plan, err := storagebench.Tool{}.Plan(spec, tooltest.Point(t, storagebench.Tool{}, spec))
	g.Expect(err).NotTo(HaveOccurred())
	arguments := map[string]string{"blockSize": "524288", "fileSize": "21474836480", "threads": "8", "directIO": "true"}
	g.Expect(plan).To(Equal(benchmarks.Plan{Steps: []benchmarks.Step{{Command: benchmarks.Command{
		Launch: benchmarks.OnManagement, Calls: []benchmarks.Call{{Verb: "write", Arguments: arguments}, {Verb: "read", Arguments: arguments}},
	}}}}))
}

func TestPlanRefuses(t *testing.T) {
	for name, test := range map[string]struct {
		spec v1alpha1.StoragebenchSpec
		says string
	}{
		"reading what nobody has written": {v1alpha1.StoragebenchSpec{Operations: []v1alpha1.StoragebenchOperation{v1alpha1.StoragebenchRead}}, "must hold Write"},
		"less than a block":               {v1alpha1.StoragebenchSpec{FileSize: "4Ki"}, "storagebench.fileSize: 4Ki is less than storagebench.blockSize (128Ki)"},
		"broken blocks":                   {v1alpha1.StoragebenchSpec{FileSize: "192Ki"}, "storagebench.fileSize: 192Ki is no multiple of"},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			spec := run(test.spec)
			plan, err := storagebench.Tool{}.Plan(spec, tooltest.Point(t, storagebench.Tool{}, spec))
			var invalid *benchmarks.InvalidPointError
			g.Expect(errors.As(err, &invalid)).To(BeTrue())
			g.Expect(err).To(MatchError(ContainSubstring(test.says)))
			g.Expect(plan).To(Equal(benchmarks.Plan{}))
		})
	}
}

func TestParseReadsWhatBeeGFSPrinted(t *testing.T) {
	for name, test := range good {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			report, err := storagebench.Tool{}.Parse(test.spec, tooltest.Point(t, storagebench.Tool{}, test.spec), 0, tooltest.Output(t, test.file))
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(tooltest.Lines(report)).To(Equal(test.want))
		})
	}
}

func TestParseRefuses(t *testing.T) {
	both := v1alpha1.StoragebenchSpec{}
	for name, test := range map[string]struct {
		spec           v1alpha1.StoragebenchSpec
		file, old, new string
		says           string
	}{
		"7: a disk that failed":           {spec: both, file: "error-7.4.6-disk.txt", says: "clean has ended instead of write"},
		"8: a worker that failed":         {spec: both, file: "error-8.3.1-worker.txt", says: "clean has ended instead of write"},
		"8: servers that still run":       {spec: both, file: "error-8.3.1-running.txt", says: "is no line of a result"},
		"an operation that is missing":    {spec: both, file: "7.4.6-write.txt", says: "clean has ended instead of read"},
		"an operation too many":           {spec: writeOnly, file: "7.4.6-write-read.txt", says: "read has ended instead of clean"},
		"7: another operation":            {spec: writeOnly, file: "7.4.6-write.txt", old: "Write bench", new: "Read bench", says: `the result is of "read" instead of write`},
		"7: a server that did not run":    {spec: writeOnly, file: "7.4.6-write.txt", old: "Finished:     2", new: "Didn't run:   1\nFinished:     1", says: "line 3: \"Didn't run:   1\" is no line of a result"},
		"7: a sum that is another":        {spec: writeOnly, file: "7.4.6-write.txt", old: "6619797", new: "6619798", says: "Aggregate throughput is 6619798, but the targets make 6619797"},
		"7: a target that is missing":     {spec: writeOnly, file: "7.4.6-write.txt", old: "102                        1820444  KiB/s   nodeID: stor-1 [ID: 1]\n", says: "but the targets make"},
		"7: a target that is there twice": {spec: writeOnly, file: "7.4.6-write.txt", old: "\n102  ", new: "\n101  ", says: "there is a second target 101"},
		"7: a number beyond counting":     {spec: writeOnly, file: "7.4.6-write.txt", old: "6619797", new: "66197976619797661979766", says: "is no throughput"},
		"8: an average that is another":   {spec: both, file: "8.3.1-write-read.txt", old: "1820912", new: "1820911", says: "Avg throughput is 1820911"},
		"8: fewer targets when reading":   {spec: both, file: "8.3.1-write-read.txt", old: "write  1820645kiB/s  s:201", new: "xxxxx  1820645kiB/s  s:201", says: "is no line of a result"},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			spec, text := run(test.spec), tooltest.Output(t, test.file)
			if test.old != "" {
				g.Expect(string(text)).To(ContainSubstring(test.old))
				text = bytes.Replace(text, []byte(test.old), []byte(test.new), 1)
			}
			report, err := storagebench.Tool{}.Parse(spec, tooltest.Point(t, storagebench.Tool{}, spec), 0, text)
			g.Expect(err).To(MatchError(ContainSubstring(test.says)))
			g.Expect(report).To(Equal(benchmarks.Report{}))
		})
	}
}

func FuzzParse(f *testing.F) {
	for _, file := range []string{"7.4.6-write-read.txt", "8.3.1-write-read.txt", "error-7.4.6-disk.txt", "error-8.3.1-running.txt"} {
		f.Add(tooltest.Output(f, file))
	}
	spec := run(v1alpha1.StoragebenchSpec{})
	p := tooltest.Point(f, storagebench.Tool{}, spec)
	f.Fuzz(func(t *testing.T, text []byte) {
		samples := tooltest.Reads(t, storagebench.Tool{}, spec, p, text)
		if samples != nil && len(samples) != 8 {
			t.Fatalf("%d samples", len(samples))
		}
	})
}

func BenchmarkParse(b *testing.B) {
	spec := run(v1alpha1.StoragebenchSpec{})
	p, text := tooltest.Point(b, storagebench.Tool{}, spec), tooltest.Output(b, "7.4.6-write-read.txt")
	b.SetBytes(int64(len(text)))
	b.ReportAllocs()
	for b.Loop() {
		if _, err := (storagebench.Tool{}).Parse(spec, p, 0, text); err != nil {
			b.Fatal(err)
		}
	}
}
