// Package members counts the servers and targets of a filesystem, and finds those that a run uses. What it says is no larger for a
// filesystem of a thousand nodes than for one of ten.
package members

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"maps"
	"slices"
	"strings"

	"parallelfs.dev/operator/api/v1alpha1"
	"parallelfs.dev/operator/benchmarks/results"
)

// Members are the servers and the targets of a filesystem, as it sees them itself. A run counts them all, and names those that it uses.
type Members struct {
	Servers []results.Server
	Targets []results.Target
	// nodes are the objects that they were read from.
	nodes []v1alpha1.FileSystemNode
}

// FileSystemNodes are those of the filesystem, by node. They are shared, and only to be read.
func (m Members) FileSystemNodes() []v1alpha1.FileSystemNode { return m.nodes }

// Nodes are those with servers or targets, sorted.
func (m Members) Nodes() []string {
	nodes := map[string]bool{}
	for i := range m.Servers {
		nodes[m.Servers[i].Node] = true
	}
	for i := range m.Targets {
		nodes[m.Targets[i].Node] = true
	}
	return slices.Sorted(maps.Keys(nodes))
}

// NodesOf are those with servers of a role, sorted.
func (m Members) NodesOf(role v1alpha1.Role) []string {
	nodes := map[string]bool{}
	for i := range m.Servers {
		if m.Servers[i].Role == role {
			nodes[m.Servers[i].Node] = true
		}
	}
	return slices.Sorted(maps.Keys(nodes))
}

// Of are the members that a run in these pools uses: the targets of the pools and their servers, and all that serves every pool.
func (m Members) Of(pools []string) Members {
	var out Members
	for i := range m.Servers {
		if s := &m.Servers[i]; s.Role != v1alpha1.RoleStorage || s.StoragePool == "" || slices.Contains(pools, s.StoragePool) {
			out.Servers = append(out.Servers, *s)
		}
	}
	for i := range m.Targets {
		if t := &m.Targets[i]; slices.Contains(pools, t.StoragePool) {
			out.Targets = append(out.Targets, *t)
		}
	}
	return out
}

// MaxMembers is how many servers, and how many targets, the complete results describe each; they count all.
const MaxMembers = 64

// First are the first of them by their order.
func (m Members) First(most int) Members {
	return Members{Servers: m.Servers[:min(len(m.Servers), most)], Targets: m.Targets[:min(len(m.Targets), most)]}
}

// maxCounts is that of status.provenance.serverCounts.
const maxCounts = 64

// ServerCounts counts the servers by role, pool and version, sorted by these.
func (m Members) ServerCounts() []v1alpha1.ServerCount {
	counts := map[v1alpha1.ServerCount]int32{}
	for i := range m.Servers {
		s := &m.Servers[i]
		counts[v1alpha1.ServerCount{Role: s.Role, StoragePool: s.StoragePool, Version: s.Version}]++
	}
	out := make([]v1alpha1.ServerCount, 0, len(counts))
	for kind, count := range counts {
		kind.Count = count
		out = append(out, kind)
	}
	slices.SortFunc(out, func(a, b v1alpha1.ServerCount) int {
		key := func(c v1alpha1.ServerCount) []string { return []string{string(c.Role), c.StoragePool, c.Version} }
		return slices.Compare(key(a), key(b))
	})
	return out[:min(len(out), maxCounts)]
}

// TargetCounts counts the targets by pool, sorted by it.
func (m Members) TargetCounts() []v1alpha1.TargetCount {
	counts := map[string]v1alpha1.TargetCount{}
	for i := range m.Targets {
		c := counts[m.Targets[i].StoragePool]
		c.StoragePool, c.Count, c.CapacityBytes = m.Targets[i].StoragePool, c.Count+1, c.CapacityBytes+m.Targets[i].CapacityBytes
		counts[c.StoragePool] = c
	}
	out := slices.Collect(maps.Values(counts))
	slices.SortFunc(out, func(a, b v1alpha1.TargetCount) int { return strings.Compare(a.StoragePool, b.StoragePool) })
	return out[:min(len(out), maxCounts)]
}

// Hash is one of all members: which they are, where they are, what they are and to which CPUs they are bound. What changes while nobody
// changes them, such as used space, is left out.
func (m Members) Hash() string {
	if len(m.Servers)+len(m.Targets) == 0 {
		return ""
	}
	sum := sha256.New()
	for i := range m.Servers {
		s := m.Servers[i]
		s.State, s.Message, s.Address = "", "", ""
		if p := s.Placement; p != nil {
			s.Placement = &v1alpha1.Placement{CPUs: p.CPUs, NUMANodes: p.NUMANodes, MemoryPolicy: p.MemoryPolicy}
		}
		sum.Write(encode(s))
	}
	for i := range m.Targets {
		t := m.Targets[i]
		t.State, t.Removal, t.Message, t.UsedBytes, t.CapacityBytes = "", "", "", 0, 0
		sum.Write(encode(t))
	}
	return hex.EncodeToString(sum.Sum(nil))
}

func encode(member any) []byte {
	raw, err := json.Marshal(member)
	if err != nil {
		panic(err) // it holds texts and numbers only
	}
	return append(raw, '\n')
}
