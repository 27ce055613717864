package scope

import (
	"time"
)

const (
	// defaultPointTimeout is that of spec.limits.pointTimeout.
	defaultPointTimeout = 30 * time.Minute
	// defaultTimeout is that of spec.limits.timeout.
	defaultTimeout = 7 * 24 * time.Hour
	// OverdueAfter is how long after the point's timeout the operator ends a job itself: the node binary in the pod should
	// have ended it by then, unless the pod never started.
	OverdueAfter = time.Minute
	// CleanTimeout bounds the removal of the run's files.
	CleanTimeout = 2 * time.Minute
	// DeleteTimeout bounds how long a deletion waits for anything at all.
	DeleteTimeout = 4 * time.Minute

	// Soon is when to go on after a step; the events of what was written mostly come sooner.
	Soon = time.Second
	// RetryInterval is how often something that the run waits for is looked at.
	RetryInterval = 5 * time.Second
	// MPIInterval is how often the cluster is asked for the API of MPIJobs while it has none.
	MPIInterval = 30 * time.Second
)

// PointTimeout bounds one turn.
func (w *Scope) PointTimeout() time.Duration {
	if l := w.Run.Spec.Limits; l != nil && l.PointTimeout != nil {
		return l.PointTimeout.Duration
	}
	return defaultPointTimeout
}

// Timeout bounds all turns together.
func (w *Scope) Timeout() time.Duration {
	if l := w.Run.Spec.Limits; l != nil && l.Timeout != nil {
		return l.Timeout.Duration
	}
	return defaultTimeout
}

// TimedOut is true when the repetitions, and what runs now, have taken the time of the whole run.
func (w *Scope) TimedOut(now time.Duration) bool {
	sum, _ := w.Records.Total()
	return sum+now >= w.Timeout()
}

// The bounds of status.baseline and status.exported, in bytes.
const (
	MaxBaseline = 512
	MaxExported = 1024
	// ExportTimeout bounds the job that takes the results elsewhere.
	ExportTimeout = 10 * time.Minute
)

const (
	// CheckTimeout bounds the look at image and space, with the pull of the image.
	CheckTimeout = 10 * time.Minute
	// CheckAgain is how long a run that failed its preflight waits before it looks again.
	CheckAgain = 2 * time.Minute
)

// The key of the provenance in its ConfigMap, and the bounds of status.provenance.
const (
	ProvenanceKey = "provenance.json"
	// MaxProvenanceNodes is that of status.provenance.clients.
	MaxProvenanceNodes = 64
	MaxPinning         = 512
	MaxNodeText        = 128
	// MaxPodChanges is that of status.provenance.podChanges.
	MaxPodChanges = 8
)

// The bounds of texts, in bytes, and of lists in the status. A status that is too large keeps some metrics of a point, or few.
const (
	MaxCurrent   = 256
	MaxMessage   = 2048
	MaxPlacement = 128
	MaxTelemetry = 8
	MaxMetrics   = 32
	SomeMetrics  = 16
	FewMetrics   = 8
)
