package scope

import (
	"time"
)

const (
	// defaultPointTimeout is the default of spec.limits.pointTimeout.
	defaultPointTimeout = 30 * time.Minute
	// defaultTimeout is the default of spec.limits.timeout.
	defaultTimeout = 7 * 24 * time.Hour
	// OverdueAfter is how long after the point's timeout the operator ends a job itself. The node binary in the pod should have ended it by
	// then, unless the pod never started.
	OverdueAfter = time.Minute
	// CleanTimeout bounds the removal of the run's files.
	CleanTimeout = 2 * time.Minute
	// DeleteTimeout bounds the total wait of a deletion.
	DeleteTimeout = 4 * time.Minute

	// Soon is the delay of the next pass after a step. The events of the written objects mostly trigger it sooner.
	Soon = time.Second
	// RetryInterval is how often something that the run waits for is checked.
	RetryInterval = 5 * time.Second
	// MPIInterval is how often the API of MPIJobs is looked for while the cluster has none.
	MPIInterval = 30 * time.Second
)

// PointTimeout returns the limit of one turn.
func (w *Scope) PointTimeout() time.Duration {
	if l := w.Run.Spec.Limits; l != nil && l.PointTimeout != nil {
		return l.PointTimeout.Duration
	}
	return defaultPointTimeout
}

// Timeout returns the limit of all turns together.
func (w *Scope) Timeout() time.Duration {
	if l := w.Run.Spec.Limits; l != nil && l.Timeout != nil {
		return l.Timeout.Duration
	}
	return defaultTimeout
}

// TimedOut reports whether the repetitions and the running turn have used the time of the whole run.
func (w *Scope) TimedOut(now time.Duration) bool {
	sum, _ := w.Records.Total()
	return sum+now >= w.Timeout()
}

// The limits of status.baseline and status.exported, in bytes.
const (
	MaxBaseline = 512
	MaxExported = 1024
	// ExportTimeout bounds the job that copies the results.
	ExportTimeout = 10 * time.Minute
)

const (
	// CheckTimeout bounds the check of image and space, including the pull of the image.
	CheckTimeout = 10 * time.Minute
	// CheckAgain is how long a run that failed its preflight waits before the next check.
	CheckAgain = 2 * time.Minute
)

// The key of the provenance in its ConfigMap, and the limits of status.provenance.
const (
	ProvenanceKey = "provenance.json"
	// MaxProvenanceNodes is the limit of status.provenance.clients.
	MaxProvenanceNodes = 64
	MaxPinning         = 512
	MaxNodeText        = 128
	// MaxPodChanges is the limit of status.provenance.podChanges.
	MaxPodChanges = 8
)

// The limits of texts, in bytes, and of lists in the status. A status that is too large keeps only some metrics of a point.
const (
	MaxCurrent   = 256
	MaxMessage   = 2048
	MaxPlacement = 128
	MaxTelemetry = 8
	MaxMetrics   = 32
	SomeMetrics  = 16
	FewMetrics   = 8
)
