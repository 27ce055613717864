package telemetry

import (
	"cmp"
	"iter"
	"maps"
	"slices"
	"time"
)

// Summarize returns the activity of each disk and daemon in the samples between two times, sorted: disks, then daemons, by name. samples
// must be in the order of time. An interval between two samples counts by its part between the two times. For a disk or daemon it does not
// count if one of the two samples lacks it, one of its counters decreased, or the daemon was restarted. The summaries have the names in the
// samples.
func Summarize(node string, samples iter.Seq[Sample], from, to time.Time) []Summary {
	disks, daemons := map[string]*sum{}, map[string]*sum{}
	var last *Sample
	for s := range samples {
		if last != nil {
			part := between(last.Time, s.Time, from, to)
			for name, now := range s.Disks {
				if before, ok := last.Disks[name]; ok && part.seconds > 0 {
					of(disks, name).disk(before, now, part)
				}
			}
			for name, now := range s.Daemons {
				if before, ok := last.Daemons[name]; ok && part.seconds > 0 {
					of(daemons, name).daemon(before, now, part)
				}
			}
		}
		last = &s
	}
	var out []Summary
	for _, name := range slices.Sorted(maps.Keys(disks)) {
		if d := disks[name]; d.intervals > 0 {
			out = append(out, d.summary(Summary{Node: node, Target: name}))
		}
	}
	for _, name := range slices.Sorted(maps.Keys(daemons)) {
		if d := daemons[name]; d.intervals > 0 {
			out = append(out, d.summary(Summary{Node: node, Daemon: name}))
		}
	}
	return out
}

// interval is the counted part of the time between two samples: its seconds, its share of the time between the samples, and that time in
// seconds.
type interval struct{ seconds, share, whole float64 }

func between(a, b, from, to time.Time) interval {
	whole := b.Sub(a).Seconds()
	if a.Before(from) {
		a = from
	}
	if b.After(to) {
		b = to
	}
	seconds := b.Sub(a).Seconds()
	if whole <= 0 || seconds <= 0 {
		return interval{}
	}
	return interval{seconds: seconds, share: seconds / whole, whole: whole}
}

// sum is the activity of a disk or daemon in the counted intervals.
type sum struct {
	intervals                                                int
	seconds                                                  float64
	busy, queue, reads, writes, readBytes, writtenBytes, cpu float64
	mostBusy, mostCPUs                                       float64
}

func of(all map[string]*sum, name string) *sum {
	if all[name] == nil {
		all[name] = &sum{}
	}
	return all[name]
}

func (s *sum) disk(before, now Disk, part interval) {
	counters := [][2]uint64{
		{before.BusyMilliseconds, now.BusyMilliseconds}, {before.QueueMilliseconds, now.QueueMilliseconds}, {before.Reads, now.Reads},
		{before.Writes, now.Writes}, {before.ReadBytes, now.ReadBytes}, {before.WrittenBytes, now.WrittenBytes},
	}
	if slices.ContainsFunc(counters, func(c [2]uint64) bool { return c[1] < c[0] }) {
		return // another device, or a counter that was reset
	}
	for i, into := range []*float64{&s.busy, &s.queue, &s.reads, &s.writes, &s.readBytes, &s.writtenBytes} {
		*into += float64(counters[i][1]-counters[i][0]) * part.share
	}
	s.count(part)
	const milli = 1000
	s.mostBusy = max(s.mostBusy, min(1, float64(now.BusyMilliseconds-before.BusyMilliseconds)/milli/part.whole))
}

func (s *sum) daemon(before, now Daemon, part interval) {
	if now.PID != before.PID || now.CPUSeconds < before.CPUSeconds {
		return // it was restarted, or one of its processes has ended
	}
	took := now.CPUSeconds - before.CPUSeconds
	s.cpu += took * part.share
	s.count(part)
	s.mostCPUs = max(s.mostCPUs, took/part.whole)
}

func (s *sum) count(part interval) {
	s.intervals++
	s.seconds += part.seconds
}

func (s *sum) summary(of Summary) Summary {
	const milli = 1000
	of.Seconds, of.Samples = s.seconds, s.intervals
	// The kernel counts in ticks, so a disk may appear busy for slightly longer than the time.
	of.Utilization, of.MaxUtilization = min(1, s.busy/milli/s.seconds), s.mostBusy
	of.ReadIOPS, of.WriteIOPS = s.reads/s.seconds, s.writes/s.seconds
	of.ReadBytesPerSecond, of.WriteBytesPerSecond = s.readBytes/s.seconds, s.writtenBytes/s.seconds
	of.Queue = s.queue / milli / s.seconds
	of.CPUs, of.MaxCPUs = s.cpu/s.seconds, s.mostCPUs
	return of
}

// merged merges the summaries of each disk or daemon, with averages weighted by seconds. They are in the order of their first occurrence.
func merged(all []Summary) []Summary {
	type key struct{ node, target, daemon, problem string }
	at := map[key]int{}
	var out []Summary
	for _, s := range all {
		k := key{s.Node, s.Target, s.Daemon, s.Problem}
		i, there := at[k]
		if !there {
			at[k] = len(out)
			out = append(out, s)
			continue
		}
		out[i] = out[i].with(s)
	}
	return out
}

func (s Summary) with(other Summary) Summary {
	both := s
	both.Count = max(s.Count, other.Count)
	both.Seconds, both.Samples = s.Seconds+other.Seconds, s.Samples+other.Samples
	average := func(a, b float64) float64 {
		if both.Seconds == 0 {
			return 0
		}
		return (a*s.Seconds + b*other.Seconds) / both.Seconds
	}
	both.Utilization, both.MaxUtilization = average(s.Utilization, other.Utilization), max(s.MaxUtilization, other.MaxUtilization)
	both.ReadIOPS, both.WriteIOPS = average(s.ReadIOPS, other.ReadIOPS), average(s.WriteIOPS, other.WriteIOPS)
	both.ReadBytesPerSecond = average(s.ReadBytesPerSecond, other.ReadBytesPerSecond)
	both.WriteBytesPerSecond = average(s.WriteBytesPerSecond, other.WriteBytesPerSecond)
	both.Queue = average(s.Queue, other.Queue)
	both.CPUs, both.MaxCPUs = average(s.CPUs, other.CPUs), max(s.MaxCPUs, other.MaxCPUs)
	return both
}

// busiest returns the one with the highest value, or the first of several; nil if there are none.
func busiest(all []Summary, value func(Summary) float64) *Summary {
	if len(all) == 0 {
		return nil
	}
	most := slices.MaxFunc(all, func(a, b Summary) int { return cmp.Compare(value(a), value(b)) })
	return &most
}
