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

// errUnderWay says that an output is still read. The next pass asks again.
var errUnderWay = errors.New("the output is still read")

// readings are the outputs that are read now, one of each run. A pass waits for one only for a moment, so that an output which takes long
// to read delays no other run.
type readings struct {
	mutex sync.Mutex
	byRun map[client.ObjectKey]*oneReading
}

// oneReading is that of a turn's outputs.
type oneReading struct {
	job    types.UID
	cancel context.CancelFunc
	// over is closed when found and err are there.
	over  chan struct{}
	found *finding
	err   error
}

// of reads the outputs of a job, or goes on with it. It returns errUnderWay after a moment. Without a moment, it waits.
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

// begin returns the reading of a job, which goes on after the pass has ended. That of another job of the run ends.
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

// forget ends the reading of a run, and what it has found.
func (r *readings) forget(key client.ObjectKey) {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	if one := r.byRun[key]; one != nil {
		one.cancel()
		delete(r.byRun, key)
	}
}
