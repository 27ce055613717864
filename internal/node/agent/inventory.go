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
	"parallelfs.dev/operator/internal/node/inventory"
	"parallelfs.dev/operator/internal/node/spec"
	"parallelfs.dev/operator/internal/plan"
)

// Inventory publishes the node's NodeInventory when it has changed.
type Inventory struct {
	Client   client.Client
	NodeName string
	// Resync is the interval between full scans without a trigger, and Every the interval between scans of the daemons' placements. A change
	// that the StorageTargets report as well is published when it has been stable for a fifth of Resync.
	Resync, Every time.Duration
	Collect       func(ctx context.Context) v1alpha1.NodeInventoryStatus
	Placements    func() ([]v1alpha1.DaemonPlacement, error)
	// Targets lists the StorageTargets of the node, so that the inventory can name each disk's target.
	Targets func(ctx context.Context) ([]v1alpha1.StorageTarget, error)
	// Settings lists the settings that the filesystems ask for. The inventory shows those that the servers of the node ask for.
	Settings []spec.HostSetting
	// Health adds what disks report about themselves. It is nil if nothing asks them.
	Health *Health
	// Confirmed is called with the start of each full scan whose result is published, up to changes that may wait.
	Confirmed func(began time.Time)
	// Triggers has a buffer of one.
	Triggers chan struct{}

	// last is the last inventory that was found, and told the last one that was published.
	last, told v1alpha1.NodeInventoryStatus
	// withheld is the time since which an unpublished change exists.
	withheld time.Time
}

// Trigger triggers a full scan after the quiet period.
func (i *Inventory) Trigger() {
	select {
	case i.Triggers <- struct{}{}:
	default: // one is waiting
	}
}

const (
	// retryAfter is the time until a failed publication is retried.
	retryAfter = 15 * time.Second
	// quietPeriod is the quiet period without a trigger before a scan, and longest the longest time that triggers can postpone it. Each step
	// of each disk that is made a target is a trigger, and so are the kernel's events. An immediate scan would publish the node once for each
	// of them, and once more when the servers that use them have started.
	quietPeriod, maxDelay = 8 * time.Second, 12 * time.Second
	// restsPerResync and patiencePerResync divide Resync. A change that may wait is published when the node has been stable for
	// Resync/restsPerResync, and after Resync/patiencePerResync at the latest. An incomplete scan is repeated after Resync/restsPerResync. The
	// disks of a node are formatted, mounted and taken into use one after the other. In a large filesystem minutes pass between them, and the
	// node would otherwise be published for each.
	restsPerResync, patiencePerResync = 5, 2
)

// Start publishes until ctx ends (manager.Runnable).
func (i *Inventory) Start(ctx context.Context) error {
	everything := time.NewTimer(0)
	defer everything.Stop()
	daemons := time.NewTicker(i.Every)
	defer daemons.Stop()
	// due is the time of the full scan after the first trigger. Later triggers don't move it. The first scan, at the agent's start, does not
	// wait.
	due := time.Now()
	wait := func() {
		if due.IsZero() {
			due = time.Now().Add(maxDelay)
		}
		everything.Reset(min(quietPeriod, time.Until(due)))
	}
	for {
		var next time.Duration
		var err error
		select {
		case <-ctx.Done():
			return nil
		case <-i.Triggers:
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

// applying leaves out the settings that no server of the node asks for.
func (i *Inventory) applying(ctx context.Context, found *v1alpha1.NodeInventoryStatus) error {
	var list v1alpha1.FileSystemNodeList
	if err := i.Client.List(ctx, &list); err != nil {
		return fmt.Errorf("list the FileSystemNodes of this node: %w", err)
	}
	inventory.Applying(found, i.Settings, func(fileSystem, role string) bool {
		return slices.ContainsFunc(list.Items, func(n v1alpha1.FileSystemNode) bool {
			return n.Spec.Node == i.NodeName && n.Spec.Facts != nil && string(n.Spec.Facts.Type) == fileSystem &&
				slices.ContainsFunc(n.Spec.Members, func(m v1alpha1.NodeMember) bool { return string(m.Role) == role && !m.Retired })
		})
	})
	return nil
}

// everything scans the node and publishes the result unless it may wait. It returns the time until the next scan. An incomplete scan is
// published with the gaps filled from the scan before, and repeated earlier.
func (i *Inventory) everything(ctx context.Context) (next time.Duration, err error) {
	began := time.Now()
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
	if err := i.applying(ctx, &found); err != nil {
		return 0, err
	}
	if err := i.health(ctx, found.BlockDevices, targets); err != nil {
		return 0, err
	}
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
			i.Confirmed(began)
			return i.Resync / restsPerResync, nil
		}
	}
	i.withheld = time.Time{}
	if err := i.publish(ctx); err != nil {
		return 0, err
	}
	i.told = i.last
	i.Confirmed(began)
	return rest, nil
}

// health adds the health of the disks. Before this process has published anything, it reads what was published before.
func (i *Inventory) health(ctx context.Context, found []v1alpha1.BlockDevice, targets []v1alpha1.StorageTarget) error {
	if i.Health == nil {
		return nil
	}
	if i.last.Kernel.Release == "" && len(i.last.BlockDevices) == 0 {
		live := &v1alpha1.NodeInventory{}
		if err := i.Client.Get(ctx, client.ObjectKey{Name: i.NodeName}, live); client.IgnoreNotFound(err) != nil {
			return fmt.Errorf("read the NodeInventory: %w", err)
		}
		i.Health.Before(live.Status.BlockDevices)
	}
	i.Health.Fill(found, targets)
	return nil
}

// mayWait is true if the only changes concern disks with targets, whose StorageTargets report them at once, and the placement of servers.
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

// moved is true if the daemons or their placements differ from the last scan. It is false before the first scan.
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

// publish creates the NodeInventory if it is missing, and writes its status if it differs from the stored one.
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
	live.Status.DroppedCaches = nil // Caches writes this field as a field owner of its own
	if equality.Semantic.DeepEqual(live.Status, i.last) {
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
	return nil
}

// create makes the NodeInventory, which is owned by its node.
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

// name sets the target that each disk carries, by the label on the disk.
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
