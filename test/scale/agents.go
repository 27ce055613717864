//go:build scale

package main

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"time"

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
	// resync is the resync period of an agent in the chart.
	resync = 10 * time.Minute
	// agentWorkers is how many targets all agents together reconcile at once.
	agentWorkers = 512
	// collectTakes is how long an agent inspects everything on its node.
	collectTakes = 2 * time.Second
	// placementsEvery is the shortest time between two reads of the placement of daemons.
	placementsEvery = 30 * time.Second
)

// agent plays the agent of one node: its reconciler and its inventory are real, and the disks are not.
type agent struct {
	*nodeagent.Reconciler
	world   *world
	machine *machine
	client  client.Client

	inventory *nodeagent.Inventory

	// looked has the targets that were reconciled before. The next pass over others comes at some time within a resync, because not all agents
	// started at once.
	mutex     sync.Mutex
	looked    map[string]bool
	collected bool
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
		a := &agent{world: w, machine: m, client: direct, looked: map[string]bool{}}
		a.inventory = &nodeagent.Inventory{
			Client: direct, NodeName: m.name, Resync: resync, Every: placementsEvery/2 + rand.N(placementsEvery/2),
			Collect: a.collect, Triggers: make(chan struct{}, 1), Confirmed: func(time.Time) {},
			Placements: func() ([]v1alpha1.DaemonPlacement, error) { return w.inventory(m).Daemons, nil },
			Targets:    func(context.Context) ([]v1alpha1.StorageTarget, error) { return nil, nil }, // the world has the target of each disk
		}
		a.Reconciler = &nodeagent.Reconciler{
			Client: direct, Live: direct, Recorder: recorder, NodeName: m.name, Resync: resync, Pass: a.pass, Acted: a.inventory.Trigger,
		}
		m.agent, agents[m.name] = a, a
		if err := mgr.Add(a.inventory); err != nil {
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

// first is true for a target that was not reconciled before.
func (a *agent) first(target string) bool {
	a.mutex.Lock()
	defer a.mutex.Unlock()
	was := a.looked[target]
	a.looked[target] = true
	return !was
}

// collect plays an inspection of the node.
func (a *agent) collect(ctx context.Context) v1alpha1.NodeInventoryStatus {
	a.mutex.Lock()
	takes := collectTakes
	if !a.collected { // the inspection at its start is finished before the measurement
		takes, a.collected = 0, true
	}
	a.mutex.Unlock()
	select {
	case <-ctx.Done():
	case <-time.After(takes):
	}
	return a.world.inventory(a.machine)
}

// wake makes the agent reconcile a target at once, as after an event of the kernel about a device.
func (a *agent) wake(ctx context.Context, target client.ObjectKey) {
	go func() {
		if _, err := a.Reconcile(ctx, reconcile.Request{NamespacedName: target}); err != nil && ctx.Err() == nil {
			log.FromContext(ctx).Error(err, "A look at a target has failed", "target", target.Name)
		}
	}()
	a.inventory.Trigger()
}
