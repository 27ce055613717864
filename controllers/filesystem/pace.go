package filesystem

import (
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
)

// pace limits the rate of passes over one FileSystem. Each proven disk and each started pod triggers a pass, thousands within a minute when
// a filesystem is created. A pass that covers many of them writes less, and leaves time for other FileSystems.
type pace struct {
	mutex sync.Mutex
	next  map[types.NamespacedName]time.Time
}

// rest returns how long the next pass has to wait.
func (p *pace) rest(fs types.NamespacedName, now time.Time) time.Duration {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	return p.next[fs].Sub(now)
}

const (
	// restShare is the ratio of a FileSystem's rest to the work of the pass before. While the thousands of servers of a large filesystem
	// start, each of them triggers a pass, and all passes together would use any amount of CPU.
	restShare = 4
	// longestRest is how long events have to wait at most. A pass that creates thousands of objects may take minutes, mostly to wait for the
	// API server.
	longestRest = 5 * time.Second
)

// ended records that a pass has ended after some time of work. The next pass begins after the pause and after the FileSystem has rested, so
// that passes over one FileSystem take a fifth of the time. The rest is at most longestRest. Without a pause, the next pass begins at once.
func (p *pace) ended(fs types.NamespacedName, worked time.Duration, now time.Time, pause time.Duration) {
	if pause == 0 {
		return
	}
	p.mutex.Lock()
	defer p.mutex.Unlock()
	if p.next == nil {
		p.next = map[types.NamespacedName]time.Time{}
	}
	p.next[fs] = now.Add(max(pause, min(restShare*worked, longestRest)))
}

func (p *pace) forget(fs types.NamespacedName) {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	delete(p.next, fs)
}
