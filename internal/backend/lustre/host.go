package lustre

import (
	"parallelfs.dev/operator/internal/backend/lustre/cli"
	"parallelfs.dev/operator/internal/node/format/ldiskfs"
	"parallelfs.dev/operator/internal/node/spec"
)

// HostSoftware returns the software that nodes must have before they can serve or mount a Lustre. The names of packages are those of its
// releases for RHEL and, after the slash, of its own packages for Debian and Ubuntu. Only ldiskfs is checked: the operator makes no targets
// of ZFS.
func HostSoftware() spec.HostSoftware {
	return spec.HostSoftware{
		Name: "Lustre",
		Server: spec.HostNeed{
			Modules:  []string{ldiskfs.Module, "lnet", "lustre", ldiskfs.OSDModule},
			Programs: []string{"lctl", "lnetctl", ldiskfs.Mkfs, "mount.lustre", ldiskfs.Tunefs},
			Install:  "kmod-lustre, kmod-lustre-osd-ldiskfs, lustre and lustre-osd-ldiskfs-mount / lustre-server-modules and lustre-server-utils",
		},
		Client: spec.HostNeed{
			Modules:  []string{"lnet", "lustre"},
			Programs: []string{"lctl", "lfs", "lnetctl", "mount.lustre"},
			Install:  "kmod-lustre-client and lustre-client / lustre-client-modules-dkms and lustre-client-utils",
		},
		// ldiskfs is built from the kernel's ext4 and has no version, and before 2.17 lnet has a version of its own (LNET_VERSION).
		OneVersion: []string{"lustre", ldiskfs.OSDModule},
		NIDs:       []string{"lctl", "list_nids"},
		NIDsOf:     "lnet",
		Clients:    cli.AllClientStates(), ReadClients: readClients,
		// StandIn is the helper that umount(8) calls for a mount of FUSE, which a program serves instead of the kernel. Lustre itself has none.
		StandIn: "umount.fuse.lustre",
	}
}

func readClients(output string) []spec.HostClient {
	var out []spec.HostClient
	for _, m := range cli.ParseClients(output) {
		out = append(out, spec.HostClient{Name: m.FSName, Disconnected: m.Disconnected, Evicted: m.Evicted})
	}
	return out
}
