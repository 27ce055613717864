package results

import (
	"fmt"
	"slices"
	"strings"
)

// File names of results, which are the keys of a ConfigMap. An export contains them unpacked, without ".gz".
const (
	// FileJSON contains a Run or a Suite.
	FileJSON = "results.json.gz"
	// FileCSV contains CSV or SuiteCSV. FileCSVPacked is its gzipped form, which is used if it would be too large.
	FileCSV       = "results.csv"
	FileCSVPacked = "results.csv.gz"
	// FileSamples contains SamplesCSV or SuiteSamplesCSV.
	FileSamples = "samples.csv.gz"
)

// ConfigMapOfRun is the name of the ConfigMap with the complete results of a BenchmarkRun.
func ConfigMapOfRun(run string) string { return run + "-results" }

// ConfigMapOfSuite is the name of the ConfigMap of a BenchmarkSuite, which never equals that of a run.
func ConfigMapOfSuite(suite string) string { return suite + "-suite" }

// Packed holds the files of a ConfigMap.
type Packed struct {
	// Files holds the files by name (FileJSON and so on), for binaryData. FileJSON is always there.
	Files map[string][]byte
	// Note describes what was left out because of the limit; empty if nothing was.
	Note string
}

// Pack returns the files of a run's ConfigMap, with at most limit bytes in total. Parts that don't fit are left out in this order: the CSV
// of samples (which are also in the JSON), the telemetry of attempts, their samples, the CSV, the attempts. It returns an error if even the
// rest does not fit. A ConfigMap can hold 1 MiB, including names and labels.
func Pack(run Run, limit int) (Packed, error) {
	run = detached(run)
	return pack(limit, []*Run{&run}, writers{
		json:    func() ([]byte, error) { return Encode(run) },
		csv:     func() ([]byte, error) { return CSV(run) },
		samples: func() ([]byte, error) { return SamplesCSV(run) },
	})
}

// PackSuite is Pack for a suite.
func PackSuite(suite Suite, limit int) (Packed, error) {
	var runs []*Run
	suite.Variants = slices.Clone(suite.Variants)
	for i := range suite.Variants {
		v := &suite.Variants[i]
		v.Runs = slices.Clone(v.Runs)
		for j := range v.Runs {
			v.Runs[j].Run = detached(v.Runs[j].Run)
			runs = append(runs, &v.Runs[j].Run)
		}
	}
	return pack(limit, runs, writers{
		json:    func() ([]byte, error) { return EncodeSuite(suite) },
		csv:     func() ([]byte, error) { return SuiteCSV(suite) },
		samples: func() ([]byte, error) { return SuiteSamplesCSV(suite) },
	})
}

// detached returns a copy of a run whose attempts can be changed.
func detached(run Run) Run {
	run.Points = slices.Clone(run.Points)
	for i := range run.Points {
		run.Points[i].Attempts = slices.Clone(run.Points[i].Attempts)
	}
	return run
}

// writers create the files of a document in its current state.
type writers struct {
	json, csv, samples func() ([]byte, error)
}

// zipped returns the gzipped output of a writer.
func zipped(write func() ([]byte, error)) ([]byte, error) {
	data, err := write()
	if err != nil {
		return nil, err
	}
	return Zip(data)
}

// pack leaves out one part after the other until the files fit.
func pack(limit int, runs []*Run, write writers) (Packed, error) {
	document, err := zipped(write.json)
	if err != nil {
		return Packed{}, err
	}
	csv, err := write.csv()
	if err != nil {
		return Packed{}, err
	}
	packedCSV, err := Zip(csv)
	if err != nil {
		return Packed{}, err
	}
	samples, err := zipped(write.samples)
	if err != nil {
		return Packed{}, err
	}
	var left []string
	fits := func(files map[string][]byte) (Packed, bool) {
		size := 0
		for name, data := range files {
			size += len(name) + len(data)
		}
		p := Packed{Files: files}
		if len(left) > 0 {
			p.Note = fmt.Sprintf("left out, because the ConfigMap would have become larger than %d bytes: %s", limit, strings.Join(left, ", "))
		}
		return p, size <= limit
	}
	if p, fit := fits(map[string][]byte{FileJSON: document, FileCSV: csv, FileSamples: samples}); fit {
		return p, nil
	}
	if p, fit := fits(map[string][]byte{FileJSON: document, FileCSVPacked: packedCSV, FileSamples: samples}); fit {
		return p, nil
	}
	left = append(left, "samples.csv")
	if p, fit := fits(map[string][]byte{FileJSON: document, FileCSVPacked: packedCSV}); fit {
		return p, nil
	}
	drop := func(name string, from func(*Point)) error {
		for _, run := range runs {
			for i := range run.Points {
				from(&run.Points[i])
			}
		}
		left = append(left, name)
		document, err = zipped(write.json)
		return err
	}
	for _, step := range []struct {
		name string
		from func(*Point)
	}{
		{"the telemetry of attempts", func(p *Point) {
			for i := range p.Attempts {
				p.Attempts[i].Telemetry = nil
			}
		}},
		{"the samples of attempts", func(p *Point) {
			for i := range p.Attempts {
				p.Attempts[i].Samples = nil
			}
		}},
	} {
		if err := drop(step.name, step.from); err != nil {
			return Packed{}, err
		}
		if p, fit := fits(map[string][]byte{FileJSON: document, FileCSVPacked: packedCSV}); fit {
			return p, nil
		}
	}
	left = append(left, "results.csv")
	if p, fit := fits(map[string][]byte{FileJSON: document}); fit {
		return p, nil
	}
	if err := drop("the attempts", func(p *Point) { p.Attempts = nil }); err != nil {
		return Packed{}, err
	}
	if p, fit := fits(map[string][]byte{FileJSON: document}); fit {
		return p, nil
	}
	return Packed{}, fmt.Errorf("the results need %d bytes even without attempts, and %d are allowed; spread the sweep over several runs",
		len(document), limit)
}
