package benchmarkrun

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"

	"parallelfs.dev/operator/api/v1alpha1"
	"parallelfs.dev/operator/benchmarks"
	"parallelfs.dev/operator/benchmarks/telemetry"
)

// large is a run that is over, with so many points of so many metrics, five repetitions each, and telemetry of 20 servers.
func large(points, metrics int) *world {
	w := idle()
	w.run.Spec.Repetitions, w.run.Spec.Along = 5, "processes"
	w.run.Spec.Sweep = []v1alpha1.SweepDimension{{Name: "processes"}}
	w.points, w.plans = nil, nil
	for i := range points {
		w.points = append(w.points, benchmarks.Point{
			Index: i, Parameters: map[v1alpha1.SweepName]string{"processes": fmt.Sprint(i + 1), "iozone.recordSize": "64k", "iozone.fileSize": "1g"},
			Varied: []v1alpha1.SweepName{"processes"},
		})
		plan := planOf(benchmarks.OnProcesses)
		plan.Steps[0].Command.Argv = strings.Fields("mdtest -d $(DIRECTORY) -i 3 -I 6000 -z 2 -b 4 -L -u -F --some-long-option=" + strings.Repeat("x", 200))
		w.plans = append(w.plans, plan)
		for repetition := 1; repetition <= 5; repetition++ {
			entry := record{Point: i, Repetition: repetition, Attempt: 1, Started: now, Finished: now.Add(time.Minute), Placement: "32 on 4 clients (8 each)"}
			for m := range metrics {
				entry.Samples = append(entry.Samples, benchmarks.Sample{
					Name: fmt.Sprintf("Directory creation of kind %d", m), Unit: "ops/s", Value: float64(100000*(i+1)) + float64(repetition*(m+1))/3,
				})
			}
			for server := range 20 {
				entry.Telemetry = append(entry.Telemetry, telemetry.Summary{
					Node: fmt.Sprintf("oss%d.example.org", server), Target: fmt.Sprintf("scratch-ssd-%d", server), Seconds: 60, Samples: 60,
					Utilization: 0.123456, MaxUtilization: 0.98, ReadIOPS: 1234.5, WriteIOPS: 543.21, ReadBytesPerSecond: 1e9, WriteBytesPerSecond: 1e8, Queue: 1.5,
				})
			}
			w.records.add(entry)
		}
	}
	w.published = w.toPublish(true)
	w.run.Status.Directory = ""
	return w
}

func TestAStatusIsBounded(t *testing.T) {
	size := func(g *WithT, s v1alpha1.BenchmarkRunStatus, w *world) (status, object int) {
		raw, err := json.Marshal(s)
		g.Expect(err).NotTo(HaveOccurred())
		w.run.Status = s
		whole, err := json.Marshal(w.run)
		g.Expect(err).NotTo(HaveOccurred())
		return len(raw), len(whole)
	}
	t.Run("of 90 points with 12 metrics, the largest published experiment, nothing is left out", func(t *testing.T) {
		g := NewWithT(t)
		w := large(90, 12)
		status, err := derive(w, decide(w))
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(status.Shortened).To(BeEmpty())
		g.Expect(status.Points[89].Metrics).To(HaveLen(12))
		g.Expect(status.Points[89].Metrics[0].Median).NotTo(BeEmpty())
		bytes, object := size(g, status, w)
		t.Logf("90 points of 12 metrics: a status of %d bytes, an object of %d", bytes, object)
		g.Expect(object).To(BeNumerically("<", 1<<20))
	})
	t.Run("of 256 points with 30 metrics, the values stay, and it says what was left out", func(t *testing.T) {
		g := NewWithT(t)
		w := large(256, 30)
		status, err := derive(w, decide(w))
		g.Expect(err).NotTo(HaveOccurred())
		bytes, object := size(g, status, w)
		t.Logf("256 points of 30 metrics: a status of %d bytes, an object of %d; %s", bytes, object, status.Shortened)
		g.Expect(bytes).To(BeNumerically("<=", maxStatus))
		g.Expect(object).To(BeNumerically("<", 1<<20))
		g.Expect(status.Points).To(HaveLen(256))
		g.Expect(status.Shortened).To(HavePrefix("outliers, medians and confidence intervals"))
		for _, p := range status.Points {
			g.Expect(p.State).To(Equal(v1alpha1.PointSucceeded))
			g.Expect(p.Metrics).NotTo(BeEmpty())
			g.Expect(p.Metrics[0].Value).NotTo(BeEmpty())
		}
	})
	t.Run("of 256 points that all failed with long messages", func(t *testing.T) {
		g := NewWithT(t)
		w := large(256, 1)
		for i := range w.points {
			w.entry(at(i, 5), func(r *record) {
				r.Error, r.Tail = "iozone ended with exit code 1", strings.Repeat("a line of its output\n", 70)
			})
		}
		w.published = w.toPublish(true)
		status, err := derive(w, decide(w))
		g.Expect(err).NotTo(HaveOccurred())
		bytes, _ := size(g, status, w)
		g.Expect(bytes).To(BeNumerically("<=", maxStatus))
		g.Expect(status.Points[255].Message).To(HavePrefix("repetition 5: iozone ended with exit code 1"))
	})
}
