package podspec

import (
	"slices"

	"parallelfs.dev/operator/api/v1alpha1"
)

// ClientMountOptions returns the options of mount(8) for clients, sorted: those of spec.clients.mountOptions, and nosuid and nodev unless
// the list has their opposites. A person who is root on one client could otherwise become root on all of them, by a setuid program or a
// device file on the filesystem. mfsmount needs neither, because libfuse mounts with both unless mfsmount gets mfssuid or mfsdev.
func ClientMountOptions(clients *v1alpha1.ClientsSpec) []string {
	var out []string
	if clients != nil {
		for _, o := range clients.MountOptions {
			out = append(out, string(o))
		}
	}
	for safe, opposite := range map[string]string{"nosuid": "suid", "nodev": "dev"} {
		if !slices.Contains(out, safe) && !slices.Contains(out, opposite) {
			out = append(out, safe)
		}
	}
	slices.Sort(out)
	return out
}
