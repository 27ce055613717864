// Package disruption decides which daemons of a filesystem may be taken down now, and why the others have to wait. Every disruption of a
// daemon goes through one queue. It is pure: the input is a snapshot of state, and the output is a decision with its sentence.
package disruption

import (
	"cmp"
	"fmt"
	"slices"

	"parallelfs.dev/operator/api/v1alpha1"
	"parallelfs.dev/operator/internal/backend"
	"parallelfs.dev/operator/internal/backend/shared/nodefacts"
)

// Place is the subject of a disruption: a daemon on a node.
type Place struct {
	// Component is the component of the daemon, such as "chunkserver".
	Component string
	Node      string
	// Domain is the failure domain of the node. The zero value means that it is unknown, and shares no domain with others.
	Domain nodefacts.Domain
}

// String names the place in a sentence.
func (p Place) String() string { return p.Component + " on node " + p.Node }

// Disruption is a daemon that has to go down for a while.
type Disruption struct {
	Place
	// Priority is its place in the order: while one with a lower number waits, those with higher numbers wait too.
	Priority int
	// Why is the reason for it, as a sentence.
	Why string
	// Down is true if the daemon is already down: the disruption takes nothing down, and may be the repair.
	Down bool
	// Mends is true if it may start although the filesystem has problems, because it solves them or can't make them worse.
	Mends bool
	// Costs is the reason why programs wait meanwhile, to follow "because ". It is empty if everything on the daemon is proven to have an
	// in-sync copy elsewhere.
	Costs string
	// Together is the number of daemons of its component and domain, itself included, that may be down at once according to the filesystem's
	// answer; 0 means one.
	Together int
	// Waits is its own condition, to follow "when "; empty if there is none.
	Waits string
}

// World is the snapshot of state of the queue's filesystem. Unknown state counts as unsafe.
type World struct {
	// Answered is true if the filesystem's state is known.
	Answered bool
	// Problems is true if the filesystem is not healthy: something is missing, endangered or unknown.
	Problems bool
	// Away lists the daemons that are down, whatever the filesystem reports: they are not running, or the filesystem was not queried since
	// they started.
	Away []Place
	// Gone lists servers that should exist and whose location is unknown.
	Gone []string
	// Unconfirmed lists servers that the filesystem reports as online, although the report may be about their predecessors.
	Unconfirmed []string
	// Paused is true while a person wants no running daemon to be taken down.
	Paused bool
	// Maintained lists nodes that are down for maintenance or may go down: nothing else is taken down meanwhile.
	Maintained []string
	// Closed is the time at which programs may be made to wait, to follow "when "; empty if that is now.
	Closed string
	// Most is a person's limit of daemons in one domain that are down at once; 0 means one.
	Most int
}

// Decision is the result of Decide.
type Decision struct {
	// Now lists the indexes in the queue that start now: one, or several of one component and domain.
	Now []int
	// Waits holds the condition of each in the queue, to follow "when "; empty for those that start now.
	Waits []string
	// first is the index in the queue of the first to start once its condition is met.
	first int
}

// Decide selects what may start now. A daemon that is down has precedence, alone, whatever else is wrong, because this may be the repair. A
// running daemon is taken down only if the filesystem has answered since all daemons are up, none is down, and everything is healthy, or if
// this disruption solves the problem. Therefore daemons of two failure domains are never down at once. A disruption for which programs must
// wait runs alone, and only in a window for that.
func Decide(queue []Disruption, w World) Decision {
	d := Decision{Waits: make([]string, len(queue)), first: -1}
	order := make([]int, len(queue))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(queue[a].Priority, queue[b].Priority) })
	all := w.hinders()
	behind, waiting := 0, "" // the priority of the first one with a condition of its own, and that condition
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
		// A disruption with its own condition keeps its turn before later ones. A problem of the filesystem holds up all of them.
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

// hinders returns the reason why no running daemon may be taken down, to follow "when "; empty if there is none.
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

// Rests is true if nothing starts and every request waits for a person or a window. That may take days, and the filesystem is unchanged
// meanwhile.
func (d *Decision) Rests(w World) bool {
	return len(d.Now) == 0 && len(d.Waits) > 0 && !w.Problems && len(w.Away)+len(w.Gone) == 0 &&
		!slices.ContainsFunc(d.Waits, func(waits string) bool { return waits != paused && (waits != w.Closed || waits == "") })
}

// begin starts the first disruption without a condition, and those that may run with it. The others wait for these.
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

// joins is true if two daemons may be down together, provided that enough copies remain.
func (d *Disruption) joins(other Disruption) bool {
	return d.Domain != (nodefacts.Domain{}) && d.Domain == other.Domain && d.Component == other.Component &&
		!d.Down && !other.Down && d.Costs == "" && other.Costs == ""
}

func (d *Decision) places(queue []Disruption) []Place {
	out := make([]Place, len(d.Now))
	for i, at := range d.Now {
		out[i] = queue[at].Place
	}
	return out
}

// Sentence describes how many daemons are to be restarted, which ones restart now or what the first one waits for, and for which ones
// programs will wait.
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

func pods(n int) string { return v1alpha1.Count(n, "pod is", "pods are") }

// Cost says what the disruption means for programs, in words that follow others; empty when they go on.
func (d *Disruption) Cost() string {
	if d.Costs == "" || d.Down {
		return ""
	}
	return "; programs wait until it is back, because " + d.Costs
}

// distinct returns each place once: a pod that is being stopped and its successor have the same place, and so have servers of two pools.
func distinct(places []Place) []Place {
	var out []Place
	for _, p := range places {
		if !slices.Contains(out, p) {
			out = append(out, p)
		}
	}
	return out
}

// names lists each place once, with the failure domain if all are in the same labeled one.
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
