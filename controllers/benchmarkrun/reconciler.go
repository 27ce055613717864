// Package benchmarkrun reconciles BenchmarkRuns. A pass reads the current state, decides on one step, takes it, and writes the status once.
// The result of a repetition is recorded before anything that depends on it, so an operator that is killed at any moment continues where it
// was.
package benchmarkrun

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/clock"
	"k8s.io/utils/lru"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"parallelfs.dev/operator/api/v1alpha1"
	"parallelfs.dev/operator/benchmarks"
	"parallelfs.dev/operator/benchmarks/results"
	"parallelfs.dev/operator/benchmarks/telemetry"
	"parallelfs.dev/operator/controllers/apply"
	"parallelfs.dev/operator/controllers/benchmarkrun/decision"
	"parallelfs.dev/operator/controllers/benchmarkrun/outcomes"
	"parallelfs.dev/operator/controllers/benchmarkrun/reading"
	"parallelfs.dev/operator/controllers/benchmarkrun/scope"
	"parallelfs.dev/operator/controllers/failures"
	"parallelfs.dev/operator/controllers/lease"
	"parallelfs.dev/operator/controllers/passes"
	"parallelfs.dev/operator/internal/backend"
)

func (r *Reconciler) emit(run *v1alpha1.BenchmarkRun, all ...outcomes.Note) {
	for _, n := range all {
		r.Recorder.Eventf(run, nil, n.Kind, n.Reason, n.Action, "%s", v1alpha1.Cut(n.Text, outcomes.MaxNote))
	}
}

// Reconciler reconciles BenchmarkRuns.
type Reconciler struct {
	// Client reads from a cache and writes.
	Client client.Client
	// Reader reads from the API server, because a missing object must really be missing.
	Reader client.Reader
	Clock  clock.PassiveClock
	// Tools by spec.tool.
	Tools map[v1alpha1.BenchmarkTool]benchmarks.Tool
	// Backends by the type of a FileSystem.
	Backends backend.Set
	Images   backend.Images
	Logs     LogReader
	// Read reads the outputs of the containers of a turn.
	Read reading.Reader
	// Moment is how long a pass waits while an output is read; 0 waits until the end.
	Moment   time.Duration
	Recorder events.EventRecorder
	// NoFileSystems is true if the operator is installed without filesystems: the API server does not serve their kinds, and the manager may
	// not read nodes.
	NoFileSystems bool
	// Telemetry queries the servers' activity during a turn; nil queries none.
	Telemetry TelemetryReader
	// Published returns a published table by its name. For a table with variants, it returns the figures of one variant.
	Published func(name, variant string) (results.Run, error)
	// MaxPriority is the highest value that the PriorityClass of a run may have.
	MaxPriority int32
	// Version of the operator, for the provenance of results.
	Version string
	// PollInterval is how often a running job is read. MPIJobs are not watched, because the cluster may not serve them.
	PollInterval time.Duration

	// Process identifies this process. A new process has another value.
	Process string

	// readings holds the outputs that are being read.
	readings readings
	// busy holds the filesystems whose runs are being reconciled.
	busy busy
	// pasts holds what passes over runs have seen of the controllers of their pods (client.ObjectKey to *pastOfRun).
	pasts sync.Map
	// once guards baselines, which are created on first use.
	once sync.Once
	// baselines caches the results of other runs (types.NamespacedName to knownBaseline).
	baselines *lru.Cache
}

// busy holds the filesystems whose runs are being reconciled.
type busy struct {
	mutex sync.Mutex
	keys  map[client.ObjectKey]bool
}

// take returns false if another pass reconciles a run of that filesystem.
func (b *busy) take(of client.ObjectKey) bool {
	b.mutex.Lock()
	defer b.mutex.Unlock()
	if b.keys[of] {
		return false
	}
	if b.keys == nil {
		b.keys = map[client.ObjectKey]bool{}
	}
	b.keys[of] = true
	return true
}

func (b *busy) free(of client.ObjectKey) {
	b.mutex.Lock()
	defer b.mutex.Unlock()
	delete(b.keys, of)
}

// TelemetryReader queries the agents of some of a filesystem's servers; see agents.Reader.
type TelemetryReader interface {
	Telemetry(ctx context.Context, fs client.ObjectKey, nodes []string, from, to time.Time) []telemetry.Summary
}

// +kubebuilder:rbac:groups=parallelfs.dev,resources=benchmarkruns,verbs=get;list;watch;update;patch;delete
// +kubebuilder:rbac:groups=parallelfs.dev,resources=benchmarkruns/status,verbs=get;update;patch
// +kubebuilder:rbac:groups=parallelfs.dev,resources=benchmarkruns/finalizers,verbs=update
// +kubebuilder:rbac:groups=kubeflow.org,resources=mpijobs,verbs=get;list;create;patch;delete
// +kubebuilder:rbac:groups=batch,resources=jobs,verbs=get;list;watch;create;patch;delete
// +kubebuilder:rbac:groups="",resources=configmaps,verbs=get;list;watch;create;patch
// +kubebuilder:rbac:groups="",resources=pods,verbs=get;list;watch
// +kubebuilder:rbac:groups="",resources=events,verbs=list
// +kubebuilder:rbac:groups=scheduling.k8s.io,resources=priorityclasses,verbs=get
// +kubebuilder:rbac:groups="",resources=pods/log,verbs=get
// +kubebuilder:rbac:groups="",resources=persistentvolumeclaims,verbs=get;create;delete
// +kubebuilder:rbac:groups="",resources=persistentvolumes,verbs=get
// +kubebuilder:rbac:groups=storage.k8s.io,resources=storageclasses,verbs=get
// +kubebuilder:rbac:groups=events.k8s.io,resources=events,verbs=create;patch

// Reconcile takes one BenchmarkRun one step further. It writes the status once, at the end, with the decision or the reason why the pass
// failed.
func (r *Reconciler) Reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	p := &pass{Reconciler: r}
	err := p.reconcile(ctx, request.NamespacedName)
	failures.Writer[*v1alpha1.BenchmarkRun]{
		Client: r.Client, Reader: r.Reader, Recorder: r.Recorder, Positive: v1alpha1.ConditionSucceeded,
		Conditions: func(o *v1alpha1.BenchmarkRun) *[]metav1.Condition { return &o.Status.Conditions },
	}.Say(ctx, request.NamespacedName, &v1alpha1.BenchmarkRun{}, err)
	if err != nil || p.gone {
		return apply.Again(ctrl.Result{}, err)
	}
	return ctrl.Result{RequeueAfter: p.decision.After}, nil
}

// pass is one pass over a run: its input, its decision and its results.
type pass struct {
	*Reconciler
	run      *v1alpha1.BenchmarkRun
	scope    *scope.Scope
	decision decision.Decision
	// gone is true if the run no longer exists, so that there is no status to write.
	gone bool
}

// phases returns the steps of a pass, in their order.
func (p *pass) phases() []passes.Phase {
	if !p.run.DeletionTimestamp.IsZero() {
		return []passes.Phase{
			{Name: "read what is left", Do: p.lookBack},
			{Name: "decide what to stop", Do: p.decideDeleted},
			{Name: "stop and clean up", Do: p.stop},
		}
	}
	return []passes.Phase{
		{Name: "add the finalizer", Do: p.claim},
		{Name: "read the state", Do: p.look},
		{Name: "decide", Do: p.decide},
		{Name: "settle the lease", Do: p.settle},
		{Name: "act", Do: p.do},
	}
}

func (p *pass) reconcile(ctx context.Context, key client.ObjectKey) error {
	run := &v1alpha1.BenchmarkRun{}
	if err := p.Client.Get(ctx, key, run); err != nil {
		p.pasts.Delete(key)
		p.readings.forget(key)
		return client.IgnoreNotFound(err)
	}
	// Two runs of one filesystem must not both see it idle. Runs of other filesystems do not wait.
	of := client.ObjectKey{Namespace: run.Namespace, Name: run.Spec.Target.String()}
	if !p.busy.take(of) {
		p.decision.After = scope.Soon
		return nil
	}
	defer p.busy.free(of)
	p.run = run.DeepCopy()
	if err := passes.Each(ctx, p.phases(), &p.gone); err != nil || p.gone {
		return err //nolint:wrapcheck // the phase adds its name
	}
	return p.writeStatus(ctx, p.scope, p.decision)
}

// claim sets the finalizer, so that the run is not gone before its files are.
func (p *pass) claim(ctx context.Context) error {
	return passes.Claim(ctx, p.Client, p.run) //nolint:wrapcheck // the phase adds its name
}

func (p *pass) look(ctx context.Context) (err error) {
	p.scope, err = p.gather(ctx, p.run)
	return err
}

func (p *pass) decide(context.Context) error {
	p.decision = decision.Decide(p.scope)
	return nil
}

func (p *pass) settle(ctx context.Context) (err error) {
	p.decision, err = p.settleLease(ctx, p.scope, p.decision)
	return err
}

// do takes the decided step. If a person must change the FileSystem, the pass has not failed.
func (p *pass) do(ctx context.Context) error {
	if err := p.act(ctx, p.scope, p.decision); errors.Is(err, errUnderWay) {
		p.decision.After = p.scope.Poll
	} else if err != nil {
		refused, is := errors.AsType[*backend.InvalidSpecError](err)
		if !is {
			return err
		}
		p.decision = decision.Stalled(refused.Reason, refused.Message)
		p.decision.After = scope.MPIInterval
	}
	p.gone = p.decision.Action == decision.Expire
	return nil
}

// lookBack reads the state for a run that is deleted. If that fails for a while, the run is released.
func (p *pass) lookBack(ctx context.Context) error {
	if p.gone = !controllerutil.ContainsFinalizer(p.run, v1alpha1.Finalizer); p.gone {
		return nil
	}
	err := p.look(ctx)
	if err == nil || !decision.Expired(p.run, p.Clock.Now()) {
		return err
	}
	log.FromContext(ctx).Error(err, "The run is released although its jobs can't be read")
	p.gone = true
	return p.removeFinalizer(ctx, p.run, decision.Decision{LeftBehind: err.Error()})
}

func (p *pass) decideDeleted(ctx context.Context) error {
	if p.decision, p.gone = decision.DecideDeleted(p.scope); p.gone {
		return p.removeFinalizer(ctx, p.run, p.decision)
	}
	return nil
}

// stop takes the decided step. A run that can't be stopped is released after a while.
func (p *pass) stop(ctx context.Context) error {
	err := p.act(ctx, p.scope, p.decision)
	if err == nil || !decision.Expired(p.run, p.Clock.Now()) {
		return err
	}
	p.gone = true
	return p.removeFinalizer(ctx, p.run, decision.Decision{LeftBehind: err.Error()})
}

// removeFinalizer removes the finalizer. The remaining jobs and ConfigMaps are deleted with their owner.
func (r *Reconciler) removeFinalizer(ctx context.Context, run *v1alpha1.BenchmarkRun, d decision.Decision) error {
	before := run.DeepCopy()
	controllerutil.RemoveFinalizer(run, v1alpha1.Finalizer)
	if err := r.Client.Patch(ctx, run, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{})); err != nil {
		return client.IgnoreNotFound(fmt.Errorf("remove the finalizer: %w", err))
	}
	if d.LeftBehind != "" && run.Status.Directory != "" {
		r.emit(before, outcomes.LeftBehind(before, d))
	}
	return nil
}

// settleLease takes or releases the lease of the target. While another holder has it, the decision is postponed.
func (r *Reconciler) settleLease(ctx context.Context, w *scope.Scope, d decision.Decision) (decision.Decision, error) {
	var subject lease.Subject
	switch {
	case w.FileSystem != nil:
		subject = lease.Of(w.FileSystem)
	case w.Volume != nil && w.Volume.Claim != nil:
		subject = lease.OfClaim(w.Volume.Claim)
	default:
		return d, nil
	}
	holder := lease.OfRun(w.Run)
	switch d.Lease {
	case decision.LeaseTake:
		by, err := lease.Acquire(ctx, r.Client, r.Reader, subject, holder, w.Now)
		if err != nil {
			return d, err
		}
		if by != "" && len(w.Children) == 0 {
			return decision.InUse(w, by), nil
		}
	case decision.LeaseFree:
		return d, lease.Release(ctx, r.Client, r.Reader, subject.Key, holder)
	case decision.LeaseAsIs:
	}
	return d, nil
}

// writeStatus writes the status and its events if it has changed.
func (r *Reconciler) writeStatus(ctx context.Context, w *scope.Scope, d decision.Decision) error {
	status, err := outcomes.Derive(w, d)
	if err != nil {
		return err
	}
	before := w.Run
	if equality.Semantic.DeepEqual(before.Status, status) {
		return nil
	}
	after := before.DeepCopy()
	after.Status = status
	written := after.DeepCopy()
	if err := r.Client.Status().Patch(ctx, written, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{})); err != nil {
		return fmt.Errorf("write the status: %w", err)
	}
	r.emit(after, outcomes.Notes(before, after, d)...)
	return nil
}
