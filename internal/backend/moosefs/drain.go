package moosefs

import (
	"parallelfs.dev/operator/api/v1alpha1"
	"parallelfs.dev/operator/internal/backend"
)

// Removal describes how the chunks of a disk move elsewhere. MooseFS moves them while programs write, and reports which chunks have no
// other copy.
func (Backend) Removal(_ *v1alpha1.FileSystem, target *v1alpha1.StorageTarget, _ []string) backend.Removal {
	if target.Spec.Role == v1alpha1.RoleMetadata {
		return backend.Removal{Never: "MooseFS can't move the metadata of its master to another disk while it runs, so this target can't be removed"}
	}
	return backend.Removal{
		Waits: "waiting until the disk is marked for removal in MooseFS; its server restarts for that, when all others are online",
		Moves: "the filesystem moves the data elsewhere: ",
	}
}
