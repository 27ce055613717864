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

// served are the disks that only their own server mounts (format.Served), by StorageTarget. Of one that is deleted, its server is told
// nothing any more: it lets it go, and the agent unmounts what is mounted still.
type served map[string]*v1alpha1.StorageTarget

// servedOf are those of a FileSystemNode. One whose StorageTarget is not there yet is none as far as is known, and its server waits for it.
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
				// The cache has the targets of this node, and not those that it is the second node of.
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

// tell completes what a server is told of its disks. path is that of the file.
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
				return fmt.Errorf("this agent does not know which start of the node this is, so it can't tell a server of %s, which two nodes may serve", t.Name)
			}
			if err := mountlock.Make(spec.MountLock(path, t.Name)); err != nil {
				return fmt.Errorf("target %s: %w", t.Name, err)
			}
		}
	}
	return nil
}

// leaves is true for a target that is deleted, also when the cache does not know that yet.
func (r *NodeFiles) leaves(t *v1alpha1.StorageTarget) bool {
	_, withdrawn := r.withdrawn.Load(t.UID)
	return withdrawn || !t.DeletionTimestamp.IsZero()
}

// Withdraw has a server told nothing any more of the disk of a deleted target, if only that server mounts it: it would mount it again when
// it was unmounted.
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
		return fmt.Errorf("the server of target %s can't be told to let it go, so it is not unmounted: %w", t.Name, err)
	}
	return nil
}
