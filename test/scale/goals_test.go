//go:build scale

package main

import (
	"context"
	"path/filepath"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
)

// whole is the complete result of a size that meets all goals.
func whole(nodes int) *Result {
	r := newResult(nodes)
	for _, t := range tables {
		for _, c := range t.columns {
			r.set(c, 0)
			if c.goal != nil {
				r.set(c, c.goal.most)
			}
		}
	}
	r.Largest["FileSystem"], r.AtWorst["FileSystem"], r.AtWorst["NodeInventory"] = objectKiB, objectKiB, inventoryKiB
	return r
}

func TestASizeThatReachesItsGoalsMissesNone(t *testing.T) {
	g := NewWithT(t)
	var out strings.Builder
	d := newDocument([]*Result{whole(125), whole(1000)})
	g.Expect(d.Missed).To(BeEmpty())
	g.Expect(d.judge()).To(Succeed())
	g.Expect(d.print(&out)).To(Succeed())
	g.Expect(out.String()).To(ContainSubstring("No goal was missed."))
	g.Expect(out.String()).NotTo(ContainSubstring(mark))
}

func TestAGoalThatIsMissedIsMarkedAndNamedAndFailsTheRun(t *testing.T) {
	cases := map[string]struct {
		nodes  int
		change func(r *Result)
		// want is the expected sentence, empty for none, and cell the text in the table.
		want, cell string
	}{
		"writes for each target, at any size": {
			125, func(r *Result) { r.set(writesPerTarget, 3.2) }, "125 nodes: From apply to Ready, writes/target: 3.20, and the goal is ≤ 3", "3.20 !",
		},
		"the manager's CPU seconds, of more than a thousand nodes": {1250, func(r *Result) { r.set(managerSeconds, 150) }, "", "150"},
		"the manager's CPU seconds, of fewer nodes": {
			250, func(r *Result) { r.set(managerSeconds, 121) }, "250 nodes: From apply to Ready, manager CPU s: 121, and the goal is ≤ 120", "121 !",
		},
		"writes for each node": {
			125, func(r *Result) { r.set(writesPerNode, 4.7) }, "125 nodes: From apply to Ready, writes/node: 4.70, and the goal is ≤ 4", "4.70 !",
		},
		"writes for each of a few nodes": {10, func(r *Result) { r.set(writesPerNode, 4.7) }, "", "4.70"},
		"a pass that makes objects":      {125, func(r *Result) { r.set(readyP99, 9700) }, "", "9700"},
		"a write while nothing happens": {
			125, func(r *Result) { r.set(idle.writes, 1.0/60) }, "125 nodes: An idle minute, writes/s: 0.02, and the goal is ≤ 0", "0.02 !",
		},
		"a dead disk that is noticed late": {
			125, func(r *Result) { r.set(lossSeconds, 15.1) },
			"125 nodes: A disk dies, seconds until the status shows it: 15.1, and the goal is ≤ 15", "15.1 !",
		},
		"two failure domains at a time": {
			125, func(r *Result) { r.set(restartDomains, 2) },
			"125 nodes: Storage servers are restarted, failure domains away at a time: 2.00, and the goal is ≤ 1", "2.00 !",
		},
		"an object that is too large while something is wrong": {
			125, func(r *Result) { r.AtWorst["Job"] = 64.1 }, "125 nodes: Largest object in KiB, at worst, Job: 64.1, and the goal is ≤ 64", "64.1 !",
		},
		"a NodeInventory of twice that": {125, func(r *Result) { r.AtWorst["NodeInventory"] = 128 }, "", "128"},
		"a quantity that was not measured": {
			125, func(r *Result) { delete(r.Measured, lossWrites.name) }, "125 nodes: A disk dies, writes: not measured, and the goal is ≤ 6", "-",
		},
		"a size that was cut off": {
			125, func(r *Result) { *r = *cutOff(125) }, "125 nodes: not measured to the end", "-",
		},
	}
	for sentence, c := range cases {
		t.Run(sentence, func(t *testing.T) {
			g := NewWithT(t)
			r := whole(c.nodes)
			c.change(r)
			var out strings.Builder
			d := newDocument([]*Result{r})
			g.Expect(d.print(&out)).To(Succeed())
			g.Expect(out.String()).To(MatchRegexp(`(?m)^ *%d .*  %s(  |$)`, c.nodes, c.cell))
			if c.want == "" {
				g.Expect(d.Missed).To(BeEmpty())
				g.Expect(d.judge()).To(Succeed())
				return
			}
			g.Expect(d.Missed).To(ConsistOf(c.want))
			g.Expect(d.judge()).To(MatchError(ContainSubstring("goals that were missed: 1")))
			g.Expect(out.String()).To(ContainSubstring("Goals that were missed: 1\n  " + c.want + "\n"))
		})
	}
}

func TestSizesForWhichNoTimeWasLeftHaveMissedTheirGoals(t *testing.T) {
	g := NewWithT(t)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	var out strings.Builder
	o := options{reports: t.TempDir()}
	g.Expect(measureAll(ctx, &out, []int{125, 250}, o)).To(MatchError(ContainSubstring("goals that were missed: 2")))
	for _, sentence := range []string{"125 nodes: not measured to the end", "250 nodes: not measured to the end"} {
		g.Expect(out.String()).To(ContainSubstring(sentence))
	}
	g.Expect(filepath.Join(o.reports, "scale.json")).To(BeAnExistingFile())
}

func TestGrowthIsJudgedOfWhatASizeAddsUpAndNotOfChance(t *testing.T) {
	grown := func(c column, nodes int, least, most float64) []string {
		small, large := whole(125), whole(nodes)
		small.set(c, least)
		large.set(c, most)
		return newDocument([]*Result{small, large}).Missed
	}
	g := NewWithT(t)
	g.Expect(grown(managerSeconds, 250, 10, 21)).To(BeEmpty())
	g.Expect(grown(managerSeconds, 250, 10, 22)).To(ConsistOf("From apply to Ready, manager CPU s: grows with N^1.14, and the goal is ≤ N^1.1"))
	g.Expect(grown(managerSeconds, 200, 10, 40)).To(BeEmpty(), "the sizes are too close")
	g.Expect(grown(idle.p99, 250, 10, 40)).To(BeEmpty(), "it is the slowest of a few passes")
}
