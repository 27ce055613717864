//go:build scale

package main

import "time"

// pace is how long a size is measured. Up to a hundred nodes, a person waits for the result, and all of it ends within ten minutes; 125 and
// 250 nodes together within half an hour.
type pace struct {
	// limit is the time for all of it; measurements that do not fit are cut off.
	limit time.Duration
	// runs is how many BenchmarkRuns are made, and runsFor how long they are measured.
	runs    int
	runsFor time.Duration
	// restartFor is how long servers are restarted. writeFor is how long programs write while that is measured, after they wrote for warmUp.
	restartFor, writeFor, warmUp time.Duration
}

// The most nodes that are measured quickly, and as thoroughly as half an hour for two sizes allows.
const quickNodes, usualNodes, manyNodes = 100, 250, 500

// ending is how long it takes, at most, to end what was started.
const ending = 15 * time.Second

func paceOf(nodes int) pace {
	p := pace{runs: 200, runsFor: 2 * time.Minute, restartFor: time.Minute, writeFor: time.Minute, warmUp: 15 * time.Second}
	switch {
	case nodes <= quickNodes:
		// Tests and programs are compiled in the rest of the ten minutes, where they were compiled before.
		return pace{
			limit: 9*time.Minute + 30*time.Second,
			runs:  50, runsFor: 40 * time.Second, restartFor: 20 * time.Second, writeFor: 30 * time.Second, warmUp: 10 * time.Second,
		}
	case nodes <= usualNodes:
		p.limit = 14*time.Minute + 30*time.Second
	case nodes <= manyNodes:
		p.limit = 30 * time.Minute
	default:
		p.limit = time.Hour
	}
	return p
}

// limitOf is the time for several sizes, one after the other.
func limitOf(sizes []int) time.Duration {
	var sum time.Duration
	for _, nodes := range sizes {
		sum += paceOf(nodes).limit
	}
	return sum
}
