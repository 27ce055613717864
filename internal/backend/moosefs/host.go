package moosefs

import (
	"parallelfs.dev/operator/api/v1alpha1"
	"parallelfs.dev/operator/internal/backend"
	"parallelfs.dev/operator/internal/node/spec"
)

// Sources of the settings of a master.
const (
	sourcePractices = "MooseFS best practices, 7. overcommit_memory on Master Servers"
	sourceMaster    = "MooseFS documentation, Requirements for Master Servers"
)

// HostSettings returns the settings that MooseFS recommends for a master. Its process has one thread, and forks to save the metadata, for
// which the kernel must promise the memory twice.
func (Backend) HostSettings() []spec.HostSetting {
	return backend.SettingsOf(v1alpha1.MooseFS, []v1alpha1.Role{v1alpha1.RoleMetadata},
		spec.HostSetting{Name: spec.CPUGovernor, Expected: "performance", Source: sourceMaster},
		spec.HostSetting{Name: spec.SMT, Expected: "off", Source: sourceMaster},
		spec.HostSetting{Name: "vm.overcommit_memory", Expected: "1", Source: sourcePractices},
	)
}
