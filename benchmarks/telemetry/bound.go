package telemetry

import (
	"cmp"
	"fmt"
	"slices"
)

// others is the name for disks and daemons that are counted without names.
const others = "others"

// Bound keeps the figures of the busiest disks and daemons, and of the first nodes without figures. The others are merged into one Summary
// for the disks, one for the daemons and one for the nodes, so that the totals are preserved. Half of the limit is for disks, a quarter for
// daemons and a quarter for nodes without figures. The limit is at least 8.
func Bound(summaries []Summary, most int) []Summary {
	var disks, daemons, silent []Summary
	for _, s := range summaries {
		switch {
		case s.Problem != "":
			silent = append(silent, s)
		case s.Target != "":
			disks = append(disks, s)
		default:
			daemons = append(daemons, s)
		}
	}
	const half, quarter = 2, 4
	if len(disks) <= most/half && len(daemons) <= most/quarter && len(silent) <= most/quarter {
		return summaries
	}
	out := slices.Concat(
		busiestOf(disks, most/half, Summary{Node: others, Target: others}, func(s Summary) float64 { return s.Utilization }),
		busiestOf(daemons, most/quarter, Summary{Node: others, Daemon: others}, func(s Summary) float64 { return s.CPUs }),
	)
	if limit := most / quarter; len(silent) > limit {
		left := len(silent) - limit + 1
		silent = append(silent[:limit-1:limit-1], Summary{Node: fmt.Sprintf("%d more nodes", left), Problem: "no figures of them either"})
	}
	return append(out, silent...)
}

// busiestOf keeps the busiest in their original order, and merges the rest.
func busiestOf(all []Summary, most int, rest Summary, use func(Summary) float64) []Summary {
	if len(all) <= most {
		return all
	}
	byUse := make([]int, len(all))
	for i := range byUse {
		byUse[i] = i
	}
	slices.SortStableFunc(byUse, func(a, b int) int { return cmp.Compare(use(all[b]), use(all[a])) })
	kept := byUse[:most-1]
	slices.Sort(kept)
	out := make([]Summary, 0, most)
	for _, i := range kept {
		out = append(out, all[i])
	}
	for _, i := range byUse[most-1:] {
		rest = rest.plus(all[i])
	}
	return append(out, rest)
}

// plus merges another Summary into one for several.
func (s Summary) plus(one Summary) Summary {
	n, m := float64(s.Count), float64(one.number())
	average := func(a, b float64) float64 { return (a*n + b*m) / (n + m) }
	s.Count += one.number()
	s.Seconds, s.Samples = average(s.Seconds, one.Seconds), max(s.Samples, one.Samples)
	s.Utilization, s.MaxUtilization = average(s.Utilization, one.Utilization), max(s.MaxUtilization, one.MaxUtilization)
	s.ReadIOPS, s.WriteIOPS = average(s.ReadIOPS, one.ReadIOPS), average(s.WriteIOPS, one.WriteIOPS)
	s.ReadBytesPerSecond = average(s.ReadBytesPerSecond, one.ReadBytesPerSecond)
	s.WriteBytesPerSecond = average(s.WriteBytesPerSecond, one.WriteBytesPerSecond)
	s.Queue = average(s.Queue, one.Queue)
	s.CPUs, s.MaxCPUs = average(s.CPUs, one.CPUs), max(s.MaxCPUs, one.MaxCPUs)
	return s
}

// number returns the number of disks or daemons in a Summary.
func (s Summary) number() int { return max(s.Count, 1) }
