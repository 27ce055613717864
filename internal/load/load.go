// Package load decides from the samples of the agents what limits a filesystem. It reads nothing.
package load

import (
	"cmp"
	"fmt"
	"maps"
	"slices"

	"parallelfs.dev/operator/api/v1alpha1"
	"parallelfs.dev/operator/benchmarks/telemetry"
)

// Kind is one kind of what can limit a filesystem.
type Kind string

// Kinds. Metadata is a disk or daemon of the metadata; Disk and CPU are those of all other servers.
const (
	Disk     Kind = "disk"
	Network  Kind = "network"
	CPU      Kind = "CPU"
	Metadata Kind = "metadata"
)

// Threshold is the used part of a thing from which it counts as the limit. Queues grow without bound near 1, so a server is slow before it.
const Threshold = 0.8

// Node is what a node can do; a value of 0 is unknown.
type Node struct {
	// CPUs is the number of the node's CPUs.
	CPUs int
	// BytesPerSecond is the speed of the fastest link that is up, in one direction.
	BytesPerSecond float64
}

// Input is what a filesystem did in some seconds.
type Input struct {
	Summaries []telemetry.Summary
	Nodes     map[string]Node
	// Metadata has the names of the StorageTargets with metadata.
	Metadata map[string]bool
	// IsMetadata is true for a daemon of the metadata, and OneThread for one whose work is done by one thread.
	IsMetadata, OneThread func(daemon string) bool
}

// Use is how much of one thing is used.
type Use struct {
	Kind Kind   `json:"kind"`
	Node string `json:"node"`
	// Name is a StorageTarget, a daemon, or "link".
	Name string `json:"name"`
	// Share is the used part, from 0 to 1.
	Share float64 `json:"share"`
	// Numbers has the measured values in words.
	Numbers string `json:"numbers"`
}

// Verdict is what limits a filesystem.
type Verdict struct {
	// Limit is the kind that limits it; empty if the servers have reserves.
	Limit Kind   `json:"limit,omitempty"`
	Why   string `json:"why"`
	// Uses has the most used thing of each kind, the most used first, and All every thing in the same order.
	Uses []Use `json:"uses"`
	All  []Use `json:"-"`
	// Unknown lists what could not be read.
	Unknown []string `json:"unknown,omitempty"`
}

// Judge decides what limits a filesystem: the most used thing, if it is used to the Threshold.
func Judge(in Input) Verdict {
	var out Verdict
	moved, used := map[string]telemetry.Summary{}, map[string]float64{}
	for _, s := range in.Summaries {
		node := in.Nodes[s.Node]
		switch {
		case s.Problem != "":
			out.Unknown = append(out.Unknown, s.Node+": "+s.Problem)
		case s.Target != "":
			kind := Disk
			if in.Metadata[s.Target] {
				kind = Metadata
			}
			out.All = append(out.All, Use{kind, s.Node, s.Target, s.Utilization, fmt.Sprintf("busy %s of the time (at most %s), queue %.1f, reads %s/s, writes %s/s",
				percent(s.Utilization), percent(s.MaxUtilization), s.Queue, bytes(s.ReadBytesPerSecond), bytes(s.WriteBytesPerSecond))})
			sum := moved[s.Node]
			sum.ReadBytesPerSecond += s.ReadBytesPerSecond
			sum.WriteBytesPerSecond += s.WriteBytesPerSecond
			moved[s.Node] = sum
		default:
			used[s.Node] += s.CPUs
			kind, most, of := CPU, node.CPUs, fmt.Sprintf("%d CPUs", node.CPUs)
			if in.IsMetadata(s.Daemon) {
				kind = Metadata
			}
			if in.OneThread(s.Daemon) {
				most, of = 1, "the 1 that its thread can use"
			}
			if most > 0 {
				numbers := fmt.Sprintf("uses %.1f CPUs (at most %.1f) of %s", s.CPUs, s.MaxCPUs, of)
				out.All = append(out.All, Use{kind, s.Node, s.Daemon, s.CPUs / float64(most), numbers})
			}
		}
	}
	for _, name := range slices.Sorted(maps.Keys(moved)) {
		if speed := in.Nodes[name].BytesPerSecond; speed > 0 {
			most := max(moved[name].ReadBytesPerSecond, moved[name].WriteBytesPerSecond)
			out.All = append(out.All, Use{Network, name, "link", most / speed, fmt.Sprintf("its disks move %s/s in one direction, and its link %s/s",
				bytes(most), bytes(speed))})
		}
	}
	for _, name := range slices.Sorted(maps.Keys(used)) {
		if cpus := in.Nodes[name].CPUs; cpus > 0 {
			numbers := fmt.Sprintf("use %.1f of %d CPUs", used[name], cpus)
			out.All = append(out.All, Use{CPU, name, "all daemons", used[name] / float64(cpus), numbers})
		}
	}
	slices.SortStableFunc(out.All, func(a, b Use) int { return cmp.Compare(b.Share, a.Share) })
	for _, u := range out.All {
		if !slices.ContainsFunc(out.Uses, func(o Use) bool { return o.Kind == u.Kind }) {
			out.Uses = append(out.Uses, u)
		}
	}
	out.decide()
	return out
}

// decide names the limit from the uses.
func (v *Verdict) decide() {
	if len(v.Uses) == 0 {
		v.Why = "no agent has figures of this filesystem's disks and daemons"
		return
	}
	most := v.Uses[0]
	if most.Share < Threshold {
		v.Why = fmt.Sprintf("the servers have reserves: nothing of them is used by more than %s. The limit is outside of them: the clients, "+
			"the network between, or too few requests at the same time", percent(most.Share))
		return
	}
	alike, full := 0, 0
	for _, u := range v.All {
		if u.Kind == most.Kind {
			alike++
			if u.Share >= Threshold {
				full++
			}
		}
	}
	v.Limit = most.Kind
	v.Why = fmt.Sprintf("%s on node %s is used by %s: %s. Used by %s or more: %d of %d of this kind", most.Name, most.Node, percent(most.Share),
		most.Numbers, percent(Threshold), full, alike)
}

func percent(share float64) string { return fmt.Sprintf("%.0f %%", 100*share) }

func bytes(n float64) string { return v1alpha1.Bytes(int64(n)) }
