//go:build scale

package main

import (
	"fmt"
	"math"
)

const (
	// goalNodes is the size that goals are set for, unless they hold at any.
	goalNodes = 1000
	// mostExponent is the goal for the growth of what is in proportion to the size.
	mostExponent = 1.1
	// leastSpread is how many times the smallest size the largest one has to be, so that growth is judged and not chance.
	leastSpread = 2
	// perNodeFrom is the least number of nodes for which writes for each node are judged: what is made once for a filesystem, and for its
	// metadata, is divided by them as well, and is more than a write for each of ten nodes.
	perNodeFrom = 100
	// objectKiB is the goal for an object of any kind, inventoryKiB for a NodeInventory.
	objectKiB, inventoryKiB = 64, 256
)

// goal is the most that a quantity may be.
type goal struct {
	most float64
	// always is true for one that holds at any size. Another one is that of a thousand nodes: no smaller filesystem may have more either, and
	// of a larger one it says nothing.
	always bool
	// least is the number of nodes from which on it is judged.
	least int
}

// missed is true for a value that is too large for so many nodes. What was not measured is not too large.
func (g *goal) missed(nodes int, value float64) bool {
	return g != nil && nodes >= g.least && (g.always || nodes <= goalNodes) && value > g.most
}

// String is how a table shows it.
func (g *goal) String() string {
	if g == nil {
		return ""
	}
	return fmt.Sprintf("≤ %g", g.most)
}

// sizeGoal is the goal for objects of a kind.
func sizeGoal(kind string) *goal {
	if kind == "NodeInventory" {
		return &goal{most: inventoryKiB, always: true}
	}
	return &goal{most: objectKiB, always: true}
}

// growth is the exponent of a column, NaN where it has none, and whether it is too large.
func growth(results []*Result, c shown) (exponent float64, missed bool) {
	exponent = exponentOf(results, c.of)
	least, most := math.Inf(1), 0.0
	for _, r := range results {
		if v := c.of(r); v > 0 {
			least, most = min(least, float64(r.Nodes)), max(most, float64(r.Nodes))
		}
	}
	return exponent, c.grows && most >= leastSpread*least && exponent > mostExponent
}

// missed says what goals were missed, a sentence each. A size that was not measured to its end has missed them.
func missed(results []*Result, all []sheet) []string {
	var out []string
	for _, r := range results {
		if r.Stopped != "" {
			out = append(out, fmt.Sprintf("%d nodes: not measured to the end", r.Nodes))
		}
	}
	for _, s := range all {
		for _, c := range s.columns {
			where := s.title + ", " + c.head
			for _, r := range results {
				switch v := c.of(r); {
				case c.goal.missed(r.Nodes, v):
					out = append(out, fmt.Sprintf("%d nodes: %s: %s, and the goal is %s", r.Nodes, where, figure(v), c.goal))
				case math.IsNaN(v) && c.goal != nil && r.Stopped == "":
					out = append(out, fmt.Sprintf("%d nodes: %s: not measured, and the goal is %s", r.Nodes, where, c.goal))
				}
			}
			if e, missed := growth(results, c); missed {
				out = append(out, fmt.Sprintf("%s: grows with N^%s, and the goal is ≤ N^%g", where, figure(e), mostExponent))
			}
		}
	}
	return out
}
