// Package members counts the servers and targets of a filesystem, and finds those that a run uses. Its results are no larger for a
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

// Members holds the servers and the targets of a filesystem, as the filesystem reports them. A run counts all of them, and names those that
// it uses.
type Members struct {
	Servers []results.Server
	Targets []results.Target
	// nodes holds the objects that they were read from.
	nodes []v1alpha1.FileSystemNode
}

// FileSystemNodes returns those of the filesystem, by node. They are shared and read-only.
func (m Members) FileSystemNodes() []v1alpha1.FileSystemNode { return m.nodes }

// Nodes returns those with servers or targets, sorted.
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

// NodesOf returns those with servers of a role, sorted.
func (m Members) NodesOf(role v1alpha1.Role) []string {
	nodes := map[string]bool{}
	for i := range m.Servers {
		if m.Servers[i].Role == role {
			nodes[m.Servers[i].Node] = true
		}
	}
	return slices.Sorted(maps.Keys(nodes))
}

// Of returns the members that a run in these pools uses: the targets of the pools and their servers, and everything that serves every pool.
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

// MaxMembers is how many servers, and how many targets, the complete results describe individually. The counts include all of them.
const MaxMembers = 64

// First returns the first members in their order.
func (m Members) First(most int) Members {
	return Members{Servers: m.Servers[:min(len(m.Servers), most)], Targets: m.Targets[:min(len(m.Targets), most)]}
}

// maxCounts is the limit of status.provenance.serverCounts.
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

// Hash returns a hash of all members: their names, nodes, versions and CPUs. It leaves out values that change without an action, such as
// used space.
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
