package beegfs

import (
	"testing"

	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/types"

	"parallelfs.dev/operator/api/v1alpha1"
	"parallelfs.dev/operator/internal/backend"
	"parallelfs.dev/operator/internal/backend/beegfs/cli"
)

func TestTheAbsenceOfANodeOfABeeGFS(t *testing.T) {
	bothPools := func(in *backend.Input) { // the pool bulk, which has one copy, is removed from oss2
		n := nodeOf(in, "oss2")
		for i := range n.Spec.Members {
			if n.Spec.Members[i].StoragePool == "bulk" {
				n.Spec.Members[i].Retired = true
			}
		}
		for i := range in.Pods {
			if p := &in.Pods[i]; p.StoragePool == "bulk" && p.Node == "oss2" {
				p.Component = "gone"
			}
		}
	}
	first := func(in *backend.Input) *backend.Mirror {
		for i := range in.State.Mirrors {
			if in.State.Mirrors[i].Role == v1alpha1.RoleStorage {
				return &in.State.Mirrors[i]
			}
		}
		return nil
	}
	for name, c := range map[string]struct {
		node   string
		change func(in *backend.Input)
		costs  string
		free   bool
	}{
		"its buddies are on other nodes and in step": {node: "oss2", change: bothPools, free: true},
		"a pool keeps one copy":                      {node: "oss2", change: func(*backend.Input) {}, costs: "pool bulk keeps one copy"},
		"the management service is on it":            {node: "mgmt", change: func(*backend.Input) {}, costs: "there is one management service"},
		"a buddy is behind": {node: "oss2", costs: "has no buddy that is online and has all of its data", change: func(in *backend.Input) {
			bothPools(in)
			listed(*in, v1alpha1.RoleStorage, first(in).Primary).Consistency = cli.Behind
		}},
		"BeeGFS does not know the state of a buddy": {node: "oss2", costs: "has no buddy that is online and has all of its data", change: func(in *backend.Input) {
			bothPools(in)
			listed(*in, v1alpha1.RoleStorage, first(in).Primary).Consistency = ""
		}},
		"the metadata is not mirrored": {node: "oss2", costs: "the metadata is not mirrored", change: func(in *backend.Input) {
			bothPools(in)
			in.State.MetadataMirrored = false
		}},
		"both sides of a group are on it": {node: "oss2", costs: "both sides of buddy group 1 are on it", change: func(in *backend.Input) {
			bothPools(in)
			of := nodesByID(*in, v1alpha1.RoleStorage)
			for _, id := range backend.SortedKeys(of) {
				if m := first(in); of[id] == "oss2" && id != m.Secondary && of[m.Primary] != "oss2" {
					m.Primary = id
				}
			}
		}},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			in := mirrored(t, nil)
			for i := range in.Pods {
				in.Pods[i].Name = types.NamespacedName{Namespace: "storage", Name: in.Pods[i].Server()}
			}
			if c.node == "mgmt" {
				c.node = in.FileSystem.Status.Metadata.Node
			}
			c.change(&in)
			in = in.Indexed()
			got := New().Absence(in, New().Observe(in), c.node)
			g.Expect(got.Costs).To(ContainSubstring(c.costs))
			g.Expect(got.Costs == "").To(Equal(c.free), got.Costs)
			g.Expect(got.Waits).To(BeEmpty(), "BeeGFS needs not to be told")
			if c.free {
				g.Expect(got.Together).To(BeNumerically(">", 1), "all nodes of its domain may go")
			} else {
				g.Expect(got.Together).To(Equal(1))
			}
		})
	}
}
