package serve

import (
	"context"
	"errors"
	"sync"
	"time"
)

// work is what is being done with targets, one thing with each: a disk that hangs holds up no other one, and nobody begins with it anew.
type work struct {
	mutex sync.Mutex
	// under are those that are under way, and done what came of those that have ended, until somebody waits for it.
	under map[string]bool
	done  map[string]error
	ended chan struct{}
}

// errHangs means that something does not end.
var errHangs = errors.New("what was begun with its disk has not ended yet; look into the kernel's log of the node (dmesg)")

// begin does something with a target, unless something is done with it already.
func (w *work) begin(name string, do func() error) {
	w.mutex.Lock()
	defer w.mutex.Unlock()
	if w.under == nil {
		w.under, w.done, w.ended = map[string]bool{}, map[string]error{}, make(chan struct{}, 1)
	}
	if w.under[name] {
		return
	}
	w.under[name] = true
	go func() {
		err := do()
		w.mutex.Lock()
		defer w.mutex.Unlock()
		delete(w.under, name)
		w.done[name] = err
		select {
		case w.ended <- struct{}{}:
		default: // it is known already that something has ended
		}
	}()
}

// wait returns what came of all that was begun, by target, without those of which nothing bad is known; of what does not end in time, that.
func (w *work) wait(ctx context.Context, patience time.Duration) map[string]error {
	limit := time.NewTimer(patience)
	defer limit.Stop()
	for w.busy() {
		select {
		case <-w.ended:
			continue
		case <-ctx.Done():
		case <-limit.C:
		}
		break
	}
	w.mutex.Lock()
	defer w.mutex.Unlock()
	problems := map[string]error{}
	for name, err := range w.done {
		if err != nil {
			problems[name] = err
		}
	}
	for name := range w.under {
		problems[name] = errHangs
	}
	w.done = map[string]error{}
	return problems
}

func (w *work) busy() bool {
	w.mutex.Lock()
	defer w.mutex.Unlock()
	return len(w.under) > 0
}
