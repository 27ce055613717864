package reading_test

import (
	"bytes"
	"io"
	"mime/multipart"
	"strings"
	"testing"

	. "github.com/onsi/gomega"

	"parallelfs.dev/operator/api/v1alpha1"
	"parallelfs.dev/operator/benchmarks"
	"parallelfs.dev/operator/benchmarks/custom"
	"parallelfs.dev/operator/controllers/benchmarkrun/reading"
	"parallelfs.dev/operator/internal/node/printed"
)

// tools has one tool that prints "speed N", and one that returns values which no measurement gives.
var tools = reading.Tools{v1alpha1.ToolCustom: custom.Tool{}, v1alpha1.ToolIOzone: negative{}}

type negative struct{ benchmarks.Tool }

func (negative) Parse(_ *v1alpha1.BenchmarkRunSpec, _ benchmarks.Point, _ int, output []byte) (benchmarks.Report, error) {
	if string(output) == "faulty\n" {
		panic("index out of range")
	}
	return benchmarks.Report{Samples: []benchmarks.Sample{{Name: "write", Value: -1}}}, nil
}

func speed(tool v1alpha1.BenchmarkTool) reading.Request {
	return reading.Request{
		Spec: &v1alpha1.BenchmarkRunSpec{Tool: tool, Custom: &v1alpha1.CustomSpec{Metrics: []v1alpha1.CustomMetric{
			{Name: "speed", Unit: "MiB/s", Regex: "speed ([0-9]+)", Combine: v1alpha1.CustomSum},
		}}},
		Point: benchmarks.Point{Parameters: map[v1alpha1.SweepName]string{"processes": "1"}},
		Nodes: map[string]string{"worker-0": "n1"},
	}
}

func of(logs ...[]byte) reading.Outputs {
	return func(yield func(io.Reader, error) bool) {
		for _, log := range logs {
			if !yield(bytes.NewReader(log), nil) {
				return
			}
		}
	}
}

// stream returns the input of a reader in another process.
func stream(g *WithT, request reading.Request, logs ...[]byte) (text []byte, boundary string) {
	var out bytes.Buffer
	w := multipart.NewWriter(&out)
	g.Expect(reading.Send(w, request, of(logs...))).To(Succeed())
	return out.Bytes(), w.Boundary()
}

func TestAnOutputIsReadTheSameInAnotherProcess(t *testing.T) {
	good, rotated := printed.Log([]byte("speed 800\n")), printed.Log([]byte("speed 800\n"))[3:]
	large := bytes.Repeat([]byte("speed 1\n"), benchmarks.MaxOutput/8)
	machine := printed.Log([]byte(`parallelfs: machine {"name":"worker-0","throttled":{"periods":10,"throttled":5,"time":250000000}}` + "\nspeed 800\n"))
	three := printed.Log([]byte("speed 100\nspeed 161\nspeed 060\n"))
	cut := func(from, to int) []byte { return append(bytes.Clone(three[:from]), three[to:]...) }
	for name, c := range map[string]struct {
		tool v1alpha1.BenchmarkTool
		logs [][]byte
		want OmegaMatcher
	}{
		"one pod":                      {v1alpha1.ToolCustom, [][]byte{good}, HaveField("Samples", HaveExactElements(HaveField("Value", 800.0)))},
		"two pods":                     {v1alpha1.ToolCustom, [][]byte{good, good}, HaveField("Samples", HaveExactElements(HaveField("Value", 1600.0)))},
		"a machine that was held back": {v1alpha1.ToolCustom, [][]byte{machine}, HaveField("Throttled", ContainSubstring("on node n1 back in 5 of 10 periods"))},
		"a log that was rotated":       {v1alpha1.ToolCustom, [][]byte{good, rotated}, HaveField("Verdict", ContainSubstring("printed 10 bytes, and 7 of 10 are left"))},
		"a log of which the last line is left": {v1alpha1.ToolCustom, [][]byte{cut(0, 20)}, And(HaveField("Samples", BeEmpty()),
			HaveField("Verdict", ContainSubstring("printed 30 bytes, and 10 of 30 are left")))},
		"a log without its middle":         {v1alpha1.ToolCustom, [][]byte{cut(10, 20)}, HaveField("Verdict", ContainSubstring("printed 30 bytes, and 20 of 30 are left"))},
		"a log without its end":            {v1alpha1.ToolCustom, [][]byte{three[:20]}, HaveField("Verdict", ContainSubstring("read without its last line"))},
		"a log with a line doubled":        {v1alpha1.ToolCustom, [][]byte{append(bytes.Clone(three[:10]), three...)}, HaveField("Verdict", ContainSubstring("printed 30 bytes, and its log has 40"))},
		"a log with one line for another":  {v1alpha1.ToolCustom, [][]byte{append(bytes.Clone(three[:10]), cut(10, 20)...)}, HaveField("Verdict", ContainSubstring("is not that of its log"))},
		"the whole log of these lines":     {v1alpha1.ToolCustom, [][]byte{three}, HaveField("Samples", HaveExactElements(HaveField("Value", 321.0)))},
		"an output that is too large":      {v1alpha1.ToolCustom, [][]byte{printed.Log(large)}, HaveField("Verdict", ContainSubstring("printed more than 16 MiB"))},
		"outputs that are, together":       {v1alpha1.ToolCustom, [][]byte{printed.Log(large[:9<<20]), printed.Log(large[:9<<20])}, HaveField("Verdict", ContainSubstring("printed more than 16 MiB"))},
		"no pod":                           {v1alpha1.ToolCustom, nil, HaveField("Verdict", ContainSubstring("it was not found"))},
		"a value below 0":                  {v1alpha1.ToolIOzone, [][]byte{good}, HaveField("Verdict", ContainSubstring("write is -1, which is no measured value"))},
		"an output that a parser fails on": {v1alpha1.ToolIOzone, [][]byte{printed.Log([]byte("faulty\n"))}, HaveField("Verdict", ContainSubstring("its parser fails on; report it: index out of range"))},
		"a tool that there is not":         {v1alpha1.ToolFio, [][]byte{good}, HaveField("Verdict", "is a tool that this operator does not have")},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			here, err := reading.Here(tools)(t.Context(), speed(c.tool), of(c.logs...))
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(here).To(c.want)
			text, boundary := stream(g, speed(c.tool), c.logs...)
			var document bytes.Buffer
			g.Expect(reading.Serve(tools, bytes.NewReader(text), boundary, &document)).To(Succeed())
			g.Expect(reading.Decode(document.Bytes())).To(Equal(here))
		})
	}
}

func TestAStreamThatIsNotWholeHasNoAnswer(t *testing.T) {
	g := NewWithT(t)
	text, boundary := stream(g, speed(v1alpha1.ToolCustom), printed.Log([]byte("speed 800\n")))
	for n := range bytes.LastIndex(text, []byte("\r\n\r\n")) {
		var document bytes.Buffer
		g.Expect(reading.Serve(tools, bytes.NewReader(text[:n]), boundary, &document)).NotTo(Succeed(), "%q", text[max(0, n-100):n])
		g.Expect(document.Bytes()).To(BeEmpty())
	}
}

func TestAnAnswerIsSmall(t *testing.T) {
	g := NewWithT(t)
	request := speed(v1alpha1.ToolCustom)
	for range 300 {
		m := request.Spec.Custom.Metrics[0]
		m.Name = strings.Repeat("x", 1000)
		request.Spec.Custom.Metrics = append(request.Spec.Custom.Metrics, m)
	}
	text, boundary := stream(g, request, printed.Log([]byte("speed 800\n")))
	var document bytes.Buffer
	g.Expect(reading.Serve(tools, bytes.NewReader(text), boundary, &document)).To(Succeed())
	answer, err := reading.Decode(document.Bytes())
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(answer.Verdict).To(ContainSubstring("and one has 256 at most; have it print less"))
}
