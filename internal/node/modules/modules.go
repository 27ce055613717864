// Package modules lists the modules of a node's kernel, and describes exactly what is missing if a filesystem's own module is not
// installed. It only reads: the kernel itself loads a module at the first mount, or the administrator does.
package modules

import (
	"os"
	"path"
	"path/filepath"
	"strings"

	"parallelfs.dev/operator/internal/node/procfs"
	"parallelfs.dev/operator/internal/node/spec"
)

// The states of a module (api/v1alpha1, KernelModule).
const (
	// Loaded means that the module is in memory.
	Loaded = "Loaded"
	// BuiltIn means that the module is part of the kernel.
	BuiltIn = "BuiltIn"
	// Available means that the module is on the node's disk, from which the kernel loads it at the first mount.
	Available = "Available"
	// Missing means that the module is not installed.
	Missing = "Missing"
)

// Node locates the files of a node.
type Node struct {
	// Sys and Proc are the mount points of the node's sysfs and procfs, and Host is the root directory of the node.
	Sys, Proc, Host string
	// Known lists the modules with known ways to install them.
	Known []spec.KernelModule
}

// ThisHost is the node that the program runs on. Without the node's process ids, a container sees its own root directory.
func ThisHost(known []spec.KernelModule) Node {
	return Node{Sys: "/sys", Proc: "/proc", Host: "/proc/1/root", Known: known}
}

// Kernel holds the properties of the running kernel.
type Kernel struct {
	node Node
	// Release is the release of the running kernel as printed by uname -r. It is empty if it can't be read.
	Release string
	// installed is true if the directory with the modules of this release exists.
	installed                               bool
	inMemory, filesystems, inKernel, onDisk map[string]bool
}

// Look reads once; what can't be read counts as missing.
func (n Node) Look() Kernel {
	k := Kernel{node: n, Release: content(n.Proc, "sys/kernel/osrelease")}
	k.installed = k.Release != "" && exists(k.directory())
	k.inMemory = firstFields(content(n.Proc, "modules"))
	k.filesystems = lastFields(content(n.Proc, "filesystems"))
	if k.installed {
		// Each line of both files starts with a path relative to the directory (modules.dep(5)).
		k.inKernel = moduleNames(content(k.directory(), "modules.builtin"))
		k.onDisk = moduleNames(content(k.directory(), "modules.dep"))
	}
	return k
}

func (k Kernel) directory() string { return filepath.Join(k.node.Host, "lib/modules", k.Release) }

// State returns the state of a module.
func (k Kernel) State(name string) string {
	switch {
	case k.inMemory[name], exists(k.node.Sys, "module", name, "initstate"):
		return Loaded
	case k.inKernel[name], k.filesystems[name], exists(k.node.Sys, "module", name):
		return BuiltIn
	case k.onDisk[name]:
		return Available
	default:
		return Missing
	}
}

// Version returns the version that a loaded module reports (kernel Documentation/ABI/stable/sysfs-module). Most report none.
func (k Kernel) Version(name string) string { return content(k.node.Sys, "module", name, "version") }

// Mounts is true if the kernel currently supports the filesystem (proc_filesystems(5)).
func (k Kernel) Mounts(fsType string) bool { return k.filesystems[fsType] }

// Sees is true if the modules of the running kernel are visible, so that Missing is certain.
func (k Kernel) Sees() bool { return k.installed }

// firstFields returns the first word of each line (proc_modules(5)).
func firstFields(table string) map[string]bool {
	all := map[string]bool{}
	for line := range strings.Lines(table) {
		if fields := strings.Fields(line); len(fields) > 0 {
			all[fields[0]] = true
		}
	}
	return all
}

// lastFields returns the last word of each line (proc_filesystems(5): "nodev" may come first).
func lastFields(table string) map[string]bool {
	all := map[string]bool{}
	for line := range strings.Lines(table) {
		if fields := strings.Fields(line); len(fields) > 0 {
			all[fields[len(fields)-1]] = true
		}
	}
	return all
}

// moduleNames returns the module names from the paths at the start of the lines, such as "kernel/fs/xfs/xfs.ko.xz: kernel/…".
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

// content returns the content of a file without surrounding white space. It is empty if the file can't be read.
func content(path ...string) string {
	all, err := procfs.Read(filepath.Join(path...))
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(all))
}

func exists(path ...string) bool {
	_, err := os.Stat(filepath.Join(path...))
	return err == nil
}
