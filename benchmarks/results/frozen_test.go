package results_test

import (
	"testing"
	"time"

	. "github.com/onsi/gomega"

	"parallelfs.dev/operator/api/v1alpha1"
	"parallelfs.dev/operator/benchmarks"
	"parallelfs.dev/operator/benchmarks/results"
	"parallelfs.dev/operator/benchmarks/telemetry"
	"parallelfs.dev/operator/internal/node/stored/storedtest"
)

// frozen is a document with every field of its own set; the specs of API objects in it change with the API.
func frozen() results.Run {
	began := time.Date(2026, 11, 25, 3, 0, 0, 0, time.UTC)
	return results.Run{
		Format: results.Format, Name: "creates", Namespace: "lab", UID: "1b4e28ba-2fa1-11d2-883f-0016d3cca427",
		Spec: v1alpha1.BenchmarkRunSpec{
			Target: v1alpha1.BenchmarkTarget{FileSystem: v1alpha1.FileSystemTarget{Name: "scratch"}}, Tool: v1alpha1.ToolIOR, IOR: &v1alpha1.IORSpec{}, Repetitions: 2,
		},
		Started: began, Ended: began.Add(time.Hour),
		Provenance: results.Provenance{
			RunProvenance: v1alpha1.RunProvenance{
				FileSystem: "Example 1.0.0, generation 3", ConfigHash: "0123456789abcdef", MembersHash: "fedcba9876543210",
				ServerCounts: []v1alpha1.ServerCount{{Role: v1alpha1.RoleStorage, StoragePool: "ssd", Version: "1.0.0", Count: 8}},
				TargetCounts: []v1alpha1.TargetCount{{StoragePool: "ssd", Count: 16, CapacityBytes: 1 << 44}},
				Image:        "ior:4.0.0", ImageID: "sha256:9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08", ToolVersion: "IOR-4.0.0",
				Clients: []v1alpha1.NodeProvenance{{Node: "client1", Kernel: "6.12.41", CPUModel: "Xeon Gold 6338", CPUs: 64}}, Pinning: "as asked", Transport: "12/12, clients 31/32; TCPInUse",
				PodChanges: []string{"the cpu of container benchmark is limited to 500m"},
				Throttled:  "the CPU quota held the container on client1 back in 30 of 90 periods, for 1.5s",
				Clocks:     "the clocks of 2 clients differ by at most 2ms",
				Unknown:    "the servers behind the volume",
				Volume: &v1alpha1.VolumeProvenance{
					Claim: "data 0f0e0d0c", StorageClass: "fast", Parameters: []string{"type=ssd"}, PersistentVolume: "pv-1", Driver: "csi.example.org",
					Attributes: []string{"share=a"}, AccessModes: "ReadWriteMany", Capacity: "100Gi", Mount: "nfs4 (rw,relatime)",
				},
			},
			FileSystemSpec: &v1alpha1.FileSystemSpec{Type: "Example", Version: "1.0.0"}, Operator: "v1.0.0",
			Servers: []results.Server{{
				Name: "storage-ssd.oss1", Role: v1alpha1.RoleStorage, Node: "oss1", StoragePool: "ssd", Slot: 1, ID: 7, Target: "scratch-mds0-0123",
				Address: "192.0.2.7:9422", Version: "1.0.0", State: v1alpha1.StateOnline, Message: "it was away",
				Placement: &v1alpha1.Placement{
					CPUs: "0-15", WantedCPUs: "0-15", NUMANodes: "0", MemoryPolicy: "bind:0", Devices: []string{"nvme0n1"}, Drift: "runs on CPU 16",
				},
			}},
			Targets: []results.Target{{
				Name: "oss1:ssd0", Node: "oss1", StoragePool: "ssd", Directory: "ssd0", ID: 9, StorageTarget: "scratch-ssd-0123456789abcdef",
				State: v1alpha1.StateOnline, Removal: v1alpha1.RemovalDataMoved, CapacityBytes: 1 << 40, UsedBytes: 1 << 30, Message: "it has errors",
			}},
		},
		Points: []results.Point{{
			Index: 2, State: v1alpha1.PointSucceeded, Message: "1 of 3 repetitions is invalid", Command: []string{"ior", "-a", "POSIX"},
			Options:   []string{"-G", "27"},
			Placement: "16 on 1 client", Parameters: []results.Value{{Name: "processes", Value: "16"}},
			Metrics: []results.Metric{{
				Name: "write", Unit: "MiB/s", Better: v1alpha1.BetterHigher, Value: 812.5, Mean: 812.5, Min: 800, Max: 825, Median: new(812.5),
				StdDev: new(12.5), Confidence: new(31.05), Outliers: []int32{3}, Samples: 3, Speedup: new(1.9), Efficiency: new(0.95),
				Baseline: &results.Baseline{Of: "before", Value: 650, Change: 0.25, Verdict: results.Better},
			}},
			Attempts: []results.Attempt{{
				Repetition: 3, Attempt: 2, WarmUp: true, Step: "write", Started: began, Ended: began.Add(time.Minute), ExitCode: new(int32(1)),
				Error: "ior ended with exit code 1", Invalid: "a server was restarted",
				Samples: []benchmarks.Sample{{
					Name: "write", Unit: "MiB/s", Value: 812.5, Better: v1alpha1.BetterHigher,
					Within: &benchmarks.Within{Count: 3, Min: 800, Max: 825, StdDev: 12.5},
				}},
				Telemetry: []telemetry.Summary{{
					Node: "oss1", Target: "scratch-ssd-0123456789abcdef", Daemon: "storage/ssd", Count: 2, Seconds: 60, Samples: 12,
					Utilization: 0.5, MaxUtilization: 0.75, ReadIOPS: 10, WriteIOPS: 2000, ReadBytesPerSecond: 40960, WriteBytesPerSecond: 851968000,
					Queue: 4.5, CPUs: 1.5, MaxCPUs: 2.5, Problem: "the agent did not answer",
				}},
			}},
		}},
		Comparison: &results.Comparison{
			Of: "before", Summary: "1 of 1 metrics is better",
			Refused: []results.Difference{{What: "fio.directIO", Here: "true", There: "false"}},
			Differs: []results.Difference{{What: "version", Here: "1.0.0", There: "0.9.0"}},
		},
	}
}

func TestDocumentsOfResultsAreReadAndWrittenAsInVersion1(t *testing.T) {
	g := NewWithT(t)
	run := frozen()
	storedtest.ExpectWhole(t, run.Points)
	storedtest.ExpectWhole(t, run.Comparison)
	storedtest.ExpectWhole(t, run.Provenance.RunProvenance)
	storedtest.ExpectWhole(t, run.Provenance.Servers)
	storedtest.ExpectWhole(t, run.Provenance.Targets)
	suite := results.Suite{
		Format: results.Format, Name: "backends", Namespace: "lab", UID: "6fa459ea-ee8a-3ca4-894e-db77e160355e",
		Variants: []results.Variant{{Name: "ext4", Scale: 2, Runs: []results.SuiteRun{{Name: "creates", Run: run}}}},
	}

	text := storedtest.Fixture(t, "v1", "run.json")
	g.Expect(results.Decode(text)).To(Equal(run))
	written, err := results.Encode(run)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(string(written)).To(Equal(string(text)))

	text = storedtest.Fixture(t, "v1", "suite.json")
	g.Expect(results.DecodeSuite(text)).To(Equal(suite))
	written, err = results.EncodeSuite(suite)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(string(written)).To(Equal(string(text)))
}
