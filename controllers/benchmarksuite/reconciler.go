// Package benchmarksuite reconciles BenchmarkSuites: each pass gathers the facts, decides on one step, takes it, and writes the status
// once. The status records an object before it is made, so that an operator that is killed at any moment continues from there. The package
// deletes only FileSystems that it made, and permits the wipe only of disks that were formatted for them.
package benchmarksuite

import (
	"context"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"parallelfs.dev/operator/api/v1alpha1"
	"parallelfs.dev/operator/benchmarks"
	"parallelfs.dev/operator/controllers/apply"
	"parallelfs.dev/operator/controllers/failures"
	"parallelfs.dev/operator/controllers/passes"
	"parallelfs.dev/operator/internal/backend"
)

// Reconciler reconciles BenchmarkSuites.
type Reconciler struct {
	// Client reads from a cache and writes.
	Client client.Client
	// Reader reads from the API server: an object that it does not find really does not exist.
	Reader client.Reader
	Clock  clock.PassiveClock
	// Tools by spec.tool, to find an invalid run before anything starts.
	Tools map[v1alpha1.BenchmarkTool]benchmarks.Tool
	// Backends by spec.type of the variants' FileSystems.
	Backends backend.Set
	Recorder events.EventRecorder
	// PollInterval is how often a waiting suite is reconciled without an event.
	PollInterval time.Duration
}

// +kubebuilder:rbac:groups=parallelfs.dev,resources=benchmarksuites,verbs=get;list;watch;update;patch;delete
// +kubebuilder:rbac:groups=parallelfs.dev,resources=benchmarksuites/status,verbs=get;update;patch
// +kubebuilder:rbac:groups=parallelfs.dev,resources=benchmarksuites/finalizers,verbs=update
// +kubebuilder:rbac:groups=parallelfs.dev,resources=benchmarkruns,verbs=get;list;watch;create;patch
// +kubebuilder:rbac:groups=parallelfs.dev,resources=filesystems,verbs=get;list;watch;create;patch;delete
// +kubebuilder:rbac:groups=parallelfs.dev,resources=storagetargets,verbs=get;list;watch
// +kubebuilder:rbac:groups="",resources=configmaps,verbs=get;list;watch;create;patch
// +kubebuilder:rbac:groups=events.k8s.io,resources=events,verbs=create;patch

// Reconcile takes one BenchmarkSuite one step further. Its status is written once, at the end: the decision, or why the pass failed.
func (r *Reconciler) Reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	p := &pass{Reconciler: r}
	err := p.reconcile(ctx, request.NamespacedName)
	failures.Writer[*v1alpha1.BenchmarkSuite]{
		Client: r.Client, Reader: r.Reader, Recorder: r.Recorder, Positive: v1alpha1.ConditionSucceeded,
		Conditions: func(o *v1alpha1.BenchmarkSuite) *[]metav1.Condition { return &o.Status.Conditions },
	}.Say(ctx, request.NamespacedName, &v1alpha1.BenchmarkSuite{}, err)
	if err != nil || p.gone {
		return apply.Again(ctrl.Result{}, err)
	}
	return ctrl.Result{RequeueAfter: p.decision.after}, nil
}

// pass is one pass over a suite: the facts that it has found, and its action.
type pass struct {
	*Reconciler
	suite    *v1alpha1.BenchmarkSuite
	world    *world
	decision decision
	// found is the content of the tables of results, once they are written.
	found *found
	// gone is true when the suite no longer exists, so that there is no status to write.
	gone bool
}

// phases returns the steps of a pass, in their order.
func (p *pass) phases() []passes.Phase {
	if !p.suite.DeletionTimestamp.IsZero() {
		return []passes.Phase{{Name: "release the suite", Do: p.release}}
	}
	return []passes.Phase{
		{Name: "add the finalizer", Do: p.claim},
		{Name: "read the state", Do: p.look},
		{Name: "decide", Do: p.decide},
		{Name: "act", Do: p.do},
	}
}

func (p *pass) reconcile(ctx context.Context, key client.ObjectKey) error {
	p.suite = &v1alpha1.BenchmarkSuite{}
	// The read bypasses the cache: an outdated status would repeat a step that was taken, such as making a FileSystem that was removed.
	if err := p.Reader.Get(ctx, key, p.suite); err != nil {
		p.gone = true
		return client.IgnoreNotFound(err)
	}
	if err := passes.Each(ctx, p.phases(), &p.gone); err != nil || p.gone {
		return err //nolint:wrapcheck // the phase adds its name
	}
	return p.writeStatus(ctx, p.world, p.decision, p.found)
}

// claim adds a finalizer, so that the suite is not deleted before the disks that it was about to wipe are safe.
func (p *pass) claim(ctx context.Context) error {
	return passes.Claim(ctx, p.Client, p.suite) //nolint:wrapcheck // the phase adds its name
}

func (p *pass) look(ctx context.Context) (err error) {
	p.world, err = p.gather(ctx, p.suite)
	return err
}

func (p *pass) decide(context.Context) error {
	p.decision = decide(p.world)
	return nil
}

// do takes the step of the decision. An object that a person must correct is not a failure of the pass.
func (p *pass) do(ctx context.Context) (err error) {
	d := p.decision
	p.found, err = p.act(ctx, p.world, d)
	if isRefusal(err) && (d.action == makeFileSystem || d.action == makeRun) {
		// The API server accepted it in the trial before the first variant, so something else has changed since.
		name := p.suite.Spec.Variants[d.variant].Name
		p.decision = stalled(v1alpha1.ReasonInvalidSpec, "variant %s: %s can't be made: %s", name, p.world.toMake(d), because(err))
		return nil
	}
	p.gone = d.action == expire
	return err
}

// releaseAfter is how long a deletion tries to keep the data on the disks of a FileSystem that was about to be wiped.
const releaseAfter = time.Minute

// release releases a deleted suite. Its runs are deleted with it, and its FileSystems stay: their disks are not wiped.
func (p *pass) release(ctx context.Context) error {
	p.gone = true
	if !controllerutil.ContainsFinalizer(p.suite, v1alpha1.Finalizer) {
		return nil
	}
	err := p.look(ctx)
	if err == nil {
		if fs := p.world.condemned(); fs != nil {
			err = p.setPolicy(ctx, fs, v1alpha1.DeletionRetain, "")
		}
	}
	if err != nil && p.Clock.Now().Sub(p.suite.DeletionTimestamp.Time) < releaseAfter {
		return err
	}
	before := p.suite.DeepCopy()
	controllerutil.RemoveFinalizer(p.suite, v1alpha1.Finalizer)
	if err := p.Client.Patch(ctx, p.suite, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{})); err != nil {
		return client.IgnoreNotFound(fmt.Errorf("remove the finalizer: %w", err))
	}
	if p.world != nil {
		p.emit(before, goodbye(p.world)...)
	}
	return nil
}

// act takes the step of the decision, and returns what keepResults has found.
func (r *Reconciler) act(ctx context.Context, w *world, d decision) (*found, error) {
	switch d.action {
	case makeFileSystem:
		return nil, r.create(ctx, w.plans[d.variant].fileSystem)
	case makeRun:
		return nil, r.create(ctx, w.plans[d.variant].runs[d.run])
	case suspendRun:
		return nil, r.setSuspend(ctx, w.runs[w.plans[d.variant].runs[d.run].GetName()], d.suspend)
	case keepResults:
		return r.keep(ctx, w, d)
	case setRetain, setDestroy, confirm, deleteFileSystem:
		return nil, r.remove(ctx, w, d)
	case expire:
		uid := w.suite.UID
		return nil, client.IgnoreNotFound(r.Client.Delete(ctx, w.suite, client.Preconditions{UID: &uid}))
	case nothing:
	}
	return nil, nil
}

// toMake names the object that a decision makes.
func (w *world) toMake(d decision) string {
	if d.action == makeRun {
		return "BenchmarkRun " + w.plans[d.variant].runs[d.run].GetName()
	}
	return "FileSystem " + w.plans[d.variant].fileSystem.GetName()
}

// create makes an object of a plan. It does not use apply: an existing object does not belong to the suite until the next pass has proven
// it.
func (r *Reconciler) create(ctx context.Context, object *unstructured.Unstructured) error {
	err := r.Client.Create(ctx, object.DeepCopy(), client.FieldValidation(metav1.FieldValidationStrict))
	if apierrors.IsAlreadyExists(err) {
		return nil
	} else if err != nil {
		return fmt.Errorf("create %s %s: %w", object.GetKind(), object.GetName(), err)
	}
	log.FromContext(ctx).Info("Created", "kind", object.GetKind(), "name", object.GetName())
	return nil
}

func (r *Reconciler) setSuspend(ctx context.Context, run *v1alpha1.BenchmarkRun, suspend bool) error {
	before := run.DeepCopy()
	after := run.DeepCopy()
	after.Spec.Suspend = suspend
	if err := r.Client.Patch(ctx, after, client.MergeFrom(before)); err != nil {
		return fmt.Errorf("set spec.suspend of BenchmarkRun %s: %w", run.Name, err)
	}
	return nil
}

// remove takes one step of the removal of a FileSystem. It checks itself that the FileSystem belongs to the suite, regardless of the
// decision.
func (r *Reconciler) remove(ctx context.Context, w *world, d decision) error {
	variant := w.variant(d.variant)
	fs := w.live(&variant)
	if fs == nil || !made(w.suite, fs) {
		return fmt.Errorf("FileSystem %s is not the one that the suite made, so that it is left alone", variant.FileSystem)
	}
	switch d.action {
	case setRetain:
		return r.setPolicy(ctx, fs, v1alpha1.DeletionRetain, "")
	case setDestroy:
		return r.setPolicy(ctx, fs, v1alpha1.DeletionDestroy, "")
	case confirm:
		return r.setPolicy(ctx, fs, v1alpha1.DeletionDestroy, string(fs.UID))
	}
	// The version is a precondition too: the deleted object is the one that was read, with its deletionPolicy.
	exactly := client.Preconditions{UID: &fs.UID, ResourceVersion: &fs.ResourceVersion}
	if err := r.Client.Delete(ctx, fs, exactly); client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("delete FileSystem %s: %w", fs.Name, err)
	}
	log.FromContext(ctx).Info("Deleted a FileSystem", "name", fs.Name, "deletionPolicy", fs.Spec.DeletionPolicy)
	return nil
}

// setPolicy sets the deletion policy of a FileSystem.
func (r *Reconciler) setPolicy(ctx context.Context, fs *v1alpha1.FileSystem, policy v1alpha1.DeletionPolicy, confirm string) error {
	before := fs.DeepCopy()
	after := fs.DeepCopy()
	after.Spec.DeletionPolicy, after.Spec.ConfirmDestroy = policy, confirm
	if err := r.Client.Patch(ctx, after, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{})); err != nil {
		return fmt.Errorf("set spec.deletionPolicy of FileSystem %s to %s: %w", fs.Name, policy, err)
	}
	return nil
}

// writeStatus writes the status and its events when it has changed.
func (r *Reconciler) writeStatus(ctx context.Context, w *world, d decision, f *found) error {
	before := w.suite
	after := before.DeepCopy()
	after.Status = derive(w, d, f)
	if d.action == confirm {
		r.emit(before, wiping(d))
	}
	if equality.Semantic.DeepEqual(before.Status, after.Status) {
		return nil
	}
	patch := client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{})
	if err := r.Client.Status().Patch(ctx, after.DeepCopy(), patch); err != nil {
		return fmt.Errorf("write the status: %w", err)
	}
	r.emit(after, notes(before, after)...)
	return nil
}
