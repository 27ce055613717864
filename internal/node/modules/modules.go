// Package modules says which modules a node's kernel has, and what exactly is missing where a filesystem's own is not there.
// It only reads: a module is loaded by the kernel itself at the first mount, or by the administrator.
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
	// Loaded means that it is in memory.
	Loaded = "Loaded"
	// BuiltIn means that it is a part of the kernel.
	BuiltIn = "BuiltIn"
	// Available means that it lies on the node's disk, from where the kernel loads it at the first mount.
	Available = "Available"
	// Missing means that it is not there.
	Missing = "Missing"
)

// Node is where the node's files are seen.
type Node struct {
	// Sys and Proc are where sysfs and procfs of the node are mounted, Host is the root directory of the node.
	Sys, Proc, Host string
	// Known are the modules of which it is known how they come to be on a node.
	Known []spec.KernelModule
}

// ThisHost is the node that the program runs on. A container without the process ids of the node sees its own root directory.
func ThisHost(known []spec.KernelModule) Node {
	return Node{Sys: "/sys", Proc: "/proc", Host: "/proc/1/root", Known: known}
}

// Kernel is what is known of the running kernel.
type Kernel struct {
	node Node
	// Release of the running kernel, as uname(1) -r prints it; empty when it can't be read.
	Release string
	// installed is true when the directory with the modules of this release is there.
	installed                               bool
	inMemory, filesystems, inKernel, onDisk map[string]bool
}

// Look looks once; what can't be read counts as not there.
func (n Node) Look() Kernel {
	k := Kernel{node: n, Release: content(n.Proc, "sys/kernel/osrelease")}
	k.installed = k.Release != "" && exists(k.directory())
	k.inMemory = firstFields(content(n.Proc, "modules"))
	k.filesystems = lastFields(content(n.Proc, "filesystems"))
	if k.installed {
		// Both files have a path relative to the directory at the start of each line (modules.dep(5)).
		k.inKernel = moduleNames(content(k.directory(), "modules.builtin"))
		k.onDisk = moduleNames(content(k.directory(), "modules.dep"))
	}
	return k
}

func (k Kernel) directory() string { return filepath.Join(k.node.Host, "lib/modules", k.Release) }

// State of a module.
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

// Version is what a module in memory says that its version is (kernel Documentation/ABI/stable/sysfs-module); most say none.
func (k Kernel) Version(name string) string { return content(k.node.Sys, "module", name, "version") }

// Mounts is true when the kernel knows the filesystem at this moment (proc_filesystems(5)).
func (k Kernel) Mounts(fsType string) bool { return k.filesystems[fsType] }

// Sees is true when the modules of the running kernel can be seen, so that Missing is sure.
func (k Kernel) Sees() bool { return k.installed }

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

// content of a file without the white space around it; empty when it can't be read.
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
