//go:build scale

package main

import (
	"context"
	"errors"
	"fmt"
	"math"
	"time"

	"parallelfs.dev/operator/api/v1alpha1"
)

const (
	// pollEvery is how often a condition is checked, sayEvery how often the missing part is printed.
	pollEvery, sayEvery = 250 * time.Millisecond, 30 * time.Second
	// quietFor is how long nothing is written before the operator counts as quiet: passes come every ten seconds. quietLimit is the longest
	// wait for that.
	quietFor, quietLimit = 15 * time.Second, 10 * time.Minute
)

// until polls until a condition holds, the operator's writes are refused for good, or the time is over. why is the missing part.
func (r *run) until(ctx context.Context, limit time.Duration, holds func() (why string, err error)) error {
	begun, refusals := time.Now(), time.Now()
	for {
		why, err := holds()
		if err != nil || why == "" {
			return err
		}
		if time.Since(refusals) > time.Second {
			refusals = time.Now()
			if err := r.cluster.audit.read(); err != nil {
				return err
			}
			if words := refusal(r.cluster.audit.between(begun, time.Now())); words != "" {
				return errors.New(words)
			}
		}
		if time.Since(begun) > limit {
			return fmt.Errorf("not after %s: %s", limit, v1alpha1.Cut(why, 300))
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("the time of the whole run is over: %s", v1alpha1.Cut(why, 300))
		case <-r.cluster.ended:
			return fmt.Errorf("the manager has ended, its log shows why: %s", v1alpha1.Cut(why, 300))
		case <-time.After(pollEvery):
		}
	}
}

// quiet waits until the operator has written nothing for a while, or until a limit.
func (r *run) quiet(ctx context.Context) error {
	begun := time.Now()
	err := r.until(ctx, math.MaxInt64, func() (string, error) {
		if err := r.cluster.audit.read(); err != nil {
			return "", err
		}
		now := time.Now()
		if now.Sub(begun) > quietLimit || now.Sub(begun) > quietFor && count(r.cluster.audit.between(now.Add(-quietFor), now), all) == 0 {
			return "", nil
		}
		return "the operator writes", nil
	})
	if err == nil && time.Since(begun) > quietLimit {
		r.say("the operator still writes after %s", quietLimit)
	}
	return err
}

func sleep(ctx context.Context, d time.Duration) error {
	select {
	case <-ctx.Done():
		return errors.New("the time of the whole run is over")
	case <-time.After(d):
		return nil
	}
}
