package modules_test

import (
	"os"
	"path/filepath"
	"testing"

	. "github.com/onsi/gomega"

	"parallelfs.dev/operator/internal/node/modules"
	"parallelfs.dev/operator/internal/node/spec"
)

const release = "6.1.0-30-amd64"

// Files of a node.
const (
	installed   = "host/lib/modules/" + release + "/modules.dep"
	headers     = "host/usr/src/linux-headers-" + release + "/Makefile"
	dkms        = "host/usr/sbin/dkms"
	dkmsSources = "host/usr/src/examplefs-1.2.3/dkms.conf"
	handSources = "host/opt/examplefs/src/client/client_module_7/build/Makefile"
	memory      = "proc/modules"
	filesystems = "proc/filesystems"
)

// known is a module that two packages provide.
var known = []spec.KernelModule{{
	Name: "examplefs", DKMS: "examplefs-client-dkms", Sources: "usr/src/examplefs-*",
	ByHand: "opt/examplefs/src/client/*", Rebuild: "/etc/init.d/examplefs-client rebuild",
}}

// nodeWith is a node made of files. Its link to the headers exists even without the headers.
func nodeWith(t *testing.T, files map[string]string) modules.Node {
	t.Helper()
	g, root := NewWithT(t), t.TempDir()
	write := func(path, content string) {
		path = filepath.Join(root, path)
		g.Expect(os.MkdirAll(filepath.Dir(path), 0o700)).To(Succeed())
		g.Expect(os.WriteFile(path, []byte(content), 0o600)).To(Succeed())
	}
	write("proc/sys/kernel/osrelease", release+"\n")
	for path, content := range files {
		write(path, content)
	}
	if _, there := files[installed]; there {
		g.Expect(os.Symlink("/usr/src/linux-headers-"+release, filepath.Join(root, "host/lib/modules", release, "build"))).To(Succeed())
	}
	return modules.Node{Sys: root + "/sys", Proc: root + "/proc", Host: root + "/host", Known: known}
}

func TestTheMissingPieceOfAClientInTheKernel(t *testing.T) {
	const needHeaders = "the headers of kernel " + release + " (linux-headers-" + release + " or kernel-devel-" + release + ")"
	for name, c := range map[string]struct {
		files map[string]string
		state string
		says  string
	}{
		"nothing, when the module is loaded": {map[string]string{installed: "", memory: "examplefs 1 1 - Live 0x0\n"}, modules.Loaded, ""},
		"nothing, when the kernel has it":    {map[string]string{installed: "", filesystems: "nodev\texamplefs\n"}, modules.BuiltIn, ""},
		"its loading": {
			map[string]string{installed: "updates/dkms/examplefs.ko.xz:\n"}, modules.Available, "load the module examplefs on the node (modprobe examplefs)",
		},
		"the package and the headers": {
			map[string]string{installed: ""}, modules.Missing, "has no module examplefs: install examplefs-client-dkms and " + needHeaders,
		},
		"the package alone": {
			map[string]string{installed: "", headers: ""}, modules.Missing, "install examplefs-client-dkms; the kernel's headers are there",
		},
		"the headers alone": {
			map[string]string{installed: "", dkms: "", dkmsSources: ""}, modules.Missing, "examplefs-client-dkms is there: install " + needHeaders,
		},
		"dkms": {
			map[string]string{installed: "", headers: "", dkmsSources: ""}, modules.Missing, "dkms is not: install dkms",
		},
		"the build, which failed or was not done": {
			map[string]string{installed: "", headers: "", dkms: "", dkmsSources: ""}, modules.Missing, "run dkms autoinstall -k " + release,
		},
		"the headers, for the package that is built by hand": {
			map[string]string{installed: "", handSources: ""}, modules.Missing, "install " + needHeaders + ", then run /etc/init.d/examplefs-client rebuild",
		},
		"the build by hand": {
			map[string]string{installed: "", headers: "", handSources: ""}, modules.Missing, "are there: run /etc/init.d/examplefs-client rebuild",
		},
		"all modules of the kernel that runs": {
			map[string]string{headers: ""}, modules.Missing, "there is no /lib/modules/" + release + ", so the module examplefs can be neither built nor loaded",
		},
	} {
		t.Run(name, func(t *testing.T) {
			g, kernel := NewWithT(t), nodeWith(t, c.files).Look()
			g.Expect(kernel.State("examplefs")).To(Equal(c.state))
			if c.says == "" {
				g.Expect(kernel.Missing("examplefs")).To(BeEmpty())
			} else {
				g.Expect(kernel.Missing("examplefs")).To(And(ContainSubstring(c.says), WithTransform(func(s string) int { return len(s) }, BeNumerically("<", 512))))
			}
		})
	}
}

func TestAModuleOfWhichNothingIsKnownHasNoMessage(t *testing.T) {
	g, kernel := NewWithT(t), nodeWith(t, map[string]string{installed: ""}).Look()
	g.Expect(kernel.State("xfs")).To(Equal(modules.Missing))
	g.Expect(kernel.Missing("xfs")).To(BeEmpty())
}

func TestWhyAKernelCannotMount(t *testing.T) {
	for name, c := range map[string]struct {
		files  map[string]string
		fsType string
		says   string
	}{
		"a filesystem that it supports": {map[string]string{filesystems: "nodev\texamplefs\n\text4\n"}, "examplefs", ""},
		"one without a module": {
			map[string]string{installed: ""}, "examplefs",
			"this node's kernel has no filesystem examplefs: /lib/modules/" + release + " has no module examplefs: install examplefs-client-dkms and the headers of kernel " + release,
		},
		"one whose module is not loaded": {
			map[string]string{installed: "updates/dkms/examplefs.ko:\n"}, "examplefs", "this node's kernel has no filesystem examplefs: load the module examplefs on the node",
		},
		"one of which nothing can be seen from the container": {nil, "examplefs", "(modprobe examplefs); its modules can't be seen from here, kubectl get nodeinventory"},
		"one of which nothing is known":                       {map[string]string{installed: ""}, "gfs2", "load the module gfs2 on the node (modprobe gfs2), or install it"},
	} {
		t.Run(name, func(t *testing.T) {
			g, said := NewWithT(t), nodeWith(t, c.files).Look().Cannot(c.fsType)
			if c.says == "" {
				g.Expect(said).To(BeEmpty())
			} else {
				g.Expect(said).To(ContainSubstring(c.says))
			}
		})
	}
}
