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
			g.Expect(earlier.index.said).To(BeNil(), "an answer of megabytes is not kept")
			g.Expect(earlier.index.disks).To(BeEmpty())
		}
	}
}
