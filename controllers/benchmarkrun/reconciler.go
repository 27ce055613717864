// Package benchmarkrun reconciles BenchmarkRuns: it gathers what there is, decides on one step, takes it, and writes the
// status once. What a repetition found is recorded before anything that follows from it, so an operator that is killed at
// any moment goes on where it was.
package benchmarkrun

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"parallelfs.dev/operator/api/v1alpha1"
	"parallelfs.dev/operator/benchmarks"
	"parallelfs.dev/operator/benchmarks/stats"
	"parallelfs.dev/operator/controllers/apply"
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
	Backends map[v1alpha1.FileSystemType]backend.Backend
	Images   backend.Images
	Logs     LogReader
	Recorder events.EventRecorder
}

// +kubebuilder:rbac:groups=parallelfs.dev,resources=benchmarkruns,verbs=get;list;watch;update;patch;delete
// +kubebuilder:rbac:groups=parallelfs.dev,resources=benchmarkruns/status,verbs=get;update;patch
// +kubebuilder:rbac:groups=parallelfs.dev,resources=benchmarkruns/finalizers,verbs=update
// +kubebuilder:rbac:groups=parallelfs.dev,resources=filesystems,verbs=get;list;watch
// +kubebuilder:rbac:groups=kubeflow.org,resources=mpijobs,verbs=get;list;create;delete
// +kubebuilder:rbac:groups=batch,resources=jobs,verbs=get;list;watch;create;delete
// +kubebuilder:rbac:groups="",resources=configmaps,verbs=get;list;watch;create;patch
// +kubebuilder:rbac:groups="",resources=pods,verbs=get;list;watch
// +kubebuilder:rbac:groups="",resources=pods/log,verbs=get
// +kubebuilder:rbac:groups="",resources=nodes,verbs=get;list;watch
// +kubebuilder:rbac:groups=events.k8s.io,resources=events,verbs=create;patch

// Reconcile takes one BenchmarkRun one step further.
func (r *Reconciler) Reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	return apply.Again(r.reconcile(ctx, request))
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
	if err := r.act(ctx, w, d); err != nil {
		return ctrl.Result{}, err
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

// act takes the step that was decided on.
func (r *Reconciler) act(ctx context.Context, w *world, d decision) error {
	render := renderer{w: w, images: r.Images}
	switch d.action {
	case start:
		// The record may be newer than the cache that said that there is none.
		recorded, err := r.isRecorded(ctx, w.run, d.point, d.repetition)
		if err != nil || recorded {
			return err
		}
		return r.create(ctx, w, render.repetition(d.point, d.repetition))
	case clean:
		return r.create(ctx, w, render.cleaner())
	case keep:
		entry, raw, err := r.read(ctx, w, d.child, d.verdict)
		if err != nil {
			return err
		}
		entry, err = r.store(ctx, w.run, entry, raw)
		if err != nil {
			return err
		}
		w.records.add(entry)
		log.FromContext(ctx).Info("Recorded a repetition", "point", entry.Point, "repetition", entry.Repetition, "error", entry.Error)
		return nil
	case remove:
		return r.remove(ctx, d.child)
	case expire:
		uid := w.run.UID
		return client.IgnoreNotFound(r.Client.Delete(ctx, w.run, client.Preconditions{UID: &uid}))
	case nothing:
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

// metrics are what a point's repetitions measured, by the run's statistic.
func (w *world) metrics(point int) ([]v1alpha1.MetricResult, error) {
	return stats.Summarise(w.samples(point), w.run.Spec.Statistic)
}
