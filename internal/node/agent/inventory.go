package agent

import (
	"context"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"parallelfs.dev/operator/api/v1alpha1"
	"parallelfs.dev/operator/internal/plan"
)

// Inventory publishes the node's NodeInventory, when something in it has changed.
type Inventory struct {
	Client   client.Client
	NodeName string
	// Resync is the time between two looks at everything without a cause, Every that between two looks at where daemons run. What
	// StorageTargets say as well is published when it has been as it is for a fifth of Resync.
	Resync, Every time.Duration
	Collect       func(ctx context.Context) v1alpha1.NodeInventoryStatus
	Placements    func() ([]v1alpha1.DaemonPlacement, error)
	// Targets are the StorageTargets of the node, to say which disk carries which.
	Targets func(ctx context.Context) ([]v1alpha1.StorageTarget, error)
	// Published is called when the inventory was found to be published.
	Published func()
	// Pokes has room for one.
	Pokes chan struct{}

	// last is what was found last, and told what was published last.
	last, told v1alpha1.NodeInventoryStatus
	// withheld is since when something was found that is not published yet.
	withheld time.Time
}

// Poke asks for a look at everything, when the node has calmed down.
func (i *Inventory) Poke() {
	select {
	case i.Pokes <- struct{}{}:
	default: // one is waiting
	}
}

const (
	// retryAfter is the time until a publication that failed is tried again.
	retryAfter = 15 * time.Second
	// calm is the time without a poke after which a node is looked at, and longest how long that waits at most. Each step of each disk that is
	// made a target pokes, and so does the kernel: to look at once would publish the node once for each of them, and once more when the
	// servers have started that use them.
	calm, longest = 8 * time.Second, 12 * time.Second
	// restsPerResync and patiencePerResync are parts of Resync: how long a node stays as it is until that is published which may wait, or
	// until a look is repeated that could not be finished, and how long that waits at most. The disks of a node are made, mounted and taken
	// up by its servers one after the other, and a node would be published for each of these otherwise; in a large filesystem, minutes lie
	// between them.
	restsPerResync, patiencePerResync = 5, 2
)

// Start publishes until ctx ends (manager.Runnable).
func (i *Inventory) Start(ctx context.Context) error {
	everything := time.NewTimer(0)
	defer everything.Stop()
	daemons := time.NewTicker(i.Every)
	defer daemons.Stop()
	// due is when everything is looked at because of a poke, however many follow. The first look, as the agent starts, waits for nothing.
	due := time.Now()
	wait := func() {
		if due.IsZero() {
			due = time.Now().Add(longest)
		}
		everything.Reset(min(calm, time.Until(due)))
	}
	for {
		var next time.Duration
		var err error
		select {
		case <-ctx.Done():
			return nil
		case <-i.Pokes:
			wait()
			continue
		case <-daemons.C:
			if due.IsZero() && i.moved(ctx) {
				wait()
			}
			continue
		case <-everything.C:
			due = time.Time{}
			next, err = i.everything(ctx)
		}
		if err != nil && ctx.Err() == nil {
			log.FromContext(ctx).Error(err, "The inventory of the node can't be published; it is tried again", "after", retryAfter.String())
			next = retryAfter
		}
		everything.Reset(next)
	}
}

// everything looks at the node, and publishes what it has found unless that may wait. It returns when the next look is due. A look that
// could not be finished is published with what the look before has seen, and repeated earlier.
func (i *Inventory) everything(ctx context.Context) (next time.Duration, err error) {
	found := i.Collect(ctx)
	if ctx.Err() != nil {
		return 0, ctx.Err()
	}
	found, complete, err := completed(found, i.last)
	if err != nil {
		return 0, err
	}
	targets, err := i.Targets(ctx)
	if err != nil {
		return 0, fmt.Errorf("read the StorageTargets: %w", err)
	}
	name(found.BlockDevices, targets)
	settled := equality.Semantic.DeepEqual(found, i.last)
	i.last = found
	rest := i.Resync
	if !complete {
		rest = i.Resync / restsPerResync
		log.FromContext(ctx).Info("The look at the node could not be finished; it is tried again",
			"disks", unlooked(found), "after", rest.String())
	}
	if !settled && mayWait(found, i.told) {
		if i.withheld.IsZero() {
			i.withheld = time.Now()
		}
		if time.Since(i.withheld) < i.Resync/patiencePerResync {
			return i.Resync / restsPerResync, nil
		}
	}
	i.withheld = time.Time{}
	return rest, i.publish(ctx)
}

// mayWait is true when a node differs from what was told of it by nothing but what becomes of disks that carry targets, which their
// StorageTargets say at once, and by where servers run.
func mayWait(found, told v1alpha1.NodeInventoryStatus) bool {
	if len(found.BlockDevices) != len(told.BlockDevices) {
		return false
	}
	found.Daemons, found.Summary = told.Daemons, told.Summary
	found.BlockDevices = slices.Clone(found.BlockDevices)
	for i := range found.BlockDevices {
		now, was := &found.BlockDevices[i], &told.BlockDevices[i]
		if now.Target != "" {
			now.Target, now.Unusable = was.Target, was.Unusable
			now.Partitions, now.Holders, now.Mounts, now.Signatures = was.Partitions, was.Holders, was.Mounts, was.Signatures
		}
	}
	return equality.Semantic.DeepEqual(found, told)
}

// moved is true when other daemons run, or at another place, than was found last. Before anything was found, nothing has moved.
func (i *Inventory) moved(ctx context.Context) bool {
	if len(i.last.BlockDevices) == 0 && i.last.Kernel.Release == "" {
		return false
	}
	now, err := i.Placements()
	if err != nil {
		log.FromContext(ctx).Error(err, "The agent can't see where daemons run")
		return false
	}
	return !equality.Semantic.DeepEqual(now, i.last.Daemons)
}

// publish makes the NodeInventory where there is none, and writes its status when it differs from what the API server has.
func (i *Inventory) publish(ctx context.Context) error {
	live := &v1alpha1.NodeInventory{}
	err := i.Client.Get(ctx, client.ObjectKey{Name: i.NodeName}, live)
	switch {
	case apierrors.IsNotFound(err):
		if live, err = i.create(ctx); err != nil {
			return err
		}
	case err != nil:
		return fmt.Errorf("read the NodeInventory: %w", err)
	}
	live.Status.DroppedCaches = nil // that is written by Caches, under a name of its own
	if equality.Semantic.DeepEqual(live.Status, i.last) {
		i.published()
		return nil
	}
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(&i.last)
	if err != nil {
		return fmt.Errorf("encode the NodeInventory: %w", err)
	}
	intent := &unstructured.Unstructured{Object: map[string]any{
		"metadata": map[string]any{"name": i.NodeName, "uid": string(live.UID)}, "status": content,
	}}
	intent.SetGroupVersionKind(v1alpha1.GroupVersion.WithKind("NodeInventory"))
	err = i.Client.Status().Apply(ctx, client.ApplyConfigurationFromUnstructured(intent), client.ForceOwnership, client.FieldOwner(FieldOwner))
	if err != nil {
		return fmt.Errorf("write the NodeInventory: %w", err)
	}
	i.published()
	return nil
}

func (i *Inventory) published() {
	i.told = i.last
	i.Published()
}

// create makes the NodeInventory, which goes with its node.
func (i *Inventory) create(ctx context.Context) (*v1alpha1.NodeInventory, error) {
	node := &corev1.Node{}
	if err := i.Client.Get(ctx, client.ObjectKey{Name: i.NodeName}, node); err != nil {
		return nil, fmt.Errorf("read the node %s: %w; --node-name must be the name of this node in the cluster", i.NodeName, err)
	}
	inventory := &v1alpha1.NodeInventory{ObjectMeta: metav1.ObjectMeta{
		Name:   i.NodeName,
		Labels: map[string]string{v1alpha1.LabelManagedBy: v1alpha1.ManagedBy},
		OwnerReferences: []metav1.OwnerReference{{
			APIVersion: corev1.SchemeGroupVersion.String(), Kind: "Node", Name: node.Name, UID: node.UID,
		}},
	}}
	if err := i.Client.Create(ctx, inventory); err != nil {
		return nil, fmt.Errorf("make the NodeInventory: %w", err)
	}
	return inventory, nil
}

// name says of each disk which target it carries, by the label on it.
func name(found []v1alpha1.BlockDevice, targets []v1alpha1.StorageTarget) {
	labels := map[string]string{}
	for i := range targets {
		for _, label := range plan.Labels(&targets[i]) {
			labels[label] = targets[i].Namespace + "/" + targets[i].Name
		}
	}
	for i := range found {
		for _, s := range found[i].Signatures {
			if target := labels[s.Label]; target != "" && s.Device == found[i].KernelName {
				found[i].Target = target
			}
		}
	}
}
