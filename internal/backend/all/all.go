// Package all has every backend. It is the only place outside of their folders that names one.
package all

import (
	"time"

	"parallelfs.dev/operator/internal/backend"
	"parallelfs.dev/operator/internal/backend/beegfs"
	"parallelfs.dev/operator/internal/backend/moosefs"
)

// Backends are all that there are. A changed ConfigMap may take kubeletSync to come to a node; see backend.DefaultKubeletSync.
func Backends(kubeletSync time.Duration) backend.Set {
	return backend.SetOf(
		beegfs.Backend{KubeletSync: kubeletSync},
		moosefs.Backend{KubeletSync: kubeletSync},
	)
}
