// Package all lists all backends. No other code outside of their folders may name one.
package all

import (
	"time"

	"parallelfs.dev/operator/internal/backend"
	"parallelfs.dev/operator/internal/backend/beegfs"
	"parallelfs.dev/operator/internal/backend/lustre"
	"parallelfs.dev/operator/internal/backend/moosefs"
	"parallelfs.dev/operator/internal/node/spec"
)

// Backends returns all backends. tellTime is how long a change may take to reach the node files; see backend.DefaultTellTime.
func Backends(tellTime time.Duration) backend.Set {
	return backend.SetOf(
		beegfs.Backend{TellTime: tellTime},
		lustre.Backend{TellTime: tellTime},
		moosefs.Backend{TellTime: tellTime},
	)
}

// HostSoftware lists the software that filesystems in the kernel need on the nodes themselves.
func HostSoftware() []spec.HostSoftware {
	return []spec.HostSoftware{lustre.HostSoftware()}
}
