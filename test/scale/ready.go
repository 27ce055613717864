//go:build scale

package main

import (
	"context"
	"errors"
	"fmt"
	"math"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"parallelfs.dev/operator/api/v1alpha1"
)

// untilReady makes the FileSystem, and measures the cost until all of it is ready.
func (r *run) untilReady(ctx context.Context, fs *v1alpha1.FileSystem) error {
	before, err := r.usage(ctx)
	if err != nil {
		return err
	}
	r.applied = before.at
	if err := r.person.Create(ctx, fs); err != nil {
		return fmt.Errorf("make the FileSystem: %w", err)
	}
	said := time.Now()
	ended := r.until(ctx, math.MaxInt64, func() (string, error) {
		why, err := r.unwell(ctx, fs.Name)
		if err != nil {
			return "", err
		}
		if time.Since(said) > sayEvery {
			said = time.Now()
			r.say("%s", v1alpha1.Cut(why, 200))
		}
		return why, nil
	})
	// The cost of an interrupted measurement is useful too.
	cost, seconds, written, err := r.since(context.WithoutCancel(ctx), before)
	if err != nil {
		return errors.Join(ended, err)
	}
	set := r.result.set
	set(managerSeconds, cost.manager.Seconds())
	set(apiServerSeconds, cost.apiServer.Seconds())
	set(etcdSeconds, cost.etcd.Seconds())
	set(readyPeak, cost.peakMiB)
	set(readyP99, cost.work.quantile(0.99)*1000)
	if ended != nil {
		set(stoppedSeconds, seconds)
		return ended
	}
	ready := lastWord(written)
	if ready.IsZero() {
		return errors.New("the FileSystem is Ready, and nobody has written that")
	}
	written = r.cluster.audit.between(before.at, ready)
	set(readySeconds, ready.Sub(before.at).Seconds())
	set(writesPerTarget, r.perTarget(written))
	set(eventsPerTarget, float64(count(written, ofEvents))/float64(r.result.Targets))
	set(writesPerNode, r.perNode(written))
	r.result.UntilReady = writes(written)
	return nil
}

// lastWord is when the status of the large FileSystem was written last; the zero time if it never was.
func lastWord(written []request) (at time.Time) {
	for _, w := range written {
		if w.accepted() && w.resource == "filesystems" && w.subresource == "status" && w.object == namespace+"/"+fileSystemName {
			at = w.at
		}
	}
	return at
}

// settle waits until nothing is written and every agent has reported the present state of its node, and counts the writes since the
// FileSystem was applied.
func (r *run) settle(ctx context.Context) error {
	begun := time.Now()
	err := r.until(ctx, quietLimit, func() (string, error) {
		name, err := r.untold(ctx)
		if name != "" {
			name = "the NodeInventory of " + name + " is not as its node is"
		}
		return name, err
	})
	if err != nil {
		return err
	}
	r.say("all nodes have been told after %.0f s", time.Since(begun).Seconds())
	if err := r.quiet(ctx); err != nil {
		return err
	}
	written := r.cluster.audit.between(r.applied, time.Now())
	r.result.set(quietPerTarget, r.perTarget(written))
	r.result.set(quietPerNode, r.perNode(written))
	return nil
}

// untold returns a node whose agent has not reported its present state yet; empty when there is none. An agent reports once its node was
// idle for a minute.
func (r *run) untold(ctx context.Context) (string, error) {
	for _, m := range r.world.machines {
		if m.agent == nil {
			continue
		}
		var told v1alpha1.NodeInventory
		if err := r.seen.Get(ctx, client.ObjectKey{Name: m.name}, &told); err != nil {
			return "", fmt.Errorf("read the NodeInventory of node %s: %w", m.name, err)
		}
		if !r.world.isAs(m, told.Status) {
			return m.name, nil
		}
	}
	return "", nil
}

// unwell returns what is wrong with a FileSystem.
func (r *run) unwell(ctx context.Context, name string) (string, error) {
	now, err := r.fileSystem(ctx, name)
	switch {
	case apierrors.IsNotFound(err):
		return "it is not seen yet", nil
	case err != nil:
		return "", err
	default:
		return unwell(now), nil
	}
}
