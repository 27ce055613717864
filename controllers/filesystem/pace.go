package filesystem

import (
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
)

// pace keeps passes over one FileSystem apart. Each disk that is proven and each pod that starts asks for a pass, thousands of them
// within a minute when a filesystem is made. A pass that looks at many of them together writes less, and leaves time for other FileSystems.
type pace struct {
	mutex sync.Mutex
	next  map[types.NamespacedName]time.Time
}

// rest is how long the next pass has to wait.
func (p *pace) rest(fs types.NamespacedName, now time.Time) time.Duration {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	return p.next[fs].Sub(now)
}

const (
	// restShare is how many times as long as a pass has worked a FileSystem rests after it. While the thousands of servers of a large one
	// start, each of them asks for a pass, and all of these together for as much of a CPU as there is.
	restShare = 4
	// longestRest is as long as events of others have to wait at most. A pass that makes thousands of objects may take minutes, which it
	// spends with waiting for the API server.
	longestRest = 5 * time.Second
)

// ended notes that a pass has ended, which has worked for some time. The next one begins after the pause, and not before the FileSystem has
// rested, so that passes over one take a fifth of the time, unless that means a rest of more than longestRest. Without a pause, it begins
// at once.
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
