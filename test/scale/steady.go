//go:build scale

package main

import (
	"context"
	"time"
)

// window is the minute that is measured.
const window = time.Minute

// steady has the columns of a time in which nothing new begins.
type steady struct{ writes, manager, resident, p50, p99, answer, controlPlane column }

// columns are the columns in the order of the table.
func (s steady) columns() []column {
	return []column{s.writes, s.manager, s.resident, s.p50, s.p99, s.answer, s.controlPlane}
}

// during measures the operator during a time of unchanged load.
func (r *run) during(ctx context.Context, columns steady, pass func() error) error {
	before, err := r.usage(ctx)
	if err != nil {
		return err
	}
	if err := pass(); err != nil {
		return err
	}
	cost, seconds, written, err := r.since(ctx, before)
	if err != nil {
		return err
	}
	set := r.result.set
	set(columns.writes, float64(count(written, all))/seconds)
	set(columns.manager, cost.manager.Seconds()/seconds*100)
	set(columns.controlPlane, (cost.apiServer+cost.etcd).Seconds()/seconds*100)
	set(columns.resident, cost.residentMiB)
	set(columns.p50, cost.work.quantile(0.5)*1000)
	set(columns.p99, cost.work.quantile(0.99)*1000)
	set(columns.answer, cost.answer.quantile(0.99)*1000)
	return nil
}

// pass waits for a time. It makes a profile of the manager during that time if one was requested.
func (r *run) pass(ctx context.Context, d time.Duration, name string) error {
	if r.profile != "" {
		return r.cluster.saveProfiles(ctx, d, r.profile+"-"+name)
	}
	return sleep(ctx, d)
}

// idle measures a minute in which nothing changes.
func (r *run) idle(ctx context.Context) error {
	return r.during(ctx, idle, func() error { return r.pass(ctx, window, "idle") })
}

// write measures a time in which programs write, and the manager's highest memory until then.
func (r *run) write(ctx context.Context) error {
	r.world.write()
	defer r.world.rest()
	if err := sleep(ctx, r.pace.warmUp); err != nil {
		return err
	}
	if err := r.during(ctx, used, func() error { return r.pass(ctx, r.pace.writeFor, "writing") }); err != nil {
		return err
	}
	_, peak, err := memoryMiB(r.cluster.manager)
	r.result.set(endPeak, peak)
	return err
}
