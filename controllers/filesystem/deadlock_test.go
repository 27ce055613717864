package filesystem

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/types"
	clocktesting "k8s.io/utils/clock/testing"

	"parallelfs.dev/operator/api/v1alpha1"
	"parallelfs.dev/operator/internal/backend"
	"parallelfs.dev/operator/internal/backend/all"
	"parallelfs.dev/operator/internal/backend/shared/metadatajobs"
	"parallelfs.dev/operator/internal/backend/shared/podspec"
	"parallelfs.dev/operator/internal/node/spec"
)

// stale is why a pod of a random world must restart.
type stale int

const (
	fresh stale = iota
	// _ is a pod that serves with an older configuration.
	_
	// cutOff is a pod that does not serve with it.
	cutOff
	// moved is a pod with an address in its configuration that no node has now.
	moved
	// distrusted is the first component with a certificate that the tools refuse; the restart brings another one.
	distrusted
)

// member is a server of a random world.
type member struct {
	backend.Pod
	stale        stale
	node         backend.Node
	unconfigured bool
	deadDisk     bool // it never serves before a person acts
	// A follower has a copy of the metadata. holes is how often it has to fetch the copy until it can be read. cramped is true if the copy
	// can't be inspected before a person acts. starts counts the starts of the follower.
	follows, cramped bool
	holes, starts    int
}

func (m *member) serves() bool {
	return m.Ready && m.node.Ready && m.stale != cutOff && m.stale != moved && m.stale != distrusted && !m.deadDisk
}

// randomWorld is a filesystem of a type in which any member may be down, outdated, unknown, or waiting for a person.
type randomWorld struct {
	members          []member
	fs               *v1alpha1.FileSystem
	answers, mutters bool // mutters is true for a probe that never gives an answer
	now              time.Time
	jobs             []metadatajobs.RecoveryJobFacts
}

func newRandomWorld(random *rand.Rand, order []string) *randomWorld {
	w := &randomWorld{fs: &v1alpha1.FileSystem{}, now: asked, mutters: random.IntN(8) == 0}
	w.fs.Namespace, w.fs.Name = "storage", "scratch"
	w.fs.Spec.Updates.Paused = random.IntN(8) == 0
	w.fs.Spec.Updates.MaxUnavailable = int32(1 + random.IntN(3))
	for i, component := range order {
		for n := range 1 + random.IntN(3) {
			m := member{stale: stale(random.IntN(4)), unconfigured: random.IntN(16) == 0, deadDisk: random.IntN(16) == 0}
			if i == 0 && random.IntN(4) == 0 {
				m.stale = distrusted
			}
			m.node = backend.Node{Name: fmt.Sprintf("n%d-%d", i, n), IP: fmt.Sprintf("10.0.%d.%d", i, n), Ready: random.IntN(16) > 0}
			m.Pod = pod(component, m.node.Name, m.node.Ready && random.IntN(6) > 0, m.stale != fresh)
			m.Name = types.NamespacedName{Namespace: "storage", Name: component + "-" + m.node.Name}
			if m.stale == moved {
				m.Moved = "node n0-0 has another address: 10.0.0.1 → 10.0.0.101"
			}
			m.Recertified = m.stale == distrusted
			if m.follows = i == 1; m.follows {
				m.cramped, m.holes = random.IntN(8) == 0, random.IntN(3)
			}
			w.members = append(w.members, m)
			if i == 0 {
				break // the first component holds the metadata, and has one member
			}
		}
	}
	return w
}

// input returns the state that a pass reads.
func (w *randomWorld) input() (backend.Input, backend.Observation) {
	in := backend.Input{FileSystem: w.fs, Configured: map[string]bool{}}
	var o backend.Observation
	w.answers = w.members[0].serves() && !w.mutters
	if w.answers {
		in.State = &backend.State{Asked: w.now}
	} else {
		o.Problems = append(o.Problems, backend.Problem{Reason: v1alpha1.ReasonProbeUnreachable})
	}
	for i := range w.members {
		m := &w.members[i]
		in.Nodes, in.Pods = append(in.Nodes, m.node), append(in.Pods, m.Pod)
		in.Configured[m.node.Name] = !m.unconfigured
		online := w.answers && m.serves()
		o.Servers = append(o.Servers, backend.ServerStatus{Name: m.Server(), Node: m.node.Name, Online: online})
		if !online {
			o.Problems = append(o.Problems, backend.Problem{Reason: v1alpha1.ReasonServersMissing})
		}
	}
	return in.Indexed(), o
}

// readCopies completes the reads of the copies that have to be read, as a pass starts them. A copy that follows the master is read in its
// present state.
func (w *randomWorld) readCopies(o *backend.Observation) {
	v := metadatajobs.CopyView{FileSystem: w.fs, Recorded: w.fs.Status.MetadataCopies, Serves: w.answers, Now: w.now, Jobs: w.jobs}
	for i := range w.members {
		if m := &w.members[i]; m.follows {
			c := backend.MetadataCopy{
				Source: backend.RecoverySource{Node: m.node.Name}, Pod: m.Name, Outdated: m.Outdated, Away: "it is away",
			}
			if w.answers && m.serves() {
				c.Follows = fmt.Sprint(m.starts, w.members[0].starts)
			}
			v.Copies = append(v.Copies, c)
		}
	}
	d := metadatajobs.DecideCopies(v)
	w.fs.Status.MetadataCopies, w.jobs = d.Copies, nil
	o.Restarts = append(o.Restarts, d.Fetch...)
	for _, r := range d.Start {
		for i := range w.members {
			m := &w.members[i]
			answer := &spec.RecoveryAnswer{Found: []spec.RecoveryFound{{Version: 500}}}
			switch {
			case m.node.Name != r.Source.Node:
				continue
			case m.cramped:
				answer = &spec.RecoveryAnswer{Found: []spec.RecoveryFound{}, Unread: true, Message: "no memory"}
			case m.holes > m.starts:
				answer = &spec.RecoveryAnswer{Found: []spec.RecoveryFound{}, Message: "a hole"}
			}
			w.jobs = append(w.jobs, metadatajobs.RecoveryJobFacts{Name: r.Job, Ended: true, Answer: answer})
		}
	}
}

// restart simulates the kubelet and the server after a pod was deleted.
func (w *randomWorld) restart(name types.NamespacedName) {
	for i := range w.members {
		if m := &w.members[i]; m.Name == name {
			m.stale, m.Outdated, m.Moved, m.Seen, m.starts = fresh, false, "", w.now, m.starts+1
			m.Recertified = false
			m.Ready = m.node.Ready
		}
	}
}

func TestNoRestartWaitsForWhatOnlyItBrings(t *testing.T) {
	const worlds = 1000 // of each type
	for kind, b := range all.Backends(time.Minute) {
		t.Run(string(kind), func(t *testing.T) {
			g := NewWithT(t)
			for seed := range uint64(worlds) {
				random := rand.New(rand.NewPCG(seed, 30))
				w := newRandomWorld(random, b.Order())
				clock := clocktesting.NewFakePassiveClock(w.now)
				r := &Reconciler{Order: clock}
				var message string
				for range 16 * len(w.members) {
					in, o := w.input()
					w.readCopies(&o)
					p := &pass{Reconciler: r, fs: w.fs, in: in, observation: o}
					var next []pendingPod
					next, message, _ = nextRestarts(b.Order(), in, o, circumstances{silent: p.silent(), maintained: backend.Maintained(w.fs)})
					for _, d := range next {
						w.restart(d.pod)
					}
					// The filesystem is queried again, later than any problem may last.
					w.now = w.now.Add(tooSilent)
					clock.SetTime(w.now)
				}
				w.proceedsOrAsks(g, seed, message)
			}
		})
	}
}

// proceedsOrAsks fails unless each restart was made, or the sentence asks a person for what only a person can do.
func (w *randomWorld) proceedsOrAsks(g *WithT, seed uint64, message string) {
	for i := range w.members {
		m := &w.members[i]
		if m.stale == fresh || !m.node.Ready || m.unconfigured {
			continue // there is nothing to do, or a person repairs the node or the agent
		}
		g.Expect(m.stale == moved || m.stale == distrusted || m.stale == cutOff && w.answers).To(BeFalse(),
			"world %d: only its restart brings back %s, and it waits: %s", seed, m.Server(), message)
		asks := []string{"spec.updates.paused", "the agent of its node", "the filesystem is healthy", "is back", "are back", "a copy of the metadata is proven"}
		g.Expect(asks).To(ContainElement(WithTransform(func(ask string) bool { return strings.Contains(message, ask) }, BeTrue())),
			"world %d: %s", seed, message)
		if strings.Contains(message, "a copy of the metadata is proven") {
			g.Expect(w.members).To(ContainElement(HaveField("cramped", true)), "world %d: nobody has to do anything for a copy: %s", seed, message)
		}
		if strings.Contains(message, "healthy") {
			g.Expect(w.waitsForAPerson()).To(BeTrue(), "world %d: nothing is wrong that a person mends: %s", seed, message)
		}
	}
}

// waitsForAPerson reports whether something is wrong that no restart solves: a pod, a node, an agent, a disk or a probe. A problem names
// each of them.
func (w *randomWorld) waitsForAPerson() bool {
	for i := range w.members {
		if m := &w.members[i]; !m.Ready || m.deadDisk || !m.node.Ready || m.unconfigured {
			return true
		}
	}
	// A master that is cut off can't be distinguished from one behind a closed port, so ProbeUnreachable asks a person.
	return w.mutters || w.members[0].stale == cutOff || w.fs.Spec.Updates.Paused
}

func TestAChangedAddressIsReportedAndDelaysNoRestart(t *testing.T) {
	g := NewWithT(t)
	sentence := podspec.Moved("n1=10.0.0.1", "n1=10.0.0.101")
	g.Expect(sentence).To(Equal("node n1 has another address: 10.0.0.1 → 10.0.0.101"))
	g.Expect(podspec.Moved("n1=10.0.0.1", "n1=10.0.0.1")).To(BeEmpty())
	g.Expect(podspec.Moved("", "n1=10.0.0.1")).To(BeEmpty(), "a pod of an earlier operator does not say what it was told")
	g.Expect(podspec.Moved("n1=10.0.0.1", "n2=10.0.0.2")).To(BeEmpty(), "the metadata was recovered elsewhere")

	master, chunkserver, mount := pod("master", "n1", true, true), pod("chunkserver", "n2", true, true), pod("client", "n3", true, true)
	master.Moved, chunkserver.Moved, mount.Moved = sentence, sentence, sentence
	fs := &v1alpha1.FileSystem{}
	fs.Namespace, fs.Name = "storage", "scratch"
	in := backend.Input{
		FileSystem: fs, State: &backend.State{Asked: asked}, Configured: map[string]bool{"n1": true, "n2": true},
		Nodes: []backend.Node{{Name: "n1", IP: "10.0.0.101", Ready: true}, {Name: "n2", IP: "10.0.0.2", Ready: true}},
		Pods:  []backend.Pod{master, chunkserver, mount},
	}.Indexed()
	o := backend.Observation{
		Servers:  []backend.ServerStatus{{Name: "master.n1", Online: true}, {Name: "chunkserver.n2"}},
		Problems: []backend.Problem{{Reason: v1alpha1.ReasonTargetsMissing}},
	}
	next, message, _ := nextRestarts(order, in, o, circumstances{})
	g.Expect(next).To(HaveLen(1))
	g.Expect(next[0].pod.Name).To(Equal("chunkserver-n2"), "the master serves at its new address")
	g.Expect(message).To(ContainSubstring("now chunkserver on node n2: " + sentence))
	g.Expect(movedClients(in)).To(HaveExactElements(backend.Problem{Reason: v1alpha1.ReasonAddressChanged, Message: sentence +
		"; the mounts on n3 ask for the old one: end the programs that use them, and run kubectl -n storage delete pods -l " +
		"parallelfs.dev/filesystem=scratch,parallelfs.dev/component=client"}))
}
