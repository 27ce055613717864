package inventory

import (
	"slices"

	"parallelfs.dev/operator/api/v1alpha1"
	"parallelfs.dev/operator/internal/node/format/registry"
	"parallelfs.dev/operator/internal/node/modules"
)

// asked are the modules that the clients and servers of the filesystems, and their targets, need, in the order of their names.
func asked() []string {
	names := []string{"beegfs", "fuse", "lnet", "lustre"}
	for _, f := range registry.All() {
		names = append(names, string(f.Name()))
	}
	slices.Sort(names)
	return names
}

func (c Collector) kernel() v1alpha1.KernelStatus {
	kernel := modules.Node{Sys: c.Sys, Proc: c.Proc, Host: c.Host}.Look()
	s := v1alpha1.KernelStatus{Release: text(kernel.Release, 128)}
	for _, name := range asked() {
		s.Modules = append(s.Modules, v1alpha1.KernelModule{Name: name, State: kernel.State(name), Message: text(kernel.Missing(name), 512)})
	}
	return s
}
