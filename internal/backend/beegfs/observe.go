package beegfs

import "parallelfs.dev/operator/internal/backend"

// Observe sets what should be there, from the recorded status, beside what the management service says is there.
func (Backend) Observe(in backend.Input) backend.Observation {
	return backend.Observation{Problems: []backend.Problem{{Message: in.StateError}}}
}
