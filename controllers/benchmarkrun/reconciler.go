// Package benchmarkrun reconciles BenchmarkRuns: it gathers what there is, decides on one step, takes it, and writes the
// status once. What a repetition found is recorded before anything that follows from it, so an operator that is killed at
// any moment goes on where it was.
package benchmarkrun

import (
	"context"
	"errors"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
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
	"parallelfs.dev/operator/controllers/failures"
	"parallelfs.dev/operator/controllers/lease"
	"parallelfs.dev/operator/controllers/servers"
	"parallelfs.dev/operator/internal/backend"
)

// Reconciler reconciles BenchmarkRuns.
type Reconciler struct {
	// Client reads from a cache and writes.
	Client client.Client
	// Reader reads from the API server: what is not there must really not be there.
	Reader client.Reader
	Clock  clock.PassiveClock
	// Tools by spec.tool.
	Tools map[v1alpha1.BenchmarkTool]benchmarks.Tool
	// Backends by the type of a FileSystem.
	Backends backend.Set
	Images   backend.Images
	Logs     LogReader
	Recorder events.EventRecorder
	// Telemetry says what the servers did meanwhile; nil asks nobody.
	Telemetry TelemetryReader
	// Published returns a published table by its name, and of a table with variants those figures of one.
	Published func(name, variant string) (results.Run, error)
	// Version of the operator, for the provenance of results.
	Version string
	// PollInterval is how often a running job is looked at. MPIJobs are not watched, because the cluster may not serve them.
	PollInterval time.Duration

	// baselines are the results of other runs that were read last (types.NamespacedName to knownBaseline).
	baselines *lru.Cache
}

// TelemetryReader asks the agents of a filesystem's servers; see servers.Reader.
type TelemetryReader interface {
	Telemetry(ctx context.Context, fs *v1alpha1.FileSystem, from, to time.Time) []telemetry.Summary
}

// +kubebuilder:rbac:groups=parallelfs.dev,resources=benchmarkruns,verbs=get;list;watch;update;patch;delete
// +kubebuilder:rbac:groups=parallelfs.dev,resources=benchmarkruns/status,verbs=get;update;patch
// +kubebuilder:rbac:groups=parallelfs.dev,resources=benchmarkruns/finalizers,verbs=update
// +kubebuilder:rbac:groups=parallelfs.dev,resources=filesystems,verbs=get;list;watch
// +kubebuilder:rbac:groups=kubeflow.org,resources=mpijobs,verbs=get;list;create;patch;delete
// +kubebuilder:rbac:groups=batch,resources=jobs,verbs=get;list;watch;create;patch;delete
// +kubebuilder:rbac:groups="",resources=configmaps,verbs=get;list;watch;create;patch
// +kubebuilder:rbac:groups="",resources=pods,verbs=get;list;watch
// +kubebuilder:rbac:groups="",resources=events,verbs=list
// +kubebuilder:rbac:groups=parallelfs.dev,resources=storagetargets,verbs=get;list;watch
// +kubebuilder:rbac:groups="",resources=pods/log,verbs=get
// +kubebuilder:rbac:groups="",resources=nodes,verbs=get;list;watch
// +kubebuilder:rbac:groups=events.k8s.io,resources=events,verbs=create;patch

// Reconcile takes one BenchmarkRun one step further.
func (r *Reconciler) Reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	result, err := r.reconcile(ctx, request)
	failures.Writer[*v1alpha1.BenchmarkRun]{
		Client: r.Client, Reader: r.Reader, Recorder: r.Recorder, Positive: v1alpha1.ConditionSucceeded,
		Conditions: func(o *v1alpha1.BenchmarkRun) *[]metav1.Condition { return &o.Status.Conditions },
	}.Say(ctx, request.NamespacedName, &v1alpha1.BenchmarkRun{}, err)
	return apply.Again(result, err)
}

func (r *Reconciler) reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	run := &v1alpha1.BenchmarkRun{}
	if err := r.Client.Get(ctx, request.NamespacedName, run); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	run = run.DeepCopy()
	if !run.DeletionTimestamp.IsZero() {
		return r.reconcileDelete(ctx, run)
	}
	if !controllerutil.ContainsFinalizer(run, v1alpha1.Finalizer) {
		before := run.DeepCopy()
		controllerutil.AddFinalizer(run, v1alpha1.Finalizer)
		if err := r.Client.Patch(ctx, run, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{})); err != nil {
			return ctrl.Result{}, fmt.Errorf("add the finalizer: %w", err)
		}
	}
	w, err := r.gather(ctx, run)
	if err != nil {
		return ctrl.Result{}, err
	}
	d := decide(w)
	if d, err = r.settleLease(ctx, w, d); err != nil {
		return ctrl.Result{}, err
	}
	if err := r.act(ctx, w, d); err != nil {
		refused, is := errors.AsType[*backend.InvalidSpecError](err)
		if !is {
			return ctrl.Result{}, err
		}
		d = stalled(refused.Reason, refused.Message)
		d.after = mpiInterval
	}
	if d.action == expire {
		return ctrl.Result{}, nil
	}
	if err := r.writeStatus(ctx, w, d); err != nil {
		return ctrl.Result{}, err
	}
	return ctrl.Result{RequeueAfter: d.after}, nil
}

// reconcileDelete stops and cleans up, then lets the run go.
func (r *Reconciler) reconcileDelete(ctx context.Context, run *v1alpha1.BenchmarkRun) (ctrl.Result, error) {
	if !controllerutil.ContainsFinalizer(run, v1alpha1.Finalizer) {
		return ctrl.Result{}, nil
	}
	w, err := r.gather(ctx, run)
	if err != nil {
		if !expired(run, r.Clock.Now()) {
			return ctrl.Result{}, err
		}
		log.FromContext(ctx).Error(err, "The run is let go although its jobs can't be read")
		return ctrl.Result{}, r.letGo(ctx, run, decision{leftBehind: err.Error()})
	}
	d, finished := decideDeleted(w)
	if finished {
		return ctrl.Result{}, r.letGo(ctx, run, d)
	}
	if err := r.act(ctx, w, d); err != nil {
		if expired(run, r.Clock.Now()) {
			return ctrl.Result{}, r.letGo(ctx, run, decision{leftBehind: err.Error()})
		}
		return ctrl.Result{}, err
	}
	if err := r.writeStatus(ctx, w, d); err != nil {
		return ctrl.Result{}, err
	}
	return ctrl.Result{RequeueAfter: d.after}, nil
}

// letGo removes the finalizer. The jobs and ConfigMaps that are left go with their owner.
func (r *Reconciler) letGo(ctx context.Context, run *v1alpha1.BenchmarkRun, d decision) error {
	before := run.DeepCopy()
	controllerutil.RemoveFinalizer(run, v1alpha1.Finalizer)
	if err := r.Client.Patch(ctx, run, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{})); err != nil {
		return client.IgnoreNotFound(fmt.Errorf("remove the finalizer: %w", err))
	}
	if d.leftBehind != "" && run.Status.Directory != "" {
		r.emit(before, leftBehind(before, d))
	}
	return nil
}

// settleLease takes the lease of the FileSystem, or lets it go. While somebody else has it, what was decided is put off.
func (r *Reconciler) settleLease(ctx context.Context, w *world, d decision) (decision, error) {
	if w.fileSystem == nil {
		return d, nil
	}
	holder := lease.OfRun(w.run)
	switch d.lease {
	case leaseTake:
		by, err := lease.Acquire(ctx, r.Client, r.Reader, w.fileSystem, holder, w.now)
		if err != nil {
			return d, err
		}
		if by != "" && len(w.children) == 0 {
			return w.inUse(by), nil
		}
	case leaseFree:
		return d, lease.Release(ctx, r.Client, r.Reader, client.ObjectKeyFromObject(w.fileSystem), holder)
	case leaseAsIs:
	}
	return d, nil
}

// inUse is the decision while somebody else has the lease.
func (w *world) inUse(by string) decision {
	d := w.reconciling(v1alpha1.ReasonFileSystemInUse, "%s has the lease of FileSystem %s; this run waits until it is free",
		by, w.fileSystem.Name)
	d.after = retryInterval
	return d
}

// act takes the step that was decided on.
func (r *Reconciler) act(ctx context.Context, w *world, d decision) error {
	render := renderer{w: w, images: r.Images}
	switch d.action {
	case start:
		// The record may be newer than the cache that said that there is none.
		if err := r.refresh(ctx, w, d.turn.point); err != nil {
			return err
		}
		if next, found := w.next(); !found || next != d.turn {
			return nil
		}
		job, err := render.turn(d.turn)
		if err != nil {
			return err
		}
		return r.create(ctx, w, job)
	case check:
		return r.create(ctx, w, render.job(render.checker()))
	case inspect:
		return r.inspect(ctx, w, d.child)
	case clean:
		return r.create(ctx, w, render.cleaner())
	case export:
		return r.create(ctx, w, render.exporter())
	case publish:
		return r.publish(ctx, w, d)
	case dropCaches:
		return servers.AskToDropCaches(ctx, r.Client, w.dropNodes(d.turn), d.request)
	case keep:
		entry, raw, err := r.read(ctx, w, d.child, d)
		if err != nil {
			return err
		}
		return r.record(ctx, w, entry, raw)
	case giveUp:
		return r.record(ctx, w, w.given(d), nil)
	case mark:
		return r.mark(ctx, w, d.child)
	case remove:
		return r.remove(ctx, d.child)
	case expire:
		uid := w.run.UID
		return client.IgnoreNotFound(r.Client.Delete(ctx, w.run, client.Preconditions{UID: &uid}))
	case nothing:
	}
	return nil
}

// record keeps what a turn has found.
func (r *Reconciler) record(ctx context.Context, w *world, entry record, raw []byte) error {
	entry, err := r.store(ctx, w, entry, raw)
	if err != nil {
		return err
	}
	w.records.add(entry)
	log.FromContext(ctx).Info("Recorded a turn", "turn", entry.turn().suffix(), "trouble", entry.trouble())
	return nil
}

// mark notes on a job that it has left its queue, and the state of all that could disturb it from then on.
func (r *Reconciler) mark(ctx context.Context, w *world, c *child) error {
	before, ok := c.object.DeepCopyObject().(client.Object)
	if !ok {
		return fmt.Errorf("the job %s is no object", c.name)
	}
	annotations := c.object.GetAnnotations()
	if annotations == nil {
		annotations = map[string]string{}
	}
	annotations[annotationAdmitted] = w.now.UTC().Format(time.RFC3339)
	annotations[annotationTrust] = w.trust(c.nodes).encode()
	c.object.SetAnnotations(annotations)
	if err := r.Client.Patch(ctx, c.object, client.MergeFrom(before)); err != nil {
		return fmt.Errorf("mark the job %s: %w", c.name, err)
	}
	return nil
}

// create makes a job. It is not applied: a job is never changed, and one that is there already is not this one.
func (r *Reconciler) create(ctx context.Context, w *world, job client.Object) error {
	if err := controllerutil.SetControllerReference(w.run, job, r.Client.Scheme()); err != nil {
		return fmt.Errorf("set the owner of %s: %w", job.GetName(), err)
	}
	switch err := r.Client.Create(ctx, job); {
	case apierrors.IsAlreadyExists(err):
		return foreign("the job", job.GetName(), w.run)
	case err != nil:
		return fmt.Errorf("create the job %s: %w", job.GetName(), err)
	}
	log.FromContext(ctx).Info("Created a job", "job", job.GetName())
	return nil
}

// remove deletes a job and with it, by the garbage collector, its pods.
func (r *Reconciler) remove(ctx context.Context, c *child) error {
	if c.deleting {
		return nil
	}
	uid := c.object.GetUID()
	err := r.Client.Delete(ctx, c.object, client.PropagationPolicy(metav1.DeletePropagationBackground), client.Preconditions{UID: &uid})
	if client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("delete the job %s: %w", c.name, err)
	}
	return nil
}

// writeStatus writes the status and its events when it has changed.
func (r *Reconciler) writeStatus(ctx context.Context, w *world, d decision) error {
	status, err := derive(w, d)
	if err != nil {
		return err
	}
	before := w.run
	if equality.Semantic.DeepEqual(before.Status, status) {
		return nil
	}
	after := before.DeepCopy()
	after.Status = status
	written := after.DeepCopy()
	if err := r.Client.Status().Patch(ctx, written, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{})); err != nil {
		return fmt.Errorf("write the status: %w", err)
	}
	r.emit(after, notes(before, after, d)...)
	return nil
}
