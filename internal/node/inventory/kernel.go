package inventory

import (
	"path"
	"path/filepath"
	"strings"

	"parallelfs.dev/operator/api/v1alpha1"
)

// modules are those that the clients and servers of the filesystems, and their targets, need.
var modules = []string{"beegfs", "btrfs", "ext4", "fuse", "lnet", "lustre", "xfs"}

// The states of a module.
const (
	loaded    = "Loaded"
	builtIn   = "BuiltIn"
	available = "Available"
	missing   = "Missing"
)

func (c Collector) kernel() v1alpha1.KernelStatus {
	s := v1alpha1.KernelStatus{Release: text(value(c.Proc, "sys/kernel/osrelease"), 128)}
	directory := filepath.Join(c.Host, "lib/modules", s.Release)
	inMemory := firstFields(value(c.Proc, "modules"))
	filesystems := lastFields(value(c.Proc, "filesystems"))
	// Both files have a path relative to the directory at the start of each line (modules.dep(5)).
	inKernel := moduleNames(value(directory, "modules.builtin"))
	onDisk := moduleNames(value(directory, "modules.dep"))
	for _, name := range modules {
		state := missing
		switch {
		case inMemory[name], exists(c.Sys, "module", name, "initstate"):
			state = loaded
		case inKernel[name], filesystems[name], exists(c.Sys, "module", name):
			state = builtIn
		case onDisk[name]:
			state = available
		}
		s.Modules = append(s.Modules, v1alpha1.KernelModule{Name: name, State: state})
	}
	return s
}

// firstFields are the first words of the lines (proc_modules(5)).
func firstFields(table string) map[string]bool {
	all := map[string]bool{}
	for line := range strings.Lines(table) {
		if fields := strings.Fields(line); len(fields) > 0 {
			all[fields[0]] = true
		}
	}
	return all
}

// lastFields are the last words of the lines (proc_filesystems(5): "nodev" may come first).
func lastFields(table string) map[string]bool {
	all := map[string]bool{}
	for line := range strings.Lines(table) {
		if fields := strings.Fields(line); len(fields) > 0 {
			all[fields[len(fields)-1]] = true
		}
	}
	return all
}

// moduleNames are those of the files that the lines begin with, such as "kernel/fs/xfs/xfs.ko.xz: kernel/…".
func moduleNames(table string) map[string]bool {
	all := map[string]bool{}
	for line := range strings.Lines(table) {
		file, _, _ := strings.Cut(strings.TrimSpace(line), ":")
		if name, _, ok := strings.Cut(path.Base(file), ".ko"); ok {
			all[strings.ReplaceAll(name, "-", "_")] = true
		}
	}
	return all
}
