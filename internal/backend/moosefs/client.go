package moosefs

import (
	"fmt"
	"slices"
	"strings"

	"parallelfs.dev/operator/api/v1alpha1"
	"parallelfs.dev/operator/internal/backend"
	"parallelfs.dev/operator/internal/node/spec"
)

// clientMount returns the configuration of the node binary for a mount on a client.
func clientMount(fs *v1alpha1.FileSystem, masterIP string) (spec.Mount, error) {
	argv := []string{"mfsmount", string(fs.Spec.Clients.MountPath), "-f", "-H", masterIP, "-P", fmt.Sprint(portsOf(fs).clients())}
	mountOptions := make([]string, 0, len(fs.Spec.Clients.MountOptions))
	for _, o := range fs.Spec.Clients.MountOptions {
		name, _, _ := strings.Cut(string(o), "=")
		if slices.Contains(ownedMountOptions, name) {
			return spec.Mount{}, backend.Invalid(v1alpha1.ReasonOptionRefused,
				"spec.clients.mountOptions: %s is set by the operator itself and can't be changed; remove it", name)
		}
		mountOptions = append(mountOptions, string(o))
	}
	slices.Sort(mountOptions)
	if len(mountOptions) > 0 {
		argv = append(argv, "-o", strings.Join(mountOptions, ","))
	}
	return spec.Mount{
		Path: string(fs.Spec.Clients.MountPath), FSType: mountType, Command: argv,
		Source: mountSource(backend.Address(masterIP, portsOf(fs).clients())),
	}, nil
}

// ownedMountOptions lists the options of mfsmount(8) that determine which filesystem is mounted, where, by which user, or how the program
// runs.
var ownedMountOptions = []string{
	"mfsmaster", "mfsport", "mfsbind", "mfsproxy", "mfssubfolder", "mfspassword", "mfsmd5pass", "mfspassfile", "mfsaskpassword",
	"mfsmeta", "mfscfgfile", "mfsdelayedinit", "mfsdonotrememberpassword", "fsname", "subtype", "nonempty",
}

// mountSource returns the source in /proc/self/mountinfo for a mount from the address. mfsmount sets it itself.
func mountSource(address string) string { return "mfs#" + address }
