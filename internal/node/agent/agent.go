// Package agent is the main loop of the node's agent. It reads the StorageTargets of its node from the API server, lets package provision
// work on their disks, and writes the results to their status. It publishes the node's NodeInventory, writes the node files of its
// FileSystemNodes, drops the kernel's caches on request, and serves samples of disks and daemons. It never changes a spec or a finalizer,
// and while the API server does not answer it leaves everything as it is.
package agent

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"sync/atomic"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/healthz"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"parallelfs.dev/operator/api/v1alpha1"
	"parallelfs.dev/operator/internal/node/durable"
	"parallelfs.dev/operator/internal/node/health"
	"parallelfs.dev/operator/internal/node/record"
	"parallelfs.dev/operator/internal/node/spec"
	"parallelfs.dev/operator/internal/node/telemetry"
)

// FieldOwner is the agent's name in managedFields.
const FieldOwner = "parallelfs-agent"

const (
	// Name of the controller, in logs, metrics and events.
	Name = "agent"
	// placementsEvery is the interval between scans of the daemons' placements, which are cheap.
	placementsEvery = 30 * time.Second
	// scanTime is how long a full scan may take, beyond the interval between two of them, before the agent is no longer ready.
	scanTime = 5 * time.Minute
	// shutdownLimit is the time in which a running step must finish after the agent is asked to end. The chart's terminationGracePeriodSeconds
	// is longer.
	shutdownLimit = 110 * time.Second
)

// Node holds the agent's actions on its node and its sources of information.
type Node struct {
	// Pass takes one target as far as possible (provision.Provisioner).
	Pass Pass
	// ProveUnmounted and TakeUp ensure that a target of a pair is mounted on one node only (provision.Provisioner).
	ProveUnmounted func(ctx context.Context, t *v1alpha1.StorageTarget) (held io.Closer, why string, err error)
	TakeUp         func(ctx context.Context, t *v1alpha1.StorageTarget) (why string, err error)
	// BootID identifies the current boot of the node (spec.BootIDFile).
	BootID string
	// Collect makes the full inventory of the node, Placements only the placements of daemons.
	Collect func(ctx context.Context) v1alpha1.NodeInventoryStatus
	// Settings lists the settings of the host that the filesystems ask for.
	Settings   []spec.HostSetting
	Placements func() ([]v1alpha1.DaemonPlacement, error)
	// Processes finds the ids of the daemons' processes (affinity.Node).
	Processes func() (map[string][]int, error)
	// DropCaches drops the kernel's caches (caches.Dropper).
	DropCaches func(ctx context.Context) error
	// DiskHealth asks a disk for its report about itself, by kernel name.
	DiskHealth func(ctx context.Context, kernelName string) (health.Report, error)
	// Changes receives a value when a block device is added, removed or changed. It is nil if nothing listens for them.
	Changes <-chan struct{}
}

// Options are the flags of the agent.
type Options struct {
	// NodeName is the name of the Kubernetes node.
	NodeName string
	// Resync is the interval between full scans without a trigger.
	Resync time.Duration
	// NodesRoot is the directory of the node files: spec.NodesRoot.
	NodesRoot string
	// Modprobe is the node's directory for module options: spec.ModprobeDirectory.
	Modprobe string
	// HealthAddress and MetricsAddress are the addresses to listen on; "0" disables them.
	HealthAddress, MetricsAddress string
	// TelemetryInterval is the time between two samples of disks and daemons, 0 for none; TelemetryAddress serves them.
	TelemetryInterval time.Duration
	TelemetryAddress  string
	// DiskHealthInterval is the time between two reads of a disk's report about itself, 0 for none.
	DiskHealthInterval time.Duration
}

// Scheme contains the kinds that the agent reads and writes.
func Scheme() (*runtime.Scheme, error) {
	scheme := runtime.NewScheme()
	return scheme, errors.Join(corev1.AddToScheme(scheme), v1alpha1.AddToScheme(scheme))
}

// Run works until ctx ends. It returns setup errors only. Later failures are retried.
func Run(ctx context.Context, config *rest.Config, node Node, o Options, log logr.Logger) error {
	scheme, err := Scheme()
	if err != nil {
		return fmt.Errorf("register the kinds: %w", err)
	}
	mgr, err := ctrl.NewManager(config, ctrl.Options{
		Scheme: scheme, Logger: log, GracefulShutdownTimeout: new(shutdownLimit),
		Metrics:                metricsserver.Options{BindAddress: o.MetricsAddress},
		HealthProbeBindAddress: o.HealthAddress,
		Cache: cache.Options{
			DefaultTransform: cache.TransformStripManagedFields(),
			ByObject: map[client.Object]cache.ByObject{
				&v1alpha1.StorageTarget{}:  {Label: ofNode(o.NodeName)},
				&v1alpha1.FileSystemNode{}: {Label: ofNode(o.NodeName)},
				&v1alpha1.NodeInventory{}:  {Field: fields.OneTermEqualSelector(metav1.ObjectNameField, o.NodeName)},
			},
		},
		Client: client.Options{
			FieldOwner: FieldOwner,
			// These objects are read seldom and must be current, so they bypass the cache.
			Cache: &client.CacheOptions{DisableFor: []client.Object{&corev1.Node{}, &v1alpha1.NodeInventory{}}},
		},
	})
	if err != nil {
		return fmt.Errorf("make the manager: %w", err)
	}
	inventory := &Inventory{
		Client: mgr.GetClient(), NodeName: o.NodeName, Resync: o.Resync, Every: placementsEvery,
		Collect: node.Collect, Placements: node.Placements, Settings: node.Settings, Triggers: make(chan struct{}, 1),
	}
	wake := make(chan event.GenericEvent)
	reconciler := &Reconciler{
		Client: mgr.GetClient(), Live: mgr.GetAPIReader(), Recorder: mgr.GetEventRecorder("parallelfs-" + Name),
		NodeName: o.NodeName, Resync: o.Resync, Pass: node.Pass, Acted: inventory.Trigger,
	}
	if err := reconciler.setup(mgr, wake); err != nil {
		return fmt.Errorf("set up the controller of StorageTargets: %w", err)
	}
	inventory.Targets = reconciler.targets
	files := &NodeFiles{
		Client: mgr.GetClient(), Live: mgr.GetAPIReader(), NodeName: o.NodeName, Resync: o.Resync, Root: o.NodesRoot, Modprobe: o.Modprobe,
		Writer: durable.Writer{Chown: os.Chown}, Record: record.Keep, BootID: node.BootID,
	}
	reconciler.Withdraw = files.Withdraw
	if err := files.setup(mgr); err != nil {
		return fmt.Errorf("set up the controller of node files: %w", err)
	}
	pairs := &Pairs{
		Client: mgr.GetClient(), Live: mgr.GetAPIReader(), NodeName: o.NodeName, Resync: o.Resync, Files: files,
		ProveUnmounted: node.ProveUnmounted, TakeUp: node.TakeUp, Now: time.Now, devices: &reconciler.devices,
	}
	if err := pairs.setup(mgr); err != nil {
		return fmt.Errorf("set up the controller of targets that two nodes may serve: %w", err)
	}
	asked := &Caches{Client: mgr.GetClient(), Drop: node.DropCaches, Now: time.Now}
	if err := asked.setup(mgr); err != nil {
		return fmt.Errorf("set up the controller of caches: %w", err)
	}
	var disks telemetry.HealthCollector
	if o.DiskHealthInterval > 0 {
		inventory.Health = &Health{Interval: o.DiskHealthInterval, Read: node.DiskHealth, Changed: inventory.Trigger, Now: time.Now}
		disks.Disks = inventory.Health.Disks
		if err := mgr.Add(inventory.Health); err != nil {
			return fmt.Errorf("set up the health of disks: %w", err)
		}
	}
	if o.TelemetryInterval > 0 {
		if err := sample(mgr, node, reconciler.targets, o, disks); err != nil {
			return fmt.Errorf("set up telemetry: %w", err)
		}
	}
	var confirmed atomic.Pointer[time.Time]
	inventory.Confirmed = func(began time.Time) { confirmed.Store(&began) }
	if err := errors.Join(
		mgr.Add(inventory),
		mgr.Add(runnable(func(ctx context.Context) error { listen(ctx, node.Changes, inventory.Trigger, wake); return nil })),
		mgr.AddHealthzCheck("ping", healthz.Ping),
		mgr.AddReadyzCheck("inventory", ready(&confirmed, o.Resync+scanTime, time.Now)),
	); err != nil {
		return fmt.Errorf("set up the agent: %w", err)
	}
	return mgr.Start(ctx)
}

// ofNode selects the targets of a node by label. A node name that is no valid label value can't be in a label. The selector then matches
// all targets, and the reconciler filters them.
func ofNode(name string) labels.Selector {
	if len(validation.IsValidLabelValue(name)) > 0 {
		return labels.Everything()
	}
	return labels.SelectorFromSet(labels.Set{v1alpha1.LabelNode: name})
}

// listen forwards the kernel's device events to the inventory and to all targets.
func listen(ctx context.Context, changes <-chan struct{}, trigger func(), wake chan<- event.GenericEvent) {
	for {
		select {
		case <-ctx.Done():
			return
		case _, open := <-changes:
			if !open {
				return // only the resync remains
			}
			trigger()
			select {
			case wake <- event.GenericEvent{Object: &v1alpha1.StorageTarget{}}:
			case <-ctx.Done():
			}
		}
	}
}
