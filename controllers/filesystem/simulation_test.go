package filesystem

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/types"

	"parallelfs.dev/operator/api/v1alpha1"
	"parallelfs.dev/operator/internal/backend"
)

// daemon is one daemon of a simulated filesystem, and the state of its pod.
type daemon struct {
	component, node string
	// run counts its pods. there is true while it has one, ready while that is Ready, and serves while the filesystem reaches the daemon in
	// it.
	run                  int
	there, ready, serves bool
	outdated             bool
	// until is when the next of these states begins.
	until int
	// left is when it last left.
	left int
}

// simulated is a filesystem with nine chunkservers in three failure domains and a master, a manager that restarts them, and a random
// generator.
type simulated struct {
	*rand.Rand
	now     int
	daemons []*daemon
	// count holds when the manager saw each start of a pod.
	count map[string]int
	// forgets is how long the filesystem lists a daemon that has left as online: 0 if connections end at once, more if the filesystem waits
	// before it reports one as missing.
	forgets int
	// together is how many each daemon may be away with, itself included.
	together, most int
}

func (s *simulated) name(d *daemon) string {
	return fmt.Sprintf("%s-%s-%d", d.component, d.node, d.run)
}

// goOn advances the clock by one step, in which the kubelet and daemons act.
func (s *simulated) goOn() {
	s.now++
	for _, d := range s.daemons {
		if s.now < d.until {
			continue
		}
		d.until = s.now + 1 + s.IntN(6)
		switch {
		case !d.there:
			d.there, d.outdated, d.run = true, false, d.run+1
		case !d.ready:
			d.ready = true
		case !d.serves:
			d.serves = true // it has registered
		}
	}
}

// away returns the failure domains that have a daemon that is away.
func (s *simulated) away() []string {
	var out []string
	for _, d := range s.daemons {
		if !d.serves {
			out = append(out, d.node[:1])
		}
	}
	return slices.Compact(slices.Sorted(slices.Values(out)))
}

// pods returns what the manager now sees of them.
func (s *simulated) pods() (out []backend.Pod) {
	for _, d := range s.daemons {
		if !d.there {
			continue
		}
		p := backend.Pod{Name: types.NamespacedName{Name: s.name(d)}, Component: d.component, Node: d.node, Ready: d.ready, Outdated: d.outdated}
		if d.ready {
			if _, known := s.count[s.name(d)]; !known {
				s.count[s.name(d)] = s.now
			}
			p.Seen = clockOf(s.count[s.name(d)])
		}
		out = append(out, p)
	}
	slices.SortFunc(out, func(a, b backend.Pod) int { return strings.Compare(a.Component+a.Node, b.Component+b.Node) })
	return out
}

func clockOf(moment int) time.Time { return asked.Add(time.Duration(moment) * time.Second) }

// pass is one pass of the manager: it reads, queries, reads again, and restarts. Time may pass between any two of these.
func (s *simulated) pass(g Gomega) (restarted int) {
	fs := &v1alpha1.FileSystem{}
	fs.Spec.FailureDomains.Label, fs.Spec.Updates.MaxUnavailable = "domain", int32(s.most)
	in := backend.Input{FileSystem: fs, Configured: map[string]bool{}, Pods: s.pods()}
	for _, d := range s.daemons {
		in.Configured[d.node] = true
		in.Nodes = append(in.Nodes, backend.Node{Name: d.node, Ready: true, Labels: map[string]string{"domain": d.node[:1]}})
	}
	observation := backend.Observation{Serves: true, Together: map[string]int{}}
	if question := s.now; s.IntN(8) > 0 { // otherwise, it does not answer
		s.wait()
		in.State = &backend.State{Asked: clockOf(question)}
		for _, d := range s.daemons {
			member := backend.Pod{Component: d.component, Node: d.node}
			name := member.Server()
			observation.Servers = append(observation.Servers, backend.ServerStatus{Name: name})
			listed := d.serves || s.now < d.left+s.forgets
			if !listed {
				observation.Problems = append(observation.Problems, backend.Problem{Reason: v1alpha1.ReasonServersMissing, Message: name})
			}
			if at, known := s.count[s.name(d)]; s.forgets > 0 && d.ready && (!known || question <= at+s.forgets) {
				observation.Unconfirmed = append(observation.Unconfirmed, name)
			}
			observation.Together[s.name(d)] = s.together
		}
		if s.IntN(10) == 0 {
			observation.Problems = append(observation.Problems, backend.Problem{Reason: v1alpha1.ReasonDataUnknown})
		}
	}
	s.wait()
	in.Pods = s.pods() // from the API server
	pods, _, _ := nextRestarts([]string{"master", "chunkserver"}, in, observation, circumstances{})
	for _, p := range pods {
		at := slices.IndexFunc(s.daemons, func(d *daemon) bool { return s.name(d) == p.pod.Name })
		d := s.daemons[at]
		if d.serves {
			d.left = s.now
		}
		d.there, d.ready, d.serves, d.until = false, false, false, s.now+1+s.IntN(6)
	}
	g.Expect(len(s.away())).To(BeNumerically("<=", 1), "daemons of two failure domains are away: %v", s.away())
	return len(pods)
}

func (s *simulated) wait() {
	for range s.IntN(3) {
		s.goOn()
	}
}

func TestNoSequenceOfAnswersTakesDaemonsOfTwoFailureDomainsAway(t *testing.T) {
	for seed := range uint64(24) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			g := NewWithT(t)
			s := &simulated{Rand: rand.New(rand.NewPCG(15, seed)), count: map[string]int{}}
			s.together, s.most, s.forgets = s.IntN(4), s.IntN(4), []int{0, 20}[seed%2]
			for _, node := range []string{"a1", "a2", "a3", "b1", "b2", "b3", "c1", "c2", "c3"} {
				s.daemons = append(s.daemons, &daemon{component: "chunkserver", node: node, there: true, ready: true, serves: true, left: math.MinInt / 2})
			}
			s.daemons = append(s.daemons, &daemon{component: "master", node: "m1", there: true, ready: true, serves: true, left: math.MinInt / 2})
			restarted := 0
			for range 600 {
				if s.IntN(40) == 0 {
					clear(s.count) // another manager leads
				}
				if s.IntN(60) == 0 {
					for _, d := range s.daemons {
						d.outdated = d.outdated || s.IntN(2) == 0
					}
				}
				restarted += s.pass(g)
				s.goOn()
				s.wait()
			}
			g.Expect(restarted).To(BeNumerically(">", 5), "the simulation restarts daemons")
		})
	}
}
