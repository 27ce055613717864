package filesystem

import (
	"iter"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
)

// observations records when this manager first saw things in their present state, by its own clock. It is in memory only. A manager that
// has just started has seen nothing, and observes again before it draws conclusions.
type observations struct {
	mutex sync.Mutex
	of    map[observedGroup]groupState
}

// observedGroup identifies a group of things that is observed as a whole.
type observedGroup struct {
	fileSystem types.NamespacedName
	// kind is the kind of the things, such as "pods".
	kind string
}

// groupState holds the things of one group, by uid: the state of each, and since when it was seen.
type groupState struct {
	as    map[types.UID]how
	since map[types.UID]time.Time
}

// how distinguishes the states of a thing.
type how struct {
	text   string
	number int64
}

// see records the present states of things, by their uids, and returns since when each was seen so. The result is valid until the next call
// for the same group. Things that are not in the list are dropped. For 24,000 unchanged things nothing is written.
func (s *observations) see(what observedGroup, things iter.Seq2[types.UID, how], now time.Time) map[types.UID]time.Time {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	known, ok := s.of[what]
	if !ok {
		known = groupState{as: map[types.UID]how{}, since: map[types.UID]time.Time{}}
		if s.of == nil {
			s.of = map[observedGroup]groupState{}
		}
		s.of[what] = known
	}
	count := 0
	for uid, as := range things {
		count++
		if was, there := known.as[uid]; !there || was != as {
			known.as[uid], known.since[uid] = as, now
		}
	}
	if count != len(known.as) {
		known.keep(things)
	}
	return known.since
}

// keep drops all but these things.
func (s groupState) keep(things iter.Seq2[types.UID, how]) {
	there := make(map[types.UID]bool, len(s.as))
	for uid := range things {
		there[uid] = true
	}
	for uid := range s.as {
		if !there[uid] {
			delete(s.as, uid)
			delete(s.since, uid)
		}
	}
}

// forget drops all things of a FileSystem that is gone.
func (s *observations) forget(fileSystem types.NamespacedName) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	for what := range s.of {
		if what.fileSystem == fileSystem {
			delete(s.of, what)
		}
	}
}
