// Package disruption decides which daemons of a filesystem may be taken away now, and why the others have to wait. Whatever takes a daemon
// away for a while stands in one queue. It is pure: what goes in was seen, what comes out is a decision and its sentence.
package disruption

import (
	"cmp"
	"fmt"
	"slices"

	"parallelfs.dev/operator/internal/backend"
)

// Place is what a disruption takes away: a daemon on a node.
type Place struct {
	// Component of the daemon, such as "chunkserver".
	Component string
	Node      string
	// Domain is the failure domain of the node; the zero value while nobody knows it, which is in no domain with anything.
	Domain backend.Domain
}

// String names the place in a sentence.
func (p Place) String() string { return p.Component + " on node " + p.Node }

// Disruption is a daemon that is to be away for a while.
type Disruption struct {
	Place
	// Priority is its turn: while one of a lower number waits, those of higher numbers do as well.
	Priority int
	// Why it is asked for, as a sentence.
	Why string
	// Down is true when the daemon is away already: the disruption takes nothing away, and may be the repair.
	Down bool
	// Mends is true when it may begin although the filesystem has problems: it mends them, or can't make them worse.
	Mends bool
	// Costs says why programs wait meanwhile, in words that follow "because "; empty when all that the daemon holds is proven to have an
	// in-sync copy elsewhere.
	Costs string
	// Together is how many of its component and domain may be away at once, itself included, as the filesystem's answer proves; 0 is one.
	Together int
	// Waits says what it waits for itself, in words that follow "when "; empty when for nothing.
	Waits string
}

// World is what is known of the filesystem that the queue belongs to. What is not known is not safe.
type World struct {
	// Answered is true when the filesystem has said how it is.
	Answered bool
	// Problems is true when it is not well: something is missing, endangered or unknown.
	Problems bool
	// Away are the daemons that are away, whatever the filesystem says of them: they do not run, or it was not asked since they do.
	Away []Place
	// Gone are the servers that should be there, and of which nobody knows where.
	Gone []string
	// Unconfirmed are servers that the filesystem calls online, although it could mean their predecessors.
	Unconfirmed []string
	// Paused is true while a person wants none that runs to be taken away.
	Paused bool
	// Maintained are the nodes that are away for maintenance, or may be: nothing else is taken away meanwhile.
	Maintained []string
	// Closed says when programs may be made to wait, in words that follow "when "; empty when they may now.
	Closed string
	// Most is how many of one domain a person lets be away at once; 0 is one.
	Most int
}

// Decision says what is done now.
type Decision struct {
	// Now are the places in the queue of those that begin now: one, or several of one component and domain.
	Now []int
	// Waits says for each of the queue what it waits for, in words that follow "when "; empty for those that begin now.
	Waits []string
	// first is the place in the queue of the one that is the first to begin when what it waits for has come.
	first int
}

// Decide picks what may begin now. A daemon that is down is taken first, alone, and whatever else is wrong: that may be the repair. One
// that runs is taken away only while the filesystem has answered since all daemons are up, none is away, and all is well, or this one
// mends what is not: so daemons of two failure domains are never away at once. What makes programs wait goes alone, and when they may be
// made to.
func Decide(queue []Disruption, w World) Decision {
	d := Decision{Waits: make([]string, len(queue)), first: -1}
	order := make([]int, len(queue))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(queue[a].Priority, queue[b].Priority) })
	all := w.hinders()
	behind, waiting := 0, "" // the priority of the first that waits for something of its own, and what for
	for _, i := range order {
		next, own := &queue[i], queue[i].Waits
		switch {
		case own != "":
			d.Waits[i] = own
		case next.Down:
		case all != "":
			d.Waits[i] = all
		case waiting != "" && next.Priority > behind && !next.Mends:
			d.Waits[i] = waiting
		case w.Problems && !next.Mends:
			d.Waits[i] = healthy
		case next.Costs != "":
			d.Waits[i], own = w.Closed, w.Closed
		}
		if d.first < 0 && d.Waits[i] != "" {
			d.first = i
		}
		// What waits for something of its own keeps its turn before those behind it. A problem holds all up alike.
		if own != "" && waiting == "" {
			behind, waiting = next.Priority, own
		}
	}
	d.begin(queue, order, w)
	return d
}

const (
	healthy = "the filesystem is healthy"
	paused  = "spec.updates.paused is false again"
)

// hinders says what keeps every daemon that runs where it is, in words that follow "when "; empty when nothing does.
func (w World) hinders() string {
	switch {
	case w.Paused:
		return paused
	case len(w.Maintained) > 0:
		return "the maintenance of these nodes is over: " + backend.List(w.Maintained)
	case len(distinct(w.Away)) == 1:
		return healthy + ", and " + names(w.Away) + " is back"
	case len(w.Away) > 1:
		return healthy + ", and " + names(w.Away) + " are back"
	case len(w.Gone) > 0:
		return healthy + ", and these have a pod: " + backend.List(w.Gone)
	case !w.Answered:
		return healthy
	case len(w.Unconfirmed) > 0:
		return "it is certain that these are there: " + backend.List(w.Unconfirmed)
	default:
		return ""
	}
}

// Rests is true when nothing begins, and all that is asked for waits for a person or a window: that may take days, and the filesystem is
// as it was before.
func (d *Decision) Rests(w World) bool {
	return len(d.Now) == 0 && len(d.Waits) > 0 && !w.Problems && len(w.Away)+len(w.Gone) == 0 &&
		!slices.ContainsFunc(d.Waits, func(waits string) bool { return waits != paused && (waits != w.Closed || waits == "") })
}

// begin notes the first of those that wait for nothing, and those that may go with it; the others wait for these.
func (d *Decision) begin(queue []Disruption, order []int, w World) {
	free := slices.DeleteFunc(slices.Clone(order), func(i int) bool { return d.Waits[i] != "" })
	if len(free) == 0 {
		return
	}
	first := free[0]
	if down := slices.IndexFunc(free, func(i int) bool { return queue[i].Down }); down >= 0 {
		first = free[down]
	}
	d.Now = []int{first}
	most := max(1, min(w.Most, queue[first].Together))
	if w.Problems || !queue[first].joins(queue[first]) {
		most = 1
	}
	for _, i := range free {
		limit := queue[i].Together
		if i != first && len(d.Now) < most && queue[first].joins(queue[i]) && limit > len(d.Now) {
			d.Now, most = append(d.Now, i), min(most, limit)
		}
	}
	last := "those that begin now are back: " + names(d.places(queue))
	for _, i := range free {
		if !slices.Contains(d.Now, i) {
			d.Waits[i] = last
		}
	}
}

// joins is true when two daemons may be away together, if enough copies stay.
func (d *Disruption) joins(other Disruption) bool {
	return d.Domain != (backend.Domain{}) && d.Domain == other.Domain && d.Component == other.Component &&
		!d.Down && !other.Down && d.Costs == "" && other.Costs == ""
}

func (d *Decision) places(queue []Disruption) []Place {
	out := make([]Place, len(d.Now))
	for i, at := range d.Now {
		out[i] = queue[at].Place
	}
	return out
}

// Sentence says how many are to be restarted, which are now, or what the first of them waits for, and which of them programs will wait for.
func (d *Decision) Sentence(queue []Disruption, w World) string {
	if len(queue) == 0 {
		return ""
	}
	var out string
	if len(d.Now) > 0 {
		first := queue[d.Now[0]]
		how := "one at a time"
		if w.Most > 1 {
			how = fmt.Sprintf("at most %d of one failure domain at a time", w.Most)
		}
		out = fmt.Sprintf("%s to be restarted, %s; now %s: %s%s", pods(len(queue)), how, names(d.places(queue)), first.Why, first.Cost())
	} else {
		first := queue[d.first]
		out = fmt.Sprintf("%s to be restarted when %s; first %s: %s", pods(len(queue)), d.Waits[d.first], first.Place, first.Why)
	}
	var costs []string
	for i := range queue {
		if next := &queue[i]; next.Costs != "" && !next.Down && !slices.Contains(d.Now, i) {
			costs = append(costs, fmt.Sprintf("%s (%s)", next.Place, next.Costs))
		}
	}
	if len(costs) > 0 {
		out += "; programs will wait while each of these restarts: " + backend.List(costs)
	}
	return out
}

func pods(n int) string {
	if n == 1 {
		return "1 pod is"
	}
	return fmt.Sprintf("%d pods are", n)
}

// Cost says what the disruption means for programs, in words that follow others; empty when they go on.
func (d *Disruption) Cost() string {
	if d.Costs == "" || d.Down {
		return ""
	}
	return "; programs wait until it is back, because " + d.Costs
}

// distinct are places, each once: a pod that is being stopped and the one that follows it are at one place, and so are servers of two
// pools.
func distinct(places []Place) []Place {
	var out []Place
	for _, p := range places {
		if !slices.Contains(out, p) {
			out = append(out, p)
		}
	}
	return out
}

// names lists places, each once, and the failure domain that they are in when all are in one that has a name.
func names(places []Place) string {
	places = distinct(places)
	said := make([]string, len(places))
	one := true
	for i, p := range places {
		said[i] = p.String()
		one = one && p.Domain == places[0].Domain
	}
	out := backend.List(said)
	if len(places) > 1 {
		out = fmt.Sprintf("%d servers (%s)", len(places), out)
	}
	if one && places[0].Domain.Labeled {
		out += " in " + places[0].Domain.String()
	}
	return out
}
