package filesystem

import (
	"context"
	"fmt"
	"slices"
	"time"
	"unicode/utf8"

	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"parallelfs.dev/operator/api/v1alpha1"
	"parallelfs.dev/operator/controllers/conditions"
	"parallelfs.dev/operator/controllers/failures"
	"parallelfs.dev/operator/controllers/filesystem/derive"
	"parallelfs.dev/operator/internal/backend"
)

// describe writes the observed state, and why the pass failed, into the status.
func (p *pass) describe(failed error) {
	if p.observed {
		observation := p.observation
		// Problems that a person has to solve come first, because they are often the cause of the rest.
		observation.Problems = slices.Concat(
			p.problems, observation.Problems, movedClients(p.in), p.upgrading.problems(), maintenanceProblems(p.fs))
		observation.FullMetadata, observation.NearlyFullMetadata = backend.FullMetadata(p.in.State)
		describe(p.fs, observation, p.disks.own, p.stop, p.isPlanned(), failed != nil || len(p.hold.waiting) > 0, p.Clock.Now())
		describeNodeImage(p.fs, p.backend.Order(), p.in)
		derive.Unmatched(p.backend, p.fs, p.in)
		describeCertificate(p.backend, p.fs, p.in.CertificateFault, p.Clock.Now())
		derive.Admitted(p.fs, p.in)
		derive.Volatile(p.backend, p.fs, p.in)
		derive.Unshared(p.fs, p.disks.own, p.in)
		derive.Partners(p.fs, p.observation.Partners)
		p.describeUpgrade()
		if failed == nil {
			p.hold.describe(p.fs, p.disks.own)
		}
	}
	if failed == nil {
		failures.Clear(&p.fs.Status.Conditions)
		return
	}
	failures.Describe(&p.fs.Status.Conditions, p.fs.Generation, v1alpha1.ConditionReady, failed)
}

// describe writes an observation into the status, with the StorageTargets of the FileSystem. The argument planned is true if everything
// that is away is so as planned. While changes wait, nothing counts as settled.
func describe(
	fs *v1alpha1.FileSystem, observation backend.Observation, own []v1alpha1.StorageTarget, stop *backend.InvalidSpecError,
	planned, waits bool, now time.Time,
) {
	status := &fs.Status
	status.ObservedGeneration = fs.Generation
	status.Management, status.Summary = observation.Management, &observation.Summary
	status.Versions, status.Missing = versions(observation), missing(observation)
	if fs.Spec.Clients != nil && status.MountPath == "" {
		status.MountPath = string(fs.Spec.Clients.MountPath)
	}
	if len(observation.StoragePools) > 0 {
		status.StoragePools = observation.StoragePools
	}
	if observation.MetadataInitialized && status.Metadata != nil && status.Metadata.Initialized == nil {
		status.Metadata.Initialized = new(metav1.NewTime(now.UTC().Truncate(time.Second)))
	}
	derive.Room(fs, &observation)
	s := summarize(fs, observation, own, stop, planned)
	describeCopies(fs, observation.Copies, &s)
	if waits && s.stalls == nil && s.goesOn == nil {
		s.goesOn = &s.service
	}
	// Stalled reports what a person has to change. Ready is about service.
	conditions.Add(&status.Conditions, fs.Generation, v1alpha1.ConditionReady, v1alpha1.ConditionReady, s.ready,
		s.service.Reason, s.service.Message)
	// The order is fixed, so that two passes with the same observation write the same.
	for _, c := range []struct {
		kind string
		why  *backend.Problem
	}{
		{v1alpha1.ConditionReconciling, s.goesOn}, {v1alpha1.ConditionStalled, s.stalls}, {v1alpha1.ConditionDegraded, s.missing},
	} {
		if c.why != nil {
			conditions.Add(&status.Conditions, fs.Generation, v1alpha1.ConditionReady, c.kind, metav1.ConditionTrue, c.why.Reason, c.why.Message)
		} else {
			meta.RemoveStatusCondition(&status.Conditions, c.kind)
		}
	}
	if usesDirectories(fs) {
		conditions.Add(&status.Conditions, fs.Generation, v1alpha1.ConditionReady, v1alpha1.ConditionEvaluationOnly, metav1.ConditionTrue,
			v1alpha1.ReasonDirectoryTargets,
			"targets are directories: nothing proves that they are on the disks that they were on; use this filesystem for evaluation only")
	} else {
		meta.RemoveStatusCondition(&status.Conditions, v1alpha1.ConditionEvaluationOnly)
	}
	if observation.Licensed != nil {
		conditions.Add(&status.Conditions, fs.Generation, v1alpha1.ConditionReady, v1alpha1.ConditionLicensed,
			licensed(observation.Licensed.Reason), observation.Licensed.Reason, observation.Licensed.Message)
	} else {
		meta.RemoveStatusCondition(&status.Conditions, v1alpha1.ConditionLicensed)
	}
	if observation.Pinned != nil {
		conditions.Add(&status.Conditions, fs.Generation, v1alpha1.ConditionReady, v1alpha1.ConditionPinned, pinned(observation.Pinned.Reason),
			observation.Pinned.Reason, observation.Pinned.Message)
	} else {
		meta.RemoveStatusCondition(&status.Conditions, v1alpha1.ConditionPinned)
	}
	derive.Spread(fs, observation.Spread)
	describeTransport(fs, observation.Transport)
}

// maxMessage is the limit for the messages of servers and targets in a status, in characters; the code counts bytes. One message that is
// too long would make the API server refuse the whole status.
const maxMessage = 1024

// licensed returns the status of the condition Licensed.
func licensed(reason string) metav1.ConditionStatus {
	if reason == v1alpha1.ReasonLicenseValid {
		return metav1.ConditionTrue
	}
	return metav1.ConditionFalse
}

// pinned returns the status of the condition Pinned, which is unknown while the placement of a daemon is unknown.
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

// summary holds the conditions.
type summary struct {
	// ready and service are the status of Ready, and its reason and message.
	ready   metav1.ConditionStatus
	service backend.Problem
	// goesOn, stalls and missing are the reasons and messages of Reconciling, Stalled and Degraded; nil for an absent condition. Reconciling
	// and Stalled exist together while some of the spec is being carried out and some waits for a person.
	goesOn, stalls, missing *backend.Problem
}

// summarize derives the conditions from the observation.
func summarize(
	fs *v1alpha1.FileSystem, observation backend.Observation, own []v1alpha1.StorageTarget, stop *backend.InvalidSpecError, planned bool,
) summary {
	s := summary{ready: metav1.ConditionTrue, service: whole(observation)}
	if len(observation.Problems) > 0 {
		s.summarizeProblems(fs, observation, unprovenOf(own, observation), planned)
	}
	if stop != nil {
		s.goesOn, s.stalls = nil, &backend.Problem{Reason: stop.Reason, Message: stop.Message}
		if s.ready != metav1.ConditionTrue {
			s.service = *s.stalls // the part that a person has to change is often the cause of the rest
		}
	}
	return s
}

// whole returns the text of Ready for a filesystem without a problem. A node that is not Ready and has no mount is no problem, but the text
// mentions it.
func whole(observation backend.Observation) backend.Problem {
	out := backend.Problem{Reason: v1alpha1.ReasonHealthy, Message: fmt.Sprintf("%s servers and %s targets are online, %s clients have mounted",
		observation.Summary.Servers, observation.Summary.Targets, observation.Summary.Clients)}
	var away []string
	for _, c := range observation.Clients {
		if !c.Mounted {
			away = append(away, fmt.Sprintf("%s (%s)", c.Node, c.Message))
		}
	}
	if len(away) > 0 {
		out.Reason, out.Message = v1alpha1.ReasonClientsAway, out.Message+"; without a mount: "+backend.List(away)
	}
	return out
}

func (s *summary) summarizeProblems(fs *v1alpha1.FileSystem, observation backend.Observation, disks unproven, planned bool) {
	before := meta.FindStatusCondition(fs.Status.Conditions, v1alpha1.ConditionReady)
	var all, stalls, goesOn, missing, restarting []backend.Problem
	for _, p := range observation.Problems {
		all = append(all, p)
		person, itself := disks.waitsFor(fs, observation, p.Reason)
		if person {
			stalls = append(stalls, p)
		}
		if itself {
			goesOn = append(goesOn, p)
		}
		if isMissing(p.Reason) {
			missing = append(missing, p)
		}
		if p.Reason == v1alpha1.ReasonRestarting {
			restarting = append(restarting, p)
		}
	}
	worst, restarts := *together(all), together(restarting)
	s.stalls, s.goesOn, s.missing = together(stalls), together(goesOn), together(missing)
	switch {
	case worst.Reason == v1alpha1.ReasonDataUnknown && before != nil && before.Reason == v1alpha1.ReasonChunksEndangered &&
		before.Status != metav1.ConditionTrue: // missing parts count as missing until the filesystem reports otherwise
		s.ready = before.Status
		s.service = backend.Problem{Reason: before.Reason, Message: "data was missing when its copies were last counted; " + worst.Message}
	case worst.Reason == v1alpha1.ReasonDataUnknown: // it is the last of all problems, so there is no other one
		s.service = worst
	case observation.Serves && s.missing != nil:
		s.service = backend.Problem{Reason: v1alpha1.ReasonDegradedService, Message: "programs read and write, and not everything is there: " + s.missing.Message}
	case observation.Serves && restarts != nil: // something will be away in the next moment
		s.service = backend.Problem{Reason: restarts.Reason, Message: "programs read and write; " + restarts.Message}
	case observation.Serves: // the operator or a person has something to do
	case planned && before != nil && (observation.Pending || observation.Unknown):
		s.ready = before.Status
		s.service = backend.Problem{Reason: plannedReason(restarts, worst), Message: fmt.Sprintf(
			"a planned step has just been made, and whether programs go on meanwhile is not known yet: %s", worst.Message)}
	case observation.Unknown:
		s.ready, s.service = metav1.ConditionUnknown, worst
	case worst.Reason == v1alpha1.ReasonProbeUnreachable,
		// If one server lacks its configuration, that shows nothing about the others.
		worst.Reason == v1alpha1.ReasonServersNotTold && among(observation.Problems, v1alpha1.ReasonProbeUnreachable):
		s.ready, s.service = metav1.ConditionUnknown, worst
	default:
		s.ready, s.service = metav1.ConditionFalse, worst
	}
}

// plannedReason returns the reason of a Ready that stays unchanged after a planned step.
func plannedReason(restarts *backend.Problem, worst backend.Problem) string {
	if restarts != nil {
		return restarts.Reason
	}
	return worst.Reason
}

// mostSaid limits the problems in one condition, in characters, beside the words before them, so that a message stays below 800. The first
// problem, which is the worst, is never cut.
const mostSaid = 700

// together combines problems into one condition, with the reason of the first one; nil if there is none. Problems that do not fit are
// counted.
func together(problems []backend.Problem) *backend.Problem {
	if len(problems) == 0 {
		return nil
	}
	out, more := problems[0], 0
	for _, p := range problems[1:] {
		longer := out.Message + "; " + p.Message
		// A node that is away is often the cause of the others, and its message has the command for a person, so it is never left out.
		if p.Reason != v1alpha1.ReasonNodesAway && (more > 0 || utf8.RuneCountInString(longer) > mostSaid) {
			more++
			continue
		}
		out.Message = longer
	}
	if more > 0 {
		out.Message += fmt.Sprintf("; and %d more", more)
	}
	return &out
}

// among reports whether a problem has the reason.
func among(problems []backend.Problem, reason string) bool {
	return slices.ContainsFunc(problems, func(p backend.Problem) bool { return p.Reason == reason })
}

// isMissing reports whether a reason means that a part of the filesystem is missing. Other problems are unfinished work.
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

// refused reports whether the API server does not accept a status, and would not accept it the next time either.
func refused(err error) bool {
	return apierrors.IsInvalid(err) || apierrors.IsRequestEntityTooLargeError(err)
}

// sayRefused writes only that the status was refused. Otherwise a person would continue to see an old status, and not that it is old.
func (p *pass) sayRefused(ctx context.Context, err error) error {
	p.fs.Status = *p.read.Status.DeepCopy()
	failures.Describe(&p.fs.Status.Conditions, p.fs.Generation, v1alpha1.ConditionReady, fmt.Errorf("this status is old: %w", err))
	return p.writeStatus(ctx)
}

// writeStatus writes the status if it has changed, and emits events for the changes.
func (p *pass) writeStatus(ctx context.Context) error {
	if equality.Semantic.DeepEqual(p.read.Status, p.fs.Status) {
		return nil
	}
	before := p.read
	if err := p.Client.Status().Patch(ctx, p.fs, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{})); err != nil {
		return fmt.Errorf("write the status: %w", err)
	}
	p.complete()
	p.read = p.fs.DeepCopy()
	p.announce(before, p.fs)
	return nil
}
