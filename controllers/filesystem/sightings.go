package filesystem

import (
	"iter"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
)

// sightings remember when this manager first saw things as they are now, by its own clock. They are in memory only: a manager that was
// just started has seen nothing, and asks again before it concludes anything.
type sightings struct {
	mutex sync.Mutex
	of    map[sight]sighted
}

// sight is what is looked at as a whole.
type sight struct {
	fileSystem types.NamespacedName
	// kind of the things, such as "pods".
	kind string
}

// sighted are the things that were seen there, by uid: how each is, and since when it was seen so.
type sighted struct {
	as    map[types.UID]how
	since map[types.UID]time.Time
}

// how tells the states of a thing from each other.
type how struct {
	text   string
	number int64
}

// see notes that things are now as it says, by their uids, and returns since when each was seen so: to be read before the next look at the
// same. A thing that is not among them is forgotten. Of 24,000 things nothing is written while they stay as they are.
func (s *sightings) see(what sight, things iter.Seq2[types.UID, how], now time.Time) map[types.UID]time.Time {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	known, ok := s.of[what]
	if !ok {
		known = sighted{as: map[types.UID]how{}, since: map[types.UID]time.Time{}}
		if s.of == nil {
			s.of = map[sight]sighted{}
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

// keep forgets all but these things.
func (s sighted) keep(things iter.Seq2[types.UID, how]) {
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

// forget forgets all things of a FileSystem that is gone.
func (s *sightings) forget(fileSystem types.NamespacedName) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	for what := range s.of {
		if what.fileSystem == fileSystem {
			delete(s.of, what)
		}
	}
}
