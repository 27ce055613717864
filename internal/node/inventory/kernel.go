package inventory

import (
	"slices"

	"parallelfs.dev/operator/api/v1alpha1"
	"parallelfs.dev/operator/internal/node/format"
	"parallelfs.dev/operator/internal/node/format/registry"
	"parallelfs.dev/operator/internal/node/modules"
)

// asked returns the kernel modules that clients and servers of the filesystems, and their targets, need.
func (c Collector) asked() []string {
	names := []string{"fuse"}
	for _, f := range registry.All() {
		// The module of a format whose targets only their own server mounts is included in the server's modules.
		if _, served := f.(format.Served); !served {
			names = append(names, string(f.Name()))
		}
	}
	for _, m := range c.Modules {
		names = append(names, m.Name)
	}
	for _, s := range c.Software {
		names = append(names, modulesOf(s)...)
	}
	slices.Sort(names)
	return slices.Compact(names)
}

func (c Collector) kernel(kernel modules.Kernel, built map[string]build) v1alpha1.KernelStatus {
	s := v1alpha1.KernelStatus{Release: text(kernel.Release, 128)}
	for _, name := range c.asked() {
		s.Modules = append(s.Modules, v1alpha1.KernelModule{
			Name: name, State: kernel.State(name), Version: text(built[name].version, 64), Message: text(kernel.Missing(name), 512),
		})
	}
	return s
}
