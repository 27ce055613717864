package backend

import (
	"math/rand/v2"
	"strconv"
	"testing"

	. "github.com/onsi/gomega"

	"parallelfs.dev/operator/api/v1alpha1"
)

func TestAnInputThatTakesWhatAnEarlierOneHasFoundFindsTheSame(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 1))
	name := func() string { return strconv.Itoa(random.IntN(6)) }
	replace := map[string]func(*Input){
		"nodes": func(in *Input) { in.Nodes = []Node{{Name: name(), IP: name()}, {Name: name(), IP: name()}} },
		"pods": func(in *Input) {
			in.Pods = []Pod{{Component: "client", Node: name()}, {Component: "client", Node: name()}}
		},
		"jobs":    func(in *Input) { in.Jobs = []Job{{Name: name()}, {Name: name()}} },
		"no jobs": func(in *Input) { in.Jobs = nil },
		"targets": func(in *Input) {
			in.Targets = make([]v1alpha1.StorageTarget, 2)
			for i := range in.Targets {
				in.Targets[i].Name, in.Targets[i].Spec.Node = name(), name()
			}
		},
		"answer": func(in *Input) {
			in.State = &State{Servers: []Server{{IP: name()}}, Targets: []Target{{IP: name(), ID: 1}}}
		},
		"no answer": func(in *Input) { in.State = nil },
		"nothing":   func(*Input) {},
	}
	in, earlier := Input{}, Input{}
	for range 300 {
		for what, change := range replace {
			change(&in)
			in = in.IndexedWith(earlier)
			g := NewWithT(t)
			g.Expect(in.index).To(Equal(newIndex(in, nil)), what)
			earlier = in.Found()
			g.Expect(earlier.index.state).To(BeNil(), "an answer of megabytes is not kept")
			g.Expect(earlier.index.disks).To(BeEmpty())
		}
	}
}

func TestAnAddressThatTwoNodesReportIsThatOfNeither(t *testing.T) {
	g := NewWithT(t)
	in := Input{
		FileSystem: filesystem(), Nodes: []Node{{Name: "attacker", IP: "10.0.0.2"}, {Name: "victim", IP: "10.0.0.2"}, {Name: "n3", IP: "10.0.0.3"}, {Name: "new"}, {Name: "newer"}},
		State: &State{Servers: []Server{{Role: v1alpha1.RoleStorage, IP: "10.0.0.2", Port: 9422, Online: true}}},
	}.Indexed()
	_, known := in.NodeAt("10.0.0.2")
	g.Expect(known).To(BeFalse())
	g.Expect(in.IsShared("10.0.0.2")).To(BeTrue())
	third, _ := in.NodeAt("10.0.0.3")
	g.Expect(third.Name).To(Equal("n3"))
	g.Expect(in.IsShared("10.0.0.3") || in.IsShared("10.0.0.9") || in.IsShared("")).To(BeFalse())
	// The server may be the victim's, so the check before a node is decommissioned must not pass.
	g.Expect(StillThere(in, "victim", func(Server) string { return "chunkserver" })).To(
		Equal("a chunkserver is online at 10.0.0.2:9422, which is the address of no node or of several: it may be that of this one"))
}
