package disruption_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	. "github.com/onsi/gomega"

	"parallelfs.dev/operator/internal/backend/shared/nodefacts"
	"parallelfs.dev/operator/internal/disruption"
)

// at returns a chunkserver on a node, whose failure domain is the first letter of the node's name.
func at(node string) disruption.Place {
	return disruption.Place{Component: "chunkserver", Node: node, Domain: nodefacts.Domain{Name: node[:1], Labeled: true}}
}

// asked returns a disruption of a chunkserver that others of its domain may join.
func asked(node string) disruption.Disruption {
	return disruption.Disruption{Place: at(node), Priority: 1, Why: "its configuration has changed", Together: 9}
}

// master returns the disruption that is first in the order, and for which programs wait.
func master() disruption.Disruption {
	return disruption.Disruption{
		Place: disruption.Place{Component: "master", Node: "m1", Domain: nodefacts.Domain{Name: "m1"}}, Why: "its configuration has changed", Costs: "there is one master",
	}
}

func with(d disruption.Disruption, change func(d *disruption.Disruption)) disruption.Disruption {
	change(&d)
	return d
}

func TestWhichNodesMayBeAwayAndWhyTheOthersWait(t *testing.T) {
	type queue = []disruption.Disruption
	down := func(d *disruption.Disruption) { d.Down = true }
	mends := func(d *disruption.Disruption) { d.Mends, d.Why = true, "a disk is back" }
	costs := func(d *disruption.Disruption) { d.Costs, d.Together = "pool bulk keeps one copy", 0 }
	untold := func(d *disruption.Disruption) { d.Waits = "its agent has written" }
	well := disruption.World{Answered: true, Most: 1}
	in := func(change func(w *disruption.World)) disruption.World {
		w := well
		change(&w)
		return w
	}
	const restored = "those that begin now are back: chunkserver on node a1 in failure domain a"
	for name, c := range map[string]struct {
		queue queue
		world disruption.World
		now   []string
		// waits holds the expected conditions in the queue; nil means that they are not checked.
		waits []string
		says  string
		// never is text that the sentence must not contain.
		never string
	}{
		"nothing is asked": {world: well},
		"two of two failure domains are away": {
			queue: queue{asked("c1")}, world: in(func(w *disruption.World) { w.Away = []disruption.Place{at("a1"), at("b1")} }),
			says: "2 servers (", never: ") in failure domain",
		},
		"the first of two with conditions of their own holds up what comes after it": {
			queue: queue{
				with(asked("a1"), func(d *disruption.Disruption) { d.Waits, d.Priority = "its agent has written", 1 }),
				with(asked("a2"), func(d *disruption.Disruption) { d.Waits, d.Priority = "its disk is back", 2 }),
				with(asked("a3"), func(d *disruption.Disruption) { d.Priority = 2 }),
			},
			world: well, waits: []string{"its agent has written", "its disk is back", "its agent has written"},
		},
		"one begins, and the next waits for it": {
			queue: queue{asked("a1"), asked("a2")}, world: well, now: []string{"a1"}, waits: []string{"", restored},
			says: "2 pods are to be restarted, one at a time; now chunkserver on node a1 in failure domain a: its configuration has changed",
		},
		"the lower priority begins": {queue: queue{asked("a1"), master()}, world: well, now: []string{"m1"}},
		"nothing begins while the filesystem does not answer: unknown is not safe": {
			queue: queue{asked("a1")}, world: disruption.World{}, waits: []string{"the filesystem is healthy"},
			says: "1 pod is to be restarted when the filesystem is healthy; first chunkserver on node a1: its configuration has changed",
		},
		"nothing begins while the filesystem has problems": {
			queue: queue{asked("a1")}, world: in(func(w *disruption.World) { w.Problems = true }), waits: []string{"the filesystem is healthy"},
		},
		"nothing begins while a daemon of another domain is away": {
			queue: queue{asked("a1")}, world: in(func(w *disruption.World) { w.Away = []disruption.Place{at("b1")} }),
			waits: []string{"the filesystem is healthy, and chunkserver on node b1 in failure domain b is back"},
		},
		"nothing begins while a daemon of the same domain is away": {
			queue: queue{asked("a1")}, world: in(func(w *disruption.World) { w.Away, w.Most = []disruption.Place{at("a2"), at("a3")}, 9 }),
			waits: []string{"the filesystem is healthy, and 2 servers (chunkserver on node a2, chunkserver on node a3) in failure domain a are back"},
		},
		"servers of two pools of a node that are away are named once": {
			queue: queue{asked("a1")}, world: in(func(w *disruption.World) { w.Away = []disruption.Place{at("b1"), at("b1")} }),
			waits: []string{"the filesystem is healthy, and chunkserver on node b1 in failure domain b is back"},
		},
		"of three servers of two nodes, the nodes are named once": {
			queue: queue{asked("a1")}, world: in(func(w *disruption.World) { w.Away = []disruption.Place{at("a2"), at("a2"), at("a3")} }),
			waits: []string{"the filesystem is healthy, and 2 servers (chunkserver on node a2, chunkserver on node a3) in failure domain a are back"},
		},
		"nothing begins while a server has no pod": {
			queue: queue{asked("a1")}, world: in(func(w *disruption.World) { w.Gone = []string{"chunkserver-ssd.b1"} }),
			waits: []string{"the filesystem is healthy, and these have a pod: chunkserver-ssd.b1"},
		},
		"nothing begins while the filesystem could mean a server's predecessor": {
			queue: queue{asked("a1")}, world: in(func(w *disruption.World) { w.Unconfirmed = []string{"storage-ssd.b1"} }),
			waits: []string{"it is certain that these are there: storage-ssd.b1"},
		},
		"nothing that runs begins while a person has paused it": {
			queue: queue{asked("a1")}, world: in(func(w *disruption.World) { w.Paused = true }), waits: []string{"spec.updates.paused is false again"},
		},
		"what is down already begins whatever else is wrong": {
			queue: queue{asked("a1"), with(asked("b1"), down)},
			world: disruption.World{Problems: true, Paused: true, Away: []disruption.Place{at("b1"), at("c1")}, Gone: []string{"d"}, Unconfirmed: []string{"e"}},
			now:   []string{"b1"}, says: "2 pods are to be restarted, one at a time; now chunkserver on node b1 in failure domain b",
		},
		"what is down begins alone": {
			queue: queue{with(asked("b1"), down), with(asked("b2"), down)}, world: in(func(w *disruption.World) { w.Most = 9 }), now: []string{"b1"},
		},
		"a repair begins in spite of problems, and alone": {
			queue: queue{asked("a1"), with(asked("b1"), mends), with(asked("b2"), mends)},
			world: in(func(w *disruption.World) { w.Problems, w.Most = true, 9 }), now: []string{"b1"},
		},
		"a repair waits while a daemon is away": {
			queue: queue{with(asked("b1"), mends)},
			world: in(func(w *disruption.World) { w.Problems, w.Away = true, []disruption.Place{at("c1")} }),
			waits: []string{"the filesystem is healthy, and chunkserver on node c1 in failure domain c is back"},
		},
		"several of one domain begin, as many as a person allows": {
			queue: queue{asked("a1"), asked("b1"), asked("a2"), asked("a3")}, world: in(func(w *disruption.World) { w.Most = 2 }), now: []string{"a1", "a2"},
			says: "4 pods are to be restarted, at most 2 of one failure domain at a time; now 2 servers (chunkserver on node a1, chunkserver on node a2) in failure domain a",
		},
		"no more begin than each of them is proven to bear": {
			queue: queue{asked("a1"), with(asked("a2"), func(d *disruption.Disruption) { d.Together = 2 }), asked("a3")},
			world: in(func(w *disruption.World) { w.Most = 9 }), now: []string{"a1", "a2"},
		},
		"one begins alone where nothing is proven": {
			queue: queue{with(asked("a1"), func(d *disruption.Disruption) { d.Together = 0 }), asked("a2")},
			world: in(func(w *disruption.World) { w.Most = 9 }), now: []string{"a1"},
		},
		"one begins alone where nobody knows its domain": {
			queue: queue{
				with(asked("a1"), func(d *disruption.Disruption) { d.Domain = nodefacts.Domain{} }),
				with(asked("a2"), func(d *disruption.Disruption) { d.Domain = nodefacts.Domain{} }),
			},
			world: in(func(w *disruption.World) { w.Most = 9 }), now: []string{"a1"},
		},
		"a restart that programs wait for begins alone, and is announced": {
			queue: queue{with(asked("a1"), func(d *disruption.Disruption) { d.Costs = "pool bulk keeps one copy" }), asked("a2")},
			world: in(func(w *disruption.World) { w.Most = 9 }), now: []string{"a1"},
			says: "programs wait until it is back, because pool bulk keeps one copy",
		},
		"no pod restarts together with one that programs wait for": {
			queue: queue{asked("a1"), with(asked("a2"), func(d *disruption.Disruption) { d.Costs = "pool bulk keeps one copy" })},
			world: in(func(w *disruption.World) { w.Most = 9 }), now: []string{"a1"},
			says: "; programs will wait while each of these restarts: chunkserver on node a2 (pool bulk keeps one copy)",
		},
		"what programs wait for waits for its window, and those behind it keep their turn": {
			queue: queue{master(), asked("a1")}, world: in(func(w *disruption.World) { w.Closed = "the window opens at 2" }),
			waits: []string{"the window opens at 2", "the window opens at 2"},
			says: "2 pods are to be restarted when the window opens at 2; first master on node m1: its configuration has changed" +
				"; programs will wait while each of these restarts: master on node m1 (there is one master)",
		},
		"what is down makes nobody wait who does not already": {
			queue: queue{asked("a1"), with(master(), func(d *disruption.Disruption) { d.Down, d.Waits = true, "its agent has written" })},
			world: well, never: "programs",
		},
		"others of the same priority do not wait for its window": {
			queue: queue{with(asked("a1"), costs), asked("a2")}, world: in(func(w *disruption.World) { w.Closed = "the window opens at 2" }),
			now: []string{"a2"}, waits: []string{"the window opens at 2", ""},
		},
		"what is down does not wait for a window": {
			queue: queue{with(master(), down)}, world: disruption.World{Closed: "the window opens at 2"}, now: []string{"m1"},
			says: "1 pod is to be restarted, one at a time; now master on node m1: its configuration has changed", never: "programs",
		},
		"what waits for its agent keeps its turn before those behind it": {
			queue: queue{with(master(), untold), asked("a1")}, world: well, waits: []string{"its agent has written", "its agent has written"},
		},
		"others of the same priority do not wait for its agent": {
			queue: queue{with(asked("a1"), untold), asked("a2")}, world: well, now: []string{"a2"},
		},
		"repairs and pods that are down wait for no turn": {
			queue: queue{with(master(), untold), with(asked("a1"), mends), with(asked("a2"), down)}, world: well, now: []string{"a2"},
		},
		"a repair waits for no turn": {queue: queue{with(master(), untold), with(asked("a1"), mends)}, world: well, now: []string{"a1"}},
		"what is down waits for its agent as well": {
			queue: queue{with(with(asked("a1"), down), untold)}, world: well, waits: []string{"its agent has written"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			decision := disruption.Decide(c.queue, c.world)
			var now []string
			for _, i := range decision.Now {
				now = append(now, c.queue[i].Node)
			}
			g.Expect(now).To(Equal(c.now))
			if c.waits != nil {
				g.Expect(decision.Waits).To(Equal(c.waits))
			}
			g.Expect(decision.Sentence(c.queue, c.world)).To(ContainSubstring(c.says))
			if c.never != "" {
				g.Expect(decision.Sentence(c.queue, c.world)).NotTo(ContainSubstring(c.never))
			}
		})
	}
}

func TestChangesThatWaitForAPersonOrAWindowRest(t *testing.T) {
	closed := disruption.World{Answered: true, Closed: "the window opens at 2"}
	untold := with(asked("a1"), func(d *disruption.Disruption) { d.Waits = "its agent has written" })
	down := with(asked("a1"), func(d *disruption.Disruption) { d.Down = true })
	in := func(change func(w *disruption.World)) disruption.World {
		w := closed
		change(&w)
		return w
	}
	for name, c := range map[string]struct {
		queue []disruption.Disruption
		world disruption.World
		rests bool
	}{
		"nothing is asked":                {world: closed},
		"all waits for the window":        {queue: []disruption.Disruption{master(), asked("a1")}, world: closed, rests: true},
		"all is paused":                   {queue: []disruption.Disruption{asked("a1")}, world: in(func(w *disruption.World) { w.Paused = true }), rests: true},
		"one begins":                      {queue: []disruption.Disruption{asked("a1")}, world: closed},
		"one waits for its agent":         {queue: []disruption.Disruption{untold, with(master(), func(d *disruption.Disruption) { d.Priority = 1 })}, world: closed},
		"one is paused, and another down": {queue: []disruption.Disruption{down, asked("b1")}, world: in(func(w *disruption.World) { w.Paused = true })},
		"it is paused, and one is away":   {queue: []disruption.Disruption{asked("a1")}, world: in(func(w *disruption.World) { w.Paused, w.Away = true, []disruption.Place{at("b1")} })},
		"it is paused, one is away, and another has no pod": {queue: []disruption.Disruption{asked("a1")}, world: in(func(w *disruption.World) {
			w.Paused, w.Away, w.Gone = true, []disruption.Place{at("b1")}, []string{"c1"}
		})},
		"it is paused, and one has no pod": {
			queue: []disruption.Disruption{asked("a1")}, world: in(func(w *disruption.World) { w.Paused, w.Gone = true, []string{"b1"} }),
		},
		"it is paused, and not well":      {queue: []disruption.Disruption{asked("a1")}, world: in(func(w *disruption.World) { w.Paused, w.Problems = true, true })},
		"the filesystem is not asked yet": {queue: []disruption.Disruption{asked("a1")}, world: disruption.World{}},
	} {
		t.Run(name, func(t *testing.T) {
			decision := disruption.Decide(c.queue, c.world)
			NewWithT(t).Expect(decision.Rests(c.world)).To(Equal(c.rests))
		})
	}
}

func TestTheSentenceOfAThousandStaysShort(t *testing.T) {
	g := NewWithT(t)
	var queue []disruption.Disruption
	for i := range 1000 {
		queue = append(queue, with(asked(fmt.Sprintf("a%d", i)), func(d *disruption.Disruption) { d.Costs = "pool bulk keeps one copy" }))
	}
	w := disruption.World{Answered: true, Most: 64}
	decision := disruption.Decide(queue, w)
	g.Expect(len(decision.Sentence(queue, w))).To(BeNumerically("<", 1024))
}

// dice makes random queues and worlds.
type dice struct{ *rand.Rand }

func (d dice) yes() bool { return d.IntN(3) == 0 }

func (d dice) place() disruption.Place {
	p := at(fmt.Sprintf("%c%d", "abc"[d.IntN(3)], d.IntN(3)))
	p.Component = []string{"master", "chunkserver"}[d.IntN(2)]
	if d.IntN(8) == 0 {
		p.Domain = nodefacts.Domain{}
	}
	return p
}

func (d dice) disruption() disruption.Disruption {
	out := disruption.Disruption{Place: d.place(), Priority: d.IntN(3), Why: "why", Down: d.yes(), Mends: d.yes(), Together: d.IntN(5)}
	if d.yes() {
		out.Costs = "it is the only one"
	}
	if d.yes() {
		out.Waits = "it was told"
	}
	return out
}

func (d dice) world() disruption.World {
	w := disruption.World{Answered: d.IntN(4) > 0, Problems: d.yes(), Paused: d.IntN(8) == 0, Most: d.IntN(5)}
	for range max(0, d.IntN(6)-3) {
		w.Away = append(w.Away, d.place())
	}
	if d.IntN(6) == 0 {
		w.Gone = []string{"gone"}
	}
	if d.IntN(6) == 0 {
		w.Unconfirmed = []string{"unconfirmed"}
	}
	if d.yes() {
		w.Closed = "it opens"
	}
	return w
}

func TestNoQueueAndNoWorldMakesAnUnsafeDecision(t *testing.T) {
	g, random := NewWithT(t), dice{rand.New(rand.NewPCG(15, 1))}
	begun := 0
	for range 50_000 {
		w := random.world()
		queue := make([]disruption.Disruption, random.IntN(7))
		for i := range queue {
			queue[i] = random.disruption()
		}
		decision := disruption.Decide(queue, w)
		said := fmt.Sprintf("%+v\n%+v\n%+v", queue, w, decision)
		g.Expect(decision.Waits).To(HaveLen(len(queue)))
		running := 0
		for i := range queue {
			now, d := slices.Contains(decision.Now, i), &queue[i]
			g.Expect(decision.Waits[i] == "").To(Equal(now), "each begins, or says what it waits for: %s", said)
			if !now {
				continue
			}
			begun++
			g.Expect(d.Waits).To(BeEmpty(), said)
			if d.Down {
				g.Expect(decision.Now).To(HaveLen(1), said)
				continue
			}
			running++
			g.Expect(w.Answered && !w.Paused && len(w.Away)+len(w.Gone)+len(w.Unconfirmed) == 0).To(BeTrue(), said)
			g.Expect(!w.Problems || d.Mends).To(BeTrue(), said)
			g.Expect(d.Costs == "" || w.Closed == "").To(BeTrue(), said)
			if len(decision.Now) > 1 {
				g.Expect(d.Costs).To(BeEmpty(), said)
				g.Expect(len(decision.Now)).To(BeNumerically("<=", min(w.Most, d.Together)), said)
				g.Expect(d.Domain).To(And(Equal(queue[decision.Now[0]].Domain), Not(BeZero())), said)
			}
		}
		g.Expect(running <= 1 || !w.Problems).To(BeTrue(), said)
		_ = decision.Sentence(queue, w)
	}
	g.Expect(begun).To(BeNumerically(">", 5_000), "the dice make queues of which something begins")
}
