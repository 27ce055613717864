package load_test

import (
	"strings"
	"testing"

	. "github.com/onsi/gomega"

	"parallelfs.dev/operator/benchmarks/telemetry"
	"parallelfs.dev/operator/internal/load"
)

func disk(node, target string, utilization, bytes float64) telemetry.Summary {
	return telemetry.Summary{Node: node, Target: target, Utilization: utilization, MaxUtilization: 1, Queue: 4, WriteBytesPerSecond: bytes}
}

func daemon(name string, cpus float64) telemetry.Summary {
	return telemetry.Summary{Node: "n1", Daemon: name, CPUs: cpus, MaxCPUs: cpus}
}

func TestWhatLimitsAFileSystemIsItsMostUsedThing(t *testing.T) {
	const mega = 1 << 20
	for name, c := range map[string]struct {
		summaries []telemetry.Summary
		limit     load.Kind
		says      string
	}{
		"a disk that is always busy": {
			[]telemetry.Summary{disk("n1", "a", 0.93, mega), disk("n2", "b", 0.2, mega), daemon("chunkserver/hdd", 0.5)},
			load.Disk, "a on node n1 is used by 93 %: busy 93 % of the time (at most 100 %), queue 4.0, reads 0B/s, writes 1MiB/s. Used by 80 % or more: 1 of 2 of this kind",
		},
		"a link that is full": {
			[]telemetry.Summary{disk("n1", "a", 0.5, 50*mega), disk("n1", "b", 0.5, 45*mega)},
			load.Network, "link on node n1 is used by 95 %",
		},
		"writes and reads use the two directions of a link": {
			[]telemetry.Summary{disk("n1", "a", 0.5, 60*mega), {Node: "n1", Target: "b", ReadBytesPerSecond: 60 * mega}},
			"", "the servers have reserves: nothing of them is used by more than 60 %",
		},
		"the CPUs of a node": {
			[]telemetry.Summary{daemon("chunkserver/hdd", 1.8), daemon("chunkserver/ssd", 1.9), disk("n1", "a", 0.3, mega)},
			load.CPU, "all daemons on node n1 is used by 92 %",
		},
		"the one thread of a master": {
			[]telemetry.Summary{daemon("master", 0.97), disk("n1", "a", 0.3, mega)},
			load.Metadata, "master on node n1 is used by 97 %: uses 1.0 CPUs (at most 1.0) of the 1 that its thread can use",
		},
		"a disk of the metadata": {
			[]telemetry.Summary{disk("n1", "meta", 0.9, mega), disk("n1", "a", 0.3, mega)}, load.Metadata, "meta on node n1",
		},
		"nothing":    {[]telemetry.Summary{disk("n1", "a", 0.79, mega)}, "", "the servers have reserves: nothing of them is used by more than 79 %"},
		"no figures": {[]telemetry.Summary{{Node: "n1", Problem: "its agent does not answer"}}, "", "no agent has figures"},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			got := load.Judge(load.Input{
				Summaries: c.summaries, Metadata: map[string]bool{"meta": true},
				Nodes:      map[string]load.Node{"n1": {CPUs: 4, BytesPerSecond: 100 * mega}, "n2": {}},
				IsMetadata: func(daemon string) bool { return strings.HasPrefix(daemon, "m") },
				OneThread:  func(daemon string) bool { return daemon == "master" },
			})
			g.Expect(got.Limit).To(Equal(c.limit))
			g.Expect(got.Why).To(HavePrefix(c.says))
		})
	}
}

func TestTheUsesHaveTheMostUsedThingOfEachKind(t *testing.T) {
	g := NewWithT(t)
	no := func(string) bool { return false }
	got := load.Judge(load.Input{
		Summaries: []telemetry.Summary{disk("n1", "a", 0.2, 0), disk("n1", "b", 0.4, 0), daemon("storage/0", 2), {Node: "n2", Problem: "away"}},
		Nodes:     map[string]load.Node{"n1": {CPUs: 4}}, IsMetadata: no, OneThread: no,
	})
	g.Expect(got.Uses).To(HaveLen(2), "the speed of the link is unknown")
	g.Expect(got.Uses[0].Name).To(Equal("storage/0"))
	g.Expect(got.Uses[1].Name).To(Equal("b"))
	g.Expect(got.Unknown).To(Equal([]string{"n2: away"}))
}
