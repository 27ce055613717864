package outcomes

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"

	"parallelfs.dev/operator/api/v1alpha1"
	"parallelfs.dev/operator/benchmarks"
	"parallelfs.dev/operator/benchmarks/results"
	"parallelfs.dev/operator/benchmarks/telemetry"
	"parallelfs.dev/operator/controllers/benchmarkrun/decision"
	"parallelfs.dev/operator/controllers/benchmarkrun/members"
	"parallelfs.dev/operator/controllers/benchmarkrun/scope"
	"parallelfs.dev/operator/controllers/benchmarkrun/scope/scopetest"
	"parallelfs.dev/operator/controllers/benchmarkrun/turns"
)

// large returns a finished run with the given numbers of points and of metrics, five repetitions each, and telemetry of 20 servers.
func large(points, metrics int) *scope.Scope {
	w := scopetest.Idle()
	w.Run.Spec.Repetitions, w.Run.Spec.Along = 5, "processes"
	w.Run.Spec.Sweep = []v1alpha1.SweepDimension{{Name: "processes"}}
	w.Points, w.Plans = nil, nil
	for i := range points {
		w.Points = append(w.Points, benchmarks.Point{
			Index: i, Parameters: map[v1alpha1.SweepName]string{"processes": fmt.Sprint(i + 1), "iozone.recordSize": "64k", "iozone.fileSize": "1g"},
			Varied: []v1alpha1.SweepName{"processes"},
		})
		plan := scopetest.PlanOf(benchmarks.OnProcesses)
		plan.Steps[0].Command.Argv = strings.Fields("mdtest -d $(DIRECTORY) -i 3 -I 6000 -z 2 -b 4 -L -u -F --some-long-option=" + strings.Repeat("x", 200))
		w.Plans = append(w.Plans, plan)
		for repetition := 1; repetition <= 5; repetition++ {
			entry := turns.Record{Point: i, Repetition: repetition, Attempt: 1, Started: scopetest.Now, Finished: scopetest.Now.Add(time.Minute), Placement: "32 on 4 clients (8 each)"}
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
			w.Records.Add(entry)
		}
	}
	w.Published = w.ToPublish(true)
	w.Run.Status.Directory = ""
	return w
}

// wide returns a filesystem with the given number of nodes, each with a server and 24 disks of one pool and a metadata server.
func wide(nodes int) members.Members {
	var out members.Members
	for i := range nodes {
		node := fmt.Sprintf("oss%04d.example.org", i)
		out.Servers = append(out.Servers,
			results.Server{
				Name: "metadata-" + node, Role: v1alpha1.RoleMetadata, Node: node, ID: int32(i + 1), Version: "8.3.1", State: v1alpha1.StateOnline,
				Address: "10.0.0.1:8005", Placement: &v1alpha1.Placement{CPUs: "0-7", NUMANodes: "0", MemoryPolicy: "bind:0"},
			},
			results.Server{
				Name: "storage-ssd-" + node, Role: v1alpha1.RoleStorage, StoragePool: "ssd", Node: node, ID: int32(i + 1), Version: "8.3.1", State: v1alpha1.StateOnline,
			})
		for d := range 24 {
			out.Targets = append(out.Targets, results.Target{
				Name: fmt.Sprintf("%s-%02d", node, d), Node: node, StoragePool: "ssd", Directory: fmt.Sprintf("/var/lib/parallelfs/targets/scratch-ssd-%05d", 24*i+d),
				ID: int32(24*i + d), StorageTarget: fmt.Sprintf("scratch-ssd-%05d", 24*i+d), State: v1alpha1.StateOnline, CapacityBytes: 8 << 40, UsedBytes: 1 << 40,
			})
		}
	}
	return out
}

func TestTheStoredResultsOfARunDoNotGrowWithTheFilesystem(t *testing.T) {
	sizes := map[int][3]int{}
	for _, nodes := range []int{10, 1000} {
		g := NewWithT(t)
		w := large(90, 12)
		w.Members = wide(nodes)
		everything, err := json.Marshal([]any{w.Members.Servers, w.Members.Targets})
		g.Expect(err).NotTo(HaveOccurred())
		w.Provenance = Found(w, "v1.0.0")
		w.Provenance.CheckedBy = "look"
		kept, err := json.Marshal(w.Provenance)
		g.Expect(err).NotTo(HaveOccurred())
		status, err := Derive(w, decision.Decide(w))
		g.Expect(err).NotTo(HaveOccurred())
		raw, err := json.Marshal(status)
		g.Expect(err).NotTo(HaveOccurred())
		document, err := Document(w, decision.Decision{Ended: true})
		g.Expect(err).NotTo(HaveOccurred())
		packed, err := results.Pack(document, turns.MaxStored)
		g.Expect(err).NotTo(HaveOccurred())
		t.Logf("%d nodes with 24 disks: a status of %d bytes, provenance of %d (all members are %d), results of %d; %s",
			nodes, len(raw), len(kept), len(everything), len(packed.Files[results.FileJSON]), packed.Note)
		sizes[nodes] = [3]int{len(raw), len(kept), len(packed.Files[results.FileJSON])}
		g.Expect(len(raw)).To(BeNumerically("<=", maxStatus))
		g.Expect(status.Shortened).To(BeEmpty())
		g.Expect(len(kept)).To(BeNumerically("<=", turns.MaxStored/4))
		g.Expect(status.Provenance.ServerCounts).To(ConsistOf(
			v1alpha1.ServerCount{Role: v1alpha1.RoleMetadata, Version: "8.3.1", Count: int32(nodes)},
			v1alpha1.ServerCount{Role: v1alpha1.RoleStorage, StoragePool: "ssd", Version: "8.3.1", Count: int32(nodes)}))
		g.Expect(status.Provenance.TargetCounts).To(Equal([]v1alpha1.TargetCount{{StoragePool: "ssd", Count: int32(24 * nodes), CapacityBytes: int64(24*nodes) << 43}}))
		g.Expect(len(document.Provenance.Servers)).To(Equal(min(2*nodes, members.MaxMembers)))
		g.Expect(document.Provenance.Targets).To(HaveLen(members.MaxMembers))
	}
	NewWithT(t).Expect(sizes[1000][0]-sizes[10][0]).To(BeNumerically("<", 64), "the status only counts them")
}

func TestAStatusIsBounded(t *testing.T) {
	size := func(g *WithT, s v1alpha1.BenchmarkRunStatus, w *scope.Scope) (status, object int) {
		raw, err := json.Marshal(s)
		g.Expect(err).NotTo(HaveOccurred())
		w.Run.Status = s
		whole, err := json.Marshal(w.Run)
		g.Expect(err).NotTo(HaveOccurred())
		return len(raw), len(whole)
	}
	t.Run("of 90 points with 12 metrics, the largest published experiment, nothing is left out", func(t *testing.T) {
		g := NewWithT(t)
		w := large(90, 12)
		status, err := Derive(w, decision.Decide(w))
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(status.Shortened).To(BeEmpty())
		g.Expect(status.Points[89].Metrics).To(HaveLen(12))
		g.Expect(status.Points[89].Metrics[0].Median).NotTo(BeEmpty())
		bytes, object := size(g, status, w)
		t.Logf("90 points of 12 metrics: a status of %d bytes, an object of %d", bytes, object)
		g.Expect(object).To(BeNumerically("<", 1<<20))
	})
	t.Run("of 256 points with 30 metrics, the values stay, and a note lists what was left out", func(t *testing.T) {
		g := NewWithT(t)
		w := large(256, 30)
		status, err := Derive(w, decision.Decide(w))
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
		for i := range w.Points {
			scopetest.Entry(w, scopetest.At(i, 5), func(r *turns.Record) {
				r.Error, r.Tail = "iozone ended with exit code 1", strings.Repeat("a line of its output\n", 70)
			})
		}
		w.Published = w.ToPublish(true)
		status, err := Derive(w, decision.Decide(w))
		g.Expect(err).NotTo(HaveOccurred())
		bytes, _ := size(g, status, w)
		g.Expect(bytes).To(BeNumerically("<=", maxStatus))
		g.Expect(status.Points[255].Message).To(HavePrefix("repetition 5: iozone ended with exit code 1"))
	})
}
