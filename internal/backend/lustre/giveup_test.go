package lustre_test

import (
	"slices"
	"testing"

	. "github.com/onsi/gomega"
	batchv1 "k8s.io/api/batch/v1"

	"parallelfs.dev/operator/api/v1alpha1"
	"parallelfs.dev/operator/internal/backend"
	"parallelfs.dev/operator/internal/backend/lustre"
)

// withoutOSS is running, and its node n1, which has only OSTs, has lost its power.
func withoutOSS(t *testing.T) backend.Input {
	t.Helper()
	in := running(t)
	n := fileSystemNode(&in, "n1")
	n.Spec.Members = slices.DeleteFunc(slices.Clone(n.Spec.Members), func(m v1alpha1.NodeMember) bool { return m.Role == v1alpha1.RoleMetadata })
	state := *in.State
	state.Targets = slices.DeleteFunc(slices.Clone(state.Targets), func(s backend.Target) bool { return s.IP == "10.0.0.1" })
	in.State, in.Unanswered = &state, map[string]string{"n1": "nobody listens"}
	return in
}

func fileSystemNode(in *backend.Input, node string) *v1alpha1.FileSystemNode {
	in.FileSystemNodes = slices.Clone(in.FileSystemNodes)
	return &in.FileSystemNodes[slices.IndexFunc(in.FileSystemNodes, func(n v1alpha1.FileSystemNode) bool { return n.Spec.Node == node })]
}

func TestAllThatTheOSTsOfANodeHoldIsLostWithItAndNamed(t *testing.T) {
	g, in := NewWithT(t), withoutOSS(t)
	without := lustre.New().Without(in, fileSystemNode(&in, "n1"))
	g.Expect(without.Lost).To(HaveExactElements(
		"all that is on pfs-OST0000 (ost0-n1) of pool ssd, and the files of which it had a part",
		"all that is on pfs-OST0001 (ost1-n1) of pool ssd, and the files of which it had a part"))
	g.Expect(without).To(And(HaveField("Never", ""), HaveField("Here", ""), HaveField("Waits", ""), HaveField("Settles", Not(BeZero()))))

	g.Expect(lustre.New().Without(in, fileSystemNode(&in, "n2")).Never).To(ContainSubstring("it has pfs-MDT000"))
	mgs := &v1alpha1.FileSystemNode{Spec: v1alpha1.FileSystemNodeSpec{Node: "n3"}}
	g.Expect(lustre.New().Without(in, mgs).Never).To(ContainSubstring("it has the MGS"))

	in.State.Targets = append(slices.Clone(in.State.Targets), backend.Target{Role: v1alpha1.RoleStorage, ID: 1, IP: "10.0.0.2", Online: true})
	g.Expect(lustre.New().Without(in, fileSystemNode(&in, "n1")).Here).To(Equal("pfs-OST0000 is mounted at 10.0.0.2"))

	in = withoutOSS(t)
	in.State.Targets = slices.DeleteFunc(in.State.Targets, func(s backend.Target) bool { return s.Role == v1alpha1.RoleManagement })
	g.Expect(lustre.New().Without(in, fileSystemNode(&in, "n1")).Waits).To(ContainSubstring("the MGS does not serve"))
	in.State, in.StateError = nil, "nobody listens"
	g.Expect(lustre.New().Without(in, fileSystemNode(&in, "n1")).Waits).To(Equal("no node reports what it serves: nobody listens"))

	in = withoutOSS(t)
	targets := fileSystemNode(&in, "n1").Spec.Members
	for i := range targets {
		for j := range targets[i].Targets {
			targets[i].Targets[j].Initialized = nil
		}
	}
	g.Expect(lustre.New().Without(in, fileSystemNode(&in, "n1")).Lost).To(BeEmpty(), "no file was ever laid on them")
}

// closing returns the Jobs that close OSTs, by name, with their command lines.
func closing(t *testing.T, in backend.Input) map[string][]string {
	t.Helper()
	objects, err := lustre.New().Members(in)
	NewWithT(t).Expect(err).NotTo(HaveOccurred())
	out := map[string][]string{}
	for _, o := range objects {
		if job, is := o.(*batchv1.Job); is && len(job.Spec.Template.Spec.Containers) > 0 && job.Labels[v1alpha1.LabelComponent] == "drain" {
			for _, c := range toldIn(t, job).Commands {
				out[job.Name] = append(out[job.Name], c.Argv...)
			}
		}
	}
	return out
}

func TestAllClientsAreConfiguredNotToUseTheOSTsOfADecommissionedNode(t *testing.T) {
	g, in := NewWithT(t), withoutOSS(t)
	g.Expect(closing(t, in)).To(BeEmpty(), "nobody has said so")
	n := fileSystemNode(&in, "n1")
	n.Spec.GivenUp = &v1alpha1.NodeGivenUp{}
	n.Spec.Members = slices.Clone(n.Spec.Members)
	backend.Retire(n, true)
	g.Expect(closing(t, in)).To(Equal(map[string][]string{
		"scratch-drain-close-1": {"lctl", "conf_param", "pfs-OST0000.osc.active=0"},
		"scratch-drain-close-2": {"lctl", "conf_param", "pfs-OST0001.osc.active=0"},
	}))
	problems := func() []backend.Problem { return lustre.New().Observe(in.Remaining()).Problems }
	used := And(HaveField("Reason", v1alpha1.ReasonTargetsMissing), HaveField("Message", And(
		HavePrefix("targets of decommissioned nodes are still used: pfs-OST0000 by mdt-0.n2 and mdt-1.n2"), ContainSubstring("job scratch-drain-close-1 begins"))))
	g.Expect(problems()).To(ContainElement(used))

	in.Jobs = append(in.Jobs, backend.Job{Name: "scratch-drain-close-1", Component: "drain", Failed: true, Message: "no MGS"})
	seen := lustre.New().Observe(in.Remaining())
	g.Expect(seen.Repeat).To(ContainElement("scratch-drain-close-1"))
	g.Expect(seen.Problems).To(ContainElement(HaveField("Message", ContainSubstring("job scratch-drain-close-1 failed, and is made again: no MGS"))))

	for _, mdt := range []int32{2, 4} { // those of n2
		for _, ost := range []int32{1, 2} {
			in.State.Links = append(in.State.Links, backend.Link{From: mdt, To: ost, Closed: true})
		}
	}
	g.Expect(problems()).NotTo(ContainElement(HaveField("Message", ContainSubstring("decommissioned"))))
	g.Expect(closing(t, in)).To(HaveLen(1), "one that is there is the record of what was done, and the other one is made all the same")
}
