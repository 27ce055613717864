package scope

import (
	"time"

	"parallelfs.dev/operator/benchmarks/results"
	"parallelfs.dev/operator/internal/node/spec"
)

// Provenance is what was found before the first point, and again after a suspension. It stands in a ConfigMap of the run.
type Provenance struct {
	results.Provenance
	// CheckedBy is the uid of the Job that looked at image and space, empty when none has.
	CheckedBy string    `json:"checkedBy,omitempty"`
	CheckedAt time.Time `json:"checkedAt,omitzero"`
	// Checked is what it found; CheckFailed says why it found nothing.
	Checked     spec.Checked `json:"checked,omitzero"`
	CheckFailed string       `json:"checkFailed,omitempty"`
}
