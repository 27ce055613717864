//go:build scale

package main

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/config"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"parallelfs.dev/operator/api/v1alpha1"
	nodeagent "parallelfs.dev/operator/internal/node/agent"
)

const (
	// resync is that of an agent as the chart starts it.
	resync = 5 * time.Minute
	// agentWorkers is how many targets are worked on at once, by all agents.
	agentWorkers = 512
	// collectTakes is how long an agent looks at all that its node has.
	collectTakes = 2 * time.Second
	// placementsEvery is how often an agent reads where daemons run.
	placementsEvery = 30 * time.Second
)

// agent plays the agent of one node: its reconciler is the real one, the work on disks is not.
type agent struct {
	*nodeagent.Reconciler
	world   *world
	machine *machine
	client  client.Client

	poke chan struct{}
	// looked are the targets that were looked at before; the next look at others comes at some time within a resync, because agents have
	// not all been started at once.
	mutex  sync.Mutex
	looked map[string]bool
	// last is what was published last, uid that of the NodeInventory.
	last v1alpha1.NodeInventoryStatus
	uid  string
}

// newManager makes a controller-runtime manager that plays a part.
func newManager(c *cluster, user string) (manager.Manager, error) {
	mgr, err := ctrl.NewManager(c.config(user), ctrl.Options{
		Scheme: c.scheme, Metrics: metricsserver.Options{BindAddress: "0"}, HealthProbeBindAddress: "0",
		Cache: cache.Options{DefaultTransform: cache.TransformStripManagedFields()},
		// One run plays several clusters, one after the other.
		Controller: config.Controller{SkipNameValidation: new(true)},
	})
	if err != nil {
		return nil, fmt.Errorf("make what plays the %s: %w", user, err)
	}
	return mgr, nil
}

// playAgents plays the agents of all nodes that have disks.
func playAgents(c *cluster, w *world) (manager.Manager, error) {
	mgr, err := newManager(c, userAgents)
	if err != nil {
		return nil, err
	}
	direct, err := c.client(userAgents)
	if err != nil {
		return nil, err
	}
	recorder := mgr.GetEventRecorder("parallelfs-" + nodeagent.Name)
	agents := map[string]*agent{}
	for _, m := range w.machines {
		if _, runs := m.labels[labelAgent]; !runs {
			continue
		}
		a := &agent{world: w, machine: m, client: direct, poke: make(chan struct{}, 1), looked: map[string]bool{}}
		a.Reconciler = &nodeagent.Reconciler{
			Client: direct, Live: direct, Recorder: recorder, NodeName: m.name, Resync: resync, Pass: a.pass, Acted: a.Poke,
		}
		m.agent, agents[m.name] = a, a
		if err := mgr.Add(manager.RunnableFunc(a.publish)); err != nil {
			return nil, fmt.Errorf("add an agent: %w", err)
		}
	}
	err = ctrl.NewControllerManagedBy(mgr).Named("agents").
		For(&v1alpha1.StorageTarget{}, builder.WithPredicates(predicate.GenerationChangedPredicate{})).
		WithOptions(controller.Options{MaxConcurrentReconciles: agentWorkers}).
		Complete(reconcile.Func(func(ctx context.Context, r reconcile.Request) (reconcile.Result, error) {
			var t v1alpha1.StorageTarget
			if err := mgr.GetClient().Get(ctx, r.NamespacedName, &t); err != nil {
				return reconcile.Result{}, client.IgnoreNotFound(err)
			}
			a := agents[t.Spec.Node]
			result, err := a.Reconcile(ctx, r)
			if err == nil && result.RequeueAfter == resync && a.first(t.Name) {
				result.RequeueAfter = rand.N(resync)
			}
			return result, err
		}))
	if err != nil {
		return nil, fmt.Errorf("set up the agents: %w", err)
	}
	err = ctrl.NewControllerManagedBy(mgr).Named("nodefiles").
		For(&v1alpha1.FileSystemNode{}, builder.WithPredicates(predicate.GenerationChangedPredicate{})).
		WithOptions(controller.Options{MaxConcurrentReconciles: agentWorkers}).
		Complete(reconcile.Func(func(ctx context.Context, r reconcile.Request) (reconcile.Result, error) {
			var n v1alpha1.FileSystemNode
			if err := mgr.GetClient().Get(ctx, r.NamespacedName, &n); err != nil {
				return reconcile.Result{}, client.IgnoreNotFound(err)
			}
			return reconcile.Result{}, agents[n.Spec.Node].tell(ctx, &n)
		}))
	if err != nil {
		return nil, fmt.Errorf("set up what the agents tell servers: %w", err)
	}
	return mgr, nil
}

// first is true for a target that was not looked at before.
func (a *agent) first(target string) bool {
	a.mutex.Lock()
	defer a.mutex.Unlock()
	was := a.looked[target]
	a.looked[target] = true
	return !was
}

// Poke asks for a look at the whole node, soon.
func (a *agent) Poke() {
	select {
	case a.poke <- struct{}{}:
	default: // one is waiting
	}
}

// publish plays the agent's Inventory until ctx ends: it writes the NodeInventory when something in it has changed.
func (a *agent) publish(ctx context.Context) error {
	placements := time.NewTicker(placementsEvery/2 + rand.N(placementsEvery/2))
	defer placements.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-placements.C:
		case <-a.poke:
			select {
			case <-ctx.Done():
				return nil
			case <-time.After(collectTakes):
			}
		}
		if err := a.write(ctx); err != nil && ctx.Err() == nil {
			log.FromContext(ctx).Error(err, "The inventory of a node can't be published", "node", a.machine.name)
		}
	}
}

// write makes the NodeInventory where there is none, and writes its status when it has changed, as the agent does.
func (a *agent) write(ctx context.Context) error {
	found := a.world.inventory(a.machine)
	if equality.Semantic.DeepEqual(a.last, found) {
		return nil
	}
	if a.uid == "" {
		made := &v1alpha1.NodeInventory{ObjectMeta: metav1.ObjectMeta{
			Name: a.machine.name, Labels: map[string]string{v1alpha1.LabelManagedBy: v1alpha1.ManagedBy},
		}}
		if err := a.client.Create(ctx, made); err != nil {
			return fmt.Errorf("make the NodeInventory: %w", err)
		}
		a.uid = string(made.UID)
	}
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(&found)
	if err != nil {
		return fmt.Errorf("encode the NodeInventory: %w", err)
	}
	intent := &unstructured.Unstructured{Object: map[string]any{
		"metadata": map[string]any{"name": a.machine.name, "uid": a.uid}, "status": content,
	}}
	intent.SetGroupVersionKind(v1alpha1.GroupVersion.WithKind("NodeInventory"))
	err = a.client.Status().Apply(ctx, client.ApplyConfigurationFromUnstructured(intent),
		client.ForceOwnership, client.FieldOwner(nodeagent.FieldOwner))
	if err != nil {
		return fmt.Errorf("write the NodeInventory: %w", err)
	}
	a.last = found
	return nil
}

// wake has the agent look at a target at once, as when the kernel says that something has become of a device.
func (a *agent) wake(ctx context.Context, target client.ObjectKey) {
	go func() {
		if _, err := a.Reconcile(ctx, reconcile.Request{NamespacedName: target}); err != nil && ctx.Err() == nil {
			log.FromContext(ctx).Error(err, "A look at a target has failed", "target", target.Name)
		}
	}()
	a.Poke()
}
