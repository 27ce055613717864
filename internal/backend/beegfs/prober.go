package beegfs

import "parallelfs.dev/operator/internal/backend"

// NewProber asks the management service at an address.
func NewProber(version, address string) backend.Prober { return prober{version, address} }

type prober struct{ version, address string }

// Commands are none yet.
func (prober) Commands() [][]string { return nil }

// Parse knows nothing yet.
func (prober) Parse([][]byte) (backend.State, error) { return backend.State{}, nil }
