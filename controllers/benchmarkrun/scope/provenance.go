package scope

import (
	"time"

	"parallelfs.dev/operator/benchmarks/results"
	"parallelfs.dev/operator/internal/node/spec"
)

// Provenance is what was found before the first point, and again after a suspension. It is stored in a ConfigMap of the run.
type Provenance struct {
	results.Provenance
	// CheckedBy is the uid of the Job that checked image and space, empty if there was none.
	CheckedBy string    `json:"checkedBy,omitempty"`
	CheckedAt time.Time `json:"checkedAt,omitzero"`
	// Checked is the result of that Job; CheckFailed is why there is none.
	Checked     spec.Checked `json:"checked,omitzero"`
	CheckFailed string       `json:"checkFailed,omitempty"`
}
