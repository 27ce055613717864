package disruption

import (
	"fmt"
	"slices"
	"time"

	"parallelfs.dev/operator/internal/backend"
)

// Leave is a node that somebody wants to take away for a while, with all daemons on it.
type Leave struct {
	Node string
	// Domain is the failure domain of the node; the zero value while nobody knows it, which is in no domain with anything.
	Domain backend.Domain
	// Costs says why programs would wait meanwhile, in words that follow "because "; empty when all that the node holds is proven to have an
	// in-sync copy elsewhere.
	Costs string
	// Together is how many nodes of its domain may be away at once, itself included, as the filesystem's answer proves; 0 is one.
	Together int
	// Turn is when its turn comes again after a maintenance that it had (NextTurn); the zero value when it may go at any time.
	Turn time.Time
	// Allowed is true when a person has allowed it, whatever the filesystem says.
	Allowed bool
}

// Wait is what a node waits for, in words that follow "when "; empty for one that may go now.
type Wait struct {
	For string
	// Person is true when nothing but the word of a person lets the node go.
	Person bool
}

// NextTurn is when a node that was away may be away again: after as long as it was away. So a node that is cordoned again and again leaves
// half of the time to restarts, upgrades and other nodes.
func NextTurn(since, ended time.Time) time.Time { return ended.Add(max(ended.Sub(since), 0)) }

// Leaving decides which nodes may go now, and says for each of the others what it waits for. Nobody knows how long a node stays away. So it
// goes while nothing else is away and all is well, as a daemon that is restarted, and only when all that it holds has a copy elsewhere.
// Where that is not so, a person has to allow it, and then nothing is in the way. Those that are away already are given, too: nodes of two
// failure domains are never away at once, unless a person has allowed it. One that was away before waits for its turn.
func Leaving(queue, away []Leave, w World, now time.Time) []Wait {
	waits := make([]Wait, len(queue))
	w.Maintained = nil // they are away, and looked at below
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
			if waits[i].For = next.behind(gone, w.Most); waits[i].For == "" && next.Costs != "" {
				waits[i] = Wait{For: "a person allows it, because " + next.Costs, Person: true}
			}
		}
		if waits[i].For == "" {
			gone = append(gone, *next)
		}
	}
	return waits
}

// behind says which nodes a node has to wait for; empty when it may join all that are away.
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
