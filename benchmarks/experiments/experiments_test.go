package experiments_test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	. "github.com/onsi/gomega"

	"parallelfs.dev/operator/api/v1alpha1"
	"parallelfs.dev/operator/benchmarks"
	"parallelfs.dev/operator/benchmarks/experiments"
	"parallelfs.dev/operator/benchmarks/reference"
	"parallelfs.dev/operator/benchmarks/registry"
	"parallelfs.dev/operator/benchmarks/sweep"
)

func load(t *testing.T, name string) experiments.Experiment {
	t.Helper()
	e, err := experiments.Load(os.DirFS("."), name)
	NewWithT(t).Expect(err).NotTo(HaveOccurred())
	return e
}

// everyExperiment lists the directories with manifests.
func everyExperiment(t *testing.T) []string {
	t.Helper()
	g := NewWithT(t)
	manifests, err := filepath.Glob("*/*.yaml")
	g.Expect(err).NotTo(HaveOccurred())
	var out []string
	for _, m := range manifests {
		out = append(out, filepath.Dir(m))
	}
	return slices.Compact(out)
}

// plans expands a run and plans every point of it.
func plans(g *WithT, run *v1alpha1.BenchmarkRun) ([]benchmarks.Point, []benchmarks.Plan) {
	tool := registry.Tools()[run.Spec.ToolName()]
	g.Expect(tool).NotTo(BeNil(), string(run.Spec.ToolName()))
	points, err := sweep.Expand(tool, &run.Spec)
	g.Expect(err).NotTo(HaveOccurred())
	var out []benchmarks.Plan
	for _, p := range points {
		plan, err := tool.Plan(&run.Spec, p)
		g.Expect(err).NotTo(HaveOccurred(), "%v", p.Parameters)
		out = append(out, plan)
	}
	return points, out
}

// paperRun holds a paper's statements about a run: the number of points, and the command line of some of them, by swept values.
type paperRun struct {
	points      int
	repetitions int32
	statistic   v1alpha1.Statistic
	// commands holds command lines by "name=value name=value" of the varied parameters, which are swept or derived.
	commands map[string]string
}

var paperRuns = map[string]paperRun{
	"beegfs-2015-backend/ext4-ssd": {8, 1, v1alpha1.StatisticMean, map[string]string{
		"processes=1 mdtest.branch=512": "-b 512", "processes=128 mdtest.branch=4": "-b 4",
	}},
	"beegfs-2015-single-raid0": {9, 1, v1alpha1.StatisticMean, map[string]string{
		"processes=1 mdtest.items=11520": "-I 11520", "processes=256 mdtest.items=45": "-I 45",
	}},
	"beegfs-2015-multi-mds/4-instances": {9, 1, v1alpha1.StatisticMean, map[string]string{"processes=16 mdtest.items=720": "-I 720"}},
	"beegfs-2015-scale-out/20-nodes":    {1, 1, v1alpha1.StatisticMean, map[string]string{"": "-I 6000"}},
	"beegfs-2015-fixed":                 {18, 1, v1alpha1.StatisticMean, map[string]string{"mdtest.writeBytes=32Ki processes=512": "-w 32768"}},
	"netapp-tr4782":                     {2, 1, v1alpha1.StatisticMean, map[string]string{"storagePool=bulk": "-b 137438953472"}},
	"netapp-tr4782-mdtest":              {1, 1, v1alpha1.StatisticMean, map[string]string{"mdtest.itemsPerProcess=20000": "-n 20000"}},
	"netapp-tr4782-smallfile":           {4, 3, v1alpha1.StatisticWorst, nil},
	"lustre-2014-mdtest-low/lustre1":    {1, 1, v1alpha1.StatisticMean, map[string]string{"": "-I 5 -z 2 -b 60 -u"}},
	"lustre-2014-mdtest-high/lustre2":   {1, 1, v1alpha1.StatisticMean, map[string]string{"": "-I 5 -z 3 -b 30 -u"}},
	"lustre-2014-postmark/lustre2":      {2, 1, v1alpha1.StatisticMean, map[string]string{"postmark.files=10000": "postmark", "postmark.files=20000": "postmark"}},
	"lustre-2014-netmist/lustre1": {1, 1, v1alpha1.StatisticMean, map[string]string{
		"": "netmist -b 128 -d 8 -B 1 -t 300 -w 300 -f $(HOSTS_FILE)",
	}},
	"lustre-2014-mds-survey": {1, 1, v1alpha1.StatisticMean, map[string]string{"": "mds-survey"}},
	"moosefs-2017-single": {90, 5, v1alpha1.StatisticTrimmedMean, map[string]string{
		"iozone.recordSize=64Ki processes=4": "iozone -t 4 -r 64k -s 1048576k -i 0 -i 1 -i 2 -I -e",
	}},
	"moosefs-2017-distributed": {10, 5, v1alpha1.StatisticTrimmedMean, map[string]string{
		"iozone.recordSize=64Ki processes=32": "iozone -t 32 -r 64k -s 1048576k -i 0 -i 1 -i 2 -I -e -c -T -+n -+m $(HOSTS_FILE) -+h $(LAUNCHER_IP)",
	}},
}

func TestEveryExperimentHasTheRunsOfItsPaper(t *testing.T) {
	seen := map[string]bool{}
	for name, paper := range paperRuns {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			experiment, variant, _ := strings.Cut(name, "/")
			seen[experiment] = true
			run := runOf(t, experiment, variant)
			points, all := plans(g, &run)
			g.Expect(points).To(HaveLen(paper.points))
			g.Expect(max(run.Spec.Repetitions, 1)).To(Equal(paper.repetitions))
			if run.Spec.Statistic != "" {
				g.Expect(run.Spec.Statistic).To(Equal(paper.statistic))
			}
			found := map[string]string{}
			for i, p := range points {
				var key []string
				for _, n := range p.Varied {
					key = append(key, string(n)+"="+p.Parameters[n])
				}
				found[strings.Join(key, " ")] = strings.Join(all[i].Steps[0].Command.Argv, " ")
			}
			for key, command := range paper.commands {
				g.Expect(found).To(HaveKeyWithValue(key, ContainSubstring(command)))
			}
		})
	}
	for _, name := range everyExperiment(t) {
		NewWithT(t).Expect(seen).To(HaveKey(name), "no paper says what its runs are")
	}
}

// runOf returns the only run of an experiment, or the run of a suite's variant.
func runOf(t *testing.T, experiment, variant string) v1alpha1.BenchmarkRun {
	t.Helper()
	g := NewWithT(t)
	variants, err := load(t, experiment).Variants()
	g.Expect(err).NotTo(HaveOccurred())
	at := slices.IndexFunc(variants, func(v experiments.Variant) bool { return v.Name == variant })
	g.Expect(at).To(BeNumerically(">=", 0), variant)
	g.Expect(variants[at].Runs).To(HaveLen(1))
	return variants[at].Runs[0]
}

func TestTheItemsAreThoseThatThePapersCount(t *testing.T) {
	g := NewWithT(t)
	for _, variant := range []string{"1-instance", "4-instances"} {
		run := runOf(t, "beegfs-2015-multi-mds", variant)
		points, _ := plans(g, &run)
		for _, p := range points {
			items, err := benchmarks.ParseCount(p.Parameters["mdtest.items"])
			g.Expect(err).NotTo(HaveOccurred())
			processes, err := benchmarks.ParseCount(p.Parameters["processes"])
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(items*processes*(1+8+64)).To(Equal(int64(840960)), "all directories of each tree")
		}
	}
	for name, items := range map[string]int64{"lustre-2014-mdtest-low": 585760, "lustre-2014-mdtest-high": 4468960} {
		run := runOf(t, name, "lustre1")
		directories, level := int64(0), int64(1)
		for range run.Spec.Mdtest.Depth + 1 {
			directories, level = directories+level, level*int64(run.Spec.Mdtest.Branch)
		}
		g.Expect(int64(run.Spec.Processes)*int64(run.Spec.Mdtest.Items)*directories).To(Equal(items), name)
	}
	for number, variant := range map[int64]string{1: "01-node", 20: "20-nodes"} {
		run := runOf(t, "beegfs-2015-scale-out", variant)
		g.Expect(int64(run.Spec.Processes)*6000*(1+4+16)).To(Equal(number*4032000), variant)
	}
}

func TestTheRunsMeasureTheFileSystemBesideThem(t *testing.T) {
	for _, name := range everyExperiment(t) {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			e := load(t, name)
			g.Expect(e.Namespace).To(ContainSubstring("kind: Namespace"))
			variants, err := e.Variants()
			g.Expect(err).NotTo(HaveOccurred())
			for _, v := range variants {
				g.Expect(len(v.FileSystem.Name)).To(BeNumerically("<=", 40))
				g.Expect(v.Runs).NotTo(BeEmpty())
				for _, run := range v.Runs {
					g.Expect(len(run.Name)).To(BeNumerically("<=", 40), run.Name)
					g.Expect(run.Namespace).To(Equal(v.FileSystem.Namespace))
					g.Expect(run.Spec.Target.FileSystem.Name).To(Equal(v.FileSystem.Name))
					g.Expect(run.Spec.Clients.NodeSelector).To(Equal(v.FileSystem.Spec.Clients.NodeSelector))
					var pools []string
					for _, p := range v.FileSystem.Spec.StoragePools {
						pools = append(pools, p.Name)
					}
					if pool := run.Spec.Target.FileSystem.StoragePool; pool != "" {
						g.Expect(pools).To(ContainElement(pool))
					}
					if b := run.Spec.Baseline; b != nil {
						g.Expect(reference.Names()).To(ContainElement(b.Published))
					}
				}
			}
			if e.Suite != nil && e.Suite.Spec.Baseline != nil {
				g.Expect(reference.Names()).To(ContainElement(e.Suite.Spec.Baseline.Published))
			}
		})
	}
}

func TestThePointsOfTheMooseFSTablesAreThoseOfTheRuns(t *testing.T) {
	for name, unpublished := range map[string][]string{
		"moosefs-2017-single":      {"128Ki 16", "256Ki 16", "512Ki 16"},
		"moosefs-2017-distributed": nil,
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			run := runOf(t, name, "")
			points, _ := plans(g, &run)
			rows, err := reference.Published(name)
			g.Expect(err).NotTo(HaveOccurred())
			var published, ours []string
			for _, row := range rows {
				published = append(published, row.Parameters[0].Value+" "+row.Parameters[1].Value)
			}
			for _, p := range points {
				if key := p.Parameters["iozone.recordSize"] + " " + p.Parameters["processes"]; !slices.Contains(unpublished, key) {
					ours = append(ours, key)
				}
			}
			g.Expect(ours).To(Equal(published), "in the order of the table")
		})
	}
}

func TestAReducedExperimentIsSmallAndItsArithmeticStillDivides(t *testing.T) {
	for _, name := range everyExperiment(t) {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			e := load(t, name)
			g.Expect(experiments.Reduce(&e)).To(Succeed())
			variants, err := e.Variants()
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(len(variants)).To(BeNumerically("<=", 2))
			for _, v := range variants {
				for _, run := range v.Runs {
					points, all := plans(g, &run)
					g.Expect(len(points)).To(BeNumerically("<=", 6))
					for _, p := range all {
						g.Expect(p.Processes).To(BeNumerically("<=", 4))
						g.Expect(p.Demand.Bytes).To(BeNumerically("<=", 64<<20))
						g.Expect(p.Demand.Inodes).To(BeNumerically("<=", 5000))
					}
				}
			}
		})
	}
}
