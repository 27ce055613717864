package custom

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"parallelfs.dev/operator/api/v1alpha1"
	"parallelfs.dev/operator/benchmarks"
)

// own is the prefix of the node binary's lines, which are not part of the program's output.
const own = "parallelfs: "

// decimal matches a number as programs print it. ParseFloat accepts more, such as "inf" and "0x1p4".
var decimal = regexp.MustCompile(`^[+-]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]{1,3})?$`)

// Parse finds each metric in the output of the program, or in the output of each process.
func (Tool) Parse(spec *v1alpha1.BenchmarkRunSpec, point benchmarks.Point, _ int, output []byte) (benchmarks.Report, error) {
	s, err := check(spec, point)
	if err != nil {
		return benchmarks.Report{}, err
	}
	if len(output) > benchmarks.MaxOutput {
		return benchmarks.Report{}, fmt.Errorf("the output has more than %d MiB; have the program print less", benchmarks.MaxOutput>>20)
	}
	outputs := [][]byte{output}
	if s.launch == v1alpha1.CustomPerProcess {
		if outputs, err = benchmarks.SplitRanks(output, int(s.processes)); err != nil {
			return benchmarks.Report{}, err
		}
	}
	if err := bounded(s.metrics, outputs); err != nil {
		return benchmarks.Report{}, err
	}
	left := budget{bytes: maxDocument, values: maxValues, found: maxFound, walker: walker{left: maxVisits}}
	values := make([][]float64, len(s.metrics))
	for rank, output := range outputs {
		document, problem := left.decode(s.metrics, output)
		text := ""
		if slices.ContainsFunc(s.metrics, func(m metric) bool { return m.regex != nil }) {
			text = string(output)
		}
		for i, m := range s.metrics {
			found, err := left.find(m, text, document, problem)
			if err == nil && len(found) == 0 {
				err = errors.New("it was not found")
			}
			switch {
			case err != nil && len(outputs) > 1:
				return benchmarks.Report{}, fmt.Errorf("metric %s, process %d: %w", m.Name, rank, err)
			case err != nil:
				return benchmarks.Report{}, fmt.Errorf("metric %s: %w", m.Name, err)
			}
			values[i] = append(values[i], found...)
		}
	}
	var report benchmarks.Report
	for i, m := range s.metrics {
		value, err := combine(m.Combine, values[i])
		if err != nil {
			return benchmarks.Report{}, fmt.Errorf("metric %s: %w", m.Name, err)
		}
		report.Samples = append(report.Samples, benchmarks.Sample{Name: m.Name, Unit: m.Unit, Value: value, Better: m.Better})
	}
	return report, nil
}

// combine combines several values into one.
func combine(how v1alpha1.CustomCombine, values []float64) (float64, error) {
	if how == v1alpha1.CustomOnly && len(values) > 1 {
		return 0, fmt.Errorf("it was found %d times, and combine is Only", len(values))
	}
	out := values[0]
	for _, value := range values[1:] {
		switch how {
		case v1alpha1.CustomOnly:
		case v1alpha1.CustomSum, v1alpha1.CustomMean:
			out += value
		case v1alpha1.CustomMax:
			out = max(out, value)
		case v1alpha1.CustomMin:
			out = min(out, value)
		}
	}
	if how == v1alpha1.CustomMean {
		out /= float64(len(values))
	}
	if math.IsInf(out, 0) || math.IsNaN(out) {
		return 0, errors.New("its values are too large")
	}
	return out, nil
}

// find returns all values of a metric in the output of one process. document is its decoded JSON, and problem the reason why it could not
// be decoded.
func (b *budget) find(m metric, text string, document any, problem error) ([]float64, error) {
	if m.regex != nil {
		return b.findLines(m, text)
	}
	if problem != nil {
		return nil, problem
	}
	return b.findJSON(m, document)
}

func (b *budget) findLines(m metric, text string) ([]float64, error) {
	var out []float64
	number := 0
	for line := range strings.SplitSeq(text, "\n") {
		number++
		match := m.regex.FindStringSubmatch(strings.TrimSuffix(line, "\r"))
		if match == nil || strings.HasPrefix(line, own) {
			continue
		}
		if b.found--; b.found < 0 {
			return nil, fmt.Errorf("line %d: the metrics are found more than %d times together; have the program print less", number, maxFound)
		}
		value, err := parse(match[1])
		if err != nil {
			return nil, fmt.Errorf("line %d: %w", number, err)
		}
		out = append(out, value)
	}
	return out, nil
}

// parse parses a finite number.
func parse(text string) (float64, error) {
	value, err := strconv.ParseFloat(text, 64)
	if err != nil || !decimal.MatchString(text) {
		return 0, fmt.Errorf("%q is no number of the form 123.45", benchmarks.Short(text))
	}
	return value, nil
}

// Bounds for the outputs of all processes together.
const (
	// maxDocument bounds the size of a decoded JSON document in bytes. maxValues bounds its values: decoding takes up to 250 bytes for each,
	// as in many small objects.
	maxDocument, maxValues = 1 << 20, 1 << 17
	// maxFound bounds the matches of regular expressions.
	maxFound = 1 << 17
)

// budget is the remaining part of these bounds.
type budget struct {
	bytes, values, found int
	walker               walker
}

// decode decodes an output as one JSON document, once for all metrics. It returns nil if no metric needs it.
func (b *budget) decode(all []metric, text []byte) (any, error) {
	if !slices.ContainsFunc(all, func(m metric) bool { return m.path != nil }) {
		return nil, nil //nolint:nilnil // there is nothing to decode, and nothing is wrong with that
	}
	if b.bytes -= len(text); b.bytes < 0 {
		const mebibyte = 1 << 20
		return nil, fmt.Errorf("a jsonPath reads at most %d MiB, and the output has %d MiB: have the program print less, or find the number by a regex",
			maxDocument/mebibyte, (len(text)+mebibyte-1)/mebibyte)
	}
	values, err := benchmarks.BoundJSON(text, b.values)
	if err != nil {
		return nil, err //nolint:wrapcheck // it is a sentence about the output
	}
	b.values -= values
	var document any
	decoder := json.NewDecoder(bytes.NewReader(withoutOwn(text)))
	if err := decoder.Decode(&document); err != nil {
		return nil, fmt.Errorf("the output is no JSON document: %w", benchmarks.ShortError(err))
	}
	if _, err := decoder.Token(); !errors.Is(err, io.EOF) {
		return nil, errors.New("something stands behind the JSON document")
	}
	return document, nil
}

func (b *budget) findJSON(m metric, document any) ([]float64, error) {
	found, err := b.walker.find(m.path, document)
	if err != nil {
		return nil, fmt.Errorf("jsonPath %s: %w", m.JSONPath, err)
	}
	out := make([]float64, 0, len(found))
	for _, value := range found {
		number, is := numberOf(value)
		if !is {
			return nil, fmt.Errorf("jsonPath %s finds something that is no number", m.JSONPath)
		}
		out = append(out, number)
	}
	return out, nil
}

// numberOf returns a number of a JSON document, or a number that is written as a string there.
func numberOf(value any) (float64, bool) {
	switch value := value.(type) {
	case float64:
		return value, true
	case string:
		number, err := parse(value)
		return number, err == nil
	default:
		return 0, false
	}
}

func withoutOwn(text []byte) []byte {
	if !bytes.Contains(text, []byte(own)) {
		return text
	}
	var out []byte
	for line := range bytes.Lines(text) {
		if !bytes.HasPrefix(line, []byte(own)) {
			out = append(out, line...)
		}
	}
	return out
}
