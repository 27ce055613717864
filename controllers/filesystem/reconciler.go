// Package filesystem reconciles FileSystems: it gathers what there is, lets the backend decide, applies what should be,
// restarts what is outdated, and writes the status once.
package filesystem

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"parallelfs.dev/operator/api/v1alpha1"
	"parallelfs.dev/operator/controllers/apply"
	"parallelfs.dev/operator/controllers/conditions"
	"parallelfs.dev/operator/controllers/failures"
	"parallelfs.dev/operator/controllers/views"
	"parallelfs.dev/operator/internal/backend"
)

// StateReader asks a filesystem's probe.
type StateReader interface {
	// State returns what the filesystem says to a probe that asks it after this call began, or a sentence of why there is no such answer. It
	// leaves State.Asked to the caller.
	State(ctx context.Context, q Question) (*backend.State, error)
}

// Reconciler reconciles FileSystems.
type Reconciler struct {
	Client client.Client
	// Reader reads from the API server: who has the lease must really have it.
	Reader client.Reader
	// Backends by spec.type.
	Backends backend.Set
	Images   backend.Images
	// Cluster is the identity of this cluster (StorageTarget.spec.cluster).
	Cluster  string
	States   StateReader
	Recorder events.EventRecorder
	Clock    clock.PassiveClock
	// Order is a clock that only goes on (time.Now has a monotonic reading): it tells what this manager has seen and asked before what, and
	// how long before. It makes State.Asked, Pod.Seen and Input.Since.
	Order   clock.PassiveClock
	Applier *apply.Applier
	// PollInterval is how often the filesystem itself is asked. A target that is lost shows in the status within one interval of the
	// moment when the filesystem notices.
	PollInterval time.Duration

	// Views takes what the filesystems say of their targets and servers.
	Views *views.Board

	// seen is what this manager has seen so far.
	seen sightings
}

// +kubebuilder:rbac:groups=parallelfs.dev,resources=filesystems,verbs=get;list;watch;update;patch
// +kubebuilder:rbac:groups=parallelfs.dev,resources=filesystems/status,verbs=get;update;patch
// +kubebuilder:rbac:groups=parallelfs.dev,resources=filesystems/finalizers,verbs=update
// +kubebuilder:rbac:groups=parallelfs.dev,resources=storagetargets,verbs=get;list;watch;create;patch;delete
// +kubebuilder:rbac:groups=parallelfs.dev,resources=filesystemnodes,verbs=get;list;watch;create;patch
// +kubebuilder:rbac:groups=parallelfs.dev,resources=nodeinventories,verbs=get;list;watch
// +kubebuilder:rbac:groups=apps,resources=daemonsets,verbs=get;list;watch;create;patch;delete
// +kubebuilder:rbac:groups=batch,resources=jobs,verbs=get;list;watch;create;patch;delete
// +kubebuilder:rbac:groups="",resources=configmaps,verbs=get;list;watch;create;patch;delete
// +kubebuilder:rbac:groups="",resources=secrets,verbs=get;create;patch;delete
// +kubebuilder:rbac:groups="",resources=pods,verbs=get;list;watch;delete
// +kubebuilder:rbac:groups="",resources=nodes,verbs=get;list;watch;patch
// +kubebuilder:rbac:groups=events.k8s.io,resources=events,verbs=create;patch

// Reconcile brings one FileSystem nearer to what its spec asks for.
func (r *Reconciler) Reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	result, err := r.reconcile(ctx, request)
	failures.Writer[*v1alpha1.FileSystem]{
		Client: r.Client, Reader: r.Reader, Recorder: r.Recorder, Positive: v1alpha1.ConditionReady,
		Conditions: func(fs *v1alpha1.FileSystem) *[]metav1.Condition { return &fs.Status.Conditions },
	}.Say(ctx, request.NamespacedName, &v1alpha1.FileSystem{}, err)
	return apply.Again(result, err)
}

func (r *Reconciler) reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	fs := &v1alpha1.FileSystem{}
	if err := r.Client.Get(ctx, request.NamespacedName, fs); err != nil {
		if apierrors.IsNotFound(err) {
			r.seen.forget(request.NamespacedName)
			r.Views.Forget(request.NamespacedName)
		}
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	fs = fs.DeepCopy()
	b, ok := r.Backends[fs.Spec.Type]
	if !ok {
		return ctrl.Result{}, fmt.Errorf("no backend serves type %q", fs.Spec.Type)
	}
	if !fs.DeletionTimestamp.IsZero() {
		result, err := r.reconcileDelete(ctx, b, fs)
		return result, failures.In("stop and let go", err)
	}
	if !controllerutil.ContainsFinalizer(fs, v1alpha1.Finalizer) {
		before := fs.DeepCopy()
		controllerutil.AddFinalizer(fs, v1alpha1.Finalizer)
		if err := r.Client.Patch(ctx, fs, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{})); err != nil {
			return ctrl.Result{}, fmt.Errorf("add the finalizer: %w", err)
		}
	}

	in, d, err := r.gather(ctx, b, fs)
	if err != nil {
		return ctrl.Result{}, failures.In("look at what there is", err)
	}
	h := &hold{reconciler: r, fs: fs}
	problems, stop, err := r.realize(ctx, b, &in, d, h)
	if err != nil {
		// What the filesystem says of itself is worth knowing all the same.
		before := fs.DeepCopy()
		seen := b.Observe(in)
		r.show(b, in, d.own, seen)
		r.describe(fs, seen, stop, true)
		return ctrl.Result{}, errors.Join(failures.In("make what should be there", err), r.writeStatus(ctx, before, fs))
	}
	before := fs.DeepCopy()
	seen := b.Observe(in)
	r.show(b, in, d.own, seen)
	seen.Problems = h.mended(seen.Problems)
	var restarts []due
	if stop == nil {
		if err := r.repeatUnseenJobs(ctx, in, seen); err != nil {
			return ctrl.Result{}, failures.In("repeat jobs", err)
		}
		var message string
		if restarts, message, err = r.chooseRestarts(ctx, b, in, seen, h); err != nil {
			return ctrl.Result{}, failures.In("choose what to restart", err)
		}
		if slices.ContainsFunc(restarts, func(d due) bool { return d.Ready && d.sole != "" }) {
			seen.Serves = false // programs wait for one that is restarted
		}
		if message != "" {
			seen.Problems = append(seen.Problems, backend.Problem{Reason: v1alpha1.ReasonRestarting, Message: message})
		}
	}
	// What a person has to change comes first: it is often the cause of the rest.
	seen.Problems = slices.Concat(problems, seen.Problems)
	if err := h.settle(ctx, in, seen); err != nil {
		return ctrl.Result{}, failures.In("settle the lease", err)
	}
	r.describe(fs, seen, stop, len(h.waiting) > 0)
	h.describe(fs)
	failures.Clear(&fs.Status.Conditions)
	if err := r.writeStatus(ctx, before, fs); err != nil {
		return ctrl.Result{}, err
	}
	for i := range restarts {
		if err := r.restart(ctx, fs, &restarts[i]); err != nil {
			return ctrl.Result{}, err
		}
	}
	return ctrl.Result{RequeueAfter: r.PollInterval}, nil
}

// realize records what must be recorded, chooses disks and CPUs, then applies the children. A problem with the disks or CPUs
// of one role holds up no other. What stops everything until a person changes it comes back as an InvalidSpecError; the
// filesystem is then left as it is, and still observed. Servers that would join it and have to wait are not recorded, and what is recorded
// stays applied; of other changes, only those are left out that have to wait.
func (r *Reconciler) realize(ctx context.Context, b backend.Backend, in *backend.Input, d disks, h *hold) (
	[]backend.Problem, *backend.InvalidSpecError, error,
) {
	var invalid *backend.InvalidSpecError
	allocation, err := b.Allocate(*in)
	if errors.As(err, &invalid) {
		return r.pin(b, in), invalid, nil
	} else if err != nil {
		return nil, nil, fmt.Errorf("decide what to record: %w", err)
	}
	may, err := h.may(ctx, allocation.Joins...)
	if err != nil {
		return r.pin(b, in), nil, err
	}
	fs := in.FileSystem
	if !may {
		fs = withoutNewPools(in.FileSystem)
	}
	// The record goes to the API server before anything that follows from it: an operator that is killed in between finds what it has
	// decided, and decides the same.
	problems, err := r.record(ctx, b, in, fs, allocation, may)
	if errors.As(err, &invalid) {
		return problems, invalid, nil
	} else if err != nil {
		return problems, nil, err
	}
	if err := r.labelNodes(ctx, *in); err != nil {
		return problems, nil, err
	}
	if may {
		disks, err := r.chooseDisks(ctx, b, *in, d, allocation.TargetNodes, h)
		if err != nil {
			return nil, nil, err
		}
		problems = slices.Concat(disks, problems)
	}
	wanted := *in
	wanted.FileSystem = fs
	objects, err := b.Members(wanted)
	switch {
	case errors.As(err, &invalid):
		return problems, invalid, nil
	case err != nil && !may:
		return problems, nil, nil // they can't be planned without the servers that wait
	case err != nil:
		return nil, nil, fmt.Errorf("plan the children: %w", err)
	}
	in.Told = told(in.FileSystemNodes)
	problems = append(problems, r.untold(*in)...)
	mine := map[string]string{v1alpha1.LabelFileSystem: in.FileSystem.Name}
	differences, err := r.Applier.Differences(ctx, in.FileSystem, mine, objects)
	if err != nil {
		return problems, nil, err
	}
	changes, which := disruptive(differences)
	if may, err := h.may(ctx, changes...); err != nil {
		return problems, nil, err
	} else if !may {
		objects = without(objects, which, in.FileSystem.Namespace)
		h.jobs = slices.ContainsFunc(which, func(d apply.Difference) bool { return d.Kind == kindJob })
	}
	result, err := r.Applier.Apply(ctx, in.FileSystem, mine, objects)
	if result.Applied+result.Deleted > 0 {
		log.FromContext(ctx).Info("Applied children", "applied", result.Applied, "deleted", result.Deleted)
	}
	return problems, nil, err
}

// withoutNewPools is the FileSystem without the storage pools that are not recorded yet.
func withoutNewPools(fs *v1alpha1.FileSystem) *v1alpha1.FileSystem {
	out := fs.DeepCopy()
	out.Spec.StoragePools = slices.DeleteFunc(out.Spec.StoragePools, func(pool v1alpha1.StoragePoolSpec) bool {
		return !slices.ContainsFunc(fs.Status.StoragePools, func(known v1alpha1.StoragePoolStatus) bool { return known.Name == pool.Name })
	})
	return out
}

// describe turns the observation into the status. While changes wait, nothing is settled.
func (r *Reconciler) describe(fs *v1alpha1.FileSystem, seen backend.Observation, stop *backend.InvalidSpecError, waits bool) {
	status := &fs.Status
	status.ObservedGeneration = fs.Generation
	status.Management, status.Summary = seen.Management, &seen.Summary
	status.Versions, status.Missing = versions(seen), missing(seen)
	if len(seen.StoragePools) > 0 {
		status.StoragePools = seen.StoragePools
	}
	if seen.MetadataInitialized && status.Metadata != nil && status.Metadata.Initialized == nil {
		now := metav1.NewTime(r.Clock.Now().UTC().Truncate(time.Second))
		status.Metadata.Initialized = &now
	}
	s := summarize(seen, stop)
	if waits && s.progress == conditions.Settled {
		s.progress = conditions.Reconciling
	}
	// What a person has to change is said by Stalled. Ready is about service.
	conditions.Set(&status.Conditions, fs.Generation, v1alpha1.ConditionReady, s.ready, s.progress, s.why.Reason, s.why.Message)
	conditions.Add(&status.Conditions, fs.Generation, v1alpha1.ConditionReady, v1alpha1.ConditionReady, s.ready,
		s.service.Reason, s.service.Message)
	if s.missing != nil {
		conditions.Add(&status.Conditions, fs.Generation, v1alpha1.ConditionReady, v1alpha1.ConditionDegraded, metav1.ConditionTrue,
			s.missing.Reason, s.missing.Message)
	} else {
		meta.RemoveStatusCondition(&status.Conditions, v1alpha1.ConditionDegraded)
	}
	if usesDirectories(fs) {
		conditions.Add(&status.Conditions, fs.Generation, v1alpha1.ConditionReady, v1alpha1.ConditionEvaluationOnly, metav1.ConditionTrue,
			v1alpha1.ReasonDirectoryTargets,
			"targets are directories: nothing proves that they are on the disks that they were on; use this filesystem for evaluation only")
	} else {
		meta.RemoveStatusCondition(&status.Conditions, v1alpha1.ConditionEvaluationOnly)
	}
	if seen.Licensed != nil {
		conditions.Add(&status.Conditions, fs.Generation, v1alpha1.ConditionReady, v1alpha1.ConditionLicensed,
			licensed(seen.Licensed.Reason), seen.Licensed.Reason, seen.Licensed.Message)
	} else {
		meta.RemoveStatusCondition(&status.Conditions, v1alpha1.ConditionLicensed)
	}
	if seen.Pinned != nil {
		conditions.Add(&status.Conditions, fs.Generation, v1alpha1.ConditionReady, v1alpha1.ConditionPinned, pinned(seen.Pinned.Reason),
			seen.Pinned.Reason, seen.Pinned.Message)
	} else {
		meta.RemoveStatusCondition(&status.Conditions, v1alpha1.ConditionPinned)
	}
	describeSpread(fs, seen.Spread)
}

// maxMessage is the limit of the messages of servers and targets in a status, in characters; it is counted in bytes here. One message that
// is too long would make the API server refuse the whole status.
const maxMessage = 1024

// licensed is the status of the condition Licensed.
func licensed(reason string) metav1.ConditionStatus {
	if reason == v1alpha1.ReasonLicenseValid {
		return metav1.ConditionTrue
	}
	return metav1.ConditionFalse
}

// pinned is the status of the condition Pinned: it is unknown while nobody can see where a daemon runs.
func pinned(reason string) metav1.ConditionStatus {
	switch reason {
	case v1alpha1.ReasonAsAsked:
		return metav1.ConditionTrue
	case v1alpha1.ReasonDrifted:
		return metav1.ConditionFalse
	default:
		return metav1.ConditionUnknown
	}
}

// summary is what the conditions say.
type summary struct {
	// ready and service are the status of Ready, and its reason and message.
	ready   metav1.ConditionStatus
	service backend.Problem
	// progress and why are about Reconciling and Stalled.
	progress conditions.Progress
	why      backend.Problem
	// missing is the reason and message of Degraded; nil when nothing is missing.
	missing *backend.Problem
}

// summarize decides the conditions from what was observed.
func summarize(seen backend.Observation, stop *backend.InvalidSpecError) summary {
	s := summary{ready: metav1.ConditionTrue, progress: conditions.Settled, service: backend.Problem{
		Reason: v1alpha1.ReasonHealthy,
		Message: fmt.Sprintf("%s servers and %s targets are online, %s clients have mounted",
			seen.Summary.Servers, seen.Summary.Targets, seen.Summary.Clients),
	}}
	s.why = s.service
	if len(seen.Problems) > 0 {
		s.summarizeProblems(seen)
	}
	if stop != nil {
		s.progress, s.why = conditions.Stalled, backend.Problem{Reason: stop.Reason, Message: stop.Message}
		if s.ready != metav1.ConditionTrue {
			s.service = s.why // what a person has to change is often the cause of the rest
		}
	}
	return s
}

func (s *summary) summarizeProblems(seen backend.Observation) {
	worst, missing := backend.Problem{Reason: seen.Problems[0].Reason}, backend.Problem{}
	for _, p := range seen.Problems {
		worst.Message = joined(worst.Message, p.Message)
		if isMissing(p.Reason) {
			missing.Reason = cmp.Or(missing.Reason, p.Reason)
			missing.Message = joined(missing.Message, p.Message)
		}
	}
	s.why, s.progress = worst, conditions.Reconciling
	if missing.Reason != "" {
		s.missing = &missing
	}
	switch worst.Reason {
	case v1alpha1.ReasonDaemonRefused, v1alpha1.ReasonNoDevices, v1alpha1.ReasonDeviceConflict, v1alpha1.ReasonPinningConflict,
		v1alpha1.ReasonInvalidSpec, v1alpha1.ReasonLicenseMissing, v1alpha1.ReasonUnknownMembers:
		s.progress = conditions.Stalled
	}
	switch {
	case worst.Reason == v1alpha1.ReasonDataUnknown: // it is the last of all problems, so there is no other
		s.service = worst
	case seen.Serves && s.missing != nil:
		s.service = backend.Problem{Reason: v1alpha1.ReasonDegradedService, Message: "programs read and write, and not everything is there: " + missing.Message}
	case seen.Serves && worst.Reason == v1alpha1.ReasonRestarting:
		s.service = backend.Problem{Reason: worst.Reason, Message: "programs read and write; " + worst.Message}
	case seen.Serves: // the operator has something to do, or a person has
	case worst.Reason == v1alpha1.ReasonProbeUnreachable,
		// That one server is not told says nothing of the others.
		worst.Reason == v1alpha1.ReasonServersNotTold && among(seen.Problems, v1alpha1.ReasonProbeUnreachable):
		s.ready, s.service = metav1.ConditionUnknown, worst
	default:
		s.ready, s.service = metav1.ConditionFalse, worst
	}
}

// among is true when a problem has the reason.
func among(problems []backend.Problem, reason string) bool {
	return slices.ContainsFunc(problems, func(p backend.Problem) bool { return p.Reason == reason })
}

// isMissing is true for what makes a filesystem less than whole. Other problems are work that is not done yet.
func isMissing(reason string) bool {
	switch reason {
	case v1alpha1.ReasonTargetsMissing, v1alpha1.ReasonServersMissing, v1alpha1.ReasonChunksEndangered, v1alpha1.ReasonClientsMissing,
		v1alpha1.ReasonTargetsNotReady, v1alpha1.ReasonDataInconsistent, v1alpha1.ReasonMetadataOffline, v1alpha1.ReasonDaemonRefused:
		return true
	default:
		return false
	}
}

func joined(a, b string) string {
	if a == "" {
		return b
	}
	return a + "; " + b
}

// writeStatus writes the status when it has changed, and an event when Ready has.
func (r *Reconciler) writeStatus(ctx context.Context, before, after *v1alpha1.FileSystem) error {
	if equality.Semantic.DeepEqual(before.Status, after.Status) {
		return nil
	}
	if err := r.Client.Status().Patch(ctx, after, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{})); err != nil {
		return fmt.Errorf("write the status: %w", err)
	}
	r.announce(before, after)
	r.announceHold(before, after)
	return nil
}
