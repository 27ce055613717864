// Package all has every backend. It is the only place outside of their folders that names one.
package all

import (
	"time"

	"parallelfs.dev/operator/internal/backend"
	"parallelfs.dev/operator/internal/backend/beegfs"
	"parallelfs.dev/operator/internal/backend/lustre"
	"parallelfs.dev/operator/internal/backend/moosefs"
	"parallelfs.dev/operator/internal/node/spec"
)

// Backends are all that there are. A change may take tellTime until servers are told of it; see backend.DefaultTellTime.
func Backends(tellTime time.Duration) backend.Set {
	return backend.SetOf(
		beegfs.Backend{TellTime: tellTime},
		lustre.Backend{TellTime: tellTime},
		moosefs.Backend{TellTime: tellTime},
	)
}

// HostSoftware is what filesystems need on the nodes themselves, because their servers and clients are a part of the kernel.
func HostSoftware() []spec.HostSoftware {
	return []spec.HostSoftware{lustre.HostSoftware()}
}
