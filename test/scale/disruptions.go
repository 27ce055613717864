//go:build scale

package main

import (
	"context"
	"fmt"
	"strings"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"parallelfs.dev/operator/api/v1alpha1"
)

// restart measures how storage servers get a changed configuration. After a while it pauses the rollout, as a person does.
func (r *run) restart(ctx context.Context) error {
	begun := time.Now()
	if err := r.change(ctx, askForRestarts); err != nil {
		return err
	}
	if err := sleep(ctx, r.pace.restartFor); err != nil {
		return err
	}
	if err := r.change(ctx, pauseRestarts); err != nil {
		return err
	}
	if err := r.quiet(ctx); err != nil {
		return err
	}
	r.world.mutex.Lock()
	defer r.world.mutex.Unlock()
	if r.world.restarts == 0 {
		return fmt.Errorf("no storage server was restarted within %s", r.pace.restartFor)
	}
	r.result.set(restarted, float64(r.world.restarts))
	r.result.set(restartServers, float64(r.world.awayMost))
	r.result.set(restartDomains, float64(r.world.domainsMost))
	r.result.set(restartWrites, float64(count(r.cluster.audit.between(begun, time.Now()), all))/float64(r.world.restarts))
	return nil
}

// change changes the large FileSystem as a person does.
func (r *run) change(ctx context.Context, change func(*v1alpha1.FileSystem)) error {
	fs, err := r.fileSystem(ctx, fileSystemName)
	if err != nil {
		return err
	}
	changed := fs.DeepCopy()
	change(changed)
	if err := r.person.Patch(ctx, changed, client.MergeFrom(fs)); err != nil {
		return fmt.Errorf("change the FileSystem: %w", err)
	}
	return nil
}

// brokenLimit is how long the loss of a disk may stay undetected.
const brokenLimit = 3 * time.Minute

// lose measures the cost of the loss of a disk.
func (r *run) lose(ctx context.Context) error {
	begun := time.Now()
	m, d := r.world.breakDisk()
	namespace, name, _ := strings.Cut(d.target, "/")
	key := client.ObjectKey{Namespace: namespace, Name: name}
	m.agent.wake(ctx, key) // the kernel reports the removal of a device
	err := r.until(ctx, brokenLimit, func() (string, error) {
		fs, err := r.fileSystem(ctx, fileSystemName)
		if err != nil {
			return "", err
		}
		var target v1alpha1.StorageTarget
		if err := r.seen.Get(ctx, key, &target); err != nil {
			return "", fmt.Errorf("read the StorageTarget: %w", err)
		}
		if shows(fs, &target) {
			return "", nil
		}
		return "the status does not name the target whose disk is lost", nil
	})
	if err != nil {
		return err
	}
	r.result.set(lossSeconds, time.Since(begun).Seconds())
	if err := r.quiet(ctx); err != nil {
		return err
	}
	written := r.cluster.audit.between(begun, time.Now())
	events := count(written, ofEvents)
	r.result.set(lossWrites, float64(count(written, all)-events))
	r.result.set(lossEvents, float64(events))
	r.result.Loss = writes(written)
	return r.sizes(ctx)
}
