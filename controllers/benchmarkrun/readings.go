package benchmarkrun

import (
	"context"
	"errors"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"parallelfs.dev/operator/controllers/benchmarkrun/children"
	"parallelfs.dev/operator/controllers/benchmarkrun/scope"
)

// errUnderWay means that an output is still being read. The next pass checks again.
var errUnderWay = errors.New("the output is still read")

// readings holds the outputs that are being read, one for each run. A pass waits for a reading only for a moment, so that a long output
// delays no other run.
type readings struct {
	mutex sync.Mutex
	byRun map[client.ObjectKey]*oneReading
}

// oneReading is the reading of a turn's outputs.
type oneReading struct {
	job    types.UID
	cancel context.CancelFunc
	// over is closed when found and err are set.
	over  chan struct{}
	found *finding
	err   error
}

// of begins or continues to read the outputs of a job. It returns errUnderWay after moment. If moment is 0, it waits until the end.
func (r *readings) of(ctx context.Context, w *scope.Scope, c *children.Child, known *finding,
	read func(context.Context, *finding) error, moment time.Duration,
) (*finding, error) {
	if moment <= 0 {
		return known, read(ctx, known)
	}
	key := client.ObjectKeyFromObject(w.Run)
	one := r.begin(ctx, key, c.Object.GetUID(), known, read)
	timer := time.NewTimer(moment)
	defer timer.Stop()
	select {
	case <-one.over:
		r.forget(key)
		return one.found, one.err
	case <-timer.C:
		return nil, errUnderWay
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

// begin returns the reading of a job, which continues after the pass has ended. The reading of another job of the run is canceled.
func (r *readings) begin(
	ctx context.Context, key client.ObjectKey, job types.UID, known *finding, read func(context.Context, *finding) error,
) *oneReading {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	if one := r.byRun[key]; one != nil {
		if one.job == job {
			return one
		}
		one.cancel()
	}
	ctx, cancel := context.WithCancel(context.WithoutCancel(ctx))
	one := &oneReading{job: job, cancel: cancel, over: make(chan struct{}), found: known}
	if r.byRun == nil {
		r.byRun = map[client.ObjectKey]*oneReading{}
	}
	r.byRun[key] = one
	go func() {
		defer cancel()
		defer close(one.over)
		one.err = read(ctx, one.found)
	}()
	return one
}

// forget cancels the reading of a run, and drops its result.
func (r *readings) forget(key client.ObjectKey) {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	if one := r.byRun[key]; one != nil {
		one.cancel()
		delete(r.byRun, key)
	}
}
