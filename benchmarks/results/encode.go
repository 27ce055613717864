package results

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"errors"
	"fmt"
	"io"
)

// Encode returns the document of a run as JSON. It returns an error for a number that JSON can't represent.
func Encode(run Run) ([]byte, error) {
	run.Format = Format
	return encode(run, "run", run.Name)
}

// EncodeSuite returns the document of a suite as JSON, as Encode does.
func EncodeSuite(suite Suite) ([]byte, error) {
	suite.Format = Format
	variants := make([]Variant, 0, len(suite.Variants))
	for _, v := range suite.Variants {
		runs := make([]SuiteRun, 0, len(v.Runs))
		for _, r := range v.Runs {
			r.Run.Format = Format
			runs = append(runs, r)
		}
		v.Runs = runs
		variants = append(variants, v)
	}
	suite.Variants = variants
	return encode(suite, "suite", suite.Name)
}

func encode(document any, kind, name string) ([]byte, error) {
	out, err := json.Marshal(document)
	if err != nil {
		return nil, fmt.Errorf("write the results of the %s %s as JSON: %w", kind, name, err)
	}
	return append(out, '\n'), nil
}

// Decode decodes the document of a run: JSON, possibly gzipped. It refuses any other data or Format, and a suite.
func Decode(data []byte) (Run, error) {
	var run Run
	data, suite, err := open(data)
	if err != nil {
		return run, err
	}
	if suite {
		return run, errors.New("these are the results of a BenchmarkSuite, not of one run")
	}
	if err := json.Unmarshal(data, &run); err != nil {
		return Run{}, fmt.Errorf("read the results of a run: %w", err)
	}
	if err := check(run); err != nil {
		return Run{}, err
	}
	return run, nil
}

// DecodeSuite decodes the document of a suite in the same way.
func DecodeSuite(data []byte) (Suite, error) {
	var out Suite
	data, suite, err := open(data)
	if err != nil {
		return out, err
	}
	if !suite {
		return out, errors.New("these are the results of one run, not of a BenchmarkSuite")
	}
	if err := json.Unmarshal(data, &out); err != nil {
		return Suite{}, fmt.Errorf("read the results of a suite: %w", err)
	}
	for _, v := range out.Variants {
		for _, r := range v.Runs {
			if err := check(r.Run); err != nil {
				return Suite{}, fmt.Errorf("variant %s, run %s: %w", v.Name, r.Name, err)
			}
		}
	}
	return out, nil
}

// IsSuite is true for the document of a suite: JSON, possibly gzipped.
func IsSuite(data []byte) bool {
	_, suite, err := open(data)
	return err == nil && suite
}

// most bounds the unpacked size of a document, because a gzip of a few bytes can unpack to more than the memory.
const most = 256 << 20

// Unzip returns the content of gzip data, and other data unchanged.
func Unzip(data []byte) ([]byte, error) {
	if !bytes.HasPrefix(data, []byte{0x1f, 0x8b}) {
		return data, nil
	}
	reader, err := gzip.NewReader(bytes.NewReader(data))
	if err != nil {
		return nil, fmt.Errorf("unpack the results: %w", err)
	}
	out, err := io.ReadAll(io.LimitReader(reader, most+1))
	switch {
	case err != nil:
		return nil, fmt.Errorf("unpack the results: %w", err)
	case len(out) > most:
		return nil, fmt.Errorf("unpack the results: they are more than %d MiB", most>>20)
	}
	return out, nil
}

// Zip returns data as gzip. The result is deterministic.
func Zip(data []byte) ([]byte, error) {
	out := &bytes.Buffer{}
	writer := gzip.NewWriter(out)
	if _, err := writer.Write(data); err != nil {
		return nil, fmt.Errorf("pack the results: %w", err)
	}
	if err := writer.Close(); err != nil {
		return nil, fmt.Errorf("pack the results: %w", err)
	}
	return out.Bytes(), nil
}

// open unpacks a document and determines its kind.
func open(data []byte) (text []byte, suite bool, err error) {
	if data, err = Unzip(data); err != nil {
		return nil, false, err
	}
	var is struct {
		Format   string          `json:"format"`
		Variants json.RawMessage `json:"variants"`
		Points   json.RawMessage `json:"points"`
	}
	if err := json.Unmarshal(data, &is); err != nil {
		return nil, false, fmt.Errorf("these are no results of a benchmark: %w", err)
	}
	switch {
	case is.Format == "":
		return nil, false, errors.New("these are no results of a benchmark: there is no format in them")
	case is.Format != Format:
		return nil, false, fmt.Errorf("the results are of format %q; this version reads %q: use the version that wrote them", is.Format, Format)
	case is.Variants != nil && is.Points != nil:
		return nil, false, errors.New("these are no results of a benchmark: there are both variants and points in them")
	}
	return data, is.Variants != nil, nil
}

// check refuses a run that readers can't process.
func check(run Run) error {
	if run.Format != Format {
		return fmt.Errorf("the results are of format %q; this version reads %q: use the version that wrote them", run.Format, Format)
	}
	seen := map[int]bool{}
	for _, p := range run.Points {
		if p.Index < 0 || seen[p.Index] {
			return fmt.Errorf("the results of %s have point %d twice, or none of that number can be", run.Name, p.Index)
		}
		seen[p.Index] = true
	}
	return nil
}
