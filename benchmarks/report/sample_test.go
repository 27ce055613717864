package report_test

import (
	"fmt"
	"hash/fnv"
	"math"
	"time"

	"parallelfs.dev/operator/api/v1alpha1"
	"parallelfs.dev/operator/benchmarks"
	"parallelfs.dev/operator/benchmarks/results"
	"parallelfs.dev/operator/benchmarks/telemetry"
)

// The samples below are computed by a formula. They are not measured.

const sampleBaseline = "sample data in the shape of beegfs-2015-multi-mds"

var sampleStart = time.Date(2026, 11, 21, 8, 0, 0, 0, time.UTC)

// noise returns a number around 0 that is constant for a key and at most as large as the bound.
func noise(bound float64, key ...any) float64 {
	hash := fnv.New64a()
	fmt.Fprint(hash, key...)
	return bound * (float64(hash.Sum64()%2001)/1000 - 1)
}

// saturating grows with the number of processes and flattens at a peak.
func saturating(peak, half float64, processes int) float64 {
	n := float64(processes)
	return peak * n / (n + half) * (1 - 0.06*math.Max(0, math.Log2(n/128)))
}

// measured returns the metric of three repetitions around a value, with its samples.
func measured(name string, around float64, spread float64, key ...any) (results.Metric, []benchmarks.Sample) {
	var samples []benchmarks.Sample
	sum, lowest, highest := 0.0, math.Inf(1), math.Inf(-1)
	for i := range 3 {
		v := math.Round(around*(1+noise(spread, append(key, name, i)...))*1000) / 1000
		samples = append(samples, benchmarks.Sample{Name: name, Unit: "ops/s", Value: v})
		sum, lowest, highest = sum+v, math.Min(lowest, v), math.Max(highest, v)
	}
	mean, squares := sum/3, 0.0
	for _, s := range samples {
		squares += (s.Value - mean) * (s.Value - mean)
	}
	deviation := math.Sqrt(squares / 2)
	half := 4.303 * deviation / math.Sqrt(3)
	median := sum - lowest - highest
	return results.Metric{
		Name: name, Unit: "ops/s", Value: mean, Mean: mean, Min: lowest, Max: highest, Median: &median, StdDev: &deviation, Confidence: &half, Samples: 3,
	}, samples
}

type sampled struct {
	name       string
	peak, half float64
}

var operations = []sampled{{"File creation", 120000, 30}, {"File stat", 400000, 40}, {"File removal", 95000, 26}}

// samplePoint returns a point of mdtest with its telemetry.
func samplePoint(index, processes int, factor, spread float64, parameters []results.Value, before float64) results.Point {
	p := results.Point{
		Index: index, State: v1alpha1.PointSucceeded, Parameters: parameters,
		Placement: fmt.Sprintf("%d on %d clients", processes, min(processes, 8)),
		Command:   []string{"mdtest", "-d", "/mnt/scratch/run", "-i", "3", "-I", fmt.Sprint(11520 / processes), "-z", "2", "-b", "8", "-L", "-u", "-F"},
	}
	for i := range 3 {
		started := sampleStart.Add(time.Duration(index*3+i) * time.Minute)
		code := int32(0)
		p.Attempts = append(p.Attempts, results.Attempt{
			Repetition: i + 1, Attempt: 1, Started: started, Ended: started.Add(50 * time.Second), ExitCode: &code,
		})
	}
	for _, o := range operations {
		around := saturating(o.peak, o.half, processes) * factor
		m, samples := measured(o.name, around, spread, index)
		single := saturating(o.peak, o.half, 1) * factor
		speedup := m.Value / single
		efficiency := speedup / float64(processes)
		m.Speedup, m.Efficiency = &speedup, &efficiency
		if before > 0 {
			value := math.Round(around * before * (1 + noise(0.09, index, o.name, "before")))
			b := results.Baseline{Of: sampleBaseline, Value: value, Change: m.Value/value - 1, Verdict: results.WithinNoise}
			switch {
			case b.Change > 0.06:
				b.Verdict = results.Better
			case b.Change < -0.04:
				b.Verdict = results.Worse
			}
			m.Baseline = &b
		}
		p.Metrics = append(p.Metrics, m)
		for i := range samples {
			p.Attempts[i].Samples = append(p.Attempts[i].Samples, samples[i])
		}
	}
	busy := math.Min(0.9, float64(processes)/(float64(processes)+60))
	for target := range 4 {
		use := busy * (1 - 0.05*float64(target))
		p.Attempts[0].Telemetry = append(p.Attempts[0].Telemetry, telemetry.Summary{
			Node: "mds1", Target: fmt.Sprintf("scratch-metadata-%d", target), Seconds: 50, Samples: 50,
			Utilization: math.Round(use*1000) / 1000, MaxUtilization: math.Round(math.Min(1, use*1.2)*1000) / 1000,
			WriteIOPS: math.Round(use * 22000), WriteBytesPerSecond: math.Round(use * 9e7), Queue: math.Round(use*80) / 10,
		})
	}
	for slot := range 2 {
		p.Attempts[0].Telemetry = append(p.Attempts[0].Telemetry, telemetry.Summary{
			Node: "mds1", Daemon: fmt.Sprintf("sample/scratch/meta/%d", slot), Seconds: 50, Samples: 50,
			CPUs: math.Round(busy*1800)/100 + float64(slot), MaxCPUs: math.Round(busy*2100)/100 + float64(slot),
		})
	}
	return p
}

func sampleSpec(processes int) v1alpha1.BenchmarkRunSpec {
	return v1alpha1.BenchmarkRunSpec{
		Target: v1alpha1.BenchmarkTarget{FileSystem: v1alpha1.FileSystemTarget{Name: "scratch"}}, Tool: v1alpha1.ToolMdtest,
		Mdtest:      &v1alpha1.MdtestSpec{Depth: 2, Branch: 8, LeafOnly: true, UniqueDirectories: true, FilesOnly: true, Iterations: 3},
		Clients:     v1alpha1.BenchmarkClients{NodeSelector: v1alpha1.NodeSelector{"parallelfs.dev/scratch-client": ""}},
		Repetitions: 3, Statistic: v1alpha1.StatisticMean, Along: "processes",
		Sweep: []v1alpha1.SweepDimension{{
			Name: "processes", PowersOfTwo: &v1alpha1.SweepPowers{From: "1", To: v1alpha1.SweepValue(fmt.Sprint(processes))},
		}},
	}
}

func sampleProvenance() results.Provenance {
	return results.Provenance{
		RunProvenance: v1alpha1.RunProvenance{
			FileSystem: "BeeGFS 7.4.6, 1b4e28ba-2fa1-11d2-883f-0016d3cca427, generation 3", ConfigHash: "3f1a9c0de5",
			Image: "registry.example.org/mdtest:4.0.0", ImageID: "sha256:0c5f0f3a7f1d", ToolVersion: "mdtest-4.0.0", Pinning: "AsAsked",
			Clients: []v1alpha1.NodeProvenance{
				{Node: "client1", Kernel: "6.1.0-44-amd64", CPUModel: "Sample CPU 32 cores", CPUs: 64}, {Node: "client2", Kernel: "6.1.0-44-amd64", CPUs: 64},
			},
			ServerCounts: []v1alpha1.ServerCount{{Role: v1alpha1.RoleMetadata, Version: "7.4.6", Count: 2}, {Role: v1alpha1.RoleStorage, StoragePool: "ssd", Version: "7.4.6", Count: 2}},
			TargetCounts: []v1alpha1.TargetCount{{StoragePool: "ssd", Count: 8, CapacityBytes: 3840827850000}},
		},
		Servers: []results.Server{
			{Name: "meta-0", Role: v1alpha1.RoleMetadata, Node: "mds1", Version: "7.4.6", State: v1alpha1.StateOnline, Placement: &v1alpha1.Placement{CPUs: "0-15", NUMANodes: "0"}},
			{Name: "meta-1", Role: v1alpha1.RoleMetadata, Node: "mds1", Version: "7.4.6", State: v1alpha1.StateOnline, Placement: &v1alpha1.Placement{CPUs: "16-31", NUMANodes: "1"}},
		},
		Targets:  []results.Target{{Name: "t1", Node: "mds1", Directory: "/data/meta0", State: v1alpha1.StateOnline, CapacityBytes: 480103981056, UsedBytes: 1200300400}},
		Operator: "v0.5.0",
	}
}

// sampleRun returns a run with 30 points: 10 numbers of processes, each with 3 file sizes.
func sampleRun() results.Run {
	run := results.Run{
		Format: results.Format, Name: "sample-creates", Namespace: "sample", UID: "00000000-0000-4000-8000-000000000001", Spec: sampleSpec(512),
		Started: sampleStart, Ended: sampleStart.Add(90 * time.Minute), Provenance: sampleProvenance(),
	}
	run.Spec.Sweep = append(run.Spec.Sweep, v1alpha1.SweepDimension{Name: "mdtest.writeBytes", Values: []v1alpha1.SweepValue{"0", "4k", "32k"}})
	run.Spec.Derive = []v1alpha1.DerivedParameter{{Name: "mdtest.items", CEL: "11520 / processes"}}
	run.Spec.Baseline = &v1alpha1.BaselineSpec{Published: "beegfs-2015-multi-mds"}
	run.Spec.Statistic = v1alpha1.StatisticMean
	run.Spec.Expect = []v1alpha1.Expectation{
		{Name: "creates", Metric: "File creation", Unit: "ops/s", Where: []v1alpha1.ParameterValue{{Name: "processes", Value: "128"}}, AtLeast: "30000"},
		{Name: "stats", Metric: "File stat", Unit: "ops/s", Where: []v1alpha1.ParameterValue{{Name: "processes", Value: "128"}}, AtLeast: "400000"},
	}
	for processes := 1; processes <= 512; processes *= 2 {
		for i, size := range []string{"0", "4k", "32k"} {
			factor := []float64{1, 0.72, 0.4}[i]
			run.Points = append(run.Points, samplePoint(len(run.Points), processes, factor, 0.05, []results.Value{
				{Name: "processes", Value: fmt.Sprint(processes)}, {Name: "mdtest.writeBytes", Value: size},
				{Name: "mdtest.items", Value: fmt.Sprint(max(1, 11520/processes))}, {Name: "mdtest.depth", Value: "2"},
			}, 0.98))
		}
	}
	disturbed := &run.Points[13]
	again := disturbed.Attempts[1]
	again.Attempt, again.Samples, again.Telemetry = 1, nil, nil
	again.Invalid = "the daemon meta-1 on mds1 was started again (restarts 0, then 1)"
	disturbed.Attempts[1].Attempt = 2
	disturbed.Attempts = append(disturbed.Attempts, again)
	run.Points[4].Metrics[0].Outliers = []int32{2}
	failed := &run.Points[29]
	failed.State, failed.Metrics = v1alpha1.PointFailed, nil
	failed.Message = "mdtest ended with exit code 1; its last line: ERROR: unable to create file \"/mnt/scratch/run/<0>\" & more, No space left on device"
	failed.Attempts = failed.Attempts[:1]
	failed.Attempts[0].Samples, failed.Attempts[0].Error = nil, failed.Message
	return run
}

// sampleSuite returns a suite of 4 variants with 9 points each.
func sampleSuite() results.Suite {
	suite := results.Suite{Format: results.Format, Name: "sample-instances", Namespace: "sample", UID: "00000000-0000-4000-8000-000000000002"}
	for instances := 1; instances <= 4; instances++ {
		run := results.Run{
			Format: results.Format, Name: fmt.Sprintf("sample-instances-%d", instances), Namespace: "sample", Spec: sampleSpec(256),
			Started: sampleStart, Ended: sampleStart.Add(30 * time.Minute), Provenance: sampleProvenance(),
		}
		for processes := 1; processes <= 256; processes *= 2 {
			p := samplePoint(len(run.Points), processes, (0.12 + 0.22*float64(instances)), 0.03,
				[]results.Value{{Name: "processes", Value: fmt.Sprint(processes)}}, 1)
			run.Points = append(run.Points, p)
		}
		suite.Variants = append(suite.Variants, results.Variant{
			Name: fmt.Sprintf("mds-%d", instances), Scale: int32(instances), Runs: []results.SuiteRun{{Name: "creates", Run: run}},
		})
	}
	return suite
}
