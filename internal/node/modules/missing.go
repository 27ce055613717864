package modules

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"parallelfs.dev/operator/internal/node/spec"
)

// Missing explains what is missing before the module can be used, and what to do. It is empty if nothing is missing, or if it is unknown
// how such a module is installed. It is not a complete sentence, and begins with a small letter.
func (k Kernel) Missing(name string) string {
	i := slices.IndexFunc(k.node.Known, func(m spec.KernelModule) bool { return m.Name == name })
	if i < 0 {
		return ""
	}
	how := k.node.Known[i]
	switch k.State(name) {
	case Loaded, BuiltIn:
		return ""
	case Available:
		return fmt.Sprintf("load the module %s on the node (modprobe %s); the first mount does so too, where the kernel may load modules", name, name)
	}
	if !k.installed {
		return fmt.Sprintf("there is no /lib/modules/%s, so the module %s can be neither built nor loaded: "+
			"start the node with a kernel whose modules and headers are installed, then install %s", k.Release, name, how.DKMS)
	}
	missing := fmt.Sprintf("/lib/modules/%s has no module %s: ", k.Release, name)
	headers := fmt.Sprintf("the headers of kernel %s (linux-headers-%s or kernel-devel-%s)", k.Release, k.Release, k.Release)
	switch sources, byHand, hasHeaders := k.holds(how.Sources), k.holds(how.ByHand), k.headers(); {
	case !sources && byHand && !hasHeaders:
		return missing + "install " + headers + ", then run " + how.Rebuild
	case !sources && byHand:
		return missing + "its sources and the kernel's headers are there: run " + how.Rebuild
	case !sources && !hasHeaders:
		return missing + "install " + how.DKMS + " and " + headers
	case !sources:
		return missing + "install " + how.DKMS + "; the kernel's headers are there"
	case !k.dkms():
		return missing + "its sources are there, but dkms is not: install dkms and " + headers
	case !hasHeaders:
		return missing + how.DKMS + " is there: install " + headers + ", then run dkms autoinstall -k " + k.Release
	default:
		return missing + how.DKMS + " and the kernel's headers are there, but it was not built: run dkms autoinstall -k " + k.Release +
			", and look into /var/lib/dkms/" + name + " when that fails"
	}
}

// Cannot explains in a complete sentence why the kernel can't mount a filesystem. It is empty if no obstacle is known.
func (k Kernel) Cannot(fsType string) string {
	if k.Mounts(fsType) {
		return ""
	}
	what := k.Missing(fsType)
	switch {
	case !k.installed && k.State(fsType) == Missing:
		what = fmt.Sprintf("load the module %s on the node (modprobe %s); its modules can't be seen from here, "+
			"kubectl get nodeinventory -o yaml says what is missing when there is none", fsType, fsType)
	case what == "":
		what = fmt.Sprintf("load the module %s on the node (modprobe %s), or install it", fsType, fsType)
	}
	return fmt.Sprintf("this node's kernel has no filesystem %s: %s", fsType, what)
}

// headers is true if modules can be built for the running kernel.
func (k Kernel) headers() bool {
	directory := filepath.Join(k.directory(), "build")
	// It is a link to a directory, whose path is relative to the node's own root.
	if to, err := os.Readlink(directory); err == nil {
		if filepath.IsAbs(to) {
			directory = filepath.Join(k.node.Host, to)
		} else {
			directory = filepath.Join(k.directory(), to)
		}
	}
	return exists(directory, "Makefile")
}

func (k Kernel) dkms() bool { return k.holds("usr/sbin/dkms") || k.holds("usr/bin/dkms") }

// holds is true if a file on the node matches the pattern.
func (k Kernel) holds(pattern string) bool {
	found, err := filepath.Glob(filepath.Join(k.node.Host, pattern))
	return err == nil && len(found) > 0
}
