package devices

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"time"
)

// inFlight holds the running queries of this process for each device. The key is the directory of its sysfs and the disk's kernel name.
// Neither a call to a disk that does not answer can be interrupted, nor can a program that waits for it be killed. Each of them occupies a
// thread or a process for as long as the disk hangs, so each disk has at most one query at a time.
var inFlight = struct {
	sync.Mutex
	asked map[string]*question
}{asked: map[string]*question{}}

// question is one call or one program that queries a disk.
type question struct {
	what  string
	since time.Time
	// process is the id of the program, or 0 for a call of this process.
	process atomic.Int64
	// done is closed when it has ended.
	done chan struct{}
	// late is true if a caller has stopped waiting for it.
	late atomic.Bool
}

// processKey is the context key of a function that is called with the id of a started program.
type processKey struct{}

// started reports the process id of a started program.
func started(ctx context.Context, process int) {
	if note, is := ctx.Value(processKey{}).(func(int)); is {
		note(process)
	}
}

// stillWaits returns the error of a query that was not started because an earlier one is still running.
func (q *question) stillWaits() error {
	who := q.what
	if process := q.process.Load(); process > 0 {
		who = fmt.Sprintf("%s, process %d", q.what, process)
	}
	return fmt.Errorf("the look of %s still waits for it (%s), and no other one is begun; look for errors of the disk in the kernel's log (dmesg)",
		q.since.UTC().Format("2006-01-02 15:04:05 MST"), who)
}

// ask runs f to query a disk unless another query of the disk is running. It waits at most for the limit, and not at all if the running
// query is already late. The context of f outlives this wait and ends after the limit.
func ask[T any](ctx context.Context, l Looker, name, what string, f func(ctx context.Context) (T, error)) (T, error) {
	var none T
	disk := name
	if parent := l.parent(name); parent != "" {
		disk = parent
	}
	key := l.Sys + "/" + disk
	mine := &question{what: what, done: make(chan struct{})}
	patience := time.NewTimer(l.Limit)
	defer patience.Stop()
	for {
		inFlight.Lock()
		other := inFlight.asked[key]
		if other == nil {
			mine.since = time.Now()
			inFlight.asked[key] = mine
		}
		inFlight.Unlock()
		if other == nil {
			break
		}
		if other.late.Load() {
			return none, other.stillWaits()
		}
		select {
		case <-other.done:
		case <-ctx.Done():
			return none, ctx.Err()
		case <-patience.C:
			return none, other.stillWaits()
		}
	}
	answer, err := within(ctx, l.Limit, func() (T, error) {
		defer func() {
			inFlight.Lock()
			delete(inFlight.asked, key)
			inFlight.Unlock()
			close(mine.done)
		}()
		return f(context.WithValue(ctx, processKey{}, func(process int) { mine.process.Store(int64(process)) }))
	})
	select {
	case <-mine.done:
	default:
		mine.late.Store(true)
	}
	return answer, err
}
