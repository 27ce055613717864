package stats_test

import (
	"testing"

	. "github.com/onsi/gomega"

	"parallelfs.dev/operator/api/v1alpha1"
	"parallelfs.dev/operator/benchmarks/results"
	"parallelfs.dev/operator/benchmarks/stats"
)

// fioRun returns a run of fio with one point.
func fioRun() results.Run {
	return results.Run{
		Name: "run", UID: "1",
		Spec: v1alpha1.BenchmarkRunSpec{
			Tool: v1alpha1.ToolFio, Statistic: v1alpha1.StatisticMean, Target: v1alpha1.BenchmarkTarget{FileSystem: v1alpha1.FileSystemTarget{Name: "scratch"}},
			Fio: &v1alpha1.FioSpec{Mode: "read", BlockSize: "4Ki", Engine: "psync"},
		},
		Provenance: results.Provenance{
			RunProvenance: v1alpha1.RunProvenance{
				FileSystem: "MooseFS 4.57.5, 1b4e28ba, generation 3", ConfigHash: "0123456789abcdef", Image: "bench:1", ImageID: "sha256:1", ToolVersion: "fio-3.33",
				Pinning: "AsAsked", Clients: []v1alpha1.NodeProvenance{{Node: "node-1", Kernel: "6.1", CPUModel: "E5"}},
				ServerCounts: []v1alpha1.ServerCount{
					{Role: v1alpha1.RoleMetadata, Version: "4.57.5", Count: 1}, {Role: v1alpha1.RoleStorage, StoragePool: "ssd", Version: "4.57.5", Count: 4},
				},
				TargetCounts: []v1alpha1.TargetCount{{StoragePool: "ssd", Count: 96, CapacityBytes: 1 << 40}}, MembersHash: "aaaaaaaaaaaaaaaa",
			},
			FileSystemSpec: &v1alpha1.FileSystemSpec{Type: "MooseFS", Version: "4.57.5"},
		},
		Points: []results.Point{{
			State: v1alpha1.PointSucceeded, Placement: "2 on 1 client", Metrics: []results.Metric{repeated("read bw", "KiB/s", 200, 1, 5)},
			Parameters: []results.Value{{Name: "processes", Value: "2"}, {Name: "fio.blockSize", Value: "4k"}},
		}},
	}
}

func TestDifferencesBetweenTwoRunsAreRefusedOrNamed(t *testing.T) {
	for name, test := range map[string]struct {
		change          func(r *results.Run)
		refused, differ string
	}{
		"nothing": {change: func(*results.Run) {}},
		"an option of the tool that no sweep varies": {change: func(r *results.Run) { r.Spec.Fio.DirectIO = true },
			refused: "fio.directIO is true here and false there"},
		"arguments of the tool": {change: func(r *results.Run) { r.Spec.Fio.Args = []v1alpha1.BenchmarkArgument{"--thinktime=1"} },
			refused: `fio.args is ["--thinktime=1"] here and not set there`},
		"a parameter of the tool": {change: func(r *results.Run) { r.Points[0].Parameters[1].Value = "64k" },
			refused: "fio.blockSize is 64k here and 4k there"},
		"the statistic": {change: func(r *results.Run) { r.Spec.Statistic = v1alpha1.StatisticMax }, refused: "spec.statistic is Max here and Mean there"},
		"the tool":      {change: func(r *results.Run) { r.Spec.Tool = v1alpha1.ToolIOR }, refused: "spec.tool is ior here and fio there"},
		"the unit":      {change: func(r *results.Run) { r.Points[0].Metrics[0].Unit = "KB/s" }, refused: "the unit of read bw is KB/s here and KiB/s there"},
		"caches that were dropped": {change: func(r *results.Run) { r.Spec.Caches = &v1alpha1.CachesSpec{Drop: v1alpha1.CachesOfAll} },
			refused: "spec.caches is dropped of All before Repetitions here and not dropped there"},
		"the number of processes": {change: func(r *results.Run) { r.Points[0].Parameters[0].Value = "4" }, differ: "processes is 4 here and 2 there"},
		"the version of the tool": {change: func(r *results.Run) { r.Provenance.ToolVersion = "fio-3.36" },
			differ: "the tool's version is fio-3.36 here and fio-3.33 there"},
		"the image":            {change: func(r *results.Run) { r.Provenance.Image = "bench:2" }, differ: "the image is bench:2 here and bench:1 there"},
		"the digest of it":     {change: func(r *results.Run) { r.Provenance.ImageID = "sha256:2" }, differ: "the image's digest is sha256:2 here and sha256:1 there"},
		"the filesystem":       {change: func(r *results.Run) { r.Spec.Target.FileSystem.Name = "archive" }, differ: "spec.target is FileSystem archive here and FileSystem scratch there"},
		"the daemons' options": {change: func(r *results.Run) { r.Provenance.ConfigHash = "fedcba9876543210" }, differ: "the daemons' configuration is fedcba987654 here and 0123456789ab there"},
		"the filesystem's version": {change: func(r *results.Run) { r.Provenance.FileSystem = "MooseFS 3.0.117, 2c, generation 1" },
			differ: "the filesystem's version is MooseFS 3.0.117 here and MooseFS 4.57.5 there"},
		"a generation alone": {change: func(r *results.Run) { r.Provenance.FileSystem = "MooseFS 4.57.5, 1b4e28ba, generation 4" }},
		"the FileSystem's spec": {change: func(r *results.Run) { r.Provenance.FileSystemSpec.Version = "3.0.117" },
			differ: `the FileSystem's spec is {"version":"3.0.117"} here and {"version":"4.57.5"} there`},
		"a version of some servers": {change: func(r *results.Run) {
			r.Provenance.ServerCounts = []v1alpha1.ServerCount{{Role: v1alpha1.RoleMetadata, Version: "4.57.5", Count: 1},
				{Role: v1alpha1.RoleStorage, StoragePool: "ssd", Version: "4.57.5", Count: 3}, {Role: v1alpha1.RoleStorage, StoragePool: "ssd", Version: "4.57.6", Count: 1}}
		}, differ: "the number of servers is 3 Storage (ssd) 4.57.5, 1 Storage (ssd) 4.57.6 here and 4 Storage (ssd) 4.57.5 there"},
		"the number of servers": {change: func(r *results.Run) { r.Provenance.ServerCounts[1].Count = 5 },
			differ: "the number of servers is 5 Storage (ssd) 4.57.5 here and 4 Storage (ssd) 4.57.5 there"},
		"a kind of servers that is gone": {change: func(r *results.Run) { r.Provenance.ServerCounts = r.Provenance.ServerCounts[:1] },
			differ: "the number of servers is without that here and 4 Storage (ssd) 4.57.5 there"},
		"the number of targets": {change: func(r *results.Run) { r.Provenance.TargetCounts[0].Count = 95 },
			differ: "the number of targets is 95 of ssd with 1TiB here and 96 of ssd with 1TiB there"},
		"the size of targets": {change: func(r *results.Run) { r.Provenance.TargetCounts[0].CapacityBytes = 2 << 40 },
			differ: "the number of targets is 96 of ssd with 2TiB here and 96 of ssd with 1TiB there"},
		"a size that another program has changed": {change: func(r *results.Run) { r.Provenance.TargetCounts[0].CapacityBytes -= 4096 }},
		"as many other servers or targets": {change: func(r *results.Run) { r.Provenance.MembersHash = "bbbbbbbbbbbbbbbb" },
			differ: "the hash of all servers and targets is bbbbbbbbbbbb here and aaaaaaaaaaaa there"},
		"the servers of another FileSystem of that name": {change: func(r *results.Run) {
			r.Provenance.MembersHash, r.Provenance.FileSystem = "bbbbbbbbbbbbbbbb", "MooseFS 4.57.5, ffffffff, generation 1"
		}},
		"the clients":   {change: func(r *results.Run) { r.Provenance.Clients[0].Node = "node-2" }, differ: "the clients is node-2 here and node-1 there"},
		"the placement": {change: func(r *results.Run) { r.Points[0].Placement = "2 on 2 clients" }, differ: "the placement of point 0 is 2 on 2 clients here and 2 on 1 client there"},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			run := fioRun()
			test.change(&run)
			pair := stats.Pair{Run: run, Baseline: fioRun(), Of: "before"}
			found := stats.Compare([]stats.Pair{pair}, stats.Terms{})[0]
			said := func(all []results.Difference) (out string) {
				for _, d := range all {
					out += d.String()
				}
				return out
			}
			if test.refused != "" {
				g.Expect(said(found.Refused)).To(Equal(test.refused))
				g.Expect(found.Sentence()).To(HavePrefix("not compared with before, which measured something else; " + test.refused))
				g.Expect(run.Points[0].Metrics[0].Baseline).To(BeNil())
				allowed := stats.Compare([]stats.Pair{pair}, stats.Terms{AllowDifferences: true})[0]
				g.Expect(allowed.Sentence()).To(ContainSubstring(test.refused))
				if name != "the unit" {
					g.Expect(run.Points[0].Metrics[0].Baseline).NotTo(BeNil())
				}
				return
			}
			g.Expect(found.Refused).To(BeEmpty())
			g.Expect(said(found.Differs)).To(Equal(test.differ))
			g.Expect(found.Sentence()).To(HavePrefix("1 result of 1 point compared with before"))
			g.Expect(found.Sentence()).To(ContainSubstring(test.differ))
			g.Expect(run.Points[0].Metrics[0].Baseline).NotTo(BeNil())
		})
	}
}

func TestAPublishedBestIsShownBesideTheBestOfTheRun(t *testing.T) {
	g := NewWithT(t)
	points := []results.Point{
		point(0, []string{"processes", "1"}, repeated("File creation", "ops/s", 10, 1, 3)), point(1, []string{"processes", "2"}, repeated("File creation", "ops/s", 30, 1, 3)),
		point(2, []string{"processes", "4"}, repeated("File creation", "ops/s", 20, 1, 3)),
	}
	published := single("File creation", "ops/s", 25)
	published.Samples = 0
	found := compare(points, []results.Point{point(0, []string{"processes", results.BestOf}, published)}, 0.03)
	g.Expect(points[0].Metrics[0].Baseline).To(BeNil())
	g.Expect(points[1].Metrics[0].Baseline.Change).To(BeNumerically("~", 0.2, 1e-9))
	g.Expect(points[1].Metrics[0].Baseline.Verdict).To(Equal(results.UnknownBest), "the best of several is larger than it would be again")
	g.Expect(found.Sentence()).To(Equal("1 result of 1 point compared with before: 0 better, 0 worse, 0 within the noise, 1 not known of the best of several points; " +
		"only means were published there, so that side has no interval"))
}

func TestARunWithChangedPodsDiffersFromOneWithout(t *testing.T) {
	g := NewWithT(t)
	limited := v1alpha1.RunProvenance{FileSystem: "MooseFS 4.57.5, 1-2, generation 1", PodChanges: []string{"the cpu of container benchmark is limited to 500m"}}
	free := limited
	free.PodChanges = nil
	of := func(p v1alpha1.RunProvenance) results.Run {
		return results.Run{UID: "1", Spec: v1alpha1.BenchmarkRunSpec{Tool: v1alpha1.ToolFio}, Provenance: results.Provenance{RunProvenance: p}}
	}
	found := stats.Compare([]stats.Pair{{Run: of(limited), Baseline: of(free), Of: "before"}}, stats.TermsOf(nil))[0]
	g.Expect(found.Differs).To(ContainElement(results.Difference{
		What: "the pods' changes by admission", Here: "the cpu of container benchmark is limited to 500m", There: "none recorded",
	}))
}
