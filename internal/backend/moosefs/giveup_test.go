package moosefs

import (
	"cmp"
	"slices"
	"strings"
	"testing"

	. "github.com/onsi/gomega"

	"parallelfs.dev/operator/api/v1alpha1"
	"parallelfs.dev/operator/internal/backend"
)

// lostNode returns a filesystem whose node n2 has lost power, with a copy of all its data elsewhere.
func lostNode(t *testing.T) backend.Input {
	t.Helper()
	in := healthy(t)
	in.FileSystem.Spec.StoragePools[0].Copies, in.State.StorageClasses["ssd"] = 1, "1A"
	for i := range in.State.Servers {
		in.State.Servers[i].Online = in.State.Servers[i].IP != "10.0.0.2"
	}
	return in
}

func TestAMooseFSWithoutANode(t *testing.T) {
	for name, c := range map[string]struct {
		change func(in *backend.Input)
		node   string
		want   backend.Without
		lost   []string
	}{
		"all of its data is elsewhere": {want: backend.Without{Settles: settle}},
		"it has the metadata":          {node: "n1", want: backend.Without{Never: "it has the metadata of the MooseFS master, without which no file can be found"}},
		"the master is silent": {change: func(in *backend.Input) { in.State, in.StateError = nil, "nobody listens" },
			want: backend.Without{Waits: "the master does not answer: nobody listens"}},
		"MooseFS counts": {change: func(in *backend.Input) { in.State.Data = backend.DataHealth{} },
			want: backend.Without{Settles: settle, Waits: "MooseFS has not counted yet how many copies its data has"}},
		"its chunkserver is connected": {change: func(in *backend.Input) { in.State.Servers[len(in.State.Servers)-1].Online = true },
			want: backend.Without{Settles: settle, Here: "its chunkserver is online"}},
		"a chunkserver is connected from an address of no node, which may be its new one": {change: func(in *backend.Input) {
			in.State.Servers[len(in.State.Servers)-1].Online = true
			in.State.Servers[len(in.State.Servers)-1].IP = "10.0.9.9"
		}, want: backend.Without{Settles: settle, Here: "a chunkserver is online at 10.0.9.9:9436, which is the address of no node or of several: it may be that of this one"}},
		"a pool would have too few nodes": {change: func(in *backend.Input) { in.FileSystem.Spec.StoragePools[0].Copies = 2 },
			want: backend.Without{Settles: settle, Waits: "storage pool ssd keeps 2 copies on as many nodes, and has 1 without this one; add a node to it first, or lower its copies"}},
		"data is lost":              {change: func(in *backend.Input) { in.State.Data.Missing = 3 }, want: backend.Without{Settles: settle}, lost: []string{"3 chunks have no copy left"}},
		"copies are still made new": {change: func(in *backend.Input) { in.State.Data.Endangered, in.State.Data.Undergoal = 4, 5 }, want: backend.Without{Settles: settle}, lost: []string{"4 chunks have one copy left, and 5 fewer"}},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			in := lostNode(t)
			if c.change != nil {
				c.change(&in)
			}
			i := slices.IndexFunc(in.FileSystemNodes, func(n v1alpha1.FileSystemNode) bool { return n.Spec.Node == cmp.Or(c.node, "n2") })
			got := New().Without(in, &in.FileSystemNodes[i])
			lost := got.Lost
			got.Lost = nil
			g.Expect(got).To(Equal(c.want))
			g.Expect(lost).To(HaveLen(len(c.lost)))
			for j := range c.lost {
				g.Expect(strings.HasPrefix(lost[j], c.lost[j])).To(BeTrue(), lost[j])
			}
		})
	}
}

func TestANodeThatOnlyHasAMetaloggerTakesNoDataWithIt(t *testing.T) {
	in := lostNode(t)
	in.State.Data = backend.DataHealth{}
	node := &v1alpha1.FileSystemNode{Spec: v1alpha1.FileSystemNodeSpec{Node: "n2", Members: []v1alpha1.NodeMember{{Name: "metalogger", Role: v1alpha1.RoleMetadataBackup}}}}
	NewWithT(t).Expect(New().Without(in, node)).To(Equal(backend.Without{}))
}

func TestADecommissionedNodeIsNotMissing(t *testing.T) {
	g := NewWithT(t)
	in := lostNode(t)
	in.Nodes[1].Ready = false
	in.State.Targets = slices.DeleteFunc(in.State.Targets, func(s backend.Target) bool { return s.IP == "10.0.0.2" })
	g.Expect(New().Observe(in).Problems).NotTo(BeEmpty())
	for i := range in.FileSystemNodes {
		if n := &in.FileSystemNodes[i]; n.Spec.Node == "n2" {
			n.Spec.GivenUp = &v1alpha1.NodeGivenUp{}
			backend.Retire(n, true)
		}
	}
	allocation, err := New().Allocate(in)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(allocation.TargetNodes.Pools).To(HaveEach(HaveExactElements("n1")), "its labels do not bring it back")
	g.Expect(allocation.Joins).To(BeEmpty())
	seen := New().Observe(in.Remaining())
	g.Expect(seen.Problems).To(BeEmpty())
	g.Expect(seen.Summary).To(And(HaveField("Servers", "4/4"), HaveField("Targets", "3/3"), HaveField("Clients", "1/1")))
	for _, n := range New().Nodes(in) {
		if n.Spec.Node == "n2" {
			g.Expect(n.Spec.GivenUp).NotTo(BeNil(), "the record stays")
			g.Expect(n.Spec.Members).To(ContainElements(And(HaveField("Name", "chunkserver-ssd"), HaveField("Retired", true))))
		}
	}
}

func TestTheMasterForgetsTheChunkserversOfADecommissionedNodeAndNoOthers(t *testing.T) {
	type record = v1alpha1.FileSystemNodeSpec
	forgets := []string{"-CRC/10.0.0.2/9435", "-CRC/10.0.0.2/9436"}
	for name, c := range map[string]struct {
		change func(in *backend.Input, n *record)
		want   []string
	}{
		"they are away":                           {want: forgets},
		"its node is no longer in the cluster":    {change: func(in *backend.Input, _ *record) { in.Nodes = in.Nodes[:1] }, want: forgets},
		"the node is not decommissioned":          {change: func(_ *backend.Input, n *record) { n.GivenUp = nil }},
		"nobody knew its address":                 {change: func(_ *backend.Input, n *record) { n.GivenUp.Address = "" }},
		"another node has its address by now":     {change: func(in *backend.Input, _ *record) { in.Nodes[1].Name = "n9" }},
		"the master does not answer":              {change: func(in *backend.Input, _ *record) { in.State = nil }},
		"the master has forgotten them by itself": {change: func(in *backend.Input, _ *record) { in.State.Servers = in.State.Servers[:1] }},
		"one of them is connected": {change: func(in *backend.Input, _ *record) {
			for i := range in.State.Servers {
				s := &in.State.Servers[i]
				s.Online = s.Online || s.IP == "10.0.0.2" && s.Port == 9435
			}
		}, want: forgets[1:]},
		"what else listens there is not of this FileSystem": {change: func(in *backend.Input, _ *record) {
			for i := range in.State.Servers {
				in.State.Servers[i].Port += 100
			}
		}},
	} {
		t.Run(name, func(t *testing.T) {
			in := lostNode(t)
			in.Nodes = slices.Clone(in.Nodes)
			in.Nodes[1].Ready = false
			n := &in.FileSystemNodes[slices.IndexFunc(in.FileSystemNodes, func(n v1alpha1.FileSystemNode) bool { return n.Spec.Node == "n2" })]
			n.Spec.GivenUp = &v1alpha1.NodeGivenUp{Address: "10.0.0.2"}
			backend.Retire(n, true)
			if c.change != nil {
				c.change(&in, &n.Spec)
			}
			commands, _ := maintenanceJobsOf(t, in.Indexed())
			NewWithT(t).Expect(commands).To(Equal(c.want))
		})
	}
}

func TestAnOnlineChunkserverOfADecommissionedNodeIsNamed(t *testing.T) {
	g := NewWithT(t)
	in := lostNode(t)
	in.Nodes = slices.Clone(in.Nodes)[:1]
	i := slices.IndexFunc(in.FileSystemNodes, func(n v1alpha1.FileSystemNode) bool { return n.Spec.Node == "n2" })
	in.FileSystemNodes[i].Spec.GivenUp = &v1alpha1.NodeGivenUp{Address: "10.0.0.2"}
	g.Expect(New().Without(in.Indexed(), &in.FileSystemNodes[i]).Here).To(BeEmpty())
	at := &in.State.Servers[len(in.State.Servers)-1]
	at.Online = true
	g.Expect(New().Without(in.Indexed(), &in.FileSystemNodes[i]).Here).To(Equal("its chunkserver is online at 10.0.0.2:9436"))
	at.IP = "10.0.9.9"
	g.Expect(New().Without(in.Indexed(), &in.FileSystemNodes[i]).Here).To(BeEmpty(), "who else takes part is no matter of this node")
}
