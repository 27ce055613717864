package beegfs

import "parallelfs.dev/operator/internal/node/spec"

// tuning is the source of the kernel settings of a server.
const tuning = "BeeGFS documentation, tuning of storage and metadata servers"

// HostSettings returns the settings that the BeeGFS documentation recommends.
func (Backend) HostSettings() []spec.HostSetting {
	return []spec.HostSetting{
		{Name: spec.TransparentHugePages, Expected: "always", Source: tuning},
		{Name: "vm.dirty_background_ratio", Expected: "5", Source: tuning},
		{Name: "vm.dirty_ratio", Expected: "20", Source: tuning},
		{Name: "vm.min_free_kbytes", Expected: "262144", Source: tuning},
		{Name: "vm.vfs_cache_pressure", Expected: "50", Source: tuning},
		{Name: "vm.zone_reclaim_mode", Expected: "1", Source: tuning},
	}
}

// Modules returns the modules of the client (debian/control, debian/rules and beegfs.spec of 7.4.6): the two packages exclude each other,
// and install their sources here.
func (Backend) Modules() []spec.KernelModule {
	return []spec.KernelModule{{
		Name: mountType, DKMS: "beegfs-client-dkms", Sources: "usr/src/beegfs-*",
		ByHand: "opt/beegfs/src/client/*", Rebuild: "/etc/init.d/beegfs-client rebuild",
	}}
}
