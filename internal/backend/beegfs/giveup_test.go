package beegfs

import (
	"slices"
	"testing"

	. "github.com/onsi/gomega"

	"parallelfs.dev/operator/api/v1alpha1"
	"parallelfs.dev/operator/internal/backend"
)

// lostNode is a BeeGFS whose node oss2 has only storage servers, and has lost its power.
func lostNode(t *testing.T, version string) backend.Input {
	t.Helper()
	in := healthy(t, version)
	n := nodeOf(&in, "oss2")
	n.Spec.Members = slices.DeleteFunc(n.Spec.Members, func(m v1alpha1.NodeMember) bool { return m.Role == v1alpha1.RoleMetadata })
	silent(&in, "storage-ssd.oss2")
	silent(&in, "storage-bulk.oss2")
	return in
}

func nodeOf(in *backend.Input, node string) *v1alpha1.FileSystemNode {
	return &in.FileSystemNodes[slices.IndexFunc(in.FileSystemNodes, func(n v1alpha1.FileSystemNode) bool { return n.Spec.Node == node })]
}

func TestABeeGFSWithoutANode(t *testing.T) {
	for _, version := range versions {
		g := NewWithT(t)
		in := lostNode(t, version)
		without := New().Without(in, nodeOf(&in, "oss2"))
		g.Expect(without.Lost).To(HaveLen(3), "nothing of it is anywhere else")
		g.Expect(without.Lost).To(ContainElement("all that is on target 3 (scratch-oss2-ssd-s0) of pool ssd, and the files of which it had a part"))
		g.Expect(without).To(And(HaveField("Never", ""), HaveField("Here", ""), HaveField("Waits", ""), HaveField("Settles", awayBefore)))

		in.State.Mirrors = []backend.Mirror{{Role: v1alpha1.RoleStorage, ID: 9, Primary: idOf(in, ssd0), Secondary: idOf(in, ssd2)}}
		g.Expect(New().Without(in, nodeOf(&in, "oss2")).Never).To(ContainSubstring("one side of buddy group 9"))
		in.State.Mirrors = nil

		toldOf(&in, ssd2).Online = true
		g.Expect(New().Without(in, nodeOf(&in, "oss2")).Here).To(ContainSubstring("target 3 as online"))
		toldOf(&in, ssd2).Online = false

		in.State, in.StateError = nil, "nobody listens"
		g.Expect(New().Without(in, nodeOf(&in, "oss2")).Waits).To(Equal("the management service does not answer: nobody listens"))
	}
	g, in := NewWithT(t), healthy(t, "7.4.6")
	g.Expect(New().Without(in, nodeOf(&in, "oss1")).Never).To(ContainSubstring("it has the management service"))
	g.Expect(New().Without(in, nodeOf(&in, "oss2")).Never).To(ContainSubstring("it has metadata server meta-0"))
}

func TestTheTargetsAndServersOfADecommissionedNodeAreForgotten(t *testing.T) {
	g := NewWithT(t)
	in := lostNode(t, "7.4.6")
	in.Jobs = append(in.Jobs, backend.Job{})
	g.Expect(lines(in, workOf(in).commands)).To(BeEmpty(), "nobody has said so")
	n := nodeOf(&in, "oss2")
	n.Spec.GivenUp = &v1alpha1.NodeGivenUp{}
	backend.Retire(n, true)
	g.Expect(lines(in, workOf(in).commands)).To(ConsistOf("--removetarget 3", "--removetarget 4", "--removetarget 6"))

	toldOf(&in, ssd2).Online = true
	g.Expect(lines(in, workOf(in).commands)).To(ConsistOf("--removetarget 4", "--removetarget 6"), "one that is back is not")
	toldOf(&in, ssd2).Online = false

	state := *in.State
	state.Targets = slices.DeleteFunc(slices.Clone(state.Targets), func(s backend.Target) bool { return s.Role == v1alpha1.RoleStorage && !s.Online })
	in.State = &state
	g.Expect(lines(in, workOf(in).commands)).To(ConsistOf(HavePrefix("--removenode --nodetype=storage"), HavePrefix("--removenode --nodetype=storage")))
	g.Expect(New().Observe(in.Remaining()).Problems).NotTo(ContainElement(HaveField("Reason", v1alpha1.ReasonTargetsMissing)))
	forgotten := state
	forgotten.Servers = slices.DeleteFunc(slices.Clone(state.Servers), func(s backend.Server) bool { return s.Role == v1alpha1.RoleStorage && !s.Online })
	in.State = &forgotten
	g.Expect(lines(in, workOf(in).commands)).To(BeEmpty())
}
