package reference_test

import (
	"math"
	"testing"

	. "github.com/onsi/gomega"

	"parallelfs.dev/operator/api/v1alpha1"
	"parallelfs.dev/operator/benchmarks"
	"parallelfs.dev/operator/benchmarks/reference"
	"parallelfs.dev/operator/benchmarks/results"
)

func TestEveryTableCanBeReadAndNamesItsSource(t *testing.T) {
	NewWithT(t).Expect(len(reference.Names())).To(BeNumerically(">", 8))
	for _, name := range reference.Names() {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			points, err := reference.Published(name)
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(points).NotTo(BeEmpty())
			g.Expect(reference.Source(name)).To(MatchRegexp(`20\d\d`), "the year")
			for _, p := range points {
				g.Expect(p.Metrics).NotTo(BeEmpty())
				g.Expect(p.Parameters).NotTo(BeEmpty())
				for _, m := range p.Metrics {
					g.Expect(m.Min).To(BeNumerically("<=", m.Value))
					g.Expect(m.Max).To(BeNumerically(">=", m.Value))
					g.Expect(m.Unit).NotTo(BeEmpty())
				}
			}
		})
	}
}

func TestTheTablesHoldWhatWasPublished(t *testing.T) {
	type row struct {
		points     int
		parameters []results.Value
		metric     string
		unit       string
		value      float64
	}
	for name, test := range map[string]row{
		"moosefs-2017-single":      {87, []results.Value{{Name: "iozone.recordSize", Value: "2048Ki"}, {Name: "processes", Value: "16"}}, "randomWrite", "IOPS", 1401},
		"moosefs-2017-distributed": {10, []results.Value{{Name: "iozone.recordSize", Value: "2048Ki"}, {Name: "processes", Value: "32"}}, "read", "kB/s", 18247 * 1024},
		"beegfs-2015-scale-out":    {2, []results.Value{{Name: "processes", Value: "640"}}, "File stat", "ops/s", 6419445},
		"netapp-tr4782-mdtest":     {1, []results.Value{{Name: "processes", Value: "24"}}, "Directory stat", "ops/s", 153373.768},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			points, err := reference.Published(name)
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(points).To(HaveLen(test.points))
			g.Expect(points[len(points)-1]).To(SatisfyAll(
				HaveField("Parameters", Equal(test.parameters)),
				HaveField("Metrics", ContainElement(SatisfyAll(
					HaveField("Name", test.metric), HaveField("Unit", test.unit), HaveField("Value", test.value))))))
		})
	}
	g := NewWithT(t)
	points, err := reference.Published("netapp-tr4782-mdtest")
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(points[0].Metrics[0].Samples).To(Equal(5))
	g.Expect(points[0].Metrics[0].StdDev).To(HaveValue(BeNumerically("~", 567.358*math.Sqrt(5.0/4), 1e-9)), "printed of all five, and here of a sample")
	g.Expect(points[0].Metrics[0].Min).To(Equal(16393.441))
	g.Expect(points[0].State).To(Equal(v1alpha1.PointSucceeded))
}

func TestPublishedIOPSFollowFromTheThroughput(t *testing.T) {
	for _, table := range []string{"moosefs-2017-single", "moosefs-2017-distributed"} {
		g := NewWithT(t)
		points, err := reference.Published(table)
		g.Expect(err).NotTo(HaveOccurred())
		for _, p := range points {
			record, err := benchmarks.ParseSize(p.Parameters[0].Value)
			g.Expect(err).NotTo(HaveOccurred())
			for i := 0; i < len(p.Metrics); i += 2 {
				// The throughput was rounded to whole MB/s, with 1 MB = 1024 kB.
				perMB := float64(1<<20) / float64(record)
				g.Expect(p.Metrics[i+1].Value).To(BeNumerically("~", p.Metrics[i].Value/1024*perMB, perMB*0.51+1), "%s %v", p.Metrics[i].Name, p.Parameters)
			}
		}
	}
}

func TestATableThatIsNotThereIsRefusedWithThoseThatAre(t *testing.T) {
	g := NewWithT(t)
	points, err := reference.Published("nothing")
	g.Expect(err).To(MatchError(ContainSubstring(`there is no published table "nothing"; there are beegfs-2015-backend, `)))
	g.Expect(points).To(BeNil())
	g.Expect(reference.Source("nothing")).To(BeEmpty())
}

func TestATableHasNoNumberOfSamplesIfItsSourceHasNone(t *testing.T) {
	g := NewWithT(t)
	for table, want := range map[string]int{"moosefs-2017-single": 5, "beegfs-2015-scale-out": 3, "netapp-tr4782": 0, "lustre-2014-mdtest-low": 0} {
		points, err := reference.Published(table)
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(points[0].Metrics[0].Samples).To(Equal(want), table)
	}
}

// One instance does "even better" than 130,000 stats; the exact number was never published.
func TestUnpublishedFiguresAreInNoTable(t *testing.T) {
	g := NewWithT(t)
	one, err := reference.Baseline("beegfs-2015-multi-mds", "1-instance")
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(one.Points[0].Metric("File creation", "ops/s")).NotTo(BeNil())
	g.Expect(one.Points[0].Metric("File stat", "ops/s")).To(BeNil())
	_, err = reference.Baseline("beegfs-2015-multi-mds", "2-instances")
	g.Expect(err).To(MatchError(ContainSubstring("has nothing of 2-instances; it has the variants 1-instance, 4-instances")))
}
