package disruption_test

import (
	"math/rand/v2"
	"testing"
	"time"

	. "github.com/onsi/gomega"

	"parallelfs.dev/operator/internal/backend"
	"parallelfs.dev/operator/internal/disruption"
)

// leaves returns a node, whose failure domain is the first letter of its name. All data on it has a copy elsewhere.
func leaves(node string) disruption.Leave {
	return disruption.Leave{Node: node, Domain: backend.Domain{Name: node[:1], Labeled: true}, Together: 9}
}

var now = time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC)

func TestANodeThatIsCordonedAgainAndAgainIsAwayHalfOfTheTime(t *testing.T) {
	g := NewWithT(t)
	well, away := disruption.World{Answered: true, Most: 1}, time.Duration(0)
	l := leaves("a1")
	for at := now; at.Before(now.Add(24 * time.Hour)); at = at.Add(time.Minute) {
		if disruption.Leaving([]disruption.Leave{l}, nil, well, at)[0].For != "" {
			continue
		}
		// It comes back after two hours, which is the limit, and is cordoned again at once.
		since := at
		at = at.Add(2 * time.Hour)
		away += 2 * time.Hour
		l.Turn = disruption.NextTurn(since, at)
	}
	g.Expect(away).To(Equal(12 * time.Hour))
}

func TestWhichNodesMayGoAndWhatTheOthersWaitFor(t *testing.T) {
	type queue = []disruption.Leave
	holds := func(node string) disruption.Leave {
		l := leaves(node)
		l.Costs, l.Together = "there is one master", 1
		return l
	}
	allowed := func(l disruption.Leave) disruption.Leave {
		l.Allowed = true
		return l
	}
	before := func(l disruption.Leave, turn time.Time) disruption.Leave {
		l.Turn = turn
		return l
	}
	nowhere := func(node string) disruption.Leave { return disruption.Leave{Node: node, Together: 9} }
	well := disruption.World{Answered: true, Most: 1}
	in := func(change func(w *disruption.World)) disruption.World {
		w := well
		change(&w)
		return w
	}
	many := in(func(w *disruption.World) { w.Most = 3 })
	const over = "the maintenance of these nodes is over: "
	for name, c := range map[string]struct {
		queue, away queue
		world       disruption.World
		waits       []string
	}{
		"one that was away before waits for its turn, and others go": {
			queue: queue{before(leaves("a1"), now.Add(time.Hour)), leaves("b1")}, world: well,
			waits: []string{"it is 2026-05-01T13:00:00Z: a1 has just been away for maintenance, and stays as long as that took, so that others have a turn", ""},
		},
		"one whose turn has come goes":                 {queue: queue{before(leaves("a1"), now)}, world: well, waits: []string{""}},
		"a person allows it before its turn":           {queue: queue{allowed(before(leaves("a1"), now.Add(time.Hour)))}, world: well, waits: []string{""}},
		"nobody wants to go":                           {world: well, waits: []string{}},
		"one goes":                                     {queue: queue{leaves("a1")}, world: well, waits: []string{""}},
		"one at a time":                                {queue: queue{leaves("a1"), leaves("a2")}, world: well, waits: []string{"", over + "a1"}},
		"several of one domain, as many as one allows": {queue: queue{leaves("a1"), leaves("a2"), leaves("a3"), leaves("a4")}, world: many, waits: []string{"", "", "", over + "a1, a2, a3"}},
		"no more than the filesystem can bear": {
			queue: queue{leaves("a1"), {Node: "a2", Domain: leaves("a2").Domain, Together: 2}, leaves("a3")}, world: many, waits: []string{"", "", over + "a1, a2"},
		},
		"never of two domains":                            {queue: queue{leaves("a1"), leaves("b1")}, world: many, waits: []string{"", over + "a1"}},
		"never with one that is away of another domain":   {queue: queue{leaves("b1")}, away: queue{leaves("a1")}, world: many, waits: []string{over + "a1"}},
		"with one of its domain that is away":             {queue: queue{leaves("a2")}, away: queue{leaves("a1")}, world: many, waits: []string{""}},
		"alone where a person requests one at a time":     {queue: queue{leaves("a2")}, away: queue{leaves("a1")}, world: well, waits: []string{over + "a1"}},
		"an unknown domain is none":                       {queue: queue{nowhere("x1"), nowhere("x2")}, world: many, waits: []string{"", over + "x1"}},
		"not with one that a person has allowed":          {queue: queue{leaves("a2")}, away: queue{allowed(holds("a1"))}, world: many, waits: []string{over + "a1"}},
		"unknown is not safe":                             {queue: queue{leaves("a1")}, world: disruption.World{}, waits: []string{"the filesystem is healthy"}},
		"not while there are problems":                    {queue: queue{leaves("a1")}, world: in(func(w *disruption.World) { w.Problems = true }), waits: []string{"the filesystem is healthy"}},
		"not while updates are paused":                    {queue: queue{leaves("a1")}, world: in(func(w *disruption.World) { w.Paused = true }), waits: []string{"spec.updates.paused is false again"}},
		"not while a daemon is away":                      {queue: queue{leaves("a1")}, world: in(func(w *disruption.World) { w.Away = []disruption.Place{at("b1")} }), waits: []string{"the filesystem is healthy, and chunkserver on node b1 in failure domain b is back"}},
		"what no other has, only by the word of a person": {queue: queue{holds("a1"), leaves("b1")}, world: well, waits: []string{"a person allows it, because there is one master", ""}},
		"the word of a person is about all that stands in the way": {
			queue: queue{allowed(holds("a1")), leaves("b1")}, away: queue{leaves("c1")},
			world: in(func(w *disruption.World) { w.Problems, w.Paused = true, true }), waits: []string{"", "spec.updates.paused is false again"},
		},
		"its own record is nothing to wait for": {
			queue: queue{leaves("a2")}, away: queue{leaves("a1")}, world: in(func(w *disruption.World) { w.Most, w.Maintained = 2, []string{"a1"} }), waits: []string{""},
		},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			got := disruption.Leaving(c.queue, c.away, c.world, now)
			said := []string{}
			for i, wait := range got {
				said = append(said, wait.For)
				g.Expect(wait.Person).To(Equal(c.queue[i].Costs != "" && !c.queue[i].Allowed), "%+v", wait)
			}
			g.Expect(said).To(Equal(c.waits))
		})
	}
}

func TestDuringAMaintenanceOnlyDaemonsThatAreDownRestart(t *testing.T) {
	g := NewWithT(t)
	w := disruption.World{Answered: true, Most: 9, Maintained: []string{"a1"}}
	down := with(asked("b2"), func(d *disruption.Disruption) { d.Down = true })
	d := disruption.Decide([]disruption.Disruption{asked("b1"), down}, w)
	g.Expect(d.Now).To(Equal([]int{1}))
	g.Expect(d.Waits[0]).To(Equal("the maintenance of these nodes is over: a1"))
	g.Expect(d.Rests(w)).To(BeFalse())
}

func TestWithoutAnApprovalNodesOfTwoFailureDomainsAreNeverAwayAtOnceNorDuringARestart(t *testing.T) {
	r := rand.New(rand.NewPCG(15, 3))
	nodes := []string{"a1", "a2", "a3", "b1", "b2", "c1"}
	went := 0
	for range 3000 {
		var away []disruption.Leave // nodes in maintenance
		restarting := ""            // the node whose daemon restarts
		w := disruption.World{Answered: true, Most: 1 + r.IntN(3)}
		for range 30 {
			w.Maintained, w.Away, w.Problems = nil, nil, r.IntN(5) == 0
			for _, l := range away {
				w.Maintained = append(w.Maintained, l.Node)
			}
			if restarting != "" {
				w.Away = append(w.Away, at(restarting))
			}
			switch r.IntN(4) {
			case 0: // some nodes are cordoned
				var queue []disruption.Leave
				for _, node := range nodes {
					is := false
					for _, l := range away {
						is = is || l.Node == node
					}
					if l := leaves(node); !is && r.IntN(2) == 0 {
						l.Together = 1 + r.IntN(3)
						queue = append(queue, l)
					}
				}
				for i, wait := range disruption.Leaving(queue, away, w, now) {
					if wait.For == "" {
						away, went = append(away, queue[i]), went+1
					}
				}
			case 1: // a daemon has to restart
				queue := []disruption.Disruption{asked(nodes[r.IntN(len(nodes))])}
				if d := disruption.Decide(queue, w); len(d.Now) > 0 {
					restarting = queue[0].Node
				}
			case 2:
				restarting = ""
			case 3:
				away = nil
			}
			for i := range away {
				if away[i].Domain != away[0].Domain || restarting != "" || len(away) > away[i].Together || len(away) > w.Most {
					t.Fatalf("%v are away, a daemon on %q restarts, and %d may be", away, restarting, w.Most)
				}
			}
		}
	}
	if went < 1000 {
		t.Fatalf("only %d nodes went", went)
	}
}
