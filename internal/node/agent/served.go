package agent

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"parallelfs.dev/operator/api/v1alpha1"
	"parallelfs.dev/operator/internal/node/format"
	"parallelfs.dev/operator/internal/node/format/registry"
	"parallelfs.dev/operator/internal/node/mountlock"
	"parallelfs.dev/operator/internal/node/spec"
	"parallelfs.dev/operator/internal/plan"
)

// served holds the disks that only their own server mounts (format.Served), by StorageTarget. When a target is deleted, it disappears from
// its server's configuration. The server unmounts it, and the agent unmounts it if it is still mounted.
type served map[string]*v1alpha1.StorageTarget

// servedOf returns the served disks of a FileSystemNode. A disk whose StorageTarget does not exist yet is left out, and its server waits
// for it.
func (r *NodeFiles) servedOf(ctx context.Context, n *v1alpha1.FileSystemNode) (served, error) {
	out := served{}
	for _, m := range n.Spec.Members {
		for _, t := range m.Targets {
			if t.Directory || t.Path == "" || m.Retired {
				continue
			}
			target := &v1alpha1.StorageTarget{}
			key := client.ObjectKey{Namespace: n.Namespace, Name: t.Name}
			err := r.Client.Get(ctx, key, target)
			if apierrors.IsNotFound(err) {
				// The cache contains the targets of this node, but not those for which it is the second node.
				err = r.Live.Get(ctx, key, target)
			}
			if apierrors.IsNotFound(err) {
				continue
			}
			if err != nil {
				return nil, fmt.Errorf("read StorageTarget %s: %w", t.Name, err)
			}
			if _, is := registry.Served(target.Spec.Format); is {
				out[t.Name] = target
			}
		}
	}
	return out, nil
}

// tell completes the servers' targets in a node file. path is the path of the node file.
func (r *NodeFiles) tell(file *spec.NodeFile, of served, path string) error {
	for i := range file.Members {
		m := &file.Members[i]
		m.Targets = slices.DeleteFunc(m.Targets, func(t spec.Target) bool {
			target, is := of[t.Name]
			if !is || r.leaves(target) {
				return is
			}
			away := plan.IsOfPair(target) && !plan.MayServe(target, r.NodeName)
			if away {
				m.Elsewhere = append(m.Elsewhere, t.Name)
			}
			return away
		})
		for j := range m.Targets {
			t := &m.Targets[j]
			target, is := of[t.Name]
			if !is || t.UUID == "" || format.GivenTo(target) == nil {
				continue
			}
			given, err := json.Marshal(format.GivenTo(target))
			if err != nil {
				return fmt.Errorf("encode what %s was given: %w", t.Name, err)
			}
			t.Served = &spec.ServedTarget{
				DeviceID: string(plan.DeviceOf(target).ID), FSType: string(target.Spec.Format.FSType),
				Mark: plan.NewOf(target, plan.Look{}, t.UUID).Mark, Given: given,
			}
			if !plan.IsOfPair(target) {
				continue
			}
			if t.Served.BootID = r.BootID; r.BootID == "" {
				return fmt.Errorf("the boot id of this node is unknown, so no server is configured with %s, which two nodes may serve", t.Name)
			}
			if err := mountlock.Make(spec.MountLock(path, t.Name)); err != nil {
				return fmt.Errorf("target %s: %w", t.Name, err)
			}
		}
	}
	return nil
}

// leaves is true for a deleted target, even if the deletion has not reached the cache yet.
func (r *NodeFiles) leaves(t *v1alpha1.StorageTarget) bool {
	_, withdrawn := r.withdrawn.Load(t.UID)
	return withdrawn || !t.DeletionTimestamp.IsZero()
}

// Withdraw removes a deleted target from its server's configuration if only that server mounts it. Otherwise the server would mount it
// again after the unmount.
func (r *NodeFiles) Withdraw(ctx context.Context, t *v1alpha1.StorageTarget) error {
	if _, is := registry.Served(t.Spec.Format); !is {
		return nil
	}
	r.withdrawn.Store(t.UID, true)
	r.mutex.Lock()
	defer r.mutex.Unlock()
	var list v1alpha1.FileSystemNodeList
	here := client.MatchingLabelsSelector{Selector: ofNode(r.NodeName)}
	if err := r.Live.List(ctx, &list, client.InNamespace(t.Namespace), here); err != nil {
		return fmt.Errorf("list the FileSystemNodes of this node: %w", err)
	}
	var errs []error
	there := false
	for i := range list.Items {
		if n := &list.Items[i]; r.here(n) && n.Spec.FileSystem.Name == t.Spec.FileSystem.Name {
			there = true
			_, _, err := r.update(ctx, n)
			errs = append(errs, err)
		}
	}
	if !there {
		errs = append(errs, r.sweep(ctx))
	}
	if err := errors.Join(errs...); err != nil {
		return fmt.Errorf("the server of target %s can't be configured to release it, so it is not unmounted: %w", t.Name, err)
	}
	return nil
}
