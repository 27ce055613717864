package reference_test

import (
	"testing"

	. "github.com/onsi/gomega"

	"parallelfs.dev/operator/api/v1alpha1"
	"parallelfs.dev/operator/benchmarks"
	"parallelfs.dev/operator/benchmarks/reference"
)

func TestLoadReadsTheTablesAsPublished(t *testing.T) {
	for table, test := range map[string]struct {
		rows int
		last reference.Row
	}{
		reference.MooseFSSingle: {87, reference.Row{
			Parameters: map[v1alpha1.SweepName]string{"iozone.recordSize": "2048k", "processes": "16"},
			Figures: []benchmarks.Sample{
				{Name: "read", Unit: "MB/s", Value: 3380}, {Name: "read", Unit: "IOPS", Value: 1690},
				{Name: "write", Unit: "MB/s", Value: 2824}, {Name: "write", Unit: "IOPS", Value: 1412},
				{Name: "randomRead", Unit: "MB/s", Value: 3899}, {Name: "randomRead", Unit: "IOPS", Value: 1950},
				{Name: "randomWrite", Unit: "MB/s", Value: 2803}, {Name: "randomWrite", Unit: "IOPS", Value: 1401},
			},
		}},
		reference.MooseFSDistributed: {10, reference.Row{
			Parameters: map[v1alpha1.SweepName]string{"iozone.recordSize": "2048k", "processes": "32"},
			Figures: []benchmarks.Sample{
				{Name: "read", Unit: "MB/s", Value: 18247}, {Name: "read", Unit: "IOPS", Value: 9123},
				{Name: "write", Unit: "MB/s", Value: 7565}, {Name: "write", Unit: "IOPS", Value: 3783},
				{Name: "randomRead", Unit: "MB/s", Value: 10424}, {Name: "randomRead", Unit: "IOPS", Value: 5212},
				{Name: "randomWrite", Unit: "MB/s", Value: 4950}, {Name: "randomWrite", Unit: "IOPS", Value: 2475},
			},
		}},
	} {
		t.Run(table, func(t *testing.T) {
			g := NewWithT(t)
			rows, err := reference.Load(table)
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(rows).To(HaveLen(test.rows))
			g.Expect(rows[len(rows)-1]).To(Equal(test.last))
		})
	}
}

func TestPublishedIOPSFollowFromTheThroughput(t *testing.T) {
	for _, table := range []string{reference.MooseFSSingle, reference.MooseFSDistributed} {
		g := NewWithT(t)
		rows, err := reference.Load(table)
		g.Expect(err).NotTo(HaveOccurred())
		for _, row := range rows {
			record, err := benchmarks.ParseSize(row.Parameters["iozone.recordSize"])
			g.Expect(err).NotTo(HaveOccurred())
			for i := 0; i < len(row.Figures); i += 2 {
				// The throughput was rounded to a whole number of MB/s, of 1024 kB.
				perMB := float64(1<<20) / float64(record)
				g.Expect(row.Figures[i+1].Value).To(BeNumerically("~", row.Figures[i].Value*perMB, perMB*0.51+1), "%s %v", row.Figures[i].Name, row.Parameters)
			}
		}
	}
}

func TestLoadRefusesATableThatIsNotThere(t *testing.T) {
	g := NewWithT(t)
	rows, err := reference.Load("nothing")
	g.Expect(err).To(MatchError(ContainSubstring(`there is no table "nothing"`)))
	g.Expect(rows).To(BeNil())
}
