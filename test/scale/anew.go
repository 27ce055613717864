//go:build scale

package main

import (
	"context"
	"fmt"
	"time"
)

const (
	// idleShare is the part of a core below which a started manager is idle, unless twice its usage in the idle minute is more.
	idleShare = 0.1
	// sampleEvery is how often its CPU time is sampled.
	sampleEvery = time.Second
	// anewLimit is how long it may take until it is idle.
	anewLimit = 3 * time.Minute
)

// startAnew measures a manager that starts while all objects exist: it ends the running one as Kubernetes does, so that it releases its
// lease, and starts another one.
func (r *run) startAnew(ctx context.Context) error {
	if err := r.quiet(ctx); err != nil {
		return err
	}
	r.cluster.endManager()
	begun := time.Now()
	if err := r.cluster.startManager(ctx); err != nil {
		return err
	}
	r.result.set(anewLeads, time.Since(begun).Seconds())
	c := idleness{enough: quietFor, share: max(idleShare, 2*r.result.value(idle.manager)/100)}
	looked, why := false, "the manager that was started anew has not looked at all FileSystems"
	sampled := time.Time{}
	err := r.until(ctx, anewLimit, func() (string, error) {
		if time.Since(sampled) < sampleEvery {
			return why, nil
		}
		sampled = time.Now()
		if !looked {
			work, _, err := r.cluster.passesOver(ctx)
			if err != nil || work.total() < float64(r.fileSystems) {
				return why, nil //nolint:nilerr // nothing answers before it serves metrics
			}
			looked = true
			r.result.set(anewLooked, sampled.Sub(begun).Seconds())
		}
		_, _, cpu, err := processStat(r.cluster.manager)
		if err != nil {
			return "", err
		}
		c.add(sampled, cpu)
		if err := r.cluster.audit.read(); err != nil {
			return "", err
		}
		writes := count(r.cluster.audit.between(sampled.Add(-quietFor), sampled), all)
		if !c.is() || writes > 0 {
			why = fmt.Sprintf("the manager that was started anew is not idle, and has written %d times in the last %s", writes, quietFor)
			return why, nil
		}
		return "", nil
	})
	if err != nil {
		return err
	}
	_, peak, err := memoryMiB(r.cluster.manager)
	if err != nil {
		return err
	}
	since, cpu := c.since()
	r.result.set(anewIdle, since.Sub(begun).Seconds())
	r.result.set(anewManager, cpu.Seconds())
	r.result.set(anewPeak, peak)
	written := r.cluster.audit.between(begun, time.Now())
	r.result.set(anewWrites, float64(count(written, all)))
	r.result.Anew = writes(written)
	return nil
}

// idleness finds when a process began to use little of a core, for long enough.
type idleness struct {
	enough  time.Duration
	share   float64
	samples []sample
}

// sample is the CPU time of a process until a point in time.
type sample struct {
	at  time.Time
	cpu time.Duration
}

// add adds a sample. It drops samples that are older than needed, except the newest of these.
func (c *idleness) add(at time.Time, cpu time.Duration) {
	c.samples = append(c.samples, sample{at, cpu})
	for len(c.samples) > 1 && at.Sub(c.samples[1].at) >= c.enough {
		c.samples = c.samples[1:]
	}
}

// is reports whether little was used for long enough.
func (c *idleness) is() bool {
	first, last := c.samples[0], c.samples[len(c.samples)-1]
	took := last.at.Sub(first.at)
	return took >= c.enough && (last.cpu-first.cpu).Seconds() <= c.share*took.Seconds()
}

// since returns when that began, and the CPU time until then.
func (c *idleness) since() (time.Time, time.Duration) { return c.samples[0].at, c.samples[0].cpu }
