package lustre

import (
	"strings"

	"parallelfs.dev/operator/api/v1alpha1"
	"parallelfs.dev/operator/internal/backend"
	"parallelfs.dev/operator/internal/backend/shared/podspec"
	"parallelfs.dev/operator/internal/node/spec"
)

// mountType is the type of a client's mount, also in /proc/self/mountinfo.
const mountType = "lustre"

// ClientMount describes for the node binary how to mount on a client: from the NIDs of the MGS, which are separated by commas because they
// belong to one node.
func ClientMount(lustre v1alpha1.LustreSpec, clients v1alpha1.ClientsSpec, mgs []string) (spec.Mount, error) {
	const field = "spec.clients.mountOptions"
	if refused := refusedOptions(field, clients.MountOptions); len(refused) > 0 {
		return spec.Mount{}, backend.Invalid(v1alpha1.ReasonOptionRefused, "%s", refused[0])
	}
	mount := spec.Mount{
		Path: string(clients.MountPath), FSType: mountType, Source: sourceOf(mgs, lustre.FSName), Kernel: true,
	}
	mount.Command = []string{"mount", "-t", mountType, mount.Source, mount.Path, "-o", strings.Join(podspec.ClientMountOptions(&clients), ",")}
	return mount, nil
}

// sourceOf is the source of a client's mount: the NIDs of the MGS, and Lustre's own name of the filesystem.
func sourceOf(mgs []string, fsName string) string { return strings.Join(mgs, ",") + ":/" + fsName }
