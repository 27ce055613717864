// Package reading parses the output of a turn's containers into a result. The author of a BenchmarkRun controls that output, so the manager
// uses a separate process (cmd/manager), which gets a stream and answers with one small document.
package reading

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"math"
	"mime/multipart"

	"parallelfs.dev/operator/api/v1alpha1"
	"parallelfs.dev/operator/benchmarks"
	"parallelfs.dev/operator/controllers/benchmarkrun/text"
	"parallelfs.dev/operator/internal/node/measured"
	"parallelfs.dev/operator/internal/node/printed"
)

const (
	// MaxAnswer bounds the document of an answer, in bytes.
	MaxAnswer = 256 << 10
	// maxRequest bounds the document of a request, which contains a spec: etcd holds objects of 1.5 MiB.
	maxRequest = 2 << 20
	// TailLines bounds the lines that an answer quotes of an output.
	TailLines = 10
	// MaxTail bounds the bytes of these lines.
	MaxTail = 1500
	// maxSaid bounds every other text of an answer.
	maxSaid = 1 << 10
	// maxSamples is a limit above the samples of any tool.
	maxSamples = 512
)

// Request describes the origin of an output.
type Request struct {
	Spec  *v1alpha1.BenchmarkRunSpec `json:"spec"`
	Point benchmarks.Point           `json:"point"`
	Step  int                        `json:"step"`
	// OfServers is true for the calls of a filesystem's own tools, which the lines of the node binary separate.
	OfServers bool `json:"ofServers,omitempty"`
	// Nodes maps the names of pods to those of their nodes.
	Nodes map[string]string `json:"nodes,omitempty"`
}

// Answer is the result.
type Answer struct {
	// Verdict is why there is no result, as the rest of a sentence about the tool. Tail holds the last lines of an output that was read
	// completely.
	Verdict string `json:"verdict,omitempty"`
	Tail    string `json:"tail,omitempty"`
	// Version is the version that the tool reports.
	Version string              `json:"version,omitempty"`
	Samples []benchmarks.Sample `json:"samples,omitempty"`
	// Throttled and Clocks hold what the node binary has measured about the machines. ClockTrouble is why that makes the result invalid.
	Throttled    string `json:"throttled,omitempty"`
	Clocks       string `json:"clocks,omitempty"`
	ClockTrouble string `json:"clockTrouble,omitempty"`
}

// Outputs yields the outputs of the containers of a turn, one after the other. An error ends them.
type Outputs = iter.Seq2[io.Reader, error]

// Reader reads the outputs of a turn. It returns an error of the outputs unchanged.
type Reader func(ctx context.Context, request Request, outputs Outputs) (Answer, error)

// EndedError means that an output could not be read because its reader was killed or crashed.
type EndedError struct {
	// Reason is the rest of a sentence about that reader.
	Reason string
}

// Error returns the reason.
func (e *EndedError) Error() string { return e.Reason }

// Tools holds all benchmarks by their names.
type Tools = map[v1alpha1.BenchmarkTool]benchmarks.Tool

// Here returns a Reader that runs in this process.
func Here(tools Tools) Reader {
	return func(_ context.Context, request Request, outputs Outputs) (Answer, error) {
		var logs [][]byte
		for output, err := range outputs {
			if err != nil {
				return Answer{}, err
			}
			log, err := io.ReadAll(io.LimitReader(output, benchmarks.MaxOutput))
			if err != nil {
				return Answer{}, err //nolint:wrapcheck // that of the output
			}
			logs = append(logs, log)
		}
		return answer(tools, request, logs), nil
	}
}

// endPart is the name of the last part of a stream. Without it, a stream that is cut off between two parts looks complete to the library.
const endPart = "end"

// Send writes a request and its outputs as one stream. The receiver needs the boundary of the writer, which no output can guess.
func Send(w *multipart.Writer, request Request, outputs Outputs) error {
	part, err := w.CreateFormField("request")
	if err != nil {
		return fmt.Errorf("write the request: %w", err)
	}
	document, err := json.Marshal(request)
	if err != nil {
		return fmt.Errorf("encode the request: %w", err)
	}
	if len(document) > maxRequest {
		return fmt.Errorf("the spec of the run has %d bytes, and an output is read for one of at most %d", len(document), maxRequest)
	}
	if _, err := part.Write(document); err != nil {
		return fmt.Errorf("write the request: %w", err)
	}
	for output, err := range outputs {
		if err != nil {
			return err
		}
		part, err := w.CreateFormField("output")
		if err != nil {
			return fmt.Errorf("write an output: %w", err)
		}
		if _, err := io.Copy(part, output); err != nil {
			return fmt.Errorf("write an output: %w", err)
		}
	}
	if _, err := w.CreateFormField(endPart); err != nil {
		return fmt.Errorf("write the end of the outputs: %w", err)
	}
	if err := w.Close(); err != nil {
		return fmt.Errorf("write the end of the outputs: %w", err)
	}
	return nil
}

// Serve reads the stream of Send, and writes the answer. It returns an error for an incomplete stream.
func Serve(tools Tools, stream io.Reader, boundary string, to io.Writer) error {
	var request Request
	var logs [][]byte
	parts := multipart.NewReader(stream, boundary)
	left := benchmarks.MaxOutput
	for number := 0; ; number++ {
		part, err := parts.NextRawPart()
		if err != nil {
			return fmt.Errorf("read part %d: %w", number, err)
		}
		if part.FormName() == endPart {
			break
		}
		most := left + 1
		if number == 0 {
			most = maxRequest + 1
		}
		text, err := readMost(part, most)
		if err != nil {
			return fmt.Errorf("read part %d: %w", number, err)
		}
		if number == 0 {
			if err := decode(text, &request); err != nil {
				return fmt.Errorf("decode the request: %w", err)
			}
			continue
		}
		logs = append(logs, text)
		if left -= len(text); left < 0 {
			break // it is reported as too large, whatever follows
		}
	}
	document, err := json.Marshal(answer(tools, request, logs))
	if err == nil && len(document) > MaxAnswer {
		document, err = json.Marshal(Answer{Verdict: fmt.Sprintf("printed a result of %d KiB, and one has %d at most; have it print less",
			len(document)>>10, MaxAnswer>>10)})
	}
	if err != nil {
		return fmt.Errorf("encode the answer: %w", err)
	}
	_, err = to.Write(document)
	return err //nolint:wrapcheck // that of the stream
}

// readMost reads at most so many bytes with as little memory as possible: io.ReadAll takes several times the size.
func readMost(from io.Reader, most int) ([]byte, error) {
	var out []byte
	for {
		if len(out) == cap(out) {
			grown := make([]byte, len(out), min(most, max(64<<10, 2*cap(out))))
			copy(grown, out)
			out = grown
		}
		n, err := from.Read(out[len(out):cap(out)])
		out = out[:len(out)+n]
		if errors.Is(err, io.EOF) || len(out) == most {
			return out, nil
		}
		if err != nil {
			return nil, err //nolint:wrapcheck // the caller adds what was read
		}
	}
}

// Decode decodes an answer strictly: one document, with known fields, and numbers that can be results.
func Decode(document []byte) (Answer, error) {
	var out Answer
	if len(document) > MaxAnswer {
		return Answer{}, fmt.Errorf("it has more than %d KiB", MaxAnswer>>10)
	}
	if err := decode(document, &out); err != nil {
		return Answer{}, err
	}
	if err := checkSamples(out.Samples); err != nil {
		return Answer{}, err
	}
	return out, nil
}

func decode(document []byte, into any) error {
	decoder := json.NewDecoder(bytes.NewReader(document))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(into); err != nil {
		return fmt.Errorf("it is no document of this form: %w", err)
	}
	if _, err := decoder.Token(); !errors.Is(err, io.EOF) {
		return errors.New("something follows the document")
	}
	return nil
}

// checkSamples refuses values that no measurement gives.
func checkSamples(samples []benchmarks.Sample) error {
	if len(samples) > maxSamples {
		return fmt.Errorf("it has %d metrics, and %d at most are kept", len(samples), maxSamples)
	}
	for _, s := range samples {
		values := []float64{s.Value}
		if s.Within != nil {
			values = append(values, s.Within.Min, s.Within.Max, s.Within.StdDev)
		}
		for _, value := range values {
			if math.IsNaN(value) || math.IsInf(value, 0) || value < 0 {
				return fmt.Errorf("%s is %g, which is no measured value", benchmarks.Short(s.Name), value)
			}
		}
	}
	return nil
}

// answer reads the logs of all containers of a turn that ended successfully.
func answer(tools Tools, request Request, logs [][]byte) Answer {
	raw, verdict := outputs(logs)
	var out Answer
	if verdict == "" {
		out, verdict = parse(tools, request, raw)
	}
	if verdict == "" && !request.OfServers {
		report := machines(raw, request.Nodes)
		out.Throttled, out.Clocks = v1alpha1.Cut(report.Throttled(), maxSaid), v1alpha1.Cut(report.Clocks(), maxSaid)
		out.ClockTrouble = v1alpha1.Cut(report.ClockTrouble(), maxSaid)
	}
	if verdict != "" {
		return Answer{Verdict: v1alpha1.Cut(verdict, MaxTail), Tail: text.LastLines(raw, TailLines, MaxTail)}
	}
	return out
}

// outputs returns everything that the tool printed, or why that is unknown. A single log is not copied.
func outputs(logs [][]byte) (raw []byte, verdict string) {
	size := 0
	for i, log := range logs {
		if size += len(log); size >= benchmarks.MaxOutput {
			return nil, fmt.Sprintf("printed more than %d MiB, which is not read; have it print less", benchmarks.MaxOutput>>20)
		}
		output, err := printed.Check(log)
		if err != nil {
			output = log
			if verdict == "" {
				verdict = err.Error()
			}
		}
		logs[i] = output
	}
	if len(logs) == 1 {
		return logs[0], verdict
	}
	return bytes.Join(logs, nil), verdict
}

// parse returns the samples, or why there are none.
func parse(tools Tools, request Request, raw []byte) (out Answer, verdict string) {
	defer func() {
		// A panic of a parser counts as a fault of this output.
		if fault := recover(); fault != nil {
			out, verdict = Answer{}, fmt.Sprintf("printed something that its parser fails on; report it: %v", fault)
		}
	}()
	tool, known := tools[request.Spec.ToolName()]
	if !known {
		return Answer{}, "is a tool that this operator does not have"
	}
	if !request.OfServers {
		raw = withoutOwnLines(raw)
	}
	report, err := benchmarks.Parse(tool, request.Spec, request.Point, request.Step, raw)
	if err == nil {
		err = checkSamples(report.Samples)
	}
	if err != nil {
		return Answer{}, fmt.Sprintf("printed something that can't be read as its result: %v", err)
	}
	return Answer{Samples: report.Samples, Version: v1alpha1.Cut(report.Version, maxSaid)}, ""
}

// withoutOwnLines removes the lines that the node binary itself has printed between the tool's lines. They begin with "parallelfs: ".
func withoutOwnLines(raw []byte) []byte {
	own := []byte("parallelfs: ")
	if !bytes.HasPrefix(raw, own) && !bytes.Contains(raw, []byte("\nparallelfs: ")) {
		return raw
	}
	kept := make([]byte, 0, len(raw))
	for line := range bytes.Lines(raw) {
		if !bytes.HasPrefix(line, own) {
			kept = append(kept, line...)
		}
	}
	return kept
}

// machines returns what the node binary has reported about the machines, by the names of their nodes if the pods still exist.
func machines(raw []byte, nodes map[string]string) measured.Report {
	report := measured.Read(raw)
	for i := range report {
		if node := nodes[report[i].Name]; node != "" {
			report[i].Name = "node " + node
		}
	}
	return report
}
