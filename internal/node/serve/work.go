package serve

import (
	"context"
	"errors"
	"sync"
	"time"
)

// work holds the running operations on targets, one for each: a hanging disk delays no other, and no second operation is started on it.
type work struct {
	mutex sync.Mutex
	// under holds the running operations, and done the results of the ended ones until they are fetched.
	under map[string]bool
	done  map[string]error
	ended chan struct{}
}

// errHangs means that an operation does not end.
var errHangs = errors.New("what was begun with its disk has not ended yet; look into the kernel's log of the node (dmesg)")

// begin starts an operation on a target unless one is already running.
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
		default: // the end of an operation is already signaled
		}
	}()
}

// wait returns the errors of all started operations by target. An operation that does not end in time has an error too.
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
