package filesystem

import (
	"cmp"
	"context"
	"slices"

	"parallelfs.dev/operator/api/v1alpha1"
)

// complete completes the spec of the FileSystem, and remembers what a person has written.
func (p *pass) complete() {
	p.asked = *p.fs.Spec.DeepCopy()
	p.fs.Complete()
}

// chooseOpen chooses what the spec leaves open. It is written with the rest of the record, before anything is made.
func (p *pass) chooseOpen(context.Context) error {
	chosen := chosenFor(&p.asked, p.fs)
	p.fs.Status.Chosen = chosen
	p.fs.Complete()
	p.read.Spec = *p.fs.Spec.DeepCopy() // no write changes the spec
	return nil
}

// chosenFor is what is chosen where the spec says nothing: what was chosen before, and else what is chosen now; nil when it leaves nothing open.
func chosenFor(asked *v1alpha1.FileSystemSpec, fs *v1alpha1.FileSystem) *v1alpha1.ChosenStatus {
	var before, now v1alpha1.ChosenStatus
	if fs.Status.Chosen != nil {
		before = *fs.Status.Chosen
	}
	if slices.ContainsFunc(asked.StoragePools, func(p v1alpha1.StoragePoolSpec) bool { return p.Copies == 0 }) {
		now.Copies = cmp.Or(before.Copies, asked.Type.DefaultCopies())
	}
	if now == (v1alpha1.ChosenStatus{}) {
		return nil
	}
	return &now
}
