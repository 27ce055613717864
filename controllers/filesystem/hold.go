package filesystem

import (
	"context"
	"fmt"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"parallelfs.dev/operator/api/v1alpha1"
	"parallelfs.dev/operator/controllers/apply"
	"parallelfs.dev/operator/controllers/conditions"
	"parallelfs.dev/operator/controllers/lease"
	"parallelfs.dev/operator/internal/backend"
)

// hold is the state of the lease in one pass over a FileSystem. Changes that disturb the users of the filesystem need the lease, and wait
// while a BenchmarkRun has it. These are restarts of running daemons, more or fewer servers and disks, and jobs that set up the filesystem
// or move data. Other changes never wait: the creation of a filesystem, its deletion, the restart of daemons that are down, and the
// configuration of the daemons' pods (ConfigMaps, Secrets and FileSystemNodes). The configuration can't wait because a permission to
// initialize a directory must end at once.
type hold struct {
	reconciler *Reconciler
	fs         *v1alpha1.FileSystem
	// needed is true if this pass has found a change that needs the lease.
	needed bool
	// by is the present holder of the lease, and waiting lists the changes that wait for it. jobs is true if a job is among them.
	by      string
	waiting []string
	jobs    bool
	// maintains is true if a maintenance is among them.
	maintains bool
}

// may takes the lease for some changes, and returns whether they may be made. Without changes it makes no request.
func (h *hold) may(ctx context.Context, changes ...string) (bool, error) {
	if len(changes) == 0 || isNew(h.fs) {
		return true, nil
	}
	if err := h.take(ctx); err != nil {
		return false, err
	}
	h.needed = true
	if h.by == "" {
		return true, nil
	}
	h.waiting = append(h.waiting, changes...)
	return false, nil
}

// mayApply is may for changes of children.
func (h *hold) mayApply(ctx context.Context, changes []string, which []apply.Difference) (bool, error) {
	may, err := h.may(ctx, changes...)
	h.jobs = err == nil && !may && slices.ContainsFunc(which, func(d apply.Difference) bool { return d.Kind == kindJob })
	return may, err
}

// mayMaintain is may for the maintenance of a node.
func (h *hold) mayMaintain(ctx context.Context, node string) (bool, error) {
	may, err := h.may(ctx, fmt.Sprintf("node %s is to be away for maintenance", node))
	h.maintains = h.maintains || err == nil && !may
	return may, err
}

func (h *hold) take(ctx context.Context) error {
	if h.needed {
		return nil
	}
	r := h.reconciler
	r.remembered(client.ObjectKeyFromObject(h.fs), h.fs.UID).leaseFree = time.Time{}
	by, err := lease.Acquire(ctx, r.Client, r.Reader, lease.Of(h.fs), lease.OfFileSystem(h.fs), r.Clock.Now())
	h.by = by
	return err
}

// isNew reports whether the filesystem has never run, so that it has no users yet.
func isNew(fs *v1alpha1.FileSystem) bool {
	return fs.Status.Metadata == nil || fs.Status.Metadata.Initialized == nil
}

// settle releases the lease when the change is over.
func (p *pass) settle(ctx context.Context) error {
	observation := p.observation
	observation.Problems = slices.DeleteFunc(slices.Concat(p.problems, observation.Problems), func(problem backend.Problem) bool {
		// A refused version changes nothing. Benchmarks need not wait for days, because they measure the filesystem as it is.
		return problem.Reason == v1alpha1.ReasonUpgradeRefused || p.rests && problem.Reason == v1alpha1.ReasonRestarting
	})
	// A running upgrade keeps the lease, unless it waits for a person.
	if p.fs.Status.Upgrade != nil && !p.fs.Spec.Updates.Paused {
		observation.Problems = append(observation.Problems, p.upgrading.problems()...)
	}
	observation.Problems = append(observation.Problems, maintenanceProblems(p.fs)...)
	if p.telling {
		observation.Problems = append(observation.Problems, backend.Problem{Reason: v1alpha1.ReasonInMaintenance})
	}
	return p.hold.settle(ctx, p.in, observation)
}

// settle releases the lease if there is nothing to change, nothing is in progress, and the filesystem is healthy.
func (h *hold) settle(ctx context.Context, in backend.Input, observation backend.Observation) error {
	switch {
	case h.needed || isNew(h.fs):
		return nil
	case underWay(in.Jobs, observation):
		return h.take(ctx) // an older operator may have begun the change without the lease
	case len(observation.Problems) > 0:
		return nil
	}
	r, name := h.reconciler, client.ObjectKeyFromObject(h.fs)
	m, now := r.remembered(name, h.fs.UID), time.Now()
	if now.Sub(m.leaseFree) < r.Reread {
		return nil // it was released recently; a later pass repeats it, because a former leader could have taken the lease since
	}
	if err := lease.Release(ctx, r.Client, r.Reader, lease.Of(h.fs).Key, lease.OfFileSystem(h.fs)); err != nil {
		return err //nolint:wrapcheck // the phase adds its name
	}
	m.leaseFree = now
	return nil
}

// underWay reports whether a job of the filesystem runs, or data is being moved away from a target.
func underWay(jobs []backend.Job, observation backend.Observation) bool {
	return slices.ContainsFunc(jobs, func(j backend.Job) bool { return !j.Succeeded && !j.Failed }) ||
		slices.ContainsFunc(observation.Targets, func(t backend.TargetStatus) bool { return t.Removing && !t.Removable })
}

// disruptive names those differences of a FileSystem's children that disturb its users.
func disruptive(differences []apply.Difference) (changes []string, which []apply.Difference) {
	for _, d := range differences {
		var change string
		switch {
		case d.Kind == kindDaemonSet && d.Change == apply.Changed:
			change = "the daemons of " + d.Name + " change"
		case d.Kind == kindDaemonSet && d.Change == apply.Unwanted:
			change = "the daemons of " + d.Name + " are stopped"
		case d.Kind == kindJob && d.Change != apply.Unwanted:
			change = "job " + d.Name + " is to run"
		default:
			continue // a missing child is created, a finished job is removed, and pods read the rest when they start
		}
		changes, which = append(changes, change), append(which, d)
	}
	return changes, which
}

// The kinds of children whose changes can disturb programs.
const (
	kindDaemonSet = "DaemonSet"
	kindJob       = "Job"
)

// describe sets the condition ChangesHeld. A healthy filesystem stays Ready while a change waits, so that the run can continue. Reconciling
// shows that the spec is not carried out yet.
func (h *hold) describe(fs *v1alpha1.FileSystem, own []v1alpha1.StorageTarget) {
	if len(h.waiting) == 0 {
		meta.RemoveStatusCondition(&fs.Status.Conditions, v1alpha1.ConditionChangesHeld)
		return
	}
	reason, message := v1alpha1.ReasonBenchmarkRunning, fmt.Sprintf("%s has the lease of this filesystem, and these changes wait for its end: %s. "+
		"To have them now, suspend the run (spec.suspend) or delete it", h.by, backend.List(h.waiting))
	if h.stopsRuns(fs, own) {
		reason, message = v1alpha1.ReasonBenchmarkStopping, fmt.Sprintf("%s has the lease of this filesystem, and gives its repetition up for these changes: "+
			"%s. When it does not, suspend the run (spec.suspend) or delete it", h.by, backend.List(h.waiting))
	}
	add := func(kind string) {
		conditions.Add(&fs.Status.Conditions, fs.Generation, v1alpha1.ConditionReady, kind, metav1.ConditionTrue,
			reason, message)
	}
	add(v1alpha1.ConditionChangesHeld)
	if meta.IsStatusConditionTrue(fs.Status.Conditions, v1alpha1.ConditionReady) {
		add(v1alpha1.ConditionReconciling)
	}
}

// isEmptied reports whether the data of a target is moving away. A disk that is already empty waits for a person and stops no run.
func isEmptied(t v1alpha1.StorageTarget) bool {
	return t.Spec.Remove && !meta.IsStatusConditionTrue(t.Status.Conditions, v1alpha1.ConditionSafeToRemove)
}

// stopsRuns reports whether a waiting change is more urgent than a benchmark: a maintenance, the recovery of lost metadata, or any change
// while data leaves a disk, which disturbs a measurement anyway.
func (h *hold) stopsRuns(fs *v1alpha1.FileSystem, own []v1alpha1.StorageTarget) bool {
	return h.maintains || fs.Status.Recovery != nil || slices.ContainsFunc(own, isEmptied)
}

// mended returns the problems that the held changes won't fix, because the filesystem works as it did before the changes were requested.
func (h *hold) mended(problems []backend.Problem) []backend.Problem {
	if !h.jobs {
		return problems
	}
	return slices.DeleteFunc(slices.Clone(problems), func(p backend.Problem) bool { return p.Reason == v1alpha1.ReasonPoolsNotPlaced })
}
