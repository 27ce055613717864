package filesystem

import (
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
)

// sightings remember when this manager first saw things as they are now, by its own clock. They are in memory only: a manager that was
// just started has seen nothing, and asks again before it concludes anything.
type sightings struct {
	mutex sync.Mutex
	// of is by what was looked at, then by the thing, such as a pod.
	of map[sight]map[types.UID]sighting
}

// sight is what is looked at as a whole.
type sight struct {
	fileSystem types.NamespacedName
	// kind of the things, such as "pods".
	kind string
}

// sighting is how a thing is, and since when it was seen so.
type sighting struct {
	as    string
	since time.Time
}

// see notes that things are now as it says, by their uids, and returns since when each was seen so. A thing that is not among them is
// forgotten.
func (s *sightings) see(what sight, as map[types.UID]string, now time.Time) map[types.UID]time.Time {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	if s.of == nil {
		s.of = map[sight]map[types.UID]sighting{}
	}
	before, after, since := s.of[what], make(map[types.UID]sighting, len(as)), make(map[types.UID]time.Time, len(as))
	for uid, how := range as {
		is, known := before[uid]
		if !known || is.as != how {
			is = sighting{as: how, since: now}
		}
		after[uid], since[uid] = is, is.since
	}
	s.of[what] = after
	return since
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
