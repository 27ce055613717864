//go:build scale

package main

import (
	"fmt"
	"math"
)

const (
	// goalNodes is the size for which goals are set, unless they apply to any size.
	goalNodes = 1000
	// mostExponent is the goal for the growth of a quantity in proportion to the size.
	mostExponent = 1.1
	// leastSpread is the least ratio of the largest to the smallest size, so that growth is judged and not chance.
	leastSpread = 2
	// perNodeFrom is the least number of nodes for which writes for each node are judged. The objects of the filesystem and of its metadata
	// are divided by the nodes as well; for ten nodes, these are more than one write each.
	perNodeFrom = 100
	// objectKiB is the goal for an object of any kind, inventoryKiB for a NodeInventory.
	objectKiB, inventoryKiB = 64, 256
)

// goal is the most that a quantity may be.
type goal struct {
	most float64
	// always is true for a goal that applies to any size. Another goal applies to a thousand nodes: no smaller filesystem may exceed it
	// either, and larger ones are not judged.
	always bool
	// least is the number of nodes from which on it is judged.
	least int
}

// missed is true for a value that is too large for so many nodes. A value that was not measured is not too large.
func (g *goal) missed(nodes int, value float64) bool {
	return g != nil && nodes >= g.least && (g.always || nodes <= goalNodes) && value > g.most
}

// String is its form in a table.
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

// growth is the exponent of a column, NaN without one, and whether it is too large.
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

// missed lists the missed goals, a sentence each. A size whose measurement was cut off has missed them.
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
