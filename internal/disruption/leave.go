package disruption

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"parallelfs.dev/operator/internal/backend"
)

// Leave is a node that is to be taken down for a while with all its daemons.
type Leave struct {
	Node string
	// Domain is the failure domain of the node. The zero value means that it is unknown, and shares no domain with others.
	Domain backend.Domain
	// Costs is the reason why programs would wait meanwhile, to follow "because ". It is empty if everything on the node is proven to have an
	// in-sync copy elsewhere.
	Costs string
	// Before is what must be the case first, to follow "when "; empty if nothing.
	Before string
	// Together is the number of nodes of its domain, itself included, that may be down at once according to the filesystem's answer; 0 means
	// one.
	Together int
	// Turn is the time of its next turn after an earlier maintenance (NextTurn). The zero value means that it may go down at any time.
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

// NextTurn returns the time at which a node may go down again, which is after it was up for as long as it was down. Therefore a node that
// is cordoned again and again leaves half of the time to restarts, upgrades and other nodes.
func NextTurn(since, ended time.Time) time.Time { return ended.Add(max(ended.Sub(since), 0)) }

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
		case now.Before(next.Turn):
			waits[i].For = fmt.Sprintf("it is %s: %s has just been away for maintenance, and stays as long as that took, so that others have a turn",
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
		if l.Domain == (backend.Domain{}) || other.Domain != l.Domain {
			least = 0
		}
		others = append(others, other.Node)
	}
	if len(gone) == 0 || len(gone) < least {
		return ""
	}
	return "the maintenance of these nodes is over: " + backend.List(others)
}
