package telemetry_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"

	"parallelfs.dev/operator/benchmarks/telemetry"
)

var start = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

func at(seconds float64) time.Time { return start.Add(time.Duration(seconds * float64(time.Second))) }

func summarize(from, to float64, samples ...telemetry.Sample) []telemetry.Summary {
	return telemetry.Summarize("oss1", slices.Values(samples), at(from), at(to))
}

// busy returns a sample of one disk that was busy for this many milliseconds since the node's boot.
func busy(seconds float64, milliseconds uint64) telemetry.Sample {
	return telemetry.Sample{Time: at(seconds), Disks: map[string]telemetry.Disk{"ssd0": {BusyMilliseconds: milliseconds}}}
}

// ran returns a sample of one daemon.
func ran(seconds, cpu float64, pid int) telemetry.Sample {
	return telemetry.Sample{Time: at(seconds), Daemons: map[string]telemetry.Daemon{"meta/0": {CPUSeconds: cpu, PID: pid}}}
}

func TestAllFiguresOfADisk(t *testing.T) {
	g := NewWithT(t)
	before := telemetry.Disk{Reads: 100, Writes: 10, ReadBytes: 1 << 20, WrittenBytes: 0, BusyMilliseconds: 50_000, QueueMilliseconds: 90_000}
	after := telemetry.Disk{Reads: 300, Writes: 50, ReadBytes: 5 << 20, WrittenBytes: 4096, BusyMilliseconds: 51_000, QueueMilliseconds: 98_000}
	found := summarize(0, 4,
		telemetry.Sample{Time: at(0), Disks: map[string]telemetry.Disk{"ssd0": before}},
		telemetry.Sample{Time: at(4), Disks: map[string]telemetry.Disk{"ssd0": after}})
	g.Expect(found).To(Equal([]telemetry.Summary{{
		Node: "oss1", Target: "ssd0", Seconds: 4, Samples: 1, Utilization: 0.25, MaxUtilization: 0.25, ReadIOPS: 50, WriteIOPS: 10,
		ReadBytesPerSecond: 1 << 20, WriteBytesPerSecond: 1024, Queue: 2,
	}}))
}

func TestWhichIntervalsCount(t *testing.T) {
	cases := map[string]struct {
		from, to float64
		samples  []telemetry.Sample
		// seconds is the counted time, busy the disk's utilization, and most that in the busiest interval; 0 seconds means that nothing counts.
		seconds, busy, most float64
	}{
		"every interval between the two moments counts": {
			to: 2, samples: []telemetry.Sample{busy(0, 0), busy(1, 100), busy(2, 600)}, seconds: 2, busy: 0.3, most: 0.5,
		},
		"what was before and after does not count": {
			from: 1, to: 2, samples: []telemetry.Sample{busy(0, 0), busy(1, 1000), busy(2, 1200), busy(3, 2200)}, seconds: 1, busy: 0.2, most: 0.2,
		},
		"of an interval at the edge, the part counts that lies inside": {
			from: 0.5, to: 2, samples: []telemetry.Sample{busy(0, 0), busy(1, 1000), busy(2, 1000)}, seconds: 1.5, busy: 1.0 / 3, most: 1,
		},
		"a point that is shorter than an interval gets its average": {
			from: 0.4, to: 0.6, samples: []telemetry.Sample{busy(0, 0), busy(1, 300)}, seconds: 0.2, busy: 0.3, most: 0.3,
		},
		"a counter that fell is another disk's, and the interval does not count": {
			to: 3, samples: []telemetry.Sample{busy(0, 5000), busy(1, 5100), busy(2, 7), busy(3, 307)}, seconds: 2, busy: 0.2, most: 0.3,
		},
		"a long gap counts with its average": {
			to: 11, samples: []telemetry.Sample{busy(0, 0), busy(1, 1000), busy(11, 2000)}, seconds: 11, busy: 2.0 / 11, most: 1,
		},
		"an interval without the disk at one of its ends does not count": {
			to: 3, samples: []telemetry.Sample{busy(0, 0), busy(1, 400), {Time: at(2)}, busy(3, 900)}, seconds: 1, busy: 0.4, most: 0.4,
		},
		"a disk is busy for the whole time at most, whatever the kernel counts": {
			to: 1, samples: []telemetry.Sample{busy(0, 0), busy(1, 1004)}, seconds: 1, busy: 1, most: 1,
		},
		"two samples of one moment are no interval": {to: 1, samples: []telemetry.Sample{busy(0, 0), busy(0, 10)}},
		"one sample says nothing":                   {to: 1, samples: []telemetry.Sample{busy(0.5, 100)}},
		"no sample says nothing":                    {to: 1},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			found := summarize(c.from, c.to, c.samples...)
			if c.seconds == 0 {
				g.Expect(found).To(BeEmpty())
				return
			}
			g.Expect(found).To(HaveLen(1))
			g.Expect(found[0].Seconds).To(BeNumerically("~", c.seconds, 1e-9))
			g.Expect(found[0].Utilization).To(BeNumerically("~", c.busy, 1e-9))
			g.Expect(found[0].MaxUtilization).To(BeNumerically("~", c.most, 1e-9))
		})
	}
}

func TestCPUOfADaemon(t *testing.T) {
	cases := map[string]struct {
		samples             []telemetry.Sample
		seconds, cpus, most float64
	}{
		"CPU time over time is the number of CPUs": {
			samples: []telemetry.Sample{ran(0, 10, 7), ran(1, 11, 7), ran(2, 15, 7)}, seconds: 2, cpus: 2.5, most: 4,
		},
		"a restarted daemon counts from then on": {
			samples: []telemetry.Sample{ran(0, 10, 7), ran(1, 11, 7), ran(2, 30, 8), ran(3, 30.5, 8)}, seconds: 2, cpus: 0.75, most: 1,
		},
		"a process of it that ended takes its time along, and nothing is negative": {
			samples: []telemetry.Sample{ran(0, 10, 7), ran(1, 4, 7), ran(2, 5, 7)}, seconds: 1, cpus: 1, most: 1,
		},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			found := summarize(0, 10, c.samples...)
			g.Expect(found).To(HaveLen(1))
			g.Expect(found[0]).To(And(HaveField("Daemon", "meta/0"), HaveField("Target", ""), HaveField("Node", "oss1")))
			g.Expect(found[0].Seconds).To(BeNumerically("~", c.seconds, 1e-9))
			g.Expect(found[0].CPUs).To(BeNumerically("~", c.cpus, 1e-9))
			g.Expect(found[0].MaxCPUs).To(BeNumerically("~", c.most, 1e-9))
		})
	}
}

func TestShort(t *testing.T) {
	quiet := telemetry.Summary{Node: "oss1", Target: "scratch-ssd-1", Seconds: 10, Utilization: 0.1, MaxUtilization: 0.2, ReadIOPS: 10, ReadBytesPerSecond: 1 << 20}
	loud := telemetry.Summary{Node: "oss2", Target: "scratch-ssd-2", Seconds: 10, Utilization: 0.37, MaxUtilization: 0.951, Queue: 1.25, WriteIOPS: 99.6, WriteBytesPerSecond: 3 << 20}
	later := telemetry.Summary{Node: "oss1", Target: "scratch-ssd-1", Seconds: 30, Utilization: 0.5, MaxUtilization: 0.6, Queue: 2}
	daemon := telemetry.Summary{Node: "mds1", Daemon: "meta/0", Seconds: 10, CPUs: 1.84, MaxCPUs: 3.9}
	lazy := telemetry.Summary{Node: "mds1", Daemon: "meta/1", Seconds: 10, CPUs: 0.2, MaxCPUs: 4.5}
	silent := telemetry.Summary{Node: "oss3", Problem: "its agent does not answer"}
	const together = "2 targets together: 1MiB/s and 10 IOPS read, 3MiB/s and 100 IOPS written, 24 % on average"
	cases := map[string]struct {
		summaries []telemetry.Summary
		most      int
		want      []string
	}{
		"the busiest target and daemon are named, then what all did, then who is silent": {
			summaries: []telemetry.Summary{quiet, loud, daemon, lazy, silent}, most: 8,
			want: []string{
				"busiest target scratch-ssd-2 on oss2 37 % (at most 95 %), queue 1.2", "busiest daemon meta/0 on mds1 1.8 CPUs (at most 3.9)", together,
				"nothing is known of oss3 (its agent does not answer)",
			},
		},
		"repetitions count by how long they were": {
			summaries: []telemetry.Summary{quiet, loud, later}, most: 1,
			want: []string{"busiest target scratch-ssd-1 on oss1 40 % (at most 60 %), queue 1.5"},
		},
		"one silent node of several repetitions is named once": {
			summaries: []telemetry.Summary{silent, silent}, most: 8, want: []string{"nothing is known of oss3 (its agent does not answer)"},
		},
		"one target needs no sum":          {summaries: []telemetry.Summary{quiet}, most: 8, want: []string{"busiest target scratch-ssd-1 on oss1 10 % (at most 20 %), queue 0.0"}},
		"nothing is said without a figure": {most: 8},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			NewWithT(t).Expect(telemetry.Short(c.summaries, c.most)).To(Equal(c.want))
		})
	}
}

func TestASentenceFitsTheStatusWhateverTheNames(t *testing.T) {
	g := NewWithT(t)
	long := strings.Repeat("x", 250)
	for _, s := range telemetry.Short([]telemetry.Summary{{Node: long, Target: long}, {Node: long, Daemon: long}, {Node: long, Problem: long}}, 8) {
		g.Expect(len(s)).To(BeNumerically("<=", 256))
	}
}
