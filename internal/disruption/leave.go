package disruption

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"parallelfs.dev/operator/internal/backend"
	"parallelfs.dev/operator/internal/backend/shared/nodefacts"
)

// Leave is a node that is to be taken down for a while with all its daemons.
type Leave struct {
	Node string
	// Domain is the failure domain of the node. The zero value means that it is unknown, and shares no domain with others.
	Domain nodefacts.Domain
	// Costs is the reason why programs would wait meanwhile, to follow "because ". It is empty if everything on the node is proven to have an
	// in-sync copy elsewhere.
	Costs string
	// Before is what must be the case first, to follow "when "; empty if nothing.
	Before string
	// Together is the number of nodes of its domain, itself included, that may be down at once according to the filesystem's answer; 0 means
	// one.
	Together int
	// Turn is the time of its next turn after an earlier maintenance (Round.Turn). The zero value means that it may go down at any time.
	Turn time.Time
	// Allowed is true if a person has allowed it regardless of the filesystem's state.
	Allowed bool
}

// Wait is the condition of a node, to follow "when "; empty for one that may go down now.
type Wait struct {
	For string
	// Person is true if the node may go down only with a person's permission.
	Person bool
}

// Round is a series of maintenances. In a round each node is away once. A pause follows, in which nothing is away for maintenance.
// Therefore nodes that are cordoned again and again, one after the other, leave time to restarts, upgrades and benchmarks.
type Round struct {
	nodes map[string]bool
	// ended is the end of the last maintenance so far, and down is how long nodes were away.
	ended time.Time
	down  time.Duration
	// longest is the maximum of the pause.
	longest time.Duration
}

// Away adds a maintenance, until its end or until now. The same maintenance can be added again. longest is the limit of a maintenance, and
// the maximum of the pause.
func (r *Round) Away(node string, since, until time.Time, longest time.Duration) {
	if !since.Before(r.Over()) {
		*r = Round{nodes: map[string]bool{}, ended: since}
	}
	r.nodes[node], r.longest = true, longest
	if until.After(r.ended) {
		if since.After(r.ended) {
			r.ended = since
		}
		r.down += until.Sub(r.ended)
		r.ended = until
	}
}

// Over returns the end of the pause, which lasts as long as nodes were away.
func (r *Round) Over() time.Time { return r.ended.Add(min(r.down, r.longest)) }

// Turn returns the time at which a node may be away again. It is zero for a node that was not away in this round.
func (r *Round) Turn(node string) time.Time {
	if !r.nodes[node] {
		return time.Time{}
	}
	return r.Over()
}

// Leaving decides which nodes may go down now, and returns the condition of each of the others. The duration of a node's absence is
// unknown. Therefore, like a daemon's restart, it requires that nothing else is down and everything is healthy. In addition, all data on
// the node must have a copy elsewhere. Otherwise a person has to allow it, and then no condition remains. A person is asked last, so that
// the approval covers everything that is left. away lists the nodes that are already down: nodes of two failure domains are never down at
// once, unless a person has allowed it. A node that was down before waits for its turn.
func Leaving(queue, away []Leave, w World, now time.Time) []Wait {
	waits := make([]Wait, len(queue))
	w.Maintained = nil // they are down, and considered below
	all := w.hinders()
	if all == "" && w.Problems {
		all = healthy
	}
	gone := slices.Clone(away)
	for i := range queue {
		next := &queue[i]
		switch {
		case next.Allowed:
		case now.Before(next.Turn) && len(away) > 0:
			// The pause begins after their maintenance, and its end changes until then.
			waits[i].For = next.behind(away, 1) + ", and a pause has followed, because " + next.Node + " has already been away"
		case now.Before(next.Turn):
			waits[i].For = fmt.Sprintf("it is %s: %s has already been away, and nodes stay until then, so that restarts, upgrades and benchmarks have a turn",
				next.Turn.UTC().Format(time.RFC3339), next.Node)
		case all != "":
			waits[i].For = all
		default:
			waits[i].For = cmp.Or(next.behind(gone, w.Most), next.Before)
			if waits[i].For == "" && next.Costs != "" {
				waits[i] = Wait{For: "a person allows it, because " + next.Costs, Person: true}
			}
		}
		if waits[i].For == "" {
			gone = append(gone, *next)
		}
	}
	return waits
}

// behind names the nodes that a node has to wait for; empty if it may join all that are down.
func (l *Leave) behind(gone []Leave, most int) string {
	least := min(max(most, 1), max(l.Together, 1))
	var others []string
	for i := range gone {
		other := &gone[i]
		least = min(least, max(other.Together, 1))
		if l.Domain == (nodefacts.Domain{}) || other.Domain != l.Domain {
			least = 0
		}
		others = append(others, other.Node)
	}
	if len(gone) == 0 || len(gone) < least {
		return ""
	}
	return "the maintenance of these nodes is over: " + backend.List(others)
}
