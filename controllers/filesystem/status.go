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
	"parallelfs.dev/operator/internal/backend"
)

// describe turns what this pass has seen, and why it failed, into the status.
func (p *pass) describe(failed error) {
	if p.observed {
		seen := p.seen
		// What a person has to change comes first: it is often the cause of the rest.
		seen.Problems = slices.Concat(p.problems, seen.Problems, movedClients(p.in), p.upgrading.problems(), maintenanceProblems(p.fs))
		seen.NearlyFullMetadata = backend.NearlyFullMetadata(p.in.State)
		describe(p.fs, seen, p.disks.own, p.stop, p.isPlanned(), failed != nil || len(p.hold.waiting) > 0, p.Clock.Now())
		describeNodeImage(p.fs, p.backend.Order(), p.in)
		describeUnmatched(p.backend, p.fs, p.in)
		describeCertificate(p.backend, p.fs, p.in.CertificateFault, p.Clock.Now())
		describeAdmitted(p.fs, p.in)
		describeVolatile(p.backend, p.fs, p.in)
		describePartners(p.fs, p.seen.Partners)
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

// describe turns an observation into the status, with the StorageTargets of the FileSystem. All that is away is planned, or not. While
// changes wait, nothing is settled.
func describe(
	fs *v1alpha1.FileSystem, seen backend.Observation, own []v1alpha1.StorageTarget, stop *backend.InvalidSpecError, planned, waits bool,
	now time.Time,
) {
	status := &fs.Status
	status.ObservedGeneration = fs.Generation
	status.Management, status.Summary = seen.Management, &seen.Summary
	status.Versions, status.Missing = versions(seen), missing(seen)
	if fs.Spec.Clients != nil && status.MountPath == "" {
		status.MountPath = string(fs.Spec.Clients.MountPath)
	}
	if len(seen.StoragePools) > 0 {
		status.StoragePools = seen.StoragePools
	}
	if seen.MetadataInitialized && status.Metadata != nil && status.Metadata.Initialized == nil {
		status.Metadata.Initialized = new(metav1.NewTime(now.UTC().Truncate(time.Second)))
	}
	full, nearly := seen.Full(fs.Spec.StoragePools)
	if len(full) > 0 {
		// It is said here alone: neither a restart nor a drain waits for room.
		seen.Serves = false
		seen.Problems = slices.Insert(slices.Clone(seen.Problems), 0, backend.Problem{Reason: v1alpha1.ReasonPoolFull, Message: fmt.Sprintf(
			"storage pools take no new data: %s; remove files, or give the pool more disks or nodes", backend.List(full))})
	}
	describeNearlyFull(fs, full, append(nearly, seen.NearlyFullMetadata...))
	s := summarize(fs, seen, own, stop, planned)
	describeCopies(fs, seen.Copies, &s)
	if waits && s.stalls == nil && s.goesOn == nil {
		s.goesOn = &s.service
	}
	// What a person has to change is said by Stalled. Ready is about service.
	conditions.Add(&status.Conditions, fs.Generation, v1alpha1.ConditionReady, v1alpha1.ConditionReady, s.ready,
		s.service.Reason, s.service.Message)
	// In one order, so that two passes that see the same write the same.
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
	describeTransport(fs, seen.Transport)
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
	// goesOn, stalls and missing are the reasons and messages of Reconciling, Stalled and Degraded; nil for one that is not there. The first
	// two stand side by side while some of what the spec asks for comes by itself, and some waits for a person.
	goesOn, stalls, missing *backend.Problem
}

// summarize decides the conditions from what was observed.
func summarize(
	fs *v1alpha1.FileSystem, seen backend.Observation, own []v1alpha1.StorageTarget, stop *backend.InvalidSpecError, planned bool,
) summary {
	s := summary{ready: metav1.ConditionTrue, service: whole(seen)}
	if len(seen.Problems) > 0 {
		s.summarizeProblems(fs, seen, unprovenOf(own, seen), planned)
	}
	if stop != nil {
		s.goesOn, s.stalls = nil, &backend.Problem{Reason: stop.Reason, Message: stop.Message}
		if s.ready != metav1.ConditionTrue {
			s.service = *s.stalls // what a person has to change is often the cause of the rest
		}
	}
	return s
}

// whole is what Ready says of a filesystem without a problem. A node that is not Ready and has no mount is none, but neither is all well.
func whole(seen backend.Observation) backend.Problem {
	out := backend.Problem{Reason: v1alpha1.ReasonHealthy, Message: fmt.Sprintf("%s servers and %s targets are online, %s clients have mounted",
		seen.Summary.Servers, seen.Summary.Targets, seen.Summary.Clients)}
	var away []string
	for _, c := range seen.Clients {
		if !c.Mounted {
			away = append(away, fmt.Sprintf("%s (%s)", c.Node, c.Message))
		}
	}
	if len(away) > 0 {
		out.Reason, out.Message = v1alpha1.ReasonClientsAway, out.Message+"; without a mount: "+backend.List(away)
	}
	return out
}

func (s *summary) summarizeProblems(fs *v1alpha1.FileSystem, seen backend.Observation, disks unproven, planned bool) {
	before := meta.FindStatusCondition(fs.Status.Conditions, v1alpha1.ConditionReady)
	var all, stalls, goesOn, missing, restarting []backend.Problem
	for _, p := range seen.Problems {
		all = append(all, p)
		person, itself := disks.waitsFor(fs, seen, p.Reason)
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
		before.Status != metav1.ConditionTrue: // what was missing is missed until the filesystem says otherwise
		s.ready = before.Status
		s.service = backend.Problem{Reason: before.Reason, Message: "data was missing when its copies were last counted; " + worst.Message}
	case worst.Reason == v1alpha1.ReasonDataUnknown: // it is the last of all problems, so there is no other
		s.service = worst
	case seen.Serves && s.missing != nil:
		s.service = backend.Problem{Reason: v1alpha1.ReasonDegradedService, Message: "programs read and write, and not everything is there: " + s.missing.Message}
	case seen.Serves && restarts != nil: // in the next moment, not everything is there
		s.service = backend.Problem{Reason: restarts.Reason, Message: "programs read and write; " + restarts.Message}
	case seen.Serves: // the operator has something to do, or a person has
	case planned && before != nil && (seen.Pending || seen.Unknown):
		s.ready = before.Status
		s.service = backend.Problem{Reason: plannedReason(restarts, worst), Message: fmt.Sprintf(
			"a planned step has just been made, and whether programs go on meanwhile is not known yet: %s", worst.Message)}
	case seen.Unknown:
		s.ready, s.service = metav1.ConditionUnknown, worst
	case worst.Reason == v1alpha1.ReasonProbeUnreachable,
		// That one server is not told says nothing of the others.
		worst.Reason == v1alpha1.ReasonServersNotTold && among(seen.Problems, v1alpha1.ReasonProbeUnreachable):
		s.ready, s.service = metav1.ConditionUnknown, worst
	default:
		s.ready, s.service = metav1.ConditionFalse, worst
	}
}

// plannedReason is the reason of a Ready that stays as it was after a planned step.
func plannedReason(restarts *backend.Problem, worst backend.Problem) string {
	if restarts != nil {
		return restarts.Reason
	}
	return worst.Reason
}

// mostSaid is how many characters the problems of a condition take together, beside the words before them: a message stays below 800. The
// first problem, which is the worst, is always said in whole.
const mostSaid = 700

// together puts problems into one condition, whose reason is that of the first; nil when there is none. Those that do not fit are counted.
func together(problems []backend.Problem) *backend.Problem {
	if len(problems) == 0 {
		return nil
	}
	out, more := problems[0], 0
	for _, p := range problems[1:] {
		longer := out.Message + "; " + p.Message
		// A node that is away is often the cause of the others, and its message has the command that a person runs: it is never left out.
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

// writeStatus writes the status when it has changed, and an event of what is new in it.
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
