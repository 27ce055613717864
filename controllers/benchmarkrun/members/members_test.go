package members

import (
	"fmt"
	"testing"

	. "github.com/onsi/gomega"

	"parallelfs.dev/operator/api/v1alpha1"
	"parallelfs.dev/operator/benchmarks/results"
)

// three returns three nodes with a metadata server, a storage server and four disks of the pool ssd each, and one node with a disk of bulk.
func three() Members {
	var out Members
	for i := range 3 {
		node := fmt.Sprintf("oss%d", i)
		out.Servers = append(out.Servers,
			results.Server{Name: "meta-" + node, Role: v1alpha1.RoleMetadata, Node: node, Version: "8.3.1", Placement: &v1alpha1.Placement{CPUs: "0-7"}},
			results.Server{Name: "ssd-" + node, Role: v1alpha1.RoleStorage, StoragePool: "ssd", Node: node, Version: "8.3.1"})
		for d := range 4 {
			out.Targets = append(out.Targets, results.Target{Name: fmt.Sprintf("%s-%d", node, d), Node: node, StoragePool: "ssd", CapacityBytes: 1 << 40})
		}
	}
	out.Servers = append(out.Servers, results.Server{Name: "bulk-oss9", Role: v1alpha1.RoleStorage, StoragePool: "bulk", Node: "oss9", Version: "8.3.0"})
	out.Targets = append(out.Targets, results.Target{Name: "oss9-0", Node: "oss9", StoragePool: "bulk", CapacityBytes: 16 << 40})
	return out
}

func TestAllMembersAreCounted(t *testing.T) {
	g := NewWithT(t)
	g.Expect(three().ServerCounts()).To(Equal([]v1alpha1.ServerCount{
		{Role: v1alpha1.RoleMetadata, Version: "8.3.1", Count: 3}, {Role: v1alpha1.RoleStorage, StoragePool: "bulk", Version: "8.3.0", Count: 1},
		{Role: v1alpha1.RoleStorage, StoragePool: "ssd", Version: "8.3.1", Count: 3},
	}))
	g.Expect(three().TargetCounts()).To(Equal([]v1alpha1.TargetCount{
		{StoragePool: "bulk", Count: 1, CapacityBytes: 16 << 40}, {StoragePool: "ssd", Count: 12, CapacityBytes: 12 << 40},
	}))
}

func TestARunInAPoolUsesTheServersOfThatPoolAndThoseOfAll(t *testing.T) {
	g := NewWithT(t)
	used := three().Of([]string{"bulk"})
	g.Expect(used.Targets).To(HaveLen(1))
	g.Expect(used.Servers).To(HaveLen(4), "three metadata servers serve every pool")
	g.Expect(three().Of([]string{"ssd"}).Nodes()).To(Equal([]string{"oss0", "oss1", "oss2"}))
	g.Expect(three().NodesOf(v1alpha1.RoleStorage)).To(Equal([]string{"oss0", "oss1", "oss2", "oss9"}))
	g.Expect(three().First(2).Servers).To(HaveLen(2))
}

func TestTheHashOfMembersChangesWithTheMembersOnly(t *testing.T) {
	for name, c := range map[string]struct {
		change func(m Members)
		same   bool
	}{
		"nothing":                  {func(Members) {}, true},
		"used space":               {func(m Members) { m.Targets[0].UsedBytes++ }, true},
		"a server that was away":   {func(m Members) { m.Servers[0].State, m.Servers[0].Message = v1alpha1.StateOffline, "no answer" }, true},
		"a disk of another name":   {func(m Members) { m.Targets[7].StorageTarget = "scratch-ssd-x" }, false},
		"a version":                {func(m Members) { m.Servers[3].Version = "8.4.0" }, false},
		"CPUs of a server":         {func(m Members) { m.Servers[0].Placement.CPUs = "8-15" }, false},
		"a server on another node": {func(m Members) { m.Servers[1].Node = "oss0009" }, false},
	} {
		t.Run(name, func(t *testing.T) {
			changed := three()
			c.change(changed)
			NewWithT(t).Expect(changed.Hash() == three().Hash()).To(Equal(c.same))
		})
	}
}
