package decisions

import (
	"cmp"
	"slices"

	"k8s.io/apimachinery/pkg/api/equality"

	"parallelfs.dev/operator/api/v1alpha1"
	"parallelfs.dev/operator/internal/backend"
	"parallelfs.dev/operator/internal/backend/shared/assign"
	"parallelfs.dev/operator/internal/backend/shared/nodefacts"
)

// ChooseOpen returns the values that the operator chooses because the spec leaves them open, nil if it leaves none open. Values that were
// chosen before are kept. The argument asked is the spec as a person wrote it; the FileSystem of the Input has the complete one.
func ChooseOpen(b backend.Backend, in backend.Input, asked *v1alpha1.FileSystemSpec) (*v1alpha1.ChosenStatus, error) {
	var before, now v1alpha1.ChosenStatus
	if c := in.FileSystem.Status.Chosen; c != nil {
		before = *c
	}
	if slices.ContainsFunc(asked.StoragePools, func(pool v1alpha1.StoragePoolSpec) bool { return pool.Copies == 0 }) {
		now.Copies = cmp.Or(before.Copies, asked.Type.DefaultCopies())
	}
	if pools := asked.StoragePools; asked.DefaultStoragePool == "" && len(pools) > 0 {
		now.DefaultStoragePool = pools[0].Name
		if slices.ContainsFunc(pools, func(pool v1alpha1.StoragePoolSpec) bool { return pool.Name == before.DefaultStoragePool }) {
			now.DefaultStoragePool = before.DefaultStoragePool
		}
	}
	if err := cmp.Or(nodefacts.RefuseNodes(in.FileSystem), refuseMountPath(in.FileSystem)); err != nil {
		return nil, err
	}
	if chooser, ok := b.(backend.Chooser); ok {
		if err := chooser.Choose(in, asked, &now); err != nil {
			return nil, err //nolint:wrapcheck // it is a sentence for a person
		}
	}
	if equality.Semantic.DeepEqual(now, v1alpha1.ChosenStatus{}) {
		return nil, nil //nolint:nilnil // nothing is chosen, and nothing is wrong
	}
	return &now, nil
}

// RoleTargets returns where each role of a FileSystem keeps its data.
func RoleTargets(fs *v1alpha1.FileSystem) []v1alpha1.TargetsSpec {
	out := []v1alpha1.TargetsSpec{fs.Spec.MetadataServers.Targets}
	if m := fs.Spec.Management(); m != nil {
		out = append(out, *m.Targets)
	}
	for i := range fs.Spec.StoragePools {
		out = append(out, fs.Spec.StoragePools[i].Targets)
	}
	return out
}

// refuseMountPath refuses a data directory at the path where the filesystem is mounted. For a path that the spec names, the API server has
// already refused it.
func refuseMountPath(fs *v1alpha1.FileSystem) error {
	if fs.Spec.Clients == nil {
		return nil
	}
	mount := string(fs.Spec.Clients.MountPath)
	directories := []string{}
	for _, role := range RoleTargets(fs) {
		for _, d := range role.Directories {
			directories = append(directories, string(d))
		}
	}
	if b := fs.Spec.Backups; b != nil && b.Nodes != nil {
		directories = append(directories, string(b.Nodes.Directory))
	}
	for _, d := range directories {
		if assign.Nested(d, mount) {
			return backend.Invalid(v1alpha1.ReasonDirectoryConflict,
				"the filesystem is mounted at %s, and the spec has %s for data; set another spec.clients.mountPath, or another directory", mount, d)
		}
	}
	return nil
}
