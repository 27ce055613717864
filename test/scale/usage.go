//go:build scale

package main

import (
	"context"
	"errors"
	"time"
)

// usage is the consumption of the processes until now. The memory is the manager's.
type usage struct {
	at                       time.Time
	manager, apiServer, etcd time.Duration
	residentMiB, peakMiB     float64
	work, answer             histogram
}

func (r *run) usage(ctx context.Context) (usage, error) {
	u := usage{}
	var errs [5]error
	_, _, u.manager, errs[0] = processStat(r.cluster.manager)
	_, _, u.apiServer, errs[1] = processStat(r.cluster.apiServer)
	_, _, u.etcd, errs[2] = processStat(r.cluster.etcd)
	u.work, u.answer, errs[3] = r.cluster.passesOver(ctx)
	u.residentMiB, u.peakMiB, errs[4] = memoryMiB(r.cluster.manager)
	u.at = time.Now()
	return u, errors.Join(errs[:]...)
}

// since returns the consumption and the writes since an earlier usage, and the present memory.
func (r *run) since(ctx context.Context, before usage) (used usage, seconds float64, written []request, err error) {
	now, err := r.usage(ctx)
	if err != nil {
		return used, 0, nil, err
	}
	if err := r.cluster.audit.read(); err != nil {
		return used, 0, nil, err
	}
	used = usage{
		at: now.at, residentMiB: now.residentMiB, peakMiB: now.peakMiB,
		manager: now.manager - before.manager, apiServer: now.apiServer - before.apiServer, etcd: now.etcd - before.etcd,
		work: now.work.since(before.work), answer: now.answer.since(before.answer),
	}
	return used, now.at.Sub(before.at).Seconds(), r.cluster.audit.between(before.at, now.at), nil
}

func ofTargets(w request) bool { return w.resource == targetResource }

func ofEvents(w request) bool { return w.resource == "events" }

// perTarget counts the writes of StorageTargets, divided by their number, and perNode all others except events, divided by the number of
// storage nodes.
func (r *run) perTarget(written []request) float64 {
	return float64(count(written, ofTargets)) / float64(r.result.Targets)
}

func (r *run) perNode(written []request) float64 {
	return float64(count(written, func(w request) bool { return !ofTargets(w) && !ofEvents(w) })) / float64(r.world.nodes)
}
