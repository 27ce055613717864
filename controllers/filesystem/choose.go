package filesystem

import (
	"cmp"
	"context"
	"slices"

	"k8s.io/apimachinery/pkg/api/equality"

	"parallelfs.dev/operator/api/v1alpha1"
	"parallelfs.dev/operator/internal/backend"
)

// complete fills in the defaults in the spec of the FileSystem, and keeps what a person has written.
func (p *pass) complete() {
	p.asked = *p.fs.Spec.DeepCopy()
	p.fs.Complete()
}

// chooseOpen chooses the values that the spec leaves open. They are written with the rest of the record, before anything is created.
func (p *pass) chooseOpen(context.Context) error {
	var before, now v1alpha1.ChosenStatus
	if c := p.fs.Status.Chosen; c != nil {
		before = *c
	}
	if slices.ContainsFunc(p.asked.StoragePools, func(pool v1alpha1.StoragePoolSpec) bool { return pool.Copies == 0 }) {
		now.Copies = cmp.Or(before.Copies, p.asked.Type.DefaultCopies())
	}
	if pools := p.asked.StoragePools; p.asked.DefaultStoragePool == "" && len(pools) > 0 {
		now.DefaultStoragePool = pools[0].Name
		if slices.ContainsFunc(pools, func(pool v1alpha1.StoragePoolSpec) bool { return pool.Name == before.DefaultStoragePool }) {
			now.DefaultStoragePool = before.DefaultStoragePool
		}
	}
	if err := cmp.Or(backend.RefuseNodes(p.fs), refuseMountPath(p.fs)); err != nil {
		return err //nolint:wrapcheck // the phase has a name
	}
	if chooser, ok := p.backend.(backend.Chooser); ok {
		if err := chooser.Choose(p.in, &p.asked, &now); err != nil {
			return err //nolint:wrapcheck // the phase has a name
		}
	}
	if p.fs.Status.Chosen = &now; equality.Semantic.DeepEqual(now, v1alpha1.ChosenStatus{}) {
		p.fs.Status.Chosen = nil
	}
	p.fs.Complete()
	p.read.Spec = *p.fs.Spec.DeepCopy() // no write may change the spec
	return nil
}

// refuseMountPath refuses a data directory at the path where the filesystem is mounted. For a path that the spec names, the API server has
// already refused it.
func refuseMountPath(fs *v1alpha1.FileSystem) error {
	if fs.Spec.Clients == nil {
		return nil
	}
	mount := string(fs.Spec.Clients.MountPath)
	directories := []string{}
	for _, role := range roles(fs) {
		for _, d := range role.Directories {
			directories = append(directories, string(d))
		}
	}
	if b := fs.Spec.Backups; b != nil && b.Nodes != nil {
		directories = append(directories, string(b.Nodes.Directory))
	}
	for _, d := range directories {
		if backend.Nested(d, mount) {
			return backend.Invalid(v1alpha1.ReasonDirectoryConflict,
				"the filesystem is mounted at %s, and the spec has %s for data; set another spec.clients.mountPath, or another directory", mount, d)
		}
	}
	return nil
}
