package turns

import (
	"testing"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"

	"parallelfs.dev/operator/api/v1alpha1"
	"parallelfs.dev/operator/benchmarks"
	"parallelfs.dev/operator/benchmarks/telemetry"
	"parallelfs.dev/operator/internal/node/stored/storedtest"
)

func TestTheRecordOfATurnIsReadAndWrittenAsInFormat1(t *testing.T) {
	g := NewWithT(t)
	started := time.Date(2026, 11, 25, 3, 0, 0, 0, time.UTC)
	want := Record{
		Format: 1, Point: 2, Repetition: 3, WarmUp: true, Attempt: 2, Step: 1, StepName: "read",
		Parameters: map[v1alpha1.SweepName]string{"processes": "16"},
		Command:    []string{"ior", "-a", "POSIX"}, Nodes: []string{"client1"}, Placement: "16 on 1 clients (16 each)",
		Started: started, Finished: started.Add(time.Minute), ExitCode: new(int32(1)),
		Version: "IOR-4.0.0", ImageID: "sha256:9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08",
		Samples: []benchmarks.Sample{{
			Name: "write", Unit: "MiB/s", Value: 812.5, Better: "Higher", Within: &benchmarks.Within{Count: 3, Min: 800, Max: 825, StdDev: 12.5},
		}},
		Error: "the tool ended with exit code 1", Tail: "write failed", Invalid: "a server was restarted", Interrupted: "the client's node was cordoned",
		Telemetry: []telemetry.Summary{{
			Node: "oss1", Target: "scratch-ssd-0123456789abcdef", Daemon: "storage/ssd", Count: 2, Seconds: 60, Samples: 12,
			Utilization: 0.5, MaxUtilization: 0.75, ReadIOPS: 10, WriteIOPS: 2000, ReadBytesPerSecond: 40960, WriteBytesPerSecond: 851968000,
			Queue: 4.5, CPUs: 1.5, MaxCPUs: 2.5, Problem: "the agent did not answer",
		}},
		PodChanges: []string{"the cpu of container benchmark is limited to 500m"},
		Throttled:  "the CPU quota held the container on client1 back in 30 of 90 periods, for 1.5s",
		Clocks:     "the clocks of 2 clients differ by at most 2ms",
		Truncated:  "the telemetry was not kept: the ConfigMap is full",
	}
	storedtest.ExpectWhole(t, want)
	text := string(storedtest.Fixture(t, "v1", "record.json"))
	g.Expect(RecordsIn(&corev1.ConfigMap{Data: map[string]string{"warmup-3.attempt-2.json": text}})).To(Equal([]Record{want}))
	var cm corev1.ConfigMap
	g.Expect(want.AddTo(&cm, "warmup-3.attempt-2", &Raw{})).To(Succeed())
	g.Expect(cm.Data).To(Equal(map[string]string{"warmup-3.attempt-2.json": text}))
}

func TestARecordIsNotReadWhen(t *testing.T) {
	for name, c := range map[string]struct{ text, says string }{
		"a newer operator wrote it": {`{"format": 2, "point": "0/1"}`, "rep-1.json of ConfigMap sweep-p000 has version 2 of its form, and this program reads versions up to 1"},
		"it has no format":          {`{"point": 0, "repetition": 1}`, `has no version of its form`},
	} {
		t.Run(name, func(t *testing.T) {
			cm := &corev1.ConfigMap{Data: map[string]string{"rep-1.json": c.text}}
			cm.Name = "sweep-p000"
			_, err := RecordsIn(cm)
			NewWithT(t).Expect(err).To(MatchError(ContainSubstring(c.says)))
		})
	}
}
