package disruption_test

import (
	"math/rand/v2"
	"testing"
	"time"

	. "github.com/onsi/gomega"

	"parallelfs.dev/operator/internal/backend/shared/nodefacts"
	"parallelfs.dev/operator/internal/disruption"
)

// leaves returns a node, whose failure domain is the first letter of its name. All data on it has a copy elsewhere.
func leaves(node string) disruption.Leave {
	return disruption.Leave{Node: node, Domain: nodefacts.Domain{Name: node[:1], Labeled: true}, Together: 9}
}

var now = time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC)

// nodesThatAreCordonedAgain simulates nodes that are cordoned again as soon as they are back, for 30 days. Each is away for the time that
// away returns. It returns how long nothing was away.
func nodesThatAreCordonedAgain(t *testing.T, nodes []string, limit time.Duration, away func(i int) time.Duration) (free time.Duration) {
	t.Helper()
	const step, whole = 10 * time.Minute, 30 * 24 * time.Hour
	type maintenance struct{ since, until time.Time }
	w, round, gone, times := disruption.World{Answered: true, Most: 3}, disruption.Round{}, map[string]maintenance{}, map[string]int{}
	for at := now; at.Before(now.Add(whole)); at = at.Add(step) {
		var queue, down []disruption.Leave
		for _, node := range nodes {
			m, is := gone[node]
			if is {
				round.Away(node, m.since, at, limit)
			}
			if is && at.Before(m.until) {
				down = append(down, leaves(node))
				continue
			}
			delete(gone, node)
		}
		for _, node := range nodes {
			if _, is := gone[node]; !is {
				l := leaves(node)
				l.Turn = round.Turn(node)
				queue = append(queue, l)
			}
		}
		for i, wait := range disruption.Leaving(queue, down, w, at) {
			if wait.For == "" {
				gone[queue[i].Node] = maintenance{at, at.Add(min(away(i+times[queue[i].Node]), limit))}
				times[queue[i].Node]++
			}
		}
		if len(gone) == 0 {
			free += step
		}
	}
	for _, node := range nodes {
		if times[node] < 3 {
			t.Errorf("%s was away %d times: it has turns, too", node, times[node])
		}
	}
	return free * 100 / whole // in percent, as a number of nanoseconds
}

func TestNodesThatAreCordonedAgainAndAgainLeaveTurnsToOthers(t *testing.T) {
	const limit = 2 * time.Hour
	for name, c := range map[string]struct {
		nodes []string
		away  func(i int) time.Duration
		// percent is the least part of the time in which nothing is away.
		percent time.Duration
	}{
		"one":                               {[]string{"a1"}, func(int) time.Duration { return limit }, 50},
		"two of two domains, one by one":    {[]string{"a1", "b1"}, func(int) time.Duration { return limit / 2 }, 50},
		"two that use the limit":            {[]string{"a1", "b1"}, func(int) time.Duration { return limit }, 33},
		"two of one domain that overlap":    {[]string{"a1", "a2"}, func(i int) time.Duration { return limit / time.Duration(1+i%3) }, 33},
		"three of one domain that overlap":  {[]string{"a1", "a2", "a3"}, func(i int) time.Duration { return limit / time.Duration(1+i%4) }, 25},
		"four of three domains":             {[]string{"a1", "a2", "b1", "c1"}, func(int) time.Duration { return limit }, 20},
		"one that is short beside one long": {[]string{"a1", "a2"}, func(i int) time.Duration { return 10*time.Minute + limit*time.Duration(i%2) }, 33},
	} {
		t.Run(name, func(t *testing.T) {
			NewWithT(t).Expect(nodesThatAreCordonedAgain(t, c.nodes, limit, c.away)).To(BeNumerically(">=", c.percent))
		})
	}
}

func TestTheMaintenanceOfEachNodeOnceHasNoPause(t *testing.T) {
	g, round := NewWithT(t), disruption.Round{}
	for i, node := range []string{"a1", "b1", "c1"} {
		since := now.Add(time.Duration(i) * time.Hour)
		g.Expect(round.Turn(node)).To(BeZero())
		round.Away(node, since, since.Add(time.Hour), 2*time.Hour)
	}
	g.Expect(round.Turn("a1")).To(Equal(now.Add(5*time.Hour)), "the pause has the length of the limit at most")
	round.Away("d1", now.Add(5*time.Hour), now.Add(6*time.Hour), 2*time.Hour)
	g.Expect(round.Turn("a1")).To(BeZero(), "the pause is over, and another round has begun")
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
	without := func(l disruption.Leave) disruption.Leave {
		l.Before = "a copy is proven"
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
			waits: []string{"it is 2026-05-01T13:00:00Z: a1 has already been away, and nodes stay until then, so that restarts, upgrades and benchmarks have a turn", ""},
		},
		"one that was away before does not join others": {
			queue: queue{before(leaves("a1"), now.Add(time.Hour))}, away: queue{leaves("a2")}, world: many,
			waits: []string{over + "a2, and a pause has followed, because a1 has already been away"},
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
		"never of two domains":                                               {queue: queue{leaves("a1"), leaves("b1")}, world: many, waits: []string{"", over + "a1"}},
		"never with one that is away of another domain":                      {queue: queue{leaves("b1")}, away: queue{leaves("a1")}, world: many, waits: []string{over + "a1"}},
		"with one of its domain that is away":                                {queue: queue{leaves("a2")}, away: queue{leaves("a1")}, world: many, waits: []string{""}},
		"alone where a person requests one at a time":                        {queue: queue{leaves("a2")}, away: queue{leaves("a1")}, world: well, waits: []string{over + "a1"}},
		"an unknown domain is none":                                          {queue: queue{nowhere("x1"), nowhere("x2")}, world: many, waits: []string{"", over + "x1"}},
		"not with one that a person has allowed":                             {queue: queue{leaves("a2")}, away: queue{allowed(holds("a1"))}, world: many, waits: []string{over + "a1"}},
		"unknown is not safe":                                                {queue: queue{leaves("a1")}, world: disruption.World{}, waits: []string{"the filesystem is healthy"}},
		"not while there are problems":                                       {queue: queue{leaves("a1")}, world: in(func(w *disruption.World) { w.Problems = true }), waits: []string{"the filesystem is healthy"}},
		"not while updates are paused":                                       {queue: queue{leaves("a1")}, world: in(func(w *disruption.World) { w.Paused = true }), waits: []string{"spec.updates.paused is false again"}},
		"not while a daemon is away":                                         {queue: queue{leaves("a1")}, world: in(func(w *disruption.World) { w.Away = []disruption.Place{at("b1")} }), waits: []string{"the filesystem is healthy, and chunkserver on node b1 in failure domain b is back"}},
		"what no other has, only by the word of a person":                    {queue: queue{holds("a1"), leaves("b1")}, world: well, waits: []string{"a person allows it, because there is one master", ""}},
		"what must be the case first is waited for before a person is asked": {queue: queue{without(holds("a1"))}, world: well, waits: []string{"a copy is proven"}},
		"it is waited for by a node that needs no person, and others go":     {queue: queue{without(leaves("a1")), leaves("b1")}, world: well, waits: []string{"a copy is proven", ""}},
		"a person who has seen that allows it":                               {queue: queue{allowed(without(holds("a1")))}, world: well, waits: []string{""}},
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
				g.Expect(wait.Person).To(Equal(c.queue[i].Costs != "" && c.queue[i].Before == "" && !c.queue[i].Allowed), "%+v", wait)
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
