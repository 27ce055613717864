package fio

import (
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"

	"parallelfs.dev/operator/benchmarks"
)

// microseconds is the unit of latencies before version 3.0.
const microseconds = "us"

// ParseSaved parses the report of any fio from 2.1 on, whatever its jobs are. With several jobs, sample names are prefixed with the job's
// name. Nothing is added up, because fio does that itself with group_reporting and then reports one job.
func (Tool) ParseSaved(output []byte) ([]benchmarks.Saved, error) {
	doc, skipped, err := read(output)
	if err != nil {
		return nil, err
	}
	if !strings.HasPrefix(doc.Version, "fio-") {
		return nil, fmt.Errorf("the report says that it is of version %q, which is none of fio", benchmarks.Short(doc.Version))
	}
	all := slices.Concat(doc.Jobs, doc.Clients)
	if len(all) == 0 {
		return nil, errors.New("the report has no jobs")
	}
	out := benchmarks.Saved{Report: benchmarks.Report{Version: doc.Version, Remarks: skipped}}
	names := map[string]int{}
	for i, j := range all {
		prefix := ""
		if len(all) > 1 {
			prefix = name(j, i)
			if names[prefix]++; names[prefix] > 1 {
				prefix = fmt.Sprintf("%s (%d)", prefix, names[prefix])
			}
			prefix += ": "
		}
		samples, err := j.samples(prefix)
		if err != nil {
			return nil, fmt.Errorf("job %d (%q): %w", i+1, benchmarks.Short(j.Name), err)
		}
		out.Samples = append(out.Samples, samples...)
	}
	if len(out.Samples) == 0 {
		return nil, errors.New("no job of the report has read or written anything")
	}
	return []benchmarks.Saved{out}, nil
}

// name returns the name of a job among several.
func name(j job, i int) string {
	switch {
	case j.Name == "":
		return fmt.Sprintf("job %d", i+1)
	case j.Host != "":
		return j.Name + " on " + j.Host
	}
	return j.Name
}

// samples returns the samples of the operations that a job has run.
func (j job) samples(prefix string) ([]benchmarks.Sample, error) {
	switch {
	case j.Error == nil:
		return nil, errors.New("the report does not say whether the job has ended well")
	case *j.Error != 0:
		return nil, fmt.Errorf("fio ended with error %d (errno); see what it said before its report", *j.Error)
	case j.Read == nil && j.Write == nil && j.Mixed == nil:
		return nil, errors.New("the report has neither read nor write of the job")
	}
	var out []benchmarks.Sample
	for _, part := range []struct {
		name string
		of   *direction
	}{{"read", j.Read}, {"write", j.Write}, {"trim", j.Trim}, {"mixed", j.Mixed}} {
		d := part.of
		if d == nil || d.empty() {
			continue
		}
		switch {
		case d.BW == nil || d.IOPS == nil:
			return nil, fmt.Errorf("the report lacks bw or iops of %s", part.name)
		case d.Runtime <= 0 || d.Bytes <= 0:
			return nil, fmt.Errorf("the report has a rate of %s, and no bytes or no time", part.name)
		case d.Short != 0 || d.Dropped != 0:
			return nil, fmt.Errorf("%d of %s were short and %d dropped", d.Short, part.name, d.Dropped)
		}
		if err := d.agree(part.name); err != nil {
			return nil, err
		}
		out = append(out,
			benchmarks.Sample{Name: prefix + part.name + " bw", Unit: bandwidth, Value: *d.BW},
			benchmarks.Sample{Name: prefix + part.name + " iops", Unit: operations, Value: *d.IOPS})
		clat, unit := d.Clat, nanoseconds
		if clat.Mean == nil {
			clat, unit = d.OldClat, microseconds
		}
		if clat.Mean != nil && clat.Max > 0 {
			out = append(out, benchmarks.Sample{Name: prefix + part.name + " clat mean", Unit: unit, Value: *clat.Mean})
			if worst, found := clat.Percentiles[p99]; found {
				out = append(out, benchmarks.Sample{Name: prefix + part.name + " clat p99", Unit: unit, Value: worst})
			}
		}
	}
	for _, sample := range out {
		if math.IsNaN(sample.Value) || math.IsInf(sample.Value, 0) || sample.Value < 0 {
			return nil, fmt.Errorf("%s is no number that can be", sample.Name)
		}
	}
	return out, nil
}

// empty is true for an operation that a job has not run.
func (d *direction) empty() bool {
	zero := func(v *float64) bool { return v == nil || *v == 0 }
	return d.Bytes == 0 && d.IOs == 0 && zero(d.BW) && zero(d.IOPS)
}

// agree compares related numbers of one direction: bytes and time with the bandwidth, reads or writes and time with the IOPS, and the
// latencies with each other.
func (d *direction) agree(name string) error {
	const kibi, milli, part = 1024, 1000, 1e-3
	seconds := float64(d.Runtime) / milli
	kib := float64(d.Bytes) / kibi
	if d.KBytes != nil && *d.KBytes != d.Bytes/kibi {
		return fmt.Errorf("io_bytes of %s is %d, and io_kbytes %d", name, d.Bytes, *d.KBytes)
	}
	old := d.KBytes == nil && d.Clat.Mean == nil
	if old && !benchmarks.Near(*d.BW, kib/seconds, 2, part) {
		kib = float64(d.Bytes) // before version 3.0, io_bytes is in KiB
	}
	share, apart := part, 1.0
	if d.KBytes != nil {
		share, apart = 1e-6, 0.01
	}
	if seconds > 0 && !benchmarks.Near(*d.BW, kib/seconds, 1.01, share) {
		return fmt.Errorf("%.0f KiB of %s in %d ms are not %.0f KiB/s", kib, name, d.Runtime, *d.BW)
	}
	if d.BWBytes != nil && !benchmarks.Near(*d.BWBytes/kibi, *d.BW, 1, 0) {
		return fmt.Errorf("bw_bytes of %s is %.0f, and bw %.0f KiB/s", name, *d.BWBytes, *d.BW)
	}
	if d.IOs > 0 && seconds > 0 && !benchmarks.Near(*d.IOPS, float64(d.IOs)/seconds, apart, share) {
		return fmt.Errorf("%d I/Os of %s in %d ms are not %.2f IOPS", d.IOs, name, d.Runtime, *d.IOPS)
	}
	for _, l := range []struct {
		name string
		of   latency
	}{
		{"clat_ns", d.Clat}, {"slat_ns", d.Slat}, {"lat_ns", d.Lat}, {"clat", d.OldClat}, {"slat", d.OldSlat}, {"lat", d.OldLat},
	} {
		if err := l.of.agree(l.name + " of " + name); err != nil {
			return err
		}
	}
	// Before version 3.0, all three are in whole µs.
	const near, coarse, fine = 2, 0.01, 0.001
	for i, all := range [][3]latency{{d.Slat, d.Clat, d.Lat}, {d.OldSlat, d.OldClat, d.OldLat}} {
		slat, clat, lat := all[0], all[1], all[2]
		if clat.Mean == nil || lat.Mean == nil || slat.Mean == nil || *lat.Mean == 0 || *clat.Mean == 0 || *slat.Mean == 0 {
			continue
		}
		share := fine
		if i > 0 {
			share = coarse
		}
		if !benchmarks.Near(*slat.Mean+*clat.Mean, *lat.Mean, near, share) {
			return fmt.Errorf("the mean latency of %s is %.2f, and that of its two parts %.2f and %.2f", name, *lat.Mean, *slat.Mean, *clat.Mean)
		}
	}
	return nil
}

// agree compares the figures of a latency. fio counts in classes that are up to 1/32 wide, so that a percentile may be slightly outside of
// the range of values.
func (l latency) agree(name string) error {
	if l.Mean == nil || l.Max == 0 {
		return nil
	}
	near := 1.0 + 1e-6*l.Max
	if benchmarks.Contradict(max(l.N, 0), l.Min, l.Max, *l.Mean, l.StdDev, near) && (l.N != 1 || l.Min != l.Max) {
		return fmt.Errorf("the figures of %s contradict each other: min %.0f, max %.0f, mean %.3f, stddev %.3f of %d", name, l.Min, l.Max, *l.Mean, l.StdDev, l.N)
	}
	const width, most = 1.0 / 16, 100
	keys := map[float64]float64{}
	for text, value := range l.Percentiles {
		key, err := strconv.ParseFloat(text, 64)
		if err != nil || key < 0 || key > most {
			return fmt.Errorf("%q is no percentile of %s", benchmarks.Short(text), name)
		}
		if key > 0 {
			keys[key] = value
		}
	}
	before := 0.0
	for _, key := range slices.Sorted(maps.Keys(keys)) {
		value := keys[key]
		if value < before || value < l.Min*(1-width)-1 || value > l.Max*(1+width)+1 {
			return fmt.Errorf("the percentile %v of %s is %.0f, which the figures around it contradict", key, name, value)
		}
		before = value
	}
	return nil
}
