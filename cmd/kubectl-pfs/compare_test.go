package main

import (
	"testing"

	. "github.com/onsi/gomega"

	"parallelfs.dev/operator/api/v1alpha1"
	"parallelfs.dev/operator/benchmarks/results"
)

func TestCompare(t *testing.T) {
	t.Run("names what is better and worse beyond the noise, of runs and files", func(t *testing.T) {
		g := NewWithT(t)
		pfs := on(t, runObjects(t, "after", 0.8))
		before := save(t, documentOf("before", "", 1))
		got := pfs("bench", "compare", before, "after")
		g.Expect(got.code).To(Equal(exitGood), got.stderr)
		g.Expect(got.stdout).To(MatchRegexp(`processes=4 +File creation +ops/s +3000 +2400 +-20\.0 % +worse`))
		g.Expect(pfs("bench", "compare", "after", before).stdout).To(MatchRegexp(`processes=4 +File creation +ops/s +2400 +3000 +\+25\.0 % +better`))
	})
	t.Run("ends with 3 when it was asked to fail, and something is worse", func(t *testing.T) {
		g := NewWithT(t)
		pfs := on(t, runObjects(t, "after", 0.8))
		before := save(t, documentOf("before", "", 1))
		got := pfs("bench", "compare", before, "after", "--fail-on-regression")
		g.Expect(got.code).To(Equal(exitRegression))
		g.Expect(got.stderr).To(ContainSubstring("3 of 3 values are worse, beyond the noise and by at least 3 %"))
		g.Expect(pfs("bench", "compare", "after", before, "--fail-on-regression").code).To(Equal(exitGood))
	})
	t.Run("does not fail for less than the tolerance", func(t *testing.T) {
		g := NewWithT(t)
		before, after := save(t, documentOf("before", "", 1)), save(t, documentOf("after", "", 0.8))
		got := on(t, nil)("bench", "compare", before, after, "--fail-on-regression", "--tolerance", "21")
		g.Expect(got.code).To(Equal(exitGood), got.stderr)
		g.Expect(got.stdout).To(ContainSubstring("below the tolerance"))
		g.Expect(on(t, nil)("bench", "compare", before, after, "--tolerance", "-1").code).To(Equal(exitUsage))
	})
	t.Run("refuses two that did not measure the same, and names what differs", func(t *testing.T) {
		g := NewWithT(t)
		other := documentOf("after", "", 0.8)
		other.Spec.Statistic = v1alpha1.StatisticMax
		other.Provenance.ToolVersion = "9.9"
		before := documentOf("before", "", 1)
		before.Provenance.ToolVersion = "3.3.0"
		a, b := save(t, before), save(t, other)
		got := on(t, nil)("bench", "compare", a, b)
		g.Expect(got.code).To(Equal(exitFailed))
		g.Expect(got.stdout).To(BeEmpty())
		g.Expect(got.stderr).To(And(ContainSubstring("Measured otherwise: spec.statistic is Mean in A and Max in B."), ContainSubstring("--allow-differences compares all the same")))
		got = on(t, nil)("bench", "compare", a, b, "--allow-differences")
		g.Expect(got.code).To(Equal(exitGood), got.stderr)
		g.Expect(got.stderr).To(And(ContainSubstring("spec.statistic is Mean in A and Max in B"), ContainSubstring("Differs: the tool's version is 3.3.0 in A and 9.9 in B.")))
	})
	t.Run("names the points that only one side has", func(t *testing.T) {
		g := NewWithT(t)
		shorter := documentOf("shorter", "", 1)
		shorter.Points = shorter.Points[:2]
		pfs := on(t, nil)
		a, b := save(t, documentOf("longer", "", 1)), save(t, shorter)
		g.Expect(pfs("bench", "compare", a, b).stderr).To(ContainSubstring("processes=4, of which only A has File creation in ops/s"))
		g.Expect(pfs("bench", "compare", b, a).stderr).To(ContainSubstring("processes=4, of which only B has File creation in ops/s"))
	})
	t.Run("is an error when nothing could be compared", func(t *testing.T) {
		g := NewWithT(t)
		other := documentOf("other", "", 1)
		for i := range other.Points {
			other.Points[i].Metrics[0].Unit = "files/s"
		}
		got := on(t, nil)("bench", "compare", save(t, documentOf("one", "", 1)), save(t, other), "--fail-on-regression")
		g.Expect(got.code).To(Equal(exitFailed))
		g.Expect(got.stderr).To(And(ContainSubstring("the unit of File creation is ops/s in A and files/s in B"), ContainSubstring("nothing was compared")))
	})
	t.Run("refuses a run beside a suite", func(t *testing.T) {
		g := NewWithT(t)
		_, err := pairsOf(document{name: "a", run: &results.Run{}}, document{name: "b", suite: &results.Suite{}})
		g.Expect(err).To(MatchError(ContainSubstring("compare two of the same kind")))
	})
	t.Run("takes suites variant by variant", func(t *testing.T) {
		g := NewWithT(t)
		suite := &results.Suite{Variants: []results.Variant{
			{Name: "xfs", Runs: []results.SuiteRun{{Name: "creates", Run: documentOf("x", "", 1)}}},
			{Name: "ext4", Runs: []results.SuiteRun{{Name: "creates", Run: documentOf("e", "", 1)}}},
		}}
		pairs, err := pairsOf(document{suite: suite}, document{suite: suite})
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(pairs).To(HaveLen(2))
		g.Expect(pairs[1].name).To(Equal("ext4/creates"))
		g.Expect(pairs[1].a.Name).To(Equal("e"))
	})
	t.Run("takes a published table", func(t *testing.T) {
		g := NewWithT(t)
		got := on(t, nil)("bench", "compare", "published/moosefs-2017-distributed", "published/moosefs-2017-distributed")
		g.Expect(got.code).To(Equal(exitGood), got.stderr)
		g.Expect(got.stdout).To(ContainSubstring("iozone.recordSize=4Ki"))
		g.Expect(on(t, nil)("bench", "compare", "published/nothing", "x.json").stderr).To(ContainSubstring("no published table"))
	})
}

func TestThePublishedTablesAreListedAndShown(t *testing.T) {
	g := NewWithT(t)
	for _, command := range [][]string{{"bench", "tables"}, {"baseline", "list"}} {
		got := on(t, nil)(command...)
		g.Expect(got.code).To(Equal(exitGood))
		g.Expect(got.stdout).To(MatchRegexp(`moosefs-2017-distributed +10 +read`))
	}
	g.Expect(on(t, nil)("bench", "tables", "moosefs-2017-distributed").stdout).To(ContainSubstring("iozone.recordSize=4Ki"))
	g.Expect(on(t, nil)("bench", "tables", "nothing").code).To(Equal(exitFailed))
}
