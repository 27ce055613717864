package beegfs

import (
	"parallelfs.dev/operator/api/v1alpha1"
	"parallelfs.dev/operator/internal/backend"
	"parallelfs.dev/operator/internal/node/spec"
)

// Sources of the settings of a server.
const (
	tuning       = "BeeGFS documentation, tuning of storage and metadata servers"
	sourceBIOS   = "NetApp TR-4782, BIOS changes"
	sourceKernel = "NetApp TR-4782, operating system changes (processor.max_cstate=1 intel_idle.max_cstate=0)"
)

// HostSettings returns the settings that the BeeGFS documentation and a published setup recommend for metadata and storage servers. That
// setup also turns SMT off; others measured more with it (docs/adr/0153).
func (Backend) HostSettings() []spec.HostSetting {
	return backend.SettingsOf(v1alpha1.BeeGFS, []v1alpha1.Role{v1alpha1.RoleMetadata, v1alpha1.RoleStorage},
		spec.HostSetting{Name: spec.CStates, Expected: "C1", Source: sourceKernel},
		spec.HostSetting{Name: spec.CPUGovernor, Expected: "performance", Source: sourceBIOS},
		spec.HostSetting{Name: spec.TransparentHugePages, Expected: "always", Source: tuning},
		spec.HostSetting{Name: "vm.dirty_background_ratio", Expected: "5", Source: tuning},
		spec.HostSetting{Name: "vm.dirty_ratio", Expected: "20", Source: tuning},
		spec.HostSetting{Name: "vm.min_free_kbytes", Expected: "262144", Source: tuning},
		spec.HostSetting{Name: "vm.vfs_cache_pressure", Expected: "50", Source: tuning},
		spec.HostSetting{Name: "vm.zone_reclaim_mode", Expected: "1", Source: tuning},
	)
}

// Modules returns the modules of the client (debian/control, debian/rules and beegfs.spec of 7.4.6): the two packages exclude each other,
// and install their sources here.
func (Backend) Modules() []spec.KernelModule {
	return []spec.KernelModule{{
		Name: mountType, DKMS: "beegfs-client-dkms", Sources: "usr/src/beegfs-*",
		ByHand: "opt/beegfs/src/client/*", Rebuild: "/etc/init.d/beegfs-client rebuild",
	}}
}
