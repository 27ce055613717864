package fio

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"regexp"
	"strconv"
	"strings"

	"parallelfs.dev/operator/api/v1alpha1"
	"parallelfs.dev/operator/benchmarks"
)

// Units in fio's JSON: bw is in KiB/s, clat_ns in nanoseconds.
const (
	bandwidth   = "KiB/s"
	operations  = "IOPS"
	nanoseconds = "ns"
)

// p99 is the key of the reported percentile.
const p99 = "99.000000"

// maxValues bounds a report: a group of jobs has about 400 values, and about 10000 with histograms (json+). maxJobs bounds the number of
// jobs.
const maxValues, maxJobs = 1 << 17, 512

// document holds the parsed part of fio's JSON (stat.c of 2.1 to 3.42). client_stats holds the jobs of a fio that ran on several hosts.
type document struct {
	Version string
	Jobs    []job
	Clients []job
}

type job struct {
	Name    string            `json:"jobname"`
	Host    string            `json:"hostname"`
	Error   *int              `json:"error"`
	Options map[string]string `json:"job options"`
	Read    *direction        `json:"read"`
	Write   *direction        `json:"write"`
	Trim    *direction        `json:"trim"`
	Mixed   *direction        `json:"mixed"`
}

type direction struct {
	// Bytes is in KiB before version 3.0, which has no KBytes.
	Bytes   int64    `json:"io_bytes"`
	KBytes  *int64   `json:"io_kbytes"`
	BW      *float64 `json:"bw"`
	BWBytes *float64 `json:"bw_bytes"`
	IOPS    *float64 `json:"iops"`
	Runtime int64    `json:"runtime"` // in ms
	IOs     int64    `json:"total_ios"`
	Short   int64    `json:"short_ios"`
	Dropped int64    `json:"drop_ios"`
	Clat    latency  `json:"clat_ns"`
	Slat    latency  `json:"slat_ns"`
	Lat     latency  `json:"lat_ns"`
	// Before version 3.0 these are in µs.
	OldClat latency `json:"clat"`
	OldSlat latency `json:"slat"`
	OldLat  latency `json:"lat"`
}

type latency struct {
	Min         float64            `json:"min"`
	Max         float64            `json:"max"`
	Mean        *float64           `json:"mean"`
	StdDev      float64            `json:"stddev"`
	N           int64              `json:"N"`
	Percentiles map[string]float64 `json:"percentile"`
}

// decode decodes the required members, one job after the other, and returns the end of the document.
func decode(text []byte) (doc document, end int64, err error) {
	decoder := json.NewDecoder(bytes.NewReader(text))
	if _, err = decoder.Token(); err != nil {
		return doc, 0, err //nolint:wrapcheck // the caller adds the name
	}
	for decoder.More() {
		key, err := decoder.Token()
		if err != nil {
			return doc, 0, err //nolint:wrapcheck // as above
		}
		switch key {
		case "fio version":
			err = decoder.Decode(&doc.Version)
		case "jobs":
			doc.Jobs, err = jobs(decoder)
		case "client_stats":
			doc.Clients, err = jobs(decoder)
		default:
			err = decoder.Decode(new(json.RawMessage))
		}
		if err != nil {
			return doc, 0, err //nolint:wrapcheck // as above
		}
	}
	_, err = decoder.Token()
	return doc, decoder.InputOffset(), err
}

func jobs(decoder *json.Decoder) ([]job, error) {
	if token, err := decoder.Token(); err != nil || token != json.Delim('[') {
		return nil, errors.Join(err, errors.New("its jobs are no list"))
	}
	var out []job
	for decoder.More() {
		if len(out) == maxJobs {
			return nil, fmt.Errorf("it has more than %d jobs", maxJobs)
		}
		var j job
		if err := decoder.Decode(&j); err != nil {
			return nil, err //nolint:wrapcheck // the caller adds the name
		}
		out = append(out, j)
	}
	_, err := decoder.Token()
	return out, err //nolint:wrapcheck // as above
}

// Parse parses the report of each client's fio. For several clients, bandwidth and IOPS are the total divided by the longest time. The sum
// of their rates would exceed the filesystem's rate if the clients end at different times. The mean latency is weighted by the number of
// reads or writes of each client. Percentiles can't be combined, so the highest is used.
func (Tool) Parse(spec *v1alpha1.BenchmarkRunSpec, point benchmarks.Point, _ int, output []byte) (benchmarks.Report, error) {
	s, err := check(spec, point)
	if err != nil {
		return benchmarks.Report{}, err
	}
	outputs := [][]byte{output}
	if s.clients > 1 {
		if outputs, err = benchmarks.SplitRanks(output, int(s.clients)); err != nil {
			return benchmarks.Report{}, err
		}
	}
	var version string
	var skipped benchmarks.Remarks
	var reads, writes []direction
	for i, text := range outputs {
		doc, remarks, err := read(text)
		skipped.Join(remarks)
		if err == nil {
			err = s.verify(doc, options(spec).RampSeconds > 0)
		}
		switch {
		case err != nil && s.clients > 1:
			return benchmarks.Report{}, fmt.Errorf("client %d: %w", i, err)
		case err != nil:
			return benchmarks.Report{}, err
		case version != "" && version != doc.Version:
			return benchmarks.Report{}, fmt.Errorf("client %d ran %s and another %s; make their images the same", i, doc.Version, version)
		}
		version = doc.Version
		reads, writes = append(reads, *doc.Jobs[0].Read), append(writes, *doc.Jobs[0].Write)
	}
	var samples []benchmarks.Sample
	if s.reads() {
		samples = append(samples, combine("read", reads)...)
	}
	if s.writes() {
		samples = append(samples, combine("write", writes)...)
	}
	for _, sample := range samples {
		if math.IsNaN(sample.Value) || math.IsInf(sample.Value, 0) {
			return benchmarks.Report{}, fmt.Errorf("%s is no finite number", sample.Name)
		}
	}
	return benchmarks.Report{Version: version, Samples: samples, Remarks: skipped}, nil
}

// combine combines the results of several clients.
func combine(name string, clients []direction) []benchmarks.Sample {
	var kib, ios, ns, count, worst float64
	var longest int64
	for _, d := range clients {
		kib += float64(d.Bytes) / 1024
		ios += float64(d.IOs)
		longest = max(longest, d.Runtime)
		ns += *d.Clat.Mean * float64(d.Clat.N)
		count += float64(d.Clat.N)
		worst = max(worst, d.Clat.Percentiles[p99])
	}
	seconds := float64(longest) / 1000
	bw, iops := kib/seconds, ios/seconds
	if len(clients) == 1 {
		bw, iops = *clients[0].BW, *clients[0].IOPS // as fio prints them
	}
	return []benchmarks.Sample{
		{Name: name + " bw", Unit: bandwidth, Value: bw},
		{Name: name + " iops", Unit: operations, Value: iops},
		{Name: name + " clat mean", Unit: nanoseconds, Value: ns / count},
		{Name: name + " clat p99", Unit: nanoseconds, Value: worst},
	}
}

// read finds the report in fio's output: notes may precede it, and the report in normal form or lines of a shell may follow. A fio that was
// ended from outside reports this and still prints a report.
func read(text []byte) (document, benchmarks.Remarks, error) {
	var doc document
	var skipped benchmarks.Remarks
	if err := benchmarks.BoundLines(text); err != nil {
		return doc, skipped, err //nolint:wrapcheck // it is a sentence about the output
	}
	number, offset, start := 0, 0, -1
	for line := range bytes.Lines(text) {
		number++
		said := strings.TrimSpace(string(line))
		if said == "{" {
			start = offset
			break
		}
		if fatal(said) {
			return doc, skipped, fmt.Errorf("line %d: fio says %q", number, benchmarks.Short(said))
		}
		if said != "" {
			skipped.Add(number, said)
		}
		offset += len(line)
	}
	if start < 0 {
		return doc, skipped, errors.New("there is no report of fio: no line begins its JSON; run fio with --output-format=json")
	}
	if _, err := benchmarks.BoundJSON(text[start:], maxValues); err != nil {
		return doc, skipped, fmt.Errorf("the report, which begins in line %d: %w", number, err)
	}
	doc, end, err := decode(text[start:])
	if err != nil {
		if errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, io.EOF) {
			return doc, skipped, fmt.Errorf("the report, which begins in line %d, is cut off", number)
		}
		return doc, skipped, fmt.Errorf("the report, which begins in line %d, is not the JSON of fio: %w", number, benchmarks.ShortError(err))
	}
	behind := text[start+int(end):]
	number += bytes.Count(text[start:start+int(end)], []byte("\n"))
	if !bytes.HasPrefix(behind, []byte("\n")) && !bytes.HasPrefix(behind, []byte("\r\n")) && len(bytes.TrimSpace(behind)) > 0 {
		return doc, skipped, fmt.Errorf("line %d: something stands behind the report", number)
	}
	for line := range strings.Lines(string(behind)) {
		switch said := strings.TrimSpace(line); {
		case said == "{", strings.Contains(said, `"fio version"`):
			return doc, skipped, fmt.Errorf("line %d: a second report of fio begins; keep one report in each file", number)
		case fatal(said):
			return doc, skipped, fmt.Errorf("line %d: fio says %q behind its report", number, benchmarks.Short(said))
		case said != "":
			skipped.Add(number, said)
		}
		number++
	}
	return doc, skipped, nil
}

// failedJob matches a failed job in the report in normal form.
var failedJob = regexp.MustCompile(`\berr= *[1-9]`)

// fatal is true for a line outside of the report that makes its numbers incomplete.
func fatal(said string) bool {
	if failedJob.MatchString(said) {
		return true
	}
	lower := strings.ToLower(said)
	// Lack of fallocate(2) is no error: fio writes the file instead.
	if strings.Contains(lower, "fallocate") {
		return false
	}
	for _, word := range []string{
		"terminat", "killed", "signal", "error", "fail", "abort", "is not a directory", "bad option",
		"unrecognized",
	} {
		if strings.Contains(lower, word) {
			return true
		}
	}
	return false
}

// verify refuses a report of another run than the point requires, or of an incomplete run.
func (s settings) verify(doc document, ramp bool) error {
	if !strings.HasPrefix(doc.Version, "fio-") {
		return fmt.Errorf("the report says that it is of version %q, which is none of fio", benchmarks.Short(doc.Version))
	}
	if len(doc.Jobs) != 1 {
		return fmt.Errorf("the report has %d jobs instead of one group", len(doc.Jobs))
	}
	j := doc.Jobs[0]
	switch {
	case j.Error == nil || j.Read == nil || j.Write == nil:
		return errors.New("the report lacks error, read or write of the job")
	case *j.Error != 0:
		return fmt.Errorf("fio ended with error %d (errno); see what it said before its report", *j.Error)
	case j.Name != jobName:
		return fmt.Errorf("the report is of the job %q instead of %q", benchmarks.Short(j.Name), jobName)
	}
	for name, want := range map[string]string{
		"rw": string(s.mode), "bs": strconv.FormatInt(s.block, 10), "size": strconv.FormatInt(s.file, 10),
		"numjobs": strconv.FormatInt(s.jobs, 10),
	} {
		if got := j.Options[name]; got != want {
			return fmt.Errorf("fio ran with %s=%q, but the point asked for %s", name, benchmarks.Short(got), want)
		}
	}
	for name, d := range map[string]*direction{"read": j.Read, "write": j.Write} {
		if wanted := name == "read" && s.reads() || name == "write" && s.writes(); wanted {
			if err := d.verify(name); err != nil {
				return err
			}
		}
	}
	done := float64(j.Read.Bytes) + float64(j.Write.Bytes)
	if want := float64(s.jobs) * float64(s.file); s.seconds == 0 && !ramp && done != want {
		return fmt.Errorf("fio moved %.0f bytes of %.0f: it was ended early", done, want)
	}
	// fio measures in milliseconds and ends slightly early or late.
	if longest := max(j.Read.Runtime, j.Write.Runtime); s.seconds > 0 && longest < s.seconds*1000*9/10 {
		return fmt.Errorf("fio measured %d ms instead of %d s: it was ended early", longest, s.seconds)
	}
	return nil
}

func (d *direction) verify(name string) error {
	worst, there := d.Clat.Percentiles[p99]
	switch {
	case d.BW == nil || d.IOPS == nil || d.Clat.Mean == nil:
		return fmt.Errorf("the report lacks bw, iops or clat_ns of %s", name)
	case d.Bytes <= 0 || d.IOs <= 0 || d.Runtime <= 0 || d.Clat.N <= 0 || *d.BW <= 0 || *d.IOPS <= 0:
		return fmt.Errorf("nothing was measured of %s; make fio.fileSize or fio.runtimeSeconds larger", name)
	case d.Short != 0 || d.Dropped != 0:
		return fmt.Errorf("%d of %s were short and %d dropped", d.Short, name, d.Dropped)
	case !there:
		return fmt.Errorf("the report lacks the percentile %s of clat_ns of %s", p99, name)
	case *d.Clat.Mean < 0 || worst < 0:
		return fmt.Errorf("a latency of %s is less than 0", name)
	}
	return d.agree(name)
}
