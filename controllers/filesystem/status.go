package filesystem

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"parallelfs.dev/operator/api/v1alpha1"
	"parallelfs.dev/operator/controllers/conditions"
	"parallelfs.dev/operator/controllers/failures"
	"parallelfs.dev/operator/internal/backend"
)

// describe turns what this pass has seen, and why it failed, into the status.
func (p *pass) describe(failed error) {
	if p.observed {
		seen := p.seen
		// What a person has to change comes first: it is often the cause of the rest.
		seen.Problems = slices.Concat(p.problems, seen.Problems, p.upgrading.problems(), maintenanceProblems(p.fs))
		describe(p.fs, seen, p.stop, failed != nil || len(p.hold.waiting) > 0, p.Clock.Now())
		describeNodeImage(p.fs, p.backend.Order(), p.in)
		p.describeUpgrade()
		if failed == nil {
			p.hold.describe(p.fs)
		}
	}
	if failed == nil {
		failures.Clear(&p.fs.Status.Conditions)
		return
	}
	failures.Describe(&p.fs.Status.Conditions, p.fs.Generation, v1alpha1.ConditionReady, failed)
}

// describe turns an observation into the status. While changes wait, nothing is settled.
func describe(fs *v1alpha1.FileSystem, seen backend.Observation, stop *backend.InvalidSpecError, waits bool, now time.Time) {
	status := &fs.Status
	status.ObservedGeneration = fs.Generation
	status.Management, status.Summary = seen.Management, &seen.Summary
	status.Versions, status.Missing = versions(seen), missing(seen)
	if len(seen.StoragePools) > 0 {
		status.StoragePools = seen.StoragePools
	}
	if seen.MetadataInitialized && status.Metadata != nil && status.Metadata.Initialized == nil {
		status.Metadata.Initialized = new(metav1.NewTime(now.UTC().Truncate(time.Second)))
	}
	s := summarize(seen, stop)
	if waits && s.progress == conditions.Settled {
		s.progress = conditions.Reconciling
	}
	// What a person has to change is said by Stalled. Ready is about service.
	conditions.SetProgress(&status.Conditions, fs.Generation, v1alpha1.ConditionReady, s.progress, s.why.Reason, s.why.Message)
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
		v1alpha1.ReasonInvalidSpec, v1alpha1.ReasonUpgradeRefused, v1alpha1.ReasonLicenseMissing, v1alpha1.ReasonUnknownMembers:
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
		v1alpha1.ReasonTargetsNotReady, v1alpha1.ReasonRecordsUnread, v1alpha1.ReasonDataInconsistent, v1alpha1.ReasonMetadataOffline,
		v1alpha1.ReasonDaemonRefused, v1alpha1.ReasonNodesAway:
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

// writeStatus writes the status when it has changed, and an event of what is new in it.
func (p *pass) writeStatus(ctx context.Context) error {
	if equality.Semantic.DeepEqual(p.read.Status, p.fs.Status) {
		return nil
	}
	before := p.read
	if err := p.Client.Status().Patch(ctx, p.fs, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{})); err != nil {
		return fmt.Errorf("write the status: %w", err)
	}
	p.read = p.fs.DeepCopy()
	p.announce(before, p.fs)
	return nil
}
// refused is true for a status that the API server does not take, and won't take the next time either.
func refused(err error) bool {
	return apierrors.IsInvalid(err) || apierrors.IsRequestEntityTooLargeError(err)
}

// sayRefused writes that the status was refused, and nothing else of what was seen: a person would go on to see what once was, and not that
// it is old.
func (p *pass) sayRefused(ctx context.Context, err error) error {
	p.fs.Status = *p.read.Status.DeepCopy()
	failures.Describe(&p.fs.Status.Conditions, p.fs.Generation, v1alpha1.ConditionReady, fmt.Errorf("what is said here is old: %w", err))
	return p.writeStatus(ctx)
}

